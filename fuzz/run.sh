#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs every fuzzer of BUILD for SECONDS each, one after the other:  run.sh BUILD SECONDS [NAME…]
# An input may take a minute by the clock: other work may hold the machine.
# FUZZ_MODELS names folders: the small models below them, as other tools left them, are seeds too. What it
# learned stays in BUILD/corpus and is where the next run begins; a finding stops it and stays in BUILD/found.
set -eu
build=${1:?usage: run.sh BUILD SECONDS [NAME...]} seconds=${2:?usage: run.sh BUILD SECONDS [NAME...]}
shift 2
[ $# -gt 0 ] || set -- $(cd "$build/fuzz" && ls fuzz_* | grep -v '\.' | sed 's/^fuzz_//')
export ASAN_OPTIONS=allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1
leaks=1
[ "$(uname -m)" != aarch64 ] ||
    leaks=0 # looking for them takes seconds an input there; they are the tests' and x86-64's to find
ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=$leaks
mkdir -p "$build/found"
"$build/fuzz/seeds" "$build/seeds" ${FUZZ_MODELS:-}
for name; do
    mkdir -p "$build/corpus/$name"
    log=$build/found/$name.log
    # The library's own limit (hone_alloc_limit) holds memory down; libFuzzer's would count a refused request
    # as a finding.
    if nice "$build/fuzz/fuzz_$name" -max_total_time="$seconds" -timeout=60 -detect_leaks=$leaks \
        -rss_limit_mb=2500 -malloc_limit_mb=1000000 -print_final_stats=1 \
        -artifact_prefix="$build/found/$name-" "$build/corpus/$name" "$build/seeds/$name" >"$log" 2>&1; then
        echo "fuzz $name: $(sed -n 's/^stat::number_of_executed_units: *//p' \
            "$log") inputs in $seconds s, nothing found"
    else
        tail -n 60 "$log"
        echo "fuzz $name: a finding; the input is in $build/found, the log is $log" >&2
        exit 1
    fi
done
