#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Free dims have the same sizes in every command:  dims.sh HONE WRITE_MODELS
set -u
hone=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0
. "${0%/*}/try.sh"
"$2" "$folder" || exit 1
export HONE_WISDOM=$folder/wisdom

# 1 is too small for h and w: every command finds the same size that is not, and says so.
model=$folder/picture.onnx
try 0 "batch = 1, h = 16, w = 16  (guessed" check "$model"
try 0 "h = 16, w = 16 (guessed)" inspect "$model"
try 0 "f32[1,1,12,12]" run "$model"
try 0 "batch = 1, h = 16, w = 16 are guesses" run "$model"
try 0 "f32[1,1,16,16]" bench "$model" --runs 2 --threads 1
try 0 "f32[3,1,16,16]" bench "$model" --runs 2 --threads 1 --batch 3
try 0 "choices" tune "$model" --budget 20ms --threads 1
try 0 "x  f32[1,1,16,16]" compare "$model" --with none --seconds 0.02 --loads 1
try 0 "x  f32[2,1,16,16]" compare "$model" --with none --seconds 0.02 --loads 1 --batch 2
# --dim, by name or by place
try 0 "batch = 2, h = 7" check "$model" --dim h=7 --dim batch=2
try 0 "f32[2,1,3,12]" run "$model" --dim h=7 --dim batch=2
try 0 "f32[2,1,7,16]" bench "$model" --runs 2 --threads 1 --dim h=7 --dim batch=2
try 0 "f32[2,1,7,9]" compare "$model" --with none --seconds 0.02 --loads 1 --dim h=7 --dim w=9 --dim batch=2
try 0 "choices" tune "$model" --budget 20ms --threads 1 --dim h=7
try 0 "f32[4,1,3,4]" run "$folder/nameless.onnx" --dim x.0=4 --dim x.2=7 --dim x.3=8
try 0 "x.0 = 1, x.2 = 16" run "$folder/nameless.onnx" --dim x.3=8
for command in run bench tune compare check inspect; do
    try 1 "did you mean 'batch'" $command "$model" --dim bach=2
done
# What cannot be: the error names --dim and what was guessed.
for command in run bench tune; do
    try 1 "is a guess: --dim NAME=SIZE" $command "$model" --dim h=2 --dim w=2
done
try 1 "is a guess: --dim NAME=SIZE" check "$model" --dim h=2 --dim w=2
# A dim that a file or --shape gives holds for the inputs without one.
try 0 "f32[3,4]" run "$folder/pair.onnx" --shape a=3x4 --save "$folder"
try 0 "f32[3,4]" run "$folder/pair.onnx" --input "b=$folder/output_0.npy"
try 1 "says that it is 3" run "$folder/pair.onnx" --input "b=$folder/output_0.npy" --dim n=5
# An initializer that is an input too is a default: the model runs without a value for it, and with one.
model=$folder/default.onnx
cp "$folder/w.data" "$folder/x.bin"
try 0 "values 3 6" run "$model" --input "x=$folder/x.bin"
try 0 "values 72 704" run "$model" --input "x=$folder/x.bin" --input "w=$folder/seven.bin"
try 0 "w  f32[2]" compare "$model" --with none --seconds 0.02 --loads 1 --input "w=$folder/seven.bin"
try 0 "f32[2]" bench "$model" --runs 2 --threads 1 --input "w=$folder/seven.bin"
try 1 "no input 'v'" run "$model" --input "v=$folder/seven.bin"
echo "$failed failed"
[ "$failed" = 0 ]
