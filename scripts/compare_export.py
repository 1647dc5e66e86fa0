#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `hone compile` writes, run by ONNX Runtime:  compare_export.py HONE MODELS_FOLDER [NAME…]

Each model is compiled to ONNX; ONNX Runtime must load that, and give the outputs of the model's data
sets. Says so and succeeds when ONNX Runtime or the models are not on this machine."""
import pathlib
import subprocess
import sys
import tempfile

RTOL, ATOL = 1e-3, 1e-4  # as tests/models.sh
LOOSER = {"mobilenetv2-int8-qdq": 2.0, "basic-pitch": 5e-4}


def last_line(run):
    return ((run.stderr or run.stdout).strip().splitlines() or [f"exit code {run.returncode}"])[-1]


def tensors(onnx, data, kind):
    files = sorted(data.glob(f"{kind}_*.pb"), key=lambda f: int(f.stem.split("_")[1]))
    return [onnx.numpy_helper.to_array(onnx.load_tensor(str(f))) for f in files]


def difference(numpy, got, want, atol):
    """The first thing that differs, in words; None when nothing does."""
    if len(got) != len(want):
        return f"{len(got)} outputs, not {len(want)}"
    for k, (a, b) in enumerate(zip(got, want)):
        a = numpy.asarray(a)
        if a.shape != b.shape or a.dtype != b.dtype:
            return f"output {k} is {a.dtype}{list(a.shape)}, not {b.dtype}{list(b.shape)}"
        if a.dtype.kind in "fc" and not numpy.allclose(a, b, RTOL, atol, equal_nan=True):
            return f"output {k} differs by up to {numpy.nanmax(numpy.abs(a.astype('f8') - b)):.3g}"
        if a.dtype.kind not in "fc" and a.dtype.kind != "O" and numpy.abs(
            a.astype("f8") - b.astype("f8")).max(initial=0) > (atol if atol >= 1 else 0):
            return f"output {k} differs"
        if a.dtype.kind == "O" and (a != b).any():
            return f"output {k} differs"
    return None


def check(hone, model, sets, onnx, ort, numpy):
    """(words about what was written, error or None)"""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder, "out.onnx")
        run = subprocess.run([hone, "compile", str(model), "-o", str(out)], capture_output=True, text=True)
        if run.returncode:
            return "", last_line(run)
        proto = onnx.load(str(out), load_external_data=False)
        about = (
            f"opset {max(o.version for o in proto.opset_import if o.domain == '')}, {len(proto.graph.node)} "
            f"nodes")
        try:
            # the checker wants a rank; a runtime does not
            if all(v.type.tensor_type.HasField("shape") for v in proto.graph.output):
                onnx.checker.check_model(str(out))
            options = ort.SessionOptions()
            # the nodes as they are written
            options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
            session = ort.InferenceSession(str(out), options, providers=["CPUExecutionProvider"])
            for data in sets:
                feeds = dict(zip([i.name for i in session.get_inputs()], tensors(onnx, data, "input")))
                error = difference(numpy, session.run(None, feeds), tensors(onnx, data, "output"),
                                   LOOSER.get(model.parent.name, ATOL))
                if error:
                    return about, f"{data.name}: {error}"
        except Exception as error:  # of any kind: the runtime has no common one
            return about, str(error).splitlines()[0][:200]
    return about, None


def main():
    hone, folder, wanted = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3:]
    try:
        import numpy
        import onnx
        import onnx.numpy_helper
        import onnxruntime as ort
    except ImportError as missing:
        print(f"exported models in ONNX Runtime: skipped ({missing})")
        return 0
    cases = [(m, sorted(m.parent.glob("test_data_set_[0-9]*"))) for m in sorted(folder.glob("*/model.onnx"))]
    cases += [(m, sorted(m.parent.glob("test_data_set_past_*")))
              for m in sorted(folder.glob("*/decoder_with_past.onnx"))]
    cases = [c for c in cases if not wanted or c[0].parent.name in wanted]
    if not cases or not pathlib.Path(hone).exists():
        print("exported models in ONNX Runtime: skipped (no models, or no command)")
        return 0
    ort.set_default_logger_severity(4)
    failed = 0
    for model, sets in cases:
        about, error = check(hone, model, sets, onnx, ort, numpy)
        failed += error is not None
        name = model.parent.name + ("" if model.stem == "model" else f"/{model.stem}")
        print(f"{'FAIL' if error else 'pass'}  {name:<34} {about:<22} {len(sets)} sets  {error or ''}",
              flush=True)
    print(f"ONNX Runtime {ort.__version__}: {len(cases) - failed} exported models agree, {failed} do not")
    return 1 if failed else 0


sys.exit(main())
