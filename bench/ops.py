#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ops one by one, beside ONNX Runtime, taking turns run by run in one process: the median of each and
ONNX Runtime's time over Hone's, slowest row first. What a network does with an op (fuse it, lay its
tensors otherwise) is not seen here; zoo.py sees that.

usage: bench/ops.py [--library build/libhone.so] [--threads 1] [--seconds 0.25] [OP…]
Needs PyPI numpy, onnx, onnxruntime."""
import argparse, math, os, statistics, tempfile

import numpy as np
from onnx import TensorProto as T, helper as h, numpy_helper as nh, save

import zoo

PICTURE, HALVED, HEADS = [1, 64, 112, 112], [1, 64, 56, 56], [12, 128, 64]
RANDOM = np.random.default_rng(0)


def w(*shape):
    return (RANDOM.standard_normal(shape) * 0.1).astype(np.float32)


def i(*numbers):
    return np.array(numbers, np.int64)


def twice(mode, x, **more):
    return ("Resize " + mode, [x], [None, np.array([1, 1, 2, 2], np.float32)], dict(mode=mode, **more))


# What it is (its op first), shapes of inputs, constants behind them, attributes; and how many outputs, where
# they are several.
OPS = [
    ("Conv 7x7 stride 2", [[1, 3, 224, 224]], [w(64, 3, 7, 7)], dict(pads=[3] * 4, strides=[2, 2])),
    ("Conv 11x11 stride 4", [[1, 3, 224, 224]], [w(64, 3, 11, 11)], dict(pads=[2] * 4, strides=[4, 4])),
    ("Conv 3x3 dilated", [HALVED], [w(64, 64, 3, 3)], dict(pads=[2] * 4, dilations=[2, 2])),
    ("Conv 3x3 8 pictures", [[8, 64, 28, 28]], [w(64, 64, 3, 3)], dict(pads=[1] * 4)),
    ("Conv 1x7", [[1, 128, 17, 17]], [w(128, 128, 1, 7)], dict(pads=[0, 3, 0, 3])),
    ("Conv 5x5 of 1 channel", [[1, 1, 28, 28]], [w(8, 1, 5, 5)], dict(pads=[2] * 4)),
    ("Conv 3x3 32 groups", [[1, 128, 56, 56]], [w(128, 4, 3, 3)], dict(group=32, pads=[1] * 4)),
    ("Conv 3x3 4 groups", [[1, 128, 28, 28]], [w(128, 32, 3, 3)], dict(group=4, pads=[1] * 4)),
    ("Conv 7x7 depthwise", [[1, 96, 56, 56]], [w(96, 1, 7, 7)], dict(group=96, pads=[3] * 4)),
    ("Conv 9, 1-D", [[1, 128, 400]], [w(128, 128, 9)], dict(pads=[4, 4])),
    ("Conv 31, 1-D depthwise", [[1, 256, 400]], [w(256, 1, 31)], dict(pads=[15, 15], group=256)),
    ("Conv 3x3x3", [[1, 16, 8, 32, 32]], [w(32, 16, 3, 3, 3)], dict(pads=[1] * 6)),
    ("ConvTranspose 4x4 stride 2", [[1, 64, 32, 32]], [w(64, 32, 4, 4)], dict(strides=[2, 2], pads=[1] * 4)),
    ("ConvTranspose 2x2 stride 2", [[1, 128, 32, 32]], [w(128, 64, 2, 2)], dict(strides=[2, 2])),
    ("ConvTranspose 3x3 stride 2", [[1, 64, 32, 32]], [w(64, 32, 3, 3)], dict(strides=[2, 2])),
    ("ConvTranspose to 1 channel", [[1, 32, 64, 64]], [w(32, 1, 3, 3)], dict(strides=[2, 2])),
    ("ConvTranspose 16, 1-D", [[1, 256, 128]], [w(256, 128, 16)], dict(strides=[8], pads=[4, 4])),
    ("MaxPool 3x3 stride 2", [PICTURE], [], dict(kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)),
    ("MaxPool 2x2", [PICTURE], [], dict(kernel_shape=[2, 2], strides=[2, 2])),
    ("MaxPool 5x5 stride 1", [[1, 128, 20, 20]], [], dict(kernel_shape=[5, 5], pads=[2] * 4)),
    ("AveragePool 3x3", [HALVED], [], dict(kernel_shape=[3, 3], pads=[1] * 4)),
    ("AveragePool 2x2", [HALVED], [], dict(kernel_shape=[2, 2], strides=[2, 2])),
    ("GlobalAveragePool", [[1, 512, 14, 14]], [], {}),
    twice("nearest", [1, 64, 40, 40], coordinate_transformation_mode="asymmetric", nearest_mode="floor"),
    twice("linear", [1, 32, 56, 56]),
    twice("cubic", [1, 3, 64, 64]),
    ("GridSample", [[1, 32, 56, 56], [1, 56, 56, 2]], [], {}),
    ("Pad", [HALVED], [i(0, 0, 1, 1, 0, 0, 1, 1)], {}),
    ("Pad mirrored", [[1, 3, 224, 224]], [i(0, 0, 3, 3, 0, 0, 3, 3)], dict(mode="reflect")),
    ("Transpose to channels last", [PICTURE], [], dict(perm=[0, 2, 3, 1])),
    ("Transpose to channels first", [[1, 112, 112, 64]], [], dict(perm=[0, 3, 1, 2])),
    ("Transpose of heads", [[1, 128, 12, 64]], [], dict(perm=[0, 2, 1, 3])),
    ("Transpose of a matrix", [[1000, 768]], [], dict(perm=[1, 0])),
    ("Concat of channels", [HALVED, HALVED], [], dict(axis=1)),
    ("Concat of rows", [[1000, 64], [1000, 64]], [], dict(axis=1)),
    ("Split", [[1, 128, 56, 56]], [], dict(axis=1, num_outputs=2), 2),
    ("Slice every second", [PICTURE], [i(0, 0), i(112, 112), i(2, 3), i(2, 2)], {}),
    ("Gather", [[30000, 256]], [np.arange(0, 25600, 200)], {}),
    ("DepthToSpace", [HALVED], [], dict(blocksize=2)),
    ("SpaceToDepth", [[1, 12, 224, 224]], [], dict(blocksize=2)),
    ("Expand", [[1, 64, 1, 1]], [i(*HALVED)], {}),
    ("Tile", [[1, 64, 14, 14]], [i(1, 1, 4, 4)], {}),
    ("Softmax of rows", [[12, 128, 128]], [], {}),
    ("Softmax of channels", [[1, 21, 128, 128]], [], dict(axis=1)),
    ("LogSoftmax", [[64, 1000]], [], {}),
    ("LayerNormalization", [[1, 128, 768]], [w(768), w(768)], {}),
    ("InstanceNormalization", [HALVED], [w(64), w(64)], {}),
    ("BatchNormalization", [HALVED], [w(64), w(64), w(64), abs(w(64))], {}),
    ("LRN", [HALVED], [], dict(size=5)),
    ("ReduceMean of pictures", [[1, 256, 28, 28]], [i(2, 3)], {}),
    ("ReduceSum of rows", [[1000, 768]], [i(1)], {}),
    ("ReduceSum of columns", [[1000, 768]], [i(0)], {}),
    ("ReduceMax of channels", [[1, 256, 28, 28]], [i(1)], {}),
    ("ArgMax of channels", [[1, 21, 128, 128]], [], dict(axis=1)),
    ("ArgMax of rows", [[100, 1000]], [], dict(axis=-1)),
    ("TopK", [[100, 1000]], [i(10)], {}, 2),
    ("CumSum", [[100, 1000]], [np.array(1)], {}),
    ("MatMul of heads", [HEADS, [12, 64, 128]], [], {}),
    ("MatMul of two inputs", [[256, 512], [512, 256]], [], {}),
    ("MatMul of one row", [[1, 1024]], [w(1024, 1024)], {}),
    ("Gemm", [[32, 512]], [w(1000, 512), w(1000)], dict(transB=1)),
    ("Einsum", [[1, *HEADS], [1, *HEADS]], [], dict(equation="bhqd,bhkd->bhqk")),
    ("LSTM", [[50, 1, 128]], [w(1, 512, 128), w(1, 512, 128)], dict(hidden_size=128)),
    ("GRU", [[50, 1, 128]], [w(1, 384, 128), w(1, 384, 128)], dict(hidden_size=128)),
    ("Add", [PICTURE, PICTURE], [], {}),
    ("Add to channels", [PICTURE], [w(64, 1, 1)], {}),
    ("Mul by a row", [[1, 128, 768]], [w(768)], {}),
    ("Clip", [PICTURE], [np.float32(0), np.float32(6)], {}),
    ("Pow", [HALVED], [np.float32(2.5)], {}),
    ("PRelu", [HALVED], [w(64, 1, 1)], {}),
    ("Gelu", [[1, 128, 3072]], [], {}),
    *((op, [
        PICTURE], [], {}) for op in "Exp Tanh Erf Sigmoid Relu Sqrt LeakyRelu Elu Softplus Log Sin".split()),
]


def write(path, what, inputs, constants, attributes, outputs=1):
    value = lambda name, shape: h.make_tensor_value_info(name, T.FLOAT, shape)
    names = [f"x{k}" for k in range(len(inputs))] + ["" if c is None else f"c{k}"
                                                     for k, c in enumerate(constants)]
    ys = [f"y{k}" for k in range(outputs)]
    g = h.make_graph([h.make_node(what.split()[0], names, ys, **attributes)], "g",
                     [value(f"x{k}", s) for k, s in enumerate(inputs)],
                     [h.make_empty_tensor_value_info(y) for y in ys],
                     [nh.from_array(np.asarray(c), f"c{k}") for k, c in enumerate(constants)
                      if c is not None])
    save(h.make_model(g, opset_imports=[h.make_opsetid("", 20)], ir_version=9), path)


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--library", default="build/libhone.so")
    a.add_argument("--threads", type=int, default=1)
    a.add_argument("--seconds", type=float, default=0.25)
    a.add_argument("op", nargs="*")
    o = a.parse_args()
    o.precision, zoo.ov, rows = "f32", None, []
    with tempfile.TemporaryDirectory() as folder:
        for row in OPS:
            if o.op and row[0].split()[0] not in o.op:
                continue
            path = os.path.join(folder, "op.onnx")
            write(path, *row)
            others, feed = zoo.peers(path, o)
            got = zoo.turns({"Hone": zoo.in_process(o.library, path, feed, o), **others}, o.seconds)
            hone, peer = (statistics.median(got[k]) for k in ("Hone", "ONNX Runtime"))
            rows.append((peer / hone, row[0], hone, peer))
    for ratio, name, hone, peer in sorted(rows):
        print(f"{name:28} Hone {hone * 1e3:9.1f} us   ONNX Runtime {peer * 1e3:9.1f} us   {ratio:5.2f}x")
    print(f"geometric mean {math.exp(sum(math.log(r[0]) for r in rows) / len(rows)):.2f}x of {len(rows)}")


if __name__ == "__main__":
    main()
