#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Requests of different lengths in one batch, where a mask says what counts; not where there is no use of it:
# serve_ragged.py HONE
import sys

from onnx_bytes import model

del sys.path[0]  # html.py lies here, and is not the html that others want
import concurrent.futures, json, math, os, subprocess, tempfile, urllib.request

hone = sys.argv[1]
failed = []
PORTS = [("x", 1, ["n", "s"]), ("mask", 1, ["n", "s"])]


def check(what, good):
    print(("ok      " if good else "FAILED  ") + what, flush=True)
    if not good:
        failed.append(what)


def softmax(row):
    all = [math.exp(x) for x in row]
    return [x / sum(all) for x in all]


models = {  # Log(mask) is 0 where it counts and minus infinity where it does not
    "masked": (
        model(
            PORTS,
            [("Log", ["mask"], ["l"]), ("Add", ["x", "l"], ["t"]), ("Softmax", ["t"], ["y"])],
            [("y", 1, ["n", "s"])],
        ),
        {"mask": "mask"},
    ),
    "few": (
        model(
            PORTS,
            [("Log", ["mask"], ["l"]), ("Add", ["x", "l"], ["t"]), ("Softmax", ["t"], ["y"])],
            [("y", 1, ["n", "s"])],
        ),
        {"mask": "mask", "buckets": [4, 20]},
    ),
    "unmasked": (
        model(PORTS, [("Mul", ["mask", "x"], ["t"]), ("Softmax", ["t"], ["y"])], [("y", 1, ["n", "s"])]),
        {"mask": "mask"},
    ),
    "wrong": (model(PORTS, [("Add", ["x", "mask"], ["y"])], [("y", 1, ["n", "s"])]), {"mask": "nothing"}),
    "falling": (
        model(PORTS, [("Add", ["x", "mask"], ["y"])], [("y", 1, ["n", "s"])]),
        {"mask": "mask", "buckets": [4, 3]},
    ),
}
with tempfile.TemporaryDirectory() as folder:
    for name, (data, ragged) in models.items():
        os.makedirs("%s/%s/1" % (folder, name))
        with open("%s/%s/1/model.onnx" % (folder, name), "wb") as f:
            f.write(data)
        with open("%s/%s/hone.json" % (folder, name), "w") as f:
            json.dump(
                {
                    "ragged": ragged,
                    "max_batch_size": 16,
                    "dynamic_batching": {
                        "preferred_batch_size": [2, 4, 8, 16],
                        "max_queue_delay_microseconds": 2000,
                    },
                },
                f,
            )
    server = subprocess.Popen(
        [hone, "serve", folder, "--http", "0", "--grpc", "-1", "--metrics", "-1", "--json"],
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

        for name, says in (
            ("masked", "on"),
            ("few", "on"),
            ("unmasked", "what is filled changes what comes out"),
        ):
            config = get("models/%s/config" % name)["hone"]
            check("%s: %s" % (name, config), config["ragged"] == says)
        index = {m["name"]: m for m in get("repository/index", {})}
        check(
            "no such mask: %s" % index["wrong"].get("reason"),
            index["wrong"]["state"] == "UNAVAILABLE" and "mask" in index["wrong"]["reason"],
        )
        check(
            "falling lengths: %s" % index["falling"].get("reason"),
            index["falling"]["state"] == "UNAVAILABLE" and "rising" in index["falling"]["reason"],
        )

        def ask(k):
            name, rows, length = ("masked", "few", "unmasked")[k % 3], 1 + k % 2, 1 + k * 7 % 23
            x = [[(k + 3 * r + c) % 11 / 4 for c in range(length)] for r in range(rows)]
            y = get(
                "models/%s/infer" % name,
                {
                    "inputs": [
                        {"name": "x", "datatype": "FP32", "shape": [rows, length], "data": x},
                        {
                            "name": "mask",
                            "datatype": "FP32",
                            "shape": [rows, length],
                            "data": [[1] * length] * rows,
                        },
                    ]
                },
            )["outputs"][0]
            want = sum((softmax(row) for row in x), [])
            return y["shape"] == [rows, length] and all(abs(a - b) < 1e-5 for a, b in zip(y["data"], want))

        with concurrent.futures.ThreadPoolExecutor(24) as many:
            check("900 answers of 23 lengths", all(many.map(ask, range(900))))

        def batches(name):
            s = get("models/%s/stats" % name)["model_stats"][0]
            return s["inference_count"] / max(1, s["execution_count"])

        check(
            "rows a run: %.2f filled, %.2f not" % (batches("masked"), batches("unmasked")),
            batches("masked") > batches("unmasked"),
        )
    finally:
        server.terminate()
        check("it ends as it should", server.wait(timeout=30) == 0)
print("serve_ragged: %s" % ("%d failed" % len(failed) if failed else "all as it should be"))
sys.exit(1 if failed else 0)
