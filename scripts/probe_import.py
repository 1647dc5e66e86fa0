#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What importers forgive, beside ONNX Runtime:  probe_import.py HONE [WORD…]     (needs onnx, onnxruntime and
numpy; skipped where they are not)

Some eighty small models, each with something that files have and should not have, or may have and rarely
do. What ONNX Runtime runs must run here with the same answer. What it refuses is refused here, or runs
and `hone check` says what was forgiven; PLAIN names the few that run without a word, with the reason."""
import json, os, subprocess, sys, tempfile

try:
    import numpy as np, onnx, onnxruntime as ort
    from onnx import TensorProto as T, helper as h, numpy_helper as nh
except ImportError as e:
    print(f"what importers forgive: skipped ({e})")
    sys.exit(0)
ort.set_default_logger_severity(4)

PLAIN = {
    "input dim 0": "a dim of 0 stands for any: some exporters write it so",
    "output is a dead end": "an output nobody makes is refused by both; one of another scope is not",
    "unused function": "what is not called is not looked at",
    "input without a type": "the type is found by inference, or at the run",
    "subgraph shadows": "names inside a body are its own",
    "value_info of a wrong type": "value_info is not read: inference finds types",
    "value_info of a wrong shape": "value_info is not read: inference finds shapes",
    "output of a wrong shape": "stated shapes of outputs are not believed: inference finds them",
    "output of a wrong type": "stated types of outputs are not believed: inference finds them",
    "body without outputs types": "types inside bodies are found by inference",
    "no opset, IR 1": "before version 3 of the format there was one opset only",
    "opset 1, consumed_inputs": "right; ONNX Runtime has no kernel of that version",
    "two nodes of one name": "node names are for messages",
    "same initializer as input, other shape": "the initializer's own shape counts",
}
x = np.arange(6, dtype=np.float32).reshape(2, 3) - 2
probes = {}


def probe(name):
    def add(make):
        probes[name] = make
        return make
    return add


def fi(name, shape=(2, 3), t=T.FLOAT): return h.make_tensor_value_info(name, t, shape)
def node(*a, **k): return h.make_node(*a, **k)
def const(name, v): return nh.from_array(np.asarray(v), name)


def model(nodes, inputs=("x",), outputs=("y",), init=(), opset=18, ir=8, functions=(), opsets=None,
          values=()):
    g = h.make_graph(list(nodes), "g", [i if not isinstance(i, str) else fi(i) for i in inputs],
                     [o if not isinstance(o, str) else h.make_empty_tensor_value_info(o) for o in outputs],
                     list(init), value_info=list(values))
    m = h.make_model(g, opset_imports=opsets if opsets is not None else [h.make_opsetid("", opset)],
                     functions=list(functions))
    m.ir_version = ir
    return m


def typed(m):  # outputs must have types for ONNX Runtime
    for o in m.graph.output:
        if not o.type.WhichOneof("value"): o.type.tensor_type.elem_type = T.FLOAT
    return m


# ---- order
def chain(order):
    nodes = [node("Relu", ["x"], ["a"], name="n0"), node("Neg", ["a"], ["b"], name="n1"),
             node("Exp", ["b"], ["c"], name="n2"), node("Add", ["c", "a"], ["y"], name="n3")]
    return model([nodes[k] for k in order])
for k, order in enumerate([(3, 2, 1, 0), (1, 0, 3, 2), (2, 0, 1, 3), (0, 3, 1, 2)]):
    probes[f"nodes in another order {k}"] = lambda order=order: chain(order)
probes["cycle"] = lambda: model(
    [node("Add", ["x", "b"], ["a"], name="first"), node("Neg", ["a"], ["b"], name="second"),
     node("Relu", ["b"], ["y"])])
probes["node that reads itself"] = lambda: model([node("Add", ["x", "y"], ["y"], name="own")])
probes["reads what nothing makes"] = lambda: model([node("Add", ["x", "z"], ["y"])])


def branch(swap, outer_late=False, name="b"):
    then = [node("Relu", ["a"], ["t0"]), node("Neg", ["t0"], ["t"])]
    g1 = h.make_graph(then[::-1] if swap else then, "then", [], [fi("t", None)])
    g2 = h.make_graph([node("Identity", ["a"], ["e"])], "else", [], [fi("e", None)])
    nodes = [node("Exp", ["x"], ["a"]), node("If", ["c"], ["y"], then_branch=g1, else_branch=g2)]
    return model(nodes[::-1] if outer_late else nodes, init=[const("c", np.array(True))])
probes["body in another order"] = lambda: branch(True)
probes["capture of what stands later"] = lambda: branch(False, True)
probes["both in another order"] = lambda: branch(True, True)
@probe("loop reads what stands later")
def _():
    body = h.make_graph([node("Add", ["s", "a"], ["so"]), node("Identity", ["ci"], ["co"])], "body",
                        [fi("i", [], T.INT64), fi("ci", [], T.BOOL), fi("s", None)],
                        [fi("co", [], T.BOOL), fi("so", None)])
    return model([node("Loop", ["n", "", "x"], ["y"], body=body), node("Exp", ["x"], ["a"])],
                 init=[const("n", np.array(3, np.int64))])


def function(nodes, inputs=("a",), outputs=("b",), name="F", domain="my", imports=None, attributes=()):
    return h.make_function(domain, name, list(inputs), list(outputs), nodes, imports if imports is not None
                           else [h.make_opsetid("", 18)], list(attributes))
MY = [h.make_opsetid("", 18), h.make_opsetid("my", 1)]
probes["function in another order"] = lambda: model([node("F", ["x"], ["y"], domain="my")], opsets=MY,
    functions=[function([node("Neg", ["t"], ["b"]), node("Relu", ["a"], ["t"])])])
probes["function reads its output early"] = lambda: model([node("F", ["x"], ["y", "z"], domain="my")],
    outputs=("y", "z"), opsets=MY,
    functions=[function([node("Neg", ["b"], ["c"]), node("Relu", ["a"], ["b"])], outputs=("b", "c"))])
probes["function with an unused input"] = lambda: model([node("F", ["x", "x"], ["y"], domain="my")],
    opsets=MY, functions=[function([node("Relu", ["a"], ["b"])], inputs=("a", "u"))])
probes["function, input left out"] = lambda: model([node("F", ["x"], ["y"], domain="my")], opsets=MY,
    functions=[function([node("Relu", ["a"], ["b"])], inputs=("a", "u"))])
probes["unused function"] = lambda: model([node("Relu", ["x"], ["y"])], opsets=MY,
    functions=[function([node("Nothing", ["a"], ["b"])])])
probes["function without opsets"] = lambda: model([node("F", ["x"], ["y"], domain="my")], opsets=MY,
    functions=[function([node("Relu", ["a"], ["b"])], imports=[])])
probes["function of a domain not imported"] = lambda: model([node("F", ["x"], ["y"], domain="my")],
    opsets=[h.make_opsetid("", 18)], functions=[function([node("Relu", ["a"], ["b"])])])

# ---- initializers and inputs
w = const("w", np.array([1, 2, 3], np.float32))
add_w = [node("Add", ["x", "w"], ["y"])]
probes["initializer is an input, IR 3"] = lambda: model(add_w, ["x", fi("w", [3])], init=[w], ir=3, opset=8)
probes["initializer is an input, IR 8"] = lambda: model(add_w, ["x", fi("w", [3])], init=[w])
probes["initializer no input, IR 3"] = lambda: model(add_w, init=[w], ir=3, opset=8)
probes["same initializer as input, other shape"] = lambda: model(add_w, ["x", fi("w", [5])], init=[w])
probes["initializer twice"] = lambda: model(add_w, init=[w, const("w", np.array([4, 5, 6], np.float32))])
probes["initializer without a name"] = lambda: model(add_w, init=[w, const("", np.zeros(2, np.float32))])
probes["initializer and node output"] = lambda: model(
    [node("Neg", ["x"], ["w"]), node("Add", ["x", "w"], ["y"])], init=[w])
probes["input twice"] = lambda: model([node("Relu", ["x"], ["y"])], ["x", "x"])
probes["input without a name"] = lambda: model([node("Relu", ["x"], ["y"])], ["x", fi("")])
probes["unused input"] = lambda: model([node("Relu", ["x"], ["y"])], ["x", "u"])
probes["unused initializer"] = lambda: model([node("Relu", ["x"], ["y"])], init=[w])
probes["output is an input"] = lambda: model([node("Relu", ["x"], ["y"])], outputs=("y", "x"))
probes["output is an initializer"] = lambda: model(add_w, outputs=("y", "w"), init=[w])
probes["output is an input, no node"] = lambda: model([], outputs=("x",))
probes["output twice"] = lambda: model([node("Relu", ["x"], ["y"])], outputs=("y", "y"))
probes["output is a dead end"] = lambda: model([node("Relu", ["x"], ["y"])], outputs=("y", "z"))
probes["no output"] = lambda: model([node("Relu", ["x"], ["y"])], outputs=())
probes["two nodes make one name"] = lambda: model([node("Relu", ["x"], ["y"]), node("Neg", ["x"], ["y"])])
probes["sparse initializer"] = lambda: sparse()


def sparse():
    m = model(add_w)
    m.graph.sparse_initializer.append(
        h.make_sparse_tensor(const("w", np.array([5], np.float32)), const("i", np.array([1], np.int64)), [3]))
    return m


# ---- names
probes["nodes without names"] = lambda: model([node("Relu", ["x"], ["a"]), node("Neg", ["a"], ["y"])])
probes["two nodes of one name"] = lambda: model(
    [node("Relu", ["x"], ["a"], name="n"), node("Neg", ["a"], ["y"], name="n")])
probes["trailing empty inputs"] = lambda: model([node("Clip", ["x", "", ""], ["y"])])
probes["trailing empty outputs"] = lambda: model([node("Dropout", ["x"], ["y", ""])])
probes["empty input in the middle"] = lambda: model([node("Clip", ["x", "", "m"], ["y"])],
    init=[const("m", np.array(1, np.float32))])
probes["names with blanks and slashes"] = lambda: model(
    [node("Relu", ["x"], ["a b/c:0"]), node("Neg", ["a b/c:0"], ["y"])])
probes["a node without outputs"] = lambda: model([node("Relu", ["x"], []), node("Neg", ["x"], ["y"])])
probes["subgraph shadows"] = lambda: model(
    [node("Relu", ["x"], ["a"]), node("If", ["c"], ["y"],
                                      then_branch=h.make_graph([node("Neg", ["x"], ["a"])], "t", [],
                                          [fi("a", None)]), else_branch=h.make_graph(
                                              [node("Exp", ["x"], ["e"])], "e", [], [fi("e", None)])),
                                              node("Exp", ["a"], ["z"])], outputs=("y", "z"),
                                              init=[const("c", np.array(True))])

# ---- types and shapes that are wrong or absent
probes["value_info of a wrong shape"] = lambda: model([node("Relu", ["x"], ["a"]), node("Neg", ["a"], ["y"])],
    values=[fi("a", (7, 7))])
probes["value_info of a wrong type"] = lambda: model([node("Relu", ["x"], ["a"]), node("Neg", ["a"], ["y"])],
    values=[fi("a", (2, 3), T.INT64)])
probes["value_info of nothing"] = lambda: model([node("Relu", ["x"], ["y"])], values=[fi("nothing")])
probes["output of a wrong shape"] = lambda: model([node("Relu", ["x"], ["y"])], outputs=(fi("y", (5, 5)),))
probes["output of another rank"] = lambda: model([node("Relu", ["x"], ["y"])], outputs=(fi("y", (5,)),))
probes["output of a wrong type"] = lambda: model([node("Relu", ["x"], ["y"])],
    outputs=(fi("y", (2, 3), T.INT64),))
probes["output without a type"] = lambda: model([node("Relu", ["x"], ["y"])])
probes["input without a shape"] = lambda: model([node("Relu", ["x"], ["y"])], [fi("x", None)])
probes["input without a type"] = lambda: model([node("Relu", ["x"], ["y"])], [onnx.ValueInfoProto(name="x")])
probes["input dims -1"] = lambda: model([node("Relu", ["x"], ["y"])], [fi("x", (-1, 3))])
probes["input dims -1 and free"] = lambda: model([node("Relu", ["x"], ["y"])], [fi("x", (-1, "n"))])
probes["input dim 0"] = lambda: model([node("Relu", ["x"], ["y"])], [fi("x", (0, 3))])
probes["input dim of an empty name"] = lambda: model([node("Relu", ["x"], ["y"])], [fi("x", ("", 3))])
probes["Reshape 0 and -1"] = lambda: model([node("Reshape", ["x", "s"], ["y"])],
    init=[const("s", np.array([0, 1, -1], np.int64))])

# ---- opsets and versions
probes["no opset, IR 8"] = lambda: model([node("Relu", ["x"], ["y"])], opsets=[])
probes["no opset, IR 3"] = lambda: model([node("Relu", ["x"], ["y"])], opsets=[], ir=3)
probes["no opset, IR 1"] = lambda: model([node("Relu", ["x"], ["y"])], opsets=[], ir=1)
probes["opset too new"] = lambda: model([node("Relu", ["x"], ["y"])], opset=99)
probes["opset 0"] = lambda: model([node("Relu", ["x"], ["y"])], opset=0)
probes["opset -1"] = lambda: model([node("Relu", ["x"], ["y"])], opset=-1)
probes["opset twice, the same"] = lambda: model([node("Relu", ["x"], ["y"])],
    opsets=[h.make_opsetid("", 18), h.make_opsetid("", 18)])
probes["opset twice, 12 then 18"] = lambda: model([node("ReduceSum", ["x", "ax"], ["y"], keepdims=0)],
    init=[const("ax", np.array([1], np.int64))], opsets=[h.make_opsetid("", 12), h.make_opsetid("", 18)])
probes["opset twice, 18 then 12"] = lambda: model([node("ReduceSum", ["x", "ax"], ["y"], keepdims=0)],
    init=[const("ax", np.array([1], np.int64))], opsets=[h.make_opsetid("", 18), h.make_opsetid("", 12)])
probes["domain ai.onnx written out"] = lambda: model([node("Relu", ["x"], ["y"], domain="ai.onnx")],
    opsets=[h.make_opsetid("ai.onnx", 18)])
probes["domain ai.onnx, node without"] = lambda: model([node("Relu", ["x"], ["y"])],
    opsets=[h.make_opsetid("ai.onnx", 18)])
probes["domain not imported"] = lambda: model(
    [node("Binarizer", ["x"], ["y"], domain="ai.onnx.ml", threshold=0.5)])
probes["domain imported and unused"] = lambda: model([node("Relu", ["x"], ["y"])],
    opsets=[h.make_opsetid("", 18), h.make_opsetid("com.nobody", 7)])
probes["ir_version absent"] = lambda: without_ir()
for ir in (1, 2, 3, 4, 6, 10,
           11): probes[f"ir_version {ir}"] = lambda ir=ir: model([node("Relu", ["x"], ["y"])], ir=ir, opset=8
               if ir < 4 else 9)
probes["ir_version 99"] = lambda: model([node("Relu", ["x"], ["y"])], ir=99)
probes["opset 1, consumed_inputs"] = lambda: model([node("Relu", ["x"], ["y"], consumed_inputs=[0])], opset=1,
    ir=3)


def without_ir():
    m = model([node("Relu", ["x"], ["y"])])
    m.ClearField("ir_version")
    return m


# ---- Constant, attributes, tensors
def constant(**k): return lambda: model([node("Constant", [], ["c"], **k), node("Add", ["x", "c"], ["y"])])
probes["Constant value"] = constant(value=const("", np.array([1, 2, 3], np.float32)))
probes["Constant value_float"] = constant(value_float=2.5)
probes["Constant value_floats"] = constant(value_floats=[1.0, 2.0, 3.0])
def integers(**k): return lambda: model(
    [node("Constant", [], ["c"], **k), node("Cast", ["c"], ["d"], to=1), node("Add", ["x", "d"], ["y"])])
probes["Constant value_int"] = integers(value_int=7)
probes["Constant value_ints"] = integers(value_ints=[1, 2, 3])
def strings(**k): return lambda: model(
    [node("Constant", [], ["c"], **k), node("Cast", ["c"], ["d"], to=1), node("Add", ["x", "d"], ["y"])])
probes["Constant value_string"] = strings(value_string="2.5")
probes["Constant value_strings"] = strings(value_strings=["1", "2", "3"])
probes["Constant sparse_value"] = lambda: model(
    [node("Constant", [], ["c"], sparse_value=h.make_sparse_tensor(const("v", np.array([5], np.float32)),
        const("i", np.array([1], np.int64)), [3])), node("Add", ["x", "c"], ["y"])])
probes["Constant without a value"] = lambda: model(
    [node("Constant", [], ["c"]), node("Add", ["x", "c"], ["y"])])
probes["Constant, two values"] = constant(value_float=2.5, value_int=3)


def untyped(**k):
    def make():
        m = model([node("LeakyRelu", ["x"], ["a"], alpha=0.25), node("Transpose", ["a"], ["y"], perm=[1, 0])])
        for n in m.graph.node:
            for a in n.attribute: a.ClearField("type")
        return m
    return make
probes["attributes without a type"] = untyped()
probes["attribute nobody knows"] = lambda: model([node("Relu", ["x"], ["y"], colour="red")])
probes["attribute twice"] = lambda: twice()


def twice():
    m = model([node("LeakyRelu", ["x"], ["y"], alpha=0.25)])
    m.graph.node[0].attribute.append(h.make_attribute("alpha", 0.5))
    return m


def tensor(edit):
    def make():
        m = model(add_w, init=[onnx.TensorProto(name="w", data_type=1, dims=[3])])
        edit(m.graph.initializer[0])
        return m
    return make
probes["raw data"] = tensor(lambda t: setattr(t, "raw_data", np.array([1, 2, 3], np.float32).tobytes()))
probes["raw data too short"] = tensor(lambda t: setattr(t, "raw_data", b"\0" * 8))
probes["raw data too long"] = tensor(lambda t: setattr(t, "raw_data", b"\0" * 16))
probes["float data"] = tensor(lambda t: t.float_data.extend([1, 2, 3]))
probes["float data too short"] = tensor(lambda t: t.float_data.extend([1, 2]))
probes["float data too long"] = tensor(lambda t: t.float_data.extend([1, 2, 3, 4]))
probes["no data"] = tensor(lambda t: None)
probes["both kinds of data"] = tensor(
    lambda t: (t.float_data.extend([1, 2, 3]),
               setattr(t, "raw_data", np.array([1, 2, 3], np.float32).tobytes())))
probes["negative dim of an initializer"] = tensor(
    lambda t: (t.dims.__setitem__(0, -3), t.float_data.extend([1, 2, 3])))
probes["wrong field of data"] = tensor(lambda t: t.double_data.extend([1, 2, 3]))


def external(where, **k):
    def make(folder):
        os.makedirs(os.path.join(folder, os.path.dirname(where)), exist_ok=True)
        np.array([9, 9, 1, 2, 3, 9], np.float32).tofile(os.path.join(folder, where))
        t = onnx.TensorProto(name="w", data_type=1, dims=[3], data_location=1)
        for key, value in dict(location=where, **k).items(): t.external_data.add(key=key, value=str(value))
        return model(add_w, init=[t])
    make.folder = True
    return make
probes["external data"] = external("w.bin", offset=8, length=12)
probes["external data in a folder"] = external("sub/deep/w.bin", offset=8, length=12)
probes["external data, no length"] = external("w.bin", offset=8)
probes["external data, a checksum"] = external("w.bin", offset=8, length=12, checksum="abc")
probes["external data too short"] = external("w.bin", offset=20, length=12)
probes["external data, wrong length"] = external("w.bin", offset=8, length=16)


# ---- running
def by_ort(path, feed):
    try:
        s = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
        return s.run(None, {i.name: feed for i in s.get_inputs()}), None
    except Exception as e:
        return None, str(e).replace("\n", " ")


def by_hone(hone, path, folder, feed):
    np.save(f"{folder}/x.npy", feed)
    check = subprocess.run([hone, "check", path, "--json"], capture_output=True, text=True)
    try: report = json.loads(check.stdout)
    except ValueError:
        return None, f"hone check: exit {check.returncode}, no JSON: {check.stderr.strip()[:200]}", []
    names = []
    if report["ok"]:
        said = subprocess.run([hone, "inspect", path, "--json"], capture_output=True, text=True)
        names = [i["name"] for i in json.loads(said.stdout)["summary"]["inputs"]]
    words = [w for n in names for w in ("--input", f"{n}={folder}/x.npy")]
    run = subprocess.run([hone, "run", path, "--save", f"{folder}/out", *words], capture_output=True,
                         text=True)
    if run.returncode: return None, (run.stderr.strip() or f"exit {run.returncode}"), report.get("forgiven",
        [])
    outs = sorted(os.listdir(f"{folder}/out"))
    return [np.load(f"{folder}/out/{o}") for o in outs], None, report.get("forgiven", [])


def main():
    hone, words = os.path.abspath(sys.argv[1]), sys.argv[2:]
    wrong = both = refused = forgiven = 0
    for name, make in probes.items():
        if words and not any(w in name for w in words): continue
        with tempfile.TemporaryDirectory() as folder:
            m = make(folder) if getattr(make, "folder", False) else make()
            path = f"{folder}/model.onnx"
            typed(m)
            if name == "output without a type": m.graph.output[0].ClearField("type")
            with open(path, "wb") as f: f.write(m.SerializeToString())
            want, no = by_ort(path, x)
            got, why, notes = by_hone(hone, path, folder, x)
        verdict = "ok"
        if want is not None and got is None: verdict = "FAILS HERE"
        elif want is not None and (len(want) != len(got)
                                   or any(a.shape != b.shape or not np.allclose(a, b, 1e-5, 1e-6,
                                       equal_nan=True) for a, b in zip(want, got))): verdict = "DIFFERS"
        elif (want is None and got is not None and not notes
              and name not in PLAIN): verdict = "RUNS WITHOUT A WORD"
        elif why and ("bug of Hone" in why or "exit -" in why): verdict = "BUG"
        wrong += verdict != "ok"
        both += want is not None and verdict == "ok"
        refused += want is None and got is None
        forgiven += want is None and got is not None
        if verdict != "ok" or words:
            print(
                f"{verdict}: {name}\n    ONNX Runtime: {'runs' if want is not None else no[:300]}\n    Hone: "
                f"{'runs' if got is not None else why[:300]}"
                f"{'; forgave ' + '; '.join(notes) if notes else ''}")
    print(
        f"what importers forgive: {both} run in both with the same answer, {refused} refused by both, "
        f"{forgiven} only run here; {wrong} wrong")
    return wrong > 0


if __name__ == "__main__": sys.exit(main())
