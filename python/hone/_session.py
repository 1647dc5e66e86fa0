# SPDX-License-Identifier: Apache-2.0
"""Session: a place to run a model.

`run` is written for few steps in Python and few calls. Behind a run the caches hold the model, not Python,
and each call through ctypes costs a microsecond or more. So small arrays are copied into memory that the
library knows already, and out of it: cheaper than telling it a new address. Large ones are shared: borrowed
by their buffer, and wrapped.
"""

from __future__ import annotations

import ctypes as C
import os
import threading
from array import array
from typing import Any, Mapping, Optional

import numpy as np

from . import _convert, _dtypes, _library as L, _report
from ._model import Model, Port
from ._outputs import Outputs, named
from ._value import Value

_api = C.pythonapi
_get_buffer = C.PYFUNCTYPE(C.c_int, C.c_void_p, C.c_void_p, C.c_int)(("PyObject_GetBuffer", _api))
_release_buffer = C.PYFUNCTYPE(None, C.c_void_p)(("PyBuffer_Release", _api))
_BUFFER_WORDS = 16  # of a Py_buffer, and some more; the first is the pointer
_ndarray = np.ndarray
SMALL = 32768  # bytes: a copy of more takes longer than a call
_NEVER = np.dtype([("no such type", "u1")])


class _In:
    """An input: what fits it as it is, and the room for its call."""

    __slots__ = (
        "name",
        "k",
        "number",
        "dtype",
        "port",
        "dims",
        "dims_at",
        "shape",
        "view",
        "view_at",
        "staged",
        "staged_shape",
        "staged_handle",
    )

    def __init__(self, port: Port, k: int) -> None:
        plain = port.kind == "tensor" and port.number not in (0, _dtypes.STRING)
        self.name, self.port, self.number, self.k = port.name, port, port.number, k
        self.dtype = port.dtype if plain else _NEVER
        self.dims, self.view = (C.c_int64 * 16)(), (C.c_void_p * _BUFFER_WORDS)()
        self.dims_at, self.view_at = C.addressof(self.dims), C.addressof(self.view)
        self.shape: Optional[tuple[int, ...]] = None  # that `dims` holds
        self.staged_shape: Optional[tuple[int, ...]] = None
        self.staged: Optional[np.ndarray] = None
        self.staged_handle = 0

    def set_dims(self, shape: tuple[int, ...]) -> None:
        """The dims of the next borrowed array."""
        if len(shape) > 16:
            raise L.Error(f"input '{self.name}' has {len(shape)} dims, at most 16 are possible")
        self.dims[: len(shape)] = shape
        self.shape = shape

    def stage(self, shape: tuple[int, ...], drop=L.value_free) -> None:
        """Memory of our own for a small array of this shape, and a value over it. Borrowed, so that the
        library copies what it wants to keep."""
        self.set_dims(shape)
        memory, handle = np.empty(shape, self.dtype), L.P()
        L.check(
            L.tensor_borrow(self.number, self.dims_at, len(shape), memory.ctypes.data, C.addressof(handle))
        )
        if self.staged_handle:
            drop(self.staged_handle)
        self.staged, self.staged_shape, self.staged_handle = memory, shape, handle.value

    def __del__(self, drop=L.value_free) -> None:
        if getattr(self, "staged_handle", None):
            drop(self.staged_handle)


class _Out:
    """An output: of a small one the value that the last run filled, and the next may fill again; or, where
    each run makes a new one, room of the shape it had, to which one call copies it."""

    __slots__ = ("name", "k", "plain", "maps", "handle", "array", "room", "room_at", "number", "rank", "dims",
                 "dims_at", "keys", "names")

    def __init__(self, port: Port, k: int) -> None:
        self.name, self.k = port.name, k
        self.plain = port.kind == "tensor" and port.number != _dtypes.STRING
        self.maps = port.kind == "sequence"
        self.handle, self.array = -1, None
        self.room: Optional[np.ndarray] = None
        self.keys, self.names = 0, []  # of maps, one a row, that share them

    def make_room(self, number: int, like: np.ndarray, keys: int = 0, drop=L.value_free) -> None:
        """For values as this one; `keys` is a handle of our own."""
        if self.keys:
            drop(self.keys)
        self.keys, self.names = keys, _convert.numbers(keys) if keys else []
        self.number, self.rank, self.room = number, like.ndim, like.copy()
        self.dims = (C.c_int64 * (like.ndim or 1))(*like.shape)
        self.dims_at, self.room_at = C.addressof(self.dims), self.room.ctypes.data

    def __del__(self, drop=L.value_free) -> None:
        if getattr(self, "keys", 0):
            drop(self.keys)


class Session:
    """A place to run a model: its plans by shape, and the memory they need.

    Parameters: `model`, a path, bytes, an `onnx.ModelProto`, `zoo:NAME` or a `hone.Model`, which sessions may
    share; `device`, "cpu" or another by name and number, "cuda:0"; `place`, lines "PATTERN=DEVICE" for nodes
    that run elsewhere; `precision`, "f32", "bf16" or "f16", on CUDA "tf32"; `threads` of a run at most, 0 for
    all cores; `stay`, whether outputs stay on the device that made them; `plans` kept for different shapes;
    `profile`, 1 or 2, to time each step; `interpret`, to run all by the definition; `limit_ms`, after which a
    run is stopped; `wisdom`, a file of measured choices.

    >>> session = hone.Session(relu)
    >>> outputs = session.run({"x": np.array([-1, 2], np.float32)})
    >>> outputs["y"]
    array([0., 2.], dtype=float32)
    >>> (y,) = outputs
    >>> dict(outputs)
    {'y': array([0., 2.], dtype=float32)}

    A session runs one thing at a time: other threads that call it wait. Threads that shall run at the same
    time have a session each, on one model.
    """

    def __init__(
        self,
        model: Any,
        *,
        device: Optional[str] = None,
        place: Optional[str] = None,
        precision: str = "f32",
        threads: int = 0,
        stay: bool = False,
        plans: int = 0,
        profile: int = 0,
        interpret: bool = False,
        limit_ms: int = 0,
        wisdom: "str | os.PathLike[str] | None" = None,
    ) -> None:
        self._handle: Optional[int] = None
        self._outs: list[_Out] = []
        self.model = model if isinstance(model, Model) else Model(model)
        for name, value in (("device", device), ("place", place)):
            if value is not None and not isinstance(value, str):
                raise TypeError(f"{name} is text, not {type(value).__name__}")
        for name, value, most in (
            ("threads", threads, 1 << 16),
            ("plans", plans, 1 << 20),
            ("profile", profile, 2),
            ("limit_ms", limit_ms, 1 << 50),
        ):
            if not 0 <= int(value) <= most:
                raise L.Error(f"{name} is {value}; it may be from 0 to {most}")
        options = L.Options(
            threads=int(threads),
            plans=int(plans),
            interpret=bool(interpret),
            profile=int(profile),
            limit_ms=int(limit_ms),
            stay=bool(stay),
            precision=60 if precision == "tf32" else _dtypes.parse(precision, ("f32", "bf16", "f16", "tf32")),
            device=device.encode() if device is not None else None,
            place=place.encode() if place is not None else None,
            wisdom=os.fsencode(wisdom) if wisdom is not None else None,
        )
        out = L.P()
        L.check(L.session_create(self.model._handle, C.addressof(options), C.addressof(out)))
        self._handle = out.value
        self._lock = threading.Lock()
        self._stay = bool(stay)
        inputs, outputs = self.model.inputs, self.model.outputs
        self._call = L.session_run
        self._values_in, self._values_out = array("Q", [0] * (len(inputs) + 1)), array(
            "Q", [0] * (len(outputs) + 1)
        )
        self._in_at, self._out_at = self._values_in.buffer_info()[0], self._values_out.buffer_info()[0]
        self._ins = [_In(port, k) for k, port in enumerate(inputs)]
        self._outs = [_Out(port, k) for k, port in enumerate(outputs)]
        self._class = named(tuple(port.name for port in outputs))
        self._out_index = {port.name: k for k, port in enumerate(outputs)}
        self._optional = {port.name for port in inputs if port.kind == "optional"}

    def __del__(self, free=L.session_free) -> None:
        if getattr(self, "_handle", None):
            self._clear_outputs()
            free(self._handle)

    @property
    def inputs(self) -> tuple[Port, ...]:
        """The model's inputs."""
        return self.model.inputs

    @property
    def outputs(self) -> tuple[Port, ...]:
        """The model's outputs."""
        return self.model.outputs

    def run(
        self,
        feeds: Optional[Mapping[str, Any]] = None,
        out: Optional[Mapping[str, np.ndarray]] = None,
        values: bool = False,
    ) -> Outputs:
        """One run.

        `feeds`: a value for each input by name: arrays, tensors of other libraries (DLPack), lists, text,
        dicts, `Value`s. `out`: arrays to be filled, by the outputs' names; they are what the result holds
        then. `values`: outputs are `Value`s, as the library has them, instead of arrays.
        """
        with self._lock:
            try:
                if type(feeds) is dict and out is None and not values and len(feeds) == len(self._ins):
                    for spec in self._ins:  # the way of a call like the last one
                        array = feeds.get(spec.name)
                        if (
                            type(array) is not _ndarray
                            or array.shape != spec.staged_shape
                            or array.dtype is not spec.dtype
                        ):
                            return self._run(feeds, None, False)
                        spec.staged[...] = array
                    status = self._call(self._handle, self._in_at, self._out_at)
                    if status:
                        L.check(status)
                    at = self._values_out
                    return self._class(
                        [
                            kept.array.copy() if kept.handle == at[kept.k] else self._new_output(kept)
                            for kept in self._outs
                        ]
                    )
                return self._run({} if feeds is None else feeds, out, values)
            except BaseException:
                self._clear_outputs()
                raise

    def _run(
        self, feeds: Mapping[str, Any], out: Optional[Mapping[str, np.ndarray]], values: bool
    ) -> Outputs:
        if not hasattr(feeds, "keys"):
            raise TypeError(f"feeds is a dict, from an input's name to its value, not {type(feeds).__name__}")
        if len(feeds) != len(self._ins) or any(spec.name not in feeds for spec in self._ins):
            feeds = self._complete(feeds)
        lent: list[Any] = []  # what must live until the run is over, and how to end that
        try:
            for spec in self._ins:
                self._give(spec, feeds[spec.name], lent)
            if out is not None or values:
                self._clear_outputs()
            if out is not None:
                self._lend(out, lent)
            L.check(self._call(self._handle, self._in_at, self._out_at))
        finally:
            for spec, _, view_at in lent:
                if view_at is not None:
                    _release_buffer(view_at)
                if spec is not None:
                    L.value_free(self._values_in[spec.k])
                    self._values_in[spec.k] = spec.staged_handle
        if values or out is not None:
            return self._collect(out, values)
        at = self._values_out
        return self._class(
            [
                kept.array.copy() if kept.handle == at[kept.k] else self._new_output(kept)
                for kept in self._outs
            ]
        )

    def _give(self, spec: _In, array: Any, lent: list) -> None:
        """One input's value for a run."""
        at = self._values_in
        if type(array) is _ndarray and array.dtype == spec.dtype:
            shape = array.shape
            if shape == spec.staged_shape or array.nbytes <= SMALL:
                if shape != spec.staged_shape:
                    spec.stage(shape)
                    at[spec.k] = spec.staged_handle
                spec.staged[...] = array
                return
            if array.flags.c_contiguous and array.flags.aligned:
                if shape != spec.shape:
                    spec.set_dims(shape)
                _get_buffer(id(array), spec.view_at, 0)
                out = L.P()
                status = L.tensor_borrow(
                    spec.number, spec.dims_at, len(shape), spec.view[0], C.addressof(out)
                )
                if status:
                    _release_buffer(spec.view_at)
                    L.check(status)
                at[spec.k] = out.value
                lent.append((spec, array, spec.view_at))
                return
        at[spec.k], keep = _convert.given(array, spec.name, spec.port)
        lent.append((spec, keep, None))

    def _new_output(self, kept: _Out) -> Any:
        """An output that is not where the last one was: made anew, of another shape, large, or no tensor of
        numbers."""
        handle = self._values_out[kept.k]
        if kept.room is not None:
            if not kept.keys:
                if L.value_copy_to(handle, kept.number, kept.dims_at, kept.rank, kept.room_at):
                    kept.handle = -1
                    return kept.room.copy()
            elif L.maps_copy_to(handle, kept.keys, kept.number, kept.dims_at, kept.room_at):
                names = kept.names
                return [dict(zip(names, row)) for row in kept.room.tolist()]
        before, kept.handle, kept.array = kept.array, -1, None
        if kept.plain and not self._stay and 0 < L.value_bytes(handle) <= SMALL and L.value_data(handle):
            memory = (C.c_char * L.value_bytes(handle)).from_address(L.value_data(handle))
            number = L.value_dtype(handle)
            array = np.ndarray(_convert.shape_of(handle), _dtypes.of(number), memory)
            kept.handle, kept.array = handle, array
            if before is not None and before.shape == array.shape and before.dtype == array.dtype:
                kept.make_room(number, array)
            return array.copy()
        if kept.maps and (table := _convert.maps_table(handle)):
            keys, number, rows = table
            if 0 < rows.nbytes <= SMALL:
                kept.make_room(number, rows, keys)
            else:
                L.value_free(keys)
        self._values_out[kept.k] = 0
        return _convert.taken(handle)

    def _clear_outputs(self) -> None:
        for kept in self._outs:
            kept.handle, kept.array = -1, None
            if self._values_out[kept.k]:
                L.value_free(self._values_out[kept.k])
                self._values_out[kept.k] = 0

    def _complete(self, feeds: Mapping[str, Any]) -> Mapping[str, Any]:
        """Optional inputs may be left out; any other that is missing, or none of the model's, is told."""
        if not hasattr(feeds, "keys"):
            raise TypeError(f"feeds is a dict, from an input's name to its value, not {type(feeds).__name__}")
        names = [spec.name for spec in self._ins]
        strange = [name for name in feeds if name not in names]
        if strange:
            raise L.Error(f"'{strange[0]}' is no input; there are {', '.join(names) or 'none'}")
        missing = [name for name in names if name not in feeds and name not in self._optional]
        if missing:
            raise L.Error(f"input '{missing[0]}' is missing")
        return {name: feeds.get(name) for name in names}

    def _lend(self, out: Mapping[str, np.ndarray], lent: list) -> None:
        """Arrays that are to be filled."""
        for name, array in out.items():
            k = self._out_index.get(name)
            if k is None:
                raise L.Error(f"'{name}' is no output; there are {', '.join(self._out_index)}")
            if not isinstance(array, np.ndarray) or not array.flags.carray or not array.dtype.isnative:
                raise L.Error(f"out '{name}' must be an array that is dense and may be written")
            number = _dtypes.number(array.dtype)
            if not number or number == _dtypes.STRING:
                raise L.Error(f"out '{name}' is {array.dtype}, which cannot be filled")
            self._values_out[k], keep = _convert.array_in(array, name, False)
            lent.append((None, keep, None))
        self._given = [self._values_out[k] for k in range(len(self._outs))]

    def _collect(self, out: Optional[Mapping[str, np.ndarray]], values: bool) -> Outputs:
        """The outputs where some were lent, or where values are wanted."""
        result: list[Any] = []
        for k, spec in enumerate(self._outs):
            handle = self._values_out[k]
            if out is not None and spec.name in out:
                if handle != self._given[k] or L.value_data(handle) != out[spec.name].ctypes.data:
                    made = repr(Value._of(L.value_share(handle)))
                    raise L.Error(
                        f"out '{spec.name}' is {out[spec.name].dtype}{list(out[spec.name].shape)}, "
                        f"the run made {made}"
                    )
                self._values_out[k] = 0
                L.value_free(handle)
                result.append(out[spec.name])
                continue
            self._values_out[k] = 0
            result.append(Value._of(handle) if values else _convert.taken(handle))
        return self._class(result)

    __call__ = run

    def report(self, topic: str = "steps") -> Any:
        """What the library says after a run: "memory", "copies", "steps" or "wisdom"."""
        with self._lock:
            return _report.of(L.text(L.session_report, self._handle, topic.encode()))

    def __repr__(self) -> str:
        return f"<hone.Session of {self.model!r}>"

    def _repr_html_(self) -> str:
        return self.model._repr_html_()
