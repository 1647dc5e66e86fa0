#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The curl lines of docs/24-serve.md, run on a server over examples/:  serve_docs.sh HONE SOURCE_DIR
set -u
hone=$1 source=$2
command -v curl >/dev/null 2>&1 || { echo "skipped: there is no curl"; exit 77; }
cd "$source" || exit 1
folder=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null; rm -rf "$folder"' EXIT
$hone serve examples --http 0 --grpc -1 --metrics -1 --json >"$folder/ready" 2>"$folder/log" &
server=$!
for _ in $(seq 300); do [ -s "$folder/ready" ] && break; kill -0 $server 2>/dev/null || break; sleep 0.1; done
port=$(sed -n 's/.*"http": \([0-9]*\).*/\1/p' "$folder/ready")
[ -n "$port" ] || { cat "$folder/log"; echo "the server did not start"; exit 1; }
n=0 failed=0
while read -r line; do
    n=$((n + 1))
    eval "${line//localhost:8000/127.0.0.1:$port}" >"$folder/answer" || { echo "failed: $line"
    failed=$((failed + 1)); }
    case $line in *classify*) grep -q '"class":17' "$folder/answer" ||
        { echo "not an H: $(cat "$folder/answer")"; failed=$((failed + 1)); } ;; esac
done < <(sed -n 's/^\$ \(curl .*\)/\1/p' docs/24-serve.md)
kill -TERM $server
wait $server || { echo "the server ended with $?"; failed=$((failed + 1)); }
server=
echo "$n lines, $failed failed"
[ "$n" -gt 5 ] && [ "$failed" = 0 ]
