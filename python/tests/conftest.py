# SPDX-License-Identifier: Apache-2.0
"""What all tests and the examples in docstrings have at hand."""

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest

import hone

SHARED = Path(__file__).resolve().parents[2].parent / "shared"


def parse(text: str, opset: int = 18) -> onnx.ModelProto:
    """A model of ONNX's text form: the graph alone."""
    return onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : {opset}], producer_name: "docs">\n{text}'
    )


RELU = parse("relu (float[n] x) => (float[n] y) { y = Relu(x) }")


@pytest.fixture
def model():
    """The parser, as a fixture."""
    return parse


@pytest.fixture
def mnist():
    """A real model; skipped where it is not there."""
    path = SHARED / "models" / "mnist-cnn" / "model.onnx"
    if not path.exists():
        pytest.skip("the test models are not on this machine")
    return path


@pytest.fixture(autouse=True)
def _names(doctest_namespace):
    doctest_namespace.update(hone=hone, np=np, relu=RELU)
