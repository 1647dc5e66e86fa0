#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What docs and comments name is there:  check_references.sh SOURCE_DIR
#   - files, as `path/file.c` in the pages and file.c in comments of sources: some file's path ends so
#   - names of code, as `hone_name` in the pages and hone_name in comments: some source has them
# CONTRIBUTING.md is not looked at: it adds files that are not there. What is looked at is counted.
set -u
cd "${1:?usage: check_references.sh SOURCE_DIR}" || exit 1
room=$(mktemp -d) || exit 1
trap 'rm -rf "$room"' EXIT
export LC_ALL=C
tab=$'\t'

find apps bench cmake docs examples fuzz include ops python scripts src tests CMakeLists.txt -type f |
    sort >"$room/files"
# every end of a path that begins a name: of a/b/c.h these are a/b/c.h, b/c.h and c.h
awk -F/ '{ print s = $NF; for (k = NF - 1; k > 0; k--) print s = $k "/" s }' "$room/files" |
    sort -u >"$room/ends"
sed 's/\.[^/.]*$//; s/__[a-z0-9]*$//; s/$/.*/' "$room/files" | sort -u >>"$room/ends" # stems, of levels too
grep -E '\.(c|h|inc|cu)$' "$room/files" >"$room/sources"

# C in two: "where<tab>comment", and all that is no comment
while read -r file; do
    awk -v comments="$room/comments" '{
        line = $0; text = code = ""
        while (line != "") {
            k = index(line, inside ? "*/" : "/*")
            part = k ? substr(line, 1, k - 1) : line
            if (inside) text = text " " part
            else code = code part
            if (!k) break
            line = substr(line, k + 2); inside = !inside
        }
        if (text != "") print FILENAME ":" FNR "\t" text >>comments
        print code
    }' "$file"
done <"$room/sources" >"$room/code"
grep -E '\.(def|hop|py|sh|cmake|txt)$' "$room/files" | xargs cat >>"$room/code"
# names, and beginnings of names that a format or a macro ends: hone_load_%s, hone_##family
grep -oE 'hone_[a-z0-9_]+' "$room/code" | sort -u >"$room/known"
grep -oE 'hone_[a-z0-9_]+(%s|##)' "$room/code" | sed 's/%s$//; s/##$//' | sort -u >"$room/begun"

# ---- what is named: "where<tab>name" ----
find docs bench python examples README.md -name '*.md' | sort |
    xargs grep -nHoE '`[^`]+`' | sed "s/:\`/$tab/; s/\`\$//" >"$room/quoted"
take() { # pattern: from comments, where nothing of a name stands before or behind it
    awk -F'\t' -v pattern="$1" '{
        rest = " " $2 " "
        while (match(rest, pattern)) {
            name = substr(rest, RSTART, RLENGTH)
            before = substr(rest, RSTART - 1, 1); behind = substr(rest, RSTART + RLENGTH, 1)
            rest = substr(rest, RSTART + RLENGTH)
            if (before !~ /[A-Za-z0-9_.\/*<-]/ && behind !~ /[A-Za-z0-9_*-]/) print $1 "\t" name
        }
    }' "$room/comments"
}
{
    grep -E "$tab([a-zA-Z0-9_.-]+/)*[a-zA-Z0-9_-]+\.(c|h|inc|def|cu|hop|cmake|py|sh)\$" "$room/quoted"
    take '([a-z0-9_]+/)*[a-z][a-z0-9_]*[.](c|h|inc|def|cu|hop)'
    # the table of a page's files: stems, in the room that its title names
    find docs -name '*.md' | sort | xargs awk '
        FNR == 1 { room = match($0, /^# src\/[a-z\/]*[a-z]/) ? substr($0, 3, RLENGTH - 2) : ""; table = 0 }
        /^\| *files? / { table = room != ""; next }
        !/^\|/ { table = 0 }
        table {
            split($0, cell, "|"); n = split(cell[2], part, "`")
            for (k = 2; k <= n; k += 2)
                if (part[k] ~ /^[a-z0-9_\/]+$/) print FILENAME ":" FNR "\t" room "/" part[k] ".*"
        }'
} | sort -u >"$room/named"
{
    grep -E "${tab}hone_[a-z0-9_]+(\(.*\))?\$" "$room/quoted" | sed 's/(.*//'
    take 'hone_[a-z0-9_]*[a-z0-9]'
} | sed 's/__[a-z0-9]*$//' | sort -u >"$room/called" # a kernel is its family's, for a level

# ---- is it there? ----
{
    awk -F'\t' 'NR == FNR { there[$1]; next }
        !($2 in there) { print $1 ": there is no file " $2 }' "$room/ends" "$room/named"
    awk -F'\t' 'FILENAME ~ /known$/ { there[$1]; sub(/__[a-z0-9]*$/, "", $1); there[$1]; next }
        FILENAME ~ /begun$/ { begun[$1]; next }
        !($2 in there) {
            for (k in begun) if (index($2, k) == 1) next
            print $1 ": nothing is called " $2
        }' "$room/known" "$room/begun" "$room/called"
} >"$room/bad"
cat "$room/bad"
files=$(wc -l <"$room/named") names=$(wc -l <"$room/called") bad=$(wc -l <"$room/bad")
[ "$files" -gt 700 ] && [ "$names" -gt 300 ] || {
    echo "only $files names of files and $names of code were found: this script does not see them any more"
    exit 1
}
echo "$files names of files, $names of code: $bad of them name nothing"
[ "$bad" = 0 ]
