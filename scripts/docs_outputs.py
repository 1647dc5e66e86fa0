#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The outputs in the documentation are those of the command:  docs_outputs.py HONE [--write] [PAGE...]

Each `$ hone …` in a block of a page is run, in a folder where examples/ is this tree's. What it prints
must be what stands there: the same words in the same lines, where numbers, and the units they come in,
may be others; a line `…` stands for any lines, a `…` at a line's end for its rest. --write puts what was
printed in its place, where it differs. Commands whose output is the machine's, or that want files that
are not in this tree, are left as they stand, and counted.
"""
import os, re, shlex, subprocess, sys, tempfile

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGES = ["README.md", "docs/00-guide.md", "docs/14-command.md"]
OF_THE_MACHINE = {"bench", "compare", "devices", "tune", "profile", "serve", "load", "version", "quantize"}


def plain(line):
    """A line as it is compared: numbers are #, units U, columns one blank."""
    line = re.sub(r"-?\b\d+(\.\d+)?(e[-+]?\d+)?\b", "#", line)
    line = re.sub(r"# (ms|s|B|KB|MB|GB|FLOP|KFLOP|MFLOP|GFLOP|K|M)\b", "# U", line)
    return " ".join(line.split())


def fits(want, got):
    """Whether lines of a page, wildcards among them, are these lines."""
    if not want:
        return not got
    if want[0].strip() == "…":
        return any(fits(want[1:], got[k:]) for k in range(len(got) + 1))
    if not got:
        return False
    a, b = plain(want[0]), plain(got[0])
    same = b.startswith(a[:-1].rstrip()) if a.endswith("…") and not b.endswith("…") else a == b
    return same and fits(want[1:], got[1:])


def can_run(command):
    words = shlex.split(command)
    if words[0] != "hone" or len(
        words) < 2 or words[1] in OF_THE_MACHINE or "|" in words or "&&" in words or "build/" in command:
        return False
    mine = [w for w in words[2:] if re.search(r"\.(onnx|npy|npz|png|jpg|txt|html|json|so|hop)$|/", w)]
    made = {words[k + 1] for k in range(len(words) - 1) if words[k] in ("-o", "--html", "--save")}
    return all(os.path.exists(os.path.join(HERE, w.split("=")[-1])) or w in made for w in mine
               if not w.startswith("-")) and (
        "zoo:" not in command or "image=" in command)


def main():
    args = [a for a in sys.argv[1:] if a != "--write"]
    hone, pages, write = os.path.abspath(args[0]), args[1:] or PAGES, "--write" in sys.argv
    folder = tempfile.mkdtemp()
    for name in ("examples", "README.md"):
        os.symlink(os.path.join(HERE, name), os.path.join(folder, name))
    environment = dict(os.environ, HONE_WISDOM="none", PATH=os.path.dirname(hone) + ":" + os.environ["PATH"])
    environment.pop("COLUMNS", None)
    ran = left = bad = 0
    for page in pages:
        lines = open(os.path.join(HERE, page), encoding="utf-8").read().split("\n")
        out, k, inside = [], 0, False
        while k < len(lines):
            line = lines[k]
            inside ^= line.startswith("```")
            out.append(line)
            k += 1
            if not inside or not line.startswith("$ hone "):
                continue
            first = k
            while not lines[k].startswith(("```", "$ ")):
                k += 1
            want = lines[first:k]
            while want and not want[-1].strip():
                want.pop()
            if not can_run(line[2:].split("  #")[0]):
                left += 1
                out += lines[first:k]
                continue
            ran += 1
            r = subprocess.run(line[2:], shell=True, cwd=folder, env=environment, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True)
            got = r.stdout.rstrip("\n").split("\n") if r.stdout else []
            if fits([w for w in want if w.strip()], [g for g in got if g.strip()]):
                out += lines[first:k]
                continue
            bad += 1
            print(f"{page}: {line}\n  stands there:\n    " + "\n    ".join(want) + "\n  printed now:\n    "
                  + "\n    ".join(got[:30]))
            out += got + lines[first + len(want):k]
        if write:
            open(os.path.join(HERE, page), "w", encoding="utf-8").write("\n".join(out))
    print(
        f"{ran} outputs, {bad} of them not as they stand; {left} are a machine's, or want files from "
        f"elsewhere")
    return 1 if bad or not ran else 0


sys.exit(main())
