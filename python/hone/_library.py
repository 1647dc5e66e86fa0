# SPDX-License-Identifier: Apache-2.0
"""libhone, loaded once, and its functions as a table. Nothing here knows a Python value.

Functions that may take long let the interpreter go while they run (`CDLL`); those that are over in a moment
keep it (`PyDLL`), which costs less and does not make threads wait for each other.
"""

from __future__ import annotations

import ctypes as C
import os
import sys
from pathlib import Path

P, I, I64, S, N = C.c_void_p, C.c_int, C.c_int64, C.c_char_p, C.c_size_t


class Options(C.Structure):
    """hone_options."""

    _fields_ = [
        ("threads", I),
        ("plans", I),
        ("interpret", I),
        ("profile", I),
        ("limit_ms", I64),
        ("wisdom", S),
        ("precision", I),
        ("stay", I),
        ("device", S),
        ("place", S),
        ("keep_f32", S),
        ("limit_bytes", I64),
    ]


class PortC(C.Structure):
    """hone_port."""

    _fields_ = [("name", S), ("kind", I), ("dtype", I), ("rank", I), ("dims", C.POINTER(I64)), ("shape", S)]


# name: result, arguments. A dot before the name: over in a moment.
_TABLE = {
    ".hone_version": (S,),
    ".hone_error": (S,),
    ".hone_dtype_name": (S, I),
    "hone_tensor_create": (I, I, P, I, P),
    ".hone_tensor_borrow": (I, I, P, I, P, P),
    ".hone_list_create": (I, I, P, I, P),
    ".hone_map_create": (I, P, P, P),
    ".hone_maps_table": (I, P, P, P),
    ".hone_value_copy_to": (I, P, I, P, I, P),
    ".hone_maps_copy_to": (I, P, P, I, P, P),
    ".hone_value_share": (P, P),
    ".hone_value_free": (None, P),
    ".hone_value_kind_of": (I, P),
    ".hone_value_dtype": (I, P),
    ".hone_value_rank": (I, P),
    ".hone_value_dims": (P, P),
    ".hone_value_elements": (I64, P),
    ".hone_value_data": (P, P),
    ".hone_value_bytes": (N, P),
    ".hone_value_items": (I, P),
    ".hone_value_item": (P, P, I),
    ".hone_value_text": (P, P, I64, P),
    ".hone_value_set_text": (I, P, I64, S, N),
    "hone_value_read": (I, S, I, I, P, I, P),
    "hone_value_write": (I, P, S),
    "hone_value_bring": (I, P, S, P),
    ".hone_value_where": (None, P, P, N),
    "hone_value_from_dlpack": (I, P, P),
    "hone_value_from_dlpack_versioned": (I, P, P),
    "hone_value_from_dlpack_stream": (I, P, I64, P),
    "hone_value_to_dlpack": (I, P, P),
    "hone_value_to_dlpack_versioned": (I, P, P),
    "hone_ops_add": (I, S, S, N),
    "hone_model_load": (I, S, P),
    "hone_model_load_memory": (I, P, N, P),
    "hone_model_load_open": (I, S, P, I, P),
    "hone_model_save": (I, P, S),
    "hone_model_free": (None, P),
    ".hone_model_inputs": (I, P),
    ".hone_model_outputs": (I, P),
    ".hone_model_input": (C.POINTER(PortC), P, I),
    ".hone_model_output": (C.POINTER(PortC), P, I),
    "hone_session_create": (I, P, P, P),
    "hone_session_free": (None, P),
    "hone_session_run": (I, P, P, P),
    "hone_model_report": (I, P, S, P),
    "hone_session_report": (I, P, S, P),
    "hone_model_explain": (I, P, S, I, P),
    "hone_machine_report": (I, I, P),
    "hone_device_report": (I, I, P),
    ".hone_text_release": (None, P),
    "hone_plugin_load": (I, S),
}


def _places() -> list[str]:
    here = Path(__file__).resolve().parent
    return [str(here / "libhone.so"), str(here.parents[1] / "build" / "libhone.so")]


def _load() -> C.CDLL:
    said = os.environ.get("HONE_LIBRARY")
    path = said or next((p for p in _places() if os.path.exists(p)), None)
    if path is None:
        raise ImportError(
            "libhone.so is not in the package: install it with pip, or name the library in HONE_LIBRARY"
        )
    try:
        library, held = C.CDLL(path, C.RTLD_GLOBAL), C.PyDLL(path)  # global: plugins call it
        for name, (result, *arguments) in _TABLE.items():
            function = getattr(held if name[0] == "." else library, name.lstrip("."))
            function.restype, function.argtypes = result, arguments
            setattr(sys.modules[__name__], name.lstrip(".").replace("hone_", "", 1), function)
    except (OSError, AttributeError) as wrong:
        raise ImportError(f"{path} is not a libhone that this package can use: {wrong}") from None
    return library


class Error(RuntimeError):
    """What Hone says of a call that failed: one line, what is wrong and what to do.

    `status` is the library's word for it: BAD_INPUT, NOT_SUPPORTED, NO_MEMORY, IO or BUG.
    """

    def __init__(self, line: str, status: str = "BAD_INPUT") -> None:
        super().__init__(line)
        self.status = status

    def __reduce__(self):
        return Error, (str(self), self.status)


_STATUS = ("OK", "BAD_INPUT", "NOT_SUPPORTED", "NO_MEMORY", "IO", "BUG")


def check(status: int) -> None:
    """Raises Error where a call failed. On the thread that made the call: the library's line is a thread's
    own."""
    if status:
        raise Error(error().decode("utf-8", "replace"), _STATUS[status])


def text(function, *arguments) -> str:
    """What a function that writes a text to its last argument says; the text is freed."""
    out = P()
    check(function(*arguments, C.addressof(out)))
    try:
        return C.string_at(out.value).decode("utf-8", "replace")
    finally:
        text_release(out.value)


LIBRARY = _load()
