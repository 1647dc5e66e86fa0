#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Shows the command at work on the models in examples/, which the project made itself:  demo.sh HONE
# Shows only what runs: each line below a `$` is what the command printed.
set -u
hone=${1:?usage: demo.sh HONE}
cd "$(dirname "$0")/.." || exit 1
if [ ! -x "$hone" ]; then
    echo "There is no command yet: this revision builds the library only (build/libhone.a, build/libhone.so)."
    exit 0
fi

show() {
    echo "\$ hone $*"
    "$hone" "$@" || exit 1
    echo
}

show --help
for model in examples/*/model.onnx; do
    [ -e "$model" ] || continue
    show inspect "$model"
    for picture in "${model%/*}"/*.npy; do
        [ -e "$picture" ] && show run "$model" --input "$picture" --picture --top 3 --runs 100
    done
    for set in "${model%/*}"/test_data_set_*; do
        [ -d "$set" ] && show run "$model" --check "$set" --rtol 1e-3 --atol 1e-4
    done
done
