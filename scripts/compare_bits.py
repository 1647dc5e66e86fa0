#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ops on weights of 2, 4 and 8 bits beside ONNX Runtime, on random cases:  compare_bits.py HONE [CASE ...]

Each case is a model of one com.microsoft node with constant weights; optional inputs come and go, so do
bits, block sizes, types and shapes. ONNX Runtime gives the outputs, and `hone run --check` must agree,
with its fast steps and by its interpreter. A case that ONNX Runtime refuses is counted, and compared with
the definition in numpy instead. Says so and succeeds when ONNX Runtime is not on this machine."""
import pathlib
import subprocess
import sys
import tempfile

MOST_WRONG = 20  # lines printed


def packed(values, bits, numpy):
    """Numbers below 2^bits along the last axis, lowest bits first, in whole bytes."""
    per = 8 // bits
    pad = -values.shape[-1] % per
    values = numpy.concatenate([values, numpy.zeros(values.shape[:-1] + (pad,), values.dtype)], -1)
    values = values.reshape(values.shape[:-1] + (-1, per)).astype(numpy.uint32)
    return (values << (numpy.arange(per, dtype=numpy.uint32) * bits)).sum(-1).astype(numpy.uint8)


class Case:
    """Inputs are fed, constants are initializers; expect: by the definition, in double."""

    def __init__(self, name, op, inputs, attributes, expect, rtol=1e-3, atol=1e-4, fed=(0,), runtime=True):
        self.runtime = runtime  # False: ONNX Runtime is known to compute something else
        self.name, self.op, self.inputs, self.attributes, self.expect = name, op, inputs, attributes, expect
        self.rtol, self.atol, self.fed = rtol, atol, fed


def half(kind, numpy):
    import ml_dtypes

    return {"f32": numpy.float32, "f16": numpy.float16, "bf16": ml_dtypes.bfloat16}[kind]


TOLERANCE = {"f32": (1e-3, 1e-4), "f16": (4e-3, 4e-3), "bf16": (2e-2, 3e-2)}


def matmul_nbits(numpy, rng):
    def case(bits, block, k, n, rows, kind="f32", zero=None, order=False, bias=False, level=0, flat=False):
        dtype, blocks = half(kind, numpy), -(-k // block)
        q = rng.integers(0, 1 << bits, (n, blocks * block))
        scale = (rng.uniform(0.01, 0.1, (n, blocks)) * rng.choice([-1, 1], (n, blocks))).astype(dtype)
        a = rng.standard_normal(tuple(rows) + (k,)).astype(dtype)
        where = numpy.repeat(numpy.arange(blocks), block)
        inputs = [a, packed(q.reshape(n, blocks, block), bits, numpy), scale]
        z = numpy.full((n, blocks), 1 << bits - 1, numpy.float64)
        if zero == "u8":
            z = rng.integers(0, 1 << bits, (n, blocks))
            inputs.append(packed(z, bits, numpy))
        elif zero == "float":
            zf = rng.uniform(0, (1 << bits) - 1, (n, blocks)).astype(dtype)
            z = zf.astype(numpy.float64)
            inputs.append(zf)
        if order:
            where = rng.integers(0, blocks, blocks * block).astype(numpy.int32)
            inputs += [None] * (4 - len(inputs)) + [where[:k]]
        if bias:
            inputs += [None] * (5 - len(inputs)) + [rng.standard_normal(n).astype(dtype)]
        w = ((q - z[:, where]) * scale.astype(numpy.float64)[:, where])[:, :k]
        expect = a.astype(numpy.float64) @ w.T + (inputs[5].astype(numpy.float64) if bias else 0)
        if flat:
            inputs[2] = inputs[2].reshape(-1)
            if zero:
                inputs[3] = inputs[3].reshape(-1)
        words = [f"{bits} bits, blocks of {block}", f"{'x'.join(map(str, rows))}x{k}x{n}", kind]
        words += [f"zero points {zero}"] * bool(zero) + ["g_idx"] * order + ["bias"] * bias + [
            "flat"] * flat + [f"level {level}"] * bool(level)
        attributes = {"K": k, "N": n, "bits": bits, "block_size": block}
        if level:
            attributes["accuracy_level"] = level
        rtol, atol = TOLERANCE[kind]
        # A is rounded to 8 bits a block: half a step of each element's block, the sum of which grows as a
        # root
        if level == 4:
            rtol, atol = rtol + 1e-2, atol + 0.03 * float(numpy.abs(expect).max())
        if kind == "f16" and bits == 8:  # summed in f16 there
            rtol, atol = rtol + 2e-2, atol + 2e-2 * float(numpy.abs(expect).max())
        # with g_idx it reads 2 bits as 4, and takes packed zero points for 8
        runtime = not (order and (bits == 2 or zero == "u8"))
        return Case("MatMulNBits: " + ", ".join(words), "MatMulNBits", inputs, attributes,
                    expect.astype(dtype), rtol, atol, runtime=runtime)

    for bits in (2, 4, 8):
        for block in (16, 32, 64, 128, 256):
            for zero in (None, "u8", "float"):
                k = int(rng.choice([block, block * 3, block * 4, block * 2 + 8]))
                n, m = int(rng.choice([1, 7, 16, 33, 64])), int(rng.choice([1, 2, 5, 17]))
                yield case(bits, block, k, n, (m,), zero=zero, bias=bool(rng.integers(2)),
                           flat=bool(rng.integers(2)))
                yield case(bits, block, k, n, (m,), zero=zero, level=4, bias=bool(rng.integers(2)))
        for kind in ("f16", "bf16"):
            for zero in (None, "u8", "float"):
                yield case(bits, 32, 96, 24, (3,), kind, zero)
        for zero in (None, "u8", "float"):
            yield case(bits, 32, 128, 24, (2,), zero=zero, order=True)
        yield case(bits, 32, 64, 40, (2, 3), zero="u8")
        yield case(bits, 32, 64, 8, (2, 3, 4), bias=True)
        yield case(bits, 16, 20, 5, (4,), zero="u8")
        yield case(bits, 128, 512, 256, (130,))
        yield case(bits, 32, 512, 256, (130,), zero="u8", level=4)


FP4 = [0, 5.208333333e-03, 0.66666667, 1, 0.33333333, 0.5, 0.16666667, 0.25]
NF4 = [-1, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635,
       -0.18477343022823334,
       -0.09105003625154495, 0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634,
       0.33791524171829224,
       0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1]


def matmul_bnb4(numpy, rng):
    tables = [numpy.array(FP4 + [-v for v in FP4]), numpy.array(NF4)]
    for quant_type in (0, 1):
        for block, k, n, rows in ((16, 32, 8, (3,)), (32, 48, 7, (1,)), (64, 33, 5, (2, 3)),
                                  (128, 256, 64, (9,)), (256, 100, 20, (4,))):
            q = rng.integers(0, 16, n * k + n * k % 2)
            absmax = rng.uniform(0.1, 1, -(-n * k // block)).astype(numpy.float32)
            w = (tables[quant_type][q[: n * k]] * numpy.repeat(absmax, block)[: n * k]).reshape(n, k)
            a = rng.standard_normal(rows + (k,)).astype(numpy.float32)
            b = (q[0::2] << 4 | q[1::2]).astype(numpy.uint8)
            yield Case(f"MatMulBnb4: {'FP4 NF4'.split()[quant_type]}, blocks of {block}, {k}x{n}",
                       "MatMulBnb4", [a, b, absmax],
                       {"K": k, "N": n, "block_size": block, "quant_type": quant_type},
                       (a @ w.T).astype(numpy.float32))


def gather(numpy, rng):
    import ml_dtypes

    for kind in ("f32", "f16", "bf16"):
        dtype = half(kind, numpy)
        for bits, name in ((2, "u8"), (4, "u8"), (8, "u8"), (4, "u4"), (4, "i4")):
            for shape, block, axes, at in (((6, 32), 16, (0, 1), (3,)), ((5, 3, 64), 32, (0, 2), (2, 2)),
                                           ((4, 80), 32, (0, -1), ()),
                                           ((40, 6), 16, (1, 0), (3,)), ((3, 40, 5), 32, (-1, 1), (2,)),
                                           ((36, 5), 16, (0, 0), (4,))):
                gather_axis, quantize_axis = axes
                if name == "u8" and (gather_axis or quantize_axis % len(shape) != len(shape) - 1):
                    continue
                for zeros in (False, True):
                    axis = quantize_axis % len(shape)
                    low = -8 if name == "i4" else 0
                    q = rng.integers(low, low + (1 << bits), shape)
                    blocks = tuple(-(-d // block) if i == axis else d for i, d in enumerate(shape))
                    scale = rng.uniform(0.1, 1, blocks).astype(dtype)
                    z = rng.integers(low, low + (1 << bits), blocks) if zeros else numpy.full(blocks,
                        (1 << bits - 1) if name == "u8" else 0)
                    spread = lambda v: numpy.take(numpy.repeat(v, block, axis), range(shape[axis]), axis)
                    full = (q - spread(z)) * spread(scale).astype(numpy.float32)
                    index = rng.integers(-shape[gather_axis], shape[gather_axis],
                                         at).astype(rng.choice([numpy.int32, numpy.int64]))
                    store = (lambda v: packed(v, bits, numpy)) if name == "u8" else (
                        lambda v: v.astype(getattr(ml_dtypes, {"u4": "uint4", "i4": "int4"}[name])))
                    inputs = [store(q), index, scale] + ([store(z)] if zeros else [])
                    rtol, atol = TOLERANCE[kind]
                    yield Case(
                        f"GatherBlockQuantized: {bits} bits of {name}, {shape}, gathered at {gather_axis}, "
                        f"blocks of {block} at {quantize_axis}, {kind}"
                               + ", zero points" * zeros, "GatherBlockQuantized", inputs,
                               {"bits": bits, "block_size": block, "gather_axis": gather_axis,
                                "quantize_axis": quantize_axis},
                               numpy.take(full, index, gather_axis).astype(dtype), rtol, atol, fed=(1,))


def tensor(value, name, onnx):
    from onnx import TensorProto, helper

    kinds = {"bfloat16": TensorProto.BFLOAT16, "uint4": TensorProto.UINT4, "int4": TensorProto.INT4}
    if value.dtype.name in ("uint4", "int4"):
        import numpy
        flat = value.astype(numpy.uint8).reshape(-1) & 15
        raw = packed(flat, 4, numpy).tobytes()
        return helper.make_tensor(name, kinds[value.dtype.name], value.shape, raw, raw=True)
    if value.dtype.name == "bfloat16":
        return helper.make_tensor(name, TensorProto.BFLOAT16, value.shape, value.tobytes(), raw=True)
    return onnx.numpy_helper.from_array(value, name)


def model_of(case, onnx):
    from onnx import helper

    names, constants, fed = [], [], []
    for i, value in enumerate(case.inputs):
        names.append("" if value is None else f"x{i}")
        if value is None:
            continue
        t = tensor(value, f"x{i}", onnx)
        if i in case.fed:
            fed.append((helper.make_tensor_value_info(f"x{i}", t.data_type, value.shape), t))
        else:
            constants.append(t)
    out = tensor(case.expect, "y", onnx)
    node = helper.make_node(case.op, names, ["y"], domain="com.microsoft", **case.attributes)
    graph = helper.make_graph([node], "g", [v for v, _ in fed],
                              [helper.make_tensor_value_info("y", out.data_type, case.expect.shape)],
                              constants)
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10), [t for _, t in fed]


def by_runtime(model, feeds, onnx, ort):
    """ONNX Runtime's answer; None: it refuses."""
    try:
        session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        values = {}
        for slot, t in zip(session.get_inputs(), feeds):
            if t.data_type == onnx.TensorProto.BFLOAT16:
                return None  # numpy has no such type to feed
            values[slot.name] = onnx.numpy_helper.to_array(t)
        out = session.run(None, values)[0]
        return out
    except Exception:
        return None


def compare(hone, case, folder, onnx, ort):
    """(error or None, whether ONNX Runtime computed it)"""
    model, feeds = model_of(case, onnx)
    path = pathlib.Path(folder, "model.onnx")
    path.write_bytes(model.SerializeToString())
    result = by_runtime(model, feeds, onnx, ort) if case.runtime else None
    data = pathlib.Path(folder, "data")
    data.mkdir(exist_ok=True)
    for i, t in enumerate(feeds):
        data.joinpath(f"input_{i}.pb").write_bytes(t.SerializeToString())
    for expect in [case.expect] + ([result] if result is not None else []):
        data.joinpath("output_0.pb").write_bytes(tensor(expect, "y", onnx).SerializeToString())
        for how in ([], ["--interpret"]):
            run = subprocess.run([hone, "run", str(path), "--check", str(data), "--rtol", str(case.rtol),
                                  "--atol", str(case.atol)] + how,
                                 capture_output=True, text=True)
            if run.returncode:
                lines = (run.stderr or run.stdout).strip().splitlines() or [f"exit code {run.returncode}"]
                return (
                    f"{' '.join(how)} beside "
                    f"{'the definition' if expect is case.expect else 'ONNX Runtime'}: {lines[-1]}",
                    result is not None)
    return None, result is not None


def main():
    hone, wanted = sys.argv[1], sys.argv[2:]
    try:
        import ml_dtypes  # noqa: F401
        import numpy
        import onnx
        import onnx.numpy_helper
        import onnxruntime as ort
    except ImportError as missing:
        print(f"weights of few bits beside ONNX Runtime: skipped ({missing})")
        return 0
    ort.set_default_logger_severity(4)
    rng = numpy.random.default_rng(26)
    counts, wrong = {}, 0
    with tempfile.TemporaryDirectory() as folder:
        for maker in MAKERS:
            for case in maker(numpy, rng):
                if wanted and not all(w in case.name for w in wanted):
                    continue
                error, ran = compare(hone, case, folder, onnx, ort)
                agree, refused, failed = counts.get(case.op, (0, 0, 0))
                counts[case.op] = (agree + (error is None), refused + (not ran), failed + (error is not None))
                wrong += error is not None
                if error and wrong <= MOST_WRONG:
                    print(f"FAIL  {case.name}: {error}")
    for op, (agree, refused, failed) in counts.items():
        print(
            f"{'FAIL' if failed else 'pass'}  {op:<22} {agree} agree, {failed} differ; {refused} only with "
            f"the definition (ONNX Runtime refuses them, cannot be fed, or errs)")
    return 1 if wrong else 0


MAKERS = [matmul_nbits, matmul_bnb4, gather]
if __name__ == "__main__":
    sys.exit(main())
