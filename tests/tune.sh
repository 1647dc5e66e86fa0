#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# hone tune with a tiny budget, and what other commands make of its wisdom:  tune.sh HONE SOURCE_DIR
# hone bench starts itself, which it cannot under an emulator.
set -u
hone=$1 source=$2
model=$source/examples/digits/model.onnx
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export XDG_CACHE_HOME=$folder/cache
unset HONE_WISDOM
failed=0

. "${0%/*}/try.sh"
no() { # text that must not be printed by the last command
    if [[ $out == *"$1"* ]]; then
        echo "this should not say '$1':"
        echo "$out" | head -n 20
        failed=$((failed + 1))
    fi
}

try 0 "example" tune --help
try 1 "is missing" tune
try 1 "is no time" tune "$model" --budget soon
try 1 "is no time" tune "$model" --budget -3s
try 1 "none.onnx" tune "$folder/none.onnx"
try 1 "No such file" run "$model" --wisdom "$folder/none.txt"
[ "${HONE_RUNNER:-}" ] || try 1 "No such file" bench "$model" --wisdom "$folder/none.txt" --runs 2

# A file of our own, then the same again: it goes on. Where a round was noisy nothing may be kept; the trials
# always are.
try 0 "tried " tune "$model" --budget 300ms -o "$folder/w.txt"
try 0 "model " tune "$model" --budget 300ms -o "$folder/w.txt" --all
try 0 "by earlier calls" tune "$model" --budget 300ms -o "$folder/w.txt"
[ -s "$folder/w.txt.trials" ] || { echo "there are no trials"; failed=$((failed + 1)); }
try 0 '"resumed": ' tune "$model" --budget 200ms -o "$folder/w.txt" --json
if command -v python3 >/dev/null; then
    echo "$out" | python3 -c '
import json, sys
r = json.load(sys.stdin)
assert r["resumed"] > 0 and r["tried"] <= r["candidates"] and r["threads"] >= 1, r
assert r["problems"] and \
    all(p["layers"] >= 1 and p["best"]["ns"] <= p["estimate"]["ns"] for p in r["problems"]), r
assert r["model"]["runs"] >= 7 and r["model"]["before_ms"] > 0, r
' || { echo "the JSON of tune is not as it should be"; failed=$((failed + 1)); }
fi

try 0 "1 threads" tune "$model" --budget 100ms -o "$folder/single.txt" --threads 1

# Wisdom for this machine: one line, made of the trials, so that it is there whatever was measured.
{ head -n 4 "$folder/w.txt.trials"; sed -n 5p "$folder/w.txt.trials"; echo "end 1"; } >"$folder/one.txt"
try 0 "one.txt: 1 choices" run "$model" --wisdom "$folder/one.txt"
no "is not used"
try 0 "pass" run "$model" --wisdom "$folder/one.txt" --check "$source/examples/digits/test_data_set_0"
[ "${HONE_RUNNER:-}" ] || try 0 "one.txt: 1 choices" bench "$model" --runs 3 --wisdom "$folder/one.txt"
try 0 '"used": ' run "$model" --wisdom "$folder/one.txt" --json
no '"used": 0' # steps: a choice may be for several
HONE_WISDOM=$folder/one.txt try 0 "one.txt: 1 choices" run "$model"
HONE_WISDOM=$folder/one.txt try 0 "time" run "$model" --wisdom ""
no "one.txt"

# The default file is found without a word from the user, and the run says so.
try 0 "$folder/cache/hone/wisdom-" tune "$model" --budget 100ms
file=$(ls "$folder"/cache/hone/wisdom-*.trials) && file=${file%.trials}
cp "$folder/one.txt" "$file"
try 0 "$file: 1 choices" run "$model"
HONE_WISDOM=none try 0 "time" run "$model"
no "$file"

# Of another machine, of other kernels, damaged: not used, with a word, and the answers are right.
for change in 's/^cpu .*/cpu Another/ another-CPU' 's/^kernels .*/kernels 0/ other-kernels' \
    's/^level .*/level 0/ another-level' \
    '$d cut-off' '5s/ : /;/ line-5' '5s/[0-9]\+$/x/ line-5' 's/^end .*/end 7/ count'; do
    sed "${change% *}" "$folder/one.txt" >"$folder/bad.txt"
    why=${change##* }
    try 0 "bad.txt is not used" run "$model" --wisdom "$folder/bad.txt" --runs 1
    [[ $out == *${why//-/ }* ]] || { echo "it should say '${why//-/ }': $out"; failed=$((failed + 1)); }
    try 0 "pass" run "$model" --wisdom "$folder/bad.txt" --check "$source/examples/digits/test_data_set_0"
done
# Numbers that do not fit their problem: read, and not followed.
sed '5s/rows [0-9]* columns [0-9]*/rows 999999999 columns 1/' "$folder/one.txt" >"$folder/bad.txt"
try 0 "0 steps of this model follow" run "$model" --wisdom "$folder/bad.txt"
try 0 "pass" run "$model" --wisdom "$folder/bad.txt" --check "$source/examples/digits/test_data_set_0"

# What is there and is no wisdom is left alone; what is foreign is replaced, with a word.
echo "my thesis" >"$folder/thesis.txt"
try 1 "is no wisdom" tune "$model" --budget 100ms -o "$folder/thesis.txt"
[ "$(cat "$folder/thesis.txt")" = "my thesis" ] || { echo "it was written over"; failed=$((failed + 1)); }
sed 's/^cpu .*/cpu Another/' "$folder/one.txt" >"$folder/old.txt"
try 0 "is not gone on with: it was made on another CPU" tune "$model" --budget 100ms -o "$folder/old.txt"
try 1 "/nowhere" tune "$model" --budget 100ms -o /proc/nowhere/w.txt

[ "$failed" = 0 ] && echo "tune: all as it should be"
[ "$failed" = 0 ]
