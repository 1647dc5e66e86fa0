#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, and only that:  setup.sh build|test|fuzz|all
# Silent when nothing is missing. Debian and Ubuntu only; elsewhere it names the programs and stops.
set -u
build="cc:gcc c++:g++ /usr/include/stdio.h:libc6-dev cmake:cmake ninja:ninja-build"
test="$build /usr/include/cmocka.h:libcmocka-dev"
case $(uname -m) in
aarch64) cross="x86_64-linux-gnu-gcc:gcc-x86-64-linux-gnu /usr/x86_64-linux-gnu/include/stdio.h:libc6-dev-amd64-cross qemu-x86_64:qemu-user" ;;
*) cross="aarch64-linux-gnu-gcc:gcc-aarch64-linux-gnu /usr/aarch64-linux-gnu/include/stdio.h:libc6-dev-arm64-cross qemu-aarch64:qemu-user" ;;
esac
all="$test clang:clang clang-format:clang-format clang-tidy:clang-tidy $cross"

clang_runtime() { # libFuzzer and the sanitizers are a package of their own, named by clang's version; before there is a clang it is not asked for
    ! command -v clang >/dev/null 2>&1 || ls "$(clang -print-resource-dir)"/lib/*/libclang_rt.fuzzer* >/dev/null 2>&1 ||
        echo " libclang-rt-$(clang -dumpversion | cut -d. -f1)-dev"
}

missing=
case ${1:-} in
build) wanted=$build ;;
test) wanted=$test ;;
fuzz) wanted="$build clang:clang" missing=$(clang_runtime) ;;
all) wanted=$all missing=$(clang_runtime) ;;
*) echo "usage: setup.sh build|test|fuzz|all" >&2; exit 1 ;;
esac

for pair in $wanted; do
    thing=${pair%:*}
    case $thing in
    /*) [ -e "$thing" ] || missing="$missing ${pair#*:}" ;;
    *) command -v "$thing" >/dev/null 2>&1 || missing="$missing ${pair#*:}" ;;
    esac
done
[ -n "$missing" ] || exit 0

fail() {
    echo "setup: missing:$missing. $1" >&2
    exit 1
}
command -v apt-get >/dev/null 2>&1 || fail "This is not Debian or Ubuntu: install these, then run make again."
sudo=
if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null 2>&1 || fail "Become root and run: apt-get install$missing"
    sudo="sudo"
fi
echo "setup: installing$missing"
log=$(mktemp)
$sudo apt-get -qq update >"$log" 2>&1 || true # one dead source must not stop the others
if $sudo env DEBIAN_FRONTEND=noninteractive apt-get -qq -y install --no-install-recommends $missing >>"$log" 2>&1; then
    rm -f "$log"
    case "$missing " in *" clang "*) "$0" "$1" ;; esac # once more: now clang can say which runtime it wants
else
    tail -n 5 "$log" >&2
    fail "apt-get could not install them; its log is $log"
fi
