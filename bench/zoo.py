#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hone beside ONNX Runtime and OpenVINO on networks of the zoo, taking turns: medians, and the faster peer's time over Hone's.

usage: bench/zoo.py [--hone build/hone[,OTHER_HONE]] [--threads 1] [--rounds 4] [--precision f32|bf16] NETWORK…
Several builds of hone, separated by commas, take turns too. Needs PyPI numpy, onnxruntime; openvino where it is there. Networks are written to a temporary folder."""
import argparse, math, os, re, statistics, subprocess, tempfile, time

import numpy as np
import onnxruntime as ort

try:
    import openvino as ov
except ImportError:
    ov = None
UNITS = {"us": 1e-3, "µs": 1e-3, "ms": 1, "s": 1e3}


def hone(binary, path, runs, o):
    command = [binary, "run", path, "--runs", str(runs), "--threads", str(o.threads)]
    command += ["--precision", o.precision] if o.precision != "f32" else []
    got = subprocess.run(command, capture_output=True, text=True)
    found = re.search(r"time\s+([\d.]+) (\S+)\s+median of \d+ runs", got.stdout)
    if not found:
        raise SystemExit(f"{' '.join(command)}: {got.stderr.strip() or got.stdout.strip()}")
    return float(found.group(1)) * UNITS[found.group(2)]


def peers(path, o):
    """One function a runtime that runs the model once."""
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads, options.log_severity_level = o.threads, 1, 4
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    feed = {}
    for i in session.get_inputs():
        shape = [d if isinstance(d, int) and d > 0 else 1 for d in i.shape]
        feed[i.name] = np.random.default_rng(0).random(shape).astype({"tensor(float)": np.float32, "tensor(int64)": np.int64}[i.type])
    out = {"ONNX Runtime": lambda: session.run(None, feed)}
    if ov:
        wish = {"INFERENCE_NUM_THREADS": o.threads, "INFERENCE_PRECISION_HINT": o.precision, "PERFORMANCE_HINT": "LATENCY", "NUM_STREAMS": 1}
        request = ov.Core().compile_model(path, "CPU", wish).create_infer_request()
        out["OpenVINO"] = lambda: request.infer(feed)
    return out


def times(run, n):
    out = []
    for _ in range(n):
        begun = time.perf_counter()
        run()
        out.append((time.perf_counter() - begun) * 1e3)
    return out


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--hone", default="build/hone")
    a.add_argument("--threads", type=int, default=1)
    a.add_argument("--rounds", type=int, default=4)
    a.add_argument("--precision", default="f32")
    a.add_argument("network", nargs="+")
    o = a.parse_args()
    builds, ratios = o.hone.split(","), {}
    with tempfile.TemporaryDirectory() as folder:
        for name in o.network:
            path = os.path.join(folder, "model.onnx")
            subprocess.run([builds[0], "zoo", name, "-o", path], check=True, stdout=subprocess.DEVNULL)
            others = peers(path, o)
            once = min(times(others["ONNX Runtime"], 3))
            runs = max(5, min(60, int(200 / once)))
            got = {k: [] for k in [*builds, *others]}
            for _ in range(o.rounds):
                for b in builds:
                    got[b].append(hone(b, path, runs, o))
                for k, run in others.items():
                    got[k] += times(run, runs)
            ms = {k: statistics.median(v) for k, v in got.items()}
            best = min(ms[k] for k in others)
            for b in builds:
                ratios.setdefault(b, []).append(best / ms[b])
            print(f"{name:20s} {o.threads} threads  " + "  ".join(f"{k} {v:.3f} ms" for k, v in ms.items()) + "  Hone is " + ", ".join(f"{ratios[b][-1]:.2f}x" for b in builds), flush=True)
    for b in builds:
        print(f"{b}: geometric mean {math.exp(sum(map(math.log, ratios[b])) / len(ratios[b])):.3f}x the faster peer")


if __name__ == "__main__":
    main()
