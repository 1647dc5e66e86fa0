#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whole networks on an NVIDIA GPU beside PyTorch, in one run and in turns:  networks.py HONE [--batch 1,32]
[--nets resnet50,...] [--rounds 3]
f16, inputs and outputs on the GPU. Hone: `hone bench --device cuda --precision f16 --resident`, networks
of its zoo. PyTorch: the same architectures from torchvision and transformers, channels last,
cudnn.benchmark, eager and as a CUDA graph. A table of medians of the rounds: ms, and PyTorch's time over
ours."""
import argparse
import json
import statistics
import subprocess
import time

import torch

torch.set_grad_enabled(False)
torch.backends.cudnn.benchmark = True


def vision(name, size=224):
    import torchvision

    model = getattr(torchvision.models,
                    name)(weights=None).eval().half().cuda().to(memory_format=torch.channels_last)
    return lambda b: (model, (torch.randn(b, 3, size, size, device="cuda",
                                          dtype=torch.half).to(memory_format=torch.channels_last),))


def bert():
    from transformers import BertConfig, BertModel

    model = BertModel(BertConfig()).eval().half().cuda()

    def make(b):
        ids = torch.randint(0, 30000, (b, 128), device="cuda")
        mask = torch.ones(b, 128, device="cuda", dtype=torch.long)
        return lambda x: model(x, attention_mask=mask).last_hidden_state, (ids,)

    return make


def gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel

    model = GPT2LMHeadModel(GPT2Config()).eval().half().cuda()
    return lambda b: (lambda x: model(x, use_cache=False).logits,
                      (torch.randint(0, 50000, (b, 128), device="cuda"),))


NETS = {  # Hone's name: how PyTorch makes it
    "resnet50": lambda: vision("resnet50"),
    "resnet18": lambda: vision("resnet18"),
    "mobilenet_v2": lambda: vision("mobilenet_v2"),
    "mobilenet_v3_small": lambda: vision("mobilenet_v3_small"),
    "efficientnet_b0": lambda: vision("efficientnet_b0"),
    "densenet121": lambda: vision("densenet121"),
    "shufflenet_v2": lambda: vision("shufflenet_v2_x1_0"),
    "squeezenet1_1": lambda: vision("squeezenet1_1"),
    "vgg16": lambda: vision("vgg16"),
    "inception": lambda: vision("inception_v3", 299),
    "vit_b16": lambda: vision("vit_b_16"),
    "bert_base": bert,
    "gpt2": gpt2,
}


def timed(run, seconds=0.25, least=8):
    """Median milliseconds of a run that is waited for."""
    for _ in range(3):
        run()
    torch.cuda.synchronize()
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < least:
        begun = time.perf_counter()
        run()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - begun) * 1e3)
    return statistics.median(times)


def graphed(model, inputs):
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            model(*inputs)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        model(*inputs)
    return graph.replay


def hone(binary, net, batch):
    out = subprocess.run(
        [binary, "bench", f"zoo:{net}", "--device", "cuda", "--precision", "f16", "--resident", "--batch",
         str(batch), "--seconds", "0.3", "--json"],
        capture_output=True, text=True, timeout=100)
    if out.returncode:
        raise RuntimeError(out.stdout.strip() + out.stderr.strip())
    return json.loads(out.stdout)["median_ms"]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("hone")
    p.add_argument("--batch", default="1,32")
    p.add_argument("--nets", default=",".join(NETS))
    p.add_argument("--rounds", type=int, default=3)
    a = p.parse_args()
    print(
        f"{'network':20} {'batch':>5} {'hone ms':>9} {'eager ms':>9} {'graph ms':>9} {'eager/hone':>10} "
        f"{'graph/hone':>10}  spread of hone's")
    ratios = {}
    for net in a.nets.split(","):
        make = NETS[net]()
        for batch in map(int, a.batch.split(",")):
            model, inputs = make(batch)
            try:
                replay = graphed(model, inputs)
            except Exception as e:  # a network that cannot be captured is still run eagerly
                replay = None
                print(f"# {net}: no graph: {str(e).splitlines()[0]}")
                torch.cuda.synchronize()
            ours, eager, graph = [], [], []
            try:
                for _ in range(a.rounds):
                    ours.append(hone(a.hone, net, batch))
                    eager.append(timed(lambda: model(*inputs)))
                    if replay:
                        graph.append(timed(replay))
            except Exception as e:
                print(f"{net:20} {batch:5}  {e}")
                continue
            h, e, g = statistics.median(ours), statistics.median(eager), statistics.median(
                graph) if graph else float("nan")
            print(
                f"{net:20} {batch:5} {h:9.3f} {e:9.3f} {g:9.3f} {e / h:10.2f} {g / h:10.2f}  "
                f"{100 * (max(ours) - min(ours)) / h:.0f} %", flush=True)
            ratios.setdefault(batch, []).append((e / h, g / h))
        del make, model, inputs, replay
        torch.cuda.empty_cache()
    for batch, r in ratios.items():
        print(
            f"batch {batch}: geometric means of {len(r)}: eager/hone "
            f"{statistics.geometric_mean(x for x, _ in r):.2f}, "
              f"graph/hone {statistics.geometric_mean(y for _, y in r if y == y):.2f}; least eager/hone "
              f"{min(x for x, _ in r):.2f}")


if __name__ == "__main__":
    main()
