#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# `hone serve --device`: instances on devices (the plain one, plugin_plain.c), one that is not there, a
# model's own:  serve_devices.py HONE PLUGIN
import sys

from onnx_bytes import model

del sys.path[0]  # html.py lies here, and is not the html that others want
import concurrent.futures, json, os, subprocess, tempfile, urllib.request

hone, plugin = sys.argv[1:3]
failed = []
NETWORK = [("x", 1, ["n", 8])], [("Mul", ["x", "x"], ["t"]), ("Softmax", ["t"], ["y"])], [("y", 1, ["n", 8])]


def check(what, good):
    print(("ok      " if good else "FAILED  ") + what, flush=True)
    if not good:
        failed.append(what)


def softmax(row):
    from math import exp

    all = [exp(x * x) for x in row]
    return [x / sum(all) for x in all]


with tempfile.TemporaryDirectory() as folder:
    for name, config in ("here", None), ("own", {"device": "cpu"}), ("none", {"device": "plain:7"}):
        os.makedirs("%s/%s/1" % (folder, name))
        with open("%s/%s/1/model.onnx" % (folder, name), "wb") as f:
            f.write(model(*NETWORK))
        if config:
            with open("%s/%s/hone.json" % (folder, name), "w") as f:
                json.dump(config, f)
    ports = ["--http", "0", "--grpc", "-1", "--metrics", "-1", "--json"]
    r = subprocess.run(
        [hone, "serve", folder, *ports, "--plugin", plugin, "--device", "plain:0,plain:2"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    check(
        "a device that is not there: %s" % r.stderr.strip(),
        r.returncode == 1 and "there are 2 of 'plain'" in r.stderr and r.stderr.count("\n") == 1,
    )
    server = subprocess.Popen(
        [hone, "serve", folder, *ports, "--plugin", plugin, "--device", "plain:0,plain:1"],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        at = "http://127.0.0.1:%d/v2/" % json.loads(server.stdout.readline())["http"]

        def get(path, body=None):
            return json.load(
                urllib.request.urlopen(
                    urllib.request.Request(
                        at + path,
                        body and json.dumps(body).encode(),
                        method="POST" if body is not None else "GET",
                    ),
                    timeout=30,
                )
            )

        here, own = (get("models/%s/config" % m) for m in ("here", "own"))
        check(
            "an instance a device: %s" % here["instance_group"],
            here["instance_group"][0]["count"] == 2
            and here["instance_group"][0]["kind"] == "KIND_GPU"
            and here["hone"]["device"] == "plain:0,plain:1",
        )
        check(
            "a model's own: %s" % own["instance_group"],
            own["instance_group"][0]["kind"] == "KIND_CPU" and own["hone"]["device"] == "cpu",
        )
        index = {m["name"]: m for m in get("repository/index", {})}
        check(
            "one that is not there: %s" % index["none"].get("reason"),
            index["none"]["state"] == "UNAVAILABLE" and "plain" in index["none"]["reason"],
        )

        def ask(k):
            name, rows = ("here", "own")[k % 2], 1 + k % 3
            x = [[(k + r + c) % 7 / 4 for c in range(8)] for r in range(rows)]
            y = get(
                "models/%s/infer" % name,
                {"inputs": [{"name": "x", "datatype": "FP32", "shape": [rows, 8], "data": x}]},
            )["outputs"][0]
            want = sum((softmax(row) for row in x), [])
            return y["shape"] == [rows, 8] and all(abs(a - b) < 1e-5 for a, b in zip(y["data"], want))

        with concurrent.futures.ThreadPoolExecutor(16) as many:
            check("400 answers", all(many.map(ask, range(400))))
    finally:
        server.terminate()
        check("it ends as it should", server.wait(timeout=30) == 0)
print("serve_devices: %s" % ("%d failed" % len(failed) if failed else "all as it should be"))
sys.exit(1 if failed else 0)
