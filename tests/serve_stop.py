#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SIGTERM while more is under way than --grace allows:     serve_stop.py HONE
# What runs is answered, what waits is refused with 503, over HTTP and gRPC, and the process ends by itself.
from onnx_bytes import wide
from serve_common import check, finish

import http.client, json, os, shutil, signal, subprocess, sys, tempfile, threading, time

hone = sys.argv[1]
ROWS, WIDE = 128, 1 << 16  # of 8 million exponentials a request


folder = tempfile.mkdtemp()
os.makedirs(folder + "/slow/1")
with open(folder + "/slow/1/model.onnx", "wb") as f:
    f.write(wide(WIDE))
with open(folder + "/slow/hone.json", "w") as f:
    f.write('{"dynamic_batching": false, "threads": 1, "instance_group": [{"count": 1}]}')
command = [hone, "serve", folder, "--http", "0", "--grpc", "0", "--metrics", "-1", "--json", "--grace", "1"]
server = subprocess.Popen(
    command, stdout=subprocess.PIPE, text=True, env=dict(os.environ, HONE_WISDOM="none")
)
ports = json.loads(server.stdout.readline())
tensor = {"name": "x", "datatype": "FP32", "shape": [ROWS, 1], "data": [1.0] * ROWS}
body, answers = json.dumps({"inputs": [tensor]}).encode(), []


def ask():
    c = http.client.HTTPConnection("127.0.0.1", ports["http"], timeout=100)
    try:
        c.request("POST", "/v2/models/slow/infer", body)
        r = c.getresponse()
        answers.append((r.status, json.loads(r.read())))
    except Exception as e:
        answers.append((0, repr(e)))


threads = [threading.Thread(target=ask) for _ in range(100)]
for t in threads:
    t.start()
calls = None
if ports["grpc"] > 0:
    calls = subprocess.Popen(
        [hone, "load", "127.0.0.1:%d" % ports["grpc"], "--grpc", "--model", "slow", "--shape"]
        + ["x=%dx1" % ROWS, "--concurrency", "50", "--requests", "50", "--warmup", "0", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
began = time.time()
status = http.client.HTTPConnection("127.0.0.1", ports["http"], timeout=100)
waiting = 0
while waiting < 90 and time.time() - began < 30:
    status.request("GET", "/status")
    waiting = json.loads(status.getresponse().read())["models"][0]["waiting"]
    time.sleep(0.02)
server.send_signal(signal.SIGTERM)
code = server.wait(timeout=200)
for t in threads:
    t.join()
codes = [a[0] for a in answers]
check("%d waited, it ends by itself: %d" % (waiting, code), waiting >= 90 and code >= 0)
check(
    "each is answered: %d with 200, %d with 503, %r"
    % (codes.count(200), codes.count(503), [a for a in answers if a[0] not in (200, 503)][:2]),
    codes.count(200) + codes.count(503) == 100 and codes.count(200) > 0 and codes.count(503) > 0,
)
why = {a[1]["error"] for a in answers if a[0] == 503}
check("and told why: %r" % why, why and all("stop" in text for text in why))
if calls:
    out, err = calls.communicate(timeout=100)
    check("calls over gRPC come to an end, too: %s" % (out + err)[:200], calls.returncode is not None)
shutil.rmtree(folder)
finish("serve_stop")
