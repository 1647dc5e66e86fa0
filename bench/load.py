#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Until a model is ready: load time, first run and peak memory of Hone beside ONNX Runtime. A fresh
process each, taking turns.

usage: bench/load.py [--threads 2] [--rounds 7] [--bench build/bench/bench_load] MODEL.onnx…
Load is hone_model_load and hone_session_create, or InferenceSession: the model is ready to run. Imports
of Python are not counted; memory is the peak of resident memory less what was there before the load, so
neither is Python itself. Inputs are zeros, free dims 1. The file is read once before, so that both find
it in the page cache. ONNX Runtime packs weights when the session is made, Hone at the first run: the sum
of both columns is the fair one. Needs PyPI onnxruntime, numpy."""
import argparse, json, os, statistics, subprocess, sys

PEER = r"""
import json, sys, time, numpy as np, onnxruntime as ort
def kb(field):
    return next(int(l.split()[1]) for l in open("/proc/self/status") if l.startswith(field))
types = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(float16)": np.float16,
         "tensor(int64)": np.int64, "tensor(int32)": np.int32,
         "tensor(int8)": np.int8, "tensor(uint8)": np.uint8, "tensor(bool)": np.bool_}
o = ort.SessionOptions(); o.intra_op_num_threads = int(sys.argv[2])
before = kb("VmRSS")
t = time.perf_counter()
s = ort.InferenceSession(sys.argv[1], o, providers=["CPUExecutionProvider"])
load = (time.perf_counter() - t) * 1e3
loaded = kb("VmRSS")
feed = {i.name: np.zeros([d if isinstance(d, int) else 1 for d in i.shape], types[i.type])
        for i in s.get_inputs()}
t = time.perf_counter(); s.run(None, feed); first = (time.perf_counter() - t) * 1e3
print(json.dumps(dict(load_ms=load, first_ms=first, before_kb=before, loaded_kb=loaded, peak_kb=kb("VmHWM"))))
"""


def once(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1] if done.stderr.strip()
                           else f"exit {done.returncode}")
    return json.loads(done.stdout)


def middle(runs, of):
    values = sorted(of(r) for r in runs)
    return statistics.median(values), values[0], values[-1]


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("models", nargs="+")
    a.add_argument("--threads", type=int, default=2)
    a.add_argument("--rounds", type=int, default=7)
    a.add_argument("--bench", default=os.path.join(os.path.dirname(__file__), "..", "build", "bench",
                                                   "bench_load"))
    a = a.parse_args()
    print(
        f"{'model':28} {'runtime':8} {'load ms':>9} {'(range)':>17} {'first ms':>9} {'load+first':>10} "
        f"{'loaded MB':>9} {'peak MB':>8}")
    for model in a.models:
        with open(model, "rb") as f:
            while f.read(1 << 24):
                pass
        ours, theirs = [], []
        try:
            for _ in range(a.rounds):
                ours.append(once([a.bench, model, str(a.threads)]))
                theirs.append(once([sys.executable, "-c", PEER, model, str(a.threads)]))
        except RuntimeError as e:
            print(f"{model}: {e}")
            continue
        name = os.path.basename(os.path.dirname(os.path.abspath(model)))
        for label, runs in (("hone", ours), ("ort", theirs)):
            load, low, high = middle(runs, lambda r: r["load_ms"])
            first, both = middle(runs, lambda r: r["first_ms"])[0], middle(runs, lambda r: r["load_ms"]
                + r["first_ms"])[0]
            loaded = middle(runs, lambda r: r["loaded_kb"] - r["before_kb"])[0] / 1024
            peak = middle(runs, lambda r: r["peak_kb"] - r["before_kb"])[0] / 1024
            print(
                f"{name:28} {label:8} {load:9.1f} {f'({low:.1f} to {high:.1f})':>17} {first:9.1f} "
                f"{both:10.1f} {loaded:9.1f} {peak:8.1f}")
        o = ours[0]
        parts = (o["file_kb"] + o["packed_kb"] + o["arena_kb"]) / 1024
        print(
            f"{'':28} hone: file {o['file_kb'] / 1024:.1f} + packed weights {o['packed_kb'] / 1024:.1f} + "
            f"arena {o['arena_kb'] / 1024:.1f} = {parts:.1f} MB")


if __name__ == "__main__":
    main()
