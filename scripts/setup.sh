#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, and only that:  setup.sh build|test|fuzz|deb|all
# Silent when nothing is missing. Debian and Ubuntu only; elsewhere it names the programs and stops.
set -u
build="cc:gcc c++:g++ /usr/include/stdio.h:libc6-dev cmake:cmake ninja:ninja-build"
pictures="jpeglib.h:libjpeg-dev png.h:libpng-dev webp/decode.h:libwebp-dev tiffio.h:libtiff-dev
    openjpeg-2.[45]/openjpeg.h:libopenjp2-7-dev"
server="microhttpd.h:libmicrohttpd-dev jansson.h:libjansson-dev zlib.h:zlib1g-dev
    nghttp2/nghttp2.h:libnghttp2-dev"
test="$build /usr/include/cmocka.h:libcmocka-dev ccache:ccache"
case $(uname -m) in
aarch64) cross="x86_64-linux-gnu-gcc:gcc-x86-64-linux-gnu qemu-x86_64:qemu-user
    /usr/x86_64-linux-gnu/include/stdio.h:libc6-dev-amd64-cross" ;;
*) cross="aarch64-linux-gnu-gcc:gcc-aarch64-linux-gnu qemu-aarch64:qemu-user
    /usr/aarch64-linux-gnu/include/stdio.h:libc6-dev-arm64-cross" ;;
esac
all="$test clang:clang clang-format:clang-format clang-tidy:clang-tidy
    /etc/OpenCL/vendors/pocl.icd:pocl-opencl-icd
    /usr/lib/$(uname -m)-linux-gnu/libOpenCL.so.1:ocl-icd-libopencl1 $cross"

# libFuzzer and the sanitizers are a package of their own, named by clang's version; before there is a clang
# it is not asked for
clang_runtime() {
    ! command -v clang >/dev/null 2>&1 ||
        ls "$(clang -print-resource-dir)"/lib/*/libclang_rt.fuzzer* >/dev/null 2>&1 ||
        echo " libclang-rt-$(clang -dumpversion | cut -d. -f1)-dev"
}

missing=
case ${1:-} in
build) wanted=$build ;;
test) wanted=$test ;;
deb) wanted="dpkg-shlibdeps:dpkg-dev" ;;
fuzz) wanted="$build clang:clang" missing=$(clang_runtime) ;;
all) wanted=$all missing=$(clang_runtime) ;;
*) echo "usage: setup.sh build|test|fuzz|deb|all" >&2; exit 1 ;;
esac

for pair in $wanted; do
    thing=${pair%:*}
    case $thing in
    /*) [ -e "$thing" ] || missing="$missing ${pair#*:}" ;;
    *) command -v "$thing" >/dev/null 2>&1 || missing="$missing ${pair#*:}" ;;
    esac
done
# without one its pictures are refused, by name, or there is no server, and all else works: no reason to stop
wished=
for pair in $pictures $server; do
    set -- "$1" /usr/include/${pair%:*} /usr/include/*/${pair%:*}
    [ -e "$2" ] || [ -e "$3" ] || wished="$wished ${pair#*:}"
done
[ -n "$missing$wished" ] || exit 0

fail() {
    if [ -n "$missing" ]; then
        echo "setup: missing:$missing. $1" >&2
        exit 1
    fi
    echo "setup: not there:$wished. Pictures of that kind will be refused, or there will be no server. $1"
    exit 0
}
command -v apt-get >/dev/null 2>&1 || fail "This is not Debian or Ubuntu: install these, then run make again."
sudo=
if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null 2>&1 || fail "Become root and run: apt-get install$missing$wished"
    sudo="sudo"
fi
echo "setup: installing$missing$wished"
log=$(mktemp)
$sudo apt-get -qq update >"$log" 2>&1 || true # one dead source must not stop the others
install() { $sudo env DEBIAN_FRONTEND=noninteractive apt-get -qq -y install --no-install-recommends "$@" \
    >>"$log" 2>&1; }
if install $missing $wished || { [ -n "$missing" ] && install $missing; }; then
    rm -f "$log"
    case "$missing " in *" clang "*) "$0" "$1" ;; esac # once more: now clang can say which runtime it wants
else
    tail -n 5 "$log" >&2
    fail "apt-get could not install them; its log is $log"
fi
