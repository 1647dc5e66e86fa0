#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `hone compare`, without any other runtime on the machine:  compare.sh HONE SOURCE_DIR [--small]
# fake_runtimes.py plays them: one is right, one is wrong, one hangs, one crashes, one says nonsense, one
# cannot. --small, for sanitizers: all of them at once only, not each with what the page says of it.
set -u
hone=$1 source=$2
model=$source/examples/digits/model.onnx
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export TMPDIR=$folder/tmp HONE_FAKE_ANSWER=$folder/answer NO_COLOR=1
mkdir "$TMPDIR"
failed=0
fail() {
    echo "$1"
    failed=$((failed + 1))
}
quick=(--runs 4 --loads 1 --threads 1)

words=compare after=clean
. "${0%/*}/try.sh"
clean() { [ -z "$(ls -A "$TMPDIR")" ] || fail "$1: files are left in TMPDIR: $(ls "$TMPDIR")"; }

try 0 "example" --help
try 1 "is missing"
try 1 "did you mean 'openvino'" "$model" --with ort,openvno
try 1 "or 'none'" "$model" --with keras
try 1 "one of them" "$model" --json --markdown
try 1 "cannot open" "$folder/none.onnx" --with none
try 1 "holds no model.onnx" "$folder/tmp" --with none
try 1 "are for one model" "$model" "$model" --input x.npy --with none
try 1 "nope" --zoo nope --with none
${HONE_RUNNER:-} "$hone" zoo "squeezenet1_1?image=32" -o "$folder/fixed.onnx" >/dev/null
try 1 "free first dim" "$folder/fixed.onnx" --batch 2 --with none
try 0 "Hone" "$model" --with none "${quick[@]}"
try 0 "f32[5,1,28,28]" "$model" --with none "${quick[@]}" --batch 5
try 0 "f32[2,1,28,28]" "$model" --with none "${quick[@]}" --shape 2x1x28x28
try 0 "f16, 1 thread" "$model" --with none "${quick[@]}" --precision f16
try 1 "computes in f32, bf16 or f16" "$model" --with none --precision f8
try 0 "seven.npy" "$model" --with none "${quick[@]}" --input "$source/examples/digits/seven.npy"
try 0 "test_data_set_0/input_0.pb" "$source/examples/digits" --with none "${quick[@]}"
try 0 "f32[3,3,64,64]" --zoo "squeezenet1_1?image=64" --batch 3 --with none "${quick[@]}"
try 0 "| squeezenet1_1?image=64 |" --zoo "squeezenet1_1?image=64" --with none "${quick[@]}" --markdown
try 0 "no figures" "$model" --python "$folder/no-such-python" "${quick[@]}"
printf '#!/bin/sh\nexit 3\n' >"$folder/ends" && chmod +x "$folder/ends"
try 0 "ended with code 3" "$model" --python "$folder/ends" "${quick[@]}"

if ! command -v python3 >/dev/null; then
    echo "no python3: what needs other runtimes is not tried"
    echo "$failed failed"
    [ "$failed" = 0 ]
    exit
fi
fake=(--python "$source/tests/fake_runtimes.py" "${quick[@]}")
${HONE_RUNNER:-} "$hone" run "$model" --input "$source/examples/digits/seven.npy" --save "$folder/answer" \
    >/dev/null || fail "no answer to copy"
seven=(--input "$source/examples/digits/seven.npy")

if [ "${3:-}" != --small ]; then
    try 0 "WRONG" "$model" "${seven[@]}" "${fake[@]}" --with ort,openvino
    try 0 "2 of 3 agree" "$model" "${seven[@]}" "${fake[@]}" --with ort,openvino
    try 0 "right is ONNX Runtime, in f32" "$model" "${seven[@]}" "${fake[@]}" --with ort,openvino \
        --precision bf16
    try 0 "WRONG" "$model" "${seven[@]}" "${fake[@]}" --with ort,openvino --precision bf16
    # another picture: Hone and it differ, and it is the reference
    try 1 "not what the others say" "$model" "${fake[@]}" --with ort
    # where there is no ONNX Runtime and no majority, Hone is
    try 0 "WRONG" "$model" "${fake[@]}" --with openvino
    try 0 "cut off: no answer within 3 s" "$model" "${fake[@]}" --with torch --limit 3
    try 0 "crashed: Segmentation fault" "$model" "${fake[@]}" --with mnn
    try 0 "which is no answer" "$model" "${fake[@]}" --with ncnn
    try 0 "there is no such op" "$model" "${fake[@]}" --with tvm
    try 0 "geometric mean of 2" "$model" "$model" --batch 1 "${fake[@]}" --with ort --tolerance 1e9
    try 0 "Hone is" "$model" "${seven[@]}" "${fake[@]}" --with ort,openvino --markdown
fi

# All of them at once, as JSON.
${HONE_RUNNER:-} "$hone" compare "$model" "${seven[@]}" "${fake[@]}" --limit 5 --json --html \
    "$folder/page.html" >"$folder/all.json" 2>"$folder/said" ||
    fail "all at once: $(cat "$folder/said")"
python3 - "$folder/all.json" <<'CHECK' || failed=$((failed + 1))
import json, sys
d = json.load(open(sys.argv[1]))
assert d["precision"] == "f32" and d["threads"] == 1 and d["device"] == "cpu" and len(d["runtimes"]) == 7, d
m = d["models"][0]
e = {x["runtime"]: x for x in m["entries"]}
assert [n for n in e if e[n]["ok"]] == ["hone", "ort", "openvino"], [(n, e[n]["why"]) for n in e]
assert e["hone"]["right"] and e["ort"]["right"] and not e["openvino"]["right"], e
assert m["best_peer"] == "ort" and m["reference"] == "ort" and m["agree"] == 2, m
assert m["answers"] == 3 and m["majority"], m
assert abs(m["ratio"] * m["hone_faster"] - 1) < 1e-6 and d["compared"] == 1, m
assert abs(d["hone_faster_mean"] - m["hone_faster"]) < 1e-6, m
for field in ["median_ms", "min_ms", "p90_ms", "spread", "runs", "rounds_ms", "load_ms", "first_ms",
              "peak_bytes", "before_bytes", "max_abs", "max_rel"]:
    assert field in e["hone"] and field in e["ort"], field
assert abs(e["ort"]["median_ms"] - 1) < 1e-6 and abs(e["ort"]["load_ms"] - 1.5) < 1e-6, e["ort"]
assert e["ort"]["runs"] == 4 and len(e["ort"]["rounds_ms"]) == 4, e["ort"]
assert e["hone"]["median_ms"] > 0 and e["hone"]["peak_bytes"] > e["hone"]["before_bytes"] > 0, e["hone"]
assert all(e[n]["why"] for n in ["torch", "mnn", "ncnn", "tvm"]), e
CHECK
grep -q '</html>' "$folder/page.html" && ! grep -qE '(src|href)=' "$folder/page.html" ||
    fail "the page is cut short, or asks for more files"

# A signal ends it, its processes and its files, even while one of them hangs.
"$hone" compare "$model" "${fake[@]}" --with torch --limit 100 >/dev/null 2>&1 &
pid=$!
for _ in $(seq 100); do
    [ -n "$(ls "$TMPDIR"/*/0/torch/work.log 2>/dev/null)" ] && break
    sleep 0.1
done
kill -TERM $pid
wait $pid
[ $? = 1 ] || fail "a signal: not exit code 1"
[ -z "$(ls -A "$TMPDIR")" ] || fail "a signal: files are left"
echo "$failed failed"
[ "$failed" = 0 ]
