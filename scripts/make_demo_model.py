#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes examples/digits: a small CNN that reads digits, trained here on digits that this script draws itself.

    pip install torch onnx onnxscript && scripts/make_demo_model.py

Each digit is a few strokes in a unit square (STROKES). A drawing bends, shifts, scales, slants and turns them, takes a pen of some width, and adds noise. The network
is trained on such drawings and must read more than 98 % of others that it never saw. Written: model.onnx (image f32[batch,1,28,28] to probability f32[batch,10]),
three drawings as NAME.npy (f32[28,28], NAME says the digit), and test_data_set_0 with the outputs that PyTorch computed.
"""
import math
import pathlib
import sys

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from torch import nn

SIZE, SEED, TRAIN, HELD_OUT, EPOCHS = 28, 7, 10000, 3000, 4
FOLDER = pathlib.Path(__file__).resolve().parent.parent / "examples" / "digits"
EXAMPLES = {"three": 3, "seven": 7, "eight": 8}


def arc(x, y, rx, ry, begin, end, n=14):
    """Points on an ellipse around (x, y), from angle `begin` to `end` in degrees; y grows downwards, 0 is right, 90 is down."""
    t = np.radians(np.linspace(begin, end, n))
    return list(zip(x + rx * np.cos(t), y + ry * np.sin(t)))


# x from 0 (left) to 1, y from 0 (top) to 1; a list of strokes, each a list of points.
STROKES = [
    [arc(0.5, 0.5, 0.34, 0.5, 0, 360, 24)],
    [[(0.25, 0.22), (0.55, 0.0), (0.55, 1.0)]],
    [arc(0.5, 0.27, 0.33, 0.27, 180, 385) + [(0.15, 1.0), (0.88, 1.0)]],
    [arc(0.45, 0.26, 0.33, 0.26, 200, 450) + arc(0.45, 0.75, 0.36, 0.25, -90, 160)],
    [[(0.62, 1.0), (0.62, 0.0), (0.1, 0.68), (0.92, 0.68)]],
    [[(0.82, 0.0), (0.25, 0.0), (0.2, 0.45)] + arc(0.46, 0.69, 0.36, 0.31, -125, 140)],
    [[(0.72, 0.0), (0.35, 0.32)] + arc(0.5, 0.7, 0.34, 0.3, 200, 560, 22)],
    [[(0.12, 0.0), (0.88, 0.0), (0.4, 1.0)]],
    [arc(0.5, 0.25, 0.28, 0.25, 90, 450, 20), arc(0.5, 0.75, 0.35, 0.25, -90, 270, 20)],
    [arc(0.5, 0.3, 0.33, 0.3, 20, 380, 22) + [(0.8, 0.5), (0.55, 1.0)]],
]


def draw(digit, rng):
    """One drawing: f32[28,28] from 0 (paper) to 1 (ink)."""
    height = rng.uniform(15, 22)
    width = height * rng.uniform(0.5, 0.85)
    turn, slant = math.radians(rng.uniform(-12, 12)), rng.uniform(-0.3, 0.3)
    middle = np.array([SIZE / 2 + rng.uniform(-2.5, 2.5), SIZE / 2 + rng.uniform(-2.5, 2.5)])
    rotate = np.array([[math.cos(turn), -math.sin(turn)], [math.sin(turn), math.cos(turn)]])
    wave = rng.uniform(-0.05, 0.05, size=(2, 2))  # bends: each coordinate by a slow sine of the other
    pen, soft = rng.uniform(0.7, 1.7), rng.uniform(0.5, 0.9)
    y, x = np.mgrid[0:SIZE, 0:SIZE]
    pixel = np.stack([x, y], -1).reshape(-1, 1, 2) + 0.5
    nearest = np.full(SIZE * SIZE, np.inf)
    for stroke in STROKES[digit]:
        p = np.array(stroke) - 0.5
        p = p + np.stack([wave[0, 0] * np.sin(6 * p[:, 1] + wave[0, 1] * 60), wave[1, 0] * np.sin(6 * p[:, 0] + wave[1, 1] * 60)], -1)
        p = np.stack([(p[:, 0] - slant * p[:, 1]) * width, p[:, 1] * height], -1) @ rotate.T + middle
        a, d = p[:-1], p[1:] - p[:-1]
        along = np.clip(((pixel - a) * d).sum(-1) / np.maximum((d * d).sum(-1), 1e-9), 0, 1)
        nearest = np.minimum(nearest, np.linalg.norm(pixel - a - along[..., None] * d, axis=-1).min(1))
    ink = np.clip((pen + soft - nearest) / (2 * soft), 0, 1) * rng.uniform(0.75, 1)
    return np.clip(ink + rng.normal(0, rng.uniform(0, 0.08), ink.shape), 0, 1).reshape(SIZE, SIZE).astype(np.float32)


def drawings(n, rng):
    label = rng.integers(0, 10, n)
    return torch.from_numpy(np.stack([draw(d, rng) for d in label])[:, None]), torch.from_numpy(label)


def main():
    rng = np.random.default_rng(SEED)
    torch.manual_seed(SEED)
    torch.set_num_threads(1)  # the same model on every machine
    images, labels = drawings(TRAIN, rng)
    unseen, answers = drawings(HELD_OUT, rng)
    body = nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(32 * 7 * 7, 10))  # fmt: skip
    optimizer = torch.optim.Adam(body.parameters(), lr=2e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS)
    for epoch in range(EPOCHS):
        order = torch.randperm(TRAIN)
        for at in range(0, TRAIN, 64):
            pick = order[at : at + 64]
            loss = nn.functional.cross_entropy(body(images[pick]), labels[pick])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        schedule.step()
        with torch.no_grad():
            right = (body(unseen).argmax(1) == answers).float().mean().item()
        print(f"epoch {epoch + 1} of {EPOCHS}: {100 * right:.2f} % of {HELD_OUT} unseen drawings read right", flush=True)
    if right < 0.98:
        sys.exit("the network reads less than 98 % of unseen drawings: nothing was written")

    model = nn.Sequential(body, nn.Softmax(1)).eval()
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / "model.onnx"
    torch.onnx.export(model, (images[:2],), str(path), input_names=["image"], output_names=["probability"], opset_version=18, dynamo=True,
                      external_data=False, dynamic_shapes=({0: torch.export.Dim("batch")},), verbose=False)  # fmt: skip
    made = onnx.load(str(path))
    made.graph.name = "digits"
    for node in made.graph.node:  # the exporter notes paths of its own source here
        del node.metadata_props[:]
        node.doc_string = ""
    for value in [*made.graph.input, *made.graph.output, *made.graph.value_info, *made.graph.initializer]:
        del value.metadata_props[:]
    del made.graph.metadata_props[:]
    del made.metadata_props[:]
    onnx.checker.check_model(made)
    onnx.save(made, str(path))

    for name, digit in EXAMPLES.items():
        np.save(FOLDER / f"{name}.npy", draw(digit, rng))
    chosen = torch.from_numpy(np.stack([np.load(FOLDER / f"{name}.npy") for name in EXAMPLES])[:, None])
    data = FOLDER / "test_data_set_0"
    data.mkdir(exist_ok=True)
    with torch.no_grad():
        wanted = model(chosen)
    print("the examples are read as", wanted.argmax(1).tolist(), "for sure to", [round(p, 4) for p in wanted.max(1).values.tolist()])
    (data / "input_0.pb").write_bytes(numpy_helper.from_array(chosen.numpy(), "image").SerializeToString())
    (data / "output_0.pb").write_bytes(numpy_helper.from_array(wanted.numpy(), "probability").SerializeToString())


if __name__ == "__main__":
    main()
