#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# What good clients feel while others flood the server:
#     serve_floods.py HONE [--kinds TEXT,…] [--seconds S] [--nice N] [--hold N] [--beside]
# Connections of each kind of bad client (tests/serve_bad.py) are opened as fast as they can be, by one
# process (`--nice`: its priority), while good ones ask 200 times a second over each protocol. With --beside
# the flood goes to a second server of the same kind on the same cores: what good clients feel then is the
# machine's being full, and the difference is what this server adds by itself.
import argparse, atexit, collections, json, os, pathlib, shutil, signal, subprocess, sys, tempfile, time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests"))
from serve_bad import bad, connect
from serve_common import scale

p = argparse.ArgumentParser()
p.add_argument("hone")
p.add_argument("--kinds", default="", help="beginnings of kinds' names, by commas")
p.add_argument("--seconds", type=float, default=2)
p.add_argument("--nice", type=int, default=0)
p.add_argument("--hold", type=int, default=700, help="connections a front that stay open")
p.add_argument("--beside", action="store_true")
p.add_argument("--perf", help="a file for `perf record` of the server")
p.add_argument("--flood", nargs=2, help=argparse.SUPPRESS)
a = p.parse_args()


def flood(kind, ports):  # until it is killed
    held, n = collections.deque(), 0
    while True:
        for front, port in ports.items():
            try:
                s = connect(port)
                s.setblocking(False)
                held.append(s)
                s.send(bad[kind][front])
            except OSError:
                pass
            n += 1
            if len(held) > a.hold * len(ports):
                held.popleft().close()
        if n % 50 < 2:
            print(n, flush=True)


if a.flood:
    os.nice(a.nice)
    flood(a.flood[0], json.loads(a.flood[1]))

signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # servers end with it
folder = tempfile.mkdtemp()
atexit.register(shutil.rmtree, folder)
os.makedirs(folder + "/m/1")
with open(folder + "/m/1/model.onnx", "wb") as f:
    f.write(scale(1.0))


def serve():
    s = subprocess.Popen(
        [a.hone, "serve", folder, "--http", "0", "--grpc", "0", "--metrics", "-1", "--json"]
        + ["--max-body", "4", "--connections", "9000", "--idle", "5", "--request-time", "5"],
        stdout=subprocess.PIPE,
        text=True,
    )
    atexit.register(s.kill)
    ports = json.loads(s.stdout.readline())
    return s, {"HTTP": ports["http"], "gRPC": ports["grpc"]}


def cpu(pid):
    f = open("/proc/%d/stat" % pid).read().rsplit(")", 1)[1].split()
    return (int(f[11]) + int(f[12])) / os.sysconf("SC_CLK_TCK")


def load(ports):
    processes = {
        f: subprocess.Popen(
            [a.hone, "load", "127.0.0.1:%d" % port, "--model", "m", "--rate", "200", "--json"]
            + ["--warmup", "0.2", "--window", str(a.seconds / 4), "--windows", "4", "--stable", "0.1"]
            + (["--grpc"] if f == "gRPC" else []),
            stdout=subprocess.PIPE,
            text=True,
        )
        for f, port in ports.items()
    }
    none = {"p50_ms": 0, "p90_ms": 0, "p99_ms": 0, "errors": -1}  # it did not even begin
    said = {f: json.loads((p.communicate()[0].splitlines() or ["{}"])[0]) for f, p in processes.items()}
    return {f: s.get("levels", [none])[0] for f, s in said.items()}


def tell(front, level):
    failed = " %d FAILED" % level["errors"] if level["errors"] else ""
    return "%s %.2f %.2f %.2f%s" % (front, level["p50_ms"], level["p90_ms"], level["p99_ms"], failed)


good, ports = serve()
other, others = serve() if a.beside else (good, ports)
print("%-32s %9s %8s %8s   %s" % ("flood", "conn./s", "its CPU", "server's", "good ones: p50 p90 p99 ms"))
kinds = [k for k in bad if not a.kinds or any(k.startswith(w) for w in a.kinds.split(","))]
load(ports)
for kind in [None] + kinds:
    f, n = None, 0
    if kind:
        f = subprocess.Popen(
            [sys.executable, __file__, a.hone, "--nice", str(a.nice), "--hold", str(a.hold)]
            + ["--flood", kind, json.dumps(others)],
            stdout=subprocess.PIPE,
            text=True,
        )
        atexit.register(f.kill)
        f.stdout.readline(), time.sleep(0.3)
    own, theirs, began = cpu(other.pid), cpu(f.pid) if f else 0, time.time()
    perf = None
    if a.perf and kind:
        perf = subprocess.Popen(["perf", "record", "-q", "-g", "-o", a.perf, "-p", str(other.pid)])
    levels = load(ports)
    if perf:
        perf.send_signal(signal.SIGINT), perf.wait()
    took = time.time() - began
    own, theirs = (cpu(other.pid) - own) / took, (cpu(f.pid) - theirs) / took if f else 0
    if f:
        f.kill()
        counts = f.stdout.read().split()
        n = (int(counts[-1]) - int(counts[0])) / took if len(counts) > 1 else 0
    print(
        "%-32s %9.0f %7.0f%% %7.0f%%   %s"
        % (kind or "none", n, 100 * theirs, 100 * own, "   ".join(tell(*l) for l in levels.items())),
        flush=True,
    )
    time.sleep(0.5)
