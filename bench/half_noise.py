#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What storing in f16 costs a model whoever runs it: ONNX Runtime computes in f32, and every weight and every
tensor between nodes is rounded to f16 on the way. The same is done several times over with all of them scaled
before and unscaled behind, by numbers that are no powers of two: other roundings of the same size. A model
whose answers spread so is one that f16 cannot store better.

usage: bench/half_noise.py FOLDER…      folders with model.onnx and test_data_set_0
Prints the largest error of each way, of the largest number of the answer, and their median; nan: something
left f16's range. Needs PyPI onnx, onnxruntime, numpy."""
import copy, glob, sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

WAYS = (1.0, 1.07, 1.19, 1.31, 1.43, 1.57, 1.71, 1.89)
FEW = 64  # elements of a constant that is no weight: left alone


def rounded(model, scale):
    model = copy.deepcopy(model)
    g = model.graph
    types = {v.name: v.type.tensor_type.elem_type
             for v in onnx.shape_inference.infer_shapes(model).graph.value_info}
    outputs, nodes = {o.name for o in g.output}, []
    for w in g.initializer:
        a = numpy_helper.to_array(w)
        if a.dtype == np.float32 and a.size >= FEW:
            half = (a * np.float32(scale)).astype(np.float16).astype(np.float32) / np.float32(scale)
            w.CopyFrom(numpy_helper.from_array(half, w.name))
    g.initializer.extend([numpy_helper.from_array(np.float32(scale), "noise_up"),
                          numpy_helper.from_array(np.float32(1 / scale), "noise_down")])
    for n in g.node:
        nodes.append(n)
        for k, y in enumerate(n.output):
            if types.get(y) != TensorProto.FLOAT or y in outputs or n.op_type == "Constant":
                continue
            steps = [y + "|exact", y + "|up", y + "|half", y + "|wide", y]
            n.output[k] = steps[0]
            nodes += [helper.make_node("Mul", [steps[0], "noise_up"], [steps[1]]),
                      helper.make_node("Cast", [steps[1]], [steps[2]], to=TensorProto.FLOAT16),
                      helper.make_node("Cast", [steps[2]], [steps[3]], to=TensorProto.FLOAT),
                      helper.make_node("Mul", [steps[3], "noise_down"], [steps[4]])]
    del g.node[:]
    g.node.extend(nodes)
    return model


def answers(model, inputs):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    return session.run(None, dict(zip([i.name for i in session.get_inputs()], inputs)))


def main():
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    for folder in sys.argv[1:]:
        inputs = []
        for path in sorted(glob.glob(folder + "/test_data_set_0/input_*.pb")):
            with open(path, "rb") as f:
                inputs.append(numpy_helper.to_array(TensorProto.FromString(f.read())))
        model = onnx.load(folder + "/model.onnx")
        want, errors = answers(model, inputs), []
        for scale in WAYS:
            got = answers(rounded(model, scale), inputs)
            errors.append(max(float(np.abs(a.astype(np.float64) - b).max() / np.abs(b).max())
                              for a, b in zip(got, want) if b.dtype == np.float32))
        print(folder.rstrip("/").rsplit("/", 1)[-1], " ".join(f"{e:.4f}" for e in errors),
              f"median {np.median(errors):.4f}", flush=True)


if __name__ == "__main__":
    main()
