#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# How the command treats people and programs:  manners.sh HONE SOURCE_DIR [--small]
# Errors as JSON, short options, help that fits, what terminals get, pages and completions made of the tables.
set -u
export LC_ALL=C.UTF-8
hone=$1 source=$2 step=${3:+5} # --small: fewer damaged files, for slow builds
model=$source/examples/digits/model.onnx
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0
. "${0%/*}/try.sh"
say() {
    echo "$1"
    failed=$((failed + 1))
}
commands=$("$hone" --help | sed -n '/^commands/,/^$/s/^  \([a-z]*\) .*/\1/p')
[ "$(wc -w <<<"$commands")" -ge 14 ] || say "hone --help lists too few commands: $commands"

# Options: short forms, alone, together and with their value; said twice, or without effect.
try 0 "median of 3 runs" run "$model" -n 3 -t1
try 0 "1 thread" run "$model" -t=1
try 0 "f32[2,10]" run "$model" -s image=2x1x28x28
try 0 '"runs": 2' run "$model" -jn2
try 0 "hone 0." run -V
try 0 "hone 0." -V
try 0 "compiler" version
try 1 "unknown option '-x'" run "$model" -x
try 1 "stands there twice" run "$model" --threads 1 -t 2
try 1 "from 0 to 1024" run "$model" --threads 9999
try 1 "from 0 to 1024" tune "$model" --threads 9999
try 1 "--rtol goes with --check" run "$model" --rtol 1
try 1 "--labels goes with --top" run "$model" --labels "$source/examples/digits/names.txt"
try 1 "--stored goes with --against" bench "$model" --stored

try 1 "from 1 to 2147483647" run "$model" --runs 99999999999
try 1 "needs a port" serve "$model" --http 99999
try 1 "'batch' is 2 already" check "$model" -d batch=2 -d batch=3
try 1 "did you mean 'hone run'" RUN
try 1 "'-q' stands before the command" -q run "$model"
try 0 "usage" help help
try 1 "cannot open 'nope'" inspect nope
try 1 "the interpreter computes in f32" run "$model" --interpret --precision bf16
try 1 "'hone quantize' makes" run "$model" --precision int8
try 1 "there is no input_0.pb in it; did you mean '$source/examples/digits/test_data_set_0'" run "$model" \
    --check "$source/examples/digits"
try 1 "is a folder; an input is a file" run "$model" -i "$source/examples"
try 1 "the model has only 1 input" run "$model" -i "$source/examples/digits/seven.npy" -i \
    "$source/examples/digits/seven.npy"
try 1 "must end in .onnx" zoo resnet18 -o "$folder/x.txt"
try 1 "must end in .onnx" quantize "$model" --data "$source/examples/digits" -o "$folder/x.txt"
try 0 "one sample, for ranges and to judge" quantize "$model" \
    --data "$source/examples/digits/seven.npy" -o "$folder/q.onnx"
# What would change nothing, or is half meant, is refused; what was written is what is said.
try 1 "leave --input, --shape, --dim, --seed" run "$model" \
    --check "$source/examples/digits/test_data_set_0" --seed 3
try 1 "--seed is of random inputs" run "$model" -i image=ones --seed 3
try 1 "--seed is of random inputs" bench "$model" --runs 2 -i image=ones --seed 3
try 1 "the interpreter has none" run "$model" --interpret --wisdom x
try 0 "no node has such a name" run "$model" --place 'nope*=cpu'
[[ $("$hone" run "$model" --place '*conv2d*=cpu' 2>&1) != *"no node"* ]] ||
    say "--place: a name that fits is doubted"
try 1 "prints the graph and nothing else" inspect "$model" --dot --nodes
try 1 "prints the graph and nothing else" inspect "$model" --dot --json
try 1 "writes a page and prints nothing else" inspect "$model" --html "$folder/x.html" --nodes
try 1 "only f16 has a range" compile "$model" -o "$folder/x.onnx" --precision bf16 \
    --data "$source/examples/digits/seven.npy"
try 0 "is written" inspect "$model" --html "$folder/head.html"
[ "$(head -c 15 "$folder/head.html")" = "<!doctype html>" ] &&
    [ "$(grep -c '<title>\|name="viewport"\|^:root {$' "$folder/head.html")" = 4 ] ||
    say "inspect --html: the page does not begin as all do"
try 1 "from 1 to 1024" conformance "$source/examples/digits" --jobs 99999
try 1 "one of the two" bench "$model" --runs 2 --batch 3 -d batch=2
# one line, not one a case
try 1 "there is no device 'nope'" conformance "$source/examples/digits" --device nope
[[ $out != *passed* && $(wc -l <<<"$out") = 1 ]] || say "conformance --device nope: it went on: $out"
try 1 "there is no device 'nope'" conformance "$source/examples/digits" --place '*=nope'
try 1 "leave 'run' away" man run -o "$folder/none1"
try 1 "'more' is one word too many" help run more
try 1 "goes with --rate" load http://127.0.0.1:1 --model x --steady
try 1 "--concurrency 0" load http://127.0.0.1:1 --model x --concurrency 0
try 1 "is no port" load http://127.0.0.1:99999 --model x
try 0 "hone 0." load -V
try 1 "write it as NAME=SIZE" run "$model" -d =2
try 1 "each below 2^31" run "$model" -s image=99999999999x1x28x28
try 1 "Is a directory" run "$model" --top 1 --labels "$folder"
try 1 "there is no name in it" run "$model" --top 1 --labels /dev/null
# where an option's help begins
column() { "$hone" serve --help | sed -n "s/^\\(.*$1 *\\)$2.*/\\1/p" | wc -m; }
[ "$(column 'HOST:PORT,…' 'no models')" = "$(column GOAL latency)" ] ||
    say "help: the columns of an option that is not ASCII"
if [ -e /dev/full ]; then
    for call in "--help" "-V" "run --help" "zoo"; do
        "$hone" $call >/dev/full 2>/dev/null &&
            say "hone $call: a full disk went unnoticed"
    done
fi
out=$(HONE_CPU='' "$hone" version 2>&1) || say "an empty HONE_CPU is none: $out"
[[ $("$hone" run "$model" -i image=nan -q) == *"values nan nan"* ]] || say "nan has a sign"

# Help: every command has it, with an example, and nothing is wider than 100 columns, or than the terminal.
for command in $commands; do
    try 0 "example" "$command" --help
    for wide in 100 64; do
        COLUMNS=$wide "$hone" "$command" --help | sed '/^example/,$d' | wc -L |
            { read -r n && [ "$n" -le $wide ]; } || say "hone $command --help does not fit $wide columns"
    done
done
for wide in 100 64; do
    [ "$(COLUMNS=$wide "$hone" --help | wc -L)" -le $wide ] || say "hone --help does not fit $wide columns"
done
[ "$(COLUMNS=72 "$hone" zoo | sed '/^$/,$d' | wc -L)" -le 72 ] || say "hone zoo does not fit 72 columns"

# Under --json what is wrong is an object too, one alone, whatever was wrong; else there is the answer, and it
# is JSON.
if command -v python3 >/dev/null; then
    sorry() { # status, text of the message, words
        local status=$1 text=$2
        shift 2
        "$hone" "$@" 2>/dev/null >"$folder/out" && say "hone $*: exit 0"
        python3 - "$status" "$text" "$folder/out" <<'EOF' || say \
            "hone $*: no error object: $(head -c 400 "$folder/out")"
import json, sys
e = json.load(open(sys.argv[3]))["error"]
assert e["status"] == sys.argv[1] and sys.argv[2] in e["message"] and e["command"], e
EOF
    }
    sorry IO "none.onnx" run none.onnx --json
    sorry BAD_INPUT "--thread" run "$model" --json --thread 1
    sorry BAD_INPUT "is missing" run -j
    sorry BAD_INPUT "no input 'picture'" run "$model" --json --input picture=x.npy
    sorry BAD_INPUT "no node" explain "$model" --node none --json
    sorry BAD_INPUT "did you mean 'resnet50'" inspect zoo:resnet51 --json
    sorry BAD_INPUT "must end in .onnx" compile "$model" -o x.engine --json
    sorry IO "none.onnx" tune none.onnx --json
    sorry BAD_INPUT "the zoo has no model" zoo none --json
    sorry BAD_INPUT "no case" conformance "$folder" --json
    sorry BAD_INPUT "no device 'nope'" conformance "$source/examples/digits" --device nope --json
    sorry BAD_INPUT "no device 'none'" bench "$model" --device none --json
    sorry IO "nope" bench nope --json
    "$hone" check "$model" none --dim batch=0x --json 2>/dev/null |
        python3 -c 'import json, sys
a = json.load(sys.stdin)
assert [x["ok"] for x in a] == [False, False], a' || say "check of two models, --json, with a wrong --dim"
    "$hone" run "$model" --check "$source/examples/digits/test_data_set_0" --rtol 0 --atol 0 --interpret \
        --json 2>/dev/null | python3 -c \
            'import json, sys; a = json.load(sys.stdin); assert a["outputs"][0]["check"]["ok"] is False, a' ||
                say "a failed --check is one object"
    # Fields have types.
    "$hone" inspect "$model" --json |
        python3 -c 'import json, sys
a = json.load(sys.stdin)
i = a["summary"]["inputs"][0]
assert i["dims"] == ["batch", 1, 28, 28] and i["dtype"] == "f32", i
assert a["dims_guessed"] == {"batch": 1} and a["dims_given"] == {}, a' || say "inspect --json"
    "$hone" check "$model" --dim batch=4 --json |
        python3 -c 'import json, sys
a = json.load(sys.stdin)
assert a["dims_given"] == {"batch": 4} and a["dims_guessed"] == {}, a' || say "check --json"
    "$hone" zoo resnet18 --json |
        python3 -c 'import json, sys
a = json.load(sys.stdin)[0]
batch = a["options"][0]
assert a["inputs"][0]["dims"] == [1, 3, 224, 224], a
assert {"name": "batch", "default": 1, "lowest": 1, "highest": batch["highest"], "step": 1} == batch, a' ||
        say "zoo --json"
    "$hone" bench "$model" --runs 2 --json |
        python3 -c 'import json, sys
a = json.load(sys.stdin)["inputs"][0]
assert a["dims"] == [1, 1, 28, 28] and a["dtype"] == "f32", a' || say "bench --json"
    "$hone" version --json |
        python3 -c 'import json, sys
a = json.load(sys.stdin)
assert a["compiler"] and a["cpu_level"] and "commit" in a, a' || say "version --json"
fi

# Inputs said on the command line: numbers for all elements or one each, fills, archives, another type.
seven=$source/examples/digits/seven.npy
try 0 "f32[2,1,28,28]  ones" run "$model" -i image=ones -d batch=2
try 0 '"min": 0.25, "max": 0.25, "mean": 0.25' run "$model" -i image=0.25 --json -q
try 1 "these are 3" run "$model" -i image=1,2,3
try 1 "there is no file '1e400', and it is no number" run "$model" -i image=1e400
try 1 "there is no file 'abc', and it is no number" run "$model" -i image=abc
try 1 "there is no file ''" run "$model" -i image=
try 1 "did you mean 'image'" run "$model" -i imgae=ones
try 1 "did you mean 'image'" run "$model" --shape imagee=1x1x28x28
if command -v python3 >/dev/null && python3 -c 'import numpy' 2>/dev/null; then
    python3 - "$folder" "$seven" <<'EOF'
import sys, numpy as np
x = np.load(sys.argv[2])
f = sys.argv[1]
np.savez(f"{f}/stored.npz", image=x)
np.savez_compressed(f"{f}/deflated.npz", image=x, other=np.arange(3))
np.savez(f"{f}/alone.npz", anything=x)
np.savez(f"{f}/wrong.npz", imag=x, other=np.arange(3))
np.save(f"{f}/f64.npy", x.astype(np.float64))
np.save(f"{f}/big.npy", x.astype(np.float64) + 1e300)
np.save(f"{f}/u8.npy", (x * 255).astype(np.uint8))
EOF
    want=$("$hone" run "$model" -i "$seven" -q | tail -n 1)
    for file in "$folder/stored.npz" "image=$folder/stored.npz" "image=$folder/deflated.npz" \
        "image=$folder/deflated.npz:image" "$folder/alone.npz"; do
        [[ $("$hone" run "$model" -i "$file" -q | tail -n 1) == "$want" ]] ||
            say "--input $file gives another answer"
    done
    try 1 "did you mean 'image'" run "$model" -i "$folder/wrong.npz"
    try 1 "has no array 'none'" run "$model" -i "image=$folder/stored.npz:none"
    try 1 "--cast converts it" run "$model" -i "$folder/f64.npy"
    try 0 "f64 converted to f32" run "$model" -i "$folder/f64.npy" --cast
    [[ $("$hone" run "$model" -i "$folder/f64.npy" --cast -q | tail -n 1) == "$want" ]] ||
        say "--cast gives another answer"
    try 1 "which is no f32" run "$model" -i "$folder/big.npy" --cast
    try 0 "median" bench "$model" --runs 2 -i "$folder/f64.npy" --cast
    try 0 "f64 converted to f32" bench "$model" --runs 2 --batch 1 -i "$folder/f64.npy" --cast
    try 1 "--cast converts it" bench "$model" --runs 2 -i "$folder/f64.npy"
    try 0 "u8 converted" profile "$model" --runs 2 -i "$folder/u8.npy" --cast --json
    size=$(wc -c <"$folder/deflated.npz")
    for k in $(seq 0 ${step:-1} 23); do # cut short, or with a bit turned over
        head -c $((size * k / 24)) "$folder/deflated.npz" >"$folder/cut.npz"
        cp "$folder/deflated.npz" "$folder/flipped.npz"
        at=$(((k * 7919 + 13) % size))
        byte=$(od -An -tu1 -j $at -N 1 "$folder/flipped.npz")
        printf "\\$(printf '%03o' $((byte ^ (1 << k % 8))))" |
            dd of="$folder/flipped.npz" bs=1 seek=$at conv=notrunc 2>/dev/null
        for file in cut flipped; do
            "$hone" run "$model" -i "image=$folder/$file.npz" -q >"$folder/out" 2>&1
            rc=$?
            [ $rc = 1 ] || { [ $rc = 0 ] && [ "$(tail -n 1 "$folder/out")" = "$want" ]; } ||
                say "a damaged archive, case $k, $file: exit $rc, $(head -c 300 "$folder/out")"
        done
    done
fi

# Numbers of 64 bits keep all their digits, or are refused; an input's name may hold a '='.
if command -v python3 >/dev/null; then
    PYTHONPATH=$source/tests PYTHONDONTWRITEBYTECODE=1 python3 - "$folder" <<'EOF'
import sys
from onnx_bytes import model
for name, elem in (("i64", 7), ("u64", 13)):
    made = model([("a=b", elem, ["n"])], [("Identity", ["a=b"], ["y"])], [("y", elem, ["n"])])
    open(f"{sys.argv[1]}/{name}.onnx", "wb").write(made)
EOF
    try 0 "min 7  max 123456789  mean" run "$folder/i64.onnx" -i "a=b=123456789,7"
    try 0 "value 9007199254740991" run "$folder/i64.onnx" -i "a=b=9007199254740991"
    try 0 "i64[3]" run "$folder/i64.onnx" -s "a=b=3"
    try 1 "which is no i64" run "$folder/i64.onnx" -i "a=b=9223372036854775808"
    try 0 "u64[1]" run "$folder/u64.onnx" -i "a=b=18446744073709551615"
    try 1 "which is no u64" run "$folder/u64.onnx" -i "a=b=18446744073709551616"
    try 1 "which is no u64" run "$folder/u64.onnx" -i "a=b=-1,18446744073709551615"
    try 1 "the model has no input 'b'" run "$folder/i64.onnx" -i "b=3"
fi

# The model on stdin, ops of one's own as a file.
try_in() { out=$("$hone" "${@:2}" <"$model" 2>&1); [[ $out == *"$1"* ]] || say "hone ${*:2} < model: $out"; }
try_in "f32[1,10]" run -
try_in "can run" check -
try_in "latency" bench - --runs 2
try_in "model       -, f32" bench - --runs 2
try_in '"model": "-"' bench - --runs 2 --json
try_in '"model": "-"' run - --json
try_in "is written" inspect - --html "$folder/page.html"
out=$("$hone" run - </dev/null 2>&1) && say "an empty stdin ran"
[[ $out == *"stdin is empty"* ]] || say "an empty stdin: $out"
printf 'op my.ops.Swish 1 (x[I..]: T) -> y[I..]: T\n  T: f16 bf16 f32 f64\n'\
'  attr beta = 1.0\n  y[i..] = x[i..] * sigmoid(beta * x[i..])\n' >"$folder/swish.hop"
try 1 "Swish" run "$source/examples/user_op/model.onnx"
for call in "run" "check" "bench --runs 2" "inspect" "explain --node 0" "profile --runs 2" \
    "compile -o $folder/x.onnx --json"; do
    case $call in compile*) try 1 "cannot export" ${call%% *} "$source/examples/user_op/model.onnx" \
        ${call#* } --ops "$folder/swish.hop" ;;
    *) try 0 "" ${call%% *} "$source/examples/user_op/model.onnx" ${call#"${call%% *}"} --ops \
        "$folder/swish.hop" ;; esac
done
echo "op broken" >"$folder/broken.hop"
try 1 "broken.hop:1:" run "$model" --ops "$folder/broken.hop"
try 1 "No such file" run "$model" --ops "$folder/none.hop"

# What is wrong with the environment, and what cannot be written, is said before any work.
export HONE_CPU=bogus
for call in "run $model" "devices" "check $model" "version"; do try 1 "HONE_CPU is 'bogus'" $call; done
unset HONE_CPU
for call in "run $model --save $folder/none/out" "bench $model --save $folder/none/x" \
    "inspect $model --html $folder/none/x" "compile $model -o $folder/none/x.onnx" \
        "zoo resnet18 -o $folder/none/x.onnx" "compare $model --with none --html $folder/none/x" \
            "profile $model --trace $folder/none/x" "load http://127.0.0.1:1 --model x --csv $folder/none/x" \
                "tune $model -o /dev/null/x"; do
    SECONDS=0
    out=$("$hone" $call 2>&1) && say "hone $call: exit 0"
    [ $SECONDS -le 2 ] || say "hone $call: found out after $SECONDS s"
done
printf 'a\nb\n' >"$folder/two.txt"
try 0 "has 2 names, output 'probability' 10 classes" run "$model" --top 2 --labels "$folder/two.txt"
[ "$("$hone" run "$model" --top 1 --labels "$source/examples/digits/labels.txt" 2>&1 >/dev/null)" = "" ] ||
    say "labels that fit are remarked on"

# profile: every node once, shares that make a whole, rates that follow from work and time.
try 0 "Conv + Relu" profile "$model" --runs 20 -t1
try 0 "advice" profile "$model" --runs 5 --by tactic
try 0 "and 7 more" profile "$model" --runs 5 --top 1
try 1 "a row is a node, an op or a tactic" profile "$model" --by time
cp "$model" "$folder/own.onnx"
try 1 "the model is read from that file" profile "$folder/own.onnx" --runs 1 --trace "$folder/own.onnx"
cmp -s "$model" "$folder/own.onnx" || say "profile --trace wrote over its model"
try 1 "nowhere/t.json" profile "$model" --runs 1 --trace "$folder/nowhere/t.json"
if command -v python3 >/dev/null; then
    "$hone" profile "$model" --runs 20 -t1 --json --trace "$folder/trace.json" >"$folder/profile.json"
    python3 - "$folder/trace.json" "$folder/profile.json" <<'EOF' || say "profile --trace"
import json, sys
steps = [e for e in json.load(open(sys.argv[1]))["traceEvents"] if e["ph"] == "X"]
whole = json.load(open(sys.argv[2]))
assert all(abs(a["ts"] + a["dur"] - b["ts"]) < 0.01 for a, b in zip(steps, steps[1:]))
assert abs(sum(e["dur"] for e in steps) / 1000 - whole["steps_ms"]) < 0.01 * whole["steps_ms"]
assert {e["name"] for e in steps} == {r["node"] for r in whole["rows"]}
EOF
    python3 - "$folder/profile.json" <<'EOF' || say "profile --json"
import json, sys
a = json.load(open(sys.argv[1]))
rows = a["rows"]
assert len(rows) == 8 == len({r["node"] for r in rows}) and a["runs"] == 20
assert a["threads"] == 1 and a["advice"]
assert abs(sum(r["share"] for r in rows) - 1) < 1e-6
assert [r["ms"] for r in rows] == sorted((r["ms"] for r in rows), reverse=True)
conv = next(r for r in rows if r["node"] == "node_conv2d_1")
assert conv["flops"] == 457856
assert abs(conv["gflops_per_s"] - conv["flops"] / conv["ms"] / 1e6) < 1e-3 * conv["gflops_per_s"], conv
assert 0 < a["steps_ms"] and a["roofs"]["flops_per_s"] > 1e8
assert conv["bound"] in ("arithmetic", "memory", "cache")
EOF
fi

# What is named itself and cannot be served ends the server at its start, with the reason: a network that is
# not there, and a precision that the device does not have; it serves in no other instead.
port="--http 0 --grpc -1 --metrics -1"
try 1 "cannot be loaded: " serve zoo:nope $port # or the server's library
[ "$(wc -l <<<"$out")" = 1 ] || say "serve zoo:nope: more than a line: $out"
try 1 "cannot be loaded: " serve "$model" $port --precision tf32
[[ $out == *libhone_serve* || $out == *"tf32: the CPU has no products in it"* ]] || say "$out"

# Pages of the tables: a man page a command that troff takes without a word, completions that the shells take,
# and that complete.
"$hone" man -o "$folder/man1" || say "hone man -o"
for command in $commands; do [ -s "$folder/man1/hone-$command.1" ] || say "no man page of $command"; done
if command -v groff >/dev/null; then
    said=$(groff -man -Tutf8 -ww -z "$folder"/man1/*.1 2>&1)
    [ -z "$said" ] || say "groff: $said"
fi
"$hone" completion bash >"$folder/hone.bash"
cat >"$folder/ask.bash" <<'EOF'
. "$1"
shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
_hone
printf '%s\n' "${COMPREPLY[@]}"
EOF
completes() { # what must be offered, then the words, the last of which is completed
    local want=$1 got
    shift
    got=$(bash "$folder/ask.bash" "$folder/hone.bash" "$@" 2>&1)
    [[ $'\n'$got$'\n' == *$'\n'"$want"$'\n'* ]] || say "completing '$*' offers '$got', not '$want'"
}
completes inspect hone ins
completes --threads hone run --thr
completes rgb hone run m.onnx --order ""
completes resnet50 hone run zoo : resnet5
completes zoo:resnet50 hone run zoo
(cd "$source/examples/digits" && completes model.onnx hone check mod)
completes "$source/examples/digits/test_data_set_0" hone run m.onnx --check "$source/examples/digits/test"
for shell in zsh fish; do
    "$hone" completion $shell >"$folder/hone.$shell" || say "completion $shell"
    command -v $shell >/dev/null || continue
    $shell -n "$folder/hone.$shell" >"$folder/log" 2>&1 ||
        say "$shell does not take its completion: $(head -n 3 "$folder/log")"
done

if command -v fish >/dev/null; then # it can be asked
    seen=$(fish --no-config -c "source $folder/hone.fish; complete -C 'hone run --thr'" 2>&1)
    [[ $seen == --threads* ]] || say "fish does not complete --threads"
    seen=$(fish --no-config -c "source $folder/hone.fish; complete -C 'hone ins'" 2>&1)
    [[ $seen == inspect* ]] || say "fish does not complete inspect"
fi

# Escapes are for terminals that know them.
if script -qec true /dev/null >/dev/null 2>&1; then
    [ "$(TERM='' script -qec "$hone check $model" /dev/null 2>/dev/null | grep -c $'\033')" = 0 ] ||
        say "escapes on a terminal without a name"
    [ "$(TERM=dumb script -qec "$hone check $model" /dev/null 2>/dev/null | grep -c $'\033')" = 0 ] ||
        say "escapes on a dumb terminal"
    seen=$(TERM=xterm script -qec "$hone bench $model --seconds 1.6 --warmup 0 --threads 1" /dev/null \
        2>/dev/null)
    [[ $seen == *"] "*" of "* ]] || say "no progress on a terminal in more than a second"
    seen=$(TERM=xterm script -qec "$hone bench $model --seconds 1.6 --warmup 0 --threads 1 -q" /dev/null \
        2>/dev/null)
    [[ $seen != *"[#"* ]] || say "progress in spite of -q"
fi
echo "$failed failed"
[ "$failed" = 0 ]
