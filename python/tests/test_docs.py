# SPDX-License-Identifier: Apache-2.0
"""The examples in docstrings are run."""

import doctest
import importlib
import pkgutil

import numpy as np

import hone
from conftest import RELU


def test_examples():
    tried = 0
    for module in pkgutil.iter_modules(hone.__path__):
        if module.name in (
            "as_onnxruntime",
            "libhone",
        ):  # a program; the library itself, where a wheel put it
            continue
        found = importlib.import_module(f"hone.{module.name}")
        result = doctest.testmod(found, extraglobs={"hone": hone, "np": np, "relu": RELU})
        assert not result.failed
        tried += result.attempted
    tried += doctest.testmod(
        hone, extraglobs={"hone": hone, "np": np, "relu": RELU}, raise_on_error=True
    ).attempted
    assert tried > 10
