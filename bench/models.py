#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hone beside ONNX Runtime on a folder of models, one process a runtime, taking turns: median of medians and spread.

usage: bench/models.py [--threads 1] [--rounds 5] [--seconds 0.4] [--bench build/bench/bench_model] FOLDER…
Each FOLDER holds model.onnx and test_data_set_0/input_K.pb. Needs PyPI onnx, onnxruntime, numpy."""
import argparse, os, statistics, subprocess, sys

PEER = r"""
import sys, time, onnx, onnxruntime as ort
from onnx import numpy_helper
def load(path):
    t = onnx.TensorProto(); t.ParseFromString(open(path, "rb").read()); return numpy_helper.to_array(t)
model, folder, threads = sys.argv[1], sys.argv[2], int(sys.argv[3])
o = ort.SessionOptions(); o.intra_op_num_threads = threads
begun = time.perf_counter(); s = ort.InferenceSession(model, o, providers=["CPUExecutionProvider"]); load_ms = (time.perf_counter() - begun) * 1e3
feed = {i.name: load(f"{folder}/input_{k}.pb") for k, i in enumerate(s.get_inputs())}
begun = time.perf_counter(); s.run(None, feed); print("ready %.3f %.3f" % (load_ms, (time.perf_counter() - begun) * 1e3), flush=True)
for line in sys.stdin:
    until = time.perf_counter() + float(line); d = []
    while len(d) < 3 or time.perf_counter() < until:
        t = time.perf_counter(); s.run(None, feed); d.append((time.perf_counter() - t) * 1e3)
    d.sort(); print("%.5f %d" % (d[len(d) // 2], len(d)), flush=True)
"""


class Runner:
    def __init__(self, command):
        self.p = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, stderr=subprocess.DEVNULL)
        first = self.p.stdout.readline().split()
        if not first or first[0] != "ready":
            raise RuntimeError("did not start")
        self.load, self.first = float(first[1]), float(first[2])

    def measure(self, seconds):
        self.p.stdin.write(f"{seconds}\n")
        self.p.stdin.flush()
        return float(self.p.stdout.readline().split()[0])

    def close(self):
        self.p.stdin.close()
        self.p.wait()


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--threads", type=int, default=1)
    a.add_argument("--rounds", type=int, default=5)
    a.add_argument("--seconds", type=float, default=0.4)
    a.add_argument("--bench", default="build/bench/bench_model")
    a.add_argument("folder", nargs="+")
    o = a.parse_args()
    print(f"| model, {o.threads} thread{'s' if o.threads > 1 else ''} | Hone ms | spread | ONNX Runtime ms | spread | Hone / ORT |\n|---|---|---|---|---|---|")
    worst = 0
    for folder in o.folder:
        model, data = os.path.join(folder, "model.onnx"), os.path.join(folder, "test_data_set_0")
        if not os.path.exists(model):
            continue
        name = os.path.basename(folder.rstrip("/"))
        try:
            hone = Runner([o.bench, model, data, str(o.threads)])
            peer = Runner([sys.executable, "-c", PEER, model, data, str(o.threads)])
        except RuntimeError as e:
            print(f"| {name} | {e} | | | | |")
            continue
        pairs = [(hone.measure(o.seconds), peer.measure(o.seconds)) for _ in range(o.rounds)]
        h, p = [x for x, _ in pairs], [y for _, y in pairs]
        ratio = statistics.median(x / y for x, y in pairs)
        worst = max(worst, ratio)
        print(f"| {name} | {statistics.median(h):.3f} | {min(h):.3f}–{max(h):.3f} | {statistics.median(p):.3f} | {min(p):.3f}–{max(p):.3f} | {ratio:.2f} |", flush=True)
        hone.close()
        peer.close()
    print(f"\nlargest ratio: {worst:.2f}")


main()
