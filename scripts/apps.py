#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Applications from PyPI that carry, or make, their ONNX models and run them by onnxruntime: run
unchanged with onnxruntime and with Hone in its place (`python -m hone.as_onnxruntime`). Results must be
equal; times stand beside each other.

    scripts/apps.py [--python PYTHON] [--rounds 3] [--install] [NAME …]

PYTHON is an interpreter with hone, onnxruntime and the applications; --install makes a venv of that,
build-python/apps. Applications that are not installed are said to be skipped. Needs the folder
../shared/data for pictures and speech.
"""
import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

TOP = Path(__file__).resolve().parents[1]
DATA = TOP.parent / "shared" / "data"
# What to install; those after the bar without what they ask for, because it is not needed here, or large.
PACKAGES = "onnx onnxruntime rapidocr-onnxruntime magika skl2onnx scikit-learn requests tqdm scipy " \
           "soundfile librosa resampy mir_eval pretty_midi opencv-python-headless pathvalidate pillow"
BARE = "openwakeword==0.4.0 piper-tts nudenet basic-pitch ddddocr"

# Each is a program as its users write it; the last expression is timed: `work` once for its result, then
# again.
APPS = {
    "rapidocr": ("OCR: finds and reads lines", """
from PIL import Image, ImageDraw, ImageFont
import numpy as np
from rapidocr_onnxruntime import RapidOCR
picture = Image.new("RGB", (640, 320), "white")
draw = ImageDraw.Draw(picture)
for k, line in enumerate(("Hone reads models", "2026 invoice 17.50", "fastest run out")):
    draw.text((40, 30 + 90 * k), line, fill="black", font=ImageFont.load_default(size=40))
ocr = RapidOCR()
def work():
    return [[box, text, score] for box, text, score in ocr(np.asarray(picture))[0]]
"""),
    "ddddocr": ("OCR of captchas", """
import io
from PIL import Image, ImageDraw, ImageFont
import ddddocr
ocr, detector = ddddocr.DdddOcr(show_ad=False), ddddocr.DdddOcr(det=True, ocr=False, show_ad=False)
picture = Image.new("RGB", (160, 60), "white")
ImageDraw.Draw(picture).text((12, 8), "k7dQx", fill="navy", font=ImageFont.load_default(size=36))
file = io.BytesIO()
picture.save(file, "PNG")
def work():
    return [ocr.classification(file.getvalue()), detector.detection(file.getvalue())]
"""),
    "magika": ("guesses types of files", """
from magika import Magika
guess = Magika()
samples = [b"#include <stdio.h>\\nint main(void) { return 0; }\\n" * 9,
           b"import os\\nprint(os.getcwd())\\n" * 9,
           b"SELECT name FROM people WHERE age > 3;\\n" * 9, b"{\\"a\\": [1, 2, 3]}\\n" * 20,
           b"# Title\\n\\nSome *text*.\\n" * 9]
def work():
    return [[r.output.label, r.score] for r in map(guess.identify_bytes, samples)]
"""),
    "nudenet": ("detects parts of people", """
from nudenet import NudeDetector
detector = NudeDetector()
def work():
    return detector.detect(DATA + "/images/astronaut.png")
"""),
    "openwakeword": ("hears wake words", """
import soundfile
from openwakeword.model import Model
model = Model()
speech, rate = soundfile.read(DATA + "/audio/speech_16k.wav", dtype="int16")
def work():
    model.reset()
    return [{k: float(v) for k, v in model.predict(speech[at:at + 1280]).items()}
            for at in range(0, min(len(speech), 48000) - 1280, 1280)]
"""),
    "silero-vad": ("hears speech (openwakeword's copy)", """
import soundfile
from openwakeword.vad import VAD
speech, rate = soundfile.read(DATA + "/audio/speech_16k.wav", dtype="int16")
vad = VAD()
def work():
    vad.reset_states()
    return [float(vad.predict(speech[at:at + 480])) for at in range(0, min(len(speech), 48000) - 480, 480)]
"""),
    "basic-pitch": ("music to notes", """
import os, tempfile
import numpy as np, soundfile
from pathlib import Path
import basic_pitch
from basic_pitch.inference import Model, predict
t = np.arange(22050 * 3) / 22050
tones = sum(np.sin(2 * np.pi * f * t) * np.exp(-1.5 * (t % 1)) for f in (220, 277.18, 329.63)) / 4
path = os.path.join(tempfile.mkdtemp(), "tones.wav")
soundfile.write(path, tones, 22050)
model = Model(Path(basic_pitch.__file__).parent / "saved_models" / "icassp_2022" / "nmp.onnx")
def work():
    raw, midi, notes = predict(path, model)
    return [{k: [float(v.mean()), float(v.max()), list(v.shape)] for k, v in raw.items()},
            [[float(n[0]), float(n[1]), int(n[2])] for n in notes]]
""" ),
    "piper-tashkeel": ("puts vowels into Arabic", """
from piper.tashkeel import TashkeelDiacritizer
marks = TashkeelDiacritizer()
def work():
    return marks("\\u0628\\u0633\\u0645 "
                 "\\u0627\\u0644\\u0644\\u0647 \\u0627\\u0644\\u0631\\u062d\\u0645\\u0646")
"""),
    "piper-hebrew": ("puts vowels into Hebrew", """
from piper.hebrew import NakdimonDiacritizer
marks = NakdimonDiacritizer()
def work():
    return marks("\\u05e9\\u05dc\\u05d5\\u05dd \\u05e2\\u05d5\\u05dc\\u05dd")
"""),
    "scikit-learn": ("a pipeline converted by skl2onnx", """
import numpy as np
from sklearn.datasets import load_iris
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from skl2onnx import to_onnx
import onnxruntime
x, y = load_iris(return_X_y=True)
x = x.astype(np.float32)
fitted = make_pipeline(StandardScaler(),
                       GradientBoostingClassifier(n_estimators=60, random_state=0)).fit(x, y)
session = onnxruntime.InferenceSession(to_onnx(fitted, x[:1]).SerializeToString(),
                                       providers=["CPUExecutionProvider"])
def work():
    labels, odds = session.run(None, {session.get_inputs()[0].name: x})
    return [labels.tolist(), odds]
"""),
}
FRAME = """
import json as _json, sys as _sys, time as _time
DATA = _sys.argv[1]
_t = _time.perf_counter()
{program}
_made = _time.perf_counter() - _t
_result, _times = work(), []
while len(_times) < 3 or (sum(_times) < 1.5 and len(_times) < 200):
    _t = _time.perf_counter(); work(); _times.append(_time.perf_counter() - _t)
import onnxruntime as _runtime
_sys.stdout = _sys.__stdout__
print("\\n@@" + _json.dumps({{"result": _result, "seconds": sorted(_times)[len(_times) // 2], "ready": _made,
      "by": _runtime.__author__}}, default=lambda v: v.tolist() if hasattr(v, "tolist") else str(v)))
"""


def run(python: str, program: str, by_hone: bool) -> dict:
    """One program's result, in a process of its own."""
    with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
        file.write(FRAME.format(program=program))
        file.flush()
        command = [python, "-W", "ignore", *(["-m", "hone.as_onnxruntime"] if by_hone else []), file.name,
                   str(DATA)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if "@@" not in done.stdout:
        return {"failed": (done.stderr.strip().splitlines() or ["no output"])[-1], "all": done.stderr}
    return json.loads(done.stdout.rsplit("@@", 1)[1])


def differ(a, b, at: str = "result") -> str:
    """Where two results differ, or nothing. Numbers: by 1e-3, of themselves or of one."""
    if isinstance(a, float) or isinstance(b, float):
        same = isinstance(a, (int, float)) and isinstance(b, (int, float)) and math.isclose(a, b,
            rel_tol=1e-3, abs_tol=1e-3)
        return "" if same else f"{at}: {a} and {b}"
    if isinstance(a, dict) and isinstance(b, dict):
        if list(a) != list(b):
            return f"{at}: {list(a)} and {list(b)}"
        return next((d for d in (differ(a[k], b[k], f"{at}.{k}") for k in a) if d), "")
    if isinstance(a, list) and isinstance(b, list):
        if len(a) != len(b):
            return f"{at}: {len(a)} and {len(b)} items"
        return next((d for d in (differ(x, y, f"{at}[{k}]") for k, (x, y) in enumerate(zip(a, b))) if d), "")
    return "" if a == b else f"{at}: {a!r} and {b!r}"


def install() -> str:
    """A venv with everything."""
    folder = TOP / "build-python" / "apps"
    python = str(folder / "bin" / "python")
    if not os.path.exists(python):
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run([python, "-m", "pip", "-q", "install", *PACKAGES.split(), str(TOP / "python")],
                       check=True)
        subprocess.run([python, "-m", "pip", "-q", "install", "--no-deps", *BARE.split()], check=True)
    return python


def main() -> int:
    """Runs them, in turns, and prints a table."""
    options = argparse.ArgumentParser(description="Applications from PyPI, by onnxruntime and by Hone")
    options.add_argument("names", nargs="*", metavar="NAME", help=", ".join(APPS))
    options.add_argument("--python", default=sys.executable)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--install", action="store_true")
    asked = options.parse_args()
    strange = [name for name in asked.names if name not in APPS]
    if strange:
        options.error(f"'{strange[0]}' is none of {', '.join(APPS)}")
    python = install() if asked.install else asked.python
    bad = 0
    print(f"{'application':16} {'':36} {'ONNX Runtime':>13} {'Hone':>11} {'ratio':>7}  results")
    for name in asked.names or APPS:
        what, program = APPS[name]
        theirs, ours = [], []
        for _ in range(asked.rounds):
            theirs.append(run(python, program, False))
            if "failed" in theirs[-1]:
                break
            ours.append(run(python, program, True))
            if "failed" in ours[-1]:
                break
        failed = [r["failed"] for r in theirs + ours if "failed" in r]
        if failed and "failed" in theirs[-1] and "No module named" in failed[0]:
            print(f"{name:16} {what:36} skipped: {failed[0]}")
            continue
        if failed:
            print(
                f"{name:16} {what:36} {'ONNX Runtime' if 'failed' in theirs[-1] else 'Hone'} fails: "
                f"{failed[0]}")
            bad += 1
            continue
        assert all(r["by"] == "Hone" for r in ours) and all(r["by"] != "Hone" for r in theirs)
        difference = differ(theirs[0]["result"], ours[0]["result"])
        bad += bool(difference)
        a, b = (statistics.median(r["seconds"] for r in side) for side in (theirs, ours))
        print(
            f"{name:16} {what:36} {a * 1e3:10.2f} ms {b * 1e3:8.2f} ms {a / b:6.2f}x  "
            f"{difference or 'equal'}", flush=True)
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
