# SPDX-License-Identifier: Apache-2.0
"""Models, sessions, outputs and reports."""

import gc
import pickle
import threading

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import hone

ADD = "g (float[n, m] a, float[n, m] b) => (float[n, m] c, float[n, m] d) { c = Add(a, b)\n d = Sub(a, b) }"


def ones(*shape, dtype=np.float32):
    return np.ones(shape, dtype)


def test_outputs_are_a_tuple_and_a_dict(model):
    session = hone.Session(model(ADD))
    a, b = np.arange(6, dtype=np.float32).reshape(2, 3), ones(2, 3)
    out = session.run({"a": a, "b": b})
    c, d = out
    assert (c == a + b).all() and (d == a - b).all()
    assert out["c"] is c and out[1] is d and list(out.keys()) == ["c", "d"] and set(dict(out)) == {"c", "d"}
    assert "c" in out and "x" not in out and out.get("x", 3) == 3
    with pytest.raises(KeyError, match="no output 'x'; there are c, d"):
        out["x"]
    again = pickle.loads(pickle.dumps(out))
    assert (again["d"] == d).all() and session(dict(a=a, b=b))["c"].sum() == c.sum()


def test_model_from_everywhere(tmp_path, model):
    proto = model(ADD)
    path = tmp_path / "m.onnx"
    onnx.save(proto, path)
    feeds = {"a": ones(1, 2), "b": ones(1, 2)}
    shared = hone.Model(path)
    for source in (
        path,
        str(path),
        proto,
        proto.SerializeToString(),
        bytearray(proto.SerializeToString()),
        shared,
    ):
        assert hone.Session(source).run(feeds)["c"].tolist() == [[2, 2]]
    with pytest.raises(TypeError):
        hone.Model(3)
    with pytest.raises(hone.Error, match="nowhere") as wrong:
        hone.Model("nowhere.onnx")
    assert wrong.value.status == "IO"
    with pytest.raises(hone.Error):
        hone.Model(b"nonsense")


def test_ports(model):
    port = hone.Model(model(ADD)).inputs[0]
    assert (port.name, port.kind, port.dtype, port.shape, port.type) == (
        "a",
        "tensor",
        np.float32,
        ("n", "m"),
        "tensor(float)",
    )
    fixed = hone.Model(model("g (int64[2, 3] x) => (int64[2, 3] y) { y = Neg(x) }")).outputs[0]
    assert fixed.shape == (2, 3) and fixed.dtype == np.int64


@pytest.mark.parametrize("size", [1, 100, 20_000, 300_000])
def test_sizes_small_and_large_in_turn(model, size):
    session = hone.Session(model("g (float[n] x) => (float[n] y) { y = Neg(x) }"))
    kept = []
    for n in (size, size + 1, 3, size, 9000, 8192, 0):
        x = np.random.rand(n).astype(np.float32)
        kept.append((x, session.run({"x": x})["y"]))
    del session
    gc.collect()
    for x, y in kept:
        assert (y == -x).all() and y.flags.writeable
        y += 1


def test_strides_orders_and_read_only(model):
    session = hone.Session(model(ADD))
    for n in (3, 200):
        base = np.random.rand(n, n).astype(np.float32)
        frozen = base.copy()
        frozen.flags.writeable = False
        odd = np.frombuffer(b"x" + base.tobytes(), np.float32, offset=0, count=0)
        unaligned = (
            np.frombuffer(bytearray(b"x" + base.tobytes()), np.uint8)[1:].view(np.float32).reshape(n, n)
        )
        for x in (base.T, base[::-1], frozen, base.astype(">f4"), np.asfortranarray(base), unaligned):
            out = session.run({"a": x, "b": x})
            assert (out["c"] == 2 * x).all() and (out["d"] == 0).all()
        assert odd.size == 0


def test_lists_and_numbers_take_the_models_type(model):
    session = hone.Session(
        model("g (float[n] x, int64 k) => (float[n] y) { c = Cast <to = 1> (k)\n y = Mul(x, c) }")
    )
    assert session.run({"x": [1, 2.5], "k": 2})["y"].tolist() == [2, 5]
    with pytest.raises(hone.Error, match="input 'k' is f64, the model wants i64"):
        session.run({"x": [1.0], "k": np.float64(2)})
    with pytest.raises(hone.Error, match="fractions"):
        session.run({"x": [1.0], "k": 2.5})


def test_wrong_inputs_are_told_and_harm_nothing(model):
    session = hone.Session(model(ADD))
    good = {"a": ones(2, 2), "b": ones(2, 2)}
    wrong = [
        ({"a": ones(2, 2)}, "input 'b' is missing"),
        ({**good, "z": 1}, "'z' is no input; there are a, b"),
        ({**good, "a": ones(2, 2, dtype=np.float64)}, "input 'a' is f64, the model wants f32"),
        ({**good, "a": ones(2)}, "input 'a' has 1 dims"),
        ({**good, "a": ones(3, 2)}, "'n' is"),
        ({**good, "a": None}, "is None"),
        ({**good, "a": np.array(["x"])}, "input 'a' is"),
        ({**good, "a": np.array([object()])}, "is a object"),
        ({**good, "a": np.ones((1,) * 17, np.float32)}, "17 dims"),
        ({**good, "a": np.zeros(2, "M8[s]")}, "a type that Hone does not have"),
        ({**good, "a": {1: 2.0}}, "kind"),
        ({**good, "a": np.ones(100_000, np.float32)}, "has 1 dims"),
    ]
    for feeds, line in wrong:
        with pytest.raises(hone.Error, match=line):
            session.run(feeds)
        assert (session.run(good)["c"] == 2).all()
    with pytest.raises(TypeError):
        session.run([ones(2, 2), ones(2, 2)])
    for bad in ({"threads": -1}, {"limit_ms": -5}, {"device": "nowhere"}, {"place": "nonsense"}):
        with pytest.raises(hone.Error):
            hone.Session(model(ADD), **bad)
    with pytest.raises(ValueError, match="'f8' is none of f32, bf16, f16, tf32"):
        hone.Session(model(ADD), precision="f8")
    with pytest.raises(hone.Error, match="the CPU has no products in it"):
        hone.Session(model(ADD), precision="tf32")
    assert hone.Error.__module__ == "hone"


def test_given_buffers_are_filled(model):
    session = hone.Session(model(ADD))
    for n in (2, 300):
        c = np.full((n, 2), 7, np.float32)
        out = session.run({"a": ones(n, 2), "b": ones(n, 2)}, out={"c": c})
        assert out["c"] is c and (c == 2).all() and (out["d"] == 0).all()
    for bad, line in (
        (np.zeros((2, 2), np.float64), "the run made"),
        (np.zeros((3, 3), np.float32), "the run made"),
        (np.zeros((2, 4), np.float32)[:, ::2], "dense"),
        ([1], "dense"),
    ):
        with pytest.raises(hone.Error, match=line):
            session.run({"a": ones(2, 2), "b": ones(2, 2)}, out={"c": bad})
    with pytest.raises(hone.Error, match="'x' is no output"):
        session.run({"a": ones(2, 2), "b": ones(2, 2)}, out={"x": c})
    a = ones(300, 300)
    with pytest.raises(hone.Error, match="also an input"):
        session.run({"a": a, "b": a}, out={"c": a})


def test_what_goes_through_is_nobodys_but_the_callers(model):
    """Outputs that are inputs, or constants: to write to them changes nothing else."""
    for n in (4, 50_000):
        value = numpy_helper.from_array(np.arange(n, dtype=np.float32), "k")
        proto = model(f"g (float[n] x) => (float[n] y, float[{n}] z) {{ y = Identity(x)\n z = Identity(k) }}")
        proto.graph.initializer.append(value)
        session = hone.Session(proto)
        x = ones(n)
        for _ in range(2):
            y, z = session.run({"x": x})
            assert (y == 1).all() and (z == np.arange(n)).all()
            y[:], z[:] = 5, 6
            assert (x == 1).all()


@pytest.mark.parametrize(
    "name",
    [
        "float16",
        "bfloat16",
        "float8_e4m3fn",
        "float8_e5m2",
        "int8",
        "uint64",
        "bool",
        "int4",
        "uint4",
        "float64",
    ],
)
def test_types(name):
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    number = helper.np_dtype_to_tensor_dtype(dtype)
    x, y = (helper.make_tensor_value_info(n, number, ["n"]) for n in "xy")
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "g", [x], [y])
    session = hone.Session(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    )
    for n in (5, 70_000):
        given = (np.arange(n) % 5).astype(dtype)
        got = session.run({"x": given})["y"]
        assert got.dtype == dtype and (got.astype(np.float32) == given.astype(np.float32)).all()


def test_text(model):
    session = hone.Session(model("g (string[n] x) => (string[n] y) { y = Identity(x) }"))
    for x in (["a", "ü€", ""], np.array(["a", "ü€", ""]), np.array(["a", "ü€", ""], object)):
        assert session.run({"x": x})["y"].tolist() == ["a", "ü€", ""]
    assert session.run({"x": np.array([b"raw", "z\0z"], object)})["y"].tolist() == ["raw", "z\0z"]


def test_sequences_optionals_and_maps():
    seq = helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, None)
    out = helper.make_tensor_sequence_value_info("t", TensorProto.FLOAT, None)
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n"])
    graph = helper.make_graph([helper.make_node("SequenceInsert", ["s", "x"], ["t"])], "g", [seq, x], [out])
    session = hone.Session(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    )
    first, last = ones(2), ones(3) * 2
    (got,) = session.run({"s": [first], "x": last})
    again = session.run({"s": [last], "x": ones(3) * 9})[0]
    first[:], last[:] = 8, 8
    assert [g.tolist() for g in got] == [[1, 1], [2, 2, 2]] and again[1].tolist() == [9, 9, 9]
    assert session.inputs[0].kind == "sequence" and session.inputs[0].type == "seq(tensor(float))"

    kind = helper.make_optional_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, ["n"]))
    graph = helper.make_graph(
        [helper.make_node("OptionalHasElement", ["o"], ["h"])],
        "g",
        [helper.make_value_info("o", kind)],
        [helper.make_tensor_value_info("h", TensorProto.BOOL, [])],
    )
    session = hone.Session(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    )
    assert session.run({"o": ones(2)})["h"].item() is True
    assert session.run({"o": None})["h"].item() is False and session.run({})["h"].item() is False

    value = hone.Value({"a": 1.5, "b": 2.5})
    assert value.kind == "map" and value.numpy() == {"a": 1.5, "b": 2.5}
    assert hone.Value({3: 4}).numpy() == {3: 4}


def test_outputs_made_anew(model):
    """Whose shape is known only afterwards: what an earlier run gave stays as it was."""
    text = "g (float[n] x) => (int64[r, m] y, float[n] z) { y = NonZero(x)\n z = Neg(x) }"
    session = hone.Session(model(text))
    rows = [1, 0, 2], [0, 3, 4], [5, 6, 0], [0, 0, 1], [7, 7, 7], [1, 0, 2]
    given = [np.array(row, np.float32) for row in rows]
    got = [session.run({"x": x}) for x in given]
    for x, (y, z) in zip(given, got):
        assert (y == np.nonzero(x)).all() and y.dtype == np.int64 and (z == -x).all()
    large = session.run({"x": np.ones(70_000, np.float32)})["y"]
    assert (large == np.arange(70_000)).all() and (session.run({"x": given[0]})["y"] == [[0, 2]]).all()


@pytest.mark.parametrize("labels", [{"classlabels_int64s": [5, 6]}, {"classlabels_strings": ["a", "ü"]}])
def test_maps_of_classifiers(labels):
    node = helper.make_node("ZipMap", ["x"], ["y"], domain="ai.onnx.ml", **labels)
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 2])],
        [helper.make_value_info("y", helper.make_sequence_type_proto(helper.make_map_type_proto(
            TensorProto.STRING if "classlabels_strings" in labels else TensorProto.INT64,
            helper.make_tensor_type_proto(TensorProto.FLOAT, []))))],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 1)]
    session = hone.Session(helper.make_model(graph, opset_imports=opsets, ir_version=8))
    (names,) = labels.values()
    sizes = (3, 3, 3, 1, 1, 5000, 3)
    given = [np.random.default_rng(k).random((n, 2), np.float32) for k, n in enumerate(sizes)]
    got = [session.run({"x": x})["y"] for x in given]
    for x, maps in zip(given, got):
        assert maps == [dict(zip(names, row)) for row in x.tolist()]


def test_optional_that_is_there(model):
    assert hone.Value([ones(1), ones(2)]).kind == "sequence"


def test_user_ops_and_reports(model):
    hone.add_ops(
        "op py.test.Thrice 1 (x[I..]: T) -> y[I..]: T\n  T: f32 f64\n  y[i..] = x[i..] * 3.0\n", "thrice"
    )
    with pytest.raises(hone.Error, match="^wrong:1:"):
        hone.add_ops("nonsense", "wrong")
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, ["n"]) for n in "xy")
    graph = helper.make_graph([helper.make_node("Thrice", ["x"], ["y"], domain="py.test")], "g", [x], [y])
    proto = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid("py.test", 1)], ir_version=8
    )
    session = hone.Session(proto, profile=1)
    with pytest.raises(hone.Error, match="after its first run"):
        session.report()
    assert session.run({"x": [1.0, 2.0]})["y"].tolist() == [3, 6]
    steps = session.report("steps")
    assert steps[0]["op"] == "Thrice" and steps[0]["runs"] == 1 and "<table>" in steps._repr_html_()
    assert (
        session.model.report()["nodes"] == 1
        and "Thrice" in session.model.explain(0)
        and "float" in session.model.explain(0, "c")
    )
    assert "<table>" in session._repr_html_() and session.report("memory")["steps"] == 1
    with pytest.raises(hone.Error, match="there are summary"):
        session.model.report("nothing")
    assert hone.machine()["cpu"] and isinstance(hone.devices(), list)


def test_save(tmp_path, model):
    hone.Model(model(ADD)).save(tmp_path / "out.onnx")
    onnx.checker.check_model(onnx.load(tmp_path / "out.onnx"))


def test_threads_wait_on_a_session_and_share_a_model(mnist):
    shared = hone.Model(mnist)
    one = hone.Session(shared)
    feeds = [{"Input3": np.random.rand(1, 1, 28, 28).astype(np.float32)} for _ in range(8)]
    want = [one.run(f)[0] for f in feeds]
    wrong = []

    def work(k, session):
        for _ in range(50):
            if not np.allclose(session.run(feeds[k])[0], want[k], rtol=1e-4, atol=1e-4):
                wrong.append(k)

    for sessions in ([one] * 8, [hone.Session(shared) for _ in range(8)]):
        threads = [threading.Thread(target=work, args=(k, s)) for k, s in enumerate(sessions)]
        [t.start() for t in threads], [t.join() for t in threads]
    assert not wrong


def test_outputs_outlive_their_session(model):
    session = hone.Session(model("g (float[n] x) => (float[n] y) { y = Neg(x) }"))
    small, large = session.run({"x": ones(3)})[0], session.run({"x": ones(100_000)})[0]
    del session
    gc.collect()
    assert small.sum() == -3 and large.sum() == -100_000


def test_the_model_stands_for_itself(model):
    """Array freed by another thread during a run: the run holds it."""
    session = hone.Session(model("g (float[n] x) => (float[n] y) { a = Sin(x)\n b = Cos(a)\n y = Exp(b) }"))
    box = [np.random.rand(2_000_000).astype(np.float32)]
    want = np.exp(np.cos(np.sin(box[0])))
    results = []
    thread = threading.Thread(target=lambda: results.append(session.run({"x": box.pop()})[0]))
    thread.start()
    gc.collect()
    junk = [np.random.rand(500_000) for _ in range(4)]
    thread.join()
    assert np.allclose(results[0], want, rtol=1e-4) and junk


def test_memory_stays_flat(model):
    """Runs of all kinds, good and bad, small and large: what is held does not grow."""

    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * 4096

    session = hone.Session(model(ADD))
    sizes = [ones(n, 2) for n in (1, 2, 50, 5000, 20000)]
    out = {"c": np.empty((50, 2), np.float32)}
    before = 0
    for turn in range(2000):
        a = sizes[turn % 5]
        session.run({"a": a, "b": a}, values=turn % 7 == 0)
        session.run({"a": sizes[2], "b": sizes[2]}, out=out)
        session.run({"a": a[::-1], "b": a.tolist() if len(a) < 3 else a})
        for bad in ({"a": a}, {"a": a, "b": ones(3)}, {"a": a, "b": "text"}):
            with pytest.raises(hone.Error):
                session.run(bad)
        if turn == 700:
            gc.collect()
            before = resident()
    gc.collect()
    assert resident() - before < 2e6


def test_error_is_one_line_and_can_be_pickled():
    with pytest.raises(hone.Error) as wrong:
        hone.Model(b"\x08")
    again = pickle.loads(pickle.dumps(wrong.value))
    assert str(again) == str(wrong.value) and again.status == wrong.value.status
