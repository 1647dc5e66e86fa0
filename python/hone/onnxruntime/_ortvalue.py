# SPDX-License-Identifier: Apache-2.0
"""OrtValue and IOBinding: values that a program holds, and runs that read and fill them."""

from __future__ import annotations

import ctypes as C
from typing import Any, Optional

import numpy as np

from .. import _dlpack, _dtypes
from .._value import Value
from ._errors import make, refused


def dtype_of(element_type: Any) -> np.dtype:
    """numpy's dtype for what a caller names an element type: a dtype, a type, or ONNX's number."""
    if isinstance(element_type, (int, np.integer)):
        return _dtypes.of(int(element_type))
    return np.dtype(element_type)


def _device(device_type: str, device_id: int) -> str:
    if device_type == "cpu":
        return "cpu"
    if device_type == "cuda":
        return f"cuda:{device_id}"
    raise refused(f"device '{device_type}'")


class OrtValue:
    """An array, a list of arrays, or a value on a device."""

    __slots__ = ("_value",)

    def __init__(self, value: Any) -> None:
        self._value = value._value if isinstance(value, OrtValue) else value

    @staticmethod
    def ortvalue_from_numpy(
        numpy_obj: np.ndarray, device_type: str = "cpu", device_id: int = 0
    ) -> "OrtValue":
        """An OrtValue over an array; on a device, a copy of it."""
        device = _device(device_type, device_id)
        array = np.ascontiguousarray(numpy_obj).reshape(np.shape(numpy_obj))
        return OrtValue(array if device == "cpu" else Value(array).to(device))

    @staticmethod
    def ortvalue_from_numpy_with_onnx_type(data: np.ndarray, onnx_element_type: int) -> "OrtValue":
        """An array's bytes as another type of the same size."""
        return OrtValue(np.ascontiguousarray(data).view(dtype_of(onnx_element_type)))

    @staticmethod
    def ortvalue_from_shape_and_type(
        shape, element_type, device_type: str = "cpu", device_id: int = 0
    ) -> "OrtValue":
        """Memory of that shape and type; its contents are zero."""
        return OrtValue.ortvalue_from_numpy(
            np.zeros(tuple(shape), dtype_of(element_type)), device_type, device_id
        )

    @staticmethod
    def from_dlpack(data: Any, is_bool_tensor: bool = False) -> "OrtValue":
        """Somebody's tensor; on the host it is shared."""
        value = Value(data) if not isinstance(data, np.ndarray) else data
        if isinstance(value, Value) and value.device == "cpu":
            value = value.numpy()
        if is_bool_tensor and isinstance(value, np.ndarray) and value.dtype == np.uint8:
            value = value.view(np.bool_)
        return OrtValue(value)

    def update_inplace(self, np_arr: np.ndarray) -> None:
        """Fills the memory with an array of the same type and shape."""
        if not isinstance(self._value, np.ndarray):
            raise refused("update_inplace of what is not on the host")
        if np_arr.dtype != self._value.dtype or np_arr.shape != self._value.shape:
            raise make(
                "InvalidArgument",
                f"update_inplace wants {self._value.dtype}{list(self._value.shape)}, "
                f"not {np_arr.dtype}{list(np_arr.shape)}",
            )
        self._value[...] = np_arr

    def numpy(self) -> Any:
        """The array; of a device a copy."""
        if isinstance(self._value, Value):
            return (self._value if self._value.device == "cpu" else self._value.to("cpu")).numpy()
        return self._value

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        array = np.asarray(self.numpy(), dtype=dtype)
        return array.copy() if copy else array

    def data_ptr(self) -> int:
        """The address of the first element on the host."""
        if isinstance(self._value, np.ndarray):
            return self._value.ctypes.data
        raise refused("data_ptr of what is not on the host (use __dlpack__)")

    def device_name(self) -> str:
        """cpu or cuda."""
        return self._value.device.split(":")[0] if isinstance(self._value, Value) else "cpu"

    def shape(self) -> list:
        """Of a tensor."""
        return list(self._value.shape)

    def element_type(self) -> int:
        """ONNX's number of the type of elements."""
        return _dtypes.number(self._value.dtype)

    def data_type(self) -> str:
        """In ONNX's words: tensor(float)."""
        if self.is_tensor():
            return f"tensor({_dtypes.ONNX_NAME[self.element_type()]})"
        inside = (
            OrtValue(self._value[0]).data_type()
            if isinstance(self._value, list) and self._value
            else "tensor(float)"
        )
        return f"seq({inside})"

    def tensor_size_in_bytes(self) -> int:
        """Of a tensor."""
        return int(np.prod(self._value.shape)) * self._value.dtype.itemsize

    def has_value(self) -> bool:
        """Whether there is something in it."""
        return self._value is not None

    def is_tensor(self) -> bool:
        """A tensor?"""
        return isinstance(self._value, np.ndarray) or (
            isinstance(self._value, Value) and self._value.kind == "tensor"
        )

    def is_sparse_tensor(self) -> bool:
        """Never."""
        return False

    def is_tensor_sequence(self) -> bool:
        """A list of tensors?"""
        return isinstance(self._value, list)

    def __dlpack__(self, *, stream=None, **how):
        held = self._value if isinstance(self._value, Value) else Value(_Shared(self._value))
        return held.__dlpack__(stream=stream, **how)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._value.__dlpack_device__() if isinstance(self._value, Value) else (_dlpack.CPU, 0)


class _Shared:
    """An array as DLPack and nothing else, so that it is shared and not copied."""

    def __init__(self, array: np.ndarray) -> None:
        self.__dlpack__, self.__dlpack_device__ = array.__dlpack__, array.__dlpack_device__


class OrtDevice:
    """A place of memory: a kind and a number."""

    def __init__(self, name: str = "cpu", device_id: int = 0) -> None:
        self._name, self._id = name, device_id

    @staticmethod
    def make(ort_device_name: str, device_id: int) -> "OrtDevice":
        """By name."""
        return OrtDevice(ort_device_name, device_id)

    def device_id(self) -> int:
        """Its number."""
        return self._id

    def device_type(self) -> str:
        """Its kind."""
        return self._name


class IOBinding:
    """Inputs and outputs of runs, bound once."""

    def __init__(self, session) -> None:
        self._session = session
        self._inputs: dict[str, Any] = {}
        self._outputs: dict[str, Optional[Any]] = {}
        self._device: dict[str, str] = {}
        self._results: list[OrtValue] = []

    def bind_cpu_input(self, name: str, arr_on_cpu: np.ndarray) -> None:
        """An array as an input."""
        self._inputs[name] = arr_on_cpu

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        """An OrtValue as an input."""
        self._inputs[name] = ortvalue._value

    def bind_input(self, name, device_type, device_id, element_type, shape, buffer_ptr) -> None:
        """Memory at an address as an input; the caller keeps it."""
        self._inputs[name] = self._at(device_type, element_type, shape, buffer_ptr)

    def bind_output(
        self, name, device_type="cpu", device_id=0, element_type=None, shape=None, buffer_ptr=None
    ) -> None:
        """An output, made by the run, or written to memory at an address."""
        self._device[name] = _device(device_type, device_id)
        self._outputs[name] = (
            None if buffer_ptr is None else self._at(device_type, element_type, shape, buffer_ptr)
        )

    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue) -> None:
        """An OrtValue that the run fills."""
        if not isinstance(ortvalue._value, np.ndarray):
            raise refused("an OrtValue on a device as an output to fill (bind_output makes one there)")
        self._outputs[name], self._device[name] = ortvalue._value, "cpu"

    @staticmethod
    def _at(device_type: str, element_type: Any, shape, buffer_ptr: int) -> np.ndarray:
        if device_type != "cpu":
            raise refused(
                f"bind an address of device '{device_type}' (use bind_ortvalue_input with from_dlpack)"
            )
        dtype, shape = dtype_of(element_type), tuple(int(d) for d in shape)
        nbytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        if not nbytes:
            return np.empty(shape, dtype)
        return np.ndarray(shape, dtype, (C.c_char * nbytes).from_address(buffer_ptr))

    def get_outputs(self) -> list[OrtValue]:
        """What the last run gave, in the order in which outputs were bound."""
        return self._results

    get_outputs_as_ortvaluevector = get_outputs

    def copy_outputs_to_cpu(self) -> list:
        """The same as arrays."""
        return [value.numpy() for value in self._results]

    def clear_binding_inputs(self) -> None:
        """Forgets the inputs."""
        self._inputs.clear()

    def clear_binding_outputs(self) -> None:
        """Forgets the outputs."""
        self._outputs.clear(), self._device.clear()
        self._results = []

    def synchronize_inputs(self) -> None:
        """Nothing to do: a run waits for what it reads."""

    def synchronize_outputs(self) -> None:
        """Nothing to do: a run is over when it returns."""
