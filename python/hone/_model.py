# SPDX-License-Identifier: Apache-2.0
"""Model: an ONNX model, read, checked and compiled; and what it says of its inputs and outputs."""

from __future__ import annotations

import ctypes as C
import os
from typing import Any, Optional, Union

import numpy as np

from . import _convert, _dtypes, _library as L, _report

Dim = Union[int, str, None]


class Port:
    """An input or output: `name`, `kind` (tensor, sequence, optional, map), `dtype` (numpy's, None where not
    known before a run), `shape` (numbers, names of free dims, None; None as a whole where the rank is not
    known), `type` in ONNX's words."""

    __slots__ = ("name", "kind", "dtype", "shape", "type", "number", "_text")

    def __init__(self, port: L.PortC, said: Optional[dict]) -> None:
        self.name = port.name.decode("utf-8", "replace")
        self.kind = _convert.KINDS[port.kind]
        self.number = port.dtype
        self.dtype: Optional[np.dtype] = _dtypes.of(port.dtype) if port.dtype else None
        self._text = port.shape.decode("utf-8", "replace")
        names = said["dims"] if said else None
        if port.rank < 0:
            self.shape: Optional[tuple[Dim, ...]] = None
        else:
            fits = names is not None and len(names) == port.rank
            self.shape = tuple(
                (
                    port.dims[k]
                    if port.dims[k] >= 0
                    else names[k] if fits and isinstance(names[k], str) else None
                )
                for k in range(port.rank)
            )
        self.type = (
            said["type"]
            if said and "undefined" not in said["type"] and said["type"]
            else (f"tensor({_dtypes.ONNX_NAME.get(port.dtype, 'undefined')})")
        )

    def __repr__(self) -> str:
        return f"<{self.name}: {self._text}>"


def _path(model: Any) -> Optional[bytes]:
    return os.fsencode(model) if isinstance(model, (str, os.PathLike)) else None


class Model:
    """A model, from a path, the bytes of a file, an `onnx.ModelProto`, or `zoo:NAME`. Immutable: any number
    of sessions and threads share it, with its weights.

    `open` names initializers that the file lists as inputs too, and that a run shall give (a path's model
    only).

    >>> model = hone.Model(relu)
    >>> model.inputs
    (<x: f32[n]>,)
    >>> model.about["producer_name"]
    'docs'
    """

    def __init__(self, model: Any, *, open: "tuple[str, ...] | list[str]" = ()) -> None:
        out, path = L.P(), _path(model)
        self._handle: Optional[int] = None
        if path is not None:
            names = (C.c_char_p * max(len(open), 1))(*[n.encode() for n in open])
            L.check(L.model_load_open(path, C.addressof(names), len(open), C.addressof(out)))
        else:
            if open:
                raise L.Error("open: a model from memory has no defaults left open; give its path")
            if hasattr(model, "SerializeToString"):
                model = model.SerializeToString()
            try:
                view = np.frombuffer(model, np.uint8)
            except (TypeError, ValueError, BufferError):
                raise TypeError(
                    f"a model is a path, bytes or an onnx.ModelProto, not {type(model).__name__}"
                ) from None
            L.check(L.model_load_memory(view.ctypes.data, view.nbytes, C.addressof(out)))
        self._handle = out.value
        self.about: dict = self.report("file")
        self.inputs = self._ports(L.model_inputs, L.model_input, self.about["inputs"])
        self.outputs = self._ports(L.model_outputs, L.model_output, self.about["outputs"])

    def _ports(self, count, port, said: list) -> tuple[Port, ...]:
        by_name = {row["name"]: row for row in said}
        ports = [port(self._handle, k).contents for k in range(count(self._handle))]
        return tuple(Port(p, by_name.get(p.name.decode("utf-8", "replace"))) for p in ports)

    def __del__(self, free=L.model_free) -> None:
        if getattr(self, "_handle", None):
            free(self._handle)

    def report(self, topic: str = "summary") -> Any:
        """What the library says of the model: "summary", "nodes", "passes", "text", "graph" or "file"."""
        return _report.of(L.text(L.model_report, self._handle, topic.encode()))

    def explain(self, node: "str | int", code: str = "") -> str:
        """What a node means: its op row and its instance; with `code` "c", "opencl", "cuda" or "hip" its
        kernel too."""
        languages = ("", "c", "opencl", "cuda", "hip")
        if code not in languages:
            raise ValueError(f"'{code}' is none of {', '.join(languages[1:])}")
        return L.text(L.model_explain, self._handle, str(node).encode(), languages.index(code))

    def save(self, path: "str | os.PathLike[str]") -> None:
        """Writes the optimized graph as a standard ONNX model, for other runtimes."""
        L.check(L.model_save(self._handle, os.fsencode(path)))

    def __repr__(self) -> str:
        return f"<hone.Model {', '.join(map(repr, self.inputs))} -> {', '.join(map(repr, self.outputs))}>"

    def _repr_html_(self) -> str:
        return self.report()._repr_html_()
