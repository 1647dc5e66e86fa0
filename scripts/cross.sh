#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds for the other architecture and runs its tests under qemu:  cross.sh aarch64|x86_64 BUILD_DIR JOBS
# Debian has no cross package of cmocka, so the foreign package is fetched with apt state of its own and
# unpacked into BUILD_DIR; the system's architectures stay as they are.
set -eu
arch=$1 build=$2 jobs=$3
case $arch in
aarch64) debian=arm64 ;;
x86_64) debian=amd64 ;;
*) echo "cross.sh: unknown architecture $arch" >&2; exit 1 ;;
esac
cd "$(dirname "$0")/.."
mkdir -p "$build"
root=$(cd "$build" && pwd)/cmocka

fetch_cmocka() {
    state=$root/apt
    mkdir -p "$state/lists/partial" "$state/cache/archives/partial"
    apt="apt-get -qq -o APT::Architectures::=$debian -o Dir::State::Lists=$state/lists"
    apt="$apt -o Dir::Cache=$state/cache -o APT::Sandbox::User=root"
    $apt update && (cd "$root" && $apt download "libcmocka0:$debian" "libcmocka-dev:$debian" &&
        for deb in *.deb; do dpkg-deb -x "$deb" .; done)
    rm -rf "$state"
}

library=$root/usr/lib/$arch-linux-gnu/libcmocka.so
[ -e "$library" ] || fetch_cmocka >"$root.log" 2>&1 || true
if [ -e "$library" ]; then
    tests="-DHONE_TESTS=ON -DCMOCKA_INCLUDE=$root/usr/include -DCMOCKA_LIBRARY=$library"
else
    echo "cross: no cmocka for $arch could be fetched ($root.log says why):" \
        "the $arch build is built, its tests are not run"
    tests="-DHONE_TESTS=OFF"
fi
cmake -G Ninja -S . -B "$build" -Wno-dev --toolchain "cmake/cross-$arch.cmake" $tests >/dev/null
cmake --build "$build" -j "$jobs" -- --quiet
[ ! -e "$library" ] || ctest --output-on-failure --no-tests=error -j "$jobs" --test-dir "$build"
