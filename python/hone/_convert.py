# SPDX-License-Identifier: Apache-2.0
"""Python's values to Hone's and back: arrays, text, sequences, optionals, maps.

Handles are plain integers here. Who makes one frees it: see `given` and `Value`. An array that goes in at the
top is borrowed where it is dense; inside of lists it is copied, because a list may leave a run as it came,
and then outlives the array. What comes out is an array over the value's own memory, which holds it.
"""

from __future__ import annotations

import ctypes as C
import functools
from typing import Any

import numpy as np

from . import _dtypes, _library as L

TENSOR, SEQUENCE, OPTIONAL, MAP = range(4)
KINDS = ("tensor", "sequence", "optional", "map")
_Dims = C.c_int64 * 16


def _bad(what: str) -> L.Error:
    return L.Error(what, "BAD_INPUT")


def _made(function, *arguments) -> int:
    out = L.P()
    L.check(function(*arguments, C.addressof(out)))
    return out.value


def free_all(handles) -> None:
    """One reference less of each."""
    for handle in handles:
        L.value_free(handle)


# ---- in ----
def text_tensor(array: np.ndarray, name: str) -> int:
    """Text and bytes of any shape become a tensor of strings."""
    dims = _dims(array.shape, name)
    handle = _made(L.tensor_create, _dtypes.STRING, C.addressof(dims), array.ndim)
    try:
        for k, item in enumerate(array.ravel().tolist()):
            if isinstance(item, str):
                item = item.encode("utf-8", "surrogatepass")
            if not isinstance(item, bytes):
                raise _bad(
                    f"input '{name}': element {k} is a {type(item).__name__}, and must be str or bytes"
                )
            L.check(L.value_set_text(handle, k, item, len(item)))
    except BaseException:
        L.value_free(handle)
        raise
    return handle


def _dims(shape: tuple[int, ...], name: str):
    if len(shape) > 16:
        raise _bad(f"input '{name}' has {len(shape)} dims, at most 16 are possible")
    return _Dims(*shape)


def dense(array: np.ndarray) -> np.ndarray:
    """The array itself where it is dense, aligned and in this machine's byte order; else a copy that is."""
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    return np.require(array, requirements=["C", "A"])


def array_in(array: np.ndarray, name: str, copy: bool) -> tuple[int, Any]:
    """A handle, and what must stay alive as long as it."""
    number = _dtypes.number(array.dtype)
    if not number:
        raise _bad(f"input '{name}' is {array.dtype}, a type that Hone does not have")
    if number == _dtypes.STRING:
        return text_tensor(array, name), None
    if not copy or not array.flags.c_contiguous:
        array = dense(array)
    dims = _dims(array.shape, name)
    if not copy:
        return _made(L.tensor_borrow, number, C.addressof(dims), array.ndim, array.ctypes.data), array
    handle = _made(L.tensor_create, number, C.addressof(dims), array.ndim)
    array = dense(array)
    if array.nbytes:
        C.memmove(L.value_data(handle), array.ctypes.data, array.nbytes)
    return handle, None


def _list(kind: int, items: list, name: str, port) -> int:
    handles: list[int] = []
    try:
        for item in items:
            handles.append(given(item, name, None, copy=True)[0])
        array = (L.P * max(len(handles), 1))(*handles)
        return _made(L.list_create, kind, C.addressof(array), len(handles))
    finally:
        free_all(handles)


def _map(value: dict, name: str) -> int:
    keys, values = list(value), list(value.values())
    key_array = np.array(keys, dtype=object if keys and isinstance(keys[0], (str, bytes)) else np.int64)
    handles: list[int] = []
    try:
        handles.append(array_in(key_array, name, True)[0])
        lists = values and not np.isscalar(values[0])
        handles.append(
            _list(SEQUENCE, values, name, None) if lists else array_in(_plain(values), name, True)[0]
        )
        return _made(L.map_create, handles[0], handles[1])
    finally:
        free_all(handles)


def _plain(value: Any) -> np.ndarray:
    """Python's own numbers and lists: floats are f32 as in models, whole numbers i64."""
    try:
        array = np.asarray(value)
    except ValueError as wrong:
        raise _bad(f"a list that is no tensor: {wrong}") from None
    if array.dtype.kind == "f" and not isinstance(value, (np.ndarray, np.generic)):
        array = array.astype(np.float32)
    return array


def given(value: Any, name: str, port=None, copy: bool = False) -> tuple[int, Any]:
    """A handle for what a caller gave, which the caller frees, and what must stay alive as long as it.

    `port` says what the model wants: Python's numbers and lists, which have no type of their own, become
    that.
    """
    from . import _value

    if isinstance(value, _value.Value):
        return L.value_share(value._handle), value
    wants = port.kind if port is not None else None
    if wants == "optional":
        if value is None:
            return _list(OPTIONAL, [], name, None), None
        inside = given(value, name, None, True)[0]
        if L.value_kind_of(inside) == OPTIONAL:
            return inside, None
        try:
            items = (L.P * 1)(inside)
            return _made(L.list_create, OPTIONAL, C.addressof(items), 1), None
        finally:
            L.value_free(inside)
    if isinstance(value, np.ndarray):
        return array_in(value, name, copy)
    if isinstance(value, dict):
        return _map(value, name), None
    if isinstance(value, (list, tuple)) and (wants == "sequence" or wants is None):
        return _list(SEQUENCE, list(value), name, port), None
    if value is None:
        raise _bad(f"input '{name}' is None, and is no optional")
    if (
        not isinstance(value, np.generic)
        and hasattr(value, "__dlpack__")
        and hasattr(value, "__dlpack_device__")
    ):
        from . import _dlpack

        return _dlpack.take(value), None
    array = _plain(value)
    if (
        port is not None
        and port.dtype is not None
        and not isinstance(value, np.generic)
        and array.dtype.kind != "O"
        and (array.dtype != port.dtype)
        and not hasattr(value, "__array__")
        and (array.dtype.kind not in "US")
    ):
        if array.dtype.kind == "f" and port.dtype.kind in "iub":
            raise _bad(f"input '{name}' is a list of fractions, the model wants {_dtypes.NAME[port.number]}")
        try:
            array = np.asarray(value, dtype=port.dtype)
        except (ValueError, TypeError, OverflowError) as wrong:
            raise _bad(f"input '{name}': {wrong}") from None
    return array_in(array, name, True)


# ---- out ----
@functools.lru_cache(maxsize=512)
def memory_type(nbytes: int):
    """Memory of a value as a buffer that holds the value: one type a size, as ctypes has it."""

    def release(self, free=L.value_free):
        free(self.handle)

    return type("Memory", (C.c_char * nbytes,), {"__slots__": ("handle",), "__del__": release})


def shape_of(handle: int) -> tuple[int, ...]:
    """A tensor's dims."""
    rank = L.value_rank(handle)
    return tuple((C.c_int64 * rank).from_address(L.value_dims(handle))) if rank else ()


def array_out(handle: int) -> np.ndarray:
    """Takes a tensor on the host: an array over its memory, or, of text, of Python's own."""
    number, shape = L.value_dtype(handle), shape_of(handle)
    if number == _dtypes.STRING:
        try:
            return _text_out(handle, shape)
        finally:
            L.value_free(handle)
    dtype, data = _dtypes.of(number), L.value_data(handle)
    nbytes = L.value_bytes(handle)
    if not data or not nbytes:
        where = L.value_elements(handle) and place_of(handle)
        L.value_free(handle)
        if where:
            raise _bad(f"the tensor lies on {where}: bring it to the cpu first")
        return np.empty(shape, dtype)
    memory = memory_type(nbytes).from_address(data)
    memory.handle = handle
    return np.ndarray(shape, dtype, memory)


def _text_out(handle: int, shape: tuple[int, ...]) -> np.ndarray:
    count, bytes_ = L.value_elements(handle), C.c_size_t()
    out = np.empty(count, dtype=object)
    for k in range(count):
        at = L.value_text(handle, k, C.addressof(bytes_))
        out[k] = C.string_at(at, bytes_.value).decode("utf-8", "surrogateescape")
    return out.reshape(shape)


def place_of(handle: int) -> str:
    """Where a value lies."""
    room = C.create_string_buffer(64)
    L.value_where(handle, C.addressof(room), 64)
    return room.value.decode()


def taken(handle: int) -> Any:
    """Takes a handle: an array, a list, None or what is inside of an optional, a dict."""
    kind = L.value_kind_of(handle)
    if kind == TENSOR:
        if L.value_dtype(handle) != _dtypes.STRING and not L.value_data(handle) and L.value_elements(handle):
            from . import _value

            return _value.Value._of(handle)
        return array_out(handle)
    try:
        if kind == MAP:
            return _map_out(handle)
        if kind == SEQUENCE and L.value_items(handle) and L.value_kind_of(L.value_item(handle, 0)) == MAP:
            return _maps_out(handle)
        items = [taken(L.value_share(L.value_item(handle, k))) for k in range(L.value_items(handle))]
    finally:
        L.value_free(handle)
    if kind == SEQUENCE:
        return items
    return items[0] if items else None


def _map_out(handle: int) -> dict:
    """A map that is borrowed, as a dict."""
    return dict(zip(numbers(L.value_item(handle, 0)), numbers(L.value_item(handle, 1))))


def maps_table(handle: int) -> "tuple[int, int, np.ndarray] | None":
    """Of a sequence of maps that share their keys, as classifiers make it, one a row: the keys, a handle of
    the caller's now, and the type and array of all values. None: it is none."""
    first = L.value_item(handle, 0)
    if not first or L.value_kind_of(first) != MAP:
        return None
    keys, values = L.P(), L.P()
    if L.maps_table(handle, C.addressof(keys), C.addressof(values)):
        return None
    number = L.value_dtype(values.value)
    return keys.value, number, array_out(values.value)


def _maps_out(handle: int) -> list:
    """A sequence of maps. Where they share their keys all of their values are read at once."""
    table = maps_table(handle)
    if not table:
        return [_map_out(L.value_item(handle, k)) for k in range(L.value_items(handle))]
    try:
        names = numbers(table[0])
        return [dict(zip(names, row)) for row in table[2].tolist()]
    finally:
        L.value_free(table[0])


_CTYPES = {
    1: C.c_float,
    2: C.c_uint8,
    3: C.c_int8,
    4: C.c_uint16,
    5: C.c_int16,
    6: C.c_int32,
    7: C.c_int64,
    11: C.c_double,
    12: C.c_uint32,
    13: C.c_uint64,
}


def numbers(handle: int) -> list:
    """Keys or values of a map, which are borrowed, as a list of Python's own."""
    plain = _CTYPES.get(L.value_dtype(handle)) if L.value_kind_of(handle) == TENSOR else None
    if plain is None:
        value = taken(L.value_share(handle))
        return value.tolist() if isinstance(value, np.ndarray) else value
    data = L.value_data(handle)
    return list((plain * L.value_elements(handle)).from_address(data)) if data else []
