#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The installed package, as another project meets it:  install.sh BUILD_DIR SOURCE_DIR CC
# Installs into a folder, moves that folder elsewhere, and builds and runs examples/ against what lies there:
# through find_package and through pkg-config, shared and static. Then the names: libraries show what the
# headers declare, and nothing else.
set -u
build=$1 source=$2 cc=${3:-cc}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
prefix=$folder/moved
failed=0
say() {
    echo "$1"
    failed=$((failed + 1))
}

cmake --install "$build" --prefix "$folder/first" >"$folder/log" 2>&1 || { cat "$folder/log"; exit 1; }
mv "$folder/first" "$prefix"
lib=$(dirname "$(find "$prefix" -name libhone.a)")
shared=$lib/libhone.so
for file in include/hone/hone.h include/hone/image.h bin/hone; do
    [ -e "$prefix/$file" ] || say "$file was not installed"
done
[ -e "$shared" ] || say "libhone.so was not installed"

# A seven, white on black, as a PNM of text.
awk 'BEGIN {
    print "P2 28 28 255"
    for (y = 0; y < 28; y++) for (x = 0; x < 28; x++) {
        at = 19 - (y - 5) * 0.5
        print (x >= 7 && x <= 20 && y >= 5 && y <= 7) ||
            (y > 6 && y < 24 && x >= at - 1 && x <= at + 1) ? 255 : 0
    }
}' >"$folder/seven.pgm"

try() { # how it was built, folder of the two programs
    local out
    out=$(LD_LIBRARY_PATH=$lib "$2/classify" "$source/examples/digits/model.onnx" "$folder/seven.pgm" 2>&1) ||
        say "$1: classify failed: $out"
    [[ $out == "class 7 "* ]] || say "$1: classify does not see a seven, but: $out"
    out=$(LD_LIBRARY_PATH=$lib "$2/user_op" "$source/examples/user_op/model.onnx" 2>&1) ||
        say "$1: user_op failed: $out"
    [ "$out" = "row 0: 0.0000 0.0004 0.9990 0.0006
row 1: 0.5439 0.4043 0.0192 0.0326" ] || say "$1: user_op prints: $out"
    if out=$(LD_LIBRARY_PATH=$lib "$2/classify" "$source/examples/user_op/model.onnx" "$folder/seven.pgm" \
        2>&1); then
        say "$1: classify took a model with an op that nobody added: $out"
    fi
}

for static in OFF ON; do
    to=$folder/cmake-$static
    if cmake -S "$source/examples" -B "$to" -DCMAKE_C_COMPILER="$cc" -DCMAKE_PREFIX_PATH="$prefix" \
        -DSTATIC=$static >"$folder/log" 2>&1 &&
        cmake --build "$to" >>"$folder/log" 2>&1; then
        try "find_package, static $static" "$to"
    else
        tail -n 20 "$folder/log"
        say "find_package(hone), static $static: examples do not build"
    fi
done
if command -v pkg-config >/dev/null; then
    export PKG_CONFIG_PATH=$lib/pkgconfig
    mkdir "$folder/shared" "$folder/static"
    for name in classify user_op; do
        $cc -std=c99 -Wall -Wextra -Wpedantic -Werror "$source/examples/$name.c" \
            $(pkg-config --cflags --libs hone) -o "$folder/shared/$name" ||
            say "pkg-config: $name does not build"
        $cc -static "$source/examples/$name.c" $(pkg-config --static --cflags --libs hone) -o \
            "$folder/static/$name" ||
            say "pkg-config --static: $name does not build"
    done
    try "pkg-config" "$folder/shared"
    try "pkg-config --static" "$folder/static"
else
    echo "pkg-config is not there: that part was skipped"
fi

# A device by the words of CONTRIBUTING: its text is taken from there, built against the installed headers
# alone, and runs a model.
if [ -e "$source/CONTRIBUTING.md" ]; then
    awk '/^## A device/ { here = 1 } here && /^```c$/ { on = 1; next } /^```$/ { on = 0 } on' \
        "$source/CONTRIBUTING.md" >"$folder/brick.c"
    if $cc -std=c11 -Wall -Wextra -Werror -shared -fPIC -o "$folder/brick.so" "$folder/brick.c" -I \
        "$prefix/include"; then
        out=$("$prefix/bin/hone" run "$source/examples/digits/model.onnx" --input \
            "$source/examples/digits/seven.npy" --top 1 --plugin "$folder/brick.so" --device brick 2>&1)
        [ "$(wc -l <"$folder/brick.c")" -lt 300 ] || say "CONTRIBUTING's device has 300 lines or more"
        "$prefix/bin/hone" run "$source/examples/digits/model.onnx" --device brick >/dev/null 2>&1 &&
            say "a device is there that nobody added"
        grep -q 'top  7 (1)' <<<"$out" || say "CONTRIBUTING's device does not see a seven: $out"
    else
        say "CONTRIBUTING's device does not build"
    fi
fi

# Names. The headers' functions are what follows HONE_API up to the bracket; one line each, as clang-format
# leaves them.
find "$prefix/include/hone" -name '*.h' ! -name serve.h -exec grep -hE '^HONE_API ' {} + |
    sed -E 's/^[^(]*[ *](hone_[a-z0-9_]+)\(.*/\1/' | sort -u >"$folder/declared"
nm -D --defined-only "$shared" | awk '$2 != "A" { print $3 }' | sed 's/@.*//' | sort -u >"$folder/exported"
[ -s "$folder/declared" ] || say "no function was found in the headers"
diff "$folder/declared" "$folder/exported" >"$folder/log" ||
    say "declared (<) and exported (>) differ: $(tr '\n' ' ' <"$folder/log")"
odd=$(nm -g --defined-only "$lib/libhone.a" 2>/dev/null | awk 'NF == 3 && $3 !~ /^hone_/ { print $3 }' |
    sort -u | head -n 5)
[ -z "$odd" ] || say "libhone.a has names that do not begin with hone_: $odd"

echo "$(wc -l <"$folder/exported") functions exported; $failed failed"
[ "$failed" = 0 ]
