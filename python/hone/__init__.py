# SPDX-License-Identifier: Apache-2.0
"""Hone reads ONNX models and runs them, on the CPU and on devices that are here.

    import hone
    session = hone.Session("model.onnx")
    outputs = session.run({"x": array})

`hone.onnxruntime` has onnxruntime's names, `hone.backend` ONNX's backend interface, and `python -m
hone.as_onnxruntime script.py` runs a program that imports onnxruntime.
"""

from __future__ import annotations

import os as _os
from typing import Any as _Any

from . import _library as _L, _report
from ._library import Error
from ._model import Model, Port
from ._outputs import Outputs
from ._session import Session
from ._value import Value

Error.__module__ = __name__  # as users name it, in tracebacks too
__version__ = _L.version().decode()
__all__ = [
    "Error",
    "Model",
    "Outputs",
    "Port",
    "Session",
    "Value",
    "add_ops",
    "devices",
    "load_plugin",
    "machine",
]


def add_ops(text: "str | bytes", source: str = "ops") -> None:
    """Adds ops, written as text, for the models that are loaded afterwards; `source` names the text in
    messages.

    >>> hone.add_ops('''op docs.Twice 1 (x[I..]: T) -> y[I..]: T
    ...   T: f32 f64
    ...   y[i..] = x[i..] + x[i..]
    ... ''')
    """
    raw = text.encode() if isinstance(text, str) else bytes(text)
    _L.check(_L.ops_add(source.encode(), raw, len(raw)))


def load_plugin(path: "str | _os.PathLike[str]") -> None:
    """Loads a shared library that brings devices or ops."""
    _L.check(_L.plugin_load(_os.fsencode(path)))


def machine(measure: bool = False) -> _Any:
    """The CPU, its memory, and the kernel chosen of each family; with `measure` also what they reach."""
    return _report.of(_L.text(_L.machine_report, int(measure)))


def devices(measure: bool = False) -> _Any:
    """The other devices: what each is, or what it would want."""
    return _report.Reports(_report.of(_L.text(_L.device_report, int(measure)))["devices"])
