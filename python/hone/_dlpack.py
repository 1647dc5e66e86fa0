# SPDX-License-Identifier: Apache-2.0
"""Capsules of DLPack: the PyCapsule around a pointer that the library gives or takes."""

from __future__ import annotations

import atexit
import ctypes as C
from typing import Any

from . import _library as L

_api = C.pythonapi
CPU = 1


def _function(name: str, result, *arguments):
    prototype = C.PYFUNCTYPE(result, *arguments)
    return prototype((name, _api))


_new = _function("PyCapsule_New", C.py_object, C.c_void_p, C.c_char_p, C.c_void_p)
_valid = _function("PyCapsule_IsValid", C.c_int, C.c_void_p, C.c_char_p)
_pointer = _function("PyCapsule_GetPointer", C.c_void_p, C.c_void_p, C.c_char_p)
_set_destructor = _function("PyCapsule_SetDestructor", C.c_int, C.c_void_p, C.c_void_p)
_rename = _function("PyCapsule_SetName", C.c_int, C.c_void_p, C.c_char_p)
# Names of capsules live as long as the capsules: for ever.
_PLAIN, _VERSIONED, _USED, _USED_VERSIONED = (
    b"dltensor",
    b"dltensor_versioned",
    b"used_dltensor",
    b"used_dltensor_versioned",
)
# Where a struct has its deleter: after the tensor and its context, or after the version and the context.
_DELETER = {_PLAIN: 56, _VERSIONED: 16}
_Deleter = C.CFUNCTYPE(None, C.c_void_p)


def _unused(capsule: int) -> None:
    """A capsule that ends and was not taken gives its tensor back."""
    _live.discard(capsule)
    for name, offset in _DELETER.items():
        if _valid(capsule, name):
            at = _pointer(capsule, name)
            deleter = C.c_void_p.from_address(at + offset).value
            if deleter:
                _Deleter(deleter)(at)


_destructor = C.PYFUNCTYPE(None, C.c_void_p)(_unused)
_destructor_at = C.cast(_destructor, C.c_void_p).value
_live: "set[int]" = set()


@atexit.register
def _leave() -> None:
    """Capsules that outlive the interpreter's modules must not call back into them: the process ends, and its
    memory with it."""
    global _destructor_at
    _destructor_at = None
    for capsule in list(_live):
        _set_destructor(capsule, None)


def give(handle: int, versioned: bool) -> Any:
    """A capsule over a value, which it shares."""
    out = C.c_void_p()
    L.check((L.value_to_dlpack_versioned if versioned else L.value_to_dlpack)(handle, C.addressof(out)))
    capsule = _new(out.value, _VERSIONED if versioned else _PLAIN, _destructor_at)
    _live.add(id(capsule))
    return capsule


def take(tensor: Any) -> int:
    """A handle over somebody's tensor, on the host or on a device that is here."""
    kind = int(tensor.__dlpack_device__()[0])
    if kind != CPU:  # the library copies what is not dense on the host alone
        if hasattr(tensor, "contiguous"):  # torch
            tensor = tensor.contiguous()
        elif not getattr(getattr(tensor, "flags", None), "c_contiguous", True):  # cupy
            tensor = tensor.copy(order="C")
    stream = {} if kind == CPU else {"stream": 1}  # the default stream: the library waits for it
    try:
        capsule = tensor.__dlpack__(max_version=(1, 1), **stream)
    except TypeError:  # from before versions
        capsule = tensor.__dlpack__(**stream)
    versioned = bool(_valid(id(capsule), _VERSIONED))
    name = _VERSIONED if versioned else _PLAIN
    if not _valid(id(capsule), name):
        raise L.Error(f"__dlpack__ of {type(tensor).__name__} gave no capsule of a tensor")
    at, out = _pointer(id(capsule), name), C.c_void_p()
    if versioned and stream and kind == 2:
        L.check(L.value_from_dlpack_stream(at, 1, C.addressof(out)))
    else:
        L.check((L.value_from_dlpack_versioned if versioned else L.value_from_dlpack)(at, C.addressof(out)))
    _rename(id(capsule), _USED_VERSIONED if versioned else _USED)
    return out.value
