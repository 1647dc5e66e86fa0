# SPDX-License-Identifier: Apache-2.0
"""What a type checker sees: a program that is right passes mypy --strict, one that is wrong does not."""

import subprocess
import sys

import pytest

PROGRAM = """
import numpy as np
import hone
import hone.onnxruntime as onnxruntime


def direct(path: str) -> None:
    session = hone.Session(path, threads=2, precision="bf16")
    for port in session.inputs:
        print(port.name, port.dtype, port.shape)
    outputs = session.run({"x": np.zeros((1, 3), np.float32)})
    print(outputs["y"], outputs[0], len(outputs), session.report("steps"), hone.__version__)
    try:
        session.run({"x": 3})
    except hone.Error as e:
        print(e.status, str(e))
    value = hone.Value(np.ones(3, np.float32))
    print(value.shape, value.device, value.numpy().sum(), [row["device"] for row in hone.devices()])
    print(hone.Model(path).about, session.model.inputs)


def as_onnxruntime(path: str) -> None:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads + 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    first = session.get_inputs()[0]
    result = session.run(None, {first.name: np.zeros((1, 3), np.float32)}, onnxruntime.RunOptions())
    print(result[0], first.shape, first.type, session.get_modelmeta().producer_name)
"""
WRONG = """
import hone
hone.Session("model.onnx", threads="two")
hone.Session("model.onnx").runs({})
"""


@pytest.mark.parametrize("program, mistakes", [(PROGRAM, 0), (WRONG, 2)])
def test_mypy(tmp_path, program, mistakes):
    pytest.importorskip("mypy")
    path = tmp_path / "program.py"
    path.write_text(program)
    said = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), str(path)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    found = [
        line for line in said.stdout.splitlines() if line.startswith("program.py:") and ": error:" in line
    ]
    assert len(found) == mistakes and "Traceback" not in said.stderr, said.stdout + said.stderr
