#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# `hone serve --front` before servers that misbehave, over HTTP and gRPC: serve_front.py HONE. Loopback only,
# and every number of connections is bounded.
from serve_front_common import a, ask, body, both, children, folder, hone, infer, servers, until
from serve_common import check, finish, frame
from onnx_bytes import field

import json, os, random, signal, socket, struct, subprocess, threading, time

# Servers that misbehave: what is asked decides how, by its path; without that they answer as the models do.
asked = {}


def misbehave(s, seen):
    try:
        s.settimeout(20)
        data = b""
        while True:
            while b"\r\n\r\n" not in data:
                more = s.recv(65536)
                if not more:
                    return
                data += more
            head, _, data = data.partition(b"\r\n\r\n")
            lines = head.decode("latin1").split("\r\n")
            path = lines[0].split(" ")[1]
            length = max(
                [int(l.split(":")[1]) for l in lines if l.lower().startswith("content-length:")] or [0]
            )
            while len(data) < length:
                data += s.recv(65536)
            data = data[length:]
            seen.append((path, lines))
            kind = path.rpartition("/")[2] if path.startswith("/bad/") else ""
            good = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Own: yes\r\n\r\n{}"
            answers = {
                "": good,
                "silence": b"",
                "garbage": random.Random(1).randbytes(3000),
                "half-head": good[:20],
                "half-body": b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + b"x" * 5000,
                "endless-head": b"HTTP/1.1 200 OK\r\n" + b"X-A: b\r\n" * 9000,
                "negative": b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n{}",
                "huge": b"HTTP/1.1 200 OK\r\nContent-Length: 999999999999999999999\r\n\r\n{}",
                "too-large": b"HTTP/1.1 200 OK\r\nContent-Length: 9999999999\r\n\r\n{}",
                "bad-chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
                "half-chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10\r\nabc",
                "zero-in-head": b"HTTP/1.1 200 OK\r\nA: \0\r\nContent-Length: 2\r\n\r\n{}",
                "odd-status": b"HTTP/1.1 777 What\r\nContent-Length: 2\r\n\r\n{}",
                "switch": b"HTTP/1.1 101 Switching\r\n\r\n",
                "chunks": b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'
                b'3;x=1\r\n{"a\r\n4\r\n": 1\r\n1\r\n}\r\n0\r\nT: x\r\n\r\n',
                "old": b'HTTP/1.0 200 OK\r\n\r\n{"a": 1}',
                "interim": b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: x\r\n\r\n" + good,
                "surplus": good + b"more than it said",
                "late": good,
                "busy": b'HTTP/1.1 503 No\r\nContent-Length: 14\r\nRetry-After: 7\r\n\r\n{"error":"no"}',
            }
            if kind == "late":
                time.sleep(0.4)
            s.sendall(answers[kind])
            if kind not in ("", "chunks", "interim", "surplus", "busy", "late"):
                return
    except OSError:
        pass
    finally:
        s.close()


def bad_server():
    listener = socket.create_server(("127.0.0.1", 0))
    seen = []

    def accept():
        while True:
            try:
                s = listener.accept()[0]
            except OSError:
                return
            threading.Thread(target=misbehave, args=(s, seen), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return listener.getsockname()[1], seen


# What is wrong is said, and there is no front.
for words in (
    ["--front", "nowhere"],
    ["--front", "127.0.0.1:1,127.0.0.1:1"],
    ["--front", ","],
    ["--front", "127.0.0.1:1", folder],
    ["--front", "127.0.0.1:1", "--grpc", "0"],
    ["--front", "grpc://a/b"],
):
    r = subprocess.run(
        [a.hone, "serve", "--http", "0", "--metrics", "-1", *words],
        capture_output=True,
        text=True,
        timeout=20,
    )
    check(
        "refused: %s: %s" % (" ".join(w for w in words if w != folder), r.stderr.strip().splitlines()[:1]),
        r.returncode != 0 and r.stderr.count("serve:") == 1,
    )

# Before servers that misbehave.
(one, seen_one), (two, seen_two) = bad_server(), bad_server()
front, port = hone("--front", "localhost:%d,127.0.0.1:%d" % (one, two), "--http", "0", "--max-body", "4")
until("it is ready when a server is", lambda: ask(port, "GET", "/v2/health/ready")[0] == 200)
until("both are", lambda: all(s["ready"] for s in servers(port).values()))
for kind in "chunks", "old", "interim", "surplus":
    status, answer, headers = ask(port, "GET", "/bad/" + kind)
    check("%s: %d %r" % (kind, status, answer), status == 200 and answer in (b"{}", b'{"a": 1}'))
for kind in (
    "silence",
    "garbage",
    "half-head",
    "half-body",
    "endless-head",
    "negative",
    "huge",
    "too-large",
    "bad-chunk",
    "half-chunk",
    "zero-in-head",
    "odd-status",
    "switch",
):
    status, answer, headers = ask(port, "POST", "/bad/" + kind, b"x" * 100)
    check("%s: %d %s" % (kind, status, answer.decode()), status == 502 and "error" in json.loads(answer))
status, answer, headers = ask(port, "GET", "/bad/busy")
check(
    "503 is handed back when nobody has room: %d %r" % (status, headers),
    status == 503 and headers["Retry-After"] == "7" and answer == b'{"error":"no"}',
)
count = len(seen_one) + len(seen_two)
ask(port, "POST", "/bad/half-body", b"{}")
check(
    "a broken answer is asked for at each server once",
    sum(path == "/bad/half-body" for path, _ in seen_one + seen_two) in (3, 4),
)
status, answer, headers = ask(
    port,
    "POST",
    "/v2/models/m/infer?a=b+d&c",
    b"{}",
    {
        "X-Mine": "1",
        "Connection": "X-Hop",
        "Bad Name ": "2",
        "traceparent": "00-" + "a" * 32 + "-" + "b" * 16 + "-01",
    },
)
path, lines = [x for x in seen_one + seen_two if x[0].startswith("/v2/models")][-1]
check(
    "what is asked goes on: %s" % path,
    path == "/v2/models/m/infer?a=b+d&c"
    and "X-Mine: 1" in lines
    and not any("Bad" in l for l in lines)
    and status == 200
    and headers.get("X-Own") == "yes"
    and any(l.startswith(("Host: 127.0.0.1:", "Host: localhost:")) for l in lines)
    and any(l.startswith("traceparent: 00-" + "a" * 32) for l in lines)
    and any(l.startswith("X-Forwarded-For: 127.0.0.1") for l in lines)
    and not any(l.startswith("Connection") for l in lines),
)
before = len(seen_one), len(seen_two)
for k in range(6):
    ask(port, "POST", infer, b'{"parameters": {"sequence_id": 7}, "inputs": []}')
check(
    "a sequence stays with one server", (len(seen_one) - before[0] >= 6) != (len(seen_two) - before[1] >= 6)
)
for k in range(3):
    ask(port, "POST", "/v2/repository/models/m/load", b"{}")
check(
    "all servers load",
    all(sum(path.endswith("/load") for path, _ in seen) == 3 for seen in (seen_one, seen_two)),
)
text = ask(port, "GET", "/metrics")[1].decode()
check(
    "metrics",
    'hone_front_ready{server="localhost:%d"} 1' % one in text and "process_resident_memory_bytes" in text,
)
check("it still runs", front.poll() is None)
late = []
t = threading.Thread(target=lambda: late.append(ask(port, "GET", "/bad/late")))
t.start()
time.sleep(0.1)
front.send_signal(signal.SIGTERM)
t.join()
check("what was under way is answered: %s" % (late[0][:2],), late[0][0] == 200)
check("it ends as it should", front.wait(timeout=20) == 0)


# gRPC before servers that misbehave: each does as its `kind` says, to all but checks (whose message is
# empty).
def fields(*pairs):  # HPACK, literal
    return b"".join(b"\0" + b"".join(bytes([len(t)]) + t.encode() for t in pair) for pair in pairs)


class BadGrpc:
    def __init__(self):
        self.kind, self.seen = "good", 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            s = self.listener.accept()[0]
            threading.Thread(target=self.speak, args=(s,), daemon=True).start()

    def take(self, s, n):
        data = b""
        while len(data) < n:
            more = s.recv(n - len(data))
            if not more:
                raise OSError("closed")
            data += more
        return data

    def speak(self, s):
        try:
            s.settimeout(20)
            self.take(s, 24)
            s.sendall(frame(4, 0, 0))
            came = {}
            while True:
                head = self.take(s, 9)
                data = self.take(s, int.from_bytes(head[:3], "big"))
                kind, flags, stream = head[3], head[4], int.from_bytes(head[5:], "big")
                if kind == 4 and not flags & 1:
                    s.sendall(frame(4, 1, 0))
                if kind == 0:
                    came[stream] = came.get(stream, 0) + len(data)
                if kind != 0 or not flags & 1:
                    continue
                self.seen += came[stream] > 5
                if not self.answer(s, stream, self.kind if came[stream] > 5 else "good"):
                    return
        except OSError:
            pass
        finally:
            s.close()

    def answer(self, s, n, kind):
        begin = frame(1, 4, n, b"\x88" + fields(("content-type", "application/grpc"), ("x-own", "yes")))
        message = frame(0, 0, n, b"\0\0\0\0\2\x08\1")
        good = begin + message + frame(1, 5, n, fields(("grpc-status", "0"), ("x-behind", "too")))
        answers = {
            "good": good,
            "interim": frame(1, 4, n, fields((":status", "103"))) + good,
            "refusal": frame(
                1,
                5,
                n,
                b"\x88"
                + fields(
                    ("content-type", "application/grpc"), ("grpc-status", "9"), ("grpc-message", "not%0anow")
                ),
            ),
            "unavailable": frame(
                1,
                5,
                n,
                b"\x88"
                + fields(
                    ("content-type", "application/grpc"), ("grpc-status", "14"), ("grpc-message", "full")
                ),
            ),
            "silence": b"",
            "late": good,
            "closes": b"",
            "garbage": random.Random(1).randbytes(3000),
            "half": begin + message[:12],
            "no status": begin + frame(0, 1, n, b"\0\0\0\0\2\x08\1"),
            "odd status": begin + message + frame(1, 5, n, fields(("grpc-status", "-3"))),
            "reset": begin + frame(3, 0, n, struct.pack(">I", 2)),
            "refused": frame(3, 0, n, struct.pack(">I", 7)),
            "500": frame(1, 5, n, fields((":status", "500"), ("content-type", "text/html"))),
            "goaway": frame(7, 0, 0, struct.pack(">II", 0, 0)),
            "too large": begin + b"".join(frame(0, 0, n, bytes(16384)) for _ in range(300)),
            "bad headers": frame(1, 4, n, b"\xff\xff\xff\xff\xff\xff\xff\xff"),
        }
        if kind == "late":
            time.sleep(0.4)
        s.sendall(answers[kind])
        return kind in (
            "good",
            "interim",
            "refusal",
            "unavailable",
            "silence",
            "reset",
            "refused",
            "500",
            "too large",
            "no status",
            "odd status",
            "late",
        )


def call(
    port, method, *messages, timeout=None
):  # by curl: the status of gRPC, what it says, the messages, all headers
    with open(folder + "/asked", "wb") as f:
        f.write(b"".join(b"\0" + struct.pack(">I", len(m)) + m for m in messages))
    words = ["-H", "grpc-timeout: " + timeout] if timeout else []
    r = subprocess.run(
        [
            "curl",
            "-sS",
            "-m",
            "20",
            "--http2-prior-knowledge",
            "-H",
            "content-type: application/grpc",
            "-H",
            "te: trailers",
            "-H",
            "x-mine: 1",
            *words,
            "--data-binary",
            "@%s/asked" % folder,
            "-D",
            folder + "/heads",
            "-o",
            folder + "/answered",
            "http://127.0.0.1:%d/inference.GRPCInferenceService/%s" % (port, method),
        ],
        capture_output=True,
        text=True,
    )
    with open(folder + "/heads") as f:
        heads = dict(line.strip().split(": ", 1) for line in f if ": " in line)
    data, out = b"", []
    if os.path.exists(folder + "/answered"):
        with open(folder + "/answered", "rb") as f:
            data = f.read()
        os.remove(folder + "/answered")
    while len(data) >= 5:
        n = struct.unpack(">I", data[1:5])[0]
        out, data = out + [data[5 : 5 + n]], data[5 + n :]
    return int(heads.get("grpc-status", -1)), heads.get("grpc-message", r.stderr), out, heads


has_grpc = (
    both(folder, "--http", "-1", "--grpc", "0")[2] > 0
    and "HTTP2" in subprocess.run(["curl", "-V"], capture_output=True, text=True).stdout
)
if not has_grpc:
    print("skipped gRPC: this server, or curl, has none")
else:
    bad = BadGrpc(), BadGrpc()
    front, port, grpc = both(
        "--front",
        "grpc://127.0.0.1:%d,grpc://localhost:%d" % tuple(b.port for b in bad),
        "--http",
        "0",
        "--grpc",
        "0",
        "--max-body",
        "4",
        "--answer-time",
        "1",
    )
    ready = lambda: all(s["ready"] for s in servers(port).values())
    until("both servers of gRPC are ready", ready)
    ask_m = field(1, "m") + field(5, field(1, "x"))
    sequence = ask_m + field(4, field(1, "sequence_id") + field(2, field(2, 7)))
    for kind, status, tries in (
        ("good", 0, 1),
        ("interim", 0, 1),
        ("refusal", 9, 1),
        ("unavailable", 14, 2),
        ("late", 0, 1),
        ("silence", 4, 1),
        ("closes", 14, 2),
        ("garbage", 14, 2),
        ("half", 14, 2),
        ("no status", 14, 2),
        ("odd status", 14, 2),
        ("reset", 14, 2),
        ("refused", 14, 2),
        ("500", 14, 2),
        ("goaway", 14, 2),
        ("too large", 8, 1),
        ("bad headers", 14, 2),
    ):
        for b in bad:
            b.kind, b.seen = kind, 0
        got, why, out, heads = call(grpc, "ModelInfer", ask_m)
        seen = sum(b.seen for b in bad)
        check(
            "gRPC, %s: %d %s, asked for %d times" % (kind, got, why, seen),
            got == status
            and seen == tries
            and (status != 0 or (out == [b"\x08\1"] and heads.get("x-own") == "yes")),
        )
        for b in bad:
            b.kind, b.seen = "good", 0
        until("ready again", ready)
        for b in bad:
            b.kind, b.seen = kind, 0
        got = call(grpc, "ModelInfer", sequence)[0]
        seen = sum(b.seen for b in bad)
        check(
            "a sequence's, %s: %d, asked for %d times" % (kind, got, seen),
            seen == (2 if kind in ("refused", "goaway") else 1) and got == status,
        )
        for b in bad:
            b.kind, b.seen = "good", 0
        until("ready again", ready)
    bad[0].kind, bad[0].seen, bad[1].seen = "closes", 0, 0
    check(
        "the other one answers",
        all(call(grpc, "ModelInfer", ask_m)[0] == 0 for k in range(4)) and bad[0].seen >= 1,
    )
    for b in bad:
        b.kind, b.seen = "good", 0
    until("ready again", ready)
    for k in range(6):
        call(grpc, "ModelInfer", sequence)
    check("a sequence stays with one server", sorted(b.seen for b in bad) == [0, 6])
    for b in bad:
        b.seen = 0
    call(grpc, "RepositoryModelLoad", field(2, "m"))
    check("all servers load", [b.seen for b in bad] == [1, 1])
    for b in bad:
        b.kind = "silence"
    began = time.time()
    got = call(grpc, "ModelInfer", ask_m, timeout="200m")
    check(
        "the client's deadline: %s after %.2f s" % (got[:2], time.time() - began),
        # a server's silence has another line; curl itself may wait a second more
        got[:2] == (4, "Deadline Exceeded"),
    )
    got = call(grpc, "Nothing")
    check("no message: %s" % (got[:2],), got[0] == 13)
    for b in bad:
        b.kind = "late"
    late = []
    t = threading.Thread(target=lambda: late.append(call(grpc, "ModelInfer", ask_m)))
    t.start()
    time.sleep(0.1)
    front.send_signal(signal.SIGTERM)
    t.join()
    check(
        "what was under way is answered: %s" % (late[0],), late[0][2] == [b"\x08\1"]
    )  # curl may leave the trailers of a connection that ends
    check("it ends as it should", front.wait(timeout=20) == 0)

    # Before real ones: unary and streams, and one that is killed.
    behind = [both(folder, "--http", "0", "--grpc", "0") for _ in range(2)]
    front, port, grpc = both(
        "--front",
        ",".join("127.0.0.1:%d,grpc://127.0.0.1:%d" % b[1:] for b in behind),
        "--http",
        "0",
        "--grpc",
        "0",
        "--access-log",
        folder + "/log",
    )
    until("four are ready", lambda: len(servers(port)) == 4 and ready())
    tensor = (
        field(1, "m")
        + field(5, field(1, "x") + field(2, "FP32") + field(3, 1) + field(3, 64))
        + field(7, struct.pack("<f", 2) * 64)
    )
    got = call(grpc, "ModelInfer", tensor)
    check("an inference: %s" % (got[:2],), got[0] == 0 and struct.pack("<f", 6) * 64 in got[2][0])
    got = call(grpc, "ModelInfer", field(1, "nobody"))
    check("its error comes back as it was: %s" % (got[:2],), got[0] == 5 and "nobody" in got[1])
    got = call(grpc, "ModelStreamInfer", *[tensor] * 500)
    check(
        "a stream of 500: %s, %d answers" % (got[:2], len(got[2])),
        got[0] == 0 and len(got[2]) == 500 and all(struct.pack("<f", 6) * 64 in m for m in got[2]),
    )
    for service in "v1", "v1alpha":
        got = call(
            grpc,
            "../grpc.reflection.%s.ServerReflection/ServerReflectionInfo" % service,
            field(7, "*"),
            field(4, "inference.ModelInferRequest"),
            field(4, "nothing"),
        )
        check(
            "reflection: %s, %d answers" % (got[:2], len(got[2])),
            got[0] == 0
            and len(got[2]) == 3
            and b"grpc.health.v1.Health" in got[2][0]
            and b"raw_input_contents" in got[2][1]
            and b"no such symbol" in got[2][2],
        )
    got = call(grpc, "../grpc.health.v1.Health/Check", b"")
    check("health: %s" % (got[:3],), got[0] == 0 and got[2] == [b"\x08\1"])
    got = call(grpc, "ModelStreamInfer")
    check("a stream of none: %s" % (got[:2],), got[0] == 0)

    def load_grpc(seconds):
        s = subprocess.Popen(
            [
                a.hone,
                "load",
                "127.0.0.1:%d" % grpc,
                "--grpc",
                "--model",
                "m",
                "--concurrency",
                "16",
                "--window",
                str(seconds / 4),
                "--windows",
                "4",
                "--warmup",
                "0",
                "--json",
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        children.append(s)
        return s

    def result_grpc(what, process):
        out, err = process.communicate(timeout=120)
        try:
            l = json.loads(out.splitlines()[0])["levels"][0]
        except Exception:
            return check("%s: %s%s" % (what, out, err), False)
        check(
            "%s: %d requests, %d failed %s, p99 %.1f ms"
            % (what, l["requests"], l["errors"], l.get("why", ""), l["p99_ms"]),
            l["errors"] == 0 and l["requests"] > 0,
        )

    for k in range(a.rounds):
        worker = load_grpc(4 * a.seconds)
        time.sleep(a.seconds)
        victim = behind[k % 2]
        victim[0].kill()
        victim[0].wait()
        time.sleep(a.seconds)
        behind[k % 2] = both(folder, "--http", str(victim[1]), "--grpc", str(victim[2]))
        result_grpc("gRPC: one killed and started again", worker)
        until("it is taken back", ready)
    with open(folder + "/log") as f:
        lines = [json.loads(l) for l in f]
    check(
        "the log names who answered",
        any(
            l["protocol"] == "grpc"
            and l["path"].endswith("/ModelInfer")
            and l.get("server", "").startswith("grpc://127.0.0.1:")
            and l["tries"] == 1
            for l in lines
        ),
    )
    for b in behind:
        b[0].kill(), b[0].wait()
    got = call(grpc, "ModelInfer", tensor)
    check("no server is left: %s" % (got[:2],), got[0] == 14)
    front.send_signal(signal.SIGTERM)
    check("it ends as it should", front.wait(timeout=20) == 0)
finish("serve_front")
