#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hone beside ONNX Runtime on inputs neither has seen:  compare_ort.py HONE MODELS_FOLDER

Takes each model's first data set, moves its float inputs by seeded noise, lets ONNX Runtime (its
optimizations off) give the outputs, and asks `hone run --check` to agree. Says so and succeeds when ONNX
Runtime or the models are not on this machine."""
import pathlib
import subprocess
import sys
import tempfile

RTOL, ATOL = "1e-3", "1e-4"
LOOSER = {"mobilenetv2-int8-qdq": "2.0"}  # atol: int8 rounding moves whole quantization steps


def compare(hone, model, data, onnx, ort, numpy):
    """One model: the error line of `hone`, or None when they agree."""
    noise = numpy.random.default_rng(7)
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    feeds = {}
    for i, slot in enumerate(session.get_inputs()):
        value = onnx.numpy_helper.to_array(onnx.load_tensor(str(data / f"input_{i}.pb")))
        if value.dtype.kind == "f":
            value = (value * (1 + 0.01 * noise.standard_normal(value.shape))).astype(value.dtype)
        feeds[slot.name] = value
    results = session.run(None, feeds)
    with tempfile.TemporaryDirectory() as folder:
        for kind, named in (("input", feeds.items()),
                            ("output", zip([o.name for o in session.get_outputs()], results))):
            for i, (name, value) in enumerate(named):
                tensor = onnx.numpy_helper.from_array(numpy.array(value, order="C"), name)
                pathlib.Path(folder, f"{kind}_{i}.pb").write_bytes(tensor.SerializeToString())
        atol = LOOSER.get(model.parent.name, ATOL)
        run = subprocess.run([hone, "run", str(model), "--check", folder, "--rtol", RTOL, "--atol", atol],
                             capture_output=True, text=True)
    return None if run.returncode == 0 else ((run.stderr or run.stdout).strip().splitlines()
                                             or [f"exit code {run.returncode}"])[-1]


def main():
    hone, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    try:
        import numpy
        import onnx
        import onnx.numpy_helper
        import onnxruntime as ort
    except ImportError as missing:
        print(f"compare with ONNX Runtime: skipped ({missing})")
        return 0
    cases = [(m, m.parent / "test_data_set_0") for m in sorted(folder.glob("*/model.onnx"))
             if (m.parent / "test_data_set_0").is_dir()]
    if not cases or not pathlib.Path(hone).exists():
        print("compare with ONNX Runtime: skipped (no models, or no command)")
        return 0
    ort.set_default_logger_severity(4)
    failed = 0
    for model, data in cases:
        error = compare(hone, model, data, onnx, ort, numpy)
        failed += error is not None
        print(f"{'FAIL' if error else 'pass'}  {model.parent.name:<26} {error or ''}")
    print(f"ONNX Runtime {ort.__version__}: {len(cases) - failed} models agree, {failed} differ")
    return 1 if failed else 0


sys.exit(main())
