#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The form of the sources:  check_circles.sh SOURCE_DIR
#   - no circle of includes between headers; nor, in the rooms that are named below, between files, a header
#     and the source file of its name being one
#   - every name that a header of include/ or src/ makes begins with hone_ or HONE_
#   - no line over 110 columns
#   - no file of the product over 600 lines but those that are named below
# What is looked at is counted, so that a script that finds nothing to look at fails.
set -u
cd "${1:?usage: check_circles.sh SOURCE_DIR}" || exit 1
bad=0
say() {
    echo "$1"
    bad=$((bad + 1))
}
room=$(mktemp -d) || exit 1
trap 'rm -rf "$room"' EXIT

# ---- circles: edges for tsort, which names the nodes of a circle ----
find src apps \( -name '*.[ch]' -o -name '*.inc' \) | sort >"$room/files"
xargs grep -HE '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' <"$room/files" |
    while IFS=: read -r file text; do
    path=${text#*\"} path=${path%%\"*}
    for target in "src/$path" "${file%/*}/$path"; do
        [ -e "$target" ] && echo "$file $target" && break
    done
done >"$room/edges"
edges=$(wc -l <"$room/edges")
[ "$edges" -gt 500 ] || say "only $edges includes were found: this script does not see them any more"
circle() { # what of, edges
    tsort "$2" >/dev/null 2>"$room/circle" && return
    say "$1 in a circle:"
    sed -n 's/^tsort: \(src\|apps\)/    \1/p' "$room/circle"
}
grep -v '\.c ' "$room/edges" | grep -v '\.inc ' >"$room/headers"
circle "headers that include one another" "$room/headers"
# where a header and its source file are one node: rooms that keep to that
grep '^src/device/cpu/[^ ]* src/device/cpu/\|^src/loops/match_[^ ]* src/loops/match_' "$room/edges" |
    sed 's/\.[ch]\( \|$\)/\1/g' | awk '$1 != $2' | sort -u >"$room/units"
circle "files that need one another" "$room/units"

# ---- names in headers: declarations at depth 0, without comments ----
cat >"$room/names.awk" <<'AWK'
{ text = text $0 "\n" }
END {
    while (match(text, /\/\*([^*]|\*+[^*\/])*\*+\//))
        text = substr(text, 1, RSTART - 1) " " substr(text, RSTART + RLENGTH)
    n = split(text, line, "\n")
    for (i = 1; i <= n; i++) {
        l = line[i]
        if (l ~ /^[ \t]*#/) {
            if (match(l, /define[ \t]+[A-Za-z_0-9]+/)) {
                name = substr(l, RSTART, RLENGTH)
                sub(/define[ \t]+/, "", name)
                defined[name] = 1
            } else if (match(l, /undef[ \t]+[A-Za-z_0-9]+/)) { # a name for a while is none
                name = substr(l, RSTART, RLENGTH)
                sub(/undef[ \t]+/, "", name)
                delete defined[name]
            }
            while (l ~ /\\$/) l = line[++i]
            continue
        }
        for (c = 1; c <= length(l); c++) {
            ch = substr(l, c, 1)
            if (ch == "{") {
                if (++depth == 1) {
                    head = statement; body = ""
                    whole = head ~ /\)[ \t]*$/
                    if (whole) print_function(head)
                }
            } else if (ch == "}") {
                if (--depth == 0) {
                    if (head ~ /(^|[ \t])enum([ \t]|$)/) print_members(body)
                    statement = whole ? "" : head " BODY "
                }
            } else if (depth) body = body ch
            else if (ch == ";") {
                print_declaration(statement)
                statement = ""
            } else statement = statement ch
        }
        if (depth) body = body " "
        else statement = statement " "
    }
    for (name in defined) print name
}
function print_members(b,    a, k, m) {
    m = split(b, a, ",")
    for (k = 1; k <= m; k++) {
        sub(/=.*/, "", a[k])
        sub(/\(.*/, "", a[k]) # made by a macro
        gsub(/[ \t]/, "", a[k])
        if (a[k] != "") print a[k]
    }
}
function print_function(s) {
    sub(/\(.*/, "", s)
    gsub(/[ \t*]+$/, "", s)
    sub(/.*[ \t*]/, "", s)
    if (s != "") print s
}
function print_declaration(s,    a, k, m) {
    gsub(/HONE_CHECKED|HONE_API/, "", s)
    gsub(/__attribute__ *\(\([^;]*\)\)/, "", s)
    gsub(/[ \t]+/, " ", s)
    sub(/^ /, "", s)
    sub(/ $/, "", s)
    if (s == "" || s ~ /^_Static_assert/ ||
        s ~ /^(struct|enum|union) [A-Za-z_0-9]+ ?(BODY)?$/ || s ~ /^enum BODY$/) return
    if (s ~ /^typedef/) {
        if (s ~ /\(\*/) sub(/.*\(\*/, "", s)
        sub(/ ?\(.*/, "", s)
        sub(/\).*/, "", s)
        sub(/\[.*/, "", s)
        sub(/.*[ *]/, "", s)
        print s
        return
    }
    if (s ~ /\(/) {
        print_function(s)
        return
    }
    sub(/ ?=.*/, "", s)
    gsub(/\[[^\]]*\]/, "", s)
    m = split(s, a, ",")
    for (k = 1; k <= m; k++) {
        sub(/ $/, "", a[k])
        sub(/.*[ *]/, "", a[k])
        print a[k]
    }
}
AWK
names=0
while read -r file; do
    case $file in
    src/loops/fn.h) continue ;; # text that stands before printed C too: it declares what of libc it needs
    esac
    while read -r name; do
        names=$((names + 1))
        case $name in
        hone_* | HONE_* | __STDC_*) ;;
        *) say "$file: '$name' has no hone_ in front" ;;
        esac
    done < <(awk -f "$room/names.awk" "$file")
done < <(find include src -name '*.h' | sort)
[ "$names" -gt 1500 ] || say "only $names names were found in headers: this script does not see them any more"

# ---- columns, not bytes ----
find src include apps tests fuzz bench examples scripts python \( -name '*.[ch]' -o -name '*.inc' \
    -o -name '*.cu' -o -name '*.cl' -o -name '*.sh' -o -name '*.py' \) >"$room/sources"
sources=$(wc -l <"$room/sources")
[ "$sources" -gt 850 ] || say "only $sources sources were found: this script does not see them any more"
while IFS=: read -r file line _; do say "$file:$line: over 110 columns"; done \
    < <(LC_ALL=C.UTF-8 xargs grep -nE '^.{111}' <"$room/sources")

# ---- one noun a file: those that are longer are one thing each, which parts would not make clearer ----
long=" src/loops/build_tree.c src/loops/build_stage.c src/loops/tile_run.c src/ir/text_parse.c src/run/exec.c
 src/device/printed.c "
MOST=600 MOST_OF_LONG=700
while read -r lines file; do
    [ "$file" != total ] || continue
    case " $(echo $long) " in
    *" $file "*)
        [ "$lines" -gt $MOST ] || say "$file: has $lines lines, and need not be named in $0 any more"
        [ "$lines" -le $MOST_OF_LONG ] || say "$file: $lines lines are over $MOST_OF_LONG" ;;
    *) [ "$lines" -le $MOST ] || say "$file: $lines lines are over $MOST: what in it is a file of its own?" ;;
    esac
done < <(find src apps -type f | xargs wc -l)
for file in $long; do [ -f "$file" ] || say "$file is named in $0, and is not there"; done

echo "$edges includes, $names names in headers, $sources sources: $bad against the rules"
[ "$bad" = 0 ]
