#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Real models against the outputs that came with them:  models.sh HONE FOLDER [--small]
# FOLDER/*/model.onnx with its test_data_set_*, and decoder_with_past.onnx with its test_data_set_past_*.
# Prints a table; fails when a set fails. --small takes the models under SMALL_BYTES, two data sets of each,
# and in halves bf16 only, of those under TINY_BYTES (test_half has the kernels). HONE_RUNNER, when set, runs
# the command. Exits 77 when no model is there.
set -u
RTOL=1e-3
ATOL=1e-4
# atol. int8: rounding moves whole quantization steps. basic-pitch: takes the logarithm of what is almost
# nothing; run in f64, its own reference is 3.4e-4 off, Hone 0.9e-4
declare -A LOOSER=([mobilenetv2-int8-qdq]=2.0 [basic-pitch]=5e-4)
SMALL_BYTES=1500000
TINY_BYTES=200000

hone=$1 folder=$2 small=${3:-}
passed=0 failed=0
# both tolerances: bf16 has 8 bits, f16 11. Of a whole network at most one element in ten may be further
# off
declare -A HALF=([bf16]=0.05 [f16]=0.02)

check() { # model file, then its data sets
    local model=$1 name set line start
    name=$(basename "$(dirname "$model")")
    shift
    if [ -n "$small" ] && [ "$(stat -c %s "$model")" -gt $SMALL_BYTES ]; then return; fi
    [ -z "$small" ] || set -- "${@:1:2}"
    for set in "$@"; do
        [ -d "$set" ] || continue
        start=$(date +%s%N)
        if line=$(${HONE_RUNNER:-} "$hone" run "$model" --check "$set" --rtol $RTOL --atol \
            "${LOOSER[$name]:-$ATOL}" 2>&1); then
            passed=$((passed + 1)) word=pass
            line=
        else
            failed=$((failed + 1)) word=FAIL
        fi
        printf '%-4s %6d ms  %-26s %-22s %s\n' $word $((($(date +%s%N) - start) / 1000000)) "$name" \
            "$(basename "$set")" "${line##*$'\n'}"
    done
}

half() { # the same in bf16 or f16: prints how far off each output is
    local model=$1 lines line name word wrong all
    name=$(basename "$(dirname "$model")")
    if [ -n "$small" ] && [ "$(stat -c %s "$model")" -gt $TINY_BYTES ]; then return; fi
    case $name in *int8*) return ;; esac # whole steps of a quantization, as above, and nothing in halves
    lines=$(${HONE_RUNNER:-} "$hone" run "$model" --check "$2" --precision "$3" --rtol "${HALF[$3]}" --atol \
        "${HALF[$3]}" 2>&1)
    grep -q '^check' <<<"$lines" || lines="check   it did not run: $lines"
    while IFS= read -r line; do
        word=FAIL
        if [[ $line =~ ([0-9]+)\ of\ ([0-9]+)\ elements ]]; then
            wrong=${BASH_REMATCH[1]} all=${BASH_REMATCH[2]}
            [ $((wrong * 10)) -gt $((all + 10)) ] || word=pass
        fi
        if [ $word = pass ]; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
        printf '%-4s %-9s  %-26s %s\n' $word "$3" "$name" "${line#*output }"
    done < <(grep '^check' <<<"$lines")
}

for model in "$folder"/*/model.onnx; do
    [ -e "$model" ] && check "$model" "${model%/*}"/test_data_set_[0-9]*
    for kind in bf16 $([ -n "$small" ] || echo f16); do
        [ -d "${model%/*}/test_data_set_0" ] && half "$model" "${model%/*}/test_data_set_0" $kind
    done
done
for model in "$folder"/*/decoder_with_past.onnx; do
    [ -e "$model" ] && check "$model" "${model%/*}"/test_data_set_past_*
done

if [ $((passed + failed)) = 0 ]; then
    echo "SKIPPED: no models at $folder"
    exit 77
fi
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
