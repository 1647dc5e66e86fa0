#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Clients that are slow, cut off, garbled, too large or never read, while good ones go on; models that are
# replaced under load:     serve_faults.py HONE [--connections N] [--reloads N] [--seconds S] The good ones
# are `hone load`, over HTTP and gRPC: none of their requests may fail. Memory must not grow with the bad
# ones.
from serve_bad import bad, body, connect  # first: the other one takes this folder off the path
from serve_common import check, finish, scale

import argparse, atexit, json, os, resource, shutil, signal, subprocess, tempfile, threading, time
import urllib.request

p = argparse.ArgumentParser()
p.add_argument("hone")
p.add_argument("--connections", type=int, default=120)
p.add_argument("--reloads", type=int, default=5)
p.add_argument("--seconds", type=float, default=0.5, help="of load beside each kind")

a = p.parse_args()
a.connections = min(
    a.connections, resource.getrlimit(resource.RLIMIT_NOFILE)[0] * 2 // 5
)  # two fronts, and the rest


folder = tempfile.mkdtemp()
os.makedirs(folder + "/m/1")


def install(version, data):  # whole, or not at all
    os.makedirs("%s/m/%d.part" % (folder, version))
    with open("%s/m/%d.part/model.onnx" % (folder, version), "wb") as f:
        f.write(data)
    os.rename("%s/m/%d.part" % (folder, version), "%s/m/%d" % (folder, version))


with open(folder + "/m/1/model.onnx", "wb") as f:
    f.write(scale(1.0))
server = subprocess.Popen(
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
        "--max-body",
        "4",
        "--connections",
        str(a.connections * 2 + 500),
        "--idle",
        "5",
        "--request-time",
        "5",
    ],
    stdout=subprocess.PIPE,
    text=True,
)
atexit.register(server.kill)  # whatever happens here
ports = json.loads(server.stdout.readline())
HTTP, GRPC = ports["http"], ports["grpc"]
fronts = [("HTTP", HTTP)] + ([("gRPC", GRPC)] if GRPC > 0 else [])


def memory():
    with open("/proc/%d/statm" % server.pid) as f:
        return int(f.read().split()[1]) * 4096


# Beside bad clients some requests a second, which leaves the processor to others; else as many as go.
def load(front, seconds=None, often=("--rate", "200")):
    seconds = seconds or a.seconds
    port = dict(fronts)[front]
    return subprocess.Popen(
        [
            a.hone,
            "load",
            "127.0.0.1:%d" % port,
            "--model",
            "m",
            *often,
            "--window",
            str(seconds / 4),
            "--windows",
            "4",
            "--stable",
            "0.1",
            "--warmup",
            "0",
            "--json",
        ]
        + (["--grpc"] if front == "gRPC" else []),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def result(process):
    out, err = process.communicate(timeout=120)
    try:
        level = json.loads(out.splitlines()[0])["levels"][0]
    except Exception:
        return {"errors": -1, "why": out + err, "p99_ms": 0, "requests": 0}
    return level


MANY = ("--concurrency", "4")


def good(what, *how):
    levels = {f: result(p) for f, p in [(f, load(f, *how)) for f, _ in fronts]}
    for f, l in levels.items():
        check(
            "%s: good ones over %s: %d requests, p99 %.1f ms, %d failed %s"
            % (what, f, l["requests"], l["p99_ms"], l["errors"], l.get("why", "")),
            l["errors"] == 0 and l["requests"] > 0,
        )
    return levels


def trickle(port, data, stop):
    s = connect(port)
    try:
        for k in range(0, len(data), 3):
            s.send(data[k : k + 3])
            if stop.wait(0.3):
                break
    except OSError:
        pass  # it lost its patience with us, as it should
    s.close()


good("before", a.seconds, MANY)
good("before, again", 1.5, MANY)
quiet = memory()
for what, data in bad.items():
    held = []
    workers = [load(f) for f, _ in fronts]
    for k in range(a.connections // len(bad) + 1):
        for f, port in fronts:
            try:
                s = connect(port)
                s.setblocking(False)
                held.append(s)
                s.send(data[f])
            except OSError:
                pass
            if k % 3 == 2:
                held.pop().close()
    for (f, _), w in zip(fronts, workers):
        l = result(w)
        check(
            "%s: good ones over %s: %d requests, p99 %.1f ms, %d failed %s"
            % (what, f, l["requests"], l["p99_ms"], l["errors"], l.get("why", "")),
            l["errors"] == 0 and l["requests"] > 0,
        )
    for s in held:
        s.close()
stop = threading.Event()
slow = [
    threading.Thread(target=trickle, args=(port, data, stop), daemon=True)
    for _ in range(min(100, a.connections // 4))
    for f, port in fronts
    for data in [bad["cut in the middle of a body"][f]]
]
for t in slow:
    t.start()
good("slow ones", 2 * a.seconds)
stop.set()
for t in slow:
    t.join(timeout=20)
check("it still runs", server.poll() is None)

# Many at once, all left open.
held = []
for k in range(a.connections):
    for f, port in fronts:
        try:
            held.append(connect(port))
            held[-1].send(bad["cut in the middle of a body"][f])
        except OSError:
            pass
good("%d left open in the middle of a body" % len(held))
for s in held:
    s.close()
time.sleep(1)
good("after all of it")
grown = memory() - quiet
check(
    "memory grew by %.1f MB" % (grown / 1e6), grown < (24e6 if not os.environ.get("HONE_GUARD") else 1e9)
)  # sanitizers keep what was freed

# Models replaced under load: each answer is of one version, and none fails.
wrong, answers, over = [], [0], threading.Event()


def watch():
    import http.client

    c = http.client.HTTPConnection("127.0.0.1", HTTP, timeout=20)
    while not over.is_set():
        try:
            c.request("POST", "/v2/models/m/infer", body)
            r = json.loads(c.getresponse().read())
            y = r["outputs"][0]["data"]
            if y != [float(int(r["model_version"]))] * 64:
                wrong.append(r)
            answers[0] += 1
        except Exception as e:
            wrong.append(repr(e))


watchers = [threading.Thread(target=watch) for _ in range(2)]
for t in watchers:
    t.start()
clients = [(f, load(f, max(2.0, a.reloads * 0.35), MANY)) for f, _ in fronts]
latest, began = 1, time.time()
for k in range(a.reloads):
    install(k + 2, scale(float(k + 2)))
    if k > 1:
        shutil.rmtree("%s/m/%d" % (folder, k - 1))
    until = time.time() + 10
    while latest < k + 2 and time.time() < until:
        with urllib.request.urlopen("http://127.0.0.1:%d/v2/models/m" % HTTP) as r:
            latest = max(int(v) for v in json.load(r)["versions"])
        time.sleep(0.02)
    if latest < k + 2:
        check("version %d was not loaded in 10 s" % (k + 2), False)
        break
took = time.time() - began
for f, w in clients:
    l = result(w)
    check(
        "%d reloads in %.1f s: good ones over %s: %d requests, p99 %.1f ms, %d failed %s"
        % (a.reloads, took, f, l["requests"], l["p99_ms"], l["errors"], l.get("why", "")),
        l["errors"] == 0 and l["requests"] > 0,
    )
over.set()
for t in watchers:
    t.join(timeout=30)
check(
    "%d answers during reloads, each of one version: %r" % (answers[0], wrong[:2]),
    answers[0] > 0 and not wrong,
)
server.send_signal(signal.SIGTERM)
check("it ends as it should", server.wait(timeout=40) == 0)
shutil.rmtree(folder)
finish("serve_faults")
