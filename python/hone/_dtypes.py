# SPDX-License-Identifier: Apache-2.0
"""Types of elements: Hone's numbers (those of ONNX), Hone's names, numpy's dtypes. Small types are
ml_dtypes'."""

from __future__ import annotations

import functools

import numpy as np

STRING = 8
# Number, Hone's name, numpy's or ml_dtypes' name, ONNX's name.
_ROWS = (
    (1, "f32", "float32", "float"),
    (2, "u8", "uint8", "uint8"),
    (3, "i8", "int8", "int8"),
    (4, "u16", "uint16", "uint16"),
    (5, "i16", "int16", "int16"),
    (6, "i32", "int32", "int32"),
    (7, "i64", "int64", "int64"),
    (8, "str", "object", "string"),
    (9, "bool", "bool", "bool"),
    (10, "f16", "float16", "float16"),
    (11, "f64", "float64", "double"),
    (12, "u32", "uint32", "uint32"),
    (13, "u64", "uint64", "uint64"),
    (14, "c64", "complex64", "complex64"),
    (15, "c128", "complex128", "complex128"),
    (16, "bf16", "bfloat16", "bfloat16"),
    (17, "f8e4m3fn", "float8_e4m3fn", "float8e4m3fn"),
    (18, "f8e4m3fnuz", "float8_e4m3fnuz", "float8e4m3fnuz"),
    (19, "f8e5m2", "float8_e5m2", "float8e5m2"),
    (20, "f8e5m2fnuz", "float8_e5m2fnuz", "float8e5m2fnuz"),
    (21, "u4", "uint4", "uint4"),
    (22, "i4", "int4", "int4"),
    (23, "f4e2m1", "float4_e2m1fn", "float4e2m1"),
    (24, "f8e8m0", "float8_e8m0fnu", "float8e8m0"),
    (25, "u2", "uint2", "uint2"),
    (26, "i2", "int2", "int2"),
)
NAME = {number: name for number, name, _, _ in _ROWS}
ONNX_NAME = {number: onnx for number, _, _, onnx in _ROWS}
_NUMPY_NAME = {number: numpy_name for number, _, numpy_name, _ in _ROWS}
_NUMBER = {numpy_name: number for number, _, numpy_name, _ in _ROWS}
NUMBER_OF = {**_NUMBER, **{name: number for number, name, _, _ in _ROWS}}
_PLAIN = frozenset(range(1, 16))


@functools.lru_cache(maxsize=None)
def of(number: int) -> np.dtype:
    """numpy's dtype for Hone's number; text is `object`."""
    if number in _PLAIN:
        return np.dtype(_NUMPY_NAME[number])
    import ml_dtypes  # takes a while: only where it is wanted

    return np.dtype(getattr(ml_dtypes, _NUMPY_NAME[number]))


@functools.lru_cache(maxsize=None)
def number(dtype: np.dtype) -> int:
    """Hone's number for numpy's dtype in this machine's byte order; 0 for what Hone does not have."""
    if dtype.kind in "OUS" or dtype.kind == "T":
        return STRING
    if not dtype.isnative:
        return number(dtype.newbyteorder("="))
    found = _NUMBER.get(dtype.name, 0)
    return found if found and found != STRING and of(found) == dtype else 0


def parse(name: str, names: tuple[str, ...]) -> int:
    """The number of a type by Hone's name or numpy's, one of `names` (Hone's)."""
    found = NUMBER_OF.get(str(name))
    if found is None or NAME[found] not in names:
        raise ValueError(f"'{name}' is none of {', '.join(names)}")
    return found
