#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# `hone load` against a KServe v2 server of the standard library's, which checks what it is sent and answers
# well, late, in chunks, with errors, with garbage or not at all:  load.py HONE
import sys

del sys.path[0]  # html.py lies here, and is not the html that http.server wants
import csv, http.server, json, os, socket, struct, subprocess, tempfile, threading, time

hone = sys.argv[1]
failed = []
served = {"good": 0, "bad": 0, "first": set()}
inputs = [("x", "FP32", [-1, 4]), ("n", "INT64", [-1]), ("s", "BYTES", [-1, 2]), ("h", "FP16", [2])]
sizes = {"FP32": 4, "INT64": 8, "FP16": 2}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 65536

    def log_message(self, *a):
        pass

    def say(self, status, body, chunked=False, close=False):
        self.send_response(status)
        if chunked:
            self.send_header("Transfer-Encoding", "chunked")
        else:
            self.send_header("Content-Length", str(len(body)))
        if close:
            self.send_header("Connection", "close")
            self.close_connection = True
        self.end_headers()
        if not chunked:
            self.wfile.write(body)
        for at in range(0, len(body), 7) if chunked else ():
            piece = body[at:at + 7]
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        if chunked:
            self.wfile.write(b"0\r\nX-Trailer: 1\r\n\r\n")
        self.wfile.flush()

    def do_GET(self):
        model = self.path.split("/")[3] if self.path.count("/") > 2 else ""
        if self.path == "/v2":
            return self.say(200, b'{"name":"stub","version":"1"}')
        if self.path.endswith("/config") or self.path.endswith("/stats") or model == "none":
            return self.say(404, b'{"error":"none"}')
        some = inputs[:1] if model != "all" else inputs
        self.say(200, json.dumps({"name": model, "inputs": [
            {"name": n, "datatype": t, "shape": d} for n, t, d in some]}).encode(), chunked=True)

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        model = self.path.split("/")[3]
        try:
            head = self.headers.get("Inference-Header-Content-Length")
            request = json.loads(body[:int(head)] if head else body)
            at = int(head) if head else len(body)
            for i in request["inputs"]:
                elements = 1
                for d in i["shape"]:
                    elements *= d
                if not head:
                    assert len(i["data"]) == elements
                    continue
                size = i["parameters"]["binary_data_size"]
                data, at = body[at:at + size], at + size
                if i["datatype"] != "BYTES":
                    assert size == elements * sizes[i["datatype"]]
                    served["first"].add(data)
                else:
                    for _ in range(elements):
                        (n,) = struct.unpack_from("<I", data)
                        data = data[4 + n:]
                    assert not data
            assert at == len(body)
            served["good"] += 1
        except Exception as e:
            served["bad"] += 1
            return self.say(400, str(e).encode())
        if model == "slow":
            time.sleep(0.02)
        if model == "garbage":
            self.wfile.write(b"\x00\x01\x02\r\n\r\n")
            self.close_connection = True
        elif model == "half" and served["good"] % 3 == 0:
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc")
            self.close_connection = True
        elif model == "busy":
            self.say(503, b'{"error":"the queue is full"}')
        elif model == "mute":
            time.sleep(3)
        else:
            self.say(200, b"x" * 100, chunked=model == "chunked", close=model == "close")


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *a):
        pass


server = Server(("127.0.0.1", 0), Handler)
url = "127.0.0.1:%d" % server.server_port
threading.Thread(target=server.serve_forever, daemon=True).start()


def run(*args, want=0, seconds=60):
    p = subprocess.run([hone, "load", *args], capture_output=True, text=True, timeout=seconds)
    if p.returncode != want:
        failed.append("%s: exit %d, not %d: %s%s" % (" ".join(args), p.returncode, want, p.stdout, p.stderr))
    return p


def check(what, good):
    if not good:
        failed.append(what)


exact = ["--requests", "40", "--concurrency", "1,4", "--json"]
for model in "plain", "chunked", "close", "all":
    served.update(good=0, bad=0, first=set())
    r = run(url, "--model", model, "--dim", "batch=3", *exact)
    levels = json.loads(r.stdout)["levels"] if r.returncode == 0 else []
    check("%s: %r" % (model, levels), [l["requests"] for l in levels] == [40, 40]
          and not sum(l["errors"] for l in levels))
    check("%s: the server counted %r" % (model, served["good"]), served["good"] == 80 and served["bad"] == 0)
    check("%s: four different requests" % model, len(served["first"]) >= 4)
served.update(good=0, bad=0)
run("http://" + url + "/v2", "--model", "plain", "--json-tensors", "--requests", "10", "--concurrency", "2")
check("JSON tensors", served["good"] == 10 and served["bad"] == 0)

# Latency of a server that takes 20 ms; a rate that it can do, and one that comes out as asked.
r = run(url, "--model", "slow", "--concurrency", "2", "--window", "0.3", "--windows", "3", "--stable", "50",
        "--json")
level = json.loads(r.stdout)["levels"][0]
check("20 ms: %r" % level, 19 < level["p50_ms"] < 60
      and level["p50_low_ms"] <= level["p50_ms"] <= level["p50_high_ms"])
r = run(url, "--model", "plain", "--rate", "100", "--window", "0.5", "--windows", "3", "--stable", "90",
        "--json")
level = json.loads(r.stdout)["levels"][0]
check("100 a second: %r" % level, 60 < level["requests_per_s"] < 140 and "late_p99_ms" in level)
r = run(url, "--model", "slow", "--rate", "5000", "--connections", "4", "--window", "0.5", "--json")
check("overload is told", json.loads(r.stdout)["levels"][0]["state"] == "overloaded")

# The knee of a server that does one thing at a time, and the table.
with tempfile.TemporaryDirectory() as d:
    r = run(url, "--model", "slow", "--concurrency", "1,2,4", "--requests", "12", "--csv", d + "/a.csv")
    check("a table with a knee:\n" + r.stdout, "knee" in r.stdout and "requests/s" in r.stdout)
    rows = list(csv.DictReader(open(d + "/a.csv")))
    check("CSV", [row["clients"] for row in rows] == ["1", "2", "4"] and float(rows[0]["p99_ms"]) > 19)

# What goes wrong is said in one line, soon.
wrong = [
    (["none"], "HTTP 404"),
    (["plain", "--dim", "other=3"], "no free dim"),
    (["plain", "--shape", "1x5"], "not a shape"),
    (["plain", "--concurrency", "0"], "--concurrency"),
    (["plain", "--rate", "1", "--concurrency", "1"], "one of the two"),
    (["plain", "--header", "x"], "--header"),
    (["plain", "--model-version", "x"], "--model-version"),
    (["all", "--json-tensors"], "JSON cannot carry"),
    (["garbage", "--requests", "30", "--concurrency", "1"], "not HTTP"),
    (["mute", "--requests", "3", "--concurrency", "1", "--timeout", "0.5"], "no answer"),
]
for args, text in wrong:
    r = run(url, "--model", *args, want=1)
    check("%r: %r" % (args, r.stderr), text in r.stderr and r.stderr.count("\n") == 1)
r = run(url, "--model", "half", "--requests", "30", "--concurrency", "1", "--json", want=1)
level = json.loads(r.stdout)["levels"][0]
check("a third is cut off: %r" % level, 5 <= level["errors"] <= 15
      and "before it had answered" in level["why"])
r = run(url, "--model", "busy", "--requests", "20", "--concurrency", "1", want=1)
check("503 is told: " + r.stderr, "503" in r.stderr and "queue is full" in r.stderr)
free = socket.socket()
free.bind(("127.0.0.1", 0))
r = run("127.0.0.1:%d" % free.getsockname()[1], "--model", "m", want=1)
check("nobody there", "is a server running there" in r.stderr)
run("https://" + url, "--model", "m", want=1)
run("not an address", "--model", "m", want=1)

for line in failed:
    print("FAILED", line)
print("load: %s" % ("%d failed" % len(failed) if failed else "all as it should be"))
sys.exit(1 if failed else 0)
