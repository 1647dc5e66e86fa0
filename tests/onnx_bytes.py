# SPDX-License-Identifier: Apache-2.0
"""ONNX's protobuf, byte by byte: what tests need to write a model without any package."""


def varint(v):
    out = b""
    v &= (1 << 64) - 1
    while v > 127:
        out, v = out + bytes([v & 127 | 128]), v >> 7
    return out + bytes([v])


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value
