# SPDX-License-Identifier: Apache-2.0
"""Values that are no tensors of numbers (labels, lists, maps), read from files and compared: what classic
models give. For compare_artifacts.py; not run by itself."""
import numpy
import onnx
import onnx.numpy_helper

TIE = 1e-5


def read(path, kind):
    """A tensor of numbers or strings, or a list of tensors or dicts, from a .npy or .pb file; kind: as
    the model's output states it."""
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
        return [dict(zip(list(m.string_keys) or list(m.keys),
                         [float(onnx.numpy_helper.to_array(t)) for t in m.values.tensor_values]))
                for m in list_.map_values]
    return [onnx.numpy_helper.to_array(t) for t in list_.tensor_values]


def saved(folder, k, kind):
    """Output k as `hone run --save` wrote it: one file, or one a member of a list."""
    for name in (f"output_{k}.npy", f"output_{k}.pb"):
        if (folder / name).exists():
            return read(folder / name, kind)
    members = sorted(folder.glob(f"output_{k}_*.npy"), key=lambda p: int(p.stem.rsplit("_", 1)[1]))
    if not members:
        raise ValueError(f"output {k} was not written")
    return [numpy.load(f) for f in members]


def as_matrix(value):
    """A list of maps as rows, its keys in order beside it; anything else as it is."""
    if isinstance(value, list) and value and isinstance(value[0], dict):
        keys = sorted(value[0])
        if any(sorted(row) != keys for row in value):
            raise ValueError("the maps do not all have the same keys")
        return keys, numpy.array([[row[k] for k in keys] for row in value], numpy.float64)
    return None, value


def ties(wanted):
    """Rows of scores whose two best are the same but for rounding (of one column: that lie at the border)."""
    rows = {}
    for value in wanted:
        if isinstance(
            value,
            numpy.ndarray) and value.dtype.kind == "f" and value.ndim == 2 and value.shape[1] and value.size:
            best = numpy.sort(value.astype(numpy.float64), axis=1)
            gap = best[:, -1] - best[:, -2] if value.shape[1] > 1 else numpy.abs(best[:, 0])
            rows[len(value)] = rows.get(len(value),
                                        False) | (gap <= TIE * max(1.0, float(numpy.nanmax(numpy.abs(best)))))
    return rows


def differs(got, want, tied, tolerance):
    """What is wrong, or None."""
    if isinstance(want, list):
        if not isinstance(got, list) or len(got) != len(want):
            return "another kind of value, or of another length"
        return next((d for g, w in zip(got, want) if (d := differs(g, w, tied, tolerance))), None)
    if (got.shape != want.shape or got.dtype.kind != want.dtype.kind
        or got.dtype.itemsize != want.dtype.itemsize):
        return f"{got.dtype} {list(got.shape)} instead of {want.dtype} {list(want.shape)}"
    if want.dtype.kind == "f":
        finite = numpy.isfinite(want)
        if not (numpy.isfinite(got) == finite).all() or not ((got == want)
                                                             | (numpy.isnan(
                                                                 got) & numpy.isnan(want)))[~finite].all():
            return "NaN or infinity at other places"
        if not finite.any():
            return None
        most, far = numpy.abs(want[finite]).max(), numpy.abs(
            got[finite].astype(numpy.float64) - want[finite]).max()
        return (None if far <= tolerance * most + 1e-30
                else f"off by {far:.3g}; the largest value is {most:.3g}")
    wrong = got != want
    if len(want.shape) and len(want) in tied:
        wrong &= ~tied[len(want)].reshape((-1,) + (1,) * (want.ndim - 1))
    return f"{int(wrong.sum())} of {want.size} labels or integers differ" if wrong.any() else None


def differ(got, want, tolerance):
    """Of all outputs: what is wrong, or None."""
    got, want = [as_matrix(v) for v in got], [as_matrix(v) for v in want]
    tied = ties([w for _, w in want])
    for k, ((keys, g), (other, w)) in enumerate(zip(got, want)):
        wrong = "the maps have other keys" if keys != other else differs(g, w, tied, tolerance)
        if wrong:
            return f"output {k}: {wrong}"
    return None
