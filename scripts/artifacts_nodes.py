# SPDX-License-Identifier: Apache-2.0
"""A quantized model taken apart, for compare_artifacts.py --nodes: a model of pieces that do not depend
on each other.

A piece is one op with the DequantizeLinear before it, a Relu or Clip after it, and the QuantizeLinear
after that. What a piece reads is an input of the new model and gets the number that ONNX Runtime (its
optimizations off) has there; what it writes is an output and is compared with ONNX Runtime's. All pieces
run at once; where that fails they are halved until those that fail are alone. Ops that have nothing to do
with quantization are left out, and ops with bodies."""
import collections
import copy

import numpy
import onnx
import onnx.numpy_helper
import onnxruntime
from onnx import helper

# ONNX Runtime sums halves in halves (1.1e-2 from exact arithmetic at K 1536; Hone 4e-4). ROUNDED: it rounds
# what it multiplies to 8 bits, by accuracy_level 4, or the input and the state of every step of a
# DynamicQuantizeLSTM (7e-3 from its own LSTM with the same weights; Hone 2e-7)
FLOAT, HALF, ROUNDED = 1e-3, 2e-2, 3e-2
PAIR = ("QuantizeLinear", "DequantizeLinear")
LIMITS = ("Relu", "Clip")
WORDS = ("Quant", "QLinear", "Integer", "QGemm", "QAttention", "QEmbed", "NBits", "Bnb4", "QMoE")


class Pieces:
    """The nodes of a graph, by what they write and read, and the pieces they form."""

    def __init__(self, graph):
        self.graph = graph
        self.maker = {o: n for n in graph.node for o in n.output if o}
        self.readers = collections.defaultdict(list)
        for n in graph.node:
            for name in n.input:
                self.readers[name].append(n)
        self.given = {o.name for o in graph.output}
        self.constant = {t.name for t in graph.initializer}
        # nodes of constants are constants; a node that is not yet sorted is not found, and no matter
        for n in graph.node:
            if all(i in self.constant for i in n.input if i) and not n.op_type.startswith("Random"):
                self.constant.update(n.output)
        self.nodes = [n for n in graph.node if n.output[0] not in self.constant
                      and not any(a.HasField("g") or a.graphs for a in n.attribute)]

    def quantizes(self, name):
        return [n for n in self.readers[name] if n.op_type == "QuantizeLinear"]

    def last(self, node):
        """The node that ends a piece: a Relu or Clip, where only that reads what an op writes."""
        readers = self.readers[node.output[0]]
        alone = len(node.output) == 1 and len(readers) == 1 and node.output[0] not in self.given
        if alone and readers[0].op_type in LIMITS and readers[0].input[0] == node.output[0] and all(
            i in self.constant for i in readers[0].input[1:] if i):
            return readers[0]
        return None

    def pieces(self):
        """Lists of nodes, each in order."""
        out, taken = [], set()
        for n in self.nodes:
            if n.op_type in PAIR or id(n) in taken:
                continue
            before = [self.maker[i] for i in n.input if i in self.maker and i not in self.constant
                      and self.maker[i].op_type == "DequantizeLinear"]
            nodes = list({id(b): b for b in before}.values()) + [n]
            limit = self.last(n)
            if limit is not None and (limit_writes := self.quantizes(limit.output[0])):
                nodes += [limit, *limit_writes]
                taken.add(id(limit))
            else:
                nodes += [q for o in n.output if o for q in self.quantizes(o)]
            stored = any(self.maker[i].op_type == "DequantizeLinear" for i in n.input if i in self.maker)
            if len(nodes) > 1 or stored or any(w in n.op_type for w in WORDS):
                out.append(nodes)
        used = {id(n) for nodes in out for n in nodes}
        return out + [[n] for n in self.nodes if n.op_type in PAIR and id(n) not in used]


def join(model, pieces, graph_of):
    """One model of some pieces: (model, names read, names written as the graph calls them). Every piece
    writes under names of its own."""
    nodes, reads, writes, constants = [], {}, [], {}
    for k, piece in enumerate(pieces):
        inside = {o for n in piece for o in n.output}
        read_inside = {i for n in piece for i in n.input}
        for n in piece:
            mine = copy.deepcopy(n)
            for j, name in enumerate(n.input):
                if name in inside:
                    mine.input[j] = f"{k}:{name}"
                elif name in graph_of.constant:
                    constants[name] = True
                elif name:
                    reads[name] = True
            for j, name in enumerate(n.output):
                if name:
                    mine.output[j] = f"{k}:{name}"
                    if name not in read_inside:
                        writes.append((f"{k}:{name}", name))
            nodes.append(mine)
    kept, tensors, wanted = {}, [], list(constants)
    while wanted:  # what makes a constant comes with it
        name = wanted.pop()
        node = graph_of.maker.get(name)
        if node is not None and id(node) not in kept:
            kept[id(node)] = node
            wanted += [i for i in node.input if i]
        constants[name] = True
    tensors = [t for t in model.graph.initializer if t.name in constants]
    first = [n for n in model.graph.node if id(n) in kept]
    return first + nodes, list(reads), writes, tensors


def value_info(name, value):
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)


def wrong(got, want, loose):
    """What is wrong with one output, or None."""
    if got.shape != want.shape:
        return f"{list(got.shape)}, not {list(want.shape)}"
    a, b = got.astype("f8"), want.astype("f8")
    if want.dtype.kind in "iub":
        off, most = numpy.abs(a - b).max(
            initial=0), 1 if want.dtype.itemsize < 4 and want.dtype.kind != "b" else 0
        return f"{off:g} quanta off" if off > most else None
    fine = numpy.isfinite(b)
    if not numpy.array_equal(numpy.isfinite(a), fine):
        return "not finite"
    error = numpy.abs(a - b)[fine].max(initial=0) / (numpy.abs(b[fine]).max(initial=0) or 1)
    return f"differs by {error:.2g} of the largest" if error > (ROUNDED if loose else HALF
                                                                if want.dtype == numpy.float16
                                                                else FLOAT) else None


def unwrapped(piece, got, want):
    """ONNX Runtime's numbers, but for those that went round: its QLinearSoftmax makes a probability of one
    256 steps of 1/256, and those 0 where the largest number is meant (a row of one element: all 0)."""
    if not any(n.op_type == "QLinearSoftmax" for n in piece) or got.shape != want.shape:
        return want
    limits = numpy.iinfo(want.dtype)
    return numpy.where((got == limits.max) & (want == limits.min), got, want)


def loose(node):
    return node.op_type == "DynamicQuantizeLSTM" or any(a.name == "accuracy_level" and a.i == 4
                                                        for a in node.attribute)


def check(folder, work, run):
    """(all ran, pieces compared, None or what is wrong with the first and how many are). run(model,
    inputs, count) -> (outputs, error)"""
    model = onnx.load(str(folder / "model.onnx"))
    graph_of = Pieces(model.graph)
    pieces = graph_of.pieces()
    names = sorted({n for piece in pieces for node in piece for n in [*node.input, *node.output] if n
                    and n not in graph_of.constant})
    values = truth(model, names, folder)
    pieces = [p for p in pieces if all(isinstance(values.get(n), numpy.ndarray) for node in p
                                       for n in [*node.input, *node.output] if n
                                       and n not in graph_of.constant)]
    found = []

    def attempt(some):
        nodes, reads, writes, tensors = join(model, some, graph_of)
        graph = helper.make_graph(nodes, "pieces", [value_info(n, values[n]) for n in reads],
                                  [value_info(a, values[b]) for a, b in writes], tensors)
        whole = helper.make_model(graph, opset_imports=model.opset_import, functions=list(model.functions),
                                  ir_version=model.ir_version)
        path = work / "model.onnx"
        path.write_bytes(whole.SerializeToString())
        files = []
        for k, name in enumerate(reads):
            files.append(work / f"input_{k}.pb")
            files[-1].write_bytes(onnx.numpy_helper.from_array(
                numpy.ascontiguousarray(values[name]).reshape(values[name].shape), name).SerializeToString())
        got, error = run(path, files, len(writes))
        if error and len(some) > 1:
            half = len(some) // 2
            attempt(some[:half])
            attempt(some[half:])
        elif error:
            found.append((False, core(some[0]), error))
        else:
            for (mine, name), value in zip(writes, got):
                piece = some[int(mine.split(":")[0])]
                told = wrong(value, unwrapped(piece, value, values[name]), any(loose(n) for n in piece))
                if told:
                    found.append((True, core(piece), told))

    if pieces:
        attempt(pieces)
    if not found:
        return True, float(len(pieces)), None
    ran, node, told = found[0]
    many = len({id(node) for _, node, _ in found})  # a piece may have several outputs
    return all(f[0] for f in found), float(
        len(pieces)), f"{many} of {len(pieces)} pieces: {node.op_type} '{node.name}': {told}"


def core(piece):
    return next((n for n in piece if n.op_type not in PAIR), piece[0])


def truth(model, names, folder):
    """What ONNX Runtime has under these names."""
    own = {i.name for i in model.graph.input}
    whole = copy.deepcopy(model)
    there = {o.name for o in whole.graph.output}
    whole.graph.output.extend(helper.make_empty_tensor_value_info(n) for n in names if n not in there
                              and n not in own)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(whole.SerializeToString(), options,
                                           providers=["CPUExecutionProvider"])
    feeds = {}
    for k, slot in enumerate(session.get_inputs()):
        feeds[slot.name] = onnx.numpy_helper.to_array(
            onnx.load_tensor(str(folder / "test_data_set_0" / f"input_{k}.pb")))
    return {**feeds, **dict(zip([o.name for o in session.get_outputs()], session.run(None, feeds)))}
