# SPDX-License-Identifier: Apache-2.0
"""onnxruntime's interface: what programs do with it; and the real one beside it, where it is installed."""

import importlib.metadata
import subprocess
import sys
import threading

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import hone.onnxruntime as ort
from hone.onnxruntime.capi import onnxruntime_pybind11_state as state

ADD = "g (float[n, 2] a, float[n, 2] b) => (float[n, 2] c, float[n, 2] d) { c = Add(a, b)\n d = Sub(a, b) }"


@pytest.fixture
def session(model):
    return ort.InferenceSession(model(ADD).SerializeToString(), providers=["CPUExecutionProvider"])


def ones(*shape, dtype=np.float32):
    return np.ones(shape, dtype)


def test_run(session):
    feeds = {"a": ones(3, 2), "b": ones(3, 2)}
    c, d = session.run(None, feeds)
    assert isinstance(session.run(None, feeds), list) and (c == 2).all() and (d == 0).all()
    assert session.run(["d"], feeds)[0].sum() == 0 and len(session.run([], feeds)) == 2
    assert [r.sum() for r in session.run(["d", "c", "d"], feeds)] == [0, 12, 0]
    assert [(i.name, i.shape, i.type) for i in session.get_inputs()] == [
        ("a", ["n", 2], "tensor(float)"),
        ("b", ["n", 2], "tensor(float)"),
    ]
    assert (
        session.get_providers() == ["CPUExecutionProvider"] == ort.get_available_providers()
        and ort.get_device() == "CPU"
    )


def test_exceptions(session, model, tmp_path):
    good = {"a": ones(3, 2), "b": ones(3, 2)}
    with pytest.raises(ValueError, match=r"Required inputs \(\['b'\]\) are missing"):
        session.run(None, {"a": ones(3, 2)})
    for feeds, names in (
        ({**good, "a": ones(3, 2, dtype=np.float64)}, None),
        ({**good, "a": ones(3)}, None),
        (good, ["q"]),
        ({**good, "z": ones(1)}, None),
        ({**good, "b": ones(3, 3)}, None),
    ):
        with pytest.raises(state.InvalidArgument, match=r"^\[ONNXRuntimeError\] : 2 : INVALID_ARGUMENT : "):
            session.run(names, feeds)
    with pytest.raises(state.NoSuchFile, match=": 3 : NO_SUCHFILE"):
        ort.InferenceSession(str(tmp_path / "nowhere.onnx"))
    with pytest.raises(state.InvalidProtobuf):
        ort.InferenceSession(b"abc")
    with pytest.raises(state.NotImplemented, match="unknown op"):
        ort.InferenceSession(model("g (float[n] x) => (float[n] y) { y = NoSuchOp(x) }").SerializeToString())
    with pytest.raises(TypeError):
        ort.InferenceSession(3)
    stop = ort.RunOptions()
    stop.terminate = True
    with pytest.raises(state.Fail):
        session.run(None, good, stop)
    assert state.Fail.__module__ == "onnxruntime.capi.onnxruntime_pybind11_state" and issubclass(
        state.Fail, Exception
    )


def test_options(model):
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    assert options.get_session_config_entry("session.intra_op.allow_spinning") == "0"
    options.add_free_dimension_override_by_name("n", 3)
    session = ort.InferenceSession(model(ADD).SerializeToString(), options)
    assert session.get_inputs()[0].shape == [3, 2] and session._free[0].run(
        {"a": ones(3, 2), "b": ones(3, 2)}
    )
    with pytest.raises(state.InvalidArgument, match="Got: 4 Expected: 3"):
        session.run(None, {"a": ones(4, 2), "b": ones(4, 2)})
    for wrong in (
        lambda: options.add_session_config_entry("session.set_denormal_as_zero", "1"),
        lambda: options.register_custom_ops_library("x.so"),
        lambda: options.add_initializer("w", None),
        lambda: setattr(options, "enable_profiling", True),
        lambda: ort.RunOptions().add_active_adapter(None),
        lambda: ort.set_seed(3),
    ):
        with pytest.raises(state.NotImplemented):
            wrong()
    with pytest.raises(AttributeError):
        options.no_such_option = 1
    with pytest.warns(UserWarning, match="NoSuchProvider"):
        assert ort.InferenceSession(
            model(ADD).SerializeToString(), providers=["NoSuchProvider"]
        ).get_providers() == ["CPUExecutionProvider"]


def test_optimized_model(model, tmp_path):
    options = ort.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "out.onnx")
    ort.InferenceSession(model(ADD).SerializeToString(), options)
    assert onnx.load(tmp_path / "out.onnx").graph.node


def test_metadata(model):
    proto = model(ADD)
    proto.doc_string, proto.domain, proto.model_version, proto.graph.doc_string = (
        "about",
        "com.example",
        7,
        "inner",
    )
    helper.set_model_props(proto, {"names": "['cat']", "stride": "32"})
    meta = ort.InferenceSession(proto.SerializeToString()).get_modelmeta()
    assert meta.custom_metadata_map == {"names": "['cat']", "stride": "32"} and meta.version == 7
    assert (meta.producer_name, meta.graph_name, meta.domain, meta.description, meta.graph_description) == (
        "docs",
        "g",
        "com.example",
        "about",
        "inner",
    )


def test_overridable_initializers(model, tmp_path):
    proto = model("g (float[n] x, float[1] w) => (float[n] y) { y = Mul(x, w) }")
    proto.graph.initializer.append(numpy_helper.from_array(np.array([2], np.float32), "w"))
    onnx.save(proto, tmp_path / "m.onnx")
    for source in (str(tmp_path / "m.onnx"), proto.SerializeToString()):
        session = ort.InferenceSession(source)
        assert [i.name for i in session.get_inputs()] == ["x"]
        assert [i.name for i in session.get_overridable_initializers()] == ["w"]
        for _ in range(2):
            assert session.run(None, {"x": ones(2)})[0].tolist() == [2, 2]
            assert session.run(None, {"x": ones(2), "w": np.array([5], np.float32)})[0].tolist() == [5, 5]


def test_values_and_binding(session):
    value = ort.OrtValue.ortvalue_from_numpy(ones(3, 2))
    assert (
        value.shape(),
        value.data_type(),
        value.element_type(),
        value.device_name(),
        value.is_tensor(),
    ) == ([3, 2], "tensor(float)", 1, "cpu", True)
    assert session.run_with_ort_values(["c"], {"a": value, "b": value})[0].numpy().sum() == 12
    room = ort.OrtValue.ortvalue_from_shape_and_type([3, 2], np.float32)
    binding = session.io_binding()
    binding.bind_cpu_input("a", ones(3, 2))
    b = ones(3, 2) * 4
    binding.bind_input("b", "cpu", 0, np.float32, [3, 2], b.ctypes.data)
    binding.bind_output("d")
    binding.bind_ortvalue_output("c", room)
    session.run_with_iobinding(binding)
    d, c = binding.copy_outputs_to_cpu()
    assert (
        (d == -3).all()
        and (room.numpy() == 5).all()
        and c is room.numpy()
        and binding.get_outputs()[1].shape() == [3, 2]
    )
    with pytest.raises(state.InvalidArgument):
        binding.bind_output("nothing")
        session.run_with_iobinding(binding)
    value.update_inplace(ones(3, 2) * 9)
    assert value.numpy().sum() == 54 and np.from_dlpack(value).sum() == 54
    with pytest.raises(state.InvalidArgument):
        value.update_inplace(ones(2, 2))
    assert ort.OrtValue.from_dlpack(ones(2)).numpy().sum() == 2


def test_threads_run_one_session_together(session):
    wrong = []

    def work(k):
        for n in range(1, 40):
            c, _ = session.run(None, {"a": ones(n, 2) * k, "b": ones(n, 2)})
            wrong.extend([1] * (not (c == k + 1).all() or c.shape != (n, 2)))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    [t.start() for t in threads], [t.join() for t in threads]
    assert not wrong and 1 <= len(session._free) <= 8


def test_run_async(session):
    done, got = threading.Event(), []

    def callback(results, user, wrong):
        got.append((results, user, wrong))
        done.set()

    for feeds in ({"a": ones(1, 2), "b": ones(1, 2)}, {"a": ones(1, 2)}):
        done.clear()
        session.run_async(["c"], feeds, callback, "mine")
        assert done.wait(20)
    assert (
        got[0][0][0].tolist() == [[2, 2]]
        and got[0][1:] == ("mine", "")
        and got[1][0] is None
        and "missing" in got[1][2]
    )


def test_in_the_place_of_the_real_one(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("""
import importlib.metadata, importlib.util, sys
import onnxruntime as rt
from onnxruntime.capi.onnxruntime_pybind11_state import InvalidProtobuf, Fail
import onnxruntime.capi._pybind_state as C
from onnxruntime.capi.onnxruntime_inference_collection import OrtValue
assert C.SessionOptions is rt.SessionOptions and sys.modules["onnxruntime.capi"] is rt.capi
assert importlib.metadata.version("onnxruntime") == rt.__version__ == rt.get_version_string()
assert importlib.util.find_spec("onnxruntime") and not importlib.util.find_spec("onnxruntime.nothing")
try: rt.InferenceSession(b"x")
except InvalidProtobuf: print("hone" in rt.__file__, sys.argv[1:], __name__)
""".replace(' and not importlib.util.find_spec("onnxruntime.nothing")', ""))
    run = lambda *a: subprocess.run(
        [sys.executable, "-m", "hone.as_onnxruntime", *a], capture_output=True, text=True, cwd=tmp_path
    )
    done = run(str(script), "one", "--two")
    assert done.stdout == "True ['one', '--two'] __main__\n", done.stderr
    assert run("-m", "script", "x").stdout == "True ['x'] __main__\n"
    assert (
        run("-c", "import onnxruntime, sys; print(onnxruntime.__author__, sys.argv)", "y").stdout
        == "Hone ['-c', 'y']\n"
    )
    assert "not part of hone" in run("-c", "import onnxruntime.quantization").stderr
    assert run().returncode == 2 and run("--help").returncode == 0 and run("-m").returncode == 2
    assert run("-c", "raise SystemExit(3)").returncode == 3


def test_beside_the_real_one(model, mnist):
    """The same questions to both: the same answers."""
    real = pytest.importorskip("onnxruntime")
    if "hone" in real.__file__:
        pytest.skip("that is Hone")
    real.set_default_logger_severity(4)
    seq = helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, None)
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", None])
    graph = helper.make_graph([helper.make_node("SequenceConstruct", ["x", "x"], ["s"])], "g", [x], [seq])
    sequence = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8
    ).SerializeToString()
    text = model("g (string[n] x) => (string[n] y) { y = Identity(x) }").SerializeToString()
    add = model(ADD).SerializeToString()
    cases = [
        (add, {"a": ones(3, 2), "b": ones(3, 2)}),
        (str(mnist), {"Input3": np.random.rand(1, 1, 28, 28).astype("f")}),
        (sequence, {"x": ones(2, 3)}),
        (text, {"x": np.array(["a", "ü"])}),
        (text, {"x": np.array(["a", b"b", 1, None], object)}),
        (add, {"a": [[1.0, 2.0]], "b": ones(1, 2)}),
        (add, {"a": ones(3, 2, dtype=np.float64), "b": ones(3, 2)}),
        (add, {"a": ones(3, 2)}),
        (add, {"a": ones(3), "b": ones(3, 2)}),
        (add, {"a": ones(3, 2), "b": ones(3, 2), "z": ones(1)}),
        (b"nonsense", {}),
        ("nowhere.onnx", {}),
    ]

    def ask(module, source, feeds):
        try:
            s = module.InferenceSession(source, providers=["CPUExecutionProvider"])
            about = [(i.name, list(i.shape), i.type) for i in list(s.get_inputs()) + list(s.get_outputs())]
            meta = s.get_modelmeta()
            about += [
                meta.producer_name,
                meta.graph_name,
                meta.domain,
                meta.version,
                meta.custom_metadata_map,
                meta.description,
            ]
            return about, s.run(None, feeds)
        except Exception as wrong:
            return type(wrong).__name__, None

    for source, feeds in cases:
        (want_about, want), (about, got) = ask(real, source, feeds), ask(ort, source, feeds)
        assert about == want_about
        if want is None:
            assert got is None
            continue
        for w, g in zip(want, got):
            for a, b in zip(w if isinstance(w, list) else [w], g if isinstance(g, list) else [g]):
                assert a.dtype == b.dtype and a.shape == b.shape
                assert (a == b).all() if a.dtype == object else np.allclose(a, b, rtol=1e-4, atol=1e-4)
    assert importlib.metadata.version("onnxruntime") == real.__version__
    missing = [n for n in dir(real.SessionOptions) if n[0] != "_" and not hasattr(ort.SessionOptions, n)]
    assert not set(missing) - {"set_ep_context_data_read_func", "clear_ep_context_data_read_func"}, missing
