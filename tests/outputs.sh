#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# No command writes over what it reads, under any name:  outputs.sh HONE SOURCE_DIR WRITE_MODELS
set -u
hone=$1 source=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0
. "${0%/*}/try.sh"

model=$folder/model.onnx
cp "$source/examples/digits/model.onnx" "$model"
cp "$source/examples/digits/seven.npy" "$folder/seven.npy"
ln -s model.onnx "$folder/soft.html"
ln "$model" "$folder/hard.onnx"
mkdir "$folder/out"
ln "$model" "$folder/out/output_0.npy"
as_it_was() {
    cmp -s "$model" "$source/examples/digits/model.onnx" &&
        cmp -s "$folder/seven.npy" "$source/examples/digits/seven.npy" && [ -L "$folder/soft.html" ] && return
    echo "$1: an input was written over"
    failed=$((failed + 1))
    cp "$source/examples/digits/model.onnx" "$model"
}
after=as_it_was
input=$folder/seven.npy
for to in "$model" "$folder/soft.html" "$folder/hard.onnx"; do
    try 1 "choose another name" inspect "$model" --html "$to"
    try 1 "choose another name" bench "$model" --runs 2 --save "$to"
    try 1 "choose another name" compare "$model" --with none --html "$to"
    try 1 "choose another name" tune "$model" --budget 10ms -o "$to"
    case $to in *.onnx) try 1 "choose another name" compile "$model" -o "$to" ;; esac
done
try 1 "choose another name" run "$model" --save "$folder/out"
try 1 "choose another name" bench "$model" --runs 2 --input "image=$input" --save "$input"
try 1 "choose another name" bench "$model" --runs 2 --input "$input" --save "$input"
try 1 "choose another name" compare "$model" --with none --input "$input" --html "$input"
try 1 "choose another name" tune "$model" --budget 10ms --input "$input" -o "$input"
cp "$input" "$folder/out/output_0.npy.own" && mv "$folder/out/output_0.npy.own" "$folder/out/output_0.npy"
try 1 "choose another name" run "$model" --input "$folder/out/output_0.npy" --save "$folder/out"

# Data that lies beside a model is its own.
"$3" "$folder" && cp "$folder/w.data" "$folder/copy"
unset after
try 1 "choose another name" inspect "$folder/external.onnx" --html "$folder/w.data"
try 1 "choose another name" bench "$folder/external.onnx" --runs 2 --save "$folder/w.data"
try 1 "choose another name" compare "$folder/external.onnx" --with none --html "$folder/w.data"
cmp -s "$folder/w.data" "$folder/copy" || { echo "external data was written over"; failed=$((failed + 1)); }

# What is not read may be written, through a link too; nothing is left beside it; a device is not replaced.
echo old >"$folder/page.html"
ln -s page.html "$folder/link.html"
try 0 "is written" inspect "$model" --html "$folder/link.html"
[ -L "$folder/link.html" ] && grep -q '</html>' "$folder/page.html" || { echo "--html through a link"
failed=$((failed + 1)); }
try 0 "" inspect "$model" --html /dev/null
[ -c /dev/null ] || { echo "/dev/null was replaced"; failed=$((failed + 1)); }
ls "$folder" | grep -q '\.part$' && { echo "parts were left behind"; failed=$((failed + 1)); }
echo "$failed failed"
[ "$failed" = 0 ]
