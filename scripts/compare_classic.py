#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Classic models beside ONNX Runtime's answers:  compare_classic.py HONE FOLDER

FOLDER is what artifacts_classic.py left. Every model must run; floats lie within 1e-3 of the largest value of ONNX Runtime's answer; labels
and other integers and strings are equal, except in a row whose two best scores are the same but for rounding. Counts by tool. Says so and
succeeds when the models, the command or the packages are not on this machine."""
import collections
import pathlib
import subprocess
import sys
import tempfile

TOLERANCE, TIE = 1e-3, 1e-5


def read(path, kind, onnx, numpy):
    """A tensor of numbers or strings, or a list of tensors or dicts, from a .npy or .pb file; kind: as the model's output states it."""
    if path.suffix == ".npy":
        return numpy.load(path)
    if kind == "tensor_type":
        tensor = onnx.load_tensor(str(path))
        if tensor.data_type == onnx.TensorProto.STRING:
            return numpy.array(list(tensor.string_data), dtype=object).reshape(tuple(tensor.dims))
        return onnx.numpy_helper.to_array(tensor)
    if kind != "sequence_type":
        raise ValueError(f"{path.name}: a {kind} is not compared")
    list_ = onnx.SequenceProto()
    list_.ParseFromString(path.read_bytes())
    if list_.map_values:
        return [dict(zip(list(m.string_keys) or list(m.keys), [float(onnx.numpy_helper.to_array(t)) for t in m.values.tensor_values]))
                for m in list_.map_values]
    return [onnx.numpy_helper.to_array(t) for t in list_.tensor_values]


def as_matrix(value, numpy):
    """A list of maps as rows, its keys in order beside it; anything else as it is."""
    if isinstance(value, list) and value and isinstance(value[0], dict):
        keys = sorted(value[0])
        if any(sorted(row) != keys for row in value):
            raise ValueError("the maps do not all have the same keys")
        return keys, numpy.array([[row[k] for k in keys] for row in value], numpy.float64)
    return None, value


def ties(wanted, numpy):
    """Rows of scores whose two best are the same but for rounding (of one column: that lie at the border)."""
    rows = {}
    for value in wanted:
        if isinstance(value, numpy.ndarray) and value.dtype.kind == "f" and value.ndim == 2 and value.shape[1] and value.size:
            best = numpy.sort(value.astype(numpy.float64), axis=1)
            gap = best[:, -1] - best[:, -2] if value.shape[1] > 1 else numpy.abs(best[:, 0])
            rows[len(value)] = rows.get(len(value), False) | (gap <= TIE * max(1.0, float(numpy.nanmax(numpy.abs(best)))))
    return rows


def differs(got, want, tied, numpy):
    """What is wrong, or None."""
    if isinstance(want, list):
        if not isinstance(got, list) or len(got) != len(want):
            return "another kind of value, or of another length"
        return next((d for g, w in zip(got, want) if (d := differs(g, w, tied, numpy))), None)
    if got.shape != want.shape or got.dtype.kind != want.dtype.kind or got.dtype.itemsize != want.dtype.itemsize:
        return f"{got.dtype} {list(got.shape)} instead of {want.dtype} {list(want.shape)}"
    if want.dtype.kind == "f":
        finite = numpy.isfinite(want)
        if not (numpy.isfinite(got) == finite).all() or not ((got == want) | (numpy.isnan(got) & numpy.isnan(want)))[~finite].all():
            return "NaN or infinity at other places"
        if not finite.any():
            return None
        most, far = numpy.abs(want[finite]).max(), numpy.abs(got[finite].astype(numpy.float64) - want[finite]).max()
        return None if far <= TOLERANCE * most + 1e-30 else f"off by {far:.3g}; the largest value is {most:.3g}"
    wrong = got != want
    if len(want.shape) and len(want) in tied:
        wrong &= ~tied[len(want)].reshape((-1,) + (1,) * (want.ndim - 1))
    return f"{int(wrong.sum())} of {want.size} labels or integers differ" if wrong.any() else None


def compare(hone, model, data, onnx, numpy):
    """One model: what is wrong, or None."""
    with tempfile.TemporaryDirectory() as folder:
        run = subprocess.run([hone, "run", str(model), "--check", str(data), "--save", folder, "--threads", "1"], capture_output=True, text=True)
        if not any(pathlib.Path(folder).iterdir()):
            return ((run.stderr or run.stdout).strip().splitlines() or [f"exit code {run.returncode}"])[-1]
        wanted, got = [], []
        for k, slot in enumerate(onnx.load(str(model)).graph.output):
            kind = slot.type.WhichOneof("value")
            want = read(data / f"output_{k}.pb", kind, onnx, numpy)
            files = [f for f in (pathlib.Path(folder, f"output_{k}.{end}") for end in ("npy", "pb")) if f.exists()]
            lists = sorted(pathlib.Path(folder).glob(f"output_{k}_*.npy"), key=lambda p: int(p.stem.rsplit("_", 1)[1]))
            if not files and not lists:
                return f"output {k} was not written"
            have = read(files[0], kind, onnx, numpy) if files else [numpy.load(f) for f in lists]
            (keys, want), (other, have) = as_matrix(want, numpy), as_matrix(have, numpy)
            if keys != other:
                return f"output {k}: the maps have other keys"
            wanted.append(want)
            got.append(have)
        tied = ties(wanted, numpy)
        return next((f"output {k}: {d}" for k, (g, w) in enumerate(zip(got, wanted)) if (d := differs(g, w, tied, numpy))), None)


def main():
    hone, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    try:
        import numpy
        import onnx
        import onnx.numpy_helper
    except ImportError as missing:
        print(f"classic models: skipped ({missing})")
        return 0
    models = sorted(folder.glob("*/model.onnx"))
    if not models or not pathlib.Path(hone).exists():
        print(f"classic models: skipped (no command, or no models in {folder}: scripts/artifacts_classic.py makes them)")
        return 0
    count, failed = collections.Counter(), 0
    for model in models:
        tool = model.parent.name.split("-")[0]
        try:
            error = compare(hone, model, model.parent / "test_data_set_0", onnx, numpy)
        except (ValueError, OSError) as problem:
            error = str(problem)
        count[tool, error is None] += 1
        failed += error is not None
        if error:
            print(f"FAIL  {model.parent.name:<40} {error}", flush=True)
    for tool in sorted({t for t, _ in count}):
        print(f"{tool:<12} {count[tool, True]} of {count[tool, True] + count[tool, False]} models agree with ONNX Runtime")
    print(f"classic models: {len(models) - failed} of {len(models)} agree")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
