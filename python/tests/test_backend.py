# SPDX-License-Identifier: Apache-2.0
"""ONNX's own backend tests, as they are; and the interface itself."""

import warnings

import numpy as np
import onnx
import pytest
from onnx import helper

import hone.backend
import onnx_cases

NEWEST = (1, 22)  # older packages carry cases that ONNX has corrected since


@pytest.mark.skipif(
    tuple(map(int, onnx.__version__.split(".")[:2])) < NEWEST, reason="cases of an older onnx package"
)
def test_onnx_cases():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ran, passed, _, surprising = onnx_cases.count()
    assert not surprising and ran > 1400 and passed >= ran - sum(map(len, onnx_cases.KNOWN.values()))


def test_interface(model):
    proto = model("g (float[n] a, float[n] b) => (float[n] c) { c = Add(a, b) }")
    one = np.ones(2, np.float32)
    assert hone.backend.supports_device("CPU") and not hone.backend.supports_device("TPU")
    assert hone.backend.is_compatible(proto) and hone.backend.run_model(proto, [one, one])[0].tolist() == [
        2,
        2,
    ]
    rep = hone.backend.prepare(proto, "CPU", threads=1)
    assert rep.run({"a": one, "b": one})["c"].tolist() == [2, 2]
    with pytest.raises(ValueError):
        rep.run([one] * 3)
    with pytest.raises(ValueError):
        hone.backend.prepare(proto, "TPU")
    with pytest.raises(hone.Error, match="missing"):
        rep.run([one])
    node = helper.make_node("Mul", ["x", "y"], ["z"])
    assert hone.backend.run_node(node, [one * 3, one * 2])[0].tolist() == [6, 6]
