#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Names out of a model reach the terminal escaped, in every command:  names.sh HONE WRITE_MODELS
set -u
hone=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0
"$2" "$folder" || exit 1
export HONE_WISDOM=$folder/wisdom LC_ALL=C

# No control byte but the line end, nothing of C1, no byte that is no UTF-8, no mark that turns text; and no
# line that a name made up.
say() { # exit code, then the command's words
    local code=$1 rc
    shift
    "$hone" "$@" >"$folder/said" 2>&1
    rc=$?
    [ $rc = "$code" ] || { echo "hone $*: exit $rc, wanted $code"; head -n 5 "$folder/said" | cat -v
    failed=$((failed + 1)); }
    tr -d '\n' <"$folder/said" | grep -q '[[:cntrl:]]' && { echo "hone $*: control bytes"
    cat -v "$folder/said"; failed=$((failed + 1)); }
    for bytes in $'\xc2\x9b' $'\xff' $'\xe2\x80\xae'; do
        grep -qF "$bytes" "$folder/said" && { echo "hone $*: $(printf %s "$bytes" | od -An -tx1)"
        cat -v "$folder/said"; failed=$((failed + 1)); }
    done
    grep -q '^fake' "$folder/said" && { echo "hone $*: a name made a line"; cat -v "$folder/said"
    failed=$((failed + 1)); }
}
evil=$folder/evil.onnx
say 0 run "$evil"
grep -qF 'a\x1b[2Jb\nfake: fine\x0d\u009b31m\xff\u202e' "$folder/said" ||
    { echo "run: the name is not there, escaped"; cat -v "$folder/said"; failed=$((failed + 1)); }
say 0 run "$evil" --save "$folder"
say 0 inspect "$evil" --nodes --text --passes --memory
say 0 inspect "$evil" --dot
say 0 inspect "$evil" --html "$folder/page.html"
say 0 check "$evil"
say 0 explain "$evil" --node 0
say 0 bench "$evil" --runs 2 --threads 1
say 0 compare "$evil" --with none --seconds 0.02 --loads 1
say 0 tune "$evil" --budget 10ms --threads 1
say 0 compile "$evil" -o "$folder/again.onnx"
say 0 run "$folder/again.onnx"
say 1 check "$evil" --dim x=3
say 1 explain "$evil" --node a
say 1 run "$evil" --shape 1x2x3
say 1 run "$evil" --input x=none.npy
for model in op reads shape; do
    for command in run check bench tune; do say 1 $command "$folder/evil_$model.onnx"; done
done
for words in "run --json" "inspect --json --nodes --text" "check --json" "explain --node 0 --json" \
    "bench --runs 2 --json" "tune --budget 10ms --json"; do
    say 0 ${words%% *} "$evil" ${words#* }
    command -v python3 >/dev/null || continue
    python3 -c 'import json, sys; json.load(open(sys.argv[1]))' "$folder/said" || { echo "$words: not JSON"
    failed=$((failed + 1)); }
done
if command -v python3 >/dev/null; then # the name itself is kept
    "$hone" run "$evil" --json |
        python3 -c 'import json, sys
n = json.load(sys.stdin)["inputs"][0]["name"]
assert n == "a\x1b[2Jb\nfake: fine\r\x9b31m\ufffd\u202e", ascii(n)' || failed=$((failed + 1))
fi
echo "$failed failed"
[ "$failed" = 0 ]
