# SPDX-License-Identifier: Apache-2.0
"""Exceptions with onnxruntime's names, and which of them an error of Hone's is."""

from __future__ import annotations

import contextlib
from typing import Iterator

from .._library import Error

PLACE = "onnxruntime.capi.onnxruntime_pybind11_state"
# Name: onnxruntime's number and word.
_ROWS = {
    "Fail": (1, "FAIL"),
    "InvalidArgument": (2, "INVALID_ARGUMENT"),
    "NoSuchFile": (3, "NO_SUCHFILE"),
    "NoModel": (4, "NO_MODEL"),
    "EngineError": (5, "ENGINE_ERROR"),
    "RuntimeException": (6, "RUNTIME_EXCEPTION"),
    "InvalidProtobuf": (7, "INVALID_PROTOBUF"),
    "ModelLoaded": (8, "MODEL_LOADED"),
    "NotImplemented": (9, "NOT_IMPLEMENTED"),
    "InvalidGraph": (10, "INVALID_GRAPH"),
    "EPFail": (11, "EP_FAIL"),
    "ModelLoadCanceled": (12, "MODEL_LOAD_CANCELED"),
    "ModelRequiresCompilation": (13, "MODEL_REQUIRES_COMPILATION"),
    "NotFound": (14, "NOT_FOUND"),
}
CLASSES = {name: type(name, (Exception,), {"__module__": PLACE}) for name in _ROWS}
globals().update(CLASSES)
_LOADING = {"IO": "NoSuchFile", "NOT_SUPPORTED": "NotImplemented", "BAD_INPUT": "InvalidGraph"}
_RUNNING = {"BAD_INPUT": "InvalidArgument", "NOT_SUPPORTED": "NotImplemented"}


def make(name: str, line: str) -> Exception:
    """An exception with the line in onnxruntime's form."""
    number, word = _ROWS[name]
    return CLASSES[name](f"[ONNXRuntimeError] : {number} : {word} : {line}")


@contextlib.contextmanager
def translated(loading: bool = False) -> Iterator[None]:
    """Hone's errors become onnxruntime's."""
    try:
        yield
    except Error as wrong:
        raise of(wrong, loading) from None


def of(wrong: Error, loading: bool = False) -> Exception:
    """What an error of Hone's is called there."""
    name = (_LOADING if loading else _RUNNING).get(wrong.status, "RuntimeException")
    if name == "InvalidGraph" and "not an ONNX model" in str(wrong):
        name = "InvalidProtobuf"
    return make(name, str(wrong))


def refused(what: str) -> Exception:
    """What is not there, by its name."""
    return make("NotImplemented", f"{what}: Hone does not have it")
