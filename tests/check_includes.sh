#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Who includes whom:  check_includes.sh SOURCE_DIR
# A room may include itself, include/hone, and the rooms named in its row. System headers are not looked at.
set -u
cd "${1:?usage: check_includes.sh SOURCE_DIR}" || exit 1

declare -A may=(
    [base]=""
    [loops]="base"
    [ir]="base loops"
    [image]="base"
    [host]="base ir image"
    [text]="base host"
    [model]="base ir"
    [passes]="base loops ir host"
    [quant]="base loops ir passes"
    [kernels]="base"
    [device]="base loops ir host kernels"
    [plan]="base loops ir passes device"
    [zoo]="base loops ir"
    [run]="base loops ir host image text model passes quant device plan zoo"
    [net]=""
    [serve]="net"
    [apps]="net"
)

# Rooms that know devices by their table only (device/device.h and what stands beside it): what a device has
# in its own folder is below that.
above=" plan run "

bad=0 seen=0
say() {
    echo "$1"
    bad=$((bad + 1))
}

for room in "${!may[@]}"; do
    [ -d "src/$room" ] || [ -d "$room" ] || say "the table of $0 has a room '$room', which is not there"
done

# One row an include: file:line:#include "path". A path counts from the file's own folder, else from src/,
# else from include/.
while IFS=: read -r file line text; do
    path=${text#*[\"<]}
    path=${path%%[\">]*}
    case $file in
    src/*) room=${file#src/} room=${room%%/*} ;;
    *) room=${file%%/*} ;;
    esac
    if [ -z "${may[$room]+row}" ]; then
        say "$file: the room '$room' is not in the table of $0"
        continue
    fi
    case $text in
    *\<*) [ -e "src/$path" ] || continue ;; # the system's, or <hone/hone.h>
    esac
    seen=$((seen + 1))
    own=${file%/*}/$path
    while [[ $own =~ ^(.*/)?[^/.]+/\.\./(.*)$ ]]; do own=${BASH_REMATCH[1]}${BASH_REMATCH[2]}; done
    if [ -e "$own" ]; then
        target=$own
    elif [ -e "src/$path" ]; then
        target=src/$path
    elif [ -e "include/$path" ]; then
        continue
    elif [ "$room" = apps ] && [[ $path != net/* ]]; then
        say "$file:$line: includes \"$path\", which is not in include/ or apps/"
        continue
    else
        target=src/$path
    fi
    case $target in
    src/*) to=${target#src/} to=${to%%/*} ;;
    *) to=${target%%/*} ;;
    esac
    [ "$to" = include ] && continue
    [ "$to" = "$room" ] && continue
    case $above$target in
    *" $room "*src/device/*/*) say \
        "$file:$line: $room may not include \"$path\": it knows devices by device/device.h only" ;;
    esac
    case " ${may[$room]} " in
    *" $to "*) ;;
    *) say "$file:$line: $room may not include \"$path\" (allowed: include/hone ${may[$room]})" ;;
    esac
done < <(find src apps -name '*.[ch]' -o -name '*.inc' 2>/dev/null | sort |
    xargs -r grep -nHE '^[[:space:]]*#[[:space:]]*include[[:space:]]*["<]')

# The public headers stand alone: they include each other and the system, nothing of src/.
while IFS=: read -r file line text; do
    path=${text#*\"}
    path=${path%%\"*}
    [ -e "include/hone/$path" ] || [ -e "include/$path" ] ||
        say "$file:$line: a public header may not include \"$path\""
done < <(grep -nHE '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' include/hone/*.h)

echo "$seen includes between files, $bad against the table"
[ "$bad" = 0 ]
