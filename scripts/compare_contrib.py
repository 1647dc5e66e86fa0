#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ops of com.microsoft beside ONNX Runtime:  compare_contrib.py HONE [OP...]

contrib_cases.py makes nodes with random data, with and without each optional input, of odd sizes. ONNX
Runtime (its optimizations off) gives the outputs; `hone conformance` runs them all in a few processes and
must agree. One case an op is also compiled by Hone and run by ONNX Runtime again: what is exported is
read by others. A case that ONNX Runtime's CPU refuses is counted and not compared. Says so and succeeds
where the packages are not installed."""
import collections
import json
import pathlib
import subprocess
import sys
import tempfile

SEED = 7
NOT_EXPORTED = {"QMoE"}  # no standard nodes say the same
CLASSES = {  # what a case's outputs are held to: rtol, atol
    "float": ("1e-3", "1e-4"),
    "half": ("1e-2", "1e-2"),
    "byte": ("0", "1.01"),  # one quantum
    "dynamic": ("5e-2", "5e-2"),  # quantized at run time, in ONNX Runtime more often than the op says
}


def written(case, number, folder, onnx, ort, numpy):
    """Model and data of one case in ONNX's test format; or the reason why ONNX Runtime does not run it."""
    helper, to_proto = onnx.helper, onnx.numpy_helper.from_array
    names, inputs, constants, feeds = [], [], [], {}
    for k, value in enumerate(case.inputs):
        names.append("" if value is None else f"x{k}")
        if value is None:
            continue
        if k in case.constant:
            constants.append(to_proto(value, names[-1]))
            continue
        dims = [f"d{k}_{j}" if case.symbolic else n for j, n in enumerate(value.shape)]
        inputs.append(helper.make_tensor_value_info(names[-1], helper.np_dtype_to_tensor_dtype(value.dtype),
                                                    dims))
        feeds[names[-1]] = value
    outs = [f"y{k}" if wanted else "" for k, wanted in enumerate(case.outputs)]
    node = helper.make_node(case.op, names, outs, domain=case.domain, **case.attrs)
    typed = lambda k: helper.make_tensor_value_info(outs[k],
                                                    helper.np_dtype_to_tensor_dtype(
                                                        numpy.dtype(case.types[k])), None)
    results = [typed(k) if k in case.types else helper.make_empty_tensor_value_info(y)
               for k, y in enumerate(outs) if y]
    graph = helper.make_graph([node], "case", inputs, results, constants)
    model = helper.make_model(graph,
                              opset_imports=[helper.make_opsetid("", case.opset),
                                             helper.make_opsetid("com.microsoft", 1)], ir_version=10)
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    try:
        results = ort.InferenceSession(model.SerializeToString(), options,
                                       providers=["CPUExecutionProvider"]).run(None, feeds)
    except Exception as refused:  # noqa: BLE001: whatever it is, there is nothing to compare with
        return str(refused)
    place = folder / case.tolerance / f"{case.op}_{number}"
    data = place / "test_data_set_0"
    data.mkdir(parents=True)
    (place / "model.onnx").write_bytes(model.SerializeToString())
    for kind, values in (("input", feeds.items()), ("output", zip([y for y in outs if y], results))):
        for k, (name, value) in enumerate(values):
            (data / f"{kind}_{k}.pb").write_bytes(
                to_proto(numpy.array(value, order="C"), name).SerializeToString())
    return None


def exported(hone, place, onnx, ort, numpy):
    """One case, compiled by Hone and run by ONNX Runtime: what is wrong, or None."""
    out = place / "compiled.onnx"
    run = subprocess.run([hone, "compile", str(place / "model.onnx"), "-o", str(out)], capture_output=True,
                         text=True)
    if run.returncode:
        return (run.stderr or run.stdout).strip().splitlines()[-1]
    data, load = place / "test_data_set_0", lambda f: onnx.numpy_helper.to_array(onnx.load_tensor(str(f)))
    try:
        session = ort.InferenceSession(str(out), providers=["CPUExecutionProvider"])
        got = session.run(None, {s.name: load(data / f"input_{k}.pb")
                                 for k, s in enumerate(session.get_inputs())})
    except Exception as refused:  # noqa: BLE001
        return "ONNX Runtime: " + str(refused).splitlines()[0]
    rtol, atol = (float(t) for t in CLASSES[place.parent.name])
    for k, value in enumerate(got):
        want = load(data / f"output_{k}.pb").astype(numpy.float64)
        if value.shape != want.shape or not numpy.allclose(value.astype(numpy.float64), want, rtol, atol,
                                                           equal_nan=True):
            return f"output {k} differs"
    return None


def op_of(place):
    return place.name.rsplit("_", 1)[0]


def main():
    hone, wanted = sys.argv[1], set(sys.argv[2:])
    try:
        import numpy
        import onnx
        import onnx.numpy_helper
        import onnxruntime as ort
    except ImportError as missing:
        print(f"com.microsoft beside ONNX Runtime: skipped ({missing})")
        return 0
    import contrib_cases

    ort.set_default_logger_severity(4)
    counts, refused, failures = collections.defaultdict(collections.Counter), {}, []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for number, case in enumerate(contrib_cases.cases(numpy, SEED)):
            if wanted and case.op not in wanted:
                continue
            reason = written(case, number, folder, onnx, ort, numpy)
            counts[case.op]["refused" if reason else "made"] += 1
            if reason:
                refused[case.op] = reason
        for kind, (rtol, atol) in CLASSES.items():
            if not (folder / kind).is_dir():
                continue
            for more in ([], ["--interpret"]):
                run = subprocess.run([hone, "conformance", str(folder / kind), "--rtol", rtol, "--atol", atol,
                                      "--json", *more], capture_output=True, text=True)
                bad = {row["case"]: row["why"] for row in json.loads(run.stdout)["failures"]}
                for place in (folder / kind).iterdir():
                    good = place.name not in bad
                    counts[op_of(place)][("defined " if more else "") + ("passed" if good else "failed")] += 1
                    if not good:
                        failures.append(
                            f"{place.name}{' by its definition' if more else ''}: {bad[place.name]}")
            for op in sorted({op_of(p) for p in (folder / kind).iterdir()} - NOT_EXPORTED):
                first = min((folder / kind).glob(f"{op}_*"), key=lambda p: int(p.name.rsplit("_", 1)[1]))
                error = exported(hone, first, onnx, ort, numpy)
                counts[op]["exported" if error is None else "not exported"] += 1
                if error:
                    failures.append(f"{first.name} exported: {error}")
    for op in sorted(counts):
        c = counts[op]
        line = (
            f"{'FAIL' if c['failed'] or c['defined failed'] or c['not exported'] else 'pass'}  {op:<34} "
            f"{c['passed']:>4} of {c['made']:<4}")
        line += f" {c['refused']} refused by ONNX Runtime" if c["refused"] else ""
        print(line + (f": {refused[op].splitlines()[0][:110]}" if op in refused and not c["made"] else ""))
    for line in failures[:60]:
        print("  " + line)
    passed, made = sum(c["passed"] for c in counts.values()), sum(c["made"] for c in counts.values())
    print(
        f"ONNX Runtime {ort.__version__}: {passed} of {made} cases of {len(counts)} ops agree; "
        f"{sum(c['refused'] for c in counts.values())} not comparable")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
