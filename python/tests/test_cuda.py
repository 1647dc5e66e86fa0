# SPDX-License-Identifier: Apache-2.0
"""CUDA from Python: tensors of torch and cupy in and out by DLPack, streams, lifetimes, onnxruntime's
providers and bindings. Skipped where there is no GPU. Needs neither pytest nor an installed package:

    cmake --build build --target hone_shared && PYTHONPATH=python python3 python/tests/test_cuda.py
"""

import gc
import importlib
import sys
import time
import traceback
from pathlib import Path

import numpy as np
import onnx.parser

import hone
import hone.onnxruntime as ort

try:
    import pytest
except ImportError:
    pytest = None
if __name__ == "__main__":
    pytest = None  # as a program
DEVICE = "cuda:0"
HERE = any(row["device"] == "cuda" and row["found"] for row in hone.devices())
if pytest and not HERE:
    pytest.skip("there is no CUDA device here", allow_module_level=True)


class Skipped(Exception):
    """What a test needs is not here."""


def need(name):
    """A module, with a CUDA device of its own."""
    try:
        module = importlib.import_module(name)
        if name == "torch" and not module.cuda.is_available():
            raise ImportError("torch without CUDA")
        return module
    except ImportError as why:
        if pytest:
            pytest.skip(str(why))
        raise Skipped(str(why)) from None


def parse(text, opset=18):
    """A model of ONNX's text form."""
    return onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]>\n{text}')


def layer(kind="float"):
    """y = max(x w, 0)."""
    return parse(
        f"g ({kind}[n, k] x, {kind}[k, m] w) => ({kind}[n, m] y) {{ a = MatMul(x, w)\n y = Relu(a) }}"
    )


def near(got, want, slack=1e-3):
    """Within `slack` of the largest magnitude."""
    got, want = np.asarray(got, np.float64), np.asarray(want, np.float64)
    assert got.shape == want.shape, (got.shape, want.shape)
    worst = np.abs(got - want).max() / max(np.abs(want).max(), 1e-30)
    assert worst <= slack, worst


def test_arrays_go_there_and_back():
    x, w = np.random.rand(37, 65).astype(np.float32), np.random.rand(65, 33).astype(np.float32) - 0.5
    session = hone.Session(layer(), device=DEVICE)
    near(session.run({"x": x, "w": w})["y"], np.maximum(x @ w, 0))
    room = np.zeros((37, 33), np.float32)
    assert session.run({"x": x, "w": w}, out={"y": room})["y"] is room
    near(room, np.maximum(x @ w, 0))


def test_values_stay_there():
    x, w = np.random.rand(5, 8).astype(np.float32), np.random.rand(8, 8).astype(np.float32)
    session = hone.Session(layer(), device=DEVICE, stay=True)
    y = session.run({"x": hone.Value(x).to(DEVICE), "w": w})["y"]
    assert isinstance(y, hone.Value) and y.device == DEVICE and y.__dlpack_device__() == (2, 0)
    near(y.to("cpu").numpy(), np.maximum(x @ w, 0))
    near(session.run({"x": y, "w": w})["y"].to("cpu").numpy(), np.maximum(np.maximum(x @ w, 0) @ w, 0))
    try:
        y.numpy()
        raise AssertionError("memory of the device was read from the host")
    except hone.Error as why:
        assert "lies on cuda" in str(why), why


def test_a_session_of_the_cpu_refuses_them():
    session, x = hone.Session(layer()), hone.Value(np.ones((2, 2), np.float32)).to(DEVICE)
    try:
        session.run({"x": x, "w": x})
        raise AssertionError("a value of the GPU was read by the CPU")
    except hone.Error:
        pass


def test_torch_both_ways_without_a_copy():
    torch = need("torch")
    for kind, dtype, slack in (
        ("float", torch.float32, 1e-3),
        ("float16", torch.float16, 1e-2),
        ("bfloat16", torch.bfloat16, 3e-2),
    ):
        x, w = (
            torch.rand(37, 64, device="cuda", dtype=dtype),
            torch.rand(64, 24, device="cuda", dtype=dtype) - 0.5,
        )
        shared = torch.from_dlpack(hone.Value(x))
        assert shared.data_ptr() == x.data_ptr() and shared.dtype == dtype, "hone.Value copies a tensor"
        session = hone.Session(layer(kind), device=DEVICE, stay=True)
        value = session.run({"x": x, "w": w})["y"]
        y = torch.from_dlpack(value)
        assert y.is_cuda and y.dtype == dtype and y.data_ptr() == torch.from_dlpack(value).data_ptr()
        near(y.float().cpu(), torch.relu(x.float() @ w.float()).cpu(), slack)


def test_torch_of_integers_and_of_odd_layouts():
    torch = need("torch")
    session = hone.Session(
        parse("g (int64[n, m] x) => (int64[n, m] y) { y = Neg(x) }"), device=DEVICE, stay=True
    )
    x = torch.arange(35, device="cuda").reshape(5, 7)
    for given in (x, x.T, x[1:, 2:], x[::2]):
        assert torch.equal(torch.from_dlpack(session.run({"x": given})["y"]), -given)
    assert session.run({"x": x[:0]})["y"].shape == (0, 7)  # of nothing there is nothing on a device


def test_torch_streams():
    """A tensor that is still being computed on a stream of its own, and a result that another stream
    reads."""
    torch = need("torch")
    session = hone.Session(layer(), device=DEVICE, stay=True)
    eye = torch.eye(1024, device="cuda")
    for _ in range(20):
        stream = torch.cuda.Stream()
        torch.cuda.synchronize()
        with torch.cuda.stream(stream):
            x = torch.rand(1024, 1024, device="cuda")
            for _ in range(30):
                x = x @ eye  # milliseconds of work that is not over when the run begins
            y = torch.from_dlpack(session.run({"x": x, "w": eye})["y"]) * 2
            want = torch.relu(x) * 2
        stream.synchronize()
        near(y.cpu(), want.cpu())


def test_torch_lifetimes():
    torch = need("torch")
    session = hone.Session(layer(), device=DEVICE, stay=True)
    w = torch.eye(512, device="cuda")
    x = torch.rand(512, 512, device="cuda")
    want = x.clone().cpu()
    value = session.run({"x": x, "w": w})["y"]
    y = torch.from_dlpack(value)
    del x, value, session
    gc.collect()
    torch.rand(512, 512, device="cuda")  # would take the memory, had it been given back
    near(y.cpu(), want)
    session = hone.Session(layer(), device=DEVICE, stay=True)
    free = []
    for k in range(400):
        x = torch.rand(256, 512, device="cuda")
        y = torch.from_dlpack(session.run({"x": x, "w": w})["y"])
        if k % 100 == 99:
            torch.cuda.synchronize()
            free.append(torch.cuda.mem_get_info()[0])
    assert free[0] - free[-1] < 16 << 20, f"400 runs hold {free[0] - free[-1]} bytes more of the GPU"
    unused = hone.Value(w).__dlpack__(max_version=(1, 0))
    del unused, y
    gc.collect()


def test_cupy():
    cupy = need("cupy")
    x, w = cupy.random.rand(9, 16, dtype=cupy.float32), cupy.random.rand(16, 5, dtype=cupy.float32) - 0.5
    session = hone.Session(layer(), device=DEVICE, stay=True)
    y = cupy.from_dlpack(session.run({"x": x, "w": w})["y"])
    near(cupy.asnumpy(y), np.maximum(cupy.asnumpy(x) @ cupy.asnumpy(w), 0))
    assert cupy.from_dlpack(hone.Value(x)).data.ptr == x.data.ptr
    near(cupy.asnumpy(cupy.from_dlpack(session.run({"x": x.T.copy().T, "w": w})["y"])), cupy.asnumpy(y))


def test_as_onnxruntime():
    x, w = np.random.rand(7, 16).astype(np.float32), np.random.rand(16, 3).astype(np.float32) - 0.5
    want = np.maximum(x @ w, 0)
    if any(row.get("name") == "emulated GPU" for row in hone.devices()):
        ort._session._DRIVERS = ("/",)
    assert ort.get_device() == "GPU" and ort.get_available_providers()[0] == "CUDAExecutionProvider"
    session = ort.InferenceSession(
        layer().SerializeToString(), providers=["CUDAExecutionProvider", "CPUExecutionProvider"]
    )
    assert session.get_providers()[0] == "CUDAExecutionProvider"
    near(session.run(None, {"x": x, "w": w})[0], want)
    there = ort.OrtValue.ortvalue_from_numpy(x, "cuda", 0)
    assert there.device_name() == "cuda" and (there.numpy() == x).all()
    binding = session.io_binding()
    binding.bind_ortvalue_input("x", there)
    binding.bind_cpu_input("w", w)
    binding.bind_output("y", "cuda")
    session.run_with_iobinding(binding)
    got = binding.get_outputs()[0]
    assert got.device_name() == "cuda"
    near(binding.copy_outputs_to_cpu()[0], want)
    near(
        session.run_with_ort_values(None, {"x": there, "w": ort.OrtValue.ortvalue_from_numpy(w)})[0].numpy(),
        want,
    )


def test_a_network():
    """All of one, beside the CPU."""
    model = hone.Model(Path(__file__).resolve().parents[2] / "examples" / "digits" / "model.onnx")
    image = np.random.rand(5, 1, 28, 28).astype(np.float32)
    near(
        hone.Session(model, device=DEVICE).run({"image": image})[0],
        hone.Session(model).run({"image": image})[0],
    )


def tell_time():
    """What a call costs with tensors that are there already: torch's, Hone's, torch's again."""
    torch = need("torch")
    x, w = torch.rand(64, 64, device="cuda"), torch.rand(64, 64, device="cuda")
    session = hone.Session(layer(), device=DEVICE, stay=True)

    def ours():
        return torch.from_dlpack(session.run({"x": x, "w": w})["y"])

    def theirs():
        return torch.relu(x @ w)

    for name, call in (("Hone, DLPack both ways", ours), ("torch itself", theirs)) * 2:
        for _ in range(50):
            call()
        torch.cuda.synchronize()
        began = time.perf_counter()
        for _ in range(500):
            call()
        torch.cuda.synchronize()
        print(f"  {name}: {(time.perf_counter() - began) / 500 * 1e6:.1f} us a call")


def main():
    """Every test; the exit code says whether all that could run passed."""
    if not HERE:
        print(
            "skipped: there is no CUDA device here:",
            *(f"{r['device']} wants {r.get('missing')}" for r in hone.devices()),
            sep="\n  ",
        )
        return 77
    bad = 0
    for name, test in [(n, t) for n, t in globals().items() if n.startswith("test_")]:
        try:
            test()
            print(f"pass     {name}")
        except Skipped as why:
            print(f"skipped  {name}: {why}")
        except Exception:
            bad += 1
            print(f"FAIL     {name}")
            traceback.print_exc(file=sys.stdout)
    try:
        tell_time()
    except Skipped as why:
        print(f"times: {why}")
    print(f"{bad} failed")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
