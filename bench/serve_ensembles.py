#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# What an ensemble costs over its members, and what state kept on the server saves over state that the client
# carries; in turns, over HTTP:
#   serve_ensembles.py HONE MODELS [--rounds 3] [--window 0.4]
# MODELS has mnist-cnn, mobilenetv2-fp32 and gtcrn-stream, each with model.onnx. `one` is an ensemble of one
# member; `chain` of eight models that do nothing, so that what it takes beyond one of them is what a step
# costs.
import argparse, http.client, json, os, shutil, statistics, subprocess, sys, tempfile, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests"))
from onnx_bytes import model

p = argparse.ArgumentParser()
p.add_argument("hone")
p.add_argument("models")
p.add_argument("--rounds", type=int, default=3)
p.add_argument("--window", default="0.4")
a = p.parse_args()
folder = tempfile.mkdtemp()


def put(name, data=None, config=None):
    os.makedirs("%s/%s/1" % (folder, name))
    if data:
        open("%s/%s/1/model.onnx" % (folder, name), "wb").write(data)
    if config:
        json.dump(config, open("%s/%s/hone.json" % (folder, name), "w"))


def step(m, ins, outs):
    return {"model": m, "inputs": ins, "outputs": outs}


for name, path, i, o in ("mnist", "mnist-cnn", "Input3", "Plus214_Output_0"), ("mobilenet",
    "mobilenetv2-fp32", "input", "output"):
    put(name, open("%s/%s/model.onnx" % (a.models, path), "rb").read())
    put(name + "-one", config={"ensemble": [step(name, {i: "x"}, {o: "y"})]})
put("nothing", model([("x", 1, ["n", 256])], [("Identity", ["x"], ["y"])], [("y", 1, ["n", 256])]),
    {"dynamic_batching": False})
put("chain", config={"ensemble": [step("nothing", {"x": "t%d" % k}, {"y": "t%d" % (k + 1)})
                                  for k in range(8)]})
gtcrn = open(a.models + "/gtcrn-stream/model.onnx", "rb").read()
caches = {"conv_cache": [2, 1, 16, 16, 33], "tra_cache": [2, 3, 1, 1, 16], "inter_cache": [2, 1, 33, 16]}
put("gtcrn", gtcrn)
put("gtcrn-kept", gtcrn, {"sequence_batching": {"state": {n: n + "_out" for n in caches}}})
server = subprocess.Popen([a.hone, "serve", folder, "--http", "0", "--grpc", "-1", "--metrics", "-1",
                           "--json"], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True)
port = json.loads(server.stdout.readline())["http"]


def load(name, clients):
    r = subprocess.run([a.hone, "load", "127.0.0.1:%d" % port, "--model", name, "--concurrency", str(clients),
                        "--window", a.window, "--windows", "3",
                        "--warmup", "0.1", "--json", "--quiet"], capture_output=True, text=True)
    level = json.loads(r.stdout)["levels"][0]
    return level["requests_per_s"], level["p50_ms"] * 1000


def product(dims):
    n = 1
    for d in dims:
        n *= d
    return n


def stream(name, kept, n=100):
    c = http.client.HTTPConnection("127.0.0.1", port)
    state, took = {k: bytes(4 * product(d)) for k, d in caches.items()}, []
    mix = bytes(4 * 257 * 2)
    for k in range(n):
        tensors = [("mix", [1, 257, 1, 2], mix)] + ([] if kept
                                                    else [(s, caches[s], state[s]) for s in caches])
        parameters = {"binary_data_output": True}
        if kept:
            parameters.update(sequence_id=5, sequence_start=k == 0, sequence_end=k == n - 1)
        head = json.dumps({"parameters": parameters,
                           "inputs": [{"name": t, "shape": d, "datatype": "FP32",
                                       "parameters": {"binary_data_size": len(b)}}
                                                                for t, d, b in tensors]}).encode()
        body = head + b"".join(b for _, _, b in tensors)
        begun = time.perf_counter()
        c.request("POST", "/v2/models/%s/infer" % name, body,
                  {"Inference-Header-Content-Length": str(len(head))})
        r = c.getresponse()
        data = r.read()
        took.append((time.perf_counter() - begun) * 1e6)
        assert r.status == 200, data
        if not kept:
            length = int(r.headers["Inference-Header-Content-Length"])
            at = length
            for o in json.loads(data[:length])["outputs"]:
                size = o["parameters"]["binary_data_size"]
                if o["name"] != "enh":
                    state[o["name"][:-4]] = data[at:at + size]
                at += size
    return statistics.median(took[5:])


try:
    rows = {}
    for _ in range(a.rounds):
        for clients in 1, 8:
            for name in "mnist", "mnist-one", "nothing", "chain", "mobilenet", "mobilenet-one":
                if not (name.startswith("mobilenet") and clients == 1):
                    rows.setdefault((name, clients), []).append(load(name, clients))
        for name in "gtcrn", "gtcrn-kept":
            rows.setdefault((name, "stream"), []).append((0, stream(name, name == "gtcrn-kept")))
    print("%-16s %8s %12s %10s" % ("model", "clients", "requests/s", "p50 us"))
    for (name, clients), r in rows.items():
        print("%-16s %8s %12.0f %10.0f" % (name, clients, statistics.median(x for x, _ in r),
                                           statistics.median(y for _, y in r)))
    p50 = {k: statistics.median(y for _, y in r) for k, r in rows.items()}
    print(
        "an ensemble of one costs %.1f us a request, a step %.1f us; kept state takes %.0f %% of carried" % (
        p50["mnist-one", 1] - p50["mnist", 1], (p50["chain", 1] - p50["nothing", 1]) / 7,
        100 * p50["gtcrn-kept", "stream"] / p50["gtcrn", "stream"]))
finally:
    server.terminate()
    server.wait()
    shutil.rmtree(folder)
