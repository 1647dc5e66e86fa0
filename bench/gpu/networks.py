#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whole networks on an NVIDIA GPU beside PyTorch, in one run and in turns:

    networks.py HONE [--batch 1,32] [--nets resnet50,...] [--precision f16|tf32|int8] [--rounds 3] [--out DIR]

Inputs and outputs stay on the GPU. Hone: `hone bench --device cuda --resident`, of the model as torch exports
it (exported below), else of the same architecture in its zoo. PyTorch: channels last, cudnn.benchmark, eager
and as a CUDA graph; with --precision tf32 both compute f32 values with tf32 products. With int8 the model is
what ONNX Runtime's quantize_static makes of the export (u8 activations, s8 weights a channel), beside Hone's
own f16 of the same network. A table of medians of the rounds: ms, PyTorch's time over ours, samples a second,
and the most memory that either takes on the GPU, its context included."""

import argparse
import json
import os
import statistics
import subprocess
import threading
import time

import torch

torch.set_grad_enabled(False)
torch.backends.cudnn.benchmark = True


class Ids(torch.nn.Module):
    """A transformer as a function of its ids alone. A mask of ones where it is an encoder, and for the
    exporter, which cannot say what a decoder does without one."""

    def __init__(self, model, mask=False):
        super().__init__()
        self.model, self.mask = model, mask

    def forward(self, ids):
        more = {"attention_mask": torch.ones_like(ids)} if self.mask or torch.onnx.is_in_onnx_export() else {}
        out = self.model(ids, **more)
        return out.logits if hasattr(out, "logits") else out.last_hidden_state


class Tokens(torch.nn.Module):
    """The zoo's lstm: two layers of LSTM over embedded tokens, the last state to classes."""

    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(10000, 128)
        self.lstm = torch.nn.LSTM(128, 256, 2, batch_first=True)
        self.head = torch.nn.Linear(256, 10)

    def forward(self, ids):
        return self.head(self.lstm(self.embed(ids))[0][:, -1])


def vision(name):
    import torchvision

    return getattr(torchvision.models, name)(weights=None).eval()


def bert():
    from transformers import BertConfig, BertModel

    return Ids(BertModel(BertConfig(attn_implementation="sdpa")).eval(), mask=True)


def gpt2(head):
    from transformers import GPT2Config, GPT2LMHeadModel, GPT2Model

    return Ids((GPT2LMHeadModel if head else GPT2Model)(GPT2Config(use_cache=False)).eval())


def image(size):
    return lambda batch: torch.randn(batch, 3, size, size)


def ids(tokens, below=10000):
    return lambda batch: torch.randint(0, below, (batch, tokens))


NETS = {  # how PyTorch makes it, its input, and Hone's zoo:NAME; None: what torch exports
    "resnet50": (lambda: vision("resnet50"), image(224), None),
    "mobilenet_v2": (lambda: vision("mobilenet_v2"), image(224), None),
    "bert_base": (bert, ids(128), None),
    "vit_b_16": (lambda: vision("vit_b_16"), image(224), None),
    "gpt2_512": (lambda: gpt2(False), ids(512), None),
    "convnext_tiny": (lambda: vision("convnext_tiny"), image(224), None),
    "swin_t": (lambda: vision("swin_t"), image(224), None),
    "resnet18": (lambda: vision("resnet18"), image(224), "resnet18"),
    "mobilenet_v3_small": (lambda: vision("mobilenet_v3_small"), image(224), "mobilenet_v3_small"),
    "efficientnet_b0": (lambda: vision("efficientnet_b0"), image(224), "efficientnet_b0"),
    "densenet121": (lambda: vision("densenet121"), image(224), "densenet121"),
    "shufflenet_v2": (lambda: vision("shufflenet_v2_x1_0"), image(224), "shufflenet_v2"),
    "squeezenet1_1": (lambda: vision("squeezenet1_1"), image(224), "squeezenet1_1"),
    "vgg16": (lambda: vision("vgg16"), image(224), "vgg16"),
    "inception": (lambda: vision("inception_v3"), image(299), "inception"),
    "gpt2": (lambda: gpt2(True), ids(128), "gpt2"),
    "lstm": (Tokens, ids(64), "lstm"),
}


def exported(name, model, make, folder):
    path = os.path.join(folder, name + ".onnx")
    if not os.path.exists(path):
        torch.backends.mha.set_fastpath_enabled(False)  # which has no name in ONNX
        torch.onnx.export(
            model,
            (make(2),),
            path,
            input_names=["x"],
            output_names=["y"],
            dynamic_axes={"x": {0: "batch"}, "y": {0: "batch"}},
            opset_version=17,
            dynamo=False,
        )
        torch.backends.mha.set_fastpath_enabled(True)
    return path


def quantized(path, make):
    from onnxruntime import quantization as q

    to = path[:-5] + ".qdq.onnx"

    class Samples(q.CalibrationDataReader):

        def __init__(self):
            self.left = [{"x": make(1).numpy()} for _ in range(2)]

        def get_next(self):
            return self.left.pop() if self.left else None

    if not os.path.exists(to):
        q.quantize_static(path, to, Samples(), per_channel=True)
    return to


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


class Taken:
    """The most memory of the GPU that others take meanwhile, in bytes."""

    def __enter__(self):
        self.before = self.least = torch.cuda.mem_get_info()[0]
        self.on = True
        self.thread = threading.Thread(target=self.look)
        self.thread.start()
        return self

    def look(self):
        while self.on:
            self.least = min(self.least, torch.cuda.mem_get_info()[0])
            time.sleep(0.01)

    def __exit__(self, *_):
        self.on = False
        self.thread.join()
        self.bytes = self.before - self.least


def hone(binary, model, batch, precision):
    with Taken() as t:
        out = subprocess.run(
            [
                binary,
                "bench",
                model,
                "--device",
                "cuda",
                "--precision",
                precision,
                "--resident",
                "--batch",
                str(batch),
                "--seconds",
                "0.3",
                "--json",
            ],
            capture_output=True,
            text=True,
            timeout=150,
        )
    if out.returncode:
        raise RuntimeError(out.stdout.strip() + out.stderr.strip())
    return json.loads(out.stdout)["median_ms"], t.bytes


def used():
    """Bytes of the GPU in use; None: no one says."""
    try:
        out = subprocess.run(
            ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"],
            capture_output=True,
            text=True,
            timeout=20,
        )
        return int(out.stdout.split()[0]) << 20
    except (OSError, ValueError, IndexError, subprocess.TimeoutExpired):
        return None


def against_torch(a, net, context):
    make, sample, zoo = NETS[net]
    tf32 = a.precision == "tf32"
    model = make()
    path = "zoo:" + zoo if zoo else exported(net, model, sample, a.out)
    model = (model if tf32 else model.half()).cuda()
    if sample(1).dim() == 4:
        model = model.to(memory_format=torch.channels_last)
    for batch in map(int, a.batch.split(",")):
        x = sample(batch).cuda()
        if x.dim() == 4:
            x = (x if tf32 else x.half()).to(memory_format=torch.channels_last)
        replay = None
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        try:
            replay = graphed(model, (x,))
        except Exception as e:  # a network that cannot be captured is still run eagerly
            print(f"# {net}: no graph: {str(e).splitlines()[0]}")
            torch.cuda.synchronize()
        ours, eager, graph = [], [], []
        for _ in range(a.rounds):
            ours.append(hone(a.hone, path, batch, a.precision))
            eager.append(timed(lambda: model(x)))
            if replay:
                graph.append(timed(replay))
        h, e = statistics.median(o[0] for o in ours), statistics.median(eager)
        g = statistics.median(graph) if graph else float("nan")
        mine, theirs = max(o[1] for o in ours) / 1e6, (context + torch.cuda.max_memory_reserved()) / 1e6
        print(
            f"{net:19} {batch:5} {h:8.3f} {e:8.3f} {g:8.3f} {e / h:10.2f} {g / h:10.2f} "
            f"{batch / h * 1e3:9.0f} "
            f"{batch / g * 1e3:9.0f} {mine:8.0f} {theirs:8.0f}  "
            f"{100 * (max(ours)[0] - min(ours)[0]) / h:.0f} %",
            flush=True,
        )
        yield batch, e / h, g / h
        del replay, x
    del model
    torch.cuda.empty_cache()


def against_halves(a, net):
    make, sample, _ = NETS[net]
    path = exported(net, make(), sample, a.out)
    small = quantized(path, sample)
    for batch in map(int, a.batch.split(",")):
        times = [
            (hone(a.hone, small, batch, "f16"), hone(a.hone, path, batch, "f16")) for _ in range(a.rounds)
        ]
        q, h = (statistics.median(t[k][0] for t in times) for k in (0, 1))
        print(f"{net:19} {batch:5} {q:8.3f} {h:8.3f} {h / q:10.2f} {batch / q * 1e3:9.0f}", flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("hone")
    p.add_argument("--batch", default="1,32")
    p.add_argument("--nets", default=",".join(NETS))
    p.add_argument("--precision", default="f16", choices=("f16", "tf32", "int8"))
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--out", default="networks")
    a = p.parse_args()
    os.makedirs(a.out, exist_ok=True)
    if a.precision == "int8":
        print(f"{'network':19} {'batch':>5} {'int8 ms':>8} {'f16 ms':>8} {'f16/int8':>10} {'int8 1/s':>9}")
        for net in a.nets.split(","):
            against_halves(a, net)
        return
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    before = used()
    torch.zeros(1, device="cuda")
    context = max(0, used() - before) if before is not None else 0
    print(
        f"{'network':19} {'batch':>5} {'hone ms':>8} {'eager':>8} {'graph':>8} {'eager/hone':>10} "
        f"{'graph/hone':>10} {'hone 1/s':>9} {'graph 1/s':>9} {'hone MB':>8} {'torch MB':>8}  "
        "spread of hone's"
    )
    ratios = {}
    for net in a.nets.split(","):
        try:
            for batch, e, g in against_torch(a, net, context):
                ratios.setdefault(batch, []).append((e, g))
        except Exception as e:
            print(f"{net:19} {e}", flush=True)
    for batch, r in ratios.items():
        print(
            f"batch {batch}: geometric means of {len(r)}: eager/hone "
            f"{statistics.geometric_mean(x for x, _ in r):.2f}, graph/hone "
            f"{statistics.geometric_mean([y for _, y in r if y == y] or [1]):.2f}; least eager/hone "
            f"{min(x for x, _ in r):.2f}"
        )


if __name__ == "__main__":
    main()
