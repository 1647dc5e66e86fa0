# SPDX-License-Identifier: Apache-2.0
"""Value: what goes into a run and comes out, as the library has it: typed, counted, on the host or on a
device."""

from __future__ import annotations

import ctypes as C
import os
from typing import Any

import numpy as np

from . import _convert, _dlpack, _dtypes, _library as L


class Value:
    """A tensor, sequence, optional or map of the library's own.

    Sessions take arrays and give arrays; a `Value` is for what numpy has no place for: memory of a device,
    and types that another library reads by DLPack.

    >>> v = hone.Value([[1.0, 2.0]])
    >>> v
    <hone.Value f32[1, 2] on cpu>
    >>> v.numpy()
    array([[1., 2.]], dtype=float32)
    """

    __slots__ = ("_handle", "__weakref__")

    def __init__(self, value: Any) -> None:
        if isinstance(value, (list, tuple)) and not any(hasattr(item, "__array__") for item in value):
            value = _convert._plain(value)
        self._handle, _ = _convert.given(value, "value", None, copy=True)

    @classmethod
    def _of(cls, handle: int) -> "Value":
        self = object.__new__(cls)
        self._handle = handle
        return self

    def __del__(self, free=L.value_free) -> None:
        handle = getattr(self, "_handle", None)
        if handle:
            free(handle)

    @classmethod
    def read(cls, path: "str | os.PathLike[str]", kind: str = "tensor") -> "Value":
        """Reads a .npy file, or a .pb file of ONNX's test data: a tensor, sequence, optional or map."""
        out = L.P()
        L.check(L.value_read(os.fsencode(path), _convert.KINDS.index(kind), 0, None, 0, C.addressof(out)))
        return cls._of(out.value)

    def write(self, path: "str | os.PathLike[str]") -> None:
        """Writes a .npy, .bin or .pb file, by the ending."""
        L.check(L.value_write(self._handle, os.fsencode(path)))

    @property
    def kind(self) -> str:
        """tensor, sequence, optional or map."""
        return _convert.KINDS[L.value_kind_of(self._handle)]

    @property
    def dtype(self) -> "np.dtype | None":
        """Of the elements; of a list, of the tensors in it where they agree."""
        number = L.value_dtype(self._handle)
        return _dtypes.of(number) if number else None

    @property
    def shape(self) -> tuple[int, ...]:
        """Of a tensor."""
        return _convert.shape_of(self._handle)

    @property
    def device(self) -> str:
        """Where it lies: "cpu", or a device by name and number."""
        return _convert.place_of(self._handle)

    def to(self, device: str) -> "Value":
        """A copy in the memory of a device, or back on the host, "cpu"."""
        out = L.P()
        L.check(L.value_bring(self._handle, device.encode(), C.addressof(out)))
        return Value._of(out.value)

    def numpy(self) -> Any:
        """The array over this value's memory, nothing copied; of a list, map or optional its members."""
        if self.kind == "tensor":
            return _convert.array_out(L.value_share(self._handle))
        return _convert.taken(L.value_share(self._handle))

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        array = np.asarray(self.numpy())
        if dtype is not None and array.dtype != dtype:
            if copy is False:
                raise ValueError(f"{array.dtype} does not become {np.dtype(dtype)} without a copy")
            return array.astype(dtype)
        return array.copy() if copy else array

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        if dl_device is not None and tuple(map(int, dl_device)) != self.__dlpack_device__():
            raise BufferError("bring the value to that device first: Value.to")
        if copy:
            return _dlpack.give(self.to(self.device)._handle, bool(max_version and max_version[0] >= 1))
        return _dlpack.give(self._handle, bool(max_version and max_version[0] >= 1))

    def __dlpack_device__(self) -> tuple[int, int]:
        if self.device == "cpu":
            return _dlpack.CPU, 0
        out = L.P()
        L.check(L.value_to_dlpack(self._handle, C.addressof(out)))
        device = C.c_int32.from_address(out.value + 8).value, C.c_int32.from_address(out.value + 12).value
        _dlpack._Deleter(C.c_void_p.from_address(out.value + 56).value)(out.value)
        return device

    def __repr__(self) -> str:
        name = _dtypes.NAME.get(L.value_dtype(self._handle), "")
        if self.kind == "tensor":
            return f"<hone.Value {name}{list(self.shape)} on {self.device}>"
        return f"<hone.Value {self.kind} of {L.value_items(self._handle)}{' ' + name if name else ''}>"
