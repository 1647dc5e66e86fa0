#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# One folder of ONNX's own test cases:  conformance.sh HONE FOLDER
# HONE_RUNNER, when set, runs the command (an emulator). Exits 77 when the folder is not on this machine.
set -u
NODE_MIN=1413 # cases of node/ that must pass (the other 7 are random); every case of the other folders must

hone=$1
folder=$2
if [ ! -d "$folder" ]; then
    echo "SKIPPED: no conformance cases at $folder"
    exit 77
fi
min=
[ -z "${HONE_RUNNER:-}" ] ||
    NODE_MIN=$((NODE_MIN - 5)) # pictures: the other architecture's libraries are not here
[ "$(basename "$folder")" != node ] || min="--min $NODE_MIN"
exec ${HONE_RUNNER:-} "$hone" conformance "$folder" --quiet $min
