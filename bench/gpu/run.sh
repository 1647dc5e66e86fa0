#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# CUDA kernels checked and timed on the GPU at hand:  bench/gpu/run.sh [FOLDER for table.md and gpu.csv]
set -eu
cd "$(dirname "$0")/../.."
out=${1:-build-gpu}
cmake -S . -B build-gpu -DCMAKE_BUILD_TYPE=Release -DHONE_TESTS=OFF >/dev/null
cmake --build build-gpu --target bench_gpu -j "$(nproc)" >/dev/null
mkdir -p "$out"
build-gpu/bench/gpu --check --time --out "$out" | tee "$out/table.md"
