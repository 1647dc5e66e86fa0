#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Matrix products of networks, f32: GFLOP/s of Hone, ONNX Runtime and OpenVINO (oneDNN), taking turns in
one process, five runs a turn (the first finds its code out of the caches, which costs as much as 15 us,
whoever it is), and their share of the peak of multiply-adds, measured before, between and after: the best
run beside the best peak, because clocks change from second to second.

usage: bench/gemm.py [--library build/libhone.so[,OTHER_LIBRARY]] [--threads 1] [--seconds 2] [--and
           bf16,f16] [--cblas LIBRARY,LIBRARY] [--write FOLDER | --read FOLDER]
--and: Hone in these precisions too, in the same turns, and how many times its f32 that is. numpy's own
product (OpenBLAS) is there always; --cblas: of these libraries, loaded in this order, the cblas_sgemm of
the last, as NVPL's libnvpl_blas_core.so.0,libnvpl_blas_lp64_seq.so.0 (PyPI nvpl_blas).
Needs PyPI numpy, onnxruntime; openvino where it is there; onnx unless the models are read."""
import argparse, ctypes as C, os, statistics, tempfile

for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(name, "1")  # products of several threads are Hone's and the runtimes' own

SHAPES = [("square", 1024, 1024, 1024)]
SHAPES += [("bert_base", 128, n, k) for n, k in [(768, 768), (3072, 768), (768, 3072)]]
SHAPES += [("resnet50", m, n, k)
           for m, n, k in [(3136, 64, 64), (3136, 256, 64), (3136, 64, 256), (784, 128, 512), (784, 512, 128),
                           (196, 256, 1024), (196, 1024, 256), (49, 512, 2048), (49, 2048, 512)]]
SHAPES += [("one row", 1, 3072, 768), ("one row", 1, 1000, 2048)]


def write(folder):
    import numpy as np
    from onnx import TensorProto as T, helper as h, numpy_helper as nh, save

    for _, m, n, k in SHAPES:
        b = np.resize(np.random.default_rng(0).standard_normal(20011).astype(np.float32), (k, n))
        g = h.make_graph([h.make_node("MatMul", ["a", "b"], ["c"])], "g",
                         [h.make_tensor_value_info("a", T.FLOAT, [m, k])],
                         [h.make_tensor_value_info("c", T.FLOAT, [m, n])], [nh.from_array(b, "b")])
        save(h.make_model(g, opset_imports=[h.make_opsetid("", 17)], ir_version=8),
             os.path.join(folder, f"{m}x{n}x{k}.onnx"))


def blas(m, n, k, o):
    """One function a BLAS that multiplies such matrices once."""
    import numpy as np

    a, b = (np.random.default_rng(0).random(s, dtype=np.float32) for s in ((m, k), (k, n)))
    c = np.empty((m, n), np.float32)
    out = {"numpy": lambda: np.matmul(a, b, out=c)}
    libraries = [C.CDLL(x, mode=C.RTLD_GLOBAL) for x in filter(None, o.cblas.split(","))]
    if libraries:
        at, one = lambda x: C.c_void_p(x.ctypes.data), C.c_float(1)
        call = lambda: libraries[-1].cblas_sgemm(101, 111, 111, m, n, k, one, at(a), k, at(b), n,
                                                 C.c_float(0), at(c), n)
        call()
        if not np.allclose(c, a @ b, rtol=1e-3):
            raise SystemExit(f"{o.cblas}: a wrong product")
        out["cblas"] = call
    return out


def peak_of(o):
    """What the cores can do just now, in GFLOP/s."""

    class Speed(C.Structure):
        _fields_ = [("threads", C.c_int), ("copy", C.c_double), ("f32", C.c_double)]

    speed, lib = Speed(), C.CDLL(os.path.abspath(o.library.split(",")[0]))
    if lib.hone_machine_speed(o.threads, C.byref(speed)):
        raise SystemExit("no peak could be measured")
    return speed.f32 * 1e-9


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--library", default="build/libhone.so")
    a.add_argument("--threads", type=int, default=1)
    a.add_argument("--seconds", type=float, default=2)
    a.add_argument("--and", dest="more", default="")
    a.add_argument("--cblas", default="")
    a.add_argument("--write")
    a.add_argument("--read")
    o = a.parse_args()
    if o.write:
        return write(o.write)
    import zoo  # its peers

    o.precision = "f32"
    with tempfile.TemporaryDirectory() as made:
        if not o.read:
            write(made)
        for name, m, n, k in SHAPES:
            path, work = os.path.join(o.read or made, f"{m}x{n}x{k}.onnx"), 2e-9 * m * n * k
            others, feed = zoo.peers(path, o)
            run = {b: zoo.in_process(b, path, feed, o) for b in o.library.split(",")}
            for b in list(run):
                for precision in filter(None, o.more.split(",")):
                    run[f"{b} {precision}"] = zoo.in_process(b, path, feed,
                                                             argparse.Namespace(threads=o.threads,
                                                                 precision=precision))
            run.update(others)
            run.update(blas(m, n, k, o))
            got, peak = {x: [] for x in run}, [peak_of(o)]
            for _ in range(3):
                for x, ms in zoo.turns(run, o.seconds / 3, 5).items():
                    got[x] += ms
                peak.append(peak_of(o))
            top, line = statistics.median(peak), f"{name:10} {m:5} x {n:5} x {k:5}"
            for x, ms in got.items():
                rate, best = work / statistics.median(ms) * 1e3, work / min(ms) * 1e3
                line += f"   {os.path.basename(x)} {rate:6.1f}, at best {best:6.1f} ({best / max(peak):4.0%})"
                if " " in x and x.split(" ")[0] in got:
                    line += (
                        f" {statistics.median(got[x.split(' ')[0]]) / statistics.median(ms):.2f} times f32")
            print(f"{line}   peak {top:.1f}, at best {max(peak):.1f}", flush=True)


if __name__ == "__main__":
    main()
