#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The main job end to end, in a few seconds:  demo.sh HONE
# Every line below a `$` is what the command printed. Model and pictures are the project's own
# (scripts/make_demo_model.py).
set -u
hone=${1:?usage: demo.sh HONE}
cd "$(dirname "$0")/.." || exit 1
here=examples/characters

say() { printf '%s\n' "$@"; }
show() {
    say "" "\$ $hone $*"
    "$hone" "$@" || exit 1
}

say "A network that reads one drawn character: $(($(wc -c \
    <$here/model.onnx) / 1024)) KB, trained on characters that a script of ours drew." \
    "A picture in, a labelled answer, the time and the memory:"
show run $here/model.onnx --input $here/h.png --picture --labels $here/labels.txt --top 3 --runs 200

say "" "Several pictures are a batch; the shapes are planned for on the spot:"
show run $here/model.onnx --input $here/h.png --input $here/o.png --input $here/n.png --input $here/e.png \
    --labels $here/labels.txt --top 1

say "" "And a real workload: ResNet-50 with seeded weights, built here, nothing downloaded."
show run zoo:resnet50 --input $here/h.png --runs 5 --top 1

say "" "Try next"
next() { printf '  %-32s %s\n' "$1" "$2"; }
next "$hone zoo" "the other networks that come with it: transformers, detectors, recurrent ones"
next "$hone inspect zoo:bert_base" "what is in a network, after the passes"
next "$hone run YOUR.onnx" "any ONNX model on random inputs; --input FILE takes arrays and pictures"
next "$hone check YOUR.onnx" "what would not run, all of it at once"
next "make test" "release and sanitizer builds, every test in both"
