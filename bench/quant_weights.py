#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Weights in fewer bits beside ONNX Runtime's MatMulNBits quantizer, on a decoder: perplexity, size and
time to make, all judged by ONNX Runtime on the written files.

    quant_weights.py HONE stories260K/model.onnx stories260K/decoder_with_past.onnx

Calibration and judging take different sequences that the float model itself samples, at temperature 1 and
with a seed. Needs numpy, onnx, onnxruntime (and onnx_ir for its quantizer).
"""
import argparse
import os
import subprocess
import tempfile
import time

import numpy as np
import onnxruntime as ort

ort.set_default_logger_severity(4)


def session(path):
    return ort.InferenceSession(path, providers=["CPUExecutionProvider"])


def sampled(decoder, count, length, rng):
    """So many sequences from token 1 on."""
    s = session(decoder)
    past = {i.name: np.zeros([count] + [d if isinstance(d, int) else 0 for d in i.shape[1:]], np.float32)
            for i in s.get_inputs()[1:]}
    ids = last = np.full((count, 1), 1, np.int64)
    while ids.shape[1] < length:
        logits, *state = s.run(None, {s.get_inputs()[0].name: last, **past})
        past = dict(zip(past, state))
        p = np.exp(logits[:, -1].astype(np.float64) - logits[:, -1].max(1, keepdims=True))
        last = np.array([[rng.choice(p.shape[1], p=row / row.sum())] for row in p])
        ids = np.concatenate([ids, last], 1)
    return ids


def perplexity(path, ids):
    s, total = session(path), 0.0
    for part in np.array_split(ids, 8):
        logits = s.run(None, {s.get_inputs()[0].name: part})[0].astype(np.float64)[:, :-1]
        top = logits.max(-1, keepdims=True)
        log_p = logits - top - np.log(np.exp(logits - top).sum(-1, keepdims=True))
        total -= np.take_along_axis(log_p, part[:, 1:, None], -1).sum()
    return float(np.exp(total / ids[:, 1:].size))


def theirs(model, to, way, calibration):
    from onnx import load
    from onnxruntime.quantization import CalibrationDataReader
    from onnxruntime.quantization import matmul_nbits_quantizer as q

    class Reader(CalibrationDataReader):
        def __init__(self):
            self.rows = iter([{"input_ids": calibration[k : k + 1]}
                              for k in range(min(len(calibration), 64))])

        def get_next(self):
            return next(self.rows, None)

    config = {
        "RTN": lambda: q.DefaultWeightOnlyQuantConfig(block_size=32, is_symmetric=False),
        "HQQ": lambda: q.HQQWeightOnlyQuantConfig(block_size=32),
        "GPTQ": lambda: q.GPTQWeightOnlyQuantConfig(calibration_data_reader=Reader(), block_size=32),
    }[way]()
    made = q.MatMulNBitsQuantizer(load(model), algo_config=config)
    made.process()
    made.model.save_model_to_file(to)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("hone"), p.add_argument("model"), p.add_argument("decoder")
    p.add_argument("--sequences", type=int, default=128), p.add_argument("--judge", type=int,
        default=64), p.add_argument("--length", type=int, default=256)
    a = p.parse_args()
    rng = np.random.default_rng(1)
    calibration, judged = sampled(a.decoder, a.sequences, a.length, rng), sampled(a.decoder, a.judge,
        a.length, rng)
    with tempfile.TemporaryDirectory() as folder:
        data, to = os.path.join(folder, "ids.npy"), os.path.join(folder, "q.onnx")
        np.save(data, calibration)
        ours = {
            "Hone int8, rounded": ["--weights", "int8"],
            "Hone int4, rounded": ["--weights", "int4", "--tables", "none"],
            "Hone nf4, rounded": ["--weights", "nf4", "--tables", "none"],
            "Hone int4, samples": ["--weights", "int4", "--tables", "none", "--data", data],
            "Hone int4, samples, tables int8": ["--weights", "int4", "--data", data],
            "Hone dynamic": ["--dynamic"],
            "Hone dynamic, samples": ["--dynamic", "--data", data, "--samples", "32"],
        }
        base = perplexity(a.model, judged)
        print(
            f"| model | perplexity | of f32 | size | seconds |\n|---|---:|---:|---:|---:|\n| f32 | "
            f"{base:.4f} | 1 | 1 | |")
        for name in [*ours, "ONNX Runtime RTN", "ONNX Runtime HQQ", "ONNX Runtime GPTQ"]:
            began = time.time()
            try:
                if name in ours:
                    subprocess.run([a.hone, "quantize", a.model, *ours[name], "-o", to], check=True,
                                   capture_output=True)
                else:
                    theirs(a.model, to, name.split()[-1], calibration)
                took, is_ = time.time() - began, perplexity(to, judged)
                print(
                    f"| {name} | {is_:.4f} | {is_ / base:.4f} | "
                    f"{os.path.getsize(to) / os.path.getsize(a.model):.3f} | {took:.1f} |", flush=True)
            except Exception as e:  # a tool that fails is a row, too
                print(f"| {name} | fails: {str(e).splitlines()[0][:80]} | | | |", flush=True)


if __name__ == "__main__":
    main()
