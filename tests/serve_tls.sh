#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# TLS on both ports, with a certificate made on the spot: a client that knows it gets answers, one that does
# not gets none, and neither does one that speaks plain text, while the good go on:  serve_tls.sh HONE
# SOURCE_DIR
set -u
hone=$1 source=$2
command -v curl >/dev/null 2>&1 || { echo "skipped: there is no curl"; exit 77; }
command -v openssl >/dev/null 2>&1 || { echo "skipped: there is no openssl to make a certificate"; exit 77; }
folder=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null; rm -rf "$folder"' EXIT
certificate() { # NAME
    openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext \
        subjectAltName=DNS:localhost,IP:127.0.0.1 \
        -keyout "$folder/$1.key" -out "$folder/$1.pem" >/dev/null 2>&1
}
certificate own && certificate other || { echo "skipped: openssl made no certificate"; exit 77; }
failed=0
wrong() { echo "failed: $*"; failed=$((failed + 1)); }

# What cannot be a server says why, and does not start.
for ports in "--http 0 --grpc -1" "--http -1 --grpc 0"; do
    timeout 20 $hone serve "$source/examples" $ports --metrics -1 --tls-cert "$folder/own.pem" --tls-key \
        "$folder/other.key" >"$folder/out" 2>&1 && wrong "another's key ($ports)"
    timeout 20 $hone serve "$source/examples" $ports --metrics -1 --tls-cert "$folder/none.pem" --tls-key \
        "$folder/own.key" >"$folder/out" 2>&1 && wrong "no certificate ($ports)"
    grep -q "none.pem" "$folder/out" || wrong "which file: $(cat "$folder/out")"
done

$hone serve "$source/examples" --http 0 --grpc 0 --metrics 0 --json --tls-cert "$folder/own.pem" --tls-key \
    "$folder/own.key" >"$folder/ready" 2>"$folder/log" &
server=$!
for _ in $(seq 300); do [ -s "$folder/ready" ] && break; kill -0 $server 2>/dev/null || break; sleep 0.1; done
port_of() { sed -n "s/.*\"$1\": \([0-9]*\).*/\1/p" "$folder/ready"; }
http=$(port_of http) grpc=$(port_of grpc) metrics=$(port_of metrics)
[ -n "$http" ] && [ -n "$grpc" ] || { cat "$folder/log"; echo "the server did not start"; exit 1; }
ask() { curl -sf --max-time 20 "$@"; }

ask --cacert "$folder/own.pem" "https://localhost:$http/v2/models/digits" | grep -q '"name":"digits"' ||
    wrong "HTTPS"
ask --cacert "$folder/own.pem" "https://localhost:$http/v2/models/characters/classify" --data-binary \
    "@$source/examples/characters/h.png" |
    grep -q '"class":17' || wrong "HTTPS, a picture"
ask --cacert "$folder/other.pem" "https://localhost:$http/v2" >/dev/null &&
    wrong "HTTPS: another's certificate was believed"
ask "http://localhost:$http/v2" >/dev/null && wrong "HTTPS: plain text was answered"
ask "http://localhost:$metrics/metrics" | grep -q nv_inference_count || wrong "metrics are plain"

# gRPC: a frame of no bytes asks ServerLive; the answer is a message with a field that is true.
printf '\0\0\0\0\0' >"$folder/empty"
printf '\0\0\0\0\2\10\1' >"$folder/yes"
live() { ask --http2 "$@" -H content-type:application/grpc -H te:trailers --data-binary "@$folder/empty" -o \
    "$folder/answer" \
    "https://localhost:$grpc/inference.GRPCInferenceService/ServerLive"; }
if curl -V | grep -q HTTP2; then
    for _ in 1 2 3; do live --cacert "$folder/own.pem" && cmp -s "$folder/answer" "$folder/yes" ||
        wrong "gRPC over TLS"; done
    live --cacert "$folder/other.pem" && wrong "gRPC: another's certificate was believed"
    ask --http2-prior-knowledge -H content-type:application/grpc --data-binary "@$folder/empty" \
        "http://localhost:$grpc/inference.GRPCInferenceService/ServerLive" >/dev/null &&
            wrong "gRPC: plain text was answered"
    for _ in $(seq 20); do # those that begin a handshake and leave, or never go on
        (exec 3<>/dev/tcp/127.0.0.1/$grpc && printf '\26\3\1\2\0\1' >&3) 2>/dev/null
        (exec 3<>/dev/tcp/127.0.0.1/$http && head -c 300 /dev/urandom >&3) 2>/dev/null
    done
    live --cacert "$folder/own.pem" && cmp -s "$folder/answer" "$folder/yes" ||
        wrong "gRPC over TLS after clients that are none"
else
    echo "gRPC over TLS was not tried: this curl has no HTTP/2"
fi
ask --cacert "$folder/own.pem" "https://localhost:$http/v2/health/ready" >/dev/null ||
    wrong "HTTPS after clients that are none"
kill -TERM $server
wait $server || wrong "the server ended with $?"
server=
echo "$failed failed"
[ "$failed" = 0 ]
