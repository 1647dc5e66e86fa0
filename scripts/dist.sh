#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The release page's archive of a static build:  dist.sh BUILD_DIR. The command, its man pages and
# completions, the licence; what it says of itself is looked at before it is packed: no loader, no library.
set -eu
build=$1
version=$("$build/hone" -V | cut -d' ' -f2)
name=hone-$version-linux-$(uname -m)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
if readelf -lW "$build/hone" | grep -q INTERP || readelf -dW "$build/hone" | grep -q NEEDED; then
    echo "dist: $build/hone is not static" >&2
    exit 1
fi
mkdir -p "$folder/$name/share"
cp "$build/hone" LICENSE README.md "$folder/$name/"
cp -r "$build/pages" "$folder/$name/share/pages"
strip "$folder/$name/hone"
tar -C "$folder" --owner=0 --group=0 -czf "$build/$name.tar.gz" "$name"
ls -l "$build/$name.tar.gz" | awk '{ print $NF ", " int($5 / 1e5) / 10 " MB" }'
