# SPDX-License-Identifier: Apache-2.0
# What the tests of `hone serve --front` share: a folder with a model, servers that end with the test, and how
# they are asked.
from serve_common import check, scale

import argparse, atexit, http.client, json, os, shutil, subprocess, tempfile, time

p = argparse.ArgumentParser()
p.add_argument("hone")
p.add_argument("--rounds", type=int, default=1, help="of killing a server and starting it again")
p.add_argument("--seconds", type=float, default=0.5, help="of load in a round")
p.add_argument("--bad", type=int, default=60, help="bad clients of the front")
a = p.parse_args()
children = []
folder = tempfile.mkdtemp()
os.makedirs(folder + "/m/1")


def end():
    for c in children:
        c.kill()
    shutil.rmtree(folder, ignore_errors=True)


atexit.register(end)
with open(folder + "/m/1/model.onnx", "wb") as f:
    f.write(scale(3.0))


def hone(*words):
    s = subprocess.Popen(
        [a.hone, "serve", *words, "--metrics", "-1", "--json", "--threads", "1"],
        stdout=subprocess.PIPE,
        text=True,
    )
    children.append(s)
    return s, json.loads(s.stdout.readline() or '{"http": -1}')["http"]


def backend(port=0):
    return hone(folder, "--http", str(port), "--grpc", "-1")


def both(*words):  # over HTTP and gRPC
    s = subprocess.Popen(
        [a.hone, "serve", *words, "--metrics", "-1", "--json", "--threads", "1"],
        stdout=subprocess.PIPE,
        text=True,
    )
    children.append(s)
    ports = json.loads(s.stdout.readline() or '{"http": -1, "grpc": -1}')
    return s, ports["http"], ports["grpc"]


def ask(port, verb, path, body=None, headers={}):
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    c.request(verb, path, body, headers)
    r = c.getresponse()
    answer = r.status, r.read(), dict(r.getheaders())
    c.close()
    return answer


def until(what, test, seconds=15):
    end = time.time() + seconds
    while time.time() < end:
        if test():
            return check(what, True)
        time.sleep(0.01)
    check(what, False)


def servers(port):
    return {s["server"]: s for s in json.loads(ask(port, "GET", "/status")[1])["servers"]}


body = json.dumps({"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 64], "data": [2.0] * 64}]})
infer = "/v2/models/m/infer"
