#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Models on other devices:  devices.sh HONE PLUGIN SHARED [--all|--small]
# ONNX's own cases and small models on the plain device (plugin_plain.c), and split at random between it, its
# twin and the CPU: nodes go by the last letter of their names. --all: more splits, and every model that the
# definition runs in a minute. --small, for sanitizers: the split alone, in which every device has a part.
# Exits 77 where there are no cases.
set -u
hone=$1 plugin=$2 shared=$3 all=${4:-}
NODE_MIN=1413 # as in conformance.sh
SMALL="bert-qa-24l-tiny-random gtcrn-stream mnist-cnn silero-vad"
LARGER="sentence-boundary-bilstm stories260K speech-embedding wakeword-melspec vittrack mobilenetv2-fp32"
[ -d "$shared/onnx/node" ] || { echo "SKIPPED: no conformance cases at $shared/onnx"; exit 77; }
bad=0
fail() {
    echo "FAIL: $*"
    bad=$((bad + 1))
}
# A split: of all letters and digits each goes to one of three. RANDOM is seeded, so a split is the same every
# time.
split() { # seed
    local one= two= c
    RANDOM=$1
    for c in {a..z} {A..Z} {0..9} _; do
        case $((RANDOM % 3)) in 1) one+=$c ;; 2) two+=$c ;; esac
    done
    where=(--plugin "$plugin" --device plain:0 --place "*[$one]=plain:1" --place "*[$two]=cpu")
}
cases() { # folder, least
    local line
    line=$("$hone" conformance "$shared/onnx/$1" --quiet --seconds 200 ${2:+--min $2} "${where[@]}" 2>&1) ||
        fail "$1 ${where[*]}: $line"
    echo "$1: ${line##*$'\n'} (${where[*]:2})"
}
models() { # names
    local name line
    for name in "$@"; do
        [ -e "$shared/models/$name/model.onnx" ] || continue
        line=$("$hone" run "$shared/models/$name/model.onnx" --check "$shared/models/$name/test_data_set_0" \
            --rtol 1e-3 --atol 1e-3 "${where[@]}" 2>&1) ||
            fail "$name ${where[*]}: $line"
        echo "$name (${where[*]:2})"
    done
}
if [ "$all" != --small ]; then
    where=(--plugin "$plugin" --device plain)
    cases node $NODE_MIN
    models $SMALL
fi
split 1
cases simple
cases node $NODE_MIN
models $SMALL
if [ "$all" = --all ]; then
    where=(--plugin "$plugin" --device plain:1)
    cases pytorch-operator
    cases pytorch-converted
    models $LARGER
    for seed in 2 3 4 5; do
        split $seed
        for folder in node simple pytorch-operator
        do cases $folder "$([ $folder = node ] && echo $NODE_MIN)"; done
        models $SMALL stories260K sentence-boundary-bilstm
    done
fi
# Mistakes are one line that says what to do.
wrong() { # what it must say, then the command
    local says=$1 line
    shift
    line=$("$hone" "$@" 2>&1 >/dev/null) && fail "'hone $*' succeeded"
    [[ $line == *"$says"* && $line != *$'\n'* ]] || fail "'hone $*' does not say '$says': $line"
}
model=$shared/models/mnist-cnn/model.onnx
if [ -e "$model" ]; then
    wrong "there is no device 'plain'" run "$model" --device plain
    wrong "there are 2 of 'plain'" run "$model" --plugin "$plugin" --device plain:2
    wrong "cannot be loaded" run "$model" --plugin no-such-file.so
    wrong "does not say what goes where" run "$model" --plugin "$plugin" --device plain --place conv
    out=$("$hone" check "$model" --plugin "$plugin" --device plain 2>&1) || fail "check --device: $out"
    [[ $out == *"plain:0"* && $out == *"copies"* ]] || fail "check --device says nothing of devices: $out"
    out=$("$hone" bench "$model" --plugin "$plugin" --device plain --runs 3 2>&1) ||
        fail "bench --device: $out"
fi
[ $bad = 0 ]
