#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Does `make demo` and `make test` on a bare machine work?  bare.sh FOLDER [SUITE]     (root; needs
# debootstrap) Makes a minimal Debian in FOLDER with git and make only, clones the last commit into it with
# shared/ beside it, and runs both there.
set -eu
folder=${1:?usage: bare.sh FOLDER [SUITE]}
suite=${2:-bookworm}
[ "$(id -u)" = 0 ] || { echo "bare.sh: chroot needs root" >&2; exit 1; }
command -v debootstrap >/dev/null || { echo "bare.sh: apt-get install debootstrap" >&2; exit 1; }
source=$(cd "$(dirname "$0")/.." && pwd)

[ -e "$folder/bin/sh" ] ||
    debootstrap --variant=minbase --include=git,make,ca-certificates "$suite" "$folder" >"$folder.log" 2>&1 ||
    { echo "bare.sh: debootstrap failed; $folder.log says why" >&2; exit 1; }
cp /etc/resolv.conf "$folder/etc/resolv.conf"
[ ! -d /etc/apt/apt.conf.d ] || cp -n /etc/apt/apt.conf.d/*proxy* "$folder/etc/apt/apt.conf.d/" 2>/dev/null ||
    true
rm -rf "$folder/src"
mkdir -p "$folder/src"
git clone -q "$source" "$folder/src/hone"
[ ! -d "$source/../shared" ] || cp -r "$source/../shared" "$folder/src/shared"

mount -t proc proc "$folder/proc" # sanitizers read their own memory map there
mount -t devpts devpts "$folder/dev/pts" # a test asks for a terminal
trap 'umount "$folder/dev/pts" "$folder/proc"' EXIT
for goal in demo test; do
    echo "== make $goal =="
    start=$(date +%s)
    chroot "$folder" /usr/bin/env PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 make -C \
        /src/hone $goal
    echo "== make $goal took $(($(date +%s) - start)) s =="
done
