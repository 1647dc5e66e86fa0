#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes ResNet-50 with seeded random weights as ONNX, and an input:  make_resnet50.py FOLDER. For bench/models.py. Needs PyPI onnx, numpy."""
import os, sys
import numpy as np, onnx
from onnx import helper as h, numpy_helper as nh, TensorProto as T

rng, nodes, weights = np.random.default_rng(0), [], []


def conv(x, ci, co, k, s, p, relu, name):
    w = rng.standard_normal((co, ci, k, k)) * np.sqrt(2 / (ci * k * k))
    weights.extend([nh.from_array(w.astype(np.float32), name + ".w"), nh.from_array(np.zeros(co, np.float32), name + ".b")])
    nodes.append(h.make_node("Conv", [x, name + ".w", name + ".b"], [name], name=name, kernel_shape=[k, k], strides=[s, s], pads=[p] * 4))
    if relu:
        nodes.append(h.make_node("Relu", [name], [name + ".r"]))
    return name + ".r" if relu else name


x, ci = conv("x", 3, 64, 7, 2, 3, True, "stem"), 64
nodes.append(h.make_node("MaxPool", [x], ["pool"], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4))
x = "pool"
for stage, (blocks, c) in enumerate([(3, 64), (4, 128), (6, 256), (3, 512)]):
    for b in range(blocks):
        s, name = 2 if b == 0 and stage > 0 else 1, f"s{stage}b{b}"
        y = conv(conv(conv(x, ci, c, 1, 1, 0, True, name + "a"), c, c, 3, s, 1, True, name + "b"), c, 4 * c, 1, 1, 0, False, name + "c")
        if b == 0:
            x = conv(x, ci, 4 * c, 1, s, 0, False, name + "d")
        nodes.extend([h.make_node("Add", [y, x], [name + "s"]), h.make_node("Relu", [name + "s"], [name + "o"])])
        x, ci = name + "o", 4 * c
nodes.extend([h.make_node("GlobalAveragePool", [x], ["g"]), h.make_node("Flatten", ["g"], ["f"]), h.make_node("Gemm", ["f", "fw", "fb"], ["y"])])
weights.extend([nh.from_array((rng.standard_normal((2048, 1000)) * 0.02).astype(np.float32), "fw"), nh.from_array(np.zeros(1000, np.float32), "fb")])
graph = h.make_graph(nodes, "resnet50", [h.make_tensor_value_info("x", T.FLOAT, [1, 3, 224, 224])], [h.make_tensor_value_info("y", T.FLOAT, [1, 1000])], weights)
data = os.path.join(sys.argv[1], "test_data_set_0")
os.makedirs(data, exist_ok=True)
onnx.save(h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8), os.path.join(sys.argv[1], "model.onnx"))
with open(os.path.join(data, "input_0.pb"), "wb") as f:
    f.write(nh.from_array(rng.standard_normal((1, 3, 224, 224)).astype(np.float32), "x").SerializeToString())
