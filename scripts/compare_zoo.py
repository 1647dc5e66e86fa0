#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every network of the zoo against ONNX Runtime:  compare_zoo.py HONE [SPEC...]

Each is written as ONNX, loaded and run there on seeded inputs, and compared with `hone run zoo:…` on the
same inputs. With dynamic=1 the free dims are small numbers. Files go to a temporary folder, one network
at a time."""
import json
import pathlib
import subprocess
import sys
import tempfile
import zlib

MOST = 1e-3  # of |got - expected| / (1 + |expected|)
FREE = {"batch": 2, "seq": 5, "past": 3}
# Beside every network with its own options: the forms that options choose.
EXTRA = [
    "resnet50?bn=1&image=96",
    "densenet121?bn=1&image=64",
    "mobilenet_v3_small?bn=1&batch=3&image=96",
    "efficientnet_b0?dynamic=1&image=96",
    "shufflenet_v2?dynamic=1&image=96",
    "yolo?dynamic=1&image=160&classes=7",
    "vit_b16?dynamic=1&layers=2",
    "bert_base?dynamic=1&layers=2&vocab=1000",
    "bert_base?batch=8&seq=256&layers=2&vocab=1000",
    "distilbert?dynamic=1&layers=2&vocab=1000",
    "gpt2?dynamic=1&layers=2&vocab=1000",
    "gpt2_cache?dynamic=1&layers=2&vocab=1000",
    "llama?dynamic=1&layers=2",
    "llama_cache?dynamic=1&layers=2",
    "llama?seq=16&layers=2&dim=64&heads=4&kv=4&hidden=96&vocab=500",
    "whisper?dynamic=1&seq=100",
    "lstm?dynamic=1",
    "gru?bi=1&batch=3",
    "dlrm?dynamic=1",
]


def values(slot, spec, numpy):
    """A seeded input of the declared shape; whole numbers stay inside every vocabulary."""
    noise = numpy.random.default_rng(zlib.crc32(f"{spec} {slot.name}".encode()))
    dims = [d if isinstance(d, int) else FREE.get(d, 2) for d in slot.shape]
    if slot.type == "tensor(float)":
        return noise.uniform(-1, 1, dims).astype(numpy.float32)
    if "mask" in slot.name:
        mask = numpy.ones(dims, numpy.int64)
        mask[..., dims[-1] * 3 // 4 + 1 :] = 0
        return mask
    return noise.integers(0, 2 if "type" in slot.name else 100, dims, dtype=numpy.int64)


def tell(run):
    return ((run.stderr or run.stdout).strip().splitlines() or [f"exit code {run.returncode}"])[-1]


def compare(hone, spec, ort, numpy):
    """The largest error, and a line that says what is wrong, or None."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        model = folder / "model.onnx"
        run = subprocess.run([hone, "zoo", spec, "-o", str(model)], capture_output=True, text=True)
        if run.returncode:
            return None, tell(run)
        session = ort.InferenceSession(str(model), providers=["CPUExecutionProvider"])
        feeds = {slot.name: values(slot, spec, numpy) for slot in session.get_inputs()}
        want = session.run(None, feeds)
        outputs = [o.name for o in session.get_outputs()]
        del session
        command = [hone, "run", f"zoo:{spec}", "--save", str(folder)]
        for slot, value in feeds.items():
            numpy.save(folder / f"in_{slot}.npy", value)
            command += ["--input", f"{slot}={folder}/in_{slot}.npy"]
        run = subprocess.run(command, capture_output=True, text=True)
        if run.returncode:
            return None, tell(run)
        worst = 0.0
        for k, (output, expect) in enumerate(zip(outputs, want)):
            got = numpy.load(folder / f"output_{k}.npy")
            if got.shape != expect.shape:
                return None, f"{output} is {got.shape}, not {expect.shape}"
            if not numpy.isfinite(expect).all() or expect.std() == 0:
                return None, f"{output} says nothing: not finite, or all the same"
            error = float((numpy.abs(got - expect) / (1 + numpy.abs(expect))).max())
            worst = max(worst, error)
            if not error <= MOST:
                return worst, f"{output} differs"
        return worst, None


def main():
    hone, wanted = sys.argv[1], sys.argv[2:]
    try:
        import numpy
        import onnxruntime as ort
    except ImportError as missing:
        print(f"the zoo beside ONNX Runtime: skipped ({missing})")
        return 0
    ort.set_default_logger_severity(4)
    every = json.loads(subprocess.run([hone, "zoo", "--json"], capture_output=True, text=True,
                                      check=True).stdout)
    specs = wanted or [m["name"] for m in every] + EXTRA
    failed = 0
    for spec in specs:
        try:
            worst, error = compare(hone, spec, ort, numpy)
        except Exception as reason:  # one that cannot be loaded there is one that fails here
            worst, error = None, str(reason).splitlines()[0]
        failed += error is not None
        print(
            f"{'FAIL' if error else 'pass'}  {spec:<64} {'' if worst is None else f'{worst:.1e}'} "
            f"{error or ''}", flush=True)
    print(f"ONNX Runtime {ort.__version__}: {len(specs) - failed} networks agree, {failed} differ")
    return 1 if failed else 0


sys.exit(main())
