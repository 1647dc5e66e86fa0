# SPDX-License-Identifier: Apache-2.0
"""A second look at a quantized network whose answer is too far from ONNX Runtime's
(compare_artifacts.py). Two questions, asked of ONNX Runtime:

spelled  What does it answer when it takes no shortcut? Some of its kernels give other bits than the op's
definition: QLinearAdd multiplies by factors of
         22 bits in fixed point on ARM (on x86 it adds floats, as the definition does), MatMulNBits with
         accuracy_level 4 rounds its float factor to
         bytes, how coarsely depends on the machine. Here the first is written as DequantizeLinear, Add
         and QuantizeLinear, the second computes in f32.
shaken   How far does its answer move when the inputs move by 1e-5 of themselves? That is less than any
quantum, so a few bytes in ten thousand
         round the other way. A network without training may turn that into another answer: then nobody's
         answer can be judged."""
import numpy
import onnx
import onnx.helper
import onnx.numpy_helper
import onnxruntime

SHAKE, TIMES = 1e-5, 8


def answers(model):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level, options.intra_op_num_threads = 3, 1
    session = onnxruntime.InferenceSession(str(model) if not isinstance(model, bytes) else model, options)
    names = [slot.name for slot in session.get_inputs()]
    return lambda values: session.run(None, dict(zip(names, values)))


def read(files):
    return [onnx.numpy_helper.to_array(onnx.load_tensor(str(f))) for f in files]


def spelled(path, files):
    """Its answer without shortcuts; None where the model has none of them."""
    model, nodes, changed = onnx.load(str(path)), [], 0
    for node in model.graph.node:
        if node.op_type == "QLinearAdd":
            a, b, c = (f"spelled {changed} {k}" for k in range(3))
            make, given = onnx.helper.make_node, list(node.input)
            nodes += [make("DequantizeLinear", given[:3], [a]), make("DequantizeLinear", given[3:6], [b]),
                      make("Add", [a, b], [c]), make("QuantizeLinear", [c] + given[6:], node.output)]
            changed += 1
            continue
        for level in [at for at in node.attribute if node.op_type == "MatMulNBits"
                      and at.name == "accuracy_level" and at.i == 4]:
            level.i = 1
            changed += 1
        nodes.append(node)
    if not changed:
        return None
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    values = read(files)
    return answers(model.SerializeToString())(values)


def shaken(path, files):
    """Its answers to inputs that were moved a little; the first to those that were not."""
    values, random = read(files), numpy.random.default_rng(0)
    run = answers(path)
    def moved(value):
        return (value * (1 + SHAKE * random.uniform(-1, 1, value.shape))).astype(
            value.dtype) if value.dtype.kind == "f" else value
    return [run(values)] + [run([moved(value) for value in values]) for _ in range(TIMES)]
