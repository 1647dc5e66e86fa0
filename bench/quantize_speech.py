# SPDX-License-Identifier: Apache-2.0
"""A detector of speech (silero-vad, all of which lies in the bodies of an If) with its weights in 8 bits
beside the float model: how many windows say speech or silence as before, and the size.

    quantize_speech.py HONE silero-vad/model.onnx SPEECH.wav [--tools hone,ort,nncf]

SPEECH is 16 kHz, mono, 16 bits. It is heard as it is, quiet, in noise, with pauses, and each of these at
8 kHz. ONNX Runtime runs every file; OpenVINO loads it. Needs numpy and onnxruntime; nncf, onnx and openvino
where they are installed."""
import argparse
import os
import subprocess
import tempfile
import wave

import numpy as np
import onnxruntime as ort

from quantize_text import loads

ort.set_default_logger_severity(4)


def heard(path):
    """(what, rate, samples from -1 to 1)"""
    with wave.open(path) as w:
        x = np.frombuffer(w.readframes(w.getnframes()), np.int16).astype(np.float32) / 32768
    rng = np.random.default_rng(1)
    pauses = x.copy()
    for k in range(0, len(x), 48000):
        pauses[k:k + 24000] = rng.normal(0, 1e-3, len(pauses[k:k + 24000]))
    all_of = {"as it is": x, "quiet": x * .05, "in noise": x + rng.normal(0, .02, len(x)).astype(np.float32),
              "with pauses": pauses}
    for what, y in all_of.items():
        y = y.astype(np.float32)
        yield what, 16000, y
        yield what, 8000, ((y[:-1:2] + y[1::2]) / 2)


def says(path, rate, x):
    """The share of speech in each window, one after the other with the state that the last one left."""
    s = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
    window, context = (512, 64) if rate == 16000 else (256, 32)
    state, last, out = np.zeros((2, 1, 128), np.float32), np.zeros(context, np.float32), []
    for k in range(0, len(x) - window + 1, window):
        now = x[k:k + window]
        p, state = s.run(None, {"input": np.concatenate([last, now])[None], "state": state,
                                "sr": np.array(rate, np.int64)})
        out.append(float(p[0, 0]))
        last = now[-context:]
    return np.array(out)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("hone"), p.add_argument("model"), p.add_argument("speech")
    p.add_argument("--tools", default="hone,ort,nncf")
    o = p.parse_args()
    sounds = list(heard(o.speech))
    want = [says(o.model, rate, x) for _, rate, x in sounds]
    with tempfile.TemporaryDirectory() as folder:
        made = {}

        def hone(out):
            subprocess.run([o.hone, "quantize", o.model, "--weights", "int8", "-o", out], check=True,
                           capture_output=True)

        def dynamic(out):
            from onnxruntime.quantization import QuantType, quantize_dynamic
            quantize_dynamic(o.model, out, per_channel=True, weight_type=QuantType.QInt8)

        def nncf(out):
            import nncf
            import onnx
            onnx.save(nncf.compress_weights(onnx.load(o.model)), out)

        for tool, label, make in (("hone", "hone, int8 weights", hone),
                                  ("ort", "ort dynamic, channel", dynamic), ("nncf", "nncf, weights", nncf)):
            if tool in o.tools.split(","):
                made[label] = make
        for label, make in made.items():
            out = f"{folder}/q.onnx"
            try:
                make(out)
                same, many, worst = 0, 0, 100.0
                for (what, rate, x), w in zip(sounds, want):
                    agree = (says(out, rate, x) > .5) == (w > .5)
                    same, many, worst = same + agree.sum(), many + len(w), min(worst, 100 * agree.mean())
                print(f"{label:24} {100 * same / many:.2f} % of {many} windows, least {worst:.2f} %  size "
                      f"{os.path.getsize(out) / os.path.getsize(o.model):.2f}  {loads(out)}", flush=True)
            except Exception as e:  # a tool that fails is a row, too
                print(f"{label:24} fails: {' '.join(str(e).split())[:120]}", flush=True)


if __name__ == "__main__":
    main()
