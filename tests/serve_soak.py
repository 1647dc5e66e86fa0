#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# A server under mixed load for long, at a rate that leaves the processor to others:
#     serve_soak.py HONE [--models FOLDER] [--seconds 3600] [--rate 200]
# Good requests over HTTP (JSON, whose every number is compared, and bytes) and gRPC; beside them a model
# replaced, one that comes with a request and goes again, one that is broken, and connections of garbage.
# None of the good ones may fail, and memory and open files must end where they began. FOLDER has
# mnist-cnn/model.onnx and mobilenetv2-fp32/model.onnx, which then take part.
from serve_bad import bad, body, connect  # first: the other one takes this folder off the path
from serve_common import check, finish, scale

import argparse, atexit, base64, http.client, json, os, shutil, signal, statistics, subprocess, tempfile
import threading, time, urllib.error, urllib.request

p = argparse.ArgumentParser()
p.add_argument("hone")
p.add_argument("--models")
p.add_argument("--seconds", type=float, default=3600, help="by the clock")
p.add_argument("--rate", type=float, default=200, help="good requests a second, all together")
p.add_argument("--crowds", type=int, default=0, help="moments with many large bodies, in the first half")
p.add_argument("--every", type=float, default=30, help="seconds between lines")
a = p.parse_args()

folder = tempfile.mkdtemp()
atexit.register(shutil.rmtree, folder, True)


def install(version, by):  # whole, or not at all
    os.makedirs("%s/m/%d.part" % (folder, version))
    with open("%s/m/%d.part/model.onnx" % (folder, version), "wb") as f:
        f.write(scale(by))
    os.rename("%s/m/%d.part" % (folder, version), "%s/m/%d" % (folder, version))


install(1, 1.0)
shared = ["mnist-cnn", "mobilenetv2-fp32"] if a.models else []
for name in shared:
    os.makedirs("%s/%s/1" % (folder, name))
    shutil.copy("%s/%s/model.onnx" % (a.models, name), "%s/%s/1" % (folder, name))
# Limits of time are large: what stands still with its clients must not run into them.
command = [a.hone, "serve", folder, "--http", "0", "--grpc", "0", "--metrics", "-1", "--json"]
server = subprocess.Popen(
    command + ["--idle", "600", "--request-time", "600"],
    stdout=subprocess.PIPE,
    text=True,
    env=dict(os.environ, HONE_WISDOM="none"),
)
atexit.register(server.kill)  # whatever happens here
ports = json.loads(server.stdout.readline())
HTTP, GRPC = ports["http"], ports["grpc"]
over, lock = threading.Event(), threading.Lock()
done = {"requests": 0, "failed": 0, "compared": 0, "reloads": 0, "given": 0, "broken": 0, "garbage": 0}
wrong = []


def count(what, n=1):
    with lock:
        done[what] += n


def fault(what):
    count("failed")
    with lock:
        wrong.append(what)
    print("FAILED  " + what[:500], flush=True)


def ask(path, document=None):
    request = urllib.request.Request(
        "http://127.0.0.1:%d%s" % (HTTP, path), None if document is None else json.dumps(document).encode()
    )
    try:
        with urllib.request.urlopen(request, timeout=600) as r:
            text = r.read()
            return r.status, json.loads(text) if text else {}
    except urllib.error.HTTPError as e:
        return e.code, e.read().decode()


def compare(rate):  # each answer is of the version that it says, whole
    c = http.client.HTTPConnection("127.0.0.1", HTTP, timeout=600)
    while not over.wait(1 / rate):
        try:
            c.request("POST", "/v2/models/m/infer", body)
            r = json.loads(c.getresponse().read())
            if r["outputs"][0]["data"] != [float(int(r["model_version"]))] * 64:
                fault("an answer that is wrong: %r" % r)
            count("compared")
            count("requests")
        except Exception as e:
            fault("a request of JSON: %r" % e)
            c.close()


def load(model, port, rate):  # by `hone load`, some seconds at a time
    while not over.is_set():
        command = [a.hone, "load", "127.0.0.1:%d" % port, "--model", model, "--rate", "%g" % rate]
        command += ["--window", "2.5", "--windows", "4", "--stable", "0.1", "--warmup", "0", "--json"]
        command += ["--connections", "32"]  # after it stood still, what is due is more than a queue holds
        command += ["--grpc"] if port == GRPC else []
        r = subprocess.run(command, capture_output=True, text=True)
        try:
            level = json.loads(r.stdout.splitlines()[0])["levels"][0]
            count("requests", level["requests"])
            if level["errors"]:
                what = r.stderr[-200:] + r.stdout[r.stdout.find("error") - 20 :]
                fault("%d requests of %s over %s: %s" % (level["errors"], model, port, what))
                count("failed", level["errors"] - 1)
        except Exception as e:
            fault("hone load of %s: %r %s %s" % (model, e, r.stdout, r.stderr))


def replace():  # a new version of m; then the one before the last goes
    version = 1
    while not over.wait(5):
        version += 1
        install(version, float(version))
        if version > 2:
            shutil.rmtree("%s/m/%d" % (folder, version - 2))
        count("reloads")


def given():  # a model whose file is in the request, and one that is none
    number = 0
    while not over.wait(5):
        number += 1
        name, by = "given%d" % (number % 7), float(number % 1000 + 1)
        for data, code in (scale(by), 200), (scale(by)[: 100 + number % 200], 400):
            file = {"parameters": {"file:1/model.onnx": base64.b64encode(data).decode(), "config": "{}"}}
            got, answer = ask("/v2/repository/models/%s/load" % name, file)
            if got != code:
                fault("a model of a request: %d and not %d: %r" % (got, code, answer))
            if code == 200:
                got, answer = ask("/v2/models/%s/infer" % name, json.loads(body))
                if got != 200 or answer["outputs"][0]["data"] != [by] * 64:
                    fault("the model of a request answers %d: %r" % (got, answer))
                got, answer = ask("/v2/repository/models/%s/unload" % name, {})
                if got != 200:
                    fault("unload: %d: %r" % (got, answer))
            count("given" if code == 200 else "broken")


def garbage():  # some of each kind; each stays for two turns
    held, number, kinds = [], 0, list(bad)
    while not over.wait(1):
        number += 1
        for port, front in (HTTP, "HTTP"), (GRPC, "gRPC"):
            try:
                s = connect(port)
                s.setblocking(False)
                held.append(s)
                s.send(bad[kinds[number % len(kinds)]][front])
                count("garbage")
            except OSError:
                pass
        while len(held) > 4:
            held.pop(0).close()
    for s in held:
        s.close()


def crowd():  # for a moment many with large bodies; what they took must not stay, though others go on
    for port in HTTP, GRPC:
        command = [a.hone, "load", "127.0.0.1:%d" % port, "--model", "m", "--shape", "x=4096x64", "--json"]
        command += ["--concurrency", "48", "--requests", "192"] + (["--grpc"] if port == GRPC else [])
        level = json.loads(subprocess.run(command, capture_output=True, text=True).stdout)["levels"][0]
        count("requests", level["requests"])
        if level["errors"]:
            fault("%d requests of a crowd over %s: %r" % (level["errors"], port, level))


def memory():
    with open("/proc/%d/statm" % server.pid) as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def files():
    return len(os.listdir("/proc/%d/fd" % server.pid))


def cpu():
    with open("/proc/%d/stat" % server.pid) as f:
        fields = f.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


jobs = [(compare, a.rate * 0.25), (load, "m", HTTP, a.rate * 0.25), (load, "m", GRPC, a.rate * 0.25)]
jobs += [(load, "mnist-cnn", GRPC, a.rate * 0.25)] if shared else [(compare, a.rate * 0.25)]
jobs += [(load, "mobilenetv2-fp32", HTTP, 1), (load, "mobilenetv2-fp32", GRPC, 1)] if shared else []
jobs += [(replace,), (given,), (garbage,)]
before = files()
print("at first %.1f MB, %d files" % (memory(), before), flush=True)
threads = [threading.Thread(target=job[0], args=job[1:], daemon=True) for job in jobs]
for t in threads:
    t.start()
ran, last, said, stood, samples = 0.0, time.monotonic(), 0.0, 0.0, []
crowds, alone, most, guarded = 0, 0, 0, bool(os.environ.get("HONE_GUARD"))  # sanitizers keep what was freed
while ran < a.seconds and server.poll() is None:
    time.sleep(0.25)
    now = time.monotonic()
    ran, stood, last = ran + now - last, stood + max(now - last - 1, 0), now
    if crowds < a.crowds and ran > a.seconds * (crowds + 1) / (a.crowds + 1) / 2:
        crowds, alone = crowds + 1, memory()
        crowd()
        most = memory()
    if ran - said >= min(a.every, a.seconds / 8):
        said = ran
        samples.append((ran, memory(), files()))
        print(
            "%5.0f s  %6.1f MB  %3d files  %.1f s of CPU, stood still %.0f s  %s"
            % (ran, *samples[-1][1:], cpu(), stood, " ".join("%s %d" % x for x in done.items())),
            flush=True,
        )
check(
    "%d crowds: %.1f MB before the last, %.1f at its end, %.1f later" % (crowds, alone, most, memory()),
    not crowds or guarded or memory() < alone + max(8, (most - alone) / 4),
)
over.set()
for t in threads:
    t.join(timeout=120)
check("it still runs", server.poll() is None)
time.sleep(5)
quarters = [[s[1] for s in samples if min(int(s[0] * 4 / a.seconds), 3) == k] for k in range(4)]
means = [statistics.median(q) for q in quarters if q]  # a crowd is a moment
check("%d requests, %d failed" % (done["requests"], done["failed"]), done["requests"] > 0 and not wrong)
check(
    "memory by quarters %s MB, afterwards %.1f" % (" ".join("%.1f" % m for m in means), memory()),
    crowds or guarded or means[-1] <= means[0] * 1.1 + 8,
)
check("open files: %d, at first %d" % (files(), before), files() <= before + 2)
server.send_signal(signal.SIGTERM)
check("it ends as it should", server.wait(timeout=60) == 0)
finish("serve_soak")
