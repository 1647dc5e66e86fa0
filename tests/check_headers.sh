#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every header compiles alone:  check_headers.sh SOURCE_DIR CC
# Public ones as C and as C++, those of src/ as C. Headers of one instruction set are compiled where the
# compiler is for it. Text that only works after its includer set some names is not a header: call it .inc.
set -u
cd "${1:?usage: check_headers.sh SOURCE_DIR CC}" || exit 1
cc=${2:-cc}
case $cc in
*clang) cxx=${cc}++ ;;
*) cxx=${CXX:-c++} ;;
esac
flags="-fsyntax-only -Wall -Wextra -Wno-unused-parameter -Werror -D_GNU_SOURCE -I include -I src"
count=0 bad=0

alone() { # header, then the compiler with its options
    local header=$1
    shift
    count=$((count + 1))
    if ! echo "#include \"$header\"" | "$@" $flags -; then
        echo "$header does not compile alone with: $*"
        bad=$((bad + 1))
    fi
}

machine=$("$cc" -dumpmachine)
for header in include/hone/*.h; do
    [ -e "$header" ] || continue
    alone "${header#include/}" "$cc" -std=c11 -Wpedantic -x c
    if command -v "$cxx" >/dev/null 2>&1; then
        alone "${header#include/}" "$cxx" -std=c++11 -Wpedantic -x c++
    fi
done
while read -r header; do
    isa=
    case $header in
    */x86/*) case $machine in x86_64*) isa="-mavx2 -mfma -mf16c -mavx512f -mavx512bw -mavx512dq -mavx512vl" \
        ;; *) continue ;; esac ;;
    */arm/*) case $machine in aarch64*) ;; *) continue ;; esac ;;
    esac
    alone "${header#src/}" "$cc" -std=gnu11 -x c $isa
done < <(find src -name '*.h' | sort)

echo "$count compilations of headers alone, $bad failed"
[ "$bad" = 0 ]
