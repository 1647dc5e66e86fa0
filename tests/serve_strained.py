#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# A server in straits:     serve_strained.py HONE
# More connections than it takes, lines without end, clients that do not wait for their answers, a process
# that was stopped for longer than anybody may be idle, and connections that only the kernel has seen when
# the server ends.
from serve_bad import body, connect, head, message, post, preface  # first: it takes this folder off the path
from serve_common import check, finish, frame, scale

import atexit, http.client, json, os, shutil, signal, struct, subprocess, sys, tempfile, threading, time

hone = sys.argv[1]
folder = tempfile.mkdtemp()
atexit.register(shutil.rmtree, folder)
os.makedirs(folder + "/m/1")
with open(folder + "/m/1/model.onnx", "wb") as f:
    f.write(scale(1.0))


def serve(*options):
    command = [hone, "serve", folder, "--http", "0", "--grpc", "0", "--metrics", "-1", "--json", *options]
    s = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=dict(os.environ, HONE_WISDOM="none"))
    atexit.register(s.kill)
    ports = json.loads(s.stdout.readline())
    return s, ports["http"], ports["grpc"]


def whole(port, seconds=20):  # a request over HTTP that is answered, or why not
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=seconds)
    try:
        c.request("POST", "/v2/models/m/infer", body)
        r = c.getresponse()
        return r.status, r.read()
    except Exception as e:
        return 0, repr(e)
    finally:
        c.close()


def answer(s):  # of HTTP: status and body
    got = b""
    while b"\r\n\r\n" not in got:
        more = s.recv(65536)
        if not more:
            return 0, got
        got += more
    top, got = got.split(b"\r\n\r\n", 1)
    n = int(top.lower().split(b"content-length:")[1].split(b"\r\n")[0])
    while len(got) < n:
        got += s.recv(65536)
    return int(top.split()[1]), got[:n]


def messages(s):  # bytes of messages on stream 1 until it ends
    n, got = 0, b""
    while True:
        while len(got) < 9 or len(got) < 9 + int.from_bytes(got[:3], "big"):
            more = s.recv(65536)
            if not more:
                return -1
            got += more
        size, kind, flags, stream = int.from_bytes(got[:3], "big"), got[3], got[4], got[5:9]
        got = got[9 + size :]
        if stream == b"\0\0\0\1":
            n += size if kind == 0 else 0
            if kind == 3 or flags & 1:
                return n if kind != 3 else -1


call = preface + frame(1, 4, 1, head) + frame(0, 1, 1, message)

# ---- more than it takes ----
server, HTTP, GRPC = serve("--connections", "24")
for k in range(12):
    held = []
    for _ in range(150):
        try:
            held.append(connect(HTTP))
            held[-1].setblocking(False)
            held[-1].send(post % len(body) + body[: len(body) // 2])
        except OSError:
            pass
    for s in held:
        s.close()
said = whole(HTTP)
check("after 1800 connections where 24 are taken it answers: %s" % said[0], said[0] == 200)
line = connect(HTTP)
line.sendall(b"GET /" + b"a" * 9000)
check("a line without end is refused", line.recv(100).startswith(b"HTTP/1.1 414 "))
line.close()
late = connect(HTTP)
late.sendall(b"\r\n")
time.sleep(0.1)
late.sendall((post % len(body))[:3])
time.sleep(0.1)
late.sendall((post % len(body))[3:] + body)
check("a first line in pieces is a line", answer(late)[0] == 200)
late.close()

# ---- clients that do not wait for their answers ----
COUNT = 400
texts = [json.dumps(dict(json.loads(body), id="%d" % k)).encode() for k in range(COUNT)]
hasty = [connect(HTTP) for _ in range(4)]
for s in hasty:
    s.settimeout(60)
senders = [
    threading.Thread(target=s.sendall, args=(b"".join(post % len(t) + t for t in texts),)) for s in hasty
]
for t in senders:
    t.start()
wrong = []


def read_all(s):
    left = b""
    for k in range(COUNT):
        while True:
            top, found, rest = left.partition(b"\r\n\r\n")
            if found:
                n = int(top.lower().split(b"content-length:")[1].split(b"\r\n")[0])
                if len(rest) >= n:
                    break
            more = s.recv(65536)
            if not more:
                wrong.append((k, "the end"))
                return
            left += more
        if json.loads(rest[:n]).get("id") != "%d" % k:
            wrong.append((k, rest[:n]))
        left = rest[n:]


readers = [threading.Thread(target=read_all, args=(s,)) for s in hasty]
for t in readers:
    t.start()
others = [whole(HTTP)[0] for _ in range(50)]
for t in senders + readers:
    t.join()
check("%d requests at once on each of 4 connections, answered in order: %r" % (COUNT, wrong[:2]), not wrong)
check("others are answered beside them", others == [200] * 50)
many = connect(GRPC) if GRPC > 0 else None
if many:  # as many as HTTP/2's first window has room for their answers
    calls = [frame(1, 4, 2 * k + 1, head) + frame(0, 1, 2 * k + 1, message) for k in range(200)]
    many.sendall(preface + b"".join(calls))
    check("and calls of gRPC", messages(many) > 0)
    many.close()
for s in hasty:
    s.close()
server.send_signal(signal.SIGTERM)
check("it ends as it should", server.wait(timeout=60) == 0)

# ---- the process stands still ----
server, HTTP, GRPC = serve("--idle", "1", "--request-time", "1")
kept = http.client.HTTPConnection("127.0.0.1", HTTP, timeout=20)
kept.request("GET", "/v2/health/live")
kept.getresponse().read()
halves, calls = [connect(HTTP) for _ in range(20)], [connect(GRPC) for _ in range(20 * (GRPC > 0))]
for s in halves:
    s.sendall(post % len(body) + body[: len(body) // 2])
for s in calls:
    s.sendall(preface + frame(1, 4, 1, head) + frame(0, 0, 1, message[:50]))
time.sleep(0.3)
server.send_signal(signal.SIGSTOP)
for s in halves:
    s.sendall(body[len(body) // 2 :])
for s in calls[:10]:
    s.sendall(frame(0, 1, 1, message[50:]))
kept.request("GET", "/v2/health/live")
time.sleep(2.5)
server.send_signal(signal.SIGCONT)
time.sleep(0.2)
for s in calls[10:]:  # these go on a moment later
    s.sendall(frame(0, 1, 1, message[50:]))
codes = [answer(s)[0] for s in halves]
check("halves of requests go on after it stood still: %r" % codes, codes == [200] * len(halves))
got = [messages(s) for s in calls]
check("and calls of gRPC: %r" % got, all(n > 0 for n in got))
check("and a connection that was kept", kept.getresponse().status == 200)
for s in halves + calls:
    s.close()

# ---- only the kernel has seen them ----
lost = []
for _ in range(8):
    if server.poll() is not None:
        server, HTTP, GRPC = serve()
    server.send_signal(signal.SIGSTOP)
    fresh = [connect(HTTP) for _ in range(20)]
    calls = [connect(GRPC) for _ in range(20 * (GRPC > 0))]
    for s in fresh:
        s.sendall(post % len(body) + body)
    for s in calls:
        s.sendall(call)
    server.send_signal(signal.SIGTERM)
    server.send_signal(signal.SIGCONT)
    for s in fresh + calls:
        try:
            n = answer(s)[0] if s in fresh else messages(s)
            if n not in (200, 503) and (s in fresh or n < 0):
                lost.append((s in fresh, n))
        except OSError as e:
            lost.append((s in fresh, repr(e)))
        s.close()
    server.wait(timeout=60)
check("connections that the kernel had are answered at the end: %d lost %r" % (len(lost), lost[:3]), not lost)
finish("serve_strained")
