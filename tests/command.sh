#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The command as a user meets it:  command.sh HONE SOURCE_DIR [--small]
# Exit codes, the line a mistake gets, JSON that is JSON, files that come back; on the model in
# examples/digits. --small: fewer damaged files (tests/test_hostile.c has more), for slow builds.
set -u
hone=$1 source=$2 step=${3:+4}
model=$source/examples/digits/model.onnx
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0

. "${0%/*}/try.sh"

try 0 "usage" --help
try 0 "hone 0." version
try 1 "did you mean 'hone run'" rnu
try 1 "did you mean 'hone --version'" --verison
try 1 "did you mean 'hone run $model'" "$model"
try 0 "usage  hone inspect MODEL" help inspect
for command in run inspect check explain compile conformance devices completion; do
    try 0 "example" $command --help
    [ $command = devices ] || try 1 "is missing" $command
    try 1 "did you mean '--help'" $command --hepl
done

try 0 "f32[1,10]" run "$model"
try 0 "median of 3 runs" run "$model" --runs 3 --threads 1
try 0 "top  3 (" run "$model" --input "$source/examples/digits/three.npy" --top 1
try 0 "@@" run "$model" --input "image=$source/examples/digits/eight.npy" --picture
try 0 "f32[5,10]" run "$model" --shape image=5x1x28x28 --interpret
try 0 "pass" run "$model" --check "$source/examples/digits/test_data_set_0"
try 1 "is not within" run "$model" --check "$source/examples/digits/test_data_set_0" --rtol 0 --atol 0 \
    --interpret
try 1 "--shape" run "$model" --shape 1x3x28x28
try 1 "no input 'picture'" run "$model" --input picture=x.npy
try 1 "none.npy" run "$model" --input none.npy
try 1 "whole number" run "$model" --runs 1.5
try 1 "none.onnx" run none.onnx
try 0 "output_0.npy" run "$model" --save "$folder"
try 0 "" run "$model" --input "$source/examples/digits/seven.npy" --json
try 1 "dims" run "$model" --input "$folder/output_0.npy"

# Pictures: a gray square of 40 x 30 with a bright stroke, as PNM.
{ printf 'P5 40 30 255\n'; for y in $(seq 30); do printf '%020d\377\377\377\377%016d' 0 0; done
} >"$folder/stroke.pgm"
printf "{0: 'zero', 1: 'one',\n 7: 'seven'}" >"$folder/names.py"
try 0 "stroke.pgm (PNM, 40x30): resized to cover, centre 28x28, luma, 0 to 1, NCHW" run "$model" --input \
    "$folder/stroke.pgm"
try 0 "and 1 more: shorter side to 28, centre 28x28, luma, 0 to 1, mean 0.5, std 0.5" run "$model" --input \
    "$folder/stroke.pgm" --input "$folder/stroke.pgm" --resize 28 --mean -1-1
try 0 "padded to 28x28, luma, 0 to 255, mean 10, std 2" run "$model" --input "image=$folder/stroke.pgm" \
    --resize pad --mean 10 --std 2
try 0 "one (" run "$model" --input "$folder/stroke.pgm" --top 10 --labels "$folder/names.py"
try 1 "does not fit" run "$model" --input "$folder/stroke.pgm" --crop 20
try 1 "is smaller than 28x28" run "$model" --input "$folder/stroke.pgm" --resize 20
try 1 "one channel" run "$model" --input "$folder/stroke.pgm" --order bgr
try 1 "must not be 0" run "$model" --input "$folder/stroke.pgm" --mean 1 --std 0
try 1 "say imagenet" run "$model" --input "$folder/stroke.pgm" --mean imagenets
try 1 "no input is one" run "$model" --resize 20
try 1 "nor a picture" run "$model" --input "$folder/names.py"
head -c 500 "$folder/stroke.pgm" >"$folder/cut.pgm"
try 1 "cut short" run "$model" --input "$folder/cut.pgm"

try 0 "parameters" inspect "$model"
try 0 "MaxPool" inspect "$model" --nodes --passes --text
try 0 "Conv + Relu" inspect "$model" --sort work
try 1 "sorted by" inspect "$model" --sort size
try 0 "batch = 1 (guessed)" inspect "$model"
try 0 "batch = 4" inspect "$model" --dim batch=4
try 0 "the peak, " inspect "$model" --memory
try 0 "-> n1 [label=" inspect "$model" --dot
try 0 "is written" inspect "$model" --html "$folder/page.html"
try 1 "cannot be written" inspect "$model" --html "$folder/none/page.html"
grep -q '</html>' "$folder/page.html" && ! grep -qE '(src|href)=' "$folder/page.html" ||
    { echo "the page is cut short, or asks for more files"; failed=$((failed + 1)); }
try 0 "can run" check "$model"
try 0 "by kernels" check "$model" --dim batch=4
try 1 "did you mean 'batch'" check "$model" --dim bach=4
try 1 "NAME=SIZE" check "$model" --dim batch
try 1 "of memory, and this machine has" check "$model" --dim batch=2000000000
try 1 "1 problem" check "$source/README.md"
try 0 "cuda" devices
try 0 "gemm_f32" devices --quick
try 1 "no node" explain "$model" --node none
try 1 "did you mean 'node_conv2d'" explain "$model" --node node_conv2
try 1 "did you mean '$source/examples/digits/model.onnx'" inspect "$source/examples/digits"
try 1 "did you mean '$source/examples/digits/model.onnx'" inspect "$source/examples/digits/modle.onnx"
try 1 "did you mean '$source/examples/digits/model.onnx'" run "$source/examples/digits"
try 1 "is a folder" check "$folder"
try 1 "can run" check "$model" "$source/README.md"
try 0 "op MaxPool" explain "$model" --node 1 --c
try 0 "of one core; could be tile" explain zoo:whisper --node 0
try 0 "norm, about" explain zoo:whisper --node 4
try 0 "nodes" compile "$model" -o "$folder/out.onnx"
try 0 "pass" run "$folder/out.onnx" --check "$source/examples/digits/test_data_set_0"
try 1 "choose another name" compile "$folder/out.onnx" -o "$folder/out.onnx"
try 1 "must end in .onnx" compile "$model" -o "$folder/out.engine"
try 1 "-o is missing" compile "$model"
try 1 "cannot be written" compile "$model" -o "$folder/none/out.onnx"
try 0 "1 passed, 0 failed, 0 skipped" conformance "$source/examples/digits" --atol 1e-5
try 1 "fewer than --min 2" conformance "$source/examples/digits" --atol 1e-5 --min 2
try 1 "no case" conformance "$folder"

# bench: options, verdicts against made-up results, and the numbers as JSON. Each row is a process, so these
# are few and short.
try 0 "example" bench --help
try 1 "is missing" bench
try 1 "did you mean '--threads'" bench "$model" --thread 1
try 0 "p99" bench "$model" --runs 30 --threads 1
try 0 "2.5 ms before each run" bench "$model" --runs 3 --threads 2 --pause 2.5
try 1 "at least 0" bench "$model" --pause -1
try 0 "too short: 3 runs" bench "$model" --runs 3 --warmup 0
try 0 "f32[5,1,28,28]" bench "$model" --runs 2 --batch 5
try 0 "seven.npy" bench "$model" --runs 2 --input "image=$source/examples/digits/seven.npy"
try 0 "items/s" bench "zoo:mobilenet_v3_small?image=32" --runs 2 --batch 3 --threads 1
try 0 "1024 threads were asked for" bench "$model" --runs 2 --threads 1024
try 1 "at most 1024" bench "$model" --runs 2 --threads 4096
try 1 "computes in f32, bf16 or f16" bench "$model" --precision f32,f64
try 1 "computes in f32, bf16 or f16" run "$model" --precision f8
try 0 "bf16 asked for; " run "$model" --precision bf16
try 0 "steps that multiply matrices round to it, all else is f32" run "$model" --precision f16
try 0 " f16 " bench "$model" --runs 2 --threads 1 --precision f32,bf16,f16
try 1 "whole numbers of at least 1" bench "$model" --batch 1,,2
try 1 "whole numbers of at least 0" bench "$model" --threads many
try 1 "says its batch already" bench "zoo:resnet18?batch=2" --batch 4
try 1 "holds 1" bench "$model" --batch 2 --runs 2 --input "$source/examples/digits/seven.npy"
try 1 "--shape" bench "$model" --runs 2 --shape 1x3x28x28
try 1 "none.onnx" bench none.onnx --runs 2
try 1 " failed " bench none.onnx "$model" --runs 2
try 1 "\"failed\": true" bench none.onnx "$model" --runs 2 --json
try 1 "--stored goes with --against" bench "$model" --stored
try 1 "No such file" bench "$model" --against "$folder/none.json"
try 1 "not a result" bench "$model" --against "$source/README.md"
made_up() { printf '{"model": "%s", "threads": 1, "precision": "f32", "samples_ms": [' "$model"
for k in 1 2 3 4 5 6 7 8 9; do printf '%s%d, ' "$1" $k; done; printf '%s]}\n' "$2"; }
made_up 90000. 90001 >"$folder/slow.json"
made_up 0.00000 0.000001 >"$folder/fast.json"
made_up 1. 0 >"$folder/zero.json"
if [ -z "${HONE_RUNNER:-}" ]; then # not under an emulator, whose own times these would be
    try 0 "faster" bench "$model" --runs 30 --threads 1 --against "$folder/slow.json"
    try 0 "not in turn" bench "$model" --runs 30 --threads 1 --against "$folder/slow.json"
    try 0 "not the same there: pause 0 ms" bench "$model" --runs 3 --threads 1 --pause 0.1 --against \
        "$folder/slow.json"
    try 3 "slower" bench "$model" --runs 30 --threads 1 --against "$folder/fast.json"
    # too few to tell
    try 0 "no significant difference" bench "$model" --runs 3 --threads 1 --against "$folder/fast.json"
    try 1 "not a result" bench "$model" --runs 30 --against "$folder/zero.json"
    try 0 "saved" bench "$model" --runs 30 --threads 1 --save "$folder/base.json"
    try 1 "it has no result" bench "$model" --runs 2 --threads 1 --batch 1,2 --against "$folder/base.json"
    try 1 "--save $folder/none/base.json" bench "$model" --runs 2 --save "$folder/none/base.json"
    # The saved program is this one, and still there; what it finds is up to the machine.
    said=$("$hone" bench "$model" --runs 30 --threads 1 --against "$folder/base.json" 2>&1)
    [[ $said == *"rounds in turn"* && $said =~ (faster|slower|no significant difference) ]] ||
        { echo "bench --against: $said"; failed=$((failed + 1)); }
    sed 's/"build": "[0-9a-f]*"/"build": "1"/' "$folder/base.json" >"$folder/other.json"
    said=$("$hone" bench "$model" --runs 30 --threads 1 --against "$folder/other.json" 2>&1)
    [[ $said == *"is another build by now"* ]] || { echo "bench --against, another build: $said"
    failed=$((failed + 1)); }
fi
if command -v python3 >/dev/null; then
    ${HONE_RUNNER:-} "$hone" bench "$model" --runs 40 --threads 1 --json >"$folder/one.json"
    ${HONE_RUNNER:-} "$hone" bench "$model" --runs 12 --batch 1,3 --threads 1,1 --precision f32 --json \
        >"$folder/sweep.json"
    python3 - "$folder" <<'END' || failed=$((failed + 1))
import json, sys
one, sweep = (json.load(open(f"{sys.argv[1]}/{name}.json")) for name in ("one", "sweep"))
rows = sweep["results"]
assert [(r["batch"], r["threads"]) for r in rows] == [(1, 1), (1, 1), (3, 1), (3, 1)], "rows of a sweep"
for r in [one] + rows:
    assert 0 < r["min_ms"] <= r["median_ms"] <= r["p90_ms"] <= r["p99_ms"] <= r["max_ms"], "order of times"
    assert r["load_ms"] > 0 and r["first_ms"] > 0 and r["peak_bytes"] > 1e6 and r["throughput_per_s"] > 0, \
        "what else is measured"
    assert r["precision"] == "f32" and r["device"] == "cpu" and r["runs"] == len(r["samples_ms"]), \
        "what was measured"
    assert r["roofline"]["share"] > 0 and r["roofline"]["peak_flops_per_s"] > 0, "roofline"
    assert r["model"] in r["made_by"]["words"]
assert one["batch"] is None and rows[3]["roofline"]["flops"] > 2.9 * rows[0]["roofline"]["flops"], \
    "work grows with the batch"
END
fi

# A model cut short, or with a bit turned over, is a mistake of one line, or a model that runs; never a crash
# (exit codes above 2).
size=$(wc -c < "$model")
for k in $(seq 0 ${step:-1} 11); do
    head -c $((size * k / 12)) "$model" > "$folder/cut.onnx"
    cp "$model" "$folder/flipped.onnx"
    at=$(((k * 7919 + 13) % (k < 6 ? 700 : size))) # half of them where the structure is
    byte=$(od -An -tu1 -j $at -N 1 "$model")
    printf "\\$(printf '%03o' $((byte ^ (1 << k % 8))))" |
        dd of="$folder/flipped.onnx" bs=1 seek=$at conv=notrunc 2>/dev/null
    for words in "check $folder/cut.onnx" "inspect $folder/flipped.onnx --nodes --memory" \
        "check $folder/flipped.onnx"; do
        ${HONE_RUNNER:-} "$hone" $words >"$folder/said" 2>&1
        rc=$?
        [ $rc -le 1 ] || { echo "hone $words, case $k: exit $rc"; head -n 5 "$folder/said"; \
            failed=$((failed + 1)); }
    done
done

# Colours are for terminals: never in a file, nor where NO_COLOR is set.
"$hone" check "$source/README.md" 2>&1 | grep -q $'\033' &&
    { echo "colours in a pipe"; failed=$((failed + 1)); }
if [ -z "${HONE_RUNNER:-}" ] &&
    script -qec true /dev/null >/dev/null 2>&1; then # where there are terminals to be had
    seen() { script -qec "$1" /dev/null 2>/dev/null | grep -c $'\033'; }
    [ "$(seen "$hone check $model")" != 0 ] || { echo "no colours on a terminal"; failed=$((failed + 1)); }
    [ "$(NO_COLOR=1 seen "$hone check $model")" = 0 ] ||
        { echo "colours in spite of NO_COLOR"; failed=$((failed + 1)); }
fi

if command -v python3 >/dev/null; then
    for words in "run $model --json" \
        "run $model --json --top 3 --labels $folder/names.py --input $folder/stroke.pgm" \
            "inspect $model --nodes --text --passes --memory --json" "check $model --json" \
                "compile $model -o $folder/j.onnx --json" "check none --json" "check $model none --json" \
                    "explain $model --node 0 --json" "version --json" "devices --json --quick" \
                        "conformance $source/examples/digits --json"; do
        ${HONE_RUNNER:-} "$hone" $words 2>/dev/null |
            python3 -c 'import json, sys; json.load(sys.stdin)' 2>/dev/null ||
                { echo "hone $words: not JSON"; failed=$((failed + 1)); }
    done
fi
echo "$failed failed"
[ "$failed" = 0 ]
