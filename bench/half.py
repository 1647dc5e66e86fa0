#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Models in f16 and bf16 beside the same nets in f32: how long they take, what they err by, and the most
memory they needed.

usage: bench/half.py FOLDER make [NET…]          exports nets of scripts/artifacts_nets.py and converts them;
           what is there is kept
       bench/half.py FOLDER check [NET…]         errors beside the f32 net's answer, of Hone and of ONNX
                                                 Runtime, of the largest number of that answer
       bench/half.py FOLDER time [NET…]          Hone on both, run by run in turns: medians, and the half's
                                                 time over the f32's; with --peer ONNX Runtime too
       bench/half.py FOLDER memory [NET…]        peak resident size of `hone run`, of the half's over the
                                                 f32's
options: --library build/libhone.so --hone build/hone --threads 1 --seconds 1 --forms
ort,ort-io,cc,cc-io,torch,bf16 --precision f32|bf16|f16
Forms: onnxruntime.transformers' converter, onnxconverter_common's, each with and without f32 at inputs
and outputs, and torch's export of .half() and .bfloat16().
Needs PyPI torch, torchvision, transformers, onnx, onnxruntime, onnxconverter-common, numpy, ml_dtypes."""
import argparse, ctypes as C, math, os, pathlib, resource, statistics, subprocess, sys, warnings

import numpy as np

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent),
                str(pathlib.Path(__file__).resolve().parent.parent / "scripts")]
FORMS = ["ort", "ort-io", "cc", "cc-io", "torch", "bf16"]
NETS = ["resnet18_224", "mobilenet_v2_224", "mobilenet_v3_small_224", "efficientnet_b0_224", "densenet121",
        "squeezenet", "googlenet_224", "vit_224", "swin", "convnext", "unet_128",
        "yolo", "super", "bert", "minilm_128", "gpt2", "llama", "t5", "whisper", "lstm", "gru", "wav2vec2",
        "segformer", "mixer"]
TYPES = {"tensor(float16)": np.float16, "tensor(float)": np.float32, "tensor(int64)": np.int64}


def make(folder, net, forms):
    import onnx, torch
    import artifacts_nets as nets

    def export(path, dtype=None):
        module, inputs = nets.build(net)
        if dtype:
            module.to(dtype)
            inputs = {k: v.to(dtype) if v.is_floating_point() else v for k, v in inputs.items()}
        with torch.no_grad():
            try:
                torch.onnx.export(module, tuple(inputs.values()), str(path), dynamo=False, opset_version=17,
                                  input_names=list(inputs))
            except Exception:  # what the old exporter cannot, the new one does
                torch.onnx.export(module, tuple(inputs.values()), str(path), dynamo=True, opset_version=20,
                                  external_data=False, verbose=False, input_names=list(inputs))
        return {k: v.numpy() for k, v in inputs.items()} if dtype is None else None

    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "f32.onnx").exists():
        np.savez(folder / "inputs.npz", **export(folder / "f32.onnx"))
    for form in forms:
        path = folder / f"{form}.onnx"
        if path.exists():
            continue
        try:
            if form in ("torch", "bf16"):
                export(path, torch.float16 if form == "torch" else torch.bfloat16)
            else:
                if form.startswith("ort"):
                    from onnxruntime.transformers.float16 import convert_float_to_float16
                else:
                    from onnxconverter_common.float16 import convert_float_to_float16
                onnx.save(convert_float_to_float16(onnx.load(str(folder / "f32.onnx")),
                                                   keep_io_types=form.endswith("-io")), str(path))
        except Exception as e:
            path.unlink(missing_ok=True)
            print(f"{folder.name} {form}: not made: {str(e).splitlines()[0][:120]}", flush=True)


class Hone:
    """A model by libhone: run() once, out() its results."""

    def __init__(self, library, path, feed, threads, precision="f32"):
        import ml_dtypes, zoo

        self.lib, pointer = C.CDLL(os.path.abspath(library)), C.c_void_p
        lib = self.lib
        lib.hone_error.restype, lib.hone_value_data.restype, lib.hone_value_dims.restype = (C.c_char_p,
            pointer, C.POINTER(C.c_int64))
        lib.hone_model_input.restype = lib.hone_model_output.restype = C.POINTER(zoo.Port)
        self.types = {1: np.float32, 6: np.int32, 7: np.int64, 9: np.bool_, 10: np.float16, 11: np.float64,
                      16: ml_dtypes.bfloat16}
        model, self.session, options = pointer(), pointer(), zoo.Options()
        self.ok(lib.hone_model_load(str(path).encode(), C.byref(model)))
        n = lib.hone_model_inputs(model)
        self.values, self.results = (pointer * n)(), (pointer * lib.hone_model_outputs(model))()
        for k in range(n):
            port, value = lib.hone_model_input(model, k).contents, pointer()
            data = np.ascontiguousarray(feed[port.name.decode()].astype(self.types[port.dtype]))
            self.ok(lib.hone_tensor_create(port.dtype, (C.c_int64 * max(1, data.ndim))(*data.shape),
                                           data.ndim, C.byref(value)))
            C.memmove(lib.hone_value_data(value), data.ctypes.data, data.nbytes)
            self.values[k] = value
        lib.hone_options_default(C.byref(options))
        options.threads, options.precision = threads, {"f32": 1, "f16": 10, "bf16": 16}[precision]
        self.ok(lib.hone_session_create(model, C.byref(options), C.byref(self.session)))

    def ok(self, status):
        if status:
            raise RuntimeError(self.lib.hone_error().decode())

    def run(self):
        self.ok(self.lib.hone_session_run(self.session, self.values, self.results))

    def out(self):
        got = []
        for r in self.results:
            t, rank, d = self.lib.hone_value_dtype(C.c_void_p(r)), self.lib.hone_value_rank(
                C.c_void_p(r)), self.lib.hone_value_dims(C.c_void_p(r))
            shape, t = [d[k] for k in range(rank)], np.dtype(self.types[t])
            raw = C.string_at(self.lib.hone_value_data(C.c_void_p(r)), int(np.prod(shape)) * t.itemsize)
            got.append(np.frombuffer(raw, t).reshape(shape).astype(np.float64))
        return got


def runtime(path, feed, threads):
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads, options.log_severity_level = threads, 1, 4
    session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    given = {i.name: feed[i.name].astype(TYPES.get(i.type, feed[i.name].dtype)) for i in session.get_inputs()}
    return lambda: session.run(None, given)


def apart(got, want):
    worst = 0
    for g, w in zip(got, want):
        bad = ~np.isfinite(g) & np.isfinite(w)
        worst = max(worst, math.inf if bad.any()
                    else float(np.nanmax(abs(g - w)) / max(1e-9, np.nanmax(abs(w)))))
    return worst


def check(folder, feed, forms, o):
    want = [np.asarray(x, np.float64) for x in runtime(folder / "f32.onnx", feed, o.threads)()]
    for form in forms:
        path, line = folder / f"{form}.onnx", ""
        if not path.exists():
            continue
        try:
            net = Hone(o.library, path, feed, o.threads, o.precision)
            net.run()
            ours = apart(net.out(), want)
            line = f"Hone {ours:.2e}"
        except RuntimeError as e:
            ours, line = math.nan, f"Hone: {e}"
        try:
            theirs = apart([np.asarray(x, np.float64) for x in runtime(path, feed, o.threads)()], want)
            line += f"   ONNX Runtime {theirs:.2e}" + ("   FURTHER" if not ours <= max(1.05 * theirs, 1e-4)
                                                       else "")
        except Exception as e:
            line += f"   ONNX Runtime refuses" + ("" if ours < 0.03 else "   FAR")
        print(f"{folder.name:24} {form:8} {line}", flush=True)


def clock(folder, feed, forms, o):
    import zoo

    run = {f: Hone(o.library, folder / f"{f}.onnx", feed, o.threads, o.precision).run for f in ["f32", *forms]
           if (folder / f"{f}.onnx").exists()}
    if o.peer:
        for f in forms[:1]:
            run["ONNX Runtime " + f] = runtime(folder / f"{f}.onnx", feed, o.threads)
    got = {k: statistics.median(v) for k, v in zoo.turns(run, o.seconds * len(run)).items()}
    print(f"{folder.name:24} f32 {got['f32']:8.3f} ms   "
          + "   ".join(f"{k} {v:.3f} {v / got['f32']:.2f}x" for k, v in got.items() if k != "f32"),
          flush=True)
    return [v / got["f32"] for k, v in got.items() if k in forms]


def memory(folder, feed, forms, o):
    got = {}
    for f in ["f32", *forms]:
        if not (folder / f"{f}.onnx").exists():
            continue
        pid = os.posix_spawn(o.hone, [o.hone, "run", str(folder / f"{f}.onnx"), "--runs", "3", "--threads",
                                      str(o.threads)], os.environ, file_actions=[
                                          (os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)])
        _, _, used = os.wait4(pid, 0)
        got[f] = used.ru_maxrss / 1024
    print(f"{folder.name:24} f32 {got['f32']:7.1f} MB   "
          + "   ".join(f"{k} {v:.1f} {v / got['f32']:.2f}x" for k, v in got.items() if k != "f32"),
          flush=True)


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("folder", type=pathlib.Path)
    a.add_argument("what", choices=["make", "check", "time", "memory"])
    a.add_argument("net", nargs="*")
    a.add_argument("--library", default="build/libhone.so")
    a.add_argument("--hone", default="build/hone")
    a.add_argument("--threads", type=int, default=1)
    a.add_argument("--seconds", type=float, default=1)
    a.add_argument("--forms", default=",".join(FORMS))
    a.add_argument("--precision", default="f32")
    a.add_argument("--peer", action="store_true")
    o = a.parse_intermixed_args()
    warnings.simplefilter("ignore")
    ratios, forms = [], o.forms.split(",")
    for net in o.net or NETS:
        folder = o.folder / net
        if o.what == "make":
            make(folder, net, forms)
            continue
        if not (folder / "inputs.npz").exists():
            continue
        feed = dict(np.load(folder / "inputs.npz"))
        ratios += {"check": check, "time": clock, "memory": memory}[o.what](folder, feed, forms, o) or []
    if ratios:
        print(
            f"geometric mean {math.exp(sum(map(math.log, ratios)) / len(ratios)):.3f}, largest "
            f"{max(ratios):.2f}, of {len(ratios)}")


if __name__ == "__main__":
    main()
