# SPDX-License-Identifier: Apache-2.0
"""What artifacts.py does to a network, one function a tool: each is given a Job and writes a model. No tool here is ours."""
import contextlib
import copy
import functools
import importlib.metadata
import os
import pathlib

import numpy
import onnx
import onnx.numpy_helper
import onnxruntime
import torch

import artifacts_nets as nets

onnxruntime.set_default_logger_severity(4)
torch.set_num_threads(1)
torch.backends.mha.set_fastpath_enabled(False)  # a fused op that no exporter knows
SAMPLES = 6  # inputs that quantizers calibrate with


def one_line(error, most=240):
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:most]


def versions():
    names = ("torch", "onnx", "onnxruntime", "onnxscript", "transformers", "onnxslim", "onnxsim", "onnxconverter-common")
    return {n: importlib.metadata.version(n) for n in names if n in INSTALLED}


INSTALLED = {d.metadata["Name"] for d in importlib.metadata.distributions()}


@contextlib.contextmanager
def silence():
    """Tools print; what they say goes nowhere."""
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
        yield


# ---- tensors and answers ----


def store(folder, kind, values):
    folder.mkdir(exist_ok=True)
    for k, (name, value) in enumerate(values.items()):
        tensor = onnx.numpy_helper.from_array(numpy.array(value, order="C"), name)
        (folder / f"{kind}_{k}.pb").write_bytes(tensor.SerializeToString())


def session(model, level, save=None):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, "ORT_" + level)
    if save:
        options.optimized_model_filepath = str(save)
    return onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])


def answer(model, feeds, level):
    s = session(model, level)
    return dict(zip([o.name for o in s.get_outputs()], s.run(None, feeds)))


def fit(model, feeds):
    """The feeds as the model wants them: a converter may have changed the inputs' types, or dropped one."""
    types = {1: numpy.float32, 6: numpy.int32, 7: numpy.int64, 10: numpy.float16, 11: numpy.float64}
    proto = onnx.load(str(model), load_external_data=False)
    constants = {t.name for t in proto.graph.initializer}
    slots = [i for i in proto.graph.input if i.name not in constants]
    by_name = {s.name: feeds[s.name] if s.name in feeds else v for s, v in zip(slots, list(feeds.values()))}
    out = {}
    for s in slots:
        wanted = s.type.tensor_type.elem_type
        if wanted == onnx.TensorProto.BFLOAT16:
            import ml_dtypes

            out[s.name] = by_name[s.name].astype(ml_dtypes.bfloat16)
        else:
            out[s.name] = by_name[s.name].astype(types[wanted])
    return out


@functools.lru_cache(maxsize=16)
def built(net):
    return nets.build(net)


class Job:
    """One network on its way: its module, its f32 model, inputs."""

    def __init__(self, folder, net):
        self.folder, self.net = pathlib.Path(folder), net

    def base(self):
        """The f32 model that tools begin with, made if it is not there: of the old exporter, or where that cannot, of the new one."""
        for recipe, dynamo in (("torchscript", False), ("dynamo", True)):
            path = self.folder / f"{self.net}.{recipe}" / "model.onnx"
            if path.exists():
                return path
        work = self.folder / ".base"
        work.mkdir(exist_ok=True)
        path = work / f"{self.net}.onnx"
        if not path.exists():
            try:
                exported(self, path)
            except Exception:
                exported(self, path, dynamo=True)
        return path

    def made(self, recipe):
        path = self.folder / f"{self.net}.{recipe}" / "model.onnx"
        if not path.exists():
            raise FileNotFoundError(f"{self.net}.{recipe} is not there")
        return path

    def prepared(self):
        """The base after ONNX Runtime's quant_pre_process, as its documentation asks for."""
        from onnxruntime.quantization.shape_inference import quant_pre_process

        work = self.folder / ".base"
        work.mkdir(exist_ok=True)
        path = work / f"{self.net}.prepared.onnx"
        if not path.exists():
            try:
                quant_pre_process(str(self.base()), str(path))
            except Exception:  # its symbolic shapes do not know all: the other two steps
                quant_pre_process(str(self.base()), str(path), skip_symbolic_shape=True)
        return path

    def feeds(self, seed=7):
        inputs = built(self.net)[1]
        return {k: v.numpy() for k, v in nets.like(inputs, seed).items()}

    def samples(self):
        return [self.feeds(7 + k) for k in range(SAMPLES)]

    def float_answer(self):
        return answer(self.base(), fit(self.base(), self.feeds()), "DISABLE_ALL")


# ---- torch's exporters ----


def exported(job, out, dynamo=False, dtype=None, opset=None):
    module, inputs = built(job.net)
    text = not next(iter(inputs.values())).is_floating_point()
    with torch.no_grad():
        result = module(*inputs.values())
    count = len(result) if isinstance(result, tuple) else 1
    names = dict(input_names=list(inputs), output_names=["output", "second", "third"][:count])
    if dtype:
        module = copy.deepcopy(module).to(getattr(torch, dtype))
        inputs = {k: v.to(getattr(torch, dtype)) if v.is_floating_point() else v for k, v in inputs.items()}
    with torch.no_grad():
        if dynamo:
            torch.onnx.export(module, tuple(inputs.values()), str(out), dynamo=True, opset_version=opset or 20, external_data=False, verbose=False, **names)
        else:
            axes = {k: {0: "batch", 1: "sequence"} for k, v in inputs.items() if not v.is_floating_point()} if text and len(inputs) < 3 else None
            torch.onnx.export(module, tuple(inputs.values()), str(out), dynamo=False, opset_version=opset or 17, dynamic_axes=axes, **names)


# ---- onnxruntime.quantization ----


class Reader:
    """What a quantizer calibrates with."""

    def __init__(self, feeds):
        self.feeds = list(feeds)
        self.rewind()

    def rewind(self):
        self.left = iter(self.feeds)

    def get_next(self):
        return next(self.left, None)

    def __len__(self):
        return len(self.feeds)

    def set_range(self, start_index, end_index):
        self.left = iter(self.feeds[start_index:end_index])


def reader(job, source):
    from onnxruntime.quantization import CalibrationDataReader

    kind = type("Feeds", (Reader, CalibrationDataReader), {})
    return kind([fit(source, f) for f in job.samples()])


def static(job, out, format="QDQ", activation="QInt8", weight="QInt8", per_channel=False, prepare=False, method="MinMax", ops=None, extra=None):
    from onnxruntime.quantization import CalibrationMethod, QuantFormat, QuantType, quantize_static

    source = job.prepared() if prepare else job.base()
    types = dict(activation_type=getattr(QuantType, activation), weight_type=getattr(QuantType, weight))
    quantize_static(str(source), str(out), reader(job, source), quant_format=getattr(QuantFormat, format), per_channel=per_channel, op_types_to_quantize=ops,
        calibrate_method=getattr(CalibrationMethod, method), extra_options=dict(extra or {}), **types)  # fmt: skip


def configured(job, out):
    """By get_qdq_config, the newer way in."""
    from onnxruntime.quantization import QuantType, get_qdq_config, quantize

    source = job.prepared()
    config = get_qdq_config(str(source), reader(job, source), activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8, per_channel=True, weight_symmetric=True)
    quantize(str(source), str(out), config)


def dynamic(job, out, weight="QInt8", per_channel=False, reduce_range=False):
    from onnxruntime.quantization import QuantType, quantize_dynamic

    quantize_dynamic(str(job.base()), str(out), weight_type=getattr(QuantType, weight), per_channel=per_channel, reduce_range=reduce_range)


# ---- onnxruntime: its optimizer ----


def optimized(job, out, level, of=None):
    session(job.made(of) if of else job.base(), "ENABLE_" + level, save=out)


# ---- halves ----


def float16(job, out, keep_io_types=False):
    from onnxruntime.transformers.float16 import convert_float_to_float16

    onnx.save(convert_float_to_float16(onnx.load(str(job.base())), keep_io_types=keep_io_types), str(out))


def float16_common(job, out):
    from onnxconverter_common.float16 import convert_float_to_float16

    onnx.save(convert_float_to_float16(onnx.load(str(job.base()))), str(out))


def float16_mixed(job, out):
    from onnxconverter_common.auto_mixed_precision import auto_convert_mixed_precision

    onnx.save(auto_convert_mixed_precision(onnx.load(str(job.base())), fit(job.base(), job.feeds()), rtol=0.02, atol=0.01, keep_io_types=True), str(out))


TRANSFORMERS = []
NBITS = []
QAT = []
SIMPLIFY = []
