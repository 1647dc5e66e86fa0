# SPDX-License-Identifier: Apache-2.0
"""What artifacts.py does to a network, one function a tool: each is given a Job and writes a model. No
tool here is ours."""
import contextlib
import copy
import functools
import importlib.metadata
import os
import pathlib
import sys
import tempfile

import numpy
import onnx
import onnx.numpy_helper
import onnx.version_converter
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
    names = ("torch", "onnx", "onnxruntime", "onnxscript", "transformers", "onnxslim", "onnxsim",
             "onnxconverter-common")
    return {n: importlib.metadata.version(n) for n in names if n in INSTALLED}


INSTALLED = {d.metadata["Name"] for d in importlib.metadata.distributions()}


@contextlib.contextmanager
def silence():
    """Tools print, from C too, and leave files where they are called: what they say goes nowhere, the
    files with a temporary folder."""
    sys.stdout.flush()
    kept, here = [os.dup(1), os.dup(2)], os.getcwd()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    with tempfile.TemporaryDirectory() as folder:
        try:
            os.chdir(folder)
            os.dup2(nowhere, 1), os.dup2(nowhere, 2)
            yield
        finally:
            sys.stdout.flush()
            os.dup2(kept[0], 1), os.dup2(kept[1], 2)
            os.chdir(here)
            for fd in (nowhere, *kept):
                os.close(fd)


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
        """The f32 model that tools begin with, made if it is not there: of the old exporter, or where
        that cannot, of the new one."""
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
            result = module(*inputs.values())
        several = result if isinstance(result, tuple) else (result,)
        store(out.parent / "own", "output", {f"output_{k}": v.float().numpy() for k, v in enumerate(several)})
    with torch.no_grad():
        if dynamo:
            torch.onnx.export(module, tuple(inputs.values()), str(out), dynamo=True, opset_version=opset
                              or 20, external_data=False, verbose=False, **names)
        else:
            axes = {k: {0: "batch", 1: "sequence"} for k, v in inputs.items()
                    if not v.is_floating_point()} if text and "decoder_input_ids" not in inputs else None
            torch.onnx.export(module, tuple(inputs.values()), str(out), dynamo=False, opset_version=opset
                              or 17, dynamic_axes=axes, **names)


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


def static(job, out, format="QDQ", activation="QInt8", weight="QInt8", per_channel=False, prepare=False,
           method="MinMax", ops=None, extra=None):
    from onnxruntime.quantization import CalibrationMethod, QuantFormat, QuantType, quantize_static

    source = job.prepared() if prepare else job.base()
    types = dict(activation_type=getattr(QuantType, activation), weight_type=getattr(QuantType, weight))
    quantize_static(str(source), str(out), reader(job, source), quant_format=getattr(QuantFormat, format),
                    per_channel=per_channel, op_types_to_quantize=ops,
        calibrate_method=getattr(CalibrationMethod, method), extra_options=dict(extra or {}), **types)


def configured(job, out):
    """By get_qdq_config, the newer way in."""
    from onnxruntime.quantization import QuantType, get_qdq_config, quantize

    source = job.prepared()
    config = get_qdq_config(str(source), reader(job, source), activation_type=QuantType.QUInt8,
                            weight_type=QuantType.QInt8, per_channel=True, weight_symmetric=True)
    quantize(str(source), str(out), config)


def dynamic(job, out, weight="QInt8", per_channel=False, reduce_range=False):
    from onnxruntime.quantization import QuantType, quantize_dynamic

    quantize_dynamic(str(job.base()), str(out), weight_type=getattr(QuantType, weight),
                     per_channel=per_channel, reduce_range=reduce_range)


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

    onnx.save(auto_convert_mixed_precision(onnx.load(str(job.base())), fit(job.base(), job.feeds()),
                                           rtol=0.02, atol=0.01, keep_io_types=True), str(out))


# ---- onnxruntime.transformers: its optimizer ----

TYPES = {"vit": "vit", "hf_vit": "vit", "swin": "swin", "gpt2": "gpt2", "gpt_neox": "gpt_neox", "phi": "phi",
         "qwen3": "qwen3", "t5": "t5", "bart": "bart", "whisper": "bart", "clip": "clip",
         "wav2vec2": "conformer"}


def transformed(job, out, then=None, level=None, of=None, **options):
    """Fused by onnxruntime.transformers.optimizer; then converted or quantized."""
    from onnxruntime.quantization import quantize_dynamic
    from onnxruntime.transformers.fusion_options import FusionOptions
    from onnxruntime.transformers.optimizer import optimize_model

    kind = TYPES.get(job.net, "bert")
    wish = FusionOptions(kind)
    for k, v in options.items():
        setattr(wish, k, v)
    inputs = built(job.net)[1]
    heads, width = (12, 384) if "minilm" in job.net or job.net == "classic_128" else (4,
        96) if job.net == "vit" else (3, 192) if job.net == "vit_224" else (4, 64)
    known = bool(inputs) and kind not in ("swin", "clip")
    model = optimize_model(str(job.made(of) if of else job.base()), kind, heads if known else 0, width
                           if known else 0, wish, opt_level=level)
    if then == "f16":
        model.convert_float_to_float16(keep_io_types=True)
    model.save_model_to_file(str(out))
    if then == "dynamic":
        quantize_dynamic(str(out), str(out), extra_options={"DefaultTensorType": onnx.TensorProto.FLOAT})
    elif then == "nbits":
        nbits(job, out, of=out)


TEXT = (
    "bert minilm bert_classic bert_classifier distilbert roberta electra albert mpnet gpt2 gpt_neox opt "
    "llama mistral qwen2 qwen3 phi gemma t5 bart whisper clip wav2vec2 hf_vit vit swin").split()
TOOL = "onnxruntime.transformers.optimizer"
TRANSFORMERS = [
    ("topt", "float", TOOL, TEXT + ["minilm_128", "classic_128", "vit_224"], transformed, {}),
    ("topt-dynamo", "float", TOOL, TEXT, transformed, {"of": "dynamo"}),
    ("topt-mha", "float", TOOL, TEXT, transformed, {"use_multi_head_attention": True}),
    ("topt-approximate", "float", TOOL, ["bert", "minilm", "bert_classic", "gpt2", "vit"], transformed,
     {"enable_gelu_approximation": True, "level": 2}),
    ("topt-packed-mask", "float", TOOL, ["bert", "minilm", "bert_classic", "distilbert"], transformed,
     {"attention_mask_format": 3}),
    ("topt-f16", "half", TOOL, TEXT[:13] + ["vit", "hf_vit", "minilm_128", "classic_128"], transformed,
     {"then": "f16"}),
    ("topt-dynamic", "quant", TOOL + ", quantized", TEXT[:13] + ["t5", "vit", "minilm_128", "classic_128"],
     transformed, {"then": "dynamic"}),
    ("topt-nbits", "quant", TOOL + ", quantized",
     ["minilm", "bert", "bert_classic", "gpt2", "llama", "qwen2"], transformed, {"then": "nbits"}),
]


# ---- blocks of a few bits ----


def nbits(job, out, of=None, algorithm="Default", bits=4, block=32, symmetric=False, level=None,
          format="QOperator", ops=None, half=False):
    from onnxruntime.quantization import QuantFormat
    from onnxruntime.quantization import matmul_nbits_quantizer as q

    form = getattr(QuantFormat, format)
    if algorithm == "Default":
        config = q.DefaultWeightOnlyQuantConfig(block_size=block, is_symmetric=symmetric,
                                                accuracy_level=level, quant_format=form,
                                                op_types_to_quantize=ops, bits=bits)
    elif algorithm == "HQQ":
        config = q.HQQWeightOnlyQuantConfig(block_size=block, bits=bits, quant_format=form)
    elif algorithm == "GPTQ":
        config = q.GPTQWeightOnlyQuantConfig(calibration_data_reader=reader(job, job.base()),
                                             block_size=block, quant_format=form)
    else:
        config = getattr(q, algorithm + "WeightOnlyQuantConfig")(quant_format=form)
    source = onnx.load(str(of or job.base()))
    if format == "QDQ":  # 4-bit tensors came with opset 21
        source = onnx.version_converter.convert_version(source, 21)
    if half:
        from onnxruntime.transformers.float16 import convert_float_to_float16

        source = convert_float_to_float16(source)
    quantizer = q.MatMulNBitsQuantizer(source, bits=bits, block_size=block, is_symmetric=symmetric,
                                       accuracy_level=level, quant_format=form, op_types_to_quantize=ops,
                                       algo_config=config)
    quantizer.process()
    quantizer.model.save_model_to_file(str(out), False)


def bnb4(job, out, kind=1, block=64):
    from onnxruntime.quantization.matmul_bnb4_quantizer import MatMulBnb4Quantizer

    quantizer = MatMulBnb4Quantizer(onnx.load(str(job.base())), kind, block)
    quantizer.process()
    quantizer.model.save_model_to_file(str(out), False)


LANGUAGE = ["minilm", "bert", "gpt2", "llama", "qwen2", "phi", "gemma", "t5", "whisper", "vit", "mixer"]
BLOCKS = "MatMulNBitsQuantizer"
NBITS = [
    *((f"nbits-4-b{b}", "quant", BLOCKS, ["minilm", "llama"], nbits, {"block": b})
      for b in (16, 64, 128, 256)),
    ("nbits-4", "quant", BLOCKS, LANGUAGE, nbits, {}),
    ("nbits-4-symmetric-l4", "quant", BLOCKS, LANGUAGE + ["decode_1024", "prompt_1024"], nbits,
     {"symmetric": True, "level": 4}),
    ("nbits-4-l0", "quant", BLOCKS, ["minilm", "llama", "decode_1024", "prompt_1024"], nbits, {"level": 0}),
    ("nbits-4-l1", "quant", BLOCKS, ["minilm", "llama"], nbits, {"level": 1, "block": 128}),
    ("nbits-4-f16", "quant", BLOCKS, ["minilm", "llama"], nbits, {"half": True}),
    ("nbits-8", "quant", BLOCKS, ["minilm", "llama", "gpt2", "decode_1024"], nbits, {"bits": 8}),
    ("nbits-8-symmetric-l4", "quant", BLOCKS, ["minilm", "llama"], nbits,
     {"bits": 8, "symmetric": True, "level": 4, "block": 64}),
    ("nbits-2", "quant", BLOCKS, ["minilm", "llama"], nbits, {"bits": 2}),
    ("nbits-4-gather", "quant", BLOCKS, ["minilm", "llama", "gpt2", "bert"], nbits,
     {"ops": ("MatMul", "Gather")}),
    ("nbits-4-qdq", "quant", BLOCKS, LANGUAGE, nbits, {"format": "QDQ"}),
    ("nbits-4-qdq-symmetric", "quant", BLOCKS, ["minilm", "llama"], nbits,
     {"format": "QDQ", "symmetric": True, "block": 16}),
    ("nbits-hqq", "quant", BLOCKS, ["minilm", "llama", "gpt2"], nbits, {"algorithm": "HQQ", "block": 64}),
    ("nbits-rtn", "quant", BLOCKS, ["minilm", "gpt2"], nbits, {"algorithm": "RTN"}),
    ("nbits-kquant", "quant", BLOCKS, ["minilm", "gpt2"], nbits, {"algorithm": "KQuant"}),
    ("nbits-gptq", "quant", BLOCKS, ["minilm", "gpt2"], nbits, {"algorithm": "GPTQ"}),
    ("bnb-nf4", "quant", "MatMulBnb4Quantizer", ["minilm", "llama", "gpt2"], bnb4, {}),
    ("bnb-fp4", "quant", "MatMulBnb4Quantizer", ["minilm", "llama"], bnb4, {"kind": 0, "block": 32}),
]


# ---- torch's own quantization ----


def aware(job, out, config="x86", integers=False, eager=False):
    """A module as quantization-aware training leaves it: fake quantization, exported; or converted to
    torch's integer modules first."""
    from torch.ao.quantization import (FakeQuantize, get_default_qat_qconfig, get_default_qat_qconfig_mapping,
                                       prepare_qat)
    from torch.ao.quantization.quantize_fx import convert_fx, prepare_qat_fx

    module, inputs = built(job.net)
    module = copy.deepcopy(module)
    torch.backends.quantized.engine = "qnnpack"
    if eager:
        # the later ones fuse what no exporter knows
        module.qconfig = get_default_qat_qconfig(config, version=0)
        module = prepare_qat(module.train())
    else:
        module = prepare_qat_fx(module.train(), get_default_qat_qconfig_mapping(config, version=0),
                                tuple(inputs.values()))
    with torch.no_grad():
        for m in module.modules():  # the statistics that calm() made stay
            if isinstance(m, torch.nn.modules.batchnorm._BatchNorm):
                m.eval()
        for seed in range(8):
            module(*nets.like(inputs, seed).values())
        module.eval()
        for m in module.modules():
            if isinstance(m, FakeQuantize):
                m.disable_observer()
        if integers:
            module = convert_fx(module)
        module(*inputs.values())
        torch.onnx.export(module, tuple(inputs.values()), str(out), dynamo=False, opset_version=17,
                          input_names=list(inputs), output_names=["output"])


def pt2e(job, out, qat=False):
    """The exported graph quantized (PT2E), then torch's newer ONNX exporter."""
    from torchao.quantization.pt2e import move_exported_model_to_eval
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e, prepare_qat_pt2e
    from torchao.quantization.pt2e.quantizer.x86_inductor_quantizer import (X86InductorQuantizer,
        get_default_x86_inductor_quantization_config)

    module, inputs = built(job.net)
    args = tuple(inputs.values())
    quantizer = X86InductorQuantizer().set_global(get_default_x86_inductor_quantization_config(is_qat=qat))
    program = torch.export.export(copy.deepcopy(module), args).module()
    program = (prepare_qat_pt2e if qat else prepare_pt2e)(program, quantizer)
    with torch.no_grad():
        for seed in range(8):
            program(*nets.like(inputs, seed).values())
        program = convert_pt2e(program)
        move_exported_model_to_eval(program)
        torch.onnx.export(program, args, str(out), dynamo=True, opset_version=20, external_data=False,
                          verbose=False, input_names=list(inputs), output_names=["output"])


PLAIN = (
    "resnet18 mobilenet_v2 mobilenet_v3_small squeezenet unet regnet mnasnet super dcgan_judge mlp yolo "
    "shufflenet_v2").split()
QAT = [
    ("qat-x86", "quant", "torch.ao QAT", PLAIN, aware, {}),
    ("qat-qnnpack", "quant", "torch.ao QAT", PLAIN, aware, {"config": "qnnpack"}),
    ("qat-eager", "quant", "torch.ao QAT", ["resnet18", "mobilenet_v2", "mlp"], aware,
     {"config": "fbgemm", "eager": True}),
    ("torch-int8", "quant", "torch.ao integer modules", PLAIN, aware,
     {"config": "qnnpack", "integers": True}),
    ("pt2e", "quant", "torchao PT2E", PLAIN + ["vit", "minilm"], pt2e, {}),
    ("pt2e-qat", "quant", "torchao PT2E", ["resnet18", "mobilenet_v2"], pt2e, {"qat": True}),
]


# ---- simplifiers, and other versions of the standard ----


def slim(job, out, of=None):
    import onnxslim

    onnx.save(onnxslim.slim(onnx.load(str(job.made(of) if of else job.base()))), str(out))


def simplified(job, out, of=None):
    import onnxsim

    model, fine = onnxsim.simplify(onnx.load(str(job.made(of) if of else job.base())))
    if not fine:
        raise RuntimeError("onnxsim says that its result is not the same")
    onnx.save(model, str(out))


def converted(job, out, version):
    from onnx import version_converter

    onnx.save(version_converter.convert_version(onnx.load(str(job.base())), version), str(out))


WIDE = (
    "resnet18 mobilenet_v3_small googlenet unet yolo vit swin minilm bert gpt2 llama t5 lstm gru "
    "shufflenet_v2 super deeplab whisper").split()
SIMPLIFY = [
    ("slim", "float", "onnxslim", WIDE, slim, {}),
    ("slim-q", "quant", "onnxslim", WIDE[:8], slim, {"of": "qdq-u8s8-pc"}),
    ("sim", "float", "onnxsim", WIDE, simplified, {}),
    ("sim-q", "quant", "onnxsim", WIDE[:8], simplified, {"of": "qdq-s8s8"}),
    *((f"v{v}", "float", "onnx version converter", WIDE, converted, {"version": v}) for v in (19, 21, 24)),
    *((f"torch-v{v}", "float", "torch.onnx, other opsets", WIDE, exported, {"opset": v})
      for v in (9, 11, 13, 15)),
    *((f"dynamo-v{v}", "float", "torch.onnx, other opsets", WIDE[:12], exported, {"opset": v, "dynamo": True})
      for v in (18, 23)),
]
