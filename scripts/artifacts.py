#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Models as other projects' tools leave them, for compare_artifacts.py:  artifacts.py FOLDER [--only WORD…]
[--list] [--seconds N]

Seeded networks (artifacts_nets.py) exported by torch, then changed by ONNX Runtime's quantizers,
optimizers and converters, and by the tools of others (artifacts_tools.py). Hone takes no part.
FOLDER/NET.RECIPE/ gets
    model.onnx                  and what belongs to it
    test_data_set_0/            input_K.pb, and output_K.pb: ONNX Runtime's answer with its optimizations off
    optimized/output_K.pb       its answer with them on
    float/output_K.pb           the answer of the f32 network it was made from
    own/output_K.pb             of halves that torch exported: torch's own answer in halves
    case.json                   net, recipe, group, tool, kind (float, half, quant), and what ONNX Runtime
                                refused
What is there already is kept. --only takes words: a group, a net, a recipe or NET.RECIPE; all of one kind
may match. What a tool or ONNX Runtime cannot make goes, with the reason, into FOLDER/refused.txt.

A venv for it:  python3 -m venv V && V/bin/pip install torch torchvision transformers timm onnx onnxruntime
onnxscript onnxconverter-common
onnxslim onnxsim sympy neural-compressor torchao"""
import argparse
import json
import logging
import os
import pathlib
import shutil
import sys
import time
import warnings

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
warnings.simplefilter("ignore")

import artifacts_tools as tools  # noqa: E402
from artifacts_nets import NETS  # noqa: E402

# The nets that most recipes are tried on, and the wider circles
FIRST = "resnet18 mobilenet_v3_small googlenet regnet vit swin unet minilm".split()
TIMED = [n for n in NETS if n.endswith(("_224", "_128", "_1024"))]
QTIMED = [n for n in TIMED if not n.endswith("_1024")]
BERTS = "bert minilm bert_classic bert_classifier distilbert roberta electra albert mpnet".split()
DECODERS = "gpt2 gpt_neox opt llama mistral qwen2 qwen3 phi gemma".split()
OTHERS = "t5 bart whisper clip wav2vec2 hf_vit".split()
PICTURES = [n for n in list(NETS)[: list(NETS).index("mlp")] if n not in TIMED]
SMALL = [n for n in NETS if n not in TIMED]
SOME = (
    "mobilenet_v2 efficientnet_b0 shufflenet_v2 squeezenet densenet121 mnasnet convnext swin_v2 maxvit "
    "unet_bilinear deeplab lraspp yolo super dcgan dcgan_judge mixer vae mlp tcn regnet_y mobilevit "
    "efficientvit repvgg poolformer ghostnet segformer").split()
TEXT = BERTS + DECODERS + OTHERS
RNNS = ["lstm", "bilstm", "gru"]

# group: [(recipe, kind, tool, nets, function of (job, its options))]
GROUPS = {
    "export": [
        ("torchscript", "float", "torch.onnx (TorchScript)", SMALL + TIMED, tools.exported, {}),
        ("dynamo", "float", "torch.onnx (dynamo)", SMALL, tools.exported, {"dynamo": True}),
    ],
    "qdq": [
        ("qdq-s8s8", "quant", "quantize_static QDQ", FIRST + SOME + BERTS + RNNS, tools.static, {}),
        ("qdq-u8s8-pc", "quant", "quantize_static QDQ", FIRST + SOME + QTIMED + TEXT, tools.static,
         {"activation": "QUInt8", "per_channel": True, "prepare": True}),
        ("qdq-u8u8", "quant", "quantize_static QDQ", FIRST + SOME, tools.static,
         {"activation": "QUInt8", "weight": "QUInt8", "prepare": True}),
        ("qdq-s8s8-pc-plain", "quant", "quantize_static QDQ", FIRST, tools.static, {"per_channel": True}),
        ("qdq-u8s8-symmetric", "quant", "quantize_static QDQ", FIRST, tools.static,
         {"activation": "QInt8", "prepare": True,
          "extra": {"ActivationSymmetric": True, "QuantizeBias": True}}),
        ("qdq-u16s8", "quant", "quantize_static QDQ", FIRST, tools.static,
         {"activation": "QUInt16", "prepare": True}),
        ("qdq-s16s8-pc", "quant", "quantize_static QDQ", FIRST[:3] + ["minilm"], tools.static,
         {"activation": "QInt16", "per_channel": True, "prepare": True}),
        ("qdq-u8s4", "quant", "quantize_static QDQ", FIRST[:3] + ["minilm", "vit"], tools.static,
         {"activation": "QUInt8", "weight": "QInt4", "prepare": True}),
        ("qdq-u16u4-pc", "quant", "quantize_static QDQ", ["resnet18", "unet", "minilm"], tools.static,
         {"activation": "QUInt16", "weight": "QUInt4", "per_channel": True, "prepare": True}),
        ("qdq-dedicated", "quant", "quantize_static QDQ", FIRST[:2] + ["vit"], tools.static,
         {"activation": "QUInt8", "prepare": True, "extra": {"DedicatedQDQPair": True}}),
        ("qdq-inputs-kept", "quant", "quantize_static QDQ", FIRST[:3] + ["minilm"], tools.static,
         {"activation": "QUInt8", "prepare": True,
          "extra": {"AddQDQPairToWeight": True, "ForceQuantizeNoInputCheck": True}}),
        ("qdq-float-bias", "quant", "quantize_static QDQ", FIRST[:3] + ["minilm"], tools.static,
         {"prepare": True, "extra": {"QuantizeBias": False}}),
        ("qdq-entropy", "quant", "quantize_static QDQ", FIRST[:2] + ["mlp"], tools.static,
         {"activation": "QUInt8", "prepare": True, "method": "Entropy"}),
        ("qdq-ms", "quant", "quantize_static QDQ", FIRST[:2] + ["vit"], tools.static,
         {"activation": "QUInt8", "prepare": True, "extra": {"UseQDQContribOps": True}}),
        ("qdq-matmul-only", "quant", "quantize_static QDQ", ["minilm", "bert", "vit", "gpt2", "llama"],
         tools.static, {"prepare": True, "ops": ["MatMul", "Gemm"]}),
        ("qdq-config", "quant", "get_qdq_config", FIRST, tools.configured, {}),
    ],
    "qoperator": [
        ("qop-u8u8", "quant", "quantize_static QOperator", FIRST + SOME, tools.static,
         {"format": "QOperator", "activation": "QUInt8", "weight": "QUInt8", "prepare": True}),
        ("qop-u8s8-pc", "quant", "quantize_static QOperator", FIRST + QTIMED, tools.static,
         {"format": "QOperator", "activation": "QUInt8", "per_channel": True, "prepare": True}),
        ("qop-s8s8", "quant", "quantize_static QOperator", FIRST + BERTS[:2], tools.static,
         {"format": "QOperator", "prepare": True}),
        ("qop-s8s8-plain", "quant", "quantize_static QOperator", FIRST, tools.static,
         {"format": "QOperator"}),
    ],
    "dynamic": [
        ("dyn-s8", "quant", "quantize_dynamic", FIRST + TEXT + RNNS
         + ["minilm_128", "classic_128", "vit_224"], tools.dynamic, {}),
        ("dyn-u8", "quant", "quantize_dynamic", FIRST + ["bert", "gpt2", "t5", "mlp"] + RNNS, tools.dynamic,
         {"weight": "QUInt8"}),
        ("dyn-s8-pc", "quant", "quantize_dynamic",
         ["minilm", "bert", "vit", "swin", "gpt2", "lstm", "mixer", "minilm_128", "classic_128"],
         tools.dynamic, {"per_channel": True, "reduce_range": True}),
    ],
    "half": [  # swin in bf16: torch writes a Cast to complex numbers there, which is no model
        ("f16", "half", "onnxruntime.transformers float16", FIRST + TEXT
         + ["yolo", "super", "dcgan", "lstm", "gru", "mobilenet_v2_224", "resnet18_224", "minilm_128",
            "classic_128", "vit_224"], tools.float16, {}),
        ("f16-io", "half", "onnxruntime.transformers float16", FIRST + ["bert", "gpt2", "llama"],
         tools.float16, {"keep_io_types": True}),
        ("f16-cc", "half", "onnxconverter_common float16", FIRST + ["bert", "gpt2", "llama", "whisper"],
         tools.float16_common, {}),
        ("f16-mixed", "half", "onnxconverter_common mixed", ["resnet18", "bert", "mlp"], tools.float16_mixed,
         {}),
        ("f16-torch", "half", "torch.onnx of halves", FIRST + ["bert", "gpt2", "llama"], tools.exported,
         {"dtype": "float16"}),
        ("bf16-torch", "half", "torch.onnx of halves", [n for n in FIRST if n != "swin"]
         + ["bert", "gpt2", "llama"], tools.exported, {"dtype": "bfloat16"}),
    ],
    "ort": [
        ("ort-basic", "float", "ONNX Runtime's optimizer", FIRST + ["bert", "gpt2", "yolo", "lstm"],
         tools.optimized, {"level": "BASIC"}),
        ("ort-extended", "float", "ONNX Runtime's optimizer", FIRST + SOME + TEXT, tools.optimized,
         {"level": "EXTENDED"}),
        ("ort-all", "float", "ONNX Runtime's optimizer", FIRST + TEXT[:4], tools.optimized, {"level": "ALL"}),
        ("ort-extended-q", "quant", "ONNX Runtime's optimizer", FIRST + SOME[:6], tools.optimized,
         {"level": "EXTENDED", "of": "qdq-u8s8-pc"}),
        ("ort-all-q", "quant", "ONNX Runtime's optimizer", FIRST, tools.optimized,
         {"level": "ALL", "of": "qdq-u8u8"}),
        ("ort-all-s8", "quant", "ONNX Runtime's optimizer", FIRST, tools.optimized,
         {"level": "ALL", "of": "qdq-s8s8"}),
        ("ort-all-dyn", "quant", "ONNX Runtime's optimizer", FIRST + ["bert", "gpt2", "lstm"],
         tools.optimized, {"level": "ALL", "of": "dyn-s8"}),
    ],
    "transformers": tools.TRANSFORMERS,
    "nbits": tools.NBITS,
    "qat": tools.QAT,
    "simplify": tools.SIMPLIFY,
}


def cases(words):
    """(group, net, recipe, kind, tool, function, options) in order, of those that all words match."""
    for group, rows in GROUPS.items():
        for recipe, kind, tool, nets, make, options in rows:
            for net in dict.fromkeys(nets):
                if all(w in (group, net, recipe, f"{net}.{recipe}") for w in words):
                    yield group, net, recipe, kind, tool, make, options


def finish(folder, job, about):
    """Inputs, and ONNX Runtime's answers with and without its optimizations. Raises where it gives none."""
    model, feeds = folder / "model.onnx", tools.fit(folder / "model.onnx", job.feeds())
    tools.store(folder / "test_data_set_0", "input", feeds)
    told, answers = {}, {}
    for where, level in (("test_data_set_0", "DISABLE_ALL"), ("optimized", "ENABLE_ALL")):
        try:
            answers[where] = tools.answer(model, feeds, level)
            tools.store(folder / where, "output", answers[where])
        except Exception as error:  # of any kind: the runtime has no common one
            told[where] = tools.one_line(error)
    if not answers and "bf16" not in about["recipe"]:  # of bf16 torch has an answer
        raise RuntimeError(f"ONNX Runtime: {told['optimized']}")
    if about["recipe"] != "torchscript":
        tools.store(folder / "float", "output", job.float_answer())
    about["refused"] = told
    (folder / "case.json").write_text(json.dumps(about, indent=1) + "\n")


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("folder", type=pathlib.Path)
    a.add_argument("--only", nargs="+", default=[])
    a.add_argument("--list", action="store_true", help="says what would be made, and what is there")
    a.add_argument("--seconds", type=float, default=1e9, help="stops, between two models, after so long")
    a.add_argument("--again", action="store_true",
                   help="makes what is there once more, and tries what was refused")
    o = a.parse_args()
    wanted, begun, made, there = list(cases(o.only)), time.time(), 0, 0
    if o.list:
        for group, net, recipe, kind, tool, *_ in wanted:
            print(
                f"{'there' if (o.folder / f'{net}.{recipe}' / 'case.json').exists() else '-':6}"
                f"{group:13}{kind:6} {net}.{recipe:24} {tool}")
        print(f"{len(wanted)} models of {len({c[1] for c in wanted})} networks")
        return 0
    logging.disable(logging.CRITICAL)
    o.folder = o.folder.resolve()
    o.folder.mkdir(parents=True, exist_ok=True)
    list_of_refused = o.folder / "refused.txt"
    refused = dict(line.split("\t", 1)
                   for line in list_of_refused.read_text().splitlines()) if list_of_refused.exists() else {}
    for group, net, recipe, kind, tool, make, options in wanted:
        name, final = f"{net}.{recipe}", o.folder / f"{net}.{recipe}"
        if not o.again and ((final / "case.json").exists() or name in refused):
            there += 1
            continue
        if time.time() - begun > o.seconds:
            print(f"stopped after {o.seconds:g} s; call it again")
            return 3
        draft, started = o.folder / f".{name}", time.time()
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir()
        about = {"net": net, "recipe": recipe, "group": group, "tool": tool, "kind": kind,
                 "made_by": tools.versions()}
        try:
            job = tools.Job(o.folder, net)
            with tools.silence():
                make(job, draft / "model.onnx", **options)
                finish(draft, job, about)
            shutil.rmtree(final, ignore_errors=True)
            draft.rename(final)
            refused.pop(name, None)
            made += 1
            print(f"made   {name:40} {time.time() - started:5.1f} s"
                  + "".join(f"  ONNX Runtime refuses ({k}): {v}" for k, v in about["refused"].items()),
                  flush=True)
        except FileNotFoundError as missing:  # a model that this one is made from: another call may make it
            shutil.rmtree(draft, ignore_errors=True)
            print(f"waits  {name:40} {missing}", flush=True)
        except Exception as error:
            shutil.rmtree(draft, ignore_errors=True)
            refused[name] = tools.one_line(error)
            print(f"cannot {name:40} {refused[name]}", flush=True)
        list_of_refused.write_text("".join(f"{k}\t{v}\n" for k, v in sorted(refused.items())))
    print(f"{made} made, {there} were there or had been refused, {len(refused)} are refused in all")
    return 0


if __name__ == "__main__":
    sys.exit(main())
