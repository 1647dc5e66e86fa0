#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# A limit for what one model's weights and tensors take, of the server or in the model's config:
# serve_memory.py HONE
import sys

from onnx_bytes import wide

del sys.path[0]  # html.py lies here, and is not the html that others want
import base64, json, os, signal, subprocess, tempfile, urllib.error, urllib.request

hone = sys.argv[1]
failed = []


def check(what, good):
    print(("ok      " if good else "FAILED  ") + what, flush=True)
    if not good:
        failed.append(what)


def ask(path, body=None):
    request = urllib.request.Request(
        "http://127.0.0.1:%d%s" % (http, path), None if body is None else json.dumps(body).encode()
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as r:
            text = r.read().decode()
            return r.status, json.loads(text) if text.startswith(("{", "[")) else text
    except urllib.error.HTTPError as e:
        return e.code, json.loads(e.read())["error"]


def infer(model, rows):
    return ask(
        "/v2/models/%s/infer" % model,
        {"inputs": [{"name": "x", "datatype": "FP32", "shape": [rows, 1], "data": [1.0] * rows}]},
    )


MIB = 1 << 20
guarded = os.environ.get("HONE_GUARD")  # then each tensor has memory of its own, which is not counted
models = {
    "small": (wide(1 << 12), None),
    "large": (wide(MIB), None),
    "said": (wide(1 << 18), '{"memory_mib": 1}'),
    "more": (wide(1 << 12), '{"memory_mib": 64}'),
    "less": (wide(1 << 12), 'parameters { key: "memory_mib" value { string_value: "2" } }'),
    "wrong": (wide(1 << 12), '{"memory_mib": -1}'),
}
with tempfile.TemporaryDirectory() as folder:
    for name, (data, config) in models.items():
        os.makedirs("%s/%s/1" % (folder, name))
        with open("%s/%s/1/model.onnx" % (folder, name), "wb") as f:
            f.write(data)
        if config:
            with open(
                "%s/%s/%s" % (folder, name, "hone.json" if config[0] == "{" else "config.pbtxt"), "w"
            ) as f:
                f.write(config)
    server = subprocess.Popen(
        [
            hone,
            "serve",
            folder,
            "--http",
            "0",
            "--grpc",
            "-1",
            "--metrics",
            "-1",
            "--json",
            "--model-memory",
            "4",
        ],
        stdout=subprocess.PIPE,
        text=True,
        env=dict(os.environ, HONE_WISDOM="none"),
    )
    try:
        http = json.loads(server.stdout.readline())["http"]
        states = {m["name"]: (m["state"], m["reason"]) for m in ask("/v2/repository/index", {})[1]}
        check(
            "within the limit: %r" % states,
            all(states[name][0] == "READY" for name in ("small", "more", "less")),
        )
        check(
            "weights beyond it: " + states["large"][1],
            states["large"][0] == "UNAVAILABLE"
            and "may take 4.0 MiB" in states["large"][1]
            and "weights take 8.0" in states["large"][1],
        )
        check("beyond its config's: " + states["said"][1], "may take 1.0 MiB" in states["said"][1])
        check("a config that is wrong: " + states["wrong"][1], "memory_mib is -1" in states["wrong"][1])
        limits = {
            name: ask("/v2/models/%s/config" % name)[1]["hone"]["memory_limit_bytes"]
            for name in ("small", "more", "less")
        }
        check(
            "the lower of both: %r" % limits, limits == {"small": 4 * MIB, "more": 4 * MIB, "less": 2 * MIB}
        )
        taken = ask("/v2/models/small/config")[1]["hone"]["memory_bytes"]
        usage = ask("/v2/models/small/stats")[1]["model_stats"][0]["memory_usage"]
        status = {
            m["name"]: (m["memory_bytes"], m["memory_limit_bytes"]) for m in ask("/status")[1]["models"]
        }
        metrics = ask("/metrics")[1].splitlines()
        check(
            "taken: %d, %r, %r" % (taken, usage, status["small"]),
            taken >= 32 << 10
            and (taken > 32 << 10 or guarded)
            and taken < 4 * MIB
            and usage[0]["byte_size"] == taken
            and status["small"] == (taken, 4 * MIB)
            and 'hone_model_memory_bytes{model="small",version="1"} %d' % taken in metrics
            and 'hone_model_memory_limit_bytes{model="less",version="1"} %d' % (2 * MIB) in metrics,
        )
        code, answer = infer("small", 8)
        check(
            "a request: %r" % (answer,),
            code == 200 and all(abs(y - 0.5) < 1e-5 for y in answer["outputs"][0]["data"]),
        )
        code, answer = infer("small", 4096)
        check(
            "one whose tensors are too large: %d %r" % (code, answer),
            code == 413 and "limit_bytes allows" in str(answer),
        )
        check("and the next one", infer("small", 8)[0] == 200)
        code, answer = ask(
            "/v2/repository/models/given/load",
            {
                "parameters": {
                    "config": '{"memory_mib": 64}',
                    "file:1/model.onnx": base64.b64encode(models["large"][0]).decode(),
                }
            },
        )
        check("files of a request: %d %r" % (code, answer), code == 400 and "may take 4.0 MiB" in str(answer))
        server.send_signal(signal.SIGTERM)
        check("it ends", server.wait(timeout=40) == 0)
    finally:
        server.kill()
print("serve_memory: %s" % ("%d failed" % len(failed) if failed else "all as it should be"))
sys.exit(1 if failed else 0)
