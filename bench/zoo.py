#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hone beside ONNX Runtime and OpenVINO on networks of the zoo and models in files, taking turns:
medians, and the faster peer's time over Hone's.

usage: bench/zoo.py [--hone build/hone[,OTHER_HONE]] [--threads 1[,2,16]] [--rounds 4] [--precision
           f32|bf16|f16] NETWORK…
       bench/zoo.py --library build/libhone.so[,OTHER_LIBRARY] [--seconds 4] …
Several builds of hone, separated by commas, take turns too. With --library all run in this process and
take turns run by run: what disturbs one disturbs the others, on a busy machine the fairer way. Few
threads only: each runtime's own stay awake for a while after a run. Needs PyPI numpy, onnxruntime;
openvino where it is there. Networks are written to a temporary folder; a NETWORK with a '/' is a model's
file, whose inputs are beside it (in_0.npy …, or test_data_set_0/input_0.pb … where PyPI onnx is there),
else random."""
import argparse, ctypes as C, math, os, re, statistics, subprocess, tempfile, time

import numpy as np
import onnxruntime as ort

try:
    import openvino as ov
except ImportError:
    ov = None
try:
    import onnx
except ImportError:
    onnx = None
UNITS = {"us": 1e-3, "µs": 1e-3, "ms": 1, "s": 1e3}


def hone(binary, path, runs, o):
    command = [binary, "run", path, "--runs", str(runs), "--threads", str(o.threads)]
    command += ["--precision", o.precision] if o.precision != "f32" else []
    got = subprocess.run(command, capture_output=True, text=True)
    found = re.search(r"time\s+([\d.]+) (\S+)\s+median of \d+ runs", got.stdout)
    if not found:
        raise SystemExit(f"{' '.join(command)}: {got.stderr.strip() or got.stdout.strip()}")
    return float(found.group(1)) * UNITS[found.group(2)]


def given(path, k):
    """A model's input where a file has it."""
    folder = os.path.dirname(path)
    file, case = os.path.join(folder, f"in_{k}.npy"), os.path.join(folder, "test_data_set_0", f"input_{k}.pb")
    if os.path.exists(file):
        return np.asarray(np.load(file), order="C")
    return np.asarray(onnx.numpy_helper.to_array(onnx.load_tensor(case)),
                      order="C") if onnx and os.path.exists(case) else None


class Port(C.Structure):
    _fields_ = [("name", C.c_char_p), ("kind", C.c_int), ("dtype", C.c_int), ("rank", C.c_int),
                ("dims", C.POINTER(C.c_int64)), ("shape", C.c_char_p)]


class Options(C.Structure):
    _fields_ = [("threads", C.c_int), ("plans", C.c_int), ("interpret", C.c_int), ("profile", C.c_int),
                ("limit_ms", C.c_int64), ("wisdom", C.c_char_p),
                ("precision", C.c_int), ("reserved", C.c_int * 9)]


def in_process(library, path, feed, o):
    """A function that runs the model once by libhone."""
    lib, pointer = C.CDLL(os.path.abspath(library)), C.c_void_p
    lib.hone_error.restype, lib.hone_model_input.restype, lib.hone_value_data.restype = (C.c_char_p,
        C.POINTER(Port), pointer)

    def ok(status):
        if status:
            raise SystemExit(f"{path}: {lib.hone_error().decode()}")

    model, session, options = pointer(), pointer(), Options()
    ok(lib.hone_model_load(path.encode(), C.byref(model)))
    n = lib.hone_model_inputs(model)
    values, out = (pointer * n)(), (pointer * lib.hone_model_outputs(model))()
    for k in range(n):
        port, value = lib.hone_model_input(model, k).contents, pointer()
        data = feed[port.name.decode()]
        ok(lib.hone_tensor_create(port.dtype, (C.c_int64 * max(1, data.ndim))(*data.shape), data.ndim,
                                  C.byref(value)))
        C.memmove(lib.hone_value_data(value), data.ctypes.data, data.nbytes)
        values[k] = value
    lib.hone_options_default(C.byref(options))
    options.threads, options.precision = o.threads, {"f32": 1, "f16": 10, "bf16": 16}[o.precision]
    ok(lib.hone_session_create(model, C.byref(options), C.byref(session)))
    return lambda: ok(lib.hone_session_run(session, values, out))


def peers(path, o):
    """One function a runtime that runs the model once."""
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads, options.log_severity_level = o.threads, 1, 4
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    feed = {}
    for k, i in enumerate(session.get_inputs()):
        shape = [d if isinstance(d, int) and d > 0 else 1 for d in i.shape]
        feed[i.name] = np.asarray(np.random.default_rng(0).random(shape)).astype(
            {"tensor(float)": np.float32, "tensor(int64)": np.int64}.get(i.type, np.float32))
        feed[i.name] = feed[i.name] if given(path, k) is None else given(path, k)
    out = {"ONNX Runtime": lambda: session.run(None, feed)}
    if ov:
        wish = {"INFERENCE_NUM_THREADS": o.threads, "INFERENCE_PRECISION_HINT": o.precision,
                "PERFORMANCE_HINT": "LATENCY", "NUM_STREAMS": 1}
        request = ov.Core().compile_model(path, "CPU", wish).create_infer_request()
        out["OpenVINO"] = lambda: request.infer(feed)
    return out, feed


def times(run, n):
    out = []
    for _ in range(n):
        begun = time.perf_counter()
        run()
        out.append((time.perf_counter() - begun) * 1e3)
    return out


def turns(run, seconds, at_once=1):
    """Times of runs that take turns, so many of one at once."""
    got, end = {k: [] for k in run}, time.perf_counter() + seconds
    for k in run:
        run[k]()
    while time.perf_counter() < end or len(got[k]) < 5:
        for k in run:
            got[k] += times(run[k], at_once)
    return got


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--hone", default="build/hone")
    a.add_argument("--library")
    a.add_argument("--seconds", type=float, default=4)
    a.add_argument("--threads", default="1")
    a.add_argument("--rounds", type=int, default=4)
    a.add_argument("--precision", default="f32")
    a.add_argument("network", nargs="+")
    o = a.parse_args()
    builds, ratios = (o.library or o.hone).split(","), {}
    with tempfile.TemporaryDirectory() as folder:
        for name, o.threads in [(n, int(t)) for n in o.network for t in o.threads.split(",")]:
            path = name if "/" in name else os.path.join(folder, "model.onnx")
            if path != name:
                subprocess.run([o.hone.split(",")[0], "zoo", name, "-o", path], check=True,
                               stdout=subprocess.DEVNULL)
            others, feed = peers(path, o)
            if o.library:
                got = turns({**{b: in_process(b, path, feed, o) for b in builds}, **others}, o.seconds)
            else:
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
                ratios.setdefault((b, o.threads), []).append(best / ms[b])
            print(f"{os.path.basename(os.path.dirname(name)) or name:20s} {o.threads} threads  "
                  + "  ".join(f"{k} {v:.3f} ms" for k, v in ms.items()) + "  Hone is "
                  + ", ".join(f"{ratios[b, o.threads][-1]:.2f}x" for b in builds), flush=True)
    for (b, threads), all in ratios.items():
        print(
            f"{b}, {threads} threads: geometric mean {math.exp(sum(map(math.log, all)) / len(all)):.3f}x the "
            f"faster peer")


if __name__ == "__main__":
    main()
