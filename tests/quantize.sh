#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# hone quantize on the network that comes along, and on samples of every kind:
#     quantize.sh HONE SOURCE_DIR [--small]
# --small: under a sanitizer each model takes a quarter of a minute; pages, mixtures and QOperator go through
# the library in test_quantize there.
set -u
hone=$1 source=$2 small=${3:-}
characters=$source/examples/characters digits=$source/examples/digits
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0

. "${0%/*}/try.sh"
pictures=(--data "$characters/h.png" --data "$characters/o.png" --data "$characters/n.png" --data \
    "$characters/e.png")

try 0 "example" quantize --help
try 1 "samples of what the model is given are missing" quantize "$characters/model.onnx" -o "$folder/q.onnx"
try 1 "-o is missing" quantize "$characters/model.onnx" "${pictures[@]}"
try 1 "no such file" quantize "$characters/model.onnx" --data "$folder/none" -o "$folder/q.onnx"
try 1 "mixture" quantize "$characters/model.onnx" --data "$characters" -o "$folder/q.onnx"
try 1 "how much may be lost" quantize "$characters/model.onnx" "${pictures[@]}" --metric top1 -o \
    "$folder/q.onnx"
try 1 "--max-drop much" quantize "$characters/model.onnx" "${pictures[@]}" --max-drop much -o "$folder/q.onnx"
try 1 "beauty" quantize "$characters/model.onnx" "${pictures[@]}" --target beauty -o "$folder/q.onnx"
try 1 "luck" quantize "$characters/model.onnx" "${pictures[@]}" --metric luck --max-drop 1% -o \
    "$folder/q.onnx"
try 1 "neither a picture nor" quantize "$characters/model.onnx" --data "$characters/labels.txt" -o \
    "$folder/q.onnx"
try 1 "no use for observer" quantize "$characters/model.onnx" --form f16 --observer mse -o "$folder/q.onnx"
try 1 "--mixtures are of form static" quantize "$characters/model.onnx" --form bf16 --mixtures \
    -o "$folder/q.onnx"
[ ! -e "$folder/q.onnx" ] || { echo "a failed command left a file"; failed=$((failed + 1)); }

try 0 "layers  4 in int8" quantize "$characters/model.onnx" "${pictures[@]}" --target size -o "$folder/q.onnx"
[ "$(wc -c <"$folder/q.onnx")" -lt $(($(wc -c <"$characters/model.onnx") * 30 / 100)) ] ||
    { echo "the model is not a third as large"; failed=$((failed + 1)); }
for letter in h o n e; do # what the network says does not change
    try 0 "top  ${letter^^} (" run "$folder/q.onnx" --input "$characters/$letter.png" --labels \
        "$characters/labels.txt" --top 1
done
try 0 "QLinearConv" inspect "$folder/q.onnx" --nodes
try 1 "quantized already" quantize "$folder/q.onnx" "${pictures[@]}" -o "$folder/r.onnx"
try 1 "choose another name" quantize "$folder/q.onnx" "${pictures[@]}" -o "$folder/q.onnx"
try 0 '"macs_int8"' quantize "$characters/model.onnx" "${pictures[@]}" --metric cosine --max-drop 1% --cache \
    "$folder/seen.txt" --json -o "$folder/q.onnx"
grep -q "^hone calibration 1 " "$folder/seen.txt" || { echo "there is no cache"; failed=$((failed + 1)); }
try 0 "int8" quantize "$characters/model.onnx" "${pictures[@]}" --cache "$folder/seen.txt" --target size \
    --all -o "$folder/q.onnx"

if [ -z "$small" ]; then
    # A page with what was measured for it, and the same as lines; one that cannot be written is said before
    # anything is done.
    try 0 "is written" quantize "$characters/model.onnx" "${pictures[@]}" --target size \
        --report "$folder/page.html" -o "$folder/p.onnx"
    for part in '"mixtures": [{' '"behind_db": ' '"histogram": [' '"ranges": [{' '"sqnr_db": '; do
        grep -qF "$part" "$folder/page.html" || { echo "the page lacks $part"; failed=$((failed + 1)); }
    done
    grep -qE '(src|href)="?(http|//)' "$folder/page.html" &&
        { echo "the page fetches something"; failed=$((failed + 1)); }
    try 0 "0 (written)" quantize "$characters/model.onnx" "${pictures[@]}" --target size --mixtures \
        -o "$folder/p.onnx"
    try 1 "--report" quantize "$characters/model.onnx" "${pictures[@]}" --report "$folder/none/page.html" \
        -o "$folder/p2.onnx"
    [ ! -e "$folder/p2.onnx" ] ||
        { echo "a report that cannot be written was found out too late"; failed=$((failed + 1)); }
    try 0 "is written" quantize "$digits/model.onnx" --weights int8 --report "$folder/w.html" \
        -o "$folder/w.onnx"

    # Ops of integers in place of pairs: the same answers.
    try 0 "layers  4 in int8" quantize "$characters/model.onnx" "${pictures[@]}" --target size \
        --format qoperator -o "$folder/o.onnx"
    for op in QLinearConv QLinearMatMul,MatMulInteger; do
        for one in ${op//,/ }; do grep -q "$one" "$folder/o.onnx" && continue 2; done
        echo "there is no $op in the model"
        failed=$((failed + 1))
    done
    for letter in h o n e; do
        try 0 "top  ${letter^^} (" run "$folder/o.onnx" --input "$characters/$letter.png" \
            --labels "$characters/labels.txt" --top 1
    done
    try 1 "no ops of u16" quantize "$characters/model.onnx" "${pictures[@]}" --format qoperator \
        --activations u16 -o "$folder/o2.onnx"
    try 1 "format 'odd'" quantize "$characters/model.onnx" "${pictures[@]}" --format odd -o "$folder/o2.onnx"
fi

# A command says what is good: the float model is measured first, the one that is written last; nothing of
# what was tried stays behind.
printf 'echo "for people"\necho "$1" >>"%s/seen"\nprintf 12.5\n' "$folder" >"$folder/score.sh"
metric() {
    quantize="quantize $characters/model.onnx --target size --max-drop 1% --metric-limit 2 -o $folder/m.onnx"
    try "$1" "$2" $quantize "${pictures[@]}" --metric "$3"
}
metric 0 "measure 12.5, in f32 12.5" "sh $folder/score.sh"
[ "$(head -n 1 "$folder/seen")" = "$characters/model.onnx" ] ||
    { echo "the float model was not measured as it is"; failed=$((failed + 1)); }
metric 1 "nor a command that is there" no-such-command-anywhere
metric 1 "is no number: abc" "echo abc ; :"
metric 1 "code 3" "exit 3 ; :"
metric 1 "did not end within 2 s" "sleep 60 ; :"
metric 1 "prints nothing" true
printf 'case "$1" in *trial*) echo 1 ;; *) echo 2 ;; esac\n' >"$folder/worse.sh"
[ -n "$small" ] || metric 1 "loses more than allowed" "sh $folder/worse.sh"
[ -z "$(find "$folder" -name '*.trial*')" ] ||
    { echo "a model that was tried is still there"; failed=$((failed + 1)); }

# Text through a tokenizer's file, and how well the next token is foreseen.
printf %s '{"model": {"type": "BPE", "byte_fallback": true, ' \
    '"vocab": {"a": 0, "b": 1, "c": 2, " ": 3, "ab": 4, "\n": 5}, "merges": ["a b"]}}' \
    >"$folder/tokenizer.json"
for _ in 1 2 3 4 5 6 7 8; do echo "ab ca bc abab cab a b c ab cc"; done >"$folder/text.txt"
decoder="zoo:llama?layers=1&seq=8&vocab=32&dim=64&heads=4&kv=2&hidden=96"
try 0 "perplexity" quantize "$decoder" --data "$folder/text.txt" --tokenizer "$folder/tokenizer.json" \
    --tokens 8 --weights int8 --metric perplexity --max-drop 5% -o "$folder/l.onnx"
try 1 "loses more than allowed" quantize "$decoder" --data "$folder/text.txt" \
    --tokenizer "$folder/tokenizer.json" --tokens 8 --dynamic --metric perplexity --max-drop -90% \
    -o "$folder/l2.onnx"
[ ! -e "$folder/l2.onnx" ] || { echo "a model beyond its budget was written"; failed=$((failed + 1)); }
try 1 "no output of logits" quantize "$characters/model.onnx" "${pictures[@]}" --metric perplexity \
    --max-drop 5% -o "$folder/l.onnx"
try 1 "needs samples" quantize "$decoder" --weights int8 --metric perplexity --max-drop 5% -o "$folder/l.onnx"
try 1 "goes with --tokenizer" quantize "$decoder" --data "$folder/text.txt" --tokens 8 --weights int8 \
    -o "$folder/l.onnx"
try 1 "tokenizer.json" quantize "$decoder" --data "$folder/text.txt" --tokenizer "$folder/text.txt" \
    --weights int8 -o "$folder/l.onnx"
try 1 "nothing that text has" quantize "$characters/model.onnx" --data "$folder/text.txt" \
    --tokenizer "$folder/tokenizer.json" -o "$folder/l.onnx"

# Quantized products that run in floats are named.
try 0 "integers all 4 quantized products" check "$folder/q.onnx"
try 0 '"quantized": 4' check "$folder/q.onnx" --json

# Arrays and folders of test data: one sample each, which shows ranges and judges.
try 0 "one sample, for ranges and to judge" quantize "$digits/model.onnx" --data "$digits/seven.npy" -o \
    "$folder/d.onnx"
try 0 "int8" quantize "$digits/model.onnx" --data "$digits/test_data_set_0" -o "$folder/d.onnx"
printf 'PK\005\006rubbish that is no archive' >"$folder/bad.npz"
try 1 "bad.npz" quantize "$digits/model.onnx" --data "$folder/bad.npz" -o "$folder/d.onnx"
printf '\000\000\010\003\177\377\377\377\000\000\000\034\000\000\000\034' >"$folder/bad-idx"
try 1 "IDX" quantize "$digits/model.onnx" --data "$folder/bad-idx" -o "$folder/d.onnx"

[ "$failed" = 0 ] && echo "hone quantize does what it says"
exit "$failed"
