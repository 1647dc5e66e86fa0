# SPDX-License-Identifier: Apache-2.0
"""The peers that are reached through PyTorch: cuDNN's convolutions and attention, FlashAttention, norms
and softmax. A process that the harness starts: `make NAME SPEC` prepares a CUDA graph of 20 calls, `go
NAME` replays it and answers with microseconds a call."""
import sys

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

CALLS = 20
torch.backends.cudnn.benchmark = True
torch.set_grad_enabled(False)
graphs = {}


def image(b, c, h):
    return torch.randn(b, c, h, h, device="cuda", dtype=torch.half).to(memory_format=torch.channels_last)


def make(name, v):
    if name in ("conv", "depthwise"):
        if name == "conv":
            b, c, h, o, k, s, p = v
            g = 1
        else:
            b, c, h, s = v
            o, k, p, g = c, 3, 1, c
        x, w = image(b, c, h), torch.randn(o, c // g, k, k, device="cuda",
                                           dtype=torch.half).to(memory_format=torch.channels_last)
        return lambda: F.conv2d(x, w, stride=s, padding=p, groups=g)
    if name in ("cudnn", "flash"):
        b, h, kv, q, k, d, causal = v
        tq = torch.randn(b, h, q, d, device="cuda", dtype=torch.half)
        tk, tv = (torch.randn(b, kv, k, d, device="cuda", dtype=torch.half) for _ in "kv")
        backend = SDPBackend.CUDNN_ATTENTION if name == "cudnn" else SDPBackend.FLASH_ATTENTION

        def run():
            with sdpa_kernel(backend):
                return F.scaled_dot_product_attention(tq, tk, tv, is_causal=bool(causal), enable_gqa=h != kv)

        return run
    rows, columns = v
    x = torch.randn(rows, columns, device="cuda", dtype=torch.half)
    weight, bias = (torch.randn(columns, device="cuda", dtype=torch.half) for _ in "wb")
    if name == "layer_norm":
        return lambda: F.layer_norm(x, (columns,), weight, bias)
    return lambda: torch.softmax(x, -1)


def record(run):
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            run()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(CALLS):
            run()
    return graph


def go(graph):
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in "be")
    graph.replay()
    begin.record()
    graph.replay()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) * 1e3 / CALLS


for line in sys.stdin:
    verb, name, *spec = line.split()
    try:
        if verb == "make":
            graphs.pop(name, None)
            torch.cuda.empty_cache()
            run = make(name, [int(s) for s in spec])
            graphs[name] = record(run), run  # what the graph reads lives as long as it does
            answer = "ok"
        else:
            answer = f"{go(graphs[name][0]):.4f}"
    except Exception as e:  # the harness says that this peer is absent
        answer = "no: " + str(e).split("\n")[0]
    print(answer, flush=True)
