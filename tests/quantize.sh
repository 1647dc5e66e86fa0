#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# hone quantize on the network that comes along, and on samples of every kind:  quantize.sh HONE SOURCE_DIR
set -u
hone=$1 source=$2
characters=$source/examples/characters digits=$source/examples/digits
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0

. "${0%/*}/try.sh"
pictures=(--data "$characters/h.png" --data "$characters/o.png" --data "$characters/n.png" --data "$characters/e.png")

try 0 "example" quantize --help
try 1 "samples of what the model is given are missing" quantize "$characters/model.onnx" -o "$folder/q.onnx"
try 1 "-o is missing" quantize "$characters/model.onnx" "${pictures[@]}"
try 1 "no such file" quantize "$characters/model.onnx" --data "$folder/none" -o "$folder/q.onnx"
try 1 "mixture" quantize "$characters/model.onnx" --data "$characters" -o "$folder/q.onnx"
try 1 "how much may be lost" quantize "$characters/model.onnx" "${pictures[@]}" --metric top1 -o "$folder/q.onnx"
try 1 "--max-drop much" quantize "$characters/model.onnx" "${pictures[@]}" --max-drop much -o "$folder/q.onnx"
try 1 "beauty" quantize "$characters/model.onnx" "${pictures[@]}" --target beauty -o "$folder/q.onnx"
try 1 "luck" quantize "$characters/model.onnx" "${pictures[@]}" --metric luck --max-drop 1% -o "$folder/q.onnx"
try 1 "neither a picture nor" quantize "$characters/model.onnx" --data "$characters/labels.txt" -o "$folder/q.onnx"
[ ! -e "$folder/q.onnx" ] || { echo "a failed command left a file"; failed=$((failed + 1)); }

try 0 "layers  4 in int8" quantize "$characters/model.onnx" "${pictures[@]}" --target size -o "$folder/q.onnx"
[ "$(wc -c <"$folder/q.onnx")" -lt $(($(wc -c <"$characters/model.onnx") * 30 / 100)) ] || { echo "the model is not a third as large"; failed=$((failed + 1)); }
for letter in h o n e; do # what the network says does not change
    try 0 "top  ${letter^^} (" run "$folder/q.onnx" --input "$characters/$letter.png" --labels "$characters/labels.txt" --top 1
done
try 0 "QLinearConv" inspect "$folder/q.onnx" --nodes
try 1 "quantized already" quantize "$folder/q.onnx" "${pictures[@]}" -o "$folder/r.onnx"
try 1 "choose another name" quantize "$folder/q.onnx" "${pictures[@]}" -o "$folder/q.onnx"
try 0 '"macs_int8"' quantize "$characters/model.onnx" "${pictures[@]}" --metric cosine --max-drop 1% --cache "$folder/seen.txt" --json -o "$folder/q.onnx"
grep -q "^hone calibration 1 " "$folder/seen.txt" || { echo "there is no cache"; failed=$((failed + 1)); }
try 0 "int8" quantize "$characters/model.onnx" "${pictures[@]}" --cache "$folder/seen.txt" --target size --all -o "$folder/q.onnx"

# A page with what was measured for it, and the same as lines; one that cannot be written is said before anything is done.
try 0 "is written" quantize "$characters/model.onnx" "${pictures[@]}" --target size --report "$folder/page.html" -o "$folder/p.onnx"
for part in '"mixtures": [{' '"behind_db": ' '"histogram": [' '"ranges": [{' '"sqnr_db": '; do
    grep -qF "$part" "$folder/page.html" || { echo "the page lacks $part"; failed=$((failed + 1)); }
done
grep -qE '(src|href)="?(http|//)' "$folder/page.html" && { echo "the page fetches something"; failed=$((failed + 1)); }
try 0 "0 (written)" quantize "$characters/model.onnx" "${pictures[@]}" --target size --mixtures -o "$folder/p.onnx"
try 1 "--report" quantize "$characters/model.onnx" "${pictures[@]}" --report "$folder/none/page.html" -o "$folder/p2.onnx"
[ ! -e "$folder/p2.onnx" ] || { echo "a report that cannot be written was found out too late"; failed=$((failed + 1)); }
try 0 "is written" quantize "$digits/model.onnx" --weights int8 --report "$folder/w.html" -o "$folder/w.onnx"

# Arrays and folders of test data: one sample each, which shows ranges and judges.
try 0 "one sample, for ranges and to judge" quantize "$digits/model.onnx" --data "$digits/seven.npy" -o "$folder/d.onnx"
try 0 "int8" quantize "$digits/model.onnx" --data "$digits/test_data_set_0" -o "$folder/d.onnx"
printf 'PK\005\006rubbish that is no archive' >"$folder/bad.npz"
try 1 "bad.npz" quantize "$digits/model.onnx" --data "$folder/bad.npz" -o "$folder/d.onnx"
printf '\000\000\010\003\177\377\377\377\000\000\000\034\000\000\000\034' >"$folder/bad-idx"
try 1 "IDX" quantize "$digits/model.onnx" --data "$folder/bad-idx" -o "$folder/d.onnx"

[ "$failed" = 0 ] && echo "hone quantize does what it says"
exit "$failed"
