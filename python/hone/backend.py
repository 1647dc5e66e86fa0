# SPDX-License-Identifier: Apache-2.0
"""ONNX's backend interface (onnx.backend.base), so that onnx.backend.test.BackendTest runs with it as it is:

backend_test = onnx.backend.test.BackendTest(hone.backend, __name__)
"""

from __future__ import annotations

from typing import Any, Sequence

import numpy as np

from ._session import Session

__all__ = ["BackendRep", "is_compatible", "prepare", "run_model", "run_node", "supports_device"]
_DEVICES = {"CPU": None, "CUDA": "cuda"}


class BackendRep:
    """A model that is ready to run."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def run(self, inputs: Any, **kwargs: Any) -> tuple:
        """The outputs for inputs in the model's order, or by name."""
        ports = self.session.inputs
        if isinstance(inputs, dict):
            return self.session.run(inputs)
        if isinstance(inputs, np.ndarray) and len(ports) == 1:
            inputs = [inputs]
        if len(inputs) > len(ports):
            raise ValueError(f"{len(inputs)} inputs for a model that has {len(ports)}")
        return self.session.run({port.name: value for port, value in zip(ports, inputs)})


def supports_device(device: str) -> bool:
    """CPU always, CUDA where a GPU is here."""
    kind = device.split(":")[0].upper()
    if kind == "CUDA":
        from .onnxruntime import get_available_providers

        return len(get_available_providers()) > 1
    return kind == "CPU"


def is_compatible(model: Any, device: str = "CPU", **kwargs: Any) -> bool:
    """Whether to try: the model's own words are for `prepare`, which says what is wrong."""
    return supports_device(device)


def prepare(model: Any, device: str = "CPU", **kwargs: Any) -> BackendRep:
    """A model, made ready; keywords are those of hone.Session."""
    kind, _, number = device.partition(":")
    if kind.upper() not in _DEVICES:
        raise ValueError(f"device '{device}' is none of {', '.join(_DEVICES)}")
    place = _DEVICES[kind.upper()]
    return BackendRep(Session(model, device=f"{place}:{number or 0}" if place else None, **kwargs))


def run_model(model: Any, inputs: Any, device: str = "CPU", **kwargs: Any) -> tuple:
    """Makes a model ready and runs it once."""
    return prepare(model, device, **kwargs).run(inputs)


def run_node(
    node: Any, inputs: Sequence[Any], device: str = "CPU", outputs_info: Any = None, **kwargs: Any
) -> tuple:
    """One node, at the newest opset that Hone and the onnx package both have; outputs as the inputs' types
    make them."""
    from onnx import defs, helper

    names = [name for name in node.input if name]
    if len(names) != len(inputs):
        raise ValueError(f"{len(inputs)} inputs for a node that reads {len(names)}")
    arrays = [np.asarray(value) for value in inputs]
    ports = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for name, a in zip(names, arrays)
    ]
    outputs = [helper.make_empty_tensor_value_info(name) for name in node.output if name]
    opset = kwargs.pop("opset_version", min(defs.onnx_opset_version(), 28))
    graph = helper.make_graph([node], "node", ports, outputs)
    sets = [helper.make_opsetid("", opset)] + ([helper.make_opsetid(node.domain, 1)] if node.domain else [])
    return run_model(helper.make_model(graph, opset_imports=sets, ir_version=10), arrays, device, **kwargs)
