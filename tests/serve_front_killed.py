#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# `hone serve --front` before three servers of which one is killed, one restarted; traces that go through:
# serve_front_killed.py HONE [--rounds N] [--seconds S] [--bad N] The good ones are `hone load`, and clients
# that compare each answer. Loopback only, and every number of connections is bounded.
from serve_front_common import a, ask, backend, body, both, children, folder, hone, infer, servers, until
from serve_common import check, finish, scale

import http.client, json, os, random, signal, socket, subprocess, threading, time

# Traces: a context goes through the front to the server, over HTTP and gRPC; both write spans.
traces = {n: "%s/%s.json" % (folder, n) for n in ("server", "front")}
s = subprocess.Popen(
    [
        a.hone,
        "serve",
        folder,
        "--http",
        "0",
        "--grpc",
        "0",
        "--metrics",
        "-1",
        "--json",
        "--trace",
        traces["server"],
    ],
    stdout=subprocess.PIPE,
    text=True,
)
children.append(s)
ports = json.loads(s.stdout.readline())
front, port = hone(
    "--front", "http://127.0.0.1:%d/" % ports["http"], "--http", "0", "--trace", traces["front"]
)
until("it is ready", lambda: ask(port, "GET", "/v2/health/ready")[0] == 200)
trace, span = "c" * 31 + "1", "d" * 16
status, answer, headers = ask(port, "POST", infer, body, {"traceparent": "00-%s-%s-01" % (trace, span)})
check(
    "a span of the front's: %s" % headers.get("traceparent"),
    status == 200
    and headers["traceparent"].split("-")[1] == trace
    and headers["traceparent"].split("-")[2] != span,
)
ask(
    port, "POST", infer, body, {"traceparent": "00-" + "0" * 32 + "-" + "b" * 16 + "-01"}
)  # not one: a new one is made
ask(port, "POST", infer, body, {"traceparent": "00-" + "e" * 32 + "-" + "b" * 16 + "-00"})  # not sampled
if ports["grpc"] > 0:
    r = subprocess.run(
        [
            a.hone,
            "load",
            "127.0.0.1:%d" % ports["grpc"],
            "--grpc",
            "--model",
            "m",
            "--requests",
            "20",
            "--concurrency",
            "1",
            "--header",
            "traceparent: 00-%s-%s-01" % ("f" * 32, span),
        ],
        capture_output=True,
        text=True,
    )
    check("gRPC with a context: %s" % r.stderr, r.returncode == 0)
for c in front, s:
    c.send_signal(signal.SIGTERM)
    check("it ends as it should", c.wait(timeout=20) == 0)
spans = {}
for n, path in traces.items():
    with open(path) as f:
        spans[n] = [e for e in json.load(f) if e["ph"] == "X"]
whole = {n: [e for e in es if e.get("args", {}).get("trace") == trace] for n, es in spans.items()}
check("one span each of the trace", [len(es) for es in whole.values()] == [1, 1])
check(
    "the front's is the client's child, the server's the front's",
    whole["front"][0]["args"]["parent"] == span
    and whole["server"][0]["args"]["parent"] == whole["front"][0]["args"]["span"],
)
check(
    "what was made up for one that came without",
    sum(
        e.get("args", {}).get("trace") not in (None, trace, "e" * 32, "f" * 32) and "infer" in e["name"]
        for e in spans["server"]
    )
    == 1,
)
check(
    "one that is not sampled is left out",
    not any(e.get("args", {}).get("trace") == "e" * 32 for es in spans.values() for e in es),
)
check(
    "gRPC's spans",
    ports["grpc"] < 0
    or sum(
        e.get("args", {}).get("trace") == "f" * 32 and e["name"].endswith("/ModelInfer")
        for e in spans["server"]
    )
    == 20,
)
w = whole["server"][0]
parts = [
    e
    for e in spans["server"]
    if e["tid"] == w["tid"]
    and e is not w
    and w["ts"] <= e["ts"]
    and e["ts"] + e["dur"] <= w["ts"] + w["dur"] + 0.01
]
check(
    "its parts: %s" % [e["name"] for e in parts],
    [e["name"] for e in parts] == ["receive", "queue", "batch", "compute", "answer", "send"]
    and abs(sum(e["dur"] for e in parts) - w["dur"]) < 0.01
    and parts[3]["args"]["batch"] == 1,
)
check(
    "within the front's",
    whole["front"][0]["ts"] <= w["ts"] and any(e["name"].startswith("at 127.0.0.1:") for e in spans["front"]),
)

# Before real ones, of which some are killed.
behind = [backend() for _ in range(3)]
front, port = hone(
    "--front",
    ",".join("127.0.0.1:%d" % q for _, q in behind),
    "--http",
    "0",
    "--max-body",
    "4",
    "--idle",
    "5",
    "--request-time",
    "5",
)
until("three are ready", lambda: sum(s["ready"] for s in servers(port).values()) == 3)
wrong, answers, over = [], [0], threading.Event()


def client():
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    while not over.is_set():
        try:
            c.request("POST", infer, body)
            r = c.getresponse()
            data = r.read()
            if r.status != 200 or json.loads(data)["outputs"][0]["data"] != [6.0] * 64:
                wrong.append((r.status, data[:200]))
            answers[0] += 1
        except Exception as e:
            wrong.append(repr(e))
            c.close()


def load(seconds):
    s = subprocess.Popen(
        [
            a.hone,
            "load",
            "127.0.0.1:%d" % port,
            "--model",
            "m",
            "--concurrency",
            "8",
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


def result(what, process):
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


def memory():
    with open("/proc/%d/statm" % front.pid) as f:
        return int(f.read().split()[1]) * 4096


watchers = [threading.Thread(target=client) for _ in range(2)]
for t in watchers:
    t.start()
result("three servers", load(a.seconds))
quiet = memory()
for k in range(a.rounds):
    worker = load(2 * a.seconds)
    time.sleep(a.seconds / 2)
    victim, at = behind[k % 3]
    victim.kill()  # -9, with requests under way
    victim.wait()
    time.sleep(a.seconds / 2)
    behind[k % 3] = backend(at)
    result("one killed and started again", worker)
    until("it is taken back", lambda: all(s["ready"] for s in servers(port).values()))
worker = load(a.seconds)
time.sleep(a.seconds / 2)
behind[0][0].send_signal(signal.SIGTERM)
result("one stopped", worker)
check("it ended as it should", behind[0][0].wait(timeout=20) == 0)

# New versions behind it, under load.
worker = load(a.seconds)
for version in 2, 3:
    os.makedirs("%s/m/part" % folder)
    with open("%s/m/part/model.onnx" % folder, "wb") as f:
        f.write(scale(3.0))
    os.rename("%s/m/part" % folder, "%s/m/%d" % (folder, version))
    time.sleep(0.2)
result("new versions behind it", worker)

# Bad clients of the front.
held = []
worker = load(a.seconds)
post = b"POST /v2/models/m/infer HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n"
kinds = [
    b"",
    post % 5000 + b"x" * 100,
    b"POST /v2",
    random.Random(2).randbytes(500),
    post % (1 << 33),
    b"GET /a b\rc HTTP/1.1\r\nHost: x\r\n\r\n",
    (post % len(body) + body.encode()) * 200,
]
for k in range(a.bad):
    try:
        s = socket.create_connection(("127.0.0.1", port), timeout=10)
        s.setblocking(False)
        held.append(s)
        s.send(kinds[k % len(kinds)])
    except OSError:
        pass
result("%d bad clients" % a.bad, worker)
for s in held:
    s.close()
over.set()
for t in watchers:
    t.join(timeout=30)
check("%d answers, each right: %r" % (answers[0], wrong[:3]), answers[0] > 0 and not wrong)
grown = memory() - quiet
check("memory grew by %.1f MB" % (grown / 1e6), grown < 16e6 or "HONE_GUARD" in os.environ)

# All gone: said at once; back: found again. Then the end, with requests under way.
for s, _ in behind[1:]:
    s.kill(), s.wait()
status, answer, headers = ask(port, "POST", infer, body)
check(
    "no server is left: %d %s" % (status, answer.decode()),
    status == 503 and headers.get("Retry-After") and "error" in json.loads(answer),
)
check(
    "it says that it is not ready",
    ask(port, "GET", "/v2/health/ready")[0] == 400 and ask(port, "GET", "/v2/health/live")[0] == 200,
)
behind[1] = backend(behind[1][1])
until("a server that comes back is found", lambda: ask(port, "POST", infer, body)[0] == 200)
worker, stopped = [], []


def last():
    try:
        for k in range(100000):
            status, answer, headers = ask(port, "POST", infer, body)
            worker.append(status)
    except OSError as e:
        stopped.append(e)


t = threading.Thread(target=last)
t.start()
time.sleep(0.1)
front.send_signal(signal.SIGTERM)
check("it ends as it should", front.wait(timeout=20) == 0)
t.join(timeout=20)
check(
    "%d answers until then, all good: %r %r" % (len(worker), set(worker), stopped),
    set(worker) == {200} and all(isinstance(e, ConnectionRefusedError) for e in stopped),
)
finish("serve_front_killed")
