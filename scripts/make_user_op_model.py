#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes examples/user_op/model.onnx: two layers with an op between them that ONNX does not have,
my.ops.Swish.

    pip install onnx && scripts/make_user_op_model.py
"""
import pathlib

import numpy as np
from onnx import TensorProto, checker, helper, numpy_helper, save

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "examples" / "user_op"
draw = np.random.default_rng(7)


def weight(name, *shape):
    return numpy_helper.from_array((draw.standard_normal(shape) * 0.5).round(3).astype(np.float32), name)


graph = helper.make_graph(
    [
        helper.make_node("Gemm", ["x", "w1", "b1"], ["hidden"], name="first"),
        helper.make_node("Swish", ["hidden"], ["active"], name="swish", domain="my.ops", beta=1.5),
        helper.make_node("MatMul", ["active", "w2"], ["scores"], name="second"),
        helper.make_node("Softmax", ["scores"], ["probability"], name="last"),
    ],
    "user_op",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 8])],
    [helper.make_tensor_value_info("probability", TensorProto.FLOAT, ["batch", 4])],
    [weight("w1", 8, 16), weight("b1", 16), weight("w2", 16, 4)],
)
model = helper.make_model(graph, ir_version=8,
                          opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("my.ops", 1)])
checker.check_model(model)
save(model, FOLDER / "model.onnx")
