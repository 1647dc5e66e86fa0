#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a call from Python costs: beside the same runs from C in the same process, and beside onnxruntime.

    bench/python.py MODEL [--rounds 15] [--runs 200]     time of a call, in turns
    bench/python.py MODEL --threads 8                    runs a second of so many threads, a session each,
                                                         Python and C
    bench/python.py MODEL --memory 100000                resident memory along so many runs

Needs the package hone (or PYTHONPATH and HONE_LIBRARY), numpy, a C compiler; onnxruntime where it shall
stand beside.
"""
import argparse
import ctypes as C
import os
import statistics
import subprocess
import tempfile
import threading
import time

import numpy as np

import hone
import hone.onnxruntime
from hone import _library as L

FROM_C = r"""
#include <pthread.h>
#include <stdint.h>
#include <time.h>
typedef int (*run_fn)(void *, void *const *, void **);
typedef void (*free_fn)(void *);
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}
void calls(run_fn run, free_fn drop, void *s, void **in, void **out, int n_out, int keep, int n,
           double *took) {
    for (int k = 0; k < n; k++) {
        const double t = now();
        run(s, in, out);
        if (!keep) for (int q = 0; q < n_out; q++) drop(out[q]), out[q] = 0;
        took[k] = now() - t;
    }
}
struct job { run_fn run; void *s, **in, **out; double until; int64_t runs; pthread_t id; };
static void *work(void *arg) {
    struct job *j = arg;
    while (now() < j->until) j->run(j->s, j->in, j->out), j->runs++;
    return 0;
}
int64_t threads(run_fn run, int n, void **s, void ***in, void ***out, double seconds) {
    struct job j[64] = {0};
    int64_t all = 0;
    for (int k = 0; k < n; k++) j[k] = (struct job){run, s[k], in[k], out[k], now() + seconds};
    for (int k = 0; k < n; k++) pthread_create(&j[k].id, 0, work, &j[k]);
    for (int k = 0; k < n; k++) pthread_join(j[k].id, 0), all += j[k].runs;
    return all;
}
"""


def from_c() -> C.CDLL:
    """The loops in C, compiled."""
    folder = tempfile.mkdtemp()
    source, library = os.path.join(folder, "x.c"), os.path.join(folder, "x.so")
    with open(source, "w") as file:
        file.write(FROM_C)
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-pthread", source, "-o", library], check=True)
    return C.CDLL(library)


class Held:
    """A session with inputs and outputs as C has them."""

    def __init__(self, session, feeds):
        self.session, self.values = session, [hone.Value(feeds[port.name]) for port in session.inputs]
        self.ins = (C.c_void_p * len(self.values))(*[v._handle for v in self.values])
        self.outs = (C.c_void_p * len(session.outputs))()


def inputs(model, free: int):
    """Random inputs; free dims are `free`."""
    rng, feeds = np.random.default_rng(0), {}
    for port in model.inputs:
        shape = [d if isinstance(d, int) else free for d in port.shape]
        feeds[port.name] = (rng.random(shape) * 2).astype(port.dtype)
    return feeds


def median_us(function, runs):
    """Each call on its own."""
    took = []
    for _ in range(runs):
        begin = time.perf_counter_ns()
        function()
        took.append(time.perf_counter_ns() - begin)
    return statistics.median(took) / 1e3


def overhead(path, feeds, options):
    """Medians of rounds, in turns."""
    library = from_c()
    session, held = hone.Session(path, threads=options.run_threads), None
    held = Held(session, feeds)
    like = hone.onnxruntime.SessionOptions()
    like.intra_op_num_threads = options.run_threads
    there = hone.onnxruntime.InferenceSession(path, like)
    took = (C.c_double * options.runs)()

    def c_loop(keep):
        library.calls(C.cast(L.session_run, C.c_void_p), C.cast(L.value_free, C.c_void_p),
                      C.c_void_p(session._handle), held.ins,
                      held.outs, len(held.outs), keep, options.runs, took)
        return statistics.median(took) * 1e6
    ways = {"Hone from C, outputs filled": lambda: c_loop(1), "Hone from C, outputs new": lambda: c_loop(0),
            "hone.Session.run": lambda: median_us(lambda: session.run(feeds), options.runs),
            "hone.onnxruntime run": lambda: median_us(lambda: there.run(None, feeds), options.runs)}
    try:
        import onnxruntime
        so = onnxruntime.SessionOptions()
        so.intra_op_num_threads = options.run_threads
        real = onnxruntime.InferenceSession(path, so, providers=["CPUExecutionProvider"])
        binding = real.io_binding()
        for name, value in feeds.items():
            binding.bind_cpu_input(name, value)
        for port in real.get_outputs():
            binding.bind_output(port.name)
        real.run_with_iobinding(binding)
        for port, value in zip(real.get_outputs(), binding.get_outputs()):
            binding.bind_ortvalue_output(port.name, value)
        inner, bound = real._sess, binding._iobinding
        ways["onnxruntime, all bound"] = lambda: median_us(lambda: inner.run_with_iobinding(bound, None),
                                                           options.runs)
        ways["onnxruntime run"] = lambda: median_us(lambda: real.run(None, feeds), options.runs)
    except ImportError:
        print("onnxruntime is not here")
    rounds = {name: [] for name in ways}
    for _ in range(options.rounds + 1):
        for name, way in ways.items():
            rounds[name].append(way())
    base = {"hone": "Hone from C, outputs new", "onnx": "onnxruntime, all bound"}
    for name, times in rounds.items():
        times = times[1:]
        of = base.get(name[:4])
        more = [t - b for t, b in zip(times, rounds[of][1:])] if of and of != name else []
        print(f"{name:30} {statistics.median(times):9.2f} us ({min(times):.2f} to {max(times):.2f})"
              + (f"   {statistics.median(more):+.2f} us over '{of}' ({min(more):+.2f} to {max(more):+.2f})"
                 if more else ""))


def scaling(path, feeds, options):
    """Runs a second of 1 and of N threads, a session of one thread each."""
    library, model = from_c(), hone.Model(path)
    library.threads.restype, library.threads.argtypes = C.c_int64, (C.c_void_p, C.c_int, C.c_void_p,
                                                                    C.c_void_p, C.c_void_p, C.c_double)
    most = options.threads
    held = [Held(hone.Session(model, threads=1), feeds) for _ in range(most)]
    for one in held:
        one.session.run(feeds)

    def by_c(n):
        sessions = (C.c_void_p * n)(*[h.session._handle for h in held[:n]])
        ins, outs = ((C.c_void_p * n)(*[C.addressof(getattr(h, side)) for h in held[:n]])
                     for side in ("ins", "outs"))
        return library.threads(C.cast(L.session_run, C.c_void_p), n, sessions, ins, outs,
                               options.seconds) / options.seconds

    def by_python(n):
        counts, until = [0] * n, time.perf_counter() + options.seconds

        def work(k):
            run = held[k].session.run
            while time.perf_counter() < until:
                run(feeds)
                counts[k] += 1
        workers = [threading.Thread(target=work, args=(k,)) for k in range(n)]
        [w.start() for w in workers], [w.join() for w in workers]
        return sum(counts) / options.seconds
    got = {(way.__name__, n): [] for way in (by_c, by_python) for n in (1, most)}
    for _ in range(5):
        for way in (by_c, by_python):
            for n in (1, most):
                got[way.__name__, n].append(way(n))
    for name in ("by_c", "by_python"):
        one, many = statistics.median(got[name, 1]), statistics.median(got[name, most])
        print(
            f"{name:10} 1 thread {one:9.0f} runs/s, {most} threads {many:9.0f} runs/s: {many / one:.2f} "
            f"times as many")


def memory(path, feeds, options):
    """Resident memory along many runs, new outputs each."""
    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
    session = hone.Session(path)
    there = hone.onnxruntime.InferenceSession(path)
    for at in range(options.memory + 1):
        if at % (options.memory // 10) == 0:
            print(f"{at:8} runs {resident():8.2f} MB")
        session.run(feeds) if at % 2 else there.run(None, feeds)


def main():
    """The command line."""
    parse = argparse.ArgumentParser(description="What a call from Python costs")
    parse.add_argument("model")
    parse.add_argument("--free", type=int, default=1, help="what free dims are")
    parse.add_argument("--rounds", type=int, default=15)
    parse.add_argument("--runs", type=int, default=200)
    parse.add_argument("--run-threads", type=int, default=0, help="of a run; 0: all cores")
    parse.add_argument("--threads", type=int, default=0)
    parse.add_argument("--seconds", type=float, default=1.0)
    parse.add_argument("--memory", type=int, default=0)
    options = parse.parse_args()
    feeds = inputs(hone.Model(options.model), options.free)
    way = memory if options.memory else scaling if options.threads else overhead
    way(options.model, feeds, options)


if __name__ == "__main__":
    main()
