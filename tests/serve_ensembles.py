#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Ensembles and sequences of `hone serve`, asked by tritonclient over HTTP and gRPC: graphs as config.pbtxt
# and as hone.json, what is wrong with them, members that are reloaded; state that stays on the server,
# controls, streams, limits:  serve_ensembles.py HONE [MODELS] MODELS: a folder with gtcrn-stream and
# silero-vad, whose states are compared with runs that carry them along. Skipped (77) without the packages:
# pip install 'tritonclient[http,grpc]'
import sys

from onnx_bytes import model

del sys.path[0]  # html.py lies here, and is not the html that others want
import atexit, json, os, queue, shutil, subprocess, tempfile, threading, time

try:
    import numpy as np
    import tritonclient.grpc as tg
    import tritonclient.http as th
    from tritonclient.utils import InferenceServerException
except ImportError as e:
    print("skipped: %s; pip install 'tritonclient[http,grpc]'" % e)
    sys.exit(77)

hone, models = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 and os.path.isdir(sys.argv[2]) else None
failed, done = [], 0
F32, I32, I64, TEXT, BOOL = 1, 6, 7, 8, 9


def check(what, good):
    global done
    done += 1
    if not good:
        failed.append(what)


def raises(what, call, *texts):
    try:
        call()
        check(what + ": nothing was raised", False)
    except InferenceServerException as e:
        check("%s: %s" % (what, e.message()), all(t in (e.message() or "") for t in texts))


folder = tempfile.mkdtemp()
atexit.register(shutil.rmtree, folder, True)
repository = folder + "/models"


def write(name, data=None, version=1, **files):
    os.makedirs("%s/%s/%d" % (repository, name, version), exist_ok=True)
    for file, text in files.items():
        with open("%s/%s/%s" % (repository, name, file.replace("_", ".")), "w") as f:
            f.write(text)
    if data:
        at = "%s/%s/%d/model.onnx" % (repository, name, version)
        with open(at + ".coming", "wb") as f:
            f.write(data)
        os.rename(at + ".coming", at)


def rows(*names):
    return [(n, F32, ["n", 4]) for n in names]


# ---- ensembles ----

double = model(rows("x"), [("Add", ["x", "x"], ["y"])], rows("y"))
triple = model(rows("x"), [("Add", ["x", "x"], ["t"]), ("Add", ["t", "x"], ["y"])], rows("y"))
write("double", double)
write("square", model(rows("x"), [("Mul", ["x", "x"], ["y"])], rows("y")))
write(
    "join", model(rows("a", "b"), [("Sub", ["a", "b"], ["c"]), ("Neg", ["a"], ["minus"])], rows("c", "minus"))
)
write("texts", model([("x", TEXT, ["n"])], [("Identity", ["x"], ["y"])], [("y", TEXT, ["n"])]))
write("ints", model([("x", I32, ["n", 4])], [("Neg", ["x"], ["y"])], [("y", I32, ["n", 4])]))
write("five", model([("x", F32, ["n", 5])], [("Neg", ["x"], ["y"])], [("y", F32, ["n", 5])]))
TRITON = """
name: "both"
platform: "ensemble"
max_batch_size: 8
input [ { name: "IN" data_type: TYPE_FP32 dims: [ 4 ] } ]
output [ { name: "OUT" data_type: TYPE_FP32 dims: [ 4 ] },
         { name: "DOUBLED" data_type: TYPE_FP32 dims: [ 4 ] } ]
ensemble_scheduling {
  step [
    { model_name: "join" model_version: -1
      input_map { key: "a" value: "SQUARED" } input_map { key: "b" value: "DOUBLED" }
      output_map { key: "c" value: "OUT" } },
    { model_name: "double" model_version: -1 input_map { key: "x" value: "IN" }
      output_map { key: "y" value: "DOUBLED" } },
    { model_name: "square" model_version: 1 input_map { key: "x" value: "IN" }
      output_map { key: "y" value: "SQUARED" } }
  ]
}
"""
write("both", config_pbtxt=TRITON)


def step(m, ins, outs, **more):
    return dict({"model": m, "inputs": ins, "outputs": outs}, **more)


def graph(*steps, **more):
    return json.dumps(dict({"ensemble": list(steps)}, **more))


chain = [
    step("double", {"x": "IN" if k == 0 else "t%d" % k}, {"y": "OUT" if k == 4 else "t%d" % (k + 1)})
    for k in range(5)
]
write("chain", hone_json=graph(*chain))
write(
    "nested",
    hone_json=graph(step("both", {"IN": "x"}, {"OUT": "mid"}), step("chain", {"IN": "mid"}, {"OUT": "y"})),
)
write("worded", hone_json=graph(step("texts", {"x": "A"}, {"y": "B"}), step("texts", {"x": "B"}, {"y": "C"})))
WRONG = {  # what is wrong, in its own words
    "circle": (
        graph(
            step("join", {"a": "IN", "b": "later"}, {"c": "sooner"}),
            step("double", {"x": "sooner"}, {"y": "later"}),
            output=[{"name": "later"}],
        ),
        "is a circle: step 1 ('join')",
        "'later'",
    ),
    "itself": (
        graph(step("double", {"x": "same"}, {"y": "same"}), output=[{"name": "same"}]),
        "is a circle: step 1",
        "'same'",
    ),
    "unmade": (
        graph(step("double", {"x": "nowhere"}, {"y": "OUT"}), input=[{"name": "IN"}]),
        "no step makes tensor 'nowhere'",
        "step 1 ('double')",
    ),
    "twice": (
        graph(step("double", {"x": "IN"}, {"y": "t"}), step("square", {"x": "IN"}, {"y": "t"})),
        "step 2 ('square')",
        "'t' is made by step 1",
    ),
    "absent": (graph(step("nobody", {"x": "IN"}, {"y": "OUT"})), "step 1: model 'nobody' is not there"),
    "version": (
        graph(step("double", {"x": "IN"}, {"y": "OUT"}, version=7)),
        "step 1: model 'double' version 7 is not there",
    ),
    "port": (
        graph(step("double", {"z": "IN"}, {"y": "OUT"})),
        "step 1 ('double')",
        "'IN' is mapped to 'z', which is no input",
    ),
    "missing": (graph(step("join", {"a": "IN"}, {"c": "OUT"})), "no tensor is mapped to its input 'b'"),
    "type": (
        graph(step("double", {"x": "IN"}, {"y": "t"}), step("ints", {"x": "t"}, {"y": "OUT"})),
        "step 2 ('ints')",
        "'x' is INT32, and tensor 't' is FP32",
    ),
    "shape": (
        graph(step("double", {"x": "IN"}, {"y": "t"}), step("five", {"x": "t"}, {"y": "OUT"})),
        "step 2 ('five')",
        "dim 1 of 'x' is 5, and of tensor 't' 4",
    ),
    "config": (
        graph(
            step("double", {"x": "IN"}, {"y": "OUT"}),
            output=[{"name": "OUT", "data_type": "TYPE_INT32", "dims": [-1, 4]}],
        ),
        "says that 'OUT' is INT32",
    ),
    "ring_a": (graph(step("ring_b", {"x": "IN"}, {"y": "OUT"})), "ensemble"),
    "ring_b": (graph(step("ring_a", {"x": "IN"}, {"y": "OUT"})), "ensemble"),
    "nothing": (graph(platform="ensemble"), "has 0 steps"),
}
for name, (text, *_) in WRONG.items():
    write(name, hone_json=text)

# ---- models with state ----

ACC = model(
    [("x", F32, [1, 4]), ("sum", F32, [1, 4])],
    [("Add", ["x", "sum"], ["y"]), ("Identity", ["y"], ["sum_out"])],
    [("y", F32, [1, 4]), ("sum_out", F32, [1, 4])],
)
STATE = 'state [ { input_name: "sum" output_name: "sum_out" data_type: TYPE_FP32 dims: [ 1, 4 ] %s } ]'
write(
    "acc",
    ACC,
    config_pbtxt="sequence_batching { max_sequence_idle_microseconds: 30000000 direct { } "
    + STATE % ""
    + " }",
)
write(
    "brief",
    ACC,
    hone_json=json.dumps(
        {
            "sequence_batching": {
                "state": {"sum": "sum_out"},
                "max_sequence_idle_microseconds": 300000,
                "oldest": {"max_candidate_sequences": 3},
            }
        }
    ),
)
write(
    "shown",
    ACC,
    config_pbtxt='output [ { name: "y" data_type: TYPE_FP32 dims: [ 1, 4 ] }, { name: "sum_out" '
                 'data_type: TYPE_FP32 dims: [ 1, 4 ] } ]\n'
    "sequence_batching { "
    + STATE % 'initial_state: { name: "ones" data_type: TYPE_FP32 dims: [ 1, 4 ] data_file: "ones" }'
    + " }",
)
os.makedirs(repository + "/shown/initial_state")
np.ones(4, np.float32).tofile(repository + "/shown/initial_state/ones")
CONTROLS = "".join(
    '{ name: "%s" control [ { kind: CONTROL_SEQUENCE_%s %s } ] }, ' % c
    for c in (
        ("s", "START", "fp32_false_true: [ 0, 1 ]"),
        ("r", "READY", "int32_false_true: [ 5, 7 ]"),
        ("e", "END", "bool_false_true: [ false, true ]"),
        ("c", "CORRID", "data_type: TYPE_INT64"),
    )
)
write(
    "controls",
    model(
        [("x", F32, [1]), ("s", F32, [1]), ("r", I32, [1]), ("e", BOOL, [1]), ("c", I64, [1])],
        [("Identity", [i], [i + "o"]) for i in "xsrec"],
        [("xo", F32, [1]), ("so", F32, [1]), ("ro", I32, [1]), ("eo", BOOL, [1]), ("co", I64, [1])],
    ),
    config_pbtxt="sequence_batching { control_input [ %s ] }" % CONTROLS[:-2],
)
write(
    "named",
    model(
        [("x", F32, [1]), ("c", TEXT, [1])],
        [("Identity", ["x"], ["y"]), ("Identity", ["c"], ["who"])],
        [("y", F32, [1]), ("who", TEXT, [1])],
    ),
    config_pbtxt='sequence_batching { control_input { name: "c" control { kind: '
                 'CONTROL_SEQUENCE_CORRID data_type: TYPE_STRING } } }',
)
write(
    "heard", hone_json=graph(step("double", {"x": "IN"}, {"y": "t"}), step("acc", {"x": "t"}, {"y": "OUT"}))
)
BAD_STATE = {
    "s_input": (ACC, '{"sequence_batching": {"state": {"none": "sum_out"}}}', "'none' is no input"),
    "s_output": (ACC, '{"sequence_batching": {"state": {"sum": "none"}}}', "'none' is no output"),
    "s_twice": (ACC, '{"sequence_batching": {"state": {"sum": "sum_out", "x": "sum_out"}}}', "twice"),
    "s_dims": (
        ACC,
        '{"sequence_batching": {"state": [{"input_name": "sum", "output_name": "sum_out", "dims": [1, 5]}]}}',
        "dims in the config",
    ),
    "s_type": (
        ACC,
        '{"sequence_batching": {"state": [{"input_name": "sum", "output_name": "sum_out", '
        '"data_type": "TYPE_INT8"}]}}',
        "one type",
    ),
    "s_file": (
        ACC,
        '{"sequence_batching": {"state": [{"input_name": "sum", "output_name": "sum_out", '
        '"initial_state": [{"data_file": "../x"}]}]}}',
        "data_file",
    ),
    "s_control": (
        ACC,
        '{"sequence_batching": {"control_input": [{"name": "x", "control": [{"kind": '
        '"CONTROL_SEQUENCE_END", "fp32_false_true": [0, 1]}]}]}}',
        "more than one element",
    ),
    "s_kind": (
        ACC,
        '{"sequence_batching": {"control_input": [{"name": "x", "control": [{"kind": "CONTROL_OF_ALL"}]}]}}',
        "is none that there is",
    ),
    "s_weights": (
        ACC,
        '{"weights": {"1": 1}, "sequence_batching": {"state": {"sum": "sum_out"}}}',
        "sequences and weights",
    ),
}
for name, (data, text, _) in BAD_STATE.items():
    write(name, data, hone_json=text)
STREAMING = {
    "gtcrn": (
        "gtcrn-stream",
        {"conv_cache": "conv_cache_out", "tra_cache": "tra_cache_out", "inter_cache": "inter_cache_out"},
        {},
    ),
    "vad": ("silero-vad", {"state": "stateN"}, {"input": [{"name": "input", "dims": [1, 512]}]}),
}
for name, (path, state, more) in STREAMING.items():
    if models:
        write(
            name,
            open("%s/%s/model.onnx" % (models, path), "rb").read(),
            hone_json=json.dumps(dict(more, sequence_batching={"state": state})),
        )
        write(name + "-plain", open("%s/%s/model.onnx" % (models, path), "rb").read())


def start(*more):
    server = subprocess.Popen(
        [hone, "serve", repository, "--http", "0", "--grpc", "0", "--metrics", "-1", "--json"] + list(more),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE if "--explicit" in more else None,
        text=True,
    )
    atexit.register(server.kill)
    ports = json.loads(server.stdout.readline())
    if ports["grpc"] < 0:
        print("skipped: this server was built without gRPC")
        sys.exit(77)
    return server, "127.0.0.1:%d" % ports["http"], "127.0.0.1:%d" % ports["grpc"]


server, http_url, grpc_url = start()
H, G = th.InferenceServerClient(http_url), tg.InferenceServerClient(grpc_url)
BOTH = ("http", th, H), ("grpc", tg, G)


def inputs(lib, arrays):
    out = []
    for key, x in arrays.items():
        t = {"float32": "FP32", "int32": "INT32", "int64": "INT64", "object": "BYTES"}[str(x.dtype)]
        out.append(lib.InferInput(key, list(x.shape), t))
        out[-1].set_data_from_numpy(x)
    return out


x = np.arange(8, dtype=np.float32).reshape(2, 4) / 4
for kind, lib, c in BOTH:
    j = {} if kind == "http" else {"as_json": True}
    for n in 1, 2, 5:
        y = np.resize(x, (n, 4)).astype(np.float32)
        r = c.infer("both", inputs(lib, {"IN": y}))
        check(
            "%s both %d" % (kind, n),
            np.array_equal(r.as_numpy("OUT"), y * y - 2 * y) and np.array_equal(r.as_numpy("DOUBLED"), 2 * y),
        )
        r = c.infer("nested", inputs(lib, {"x": y}))
        check("%s nested %d" % (kind, n), np.array_equal(r.as_numpy("y"), 32 * (y * y - 2 * y)))
    words = np.array([b"one", b"", b"t\xc3\xbcr"], dtype=np.object_)
    r = c.infer("worded", inputs(lib, {"A": words}))
    check(
        kind + " texts", [w if isinstance(w, bytes) else w.encode() for w in r.as_numpy("C")] == list(words)
    )
    r = c.infer("both", inputs(lib, {"IN": x}), outputs=[lib.InferRequestedOutput("DOUBLED")])
    check(
        kind + " one of its outputs",
        np.array_equal(r.as_numpy("DOUBLED"), 2 * x) and r.as_numpy("OUT") is None,
    )
    m = c.get_model_metadata("both", **j)
    check(
        kind + " metadata: %r" % m,
        m["platform"] == "ensemble"
        and [int(d) for d in m["inputs"][0]["shape"]] == [-1, 4]
        and [o["name"] for o in m["outputs"]] == ["OUT", "DOUBLED"],
    )
    m = c.get_model_config("both", **j)
    m = m.get("config", m)
    steps = m["ensemble_scheduling"]["step"]
    check(
        kind + " config: %r" % m,
        m["platform"] == "ensemble"
        and m["max_batch_size"] == 8
        and [int(d) for d in m["input"][0]["dims"]] == [4]
        and [s["model_name"] for s in steps] == ["join", "double", "square"]
        and steps[0]["input_map"] == {"a": "SQUARED", "b": "DOUBLED"},
    )
    before = [c.get_inference_statistics(n, **j)["model_stats"][0] for n in ("both", "square")]
    for _ in range(4):
        c.infer("both", inputs(lib, {"IN": x}))
    after = [c.get_inference_statistics(n, **j)["model_stats"][0] for n in ("both", "square")]
    for b, a in zip(before, after):
        grown = int(a["inference_stats"]["success"]["count"]) - int(b["inference_stats"]["success"]["count"])
        check(
            "%s statistics of %s: %d" % (kind, a["name"], grown),
            grown == 4 and int(a["inference_count"]) - int(b["inference_count"]) in (4, 8),
        )
    raises(kind + " an input too few", lambda: c.infer("both", inputs(lib, {})), "IN")
    raises(kind + " a wrong type", lambda: c.infer("both", inputs(lib, {"IN": x.astype(np.int32)})), "INT32")
    raises(
        kind + " a wrong shape",
        lambda: c.infer("both", inputs(lib, {"IN": np.zeros((2, 5), np.float32)})),
        "dim 1 is 5",
    )
    raises(
        kind + " a sequence",
        lambda: c.infer("both", inputs(lib, {"IN": x}), sequence_id=3),
        "takes no sequences",
    )
    index = c.get_model_repository_index(**j)
    index = {i["name"]: i for i in (index.get("models", []) if kind == "grpc" else index)}
    for name, (_, *texts) in WRONG.items():
        i = index[name]
        check(
            "%s %s: %r" % (kind, name, i),
            i["state"] == "UNAVAILABLE" and all(t in i["reason"] for t in texts) and "\n" not in i["reason"],
        )
    check("a ring is named", any("contains itself" in index[n]["reason"] for n in ("ring_a", "ring_b")))
    for name, (_, _, text) in BAD_STATE.items():
        check(
            "%s %s: %r" % (kind, name, index[name]),
            index[name]["state"] == "UNAVAILABLE" and text in index[name]["reason"],
        )

# members come, go and change while the ensemble is asked

wrong, asked, stop = [], [0], threading.Event()


def keep_asking():
    c = tg.InferenceServerClient(grpc_url)
    while not stop.is_set():
        y = c.infer("chain", inputs(tg, {"IN": x})).as_numpy("OUT")
        asked[0] += 1
        if not np.array_equal(y, 32 * x) and not np.array_equal(y, 243 * x):
            wrong.append(y)  # members of one generation, never of two


threads = [threading.Thread(target=keep_asking) for _ in range(4)]
for t in threads:
    t.start()
for k in range(2, 8):
    write("double", triple if k % 2 == 0 else double, version=k)
    H.load_model("double")
    want = 243 if k % 2 == 0 else 32
    check(
        "reloaded %d" % k, np.array_equal(H.infer("chain", inputs(th, {"IN": x})).as_numpy("OUT"), want * x)
    )
stop.set()
for t in threads:
    t.join()
check("asked %d times while members changed, wrong: %r" % (asked[0], wrong[:1]), asked[0] > 20 and not wrong)
H.unload_model("square")
check(
    "without a member",
    not H.is_model_ready("both") and not H.is_model_ready("nested") and H.is_model_ready("chain"),
)
raises("without a member", lambda: H.infer("both", inputs(th, {"IN": x})), "square")
G.load_model("square")
check(
    "the member is back",
    H.is_model_ready("both")
    and np.array_equal(H.infer("nested", inputs(th, {"x": x})).as_numpy("y"), 32 * (x * x - 2 * x)),
)
H.unload_model("both", unload_dependents=True)
check(
    "with its members",
    not H.is_model_ready("square") and not H.is_model_ready("join") and H.is_model_ready("double"),
)
for n in "square", "join", "both":
    G.load_model(n)
check("all back", H.is_model_ready("both") and H.is_model_ready("nested"))
raises("load of a wrong one", lambda: H.load_model("circle"), "is a circle")
shutil.rmtree(repository + "/circle")
write("late", hone_json=graph(step("square", {"x": "IN"}, {"y": "OUT"})))  # by watching
for _ in range(100):
    if H.is_model_ready("late"):
        break
    time.sleep(0.05)
check(
    "an ensemble came by itself",
    np.array_equal(H.infer("late", inputs(th, {"IN": x})).as_numpy("OUT"), x * x),
)

# ---- sequences ----

ones = np.ones((1, 4), np.float32)


def say(lib, c, name, value, seq, first=False, last=False, key="x"):
    return c.infer(name, inputs(lib, {key: value}), sequence_id=seq, sequence_start=first, sequence_end=last)


for kind, lib, c in BOTH:
    j = {} if kind == "http" else {"as_json": True}
    m = c.get_model_metadata("acc", **j)
    check(
        kind + " state is not shown",
        [i["name"] for i in m["inputs"]] == ["x"] and [o["name"] for o in m["outputs"]] == ["y"],
    )
    m = c.get_model_config("acc", **j)
    m = m.get("config", m)
    check(
        kind + " config %r" % m,
        m["sequence_batching"]["state"][0]["input_name"] == "sum"
        and int(m["sequence_batching"]["max_sequence_idle_microseconds"]) == 30000000,
    )
    for one, two in (7, 8), ("seven", "eight"), (2**63 - 1, "7"):
        for k in range(1, 6):
            a = say(lib, c, "acc", ones, one, k == 1, k == 5).as_numpy("y")
            b = say(lib, c, "acc", 10 * ones, two, k == 1, k == 5).as_numpy("y")
            check(
                "%s %r %d: %r %r" % (kind, one, k, a, b),
                np.array_equal(a, k * ones) and np.array_equal(b, 10 * k * ones),
            )
        raises(kind + " after the end", lambda: say(lib, c, "acc", ones, one), "must specify the START flag")
    raises(
        kind + " not begun",
        lambda: say(lib, c, "acc", ones, 99),
        "sequence 99 to model 'acc' must specify the START flag",
    )
    raises(kind + " not begun, a text", lambda: say(lib, c, "acc", ones, "nobody", last=True), "'nobody'")
    raises(
        kind + " without an id",
        lambda: c.infer("acc", inputs(lib, {"x": ones})),
        "must specify a non-zero or non-empty correlation ID",
    )
    raises(kind + " of a model without", lambda: say(lib, c, "square", x, 3, True), "takes no sequences")
    check(kind + " at once", np.array_equal(say(lib, c, "acc", ones, 5, True, True).as_numpy("y"), ones))
    raises(kind + " it was all", lambda: say(lib, c, "acc", ones, 5), "START")
    say(lib, c, "acc", 3 * ones, 6, True)
    check(kind + " begun anew", np.array_equal(say(lib, c, "acc", ones, 6, True).as_numpy("y"), ones))
    raises(
        kind + " a wrong shape goes by", lambda: say(lib, c, "acc", np.ones((1, 5), np.float32), 6), "dim 1"
    )
    check(
        kind + " and the sequence goes on",
        np.array_equal(say(lib, c, "acc", ones, 6, last=True).as_numpy("y"), 2 * ones),
    )
    r = say(lib, c, "shown", ones, 1, True)
    r2 = say(lib, c, "shown", ones, 1, False, True)
    check(
        kind + " a state from a file, shown",
        np.array_equal(r.as_numpy("sum_out"), 2 * ones)
        and np.array_equal(r2.as_numpy("sum_out"), 3 * ones)
        and np.array_equal(r.as_numpy("y"), 2 * ones),
    )
    for k in range(3):
        r = say(lib, c, "controls", np.zeros(1, np.float32), 41, k == 0, k == 2)
        got = [r.as_numpy(o + "o")[0] for o in "srec"]
        check("%s controls %r" % (kind, got), got == [k == 0, 7, k == 2, 41])
    r = say(lib, c, "named", np.zeros(1, np.float32), "who am i", True, True)
    check(kind + " a name as a text", r.as_numpy("who")[0] in (b"who am i", "who am i"))
    r = say(lib, c, "named", np.zeros(1, np.float32), 12, True, True)
    check(kind + " a number as a text", r.as_numpy("who")[0] in (b"12", "12"))
    for k in range(1, 4):
        y = say(lib, c, "heard", ones, 17, k == 1, k == 3, key="IN").as_numpy("OUT")
        check(kind + " within an ensemble", np.array_equal(y, 2 * k * ones))
    raises(
        kind + " an ensemble's member wants an id",
        lambda: c.infer("heard", inputs(lib, {"IN": ones})),
        "step 2 ('acc')",
        "correlation ID",
    )
    for s in 1, 2, 3:
        say(lib, c, "brief", ones, s, True)
    raises(kind + " too many", lambda: say(lib, c, "brief", ones, 4, True), "3 sequences under way")
    check(kind + " those go on", np.array_equal(say(lib, c, "brief", ones, 2).as_numpy("y"), 2 * ones))
    time.sleep(0.5)
    raises(kind + " idle for too long", lambda: say(lib, c, "brief", ones, 2), "START")
    check(kind + " room again", np.array_equal(say(lib, c, "brief", ones, 4, True, True).as_numpy("y"), ones))

# a stream: many requests of many sequences under way at once, answered as they came

answers, room = queue.Queue(), threading.Semaphore(200)  # a model's queue has 256


def heard(result, error):
    answers.put((result, error))
    room.release()


G.start_stream(callback=heard)
for k in range(100):
    for s in range(1, 9):
        room.acquire()
        G.async_stream_infer(
            "acc",
            inputs(tg, {"x": s * ones}),
            request_id="%d %d" % (s, k),
            sequence_id=s if s % 2 else "s%d" % s,
            sequence_start=k == 0,
            sequence_end=k == 99,
        )
bad = 0
for _ in range(800):
    result, error = answers.get(timeout=20)
    if error:
        bad += 1
        continue
    s, k = map(int, result.get_response().id.split())
    bad += not np.array_equal(result.as_numpy("y"), s * (k + 1) * ones)
check("stream of sequences: %d wrong" % bad, bad == 0)
G.stop_stream()


def one_client(number, out):
    c = th.InferenceServerClient(http_url) if number % 2 else tg.InferenceServerClient(grpc_url)
    lib = th if number % 2 else tg
    for turn in range(5):
        for k in range(20):
            y = say(lib, c, "acc", number * ones, 1000 + number, k == 0, k == 19).as_numpy("y")
            if not np.array_equal(y, number * (k + 1) * ones):
                out.append((number, k, y))


out = []
threads = [threading.Thread(target=one_client, args=(n, out)) for n in range(1, 9)]
for t in threads:
    t.start()
for t in threads:
    t.join()
check("eight clients: %r" % out[:1], not out)
if models:  # states kept here, against states that the client carries
    rng = np.random.default_rng(3)
    for kind, lib, c in BOTH:
        state = {
            "conv_cache": np.zeros((2, 1, 16, 16, 33), np.float32),
            "tra_cache": np.zeros((2, 3, 1, 1, 16), np.float32),
            "inter_cache": np.zeros((2, 1, 33, 16), np.float32),
        }
        for k in range(8):
            mix = rng.standard_normal((1, 257, 1, 2)).astype(np.float32)
            kept = say(lib, c, "gtcrn", mix, 3, k == 0, k == 7, key="mix")
            carried = c.infer("gtcrn-plain", inputs(lib, dict(state, mix=mix)))
            state = {n: carried.as_numpy(n + "_out") for n in state}
            check(
                "%s gtcrn %d" % (kind, k),
                np.array_equal(kept.as_numpy("enh"), carried.as_numpy("enh"))
                and kept.as_numpy("tra_cache_out") is None,
            )
        state = np.zeros((2, 1, 128), np.float32)
        for k in range(8):
            more = {
                "input": rng.standard_normal((1, 512)).astype(np.float32),
                "sr": np.array(16000, np.int64),
            }
            kept = c.infer(
                "vad", inputs(lib, more), sequence_id="v", sequence_start=k == 0, sequence_end=k == 7
            )
            carried = c.infer("vad-plain", inputs(lib, dict(more, state=state)))
            state = carried.as_numpy("stateN")
            check(
                "%s silero %d" % (kind, k),
                np.array_equal(kept.as_numpy("output"), carried.as_numpy("output")),
            )
server.terminate()
check("stopped with %d" % server.wait(timeout=20), server.returncode == 0)

# ---- explicit loading: an ensemble brings its members ----

server, http_url, grpc_url = start("--explicit")
H = th.InferenceServerClient(http_url)
check("nothing is loaded", not H.is_model_ready("both") and not H.is_model_ready("double"))
H.load_model("nested")
check(
    "members come along",
    H.is_model_ready("chain")
    and H.is_model_ready("square")
    and np.array_equal(H.infer("nested", inputs(th, {"x": x})).as_numpy("y").shape, (2, 4)),
)
H.unload_model("nested", unload_dependents=True)
check("and go along", not H.is_model_ready("chain") and not H.is_model_ready("square"))
server.terminate()
server.wait(timeout=20)

for line in failed:
    print("FAILED", line)
print("serve_ensembles: %d checks, %d failed" % (done, len(failed)))
sys.exit(1 if failed else 0)
