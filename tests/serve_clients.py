#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# `hone serve` as the clients of other projects see it: tritonclient over HTTP and gRPC, kserve's, unmodified;
# every type, JSON and bytes, typed and raw, texts, errors, repository, statistics, streams, deadlines:
# serve_clients.py HONE [--front]     --front: all of it through a front Skipped (77) where the packages are
# not there: pip install 'tritonclient[http,grpc]' kserve ml_dtypes grpcio-reflection
import sys

from onnx_bytes import model

del sys.path[0]  # html.py lies here, and is not the html that others want
import atexit, base64, json, os, queue, signal, subprocess, tempfile, threading, time


def by_kserve(http_url, grpc_url):
    try:
        import asyncio
        import numpy as np
        from kserve import InferenceGRPCClient, InferenceRESTClient, InferInput, InferRequest
        from kserve.inference_client import RESTConfig
    except ImportError as e:
        print(e)
        return 77

    async def ask():
        x = np.arange(6, dtype=np.float32).reshape(2, 3) / 8
        given = InferInput("x", [2, 3], "FP32")
        given.set_data_from_numpy(x, binary_data=False)
        rest = InferenceRESTClient(config=RESTConfig(protocol="v2"))
        out = await rest.infer(
            "http://" + http_url,
            InferRequest(model_name="id_FP32", infer_inputs=[given]),
            model_name="id_FP32",
        )
        assert np.array_equal(out.outputs[0].as_numpy(), x), "REST"
        assert await rest.is_server_ready("http://" + http_url) and await rest.is_model_ready(
            "http://" + http_url, "two"
        ), "REST ready"
        client = InferenceGRPCClient(url=grpc_url)
        for binary in False, True:
            given = InferInput("x", [2, 3], "FP32")
            given.set_data_from_numpy(x, binary_data=binary)
            out = await client.infer(InferRequest(model_name="id_FP32", infer_inputs=[given]))
            assert np.array_equal(out.outputs[0].as_numpy(), x), "gRPC"
        assert await client.is_server_ready() and await client.is_model_ready("two"), "gRPC ready"
        await client.close()

    asyncio.run(ask())
    return 0


if sys.argv[1] == "--kserve":
    sys.exit(by_kserve(*sys.argv[2:]))
try:
    import grpc
    import numpy as np
    import tritonclient.grpc as tg
    import tritonclient.http as th
    from tritonclient.grpc import service_pb2, service_pb2_grpc
    from tritonclient.utils import InferenceServerException, serialize_byte_tensor
except ImportError as e:
    print("skipped: %s; pip install 'tritonclient[http,grpc]' kserve" % e)
    sys.exit(77)

try:
    import ml_dtypes

    BF16 = ml_dtypes.bfloat16
except ImportError:
    BF16 = None  # then nothing is sent in it
hone, through_front = sys.argv[1], "--front" in sys.argv
failed, done = [], 0


def check(what, good):
    global done
    done += 1
    if not good:
        failed.append(what)


def raises(what, call, text, status=None):
    try:
        call()
        check(what + ": nothing was raised", False)
    except InferenceServerException as e:
        check(
            "%s: %s %s" % (what, e.status(), e.message()),
            text in (e.message() or "") and (status is None or status in str(e.status())),
        )


# ---- models: one Identity a type, written as ONNX's protobuf ----


ONNX = {
    "FP32": 1,
    "UINT8": 2,
    "INT8": 3,
    "UINT16": 4,
    "INT16": 5,
    "INT32": 6,
    "INT64": 7,
    "BYTES": 8,
    "BOOL": 9,
    "FP16": 10,
    "FP64": 11,
    "UINT32": 12,
    "UINT64": 13,
    "BF16": 16,
}
NUMPY = {
    "FP32": np.float32,
    "UINT8": np.uint8,
    "INT8": np.int8,
    "UINT16": np.uint16,
    "INT16": np.int16,
    "INT32": np.int32,
    "INT64": np.int64,
    "BYTES": np.object_,
    "BOOL": np.bool_,
    "FP16": np.float16,
    "FP64": np.float64,
    "UINT32": np.uint32,
    "UINT64": np.uint64,
    "BF16": BF16,
}
TYPED = {
    "BOOL": "bool_contents",
    "INT8": "int_contents",
    "INT16": "int_contents",
    "INT32": "int_contents",
    "INT64": "int64_contents",
    "UINT8": "uint_contents",
    "UINT16": "uint_contents",
    "UINT32": "uint_contents",
    "UINT64": "uint64_contents",
    "FP32": "fp32_contents",
    "FP64": "fp64_contents",
    "BYTES": "bytes_contents",
}

folder = tempfile.mkdtemp()
repository = folder + "/models"


def write(name, data, version=1):
    os.makedirs("%s/%s/%d" % (repository, name, version), exist_ok=True)
    with open("%s/%s/%d/model.onnx" % (repository, name, version), "wb") as f:
        f.write(data)


for t, n in ONNX.items():
    write("id_" + t, model([("x", n, ["n", "m"])], [("Identity", ["x"], ["y"])], [("y", n, ["n", "m"])]))
write(
    "two",
    model(
        [("a", 1, ["n", 3]), ("b", 1, ["n", 3])],
        [("Add", ["a", "b"], ["sum"]), ("Sub", ["a", "b"], ["difference"])],
        [("sum", 1, ["n", 3]), ("difference", 1, ["n", 3])],
    ),
)


write(
    "slow",
    model(
        [("x", 1, ["n", "n"])],
        [
            ("MatMul", ["x" if k == 0 else "t%d" % k, "x"], ["t%d" % (k + 1) if k < 7 else "y"])
            for k in range(8)
        ],
        [("y", 1, ["n", "n"])],
    ),
)


def sample(t, shape):
    rng = np.random.default_rng(len(t) + sum(shape))
    if t == "BYTES":
        words = [b"", "\u00fcn\u00efcode \u2603".encode(), b'a"quote\\', b"x" * 300, b"new\nline", b"plain"]
        return np.array(
            [words[k % len(words)] for k in range(int(np.prod(shape)))], dtype=np.object_
        ).reshape(shape)
    if t == "BOOL":
        return rng.integers(0, 2, shape).astype(np.bool_)
    if t in ("FP32", "FP16", "FP64", "BF16"):
        return (np.round(rng.standard_normal(shape) * 8) / 8).astype(NUMPY[t])  # exact in bf16 too
    info = np.iinfo(NUMPY[t])
    x = rng.integers(info.min, info.max, shape, dtype=NUMPY[t], endpoint=True)
    x.flat[0], x.flat[-1] = info.min, info.max
    return x


# ---- the server ----

server = subprocess.Popen(
    [
        hone,
        "serve",
        repository,
        "--http",
        "0",
        "--grpc",
        "0",
        "--metrics",
        "-1",
        "--json",
        "--max-body",
        "64",
        "--max-files",
        "4",
    ],
    stdout=subprocess.PIPE,
    text=True,
)
atexit.register(server.kill)  # whatever happens here
ports = json.loads(server.stdout.readline())
if ports["grpc"] < 0:
    print("skipped: this server was built without gRPC")
    server.terminate()
    sys.exit(77)
if through_front:
    server = subprocess.Popen(
        [
            hone,
            "serve",
            "--front",
            "127.0.0.1:%d,grpc://127.0.0.1:%d" % (ports["http"], ports["grpc"]),
            "--http",
            "0",
            "--grpc",
            "0",
            "--metrics",
            "-1",
            "--json",
            "--max-body",
            "64",
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    atexit.register(server.kill)
    ports = json.loads(server.stdout.readline())
    time.sleep(1)  # it finds that the server is ready
http_url, grpc_url = "127.0.0.1:%d" % ports["http"], "127.0.0.1:%d" % ports["grpc"]
H, G = th.InferenceServerClient(http_url), tg.InferenceServerClient(grpc_url)
stub = service_pb2_grpc.GRPCInferenceServiceStub(grpc.insecure_channel(grpc_url))


def ask(kind, name, arrays, types, binary=True, outputs=None, **more):
    lib, client = (th, H) if kind == "http" else (tg, G)
    ins = []
    for (key, x), t in zip(arrays.items(), types):
        i = lib.InferInput(key, list(x.shape), t)
        if kind == "http":
            i.set_data_from_numpy(x, binary_data=binary)
        else:
            i.set_data_from_numpy(x)
        ins.append(i)
    outs = None
    if kind == "http" and not binary:
        outs = [lib.InferRequestedOutput(o, binary_data=False) for o in outputs or ["y"]]
    elif outputs:
        outs = [lib.InferRequestedOutput(o) for o in outputs]
    return client.infer(name, ins, outputs=outs, **more)


def same(got, want):
    if got is None or got.shape != want.shape:
        return False
    if want.dtype == np.object_:
        return all((g if isinstance(g, bytes) else g.encode()) == w for g, w in zip(got.flat, want.flat))
    return np.array_equal(got, want)


# ---- every type ----

for t in ONNX:
    if NUMPY[t] is None:
        continue
    for shape in (2, 3), (1, 1), (64, 7):
        x = sample(t, shape)
        check("gRPC raw %s %r" % (t, shape), same(ask("grpc", "id_" + t, {"x": x}, [t]).as_numpy("y"), x))
        check("HTTP bytes %s %r" % (t, shape), same(ask("http", "id_" + t, {"x": x}, [t]).as_numpy("y"), x))
        if t == "UINT64":
            x = x >> np.uint64(1)  # JSON's integers end at 2^63 here
        if t not in ("FP16", "BF16"):
            check(
                "HTTP JSON %s %r" % (t, shape),
                same(ask("http", "id_" + t, {"x": x}, [t], binary=False).as_numpy("y"), x),
            )
        if t in TYPED:
            r = service_pb2.ModelInferRequest(model_name="id_" + t)
            i = r.inputs.add(name="x", datatype=t, shape=shape)
            getattr(i.contents, TYPED[t]).extend(x.flatten().tolist())
            check(
                "gRPC typed %s %r" % (t, shape),
                same(
                    (
                        tg.InferResult(stub.ModelInfer(r)).as_numpy("y")
                        if t != "BYTES"
                        else tg.InferResult(stub.ModelInfer(r)).as_numpy("y")
                    ),
                    x,
                ),
            )
empty = np.zeros((0, 3), np.float32)
check("gRPC no rows", same(ask("grpc", "id_FP32", {"x": empty}, ["FP32"]).as_numpy("y"), empty))
big = sample("FP32", (3000, 1000))
check("gRPC 12 MB", same(ask("grpc", "id_FP32", {"x": big}, ["FP32"]).as_numpy("y"), big))
check("HTTP 12 MB", same(ask("http", "id_FP32", {"x": big}, ["FP32"]).as_numpy("y"), big))
a, b = sample("FP32", (4, 3)), sample("FP32", (4, 3)) * 2
for kind in "http", "grpc":
    r = ask(kind, "two", {"b": b, "a": a}, ["FP32"] * 2, request_id="q 7")
    check(kind + " two outputs", same(r.as_numpy("sum"), a + b) and same(r.as_numpy("difference"), a - b))
    response = r.get_response()
    check(
        kind + " names",
        (
            (response["id"], response["model_name"], response["model_version"]) == ("q 7", "two", "1")
            if kind == "http"
            else (response.id, response.model_name, response.model_version) == ("q 7", "two", "1")
        ),
    )
    r = ask(kind, "two", {"a": a, "b": b}, ["FP32"] * 2, outputs=["difference"])
    check(kind + " one output", same(r.as_numpy("difference"), a - b) and r.as_numpy("sum") is None)
    o = (th if kind == "http" else tg).InferRequestedOutput("sum", class_count=2)
    ins = []
    for key, x in ("a", a), ("b", b):
        ins.append((th if kind == "http" else tg).InferInput(key, [4, 3], "FP32"))
        ins[-1].set_data_from_numpy(x)
    top = (H if kind == "http" else G).infer("two", ins, outputs=[o]).as_numpy("sum")
    want = [int(np.argmax(row)) for row in a + b]
    check(kind + " classes: %r" % top, [int(row[0].split(b":")[1]) for row in top] == want)
for coding in "gzip", "deflate":
    check(
        "gRPC " + coding,
        same(ask("grpc", "id_FP32", {"x": a}, ["FP32"], compression_algorithm=coding).as_numpy("y"), a),
    )
    check(
        "HTTP " + coding,
        same(
            ask(
                "http",
                "id_FP32",
                {"x": a},
                ["FP32"],
                request_compression_algorithm=coding,
                response_compression_algorithm=coding,
            ).as_numpy("y"),
            a,
        ),
    )

# ---- what the server says of itself ----

for kind, c in ("http", H), ("grpc", G):
    check(
        kind + " live and ready",
        c.is_server_live()
        and c.is_server_ready()
        and c.is_model_ready("two")
        and c.is_model_ready("two", "1"),
    )
    check(kind + " not ready", not c.is_model_ready("none") and not c.is_model_ready("two", "9"))
    j = {} if kind == "http" else {"as_json": True}
    check(
        kind + " metadata",
        c.get_server_metadata(**j)["name"] == "hone"
        and "statistics" in c.get_server_metadata(**j)["extensions"],
    )
    m = c.get_model_metadata("two", **j)
    check(
        kind + " model metadata",
        [i["name"] for i in m["inputs"]] == ["a", "b"]
        and [int(d) for d in m["inputs"][0]["shape"]] == [-1, 3]
        and m["outputs"][0]["datatype"] == "FP32"
        and m["versions"] == ["1"],
    )
    m = c.get_model_config("two", **j)
    m = m.get("config", m)
    check(
        kind + " config",
        m["name"] == "two"
        and m["input"][0]["data_type"] == "TYPE_FP32"
        and m["instance_group"][0]["kind"] == "KIND_CPU",
    )
    before = c.get_inference_statistics("two", **j)["model_stats"][0]
    for _ in range(5):
        ask(kind, "two", {"a": a, "b": b}, ["FP32"] * 2)
    after = c.get_inference_statistics("two", **j)["model_stats"][0]
    grown = int(after["inference_stats"]["success"]["count"]) - int(
        before["inference_stats"]["success"]["count"]
    )
    check(
        kind + " statistics: %d" % grown,
        grown == 5 and int(after["inference_count"]) - int(before["inference_count"]) == 20,
    )
    index = c.get_model_repository_index(**j)
    index = index.get("models", []) if kind == "grpc" else index
    check(
        kind + " index",
        {i["name"]: i["state"] for i in index}.get("two") == "READY"
        and len([i for i in index if not i["name"].startswith("new ")]) == len(ONNX) + 2,
    )
    c.unload_model("two")
    check(kind + " unloaded", not c.is_model_ready("two"))
    raises(kind + " after unloading", lambda: ask(kind, "two", {"a": a, "b": b}, ["FP32"] * 2), "two")
    c.load_model("two")
    check(
        kind + " loaded",
        c.is_model_ready("two")
        and same(ask(kind, "two", {"a": a, "b": b}, ["FP32"] * 2).as_numpy("sum"), a + b),
    )
    raises(kind + " load of nothing", lambda: c.load_model("nothing"), "nothing")

    # models that come with the request, beside the repository's and in their place
    def sent(how, *files, config="{}", name="two", text=None):
        load = lambda: c.load_model(name, config=config, files={"file:" + path: data for path, data in files})
        return raises("%s files: %s" % (kind, how), load, text) if text else load()

    difference = model(
        [("a", 1, ["n", 3]), ("b", 1, ["n", 3])], [("Sub", ["a", "b"], ["sum"])], [("sum", 1, ["n", 3])]
    )
    asked = lambda name="two": ask(kind, name, {"a": a, "b": b}, ["FP32"] * 2).as_numpy("sum")
    sent(
        "in place",
        ("1/model.onnx", difference),
        config='{"parameters": {"from": {"string_value": "%s"}}}' % kind,
    )
    config_now = c.get_model_config("two", **j)
    config_now = config_now.get("config", config_now)
    check(
        kind + " files in place",
        same(asked(), a - b) and config_now["parameters"]["from"]["string_value"] == kind,
    )
    sent("no model", ("1/model.onnx", b"no model"), text="not an ONNX model")
    sent("no version", ("model.onnx", difference), text="no version")
    for path in (
        "../evil",
        "/evil",
        "1//model.onnx",
        "1/.model.onnx",
        "",
        "1/" + "x" * 300,
        "/".join("123456789"),
    ):
        sent("path " + path[:20], (path, difference), text="file's name")
    sent(
        "a file that is a folder",
        ("1/model.onnx", difference),
        ("1/model.onnx/2", b"x"),
        text="file:1/model.onnx",
    )
    sent("config", ("1/model.onnx", difference), config="[]", text="config")
    check(kind + " what was loaded before goes on", same(asked(), a - b))
    c.load_model("two")
    check(kind + " the repository's again", same(asked(), a + b))
    sent("broken", ("3/model.onnx", b"no model"), text="not an ONNX model")
    check(kind + " the repository's goes on", same(asked(), a + b))
    sent(
        "new",
        ("2/model.onnx", difference),
        ("hone.json", b'{"labels": ["zero", "one"]}'),
        config=None,
        name="new " + kind,
    )
    check(
        kind + " files of a new model",
        same(asked("new " + kind), a - b) and c.get_model_metadata("new " + kind, **j)["versions"] == ["2"],
    )
    raises(
        kind + " load of what is not in the repository",
        lambda: c.load_model("new " + kind),
        "not in the repository",
    )
    check(kind + " goes on", same(asked("new " + kind), a - b))
    c.unload_model("new " + kind)
    raises(kind + " unloaded files", lambda: asked("new " + kind), "new " + kind)
    raises(kind + " they are gone", lambda: c.load_model("new " + kind), "not in the repository")
    sent(
        "too large",
        ("1/model.onnx", bytes(3 << 20)),
        ("1/more", bytes(3 << 20)),
        text="at most 4194304 are taken",
    )

# ---- system shared memory ----

import tritonclient.utils.shared_memory as shm

texts = np.array([b"one", b"", b"three"], dtype=np.object_).reshape(1, 3)
for kind, lib, c in ("http", th, H), ("grpc", tg, G):
    key = "/hone_%d_%s" % (os.getpid(), kind)
    region = shm.create_shared_memory_region("both", key, 1024)
    try:
        c.register_system_shared_memory("both", key, 1024)
        raises(kind + " a region twice", lambda: c.register_system_shared_memory("both", key, 1024), "both")
        raises(
            kind + " a region of nothing",
            lambda: c.register_system_shared_memory("none", key + "x", 1024),
            "none",
        )
        raises(
            kind + " a region too long", lambda: c.register_system_shared_memory("long", key, 1 << 40), "long"
        )
        status = c.get_system_shared_memory_status()
        check(
            kind + " region's status",
            (status[0]["byte_size"] if kind == "http" else status.regions["both"].byte_size) == 1024,
        )
        for t, x in (
            ("FP32", a),
            ("INT8", sample("INT8", (2, 5))),
            ("FP16", sample("FP16", (3, 2))),
            ("BYTES", texts),
        ):
            packed = x if t != "BYTES" else serialize_byte_tensor(x)
            shm.set_shared_memory_region(region, [packed], offset=64)
            n = x.nbytes if t != "BYTES" else sum(4 + len(w) for w in x.flat)
            i, o = lib.InferInput("x", list(x.shape), t), lib.InferRequestedOutput("y")
            i.set_shared_memory("both", n, offset=64)
            o.set_shared_memory("both", 256, offset=512)
            r = c.infer("id_" + t, [i], outputs=[o])
            out = r.get_output("y")
            check(
                kind + " out of and into shared memory, " + t,
                same(shm.get_contents_as_numpy(region, x.dtype, x.shape, offset=512), x),
            )
            o = lib.InferRequestedOutput("y")
            check(
                kind + " out of shared memory, " + t,
                same(c.infer("id_" + t, [i], outputs=[o]).as_numpy("y"), x),
            )
        i = lib.InferInput("x", [4, 3], "FP32")
        i.set_shared_memory("both", 48, offset=1000)
        raises(kind + " beyond a region", lambda: c.infer("id_FP32", [i]), "beyond")
        i.set_shared_memory("both", 44)
        raises(kind + " fewer bytes than the shape", lambda: c.infer("id_FP32", [i]), "48 bytes")
        i.set_shared_memory("other", 48)
        raises(kind + " no such region", lambda: c.infer("id_FP32", [i]), "other")
        i = lib.InferInput("x", [4, 3], "FP32")
        i.set_shared_memory("both", 48)
        o = lib.InferRequestedOutput("y")
        o.set_shared_memory("both", 40)
        raises(
            kind + " an output that does not fit", lambda: c.infer("id_FP32", [i], outputs=[o]), "48 bytes"
        )
        fd = os.open("/dev/shm" + key, os.O_RDWR)
        os.ftruncate(fd, 16)  # a mapping would end the server here
        os.close(fd)
        raises(kind + " a region cut short", lambda: c.infer("id_FP32", [i]), "cut short")
        c.unregister_system_shared_memory("both")
        raises(kind + " after it was unregistered", lambda: c.infer("id_FP32", [i]), "both")
        c.unregister_system_shared_memory()
    finally:
        shm.destroy_shared_memory_region(region)

# CUDA's: a handle that is none is refused, with a device and without.
for kind, c in ("http", H), ("grpc", G):
    for what, handle in ("no handle", b"x" * 64), ("half a handle", b"x" * 31):
        raises(
            "%s CUDA: %s" % (kind, what),
            lambda: c.register_cuda_shared_memory("gpu", base64.b64encode(handle), 0, 64),
            "failed to register CUDA shared memory region: 'gpu'",
        )
    status = c.get_cuda_shared_memory_status()
    check(kind + " CUDA: there are none: %r" % status, not (status if kind == "http" else status.regions))
    raises(
        kind + " CUDA: not one of those",
        lambda: c.get_cuda_shared_memory_status("gpu"),
        "Unable to find cuda shared memory region: 'gpu'",
    )
    c.unregister_cuda_shared_memory()

# ---- errors ----

for kind, not_found, invalid in ("http", "404", "400"), ("grpc", "NOT_FOUND", "INVALID_ARGUMENT"):
    raises(kind + " no model", lambda: ask(kind, "none", {"x": a}, ["FP32"]), "none", not_found)
    raises(
        kind + " another shape",
        lambda: ask(kind, "two", {"a": a[:, :2], "b": b}, ["FP32"] * 2),
        "dim 1",
        invalid,
    )
    raises(
        kind + " another type",
        lambda: ask(kind, "two", {"a": a.astype(np.float64), "b": b}, ["FP64", "FP32"]),
        "FP64",
        invalid,
    )
    raises(kind + " another name", lambda: ask(kind, "two", {"a": a, "c": b}, ["FP32"] * 2), "'c'", invalid)
    raises(kind + " one left out", lambda: ask(kind, "two", {"a": a}, ["FP32"]), "b", invalid)
    raises(
        kind + " another output",
        lambda: ask(kind, "two", {"a": a, "b": b}, ["FP32"] * 2, outputs=["z"]),
        "z",
        invalid,
    )
    raises(kind + " rows that differ", lambda: ask(kind, "two", {"a": a, "b": b[:2]}, ["FP32"] * 2), "")
    raises(
        kind + " no version", lambda: ask(kind, "two", {"a": a, "b": b}, ["FP32"] * 2, model_version="7"), "7"
    )
    check(kind + " goes on", same(ask(kind, "id_FP32", {"x": a}, ["FP32"]).as_numpy("y"), a))
huge = np.zeros((17000, 1000), np.float32)
raises("gRPC too large", lambda: ask("grpc", "id_FP32", {"x": huge}, ["FP32"]), "bytes", "RESOURCE_EXHAUSTED")


def wrong(what, make, text):
    r = service_pb2.ModelInferRequest(model_name="id_INT8")
    make(r)
    try:
        stub.ModelInfer(r)
        check(what + ": it was taken", False)
    except grpc.RpcError as e:
        check(
            "%s: %s" % (what, e.details()),
            e.code() == grpc.StatusCode.INVALID_ARGUMENT and text in e.details(),
        )


def one(r, contents=None, raw=None, shape=(1, 2), name="x"):
    i = r.inputs.add(name=name, datatype="INT8", shape=shape)
    if contents is not None:
        i.contents.int_contents.extend(contents)
    if raw is not None:
        r.raw_input_contents.append(raw)


wrong("an int8 of 300", lambda r: one(r, [1, 300]), "INT8")
wrong("too few", lambda r: one(r, [1]), "1 elements")
wrong("too many", lambda r: one(r, [1, 2, 3]), "more than")
wrong("raw of another size", lambda r: one(r, raw=b"abc"), "3 bytes")
wrong("raw and typed", lambda r: one(r, [1, 2], raw=b"ab"), "raw_input_contents")
wrong("a negative dim", lambda r: one(r, [1, 2], shape=(-1, 2)), "dim")
wrong("an endless shape", lambda r: one(r, [1, 2], shape=(1 << 40, 1 << 40)), "elements")
wrong("no input", lambda r: None, "x")
wrong(
    "more raw than inputs",
    lambda r: (one(r, raw=b"ab"), r.raw_input_contents.append(b"cd")),
    "raw_input_contents",
)
channel = grpc.insecure_channel(grpc_url)
for path, request, code in (
    ("/inference.GRPCInferenceService/ModelInfer", b"\xff\xff\xff\xff", grpc.StatusCode.INVALID_ARGUMENT),
    ("/inference.GRPCInferenceService/Nothing", b"", grpc.StatusCode.UNIMPLEMENTED),
    ("/grpc.health.v1.Health/Check", b"\x0a\x04nope", grpc.StatusCode.NOT_FOUND),
):
    try:
        channel.unary_unary(path)(request)
        check(path + " was taken", False)
    except grpc.RpcError as e:
        check("%s: %s" % (path, e.code()), e.code() == code)
check("health", channel.unary_unary("/grpc.health.v1.Health/Check")(b"") == b"\x08\x01")
watch = channel.unary_stream("/grpc.health.v1.Health/Watch")(b"")
check("health, watched", next(watch) == b"\x08\x01")
watch.cancel()
check(
    "health of no service, watched",
    next(channel.unary_stream("/grpc.health.v1.Health/Watch")(b"\x0a\x04nope", timeout=5)) == b"\x08\x03",
)

# What the server speaks, for clients that ask: descriptors as tritonclient has them, and a call made of them
# alone.
try:
    from google.protobuf import descriptor_pool, message_factory
    from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase
except ImportError as e:
    print("skipped reflection: %s; pip install grpcio-reflection" % e)
else:
    database = ProtoReflectionDescriptorDatabase(channel)
    check(
        "services: %s" % list(database.get_services()),
        {
            "inference.GRPCInferenceService",
            "grpc.health.v1.Health",
            "grpc.reflection.v1.ServerReflection",
            "grpc.reflection.v1alpha.ServerReflection",
        }
        == set(database.get_services()),
    )
    pool = descriptor_pool.DescriptorPool(database)
    ours, theirs = (
        pool.FindServiceByName("inference.GRPCInferenceService"),
        service_pb2.DESCRIPTOR.services_by_name["GRPCInferenceService"],
    )

    def shape_of(f):
        kind = f.message_type or f.enum_type
        return (
            f.name,
            f.type,
            kind.full_name if kind else None,
            f.containing_oneof.name if f.containing_oneof else None,
            f.is_repeated if hasattr(f, "is_repeated") else f.label == f.LABEL_REPEATED,
        )

    def differs(one, other, seen):  # what we have of a message is as they have it
        if one.full_name in seen:
            return []
        seen.add(one.full_name)
        wrong = [] if one.full_name == other.full_name else [one.full_name]
        for f in one.fields:
            g = other.fields_by_number.get(f.number)
            if not g or shape_of(f) != shape_of(g):
                wrong.append(f.full_name)
            elif f.message_type:
                wrong += differs(f.message_type, g.message_type, seen)
            elif f.enum_type and [(v.name, v.number) for v in f.enum_type.values] != [
                (v.name, v.number) for v in g.enum_type.values
            ]:
                wrong.append(f.full_name)
        return wrong

    seen, wrong_fields = set(), []
    for m in ours.methods:
        t = theirs.methods_by_name[m.name]
        wrong_fields += differs(m.input_type, t.input_type, seen) + differs(
            m.output_type, t.output_type, seen
        )
    check(
        "%d methods, %d messages, as tritonclient has them: %s"
        % (len(ours.methods), len(seen), wrong_fields),
        not wrong_fields and len(ours.methods) == 18 and len(seen) > 50,
    )
    try:
        database.FindFileContainingSymbol("nothing.Here")
        check("no such symbol", False)
    except KeyError:
        check("no such symbol", True)
    try:
        database.FindFileByName("nothing.proto")
        check("no such file", False)
    except KeyError:
        check("no such file", True)
    known = {
        m.name: (
            message_factory.GetMessageClass(m.input_type),
            message_factory.GetMessageClass(m.output_type),
        )
        for m in ours.methods
    }
    asked, answered = known["ModelMetadata"]
    said = channel.unary_unary(
        "/inference.GRPCInferenceService/ModelMetadata", asked.SerializeToString, answered.FromString
    )(asked(name="id_FP32"))
    check(
        "a call made of descriptors: %s" % said.inputs[0].datatype,
        said.name == "id_FP32" and said.inputs[0].datatype == "FP32",
    )

# ---- streams, many at once, deadlines ----

answers, room = queue.Queue(), threading.Semaphore(200)  # a model's queue has 256


def heard(result, error):
    answers.put((result, error))
    room.release()


G.start_stream(callback=heard)
for k in range(300):
    room.acquire()
    x = np.full((1, 4), k, np.float32)
    i = tg.InferInput("x", [1, 4], "FP32")
    i.set_data_from_numpy(x)
    G.async_stream_infer("none" if k == 150 else "id_FP32", [i], request_id=str(k))
for k in range(300):
    result, error = answers.get(timeout=20)
    check(
        "stream %d" % k,
        (error is not None) == (k == 150)
        and (error is not None or (result.get_response().id == str(k) and result.as_numpy("y")[0, 0] == k)),
    )
G.stop_stream()
together = queue.Queue()
for k in range(200):
    i = tg.InferInput("x", [1, 4], "FP32")
    i.set_data_from_numpy(np.full((1, 4), k, np.float32))
    G.async_infer(
        "id_FP32", [i], callback=lambda result, error: together.put((result, error)), request_id=str(k)
    )
for k in range(200):
    result, error = together.get(timeout=20)
    check("async: %s" % error, error is None and result.as_numpy("y")[0, 0] == int(result.get_response().id))
handles = [
    H.async_infer(
        "id_FP32", [(lambda i: (i.set_data_from_numpy(a), i)[1])(th.InferInput("x", list(a.shape), "FP32"))]
    )
    for _ in range(20)
]
check("HTTP async", all(same(h.get_result().as_numpy("y"), a) for h in handles))


def flood():  # cancelled calls leave nothing behind
    for k in range(50):
        i = tg.InferInput("x", [3000, 1000], "FP32")
        i.set_data_from_numpy(big)
        G.async_infer("id_FP32", [i], callback=lambda result, error: None).cancel()


def runs_of(name):
    return int(G.get_inference_statistics(name).model_stats[0].execution_count)


flood()
square = tg.InferInput("x", [700, 700], "FP32")
square.set_data_from_numpy(np.zeros((700, 700), np.float32))
G.infer("slow", [square])
begun, before = time.time(), runs_of("slow")
waiting = [G.async_infer("slow", [square], callback=lambda result, error: None) for k in range(40)]
time.sleep(0.15)
for w in waiting:
    w.cancel()
G.infer("slow", [square])
check(
    "cancelled requests leave the queue: %d of 41 ran" % (runs_of("slow") - before),
    runs_of("slow") - before < 20,
)
try:
    ask("grpc", "id_FP32", {"x": big}, ["FP32"], client_timeout=0.0005)
    check("a deadline of 0.5 ms for 24 MB was kept", False)
except InferenceServerException as e:
    check("deadline: %s" % e.status(), "DEADLINE" in str(e.status()))
check("after deadlines", same(ask("grpc", "id_FP32", {"x": a}, ["FP32"]).as_numpy("y"), a))

# ---- kserve's client, which cannot be in one process with Triton's: both bring the same messages ----

r = subprocess.run(
    [sys.executable, os.path.abspath(__file__), "--kserve", http_url, grpc_url],
    capture_output=True,
    text=True,
    timeout=60,
)
if r.returncode == 77:
    print("without kserve's client: " + r.stdout.strip())
else:
    check("kserve: " + r.stdout + r.stderr[-500:], r.returncode == 0)

# ---- the end: what is under way is answered ----

outcome = []
hold = threading.Event()


def keep_asking():
    c = tg.InferenceServerClient(grpc_url)
    i = tg.InferInput("x", list(a.shape), "FP32")
    i.set_data_from_numpy(a)
    while True:
        try:
            outcome.append(same(c.infer("id_FP32", [i]).as_numpy("y"), a))
        except InferenceServerException as e:
            outcome.append(e)
            return


threads = [threading.Thread(target=keep_asking) for _ in range(8)]
for t in threads:
    t.start()
time.sleep(0.5)
server.send_signal(signal.SIGTERM)
code = server.wait(timeout=20)
for t in threads:
    t.join(timeout=20)
ends = [o for o in outcome if o is not True]
check("stopped with %d" % code, code == 0)
check(
    "at the end: %r" % [(str(e.status()), e.message()) for e in ends if e is not False],
    len(outcome) > 50
    and len(ends) == 8
    and all(e is not False and "UNAVAILABLE" in str(e.status()) for e in ends),
)

for line in failed:
    print("FAILED", line)
print("serve_clients: %d checks, %d failed" % (done, len(failed)))
sys.exit(1 if failed else 0)
