# SPDX-License-Identifier: Apache-2.0
"""ONNX's protobuf, byte by byte: what tests need to write a model without any package."""
import struct


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


def port(name, elem, dims):
    shape = b"".join(field(1, field(2, d) if isinstance(d, str) else field(1, d)) for d in dims)
    return field(1, name) + field(2, field(1, field(1, elem) + field(2, shape)))


def model(ports, nodes, outputs):
    """A file: inputs (name, element type, dims), nodes (op, inputs, outputs), outputs as inputs."""
    graph = b"".join(field(1, b"".join(field(1, i) for i in ins) + b"".join(field(2, o) for o in outs)
                           + field(4, op))
                     for op, ins, outs in nodes)
    graph += field(2, "g") + b"".join(field(11, port(*p)) for p in ports) + b"".join(field(12, port(*p))
        for p in outputs)
    return field(1, 8) + field(7, graph) + field(8, field(2, 17))


def wide(n):  # x[rows, 1] times w[1, n], Softmax, times v[n, 1]: 8 n bytes of weights, 4 n a row between
    def constant(name, dims):
        return (
            b"".join(field(1, d) for d in dims)
            + field(2, 1)
            + field(8, name)
            + field(9, struct.pack("<f", 0.5) * n)
        )

    nodes = [("MatMul", "xw", "t"), ("Softmax", "t", "s"), ("MatMul", "sv", "y")]
    graph = b"".join(
        field(1, b"".join(field(1, i) for i in ins) + field(2, out) + field(4, op)) for op, ins, out in nodes
    )
    graph += field(2, "g") + field(5, constant("w", [1, n])) + field(5, constant("v", [n, 1]))
    graph += field(11, port("x", 1, ["n", 1])) + field(12, port("y", 1, ["n", 1]))
    return field(1, 8) + field(7, graph) + field(8, field(2, 17))
