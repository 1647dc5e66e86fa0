#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hone beside ONNX Runtime on models that other tools made:  compare_artifacts.py HONE FOLDER [--only WORD…]
[--nodes] [--json FILE]

FOLDER is what artifacts.py or artifacts_classic.py filled. Each model is run on the inputs beside it.
Differences are of the largest magnitude of an output:
  float   within 1e-3 of ONNX Runtime's answer, with its optimizations or without
  quant   within 5e-2 of the nearer of both, and of outputs [rows, classes] the same largest class as one of
          both. A network that its tool
          quantized to noise cannot be judged so: where ONNX Runtime's answer is further than half of the
          largest magnitude from the f32
          network's, or its two answers further than 5e-2 from each other, or its answer moves by more
          than that when the inputs move by 1e-5,
          a disagreement is counted as "noise", not as agreeing. Where ONNX Runtime takes shortcuts that
          the op's definition does not have, its
          answer without them is a third to be near to, and the case is named (artifacts_again.py)
  half    within 1e-3 of either; or as near to the f32 network as ONNX Runtime comes (at most 1.5 times as
          far), or torch with the
          module that it exported (ONNX Runtime cannot run bf16)
  classic floats within 1e-3; types, labels, other integers and strings equal, except in a row whose two
  best scores are the same but for
          rounding (artifacts_values.py)
--nodes takes the quantized models apart: each op, with the DequantizeLinear before and the QuantizeLinear
after it, is fed ONNX Runtime's own numbers and must be within one quantum of its answer, integers of 32
bits to the bit, floats within 1e-3 (artifacts_nodes.py). Says so and succeeds where the packages or the
folder are not on this machine."""
import argparse
import collections
import json
import pathlib
import re
import subprocess
import sys
import tempfile

FLOAT, QUANT, NEAR = 1e-3, 5e-2, 1.5


def files(folder, kind):
    """kind_0.pb … of a folder"""
    return sorted(folder.glob(f"{kind}_*.pb"), key=lambda f: int(f.stem.split("_")[1]))


def tensors(folder, kind):
    """What is in them; None where there are none."""
    return [onnx.numpy_helper.to_array(onnx.load_tensor(str(f))) for f in files(folder, kind)] or None


def first_line(run):
    if run.returncode < 0:
        return f"killed by signal {-run.returncode}"
    lines = (run.stderr or run.stdout).strip().splitlines() or [f"exit code {run.returncode}"]
    return lines[0] + (f" (and {len(lines) - 1} more)" if len(lines) > 1 else "")


def run_hone(hone, model, inputs, count, read=None):
    """(outputs, None) or (None, the error line). read: of what is no tensor of numbers, gives output k
    from the folder."""
    with tempfile.TemporaryDirectory() as folder:
        command = [hone, "run", str(model), "--save", folder, "--threads", "1"]
        for f in inputs:
            command += ["--input", str(f)]
        try:
            run = subprocess.run(command, capture_output=True, text=True, timeout=120, errors="replace")
        except subprocess.TimeoutExpired:
            return None, "more than 120 s"
        if run.returncode:
            return None, first_line(run)
        read = read or (lambda folder, k: halves(numpy.load(folder / f"output_{k}.npy")))
        return [read(pathlib.Path(folder), k) for k in range(count)], None


def halves(value):
    """.npy has no bf16: two bytes without a type are that."""
    return (value.view(numpy.uint16).astype(numpy.uint32) << 16).view(
        numpy.float32) if value.dtype.kind == "V" and value.dtype.itemsize == 2 else value


def far(got, want):
    """The largest difference over the largest magnitude; and None, or what is wrong besides."""
    worst = 0.0
    for k, (a, b) in enumerate(zip(got, want)):
        if a.shape != b.shape:
            return float("inf"), f"output {k} is {list(a.shape)}, not {list(b.shape)}"
        if b.dtype.kind == "O" or b.dtype.kind in "US":
            worst = max(worst, 0.0 if (a == b).all() else float("inf"))
            continue
        a, b = a.astype("f8"), b.astype("f8")
        if not numpy.array_equal(numpy.isfinite(a), numpy.isfinite(b)):
            return float("inf"), f"output {k} is not finite where ONNX Runtime's is, or the other way round"
        fine = numpy.isfinite(b)
        scale = numpy.abs(b[fine]).max(initial=0.0)
        worst = max(worst, float(numpy.abs(a - b)[fine].max(initial=0.0) / (scale or 1.0)))
    return worst, None


def same_top(got, want):
    """Of outputs [rows, classes]: is the class that is largest in got among the largest in want?"""
    for a, b in zip(got, want):
        if b.ndim == 2 and b.shape[1] > 1 and b.dtype.kind in "fiu":
            rows = numpy.arange(len(b))
            if (b[rows, a.argmax(1)] < b.max(1)).any():
                return False
    return True


def is_noise(off, on, true):
    return (off and on and far(on, off)[0] > QUANT) or (true
                                                        and min(far(want, true)[0] for want in (off, on)
                                                                if want) > 0.5)


def judge(kind, got, off, on, own, true):
    """(error, None or what is wrong). off, on: ONNX Runtime's answers; own: torch's in halves; true: the
    f32 network's; any may be None."""
    errors = [far(got, want) for want in (off, on) if want]
    error, wrong = min(errors, key=lambda e: e[0]) if errors else (float("inf"), None)
    if errors and wrong:
        return error, wrong
    if kind == "float":
        return error, None if error <= FLOAT else f"differs by {error:.2g} of the largest"
    if kind == "quant":
        if not error <= QUANT:
            return error, f"differs by {error:.2g} of the largest"
        return error, None if any(same_top(got, want) for want in (off, on)
                                  if want) else f"another top-1 (differs by {error:.2g} of the largest)"
    if error <= FLOAT:
        return error, None
    ours, wrong = far(got, true)
    theirs = max(far(want, true)[0] for want in (off, on, own) if want)
    return ours, wrong or (None if ours <= NEAR * theirs + FLOAT
                           else f"differs by {ours:.2g} from the f32 network, others by {theirs:.2g}")


def check(hone, folder, about):
    """One model: (ran, error, what is wrong or None)"""
    if about["kind"] == "classic":
        return check_classic(hone, folder)
    off, on, own, true = (tensors(folder / where, "output")
                          for where in ("test_data_set_0", "optimized", "own", "float"))
    inputs = files(folder / "test_data_set_0", "input")
    got, error = run_hone(hone, folder / "model.onnx", inputs, len(off or on or true))
    if error:
        return False, None, error
    about["noise"] = about["kind"] == "quant" and bool(is_noise(off, on, true))
    error, wrong = judge(about["kind"], got, off, on, own, true)
    if wrong and about["kind"] == "quant" and (off or on):
        return True, *look_again(about, folder / "model.onnx", inputs, got, error, wrong)
    return True, error, wrong


def look_again(about, model, inputs, got, error, wrong):
    """(error, what is wrong or None) with ONNX Runtime's answer without shortcuts; notes whether its
    answer stands at all."""
    spelled = artifacts_again.spelled(model, inputs)
    if spelled:
        again, still = judge("quant", got, spelled, None, None, None)
        if not still:
            about["named"] = f"{error:.2g} from ONNX Runtime, {again:.2g} from it without its shortcuts"
            return again, None
    steady, *moved = artifacts_again.shaken(model, inputs)
    about["noise"] = about["noise"] or max(far(answer, steady)[0] for answer in moved) > QUANT
    return error, wrong


def check_classic(hone, folder):
    """The same of a model whose outputs may be labels, maps and lists; there is no error to tell of those."""
    kinds = [slot.type.WhichOneof("value") for slot in onnx.load(str(folder / "model.onnx")).graph.output]
    data = folder / "test_data_set_0"
    want = [artifacts_values.read(data / f"output_{k}.pb", kind) for k, kind in enumerate(kinds)]
    got, error = run_hone(hone, folder / "model.onnx", files(data, "input"), len(kinds), lambda where,
                          k: artifacts_values.saved(where, k, kinds[k]))
    return (False, None, error) if error else (True, None, artifacts_values.differ(got, want, FLOAT))


def check_nodes(hone, folder, about):
    """The same of a quantized model's ops one by one; the error is the number of ops that were compared."""
    import artifacts_nodes

    with tempfile.TemporaryDirectory() as work:
        return artifacts_nodes.check(folder, pathlib.Path(work), lambda model, inputs,
                                     count: run_hone(hone, model, inputs, count))


def kinds_of_line(line):
    """An error line without what differs from model to model, to count equal ones."""
    line = re.sub(r"^hone run: |\S*/model\.onnx: | \(and \d+ more\)", "", line)
    return re.sub(r"'[^']*'|\"[^\"]*\"|\d[\d.e+-]*", "…", line)


def tell(results, names):
    tools = collections.defaultdict(lambda: [0, 0, 0, 0])
    for about, (ran, _, wrong) in results:
        for key in (about["tool"], "all"):
            tools[key][0] += 1
            tools[key][1] += ran
            tools[key][2] += wrong is None
            tools[key][3] += bool(wrong and about.get("noise"))
    failures = [(about, wrong) for about, (_, _, wrong) in results if wrong]
    lines = collections.Counter(kinds_of_line(wrong) for _, wrong in failures)
    for line, count in lines.most_common():
        print(f"\n{count} x  {line}")
        for about, wrong in failures:
            if kinds_of_line(wrong) == line:
                print(f"      {names(about):44} {wrong}")
    for about in (about for about, _ in results if about.get("named")):
        print(f"\n{names(about):44} agrees with the definition: {about['named']}")
    print(f"\n{'tool':36} {'models':>7} {'run':>5} {'agree':>6} {'noise':>6}")
    for tool, (count, ran, agree, odd) in sorted(tools.items(), key=lambda t: (t[0] == "all", t[0])):
        print(f"{tool:36} {count:7} {ran:5} {agree:6} {odd:6}")
    print(
        f"ONNX Runtime {onnxruntime.__version__}; {len({a['net'] for a, _ in results})} networks or classic "
        f"models")
    return sum(not about.get("noise") for about, _ in failures)


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("hone")
    a.add_argument("folder", type=pathlib.Path)
    a.add_argument("--only", nargs="+", default=[], help="words: a group, net, recipe, kind or NET.RECIPE")
    a.add_argument("--nodes", action="store_true")
    a.add_argument("--json", help="writes every model's result")
    o = a.parse_args()
    found = sorted(o.folder.glob("*/model.onnx"))
    if not found or not pathlib.Path(o.hone).exists():
        print(
            f"models that tools made: skipped (none in {o.folder}; scripts/artifacts.py and "
            f"artifacts_classic.py make them)" if not found
            else f"models that tools made: skipped (no {o.hone})")
        return 0
    results = []
    for path in found:
        case, name = path.with_name("case.json"), path.parent.name
        about = (json.loads(case.read_text()) if case.exists() else
                 {"net": name, "recipe": "classic", "group": "classic", "tool": name.split("-")[0],
                  "kind": "classic"})
        words = {about["net"], about["recipe"], about["group"], about["kind"], path.parent.name}
        if not words.issuperset(o.only) or (o.nodes and about["kind"] != "quant"):
            continue
        try:
            result = (check_nodes if o.nodes else check)(o.hone, path.parent, about)
        except Exception as error:  # ours: a model that cannot be judged is one that fails
            result = (False, None, f"{type(error).__name__}: {' '.join(str(error).split())[:200]}")
        results.append((about, result))
        size = "" if result[1] is None else f"{result[1]:.2g}"
        print(
            f"{'FAIL' if result[2] else 'pass'}  {path.parent.name:44} {size:9} "
            f"{result[2] or about.get('named') or ('noise' if about.get('noise') else '')}", flush=True)
    failed = tell(results, lambda about: f"{about['net']}.{about['recipe']}")
    if o.json:
        pathlib.Path(o.json).write_text(
            json.dumps([{**about, "ran": r, "error": e, "wrong": w} for about, (r, e, w) in results],
                       indent=1))
    return 1 if failed else 0


try:
    import numpy
    import onnx
    import onnx.numpy_helper
    import onnxruntime

    import artifacts_again
    import artifacts_values
except ImportError as missing:
    print(f"models that tools made: skipped ({missing})")
    sys.exit(0)
sys.exit(main())
