#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# `hone serve` beside Triton on the same machine, in turns, with `hone load` on the same cores: requests a
# second, latency, server CPU a request, memory.
#     serve.py HONE MODELS [--triton FOLDER] [--headers FOLDER] [--rounds 3] [--prefix quiet] [--front]
#         [--raw] [--start] [--soak SECONDS]
# --front: the same through a `hone serve --front`. --raw: the models in a process of their own, without a
# server, in the same turns. --start: how long a server with ten models takes to be ready, and what it does
# when nobody asks. --soak: so long under mixed load, with its memory. MODELS has mnist-cnn/model.onnx and
# mobilenetv2-fp32/model.onnx. FOLDER is a virtual environment with nvidia-pytriton and onnxruntime; PyPI's
# Triton has no back end for ONNX, so bench/serve/triton_onnx.c is built as one, against onnxruntime_c_api.h
# (with the headers it names) and triton/core/tritonbackend.h, tritonserver.h below --headers.
import argparse, glob, json, os, shutil, signal, statistics, subprocess, sys, tempfile, time, urllib.request

p = argparse.ArgumentParser()
p.add_argument("hone")
p.add_argument("models")
p.add_argument("--triton")
p.add_argument("--headers")
p.add_argument("--rounds", type=int, default=3)
p.add_argument("--clients", default="1,8,32")
p.add_argument("--window", default="0.7")
p.add_argument("--prefix", default="",
               help="a command that runs another one while the machine is otherwise idle")
p.add_argument("--only", default="", help="one model's name")
p.add_argument("--front", action="store_true")
p.add_argument("--raw", action="store_true")
p.add_argument("--start", action="store_true")
p.add_argument("--soak", type=float, default=0)
a = p.parse_args()
folder = tempfile.mkdtemp()
# name: input, output, their dims as Triton's config has them
models = {"mnist-cnn": ("Input3", "Plus214_Output_0", "1, 1, 28, 28", "1, 10"),
          "mobilenetv2-fp32": ("input", "output", "-1, 3, 224, 224", "-1, 1000")}
models = {m: v for m, v in models.items() if not a.only or m == a.only}
servers = {}


def hone_server():
    for m in models:
        os.makedirs("%s/hone/%s/1" % (folder, m))
        shutil.copy("%s/%s/model.onnx" % (a.models, m), "%s/hone/%s/1" % (folder, m))
    s = subprocess.Popen([a.hone, "serve", folder + "/hone", "--http", "0", "--grpc", "0", "--metrics", "-1",
                          "--json"], stdout=subprocess.PIPE, text=True)
    ports = json.loads(s.stdout.readline())
    return s, ports["http"], ports["grpc"]


def triton_server():
    site = glob.glob(a.triton + "/lib/python3*/site-packages")[0]
    capi = glob.glob(site + "/onnxruntime/capi/libonnxruntime.so.*")[0]
    back = folder + "/backends/honebench"
    os.makedirs(back)
    shutil.copy(capi, folder + "/libonnxruntime.so.1")
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "serve", "triton_onnx.c")
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-I", a.headers, "-o", back + "/libtriton_honebench.so",
                    source, folder + "/libonnxruntime.so.1",
                    "-Wl,-rpath," + folder], check=True, stderr=subprocess.DEVNULL)
    for m, (i, o, given, made) in models.items():
        os.makedirs("%s/triton/%s/1" % (folder, m))
        shutil.copy("%s/%s/model.onnx" % (a.models, m), "%s/triton/%s/1" % (folder, m))
        with open("%s/triton/%s/config.pbtxt" % (folder, m), "w") as f:
            f.write(
                'name: "%s"\nbackend: "honebench"\nmax_batch_size: 0\ninput { name: "%s" data_type: '
                'TYPE_FP32 dims: [ %s ] }\n'
                    'output { name: "%s" data_type: TYPE_FP32 dims: [ %s ] }\ninstance_group { count: %d '
                    'kind: KIND_CPU }\n'
                    % (m, i, given, o, made, os.cpu_count()))
    http, grpc = 18300, 18301
    s = subprocess.Popen([site + "/pytriton/tritonserver/bin/tritonserver", "--model-repository=" + folder
                          + "/triton", "--backend-directory=" + folder +
                          "/backends", "--http-port=%d" % http, "--grpc-port=%d" % grpc,
                          "--http-address=127.0.0.1", "--grpc-address=127.0.0.1",
                          "--allow-metrics=false"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                         env=dict(os.environ, LD_LIBRARY_PATH=site + "/nvidia_pytriton.libs"))
    for _ in range(120):
        try:
            urllib.request.urlopen("http://127.0.0.1:%d/v2/health/ready" % http)
            return s, http, grpc
        except OSError:
            time.sleep(0.25)
    raise SystemExit("Triton did not start")


def front_server():
    behind = "127.0.0.1:%d,grpc://127.0.0.1:%d" % servers["hone"][1:]
    s = subprocess.Popen([a.hone, "serve", "--front", behind, "--http", "0", "--grpc", "0", "--metrics", "-1",
                          "--json"],
                         stdout=subprocess.PIPE, text=True)
    ports = json.loads(s.stdout.readline())
    status = "http://127.0.0.1:%d/status" % ports["http"]
    while not all(b["ready"] for b in json.load(urllib.request.urlopen(status))["servers"]):
        time.sleep(0.05)
    return s, ports["http"], ports["grpc"]


def raw(model):  # the best of one session on all cores, and of a session a core
    def bench(threads):
        return subprocess.Popen([a.hone, "bench", "%s/%s/model.onnx" % (a.models, model), "--threads",
                                 str(threads), "--seconds", "3", "--json", "--quiet"],
                                stdout=subprocess.PIPE, text=True)

    def rate(ps):
        return sum(json.loads(q.communicate()[0])["throughput_per_s"] for q in ps)
    return rate([bench(os.cpu_count())]), rate([bench(1) for _ in range(os.cpu_count())])


def cpu(pid):
    with open("/proc/%d/stat" % pid) as f:
        fields = f.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def start():
    many = folder + "/many"
    for k in range(10):
        os.makedirs("%s/m%d/1" % (many, k))
        shutil.copy("%s/%s/model.onnx" % (a.models, list(models)[k % len(models)]), "%s/m%d/1" % (many, k))
    for k in range(a.rounds):
        began = time.time()
        s = subprocess.Popen([a.hone, "serve", many, "--http", "0", "--grpc", "0", "--metrics", "0",
                              "--json"], stdout=subprocess.PIPE, text=True)
        port = json.loads(s.stdout.readline())["http"]
        took = time.time() - began
        loads = sum(m["load_s"] for m in json.load(
            urllib.request.urlopen("http://127.0.0.1:%d/status" % port))["models"])
        time.sleep(1)
        before = cpu(s.pid)
        time.sleep(5)
        print(
            "ten models: ready after %.2f s, of which loads %.2f s; idle for 5 s: %.3f s of CPU; %.0f MB" % (
                took, loads, cpu(s.pid) - before, memory(s.pid)), flush=True)
        s.send_signal(signal.SIGTERM)
        s.wait(timeout=40)


def soak():
    s, http, grpc = servers["hone"]
    end, began, requests, errors = time.time() + a.soak, time.time(), 0, 0
    print("soak: %.1f MB" % memory(s.pid))
    while time.time() < end:
        ps = [subprocess.Popen([a.hone, "load", "127.0.0.1:%d" % port, "--model", m, "--concurrency", "4",
                                "--window", "2", "--windows", "5", "--warmup", "0", "--json"] +
                               (["--grpc"] if port == grpc else []), stdout=subprocess.PIPE, text=True)
                               for m in models for port in (http, grpc)]
        for q in ps:
            level = json.loads(q.communicate()[0])["levels"][0]
            requests, errors = requests + level["requests"], errors + level["errors"]
        print("soak: after %3.0f s %.1f MB, %d requests, %d failed" % (time.time() - began, memory(s.pid),
            requests, errors), flush=True)


def memory(pid):
    with open("/proc/%d/statm" % pid) as f:
        return int(f.read().split()[1]) * 4096 / 1e6


def load(server, model, protocol):
    s, http, grpc = servers[server]
    command = a.prefix.split() + [a.hone, "load", "127.0.0.1:%d" % (http if protocol == "HTTP" else grpc),
                                  "--model", model, "--concurrency", a.clients,
                                  "--window", a.window, "--windows", "3", "--warmup", "0.3", "--pid",
                                  str(s.pid), "--json", "--seed", "1"]
    r = subprocess.run(command + (["--grpc"] if protocol == "gRPC" else []), capture_output=True, text=True)
    if r.returncode:
        raise SystemExit("%s, %s over %s: %s%s" % (server, model, protocol, r.stdout, r.stderr))
    return json.loads(r.stdout)["levels"]


try:
    if a.start:
        start()
        raise SystemExit
    servers["hone"] = hone_server()
    if a.soak:
        soak()
        raise SystemExit
    if a.front:
        servers["front"] = front_server()
    raws = {}
    if a.triton:
        servers["Triton"] = triton_server()
    idle = {n: memory(s[0].pid) for n, s in servers.items()}
    got = {}
    for k in range(a.rounds):
        for model in models:
            if a.raw:
                raws.setdefault(model, []).append(raw(model))
            for protocol in "HTTP", "gRPC":
                for name in sorted(servers, reverse=k % 2 == 1):
                    for l in load(name, model, protocol):
                        got.setdefault((model, protocol, int(l["clients"]), name), []).append(l)
        print("round %d of %d" % (k + 1, a.rounds), file=sys.stderr)
    print("%-17s %-4s %7s %-7s %11s %19s %9s %9s %14s %9s" % ("model", "", "clients", "server", "requests/s",
                                                              "(least to most)", "p50 ms", "p99 ms",
                                                              "server CPU us",
                                                             "ratio"))
    for (model, protocol, clients, name), ls in sorted(got.items(),
                                                       key=lambda x: (x[0][0], x[0][1], x[0][2],
                                                                      x[0][3] != "hone")):
        mid = {f: statistics.median(l[f] for l in ls)
               for f in ("requests_per_s", "p50_ms", "p99_ms", "server_cpu_us")}
        rates = [l["requests_per_s"] for l in ls]
        other = got.get((model, protocol, clients, "Triton"))
        ratio = ""
        if other and name == "hone":  # of rounds, which were measured next to each other
            ratio = "%.2f" % statistics.median(x["requests_per_s"] / y["requests_per_s"]
                                               for x, y in zip(ls, other))
        print("%-17s %-4s %7d %-7s %11.1f %19s %9.3f %9.3f %14.1f %9s" % (model, protocol, clients, name,
            mid["requests_per_s"], "(%.0f to %.0f)" % (min(rates), max(rates)),
                                                                       mid["p50_ms"], mid["p99_ms"],
                                                                       mid["server_cpu_us"], ratio))
    for model, rs in raws.items():
        print("%s without a server: %.1f a second in one session on all cores, %.1f in a session a core" % (
            (model,) + tuple(map(statistics.median, zip(*rs)))))
    for n, s in servers.items():
        print("memory of %s: %.0f MB idle, %.0f MB after load" % (n, idle[n], memory(s[0].pid)))
finally:
    for s in servers.values():
        s[0].send_signal(signal.SIGTERM)
        s[0].wait(timeout=40)
    shutil.rmtree(folder, ignore_errors=True)
