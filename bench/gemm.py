#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Matrix products of networks, f32: GFLOP/s of Hone, ONNX Runtime and OpenVINO (oneDNN), taking turns, and their share of the core's peak.

usage: bench/gemm.py [--hone build/hone[,OTHER_HONE]] [--threads 1] [--rounds 5] [--peak GFLOPS] [--write FOLDER | --read FOLDER]
The peak is what bench_kernels prints for this CPU. Needs PyPI numpy, onnxruntime; openvino where it is there; onnx unless the models are read."""
import argparse, json, os, statistics, subprocess, sys, tempfile, time

SHAPES = [("square", 1024, 1024, 1024)]
SHAPES += [("bert_base", 128, n, k) for n, k in [(768, 768), (3072, 768), (768, 3072)]]
SHAPES += [("resnet50", m, n, k) for m, n, k in [(3136, 64, 64), (3136, 256, 64), (3136, 64, 256), (784, 128, 512), (784, 512, 128), (196, 256, 1024), (196, 1024, 256), (49, 512, 2048), (49, 2048, 512)]]
SHAPES += [("one row", 1, 3072, 768), ("one row", 1, 1000, 2048)]


def write(folder):
    import numpy as np
    from onnx import TensorProto as T, helper as h, numpy_helper as nh, save

    for _, m, n, k in SHAPES:
        b = np.resize(np.random.default_rng(0).standard_normal(20011).astype(np.float32), (k, n))
        g = h.make_graph([h.make_node("MatMul", ["a", "b"], ["c"])], "g", [h.make_tensor_value_info("a", T.FLOAT, [m, k])],
                         [h.make_tensor_value_info("c", T.FLOAT, [m, n])], [nh.from_array(b, "b")])
        save(h.make_model(g, opset_imports=[h.make_opsetid("", 17)], ir_version=8), os.path.join(folder, f"{m}x{n}x{k}.onnx"))


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--hone", default="build/hone")
    a.add_argument("--threads", type=int, default=1)
    a.add_argument("--rounds", type=int, default=5)
    a.add_argument("--peak", type=float, default=0)
    a.add_argument("--write")
    a.add_argument("--read")
    o = a.parse_args()
    if o.write:
        return write(o.write)
    import zoo  # its peers

    o.precision = "f32"
    builds = o.hone.split(",")
    with tempfile.TemporaryDirectory() as made:
        if not o.read:
            write(made)
        for name, m, n, k in SHAPES:
            path, work = os.path.join(o.read or made, f"{m}x{n}x{k}.onnx"), 2e-9 * m * n * k
            others, _ = zoo.peers(path, o)
            runs = max(20, min(2000, int(0.1 / (work / 100 + 5e-6))))
            got = {x: [] for x in [*builds, *others]}
            for _ in range(o.rounds):
                for b in builds:
                    text = subprocess.run([b, "bench", path, "--json", "--runs", str(runs), "--threads", str(o.threads)], capture_output=True, text=True, check=True).stdout
                    got[b].append(json.loads(text)["median_ms"])
                for x, run in others.items():
                    got[x].append(statistics.median(zoo.times(run, runs)))
            line = f"{name:10} {m:5} x {n:5} x {k:5}"
            for x, v in got.items():
                rate = work / statistics.median(v) * 1e3
                line += f"   {os.path.basename(x)} {rate:7.1f}" + (f" ({rate / o.peak / o.threads:4.0%})" if o.peak else "")
            print(line, flush=True)


sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
main()
