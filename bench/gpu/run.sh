#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# CUDA kernels checked and timed on the GPU at hand:  bench/gpu/run.sh [FOLDER for table.md and gpu.csv [what
# to run, as `gpu` takes it]]
set -eu
cd "$(dirname "$0")/../.."
out=${1:-build-gpu}
[ $# -eq 0 ] || shift
[ $# -gt 0 ] || set -- --check --time
mkdir -p "$out"
rm -f "$out/failed"
{ cmake -S . -B build-gpu -DCMAKE_BUILD_TYPE=Release -DHONE_TESTS=OFF &&
    cmake --build build-gpu --target bench_gpu -j "$(nproc)"; } >"$out/build.log" 2>&1 || {
    tail -20 "$out/build.log" >&2
    exit 1
}
{ build-gpu/bench/gpu "$@" --out "$out" || echo $? >"$out/failed"; } | tee "$out/table.md"
[ ! -e "$out/failed" ] || exit "$(cat "$out/failed")"
