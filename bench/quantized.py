#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hone beside ONNX Runtime on models that tools made (scripts/artifacts.py): one thread, in turns,
medians with their spread.

usage: bench/quantized.py FOLDER [--library build/libhone.so[,OTHER]] [--seconds 2] [--only WORD…] [--json
           FILE]
The models of real size, or those that all words of --only match (net, recipe, group, kind, NET.RECIPE).
Both run in this process and take turns run by run (bench/zoo.py). 'Hone is' is ONNX Runtime's median over
Hone's; of halves also Hone's f32 of the same net over it. A group ends with its geometric mean and its
least. Needs PyPI numpy, onnx and onnxruntime. A model that Hone or ONNX Runtime cannot run is told, and
left out."""
import argparse
import json
import math
import pathlib
import statistics
import sys
import types

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import zoo  # noqa: E402

SIZES = ("_224", "_128", "_1024")


def chosen(folder, words):
    """(group, folder, what it is), in groups."""
    found = []
    for path in sorted(folder.glob("*/case.json")):
        about = json.loads(path.read_text())
        names = {about["net"], about["recipe"], about["group"], about["kind"], path.parent.name}
        if names.issuperset(words) and (words
                                        or (about["net"].endswith(SIZES) and about["group"] != "export")):
            found.append((about["group"], path.parent, about))
    return sorted(found, key=lambda f: (f[0], f[1].name))


def spread(times):
    """The middle half over the median."""
    q = statistics.quantiles(times, n=4)
    return (q[2] - q[0]) / statistics.median(times)


def measure(path, libraries, extra, o):
    """Medians and spreads by name. extra: another model that Hone alone runs in the same turns, or None."""
    options = types.SimpleNamespace(threads=1, precision="f32")
    others, feed = zoo.peers(str(path), options)
    run = {k: zoo.in_process(k, str(path), feed, options) for k in libraries}
    run["ONNX Runtime"] = others["ONNX Runtime"]
    if extra:
        run["f32"] = zoo.in_process(libraries[0], str(extra), zoo.peers(str(extra), options)[1], options)
    got = zoo.turns(run, o.seconds)
    return {k: (statistics.median(v), spread(v)) for k, v in got.items()}


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("folder", type=pathlib.Path)
    a.add_argument("--library", default="build/libhone.so")
    a.add_argument("--seconds", type=float, default=2)
    a.add_argument("--only", nargs="+", default=[])
    a.add_argument("--json")
    o = a.parse_args()
    libraries, ratios, rows = o.library.split(","), {}, []
    zoo.ov = None
    for group, folder, about in chosen(o.folder, o.only):
        base = folder.parent / f"{about['net']}.torchscript" / "model.onnx"
        try:
            got = measure(folder / "model.onnx", libraries, base if about["kind"] == "half" and base.exists()
                          else None, o)
        except (SystemExit, Exception) as error:
            print(f"{folder.name:40} cannot be measured: {' '.join(str(error).split())[:140]}", flush=True)
            continue
        theirs = got["ONNX Runtime"][0]
        for k in libraries:
            ratios.setdefault((group, k), []).append((theirs / got[k][0], folder.name))
        line = "  ".join(f"{'Hone' if [k] == libraries else k} {ms:8.3f} ms ±{100 * s:2.0f} %"
                         for k, (ms, s) in got.items())
        line += "  Hone is " + ", ".join(f"{theirs / got[k][0]:.2f}x" for k in libraries)
        if "f32" in got:
            line += f", {got[libraries[0]][0] / got['f32'][0]:.2f} times its f32"
        print(f"{folder.name:40} {line}", flush=True)
        rows.append({**about, "ms": {k: ms for k, (ms, _) in got.items()},
                     "spread": {k: s for k, (_, s) in got.items()}})
    for (group, k), all_of in ratios.items():
        mean = math.exp(sum(math.log(r) for r, _ in all_of) / len(all_of))
        print(
            f"{group:13} {k}: {len(all_of)} models, geometric mean {mean:.2f}x, least {min(all_of)[0]:.2f}x "
            f"({min(all_of)[1]})")
    if o.json:
        pathlib.Path(o.json).write_text(json.dumps(rows, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
