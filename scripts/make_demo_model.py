#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the models of examples/: small CNNs that read one drawn character, trained here on characters
that this script draws itself.

    pip install torch onnx onnxscript && scripts/make_demo_model.py characters      (or: digits)

A character is a few strokes in a unit square (STROKES). A drawing bends, shifts, scales, slants and turns
them, takes a pen of some width, and adds noise. The network is trained on such drawings and must read
nearly all of others that it never saw. Written to examples/SET: model.onnx (image f32[batch,1,28,28], 0
paper to 1 ink, to probability f32[batch,classes]), labels.txt, some drawings as pictures (.png) or arrays
(.npy), and test_data_set_0 with the outputs that PyTorch computed.
"""
import math
import pathlib
import struct
import sys
import zlib

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from torch import nn

SIZE, SEED = 28, 7
EXAMPLES = pathlib.Path(__file__).resolve().parent.parent / "examples"
# classes, channels of the three convolutions, whether a third pooling follows, drawings, epochs, what must be
# read right, drawings to keep
SETS = {
    "digits": ("0123456789", (8, 16, 32), False, 10000, 4, 0.98,
               {"three.npy": "3", "seven.npy": "7", "eight.npy": "8"}),
    "characters": ("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ", (16, 32, 64), True, 25000, 6, 0.97,
                   {"h.png": "H", "o.png": "O", "n.png": "N", "e.png": "E"}),  # fmt: skip
}


def arc(x, y, rx, ry, begin, end, n=14):
    """Points on an ellipse around (x, y), from angle `begin` to `end` in degrees; y grows downwards, 0 is
    right, 90 is down."""
    t = np.radians(np.linspace(begin, end, n))
    return list(zip(x + rx * np.cos(t), y + ry * np.sin(t)))


# x from 0 (left) to 1, y from 0 (top) to 1; a list of strokes, each a list of points.
STROKES = {
    "0": [arc(0.5, 0.5, 0.34, 0.5, 0, 360, 24)],
    "1": [[(0.25, 0.22), (0.55, 0.0), (0.55, 1.0)]],
    "2": [arc(0.5, 0.27, 0.33, 0.27, 180, 385) + [(0.15, 1.0), (0.88, 1.0)]],
    "3": [arc(0.45, 0.26, 0.33, 0.26, 200, 450) + arc(0.45, 0.75, 0.36, 0.25, -90, 160)],
    "4": [[(0.62, 1.0), (0.62, 0.0), (0.1, 0.68), (0.92, 0.68)]],
    "5": [[(0.82, 0.0), (0.25, 0.0), (0.2, 0.45)] + arc(0.46, 0.69, 0.36, 0.31, -125, 140)],
    "6": [[(0.72, 0.0), (0.35, 0.32)] + arc(0.5, 0.7, 0.34, 0.3, 200, 560, 22)],
    "7": [[(0.12, 0.0), (0.88, 0.0), (0.4, 1.0)]],
    "8": [arc(0.5, 0.25, 0.28, 0.25, 90, 450, 20), arc(0.5, 0.75, 0.35, 0.25, -90, 270, 20)],
    "9": [arc(0.5, 0.3, 0.33, 0.3, 20, 380, 22) + [(0.8, 0.5), (0.55, 1.0)]],
    "A": [[(0.08, 1.0), (0.5, 0.0), (0.92, 1.0)], [(0.24, 0.64), (0.76, 0.64)]],
    "B": [[(0.18, 0.0), (0.18, 1.0)], [(0.18, 0.0)] + arc(0.5, 0.24, 0.28, 0.24, -90, 90) + [(0.18, 0.48)]
          + arc(0.5, 0.74, 0.34, 0.26, -90, 90) + [(0.18, 1.0)]],
    "C": [arc(0.55, 0.5, 0.42, 0.5, -50, -310, 20)],
    "D": [[(0.16, 0.0), (0.16, 1.0)], [(0.16, 0.0), (0.35, 0.0)] + arc(0.38, 0.5, 0.48, 0.5, -90, 90)
          + [(0.16, 1.0)]],
    "E": [[(0.85, 0.0), (0.18, 0.0), (0.18, 1.0), (0.85, 1.0)], [(0.18, 0.48), (0.7, 0.48)]],
    "F": [[(0.85, 0.0), (0.18, 0.0), (0.18, 1.0)], [(0.18, 0.48), (0.7, 0.48)]],
    "G": [arc(0.55, 0.5, 0.42, 0.5, -50, -330, 20) + [(0.93, 0.55), (0.58, 0.55)]],
    "H": [[(0.14, 0.0), (0.14, 1.0)], [(0.86, 0.0), (0.86, 1.0)], [(0.14, 0.5), (0.86, 0.5)]],
    "I": [[(0.5, 0.0), (0.5, 1.0)], [(0.25, 0.0), (0.75, 0.0)], [(0.25, 1.0), (0.75, 1.0)]],
    "J": [[(0.35, 0.0), (0.9, 0.0)], [(0.68, 0.0), (0.68, 0.7)] + arc(0.42, 0.72, 0.26, 0.28, 0, 170)],
    "K": [[(0.16, 0.0), (0.16, 1.0)], [(0.85, 0.0), (0.16, 0.56)], [(0.38, 0.4), (0.88, 1.0)]],
    "L": [[(0.2, 0.0), (0.2, 1.0), (0.85, 1.0)]],
    "M": [[(0.08, 1.0), (0.12, 0.0), (0.5, 0.62), (0.88, 0.0), (0.92, 1.0)]],
    "N": [[(0.14, 1.0), (0.14, 0.0), (0.86, 1.0), (0.86, 0.0)]],
    "O": [arc(0.5, 0.5, 0.45, 0.5, 0, 360, 24)],
    "P": [[(0.18, 1.0), (0.18, 0.0), (0.5, 0.0)] + arc(0.52, 0.27, 0.33, 0.27, -90, 90) + [(0.18, 0.54)]],
    "Q": [arc(0.48, 0.47, 0.42, 0.47, 0, 360, 24), [(0.55, 0.66), (0.95, 1.02)]],
    "R": [[(0.18, 1.0), (0.18, 0.0), (0.5, 0.0)] + arc(0.52, 0.26, 0.32, 0.26, -90, 90) + [(0.18, 0.52)],
          [(0.48, 0.52), (0.88, 1.0)]],
    "S": [arc(0.5, 0.26, 0.34, 0.26, -30, -270, 16) + arc(0.5, 0.75, 0.36, 0.25, -90, 150, 16)],
    "T": [[(0.06, 0.0), (0.94, 0.0)], [(0.5, 0.0), (0.5, 1.0)]],
    "U": [[(0.14, 0.0), (0.14, 0.62)] + arc(0.5, 0.64, 0.36, 0.36, 180, 0) + [(0.86, 0.62), (0.86, 0.0)]],
    "V": [[(0.08, 0.0), (0.5, 1.0), (0.92, 0.0)]],
    "W": [[(0.02, 0.0), (0.25, 1.0), (0.5, 0.35), (0.75, 1.0), (0.98, 0.0)]],
    "X": [[(0.1, 0.0), (0.9, 1.0)], [(0.9, 0.0), (0.1, 1.0)]],
    "Y": [[(0.08, 0.0), (0.5, 0.48), (0.92, 0.0)], [(0.5, 0.48), (0.5, 1.0)]],
    "Z": [[(0.12, 0.0), (0.88, 0.0), (0.12, 1.0), (0.88, 1.0)], [(0.3, 0.5), (0.7, 0.5)]],
}
BESIDE_LETTERS = {  # digits as they are written where letters stand beside them
    "0": [arc(0.5, 0.5, 0.34, 0.5, 0, 360, 24), [(0.72, 0.16), (0.28, 0.84)]],
    "1": [[(0.22, 0.24), (0.52, 0.0), (0.52, 1.0)], [(0.22, 1.0), (0.82, 1.0)]],
}


def draw(strokes, rng):
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
    for stroke in strokes:
        p = np.array(stroke) - 0.5
        p = p + np.stack([wave[0, 0] * np.sin(6 * p[:, 1] + wave[0, 1] * 60),
                          wave[1, 0] * np.sin(6 * p[:, 0] + wave[1, 1] * 60)], -1)
        p = np.stack([(p[:, 0] - slant * p[:, 1]) * width, p[:, 1] * height], -1) @ rotate.T + middle
        a, d = p[:-1], p[1:] - p[:-1]
        along = np.clip(((pixel - a) * d).sum(-1) / np.maximum((d * d).sum(-1), 1e-9), 0, 1)
        nearest = np.minimum(nearest, np.linalg.norm(pixel - a - along[..., None] * d, axis=-1).min(1))
    ink = np.clip((pen + soft - nearest) / (2 * soft), 0, 1) * rng.uniform(0.75, 1)
    return np.clip(ink + rng.normal(0, rng.uniform(0, 0.08), ink.shape), 0, 1).reshape(SIZE,
        SIZE).astype(np.float32)


def drawings(strokes, n, rng):
    label = rng.integers(0, len(strokes), n)
    return torch.from_numpy(np.stack(
        [draw(strokes[d], rng) for d in label])[:, None]), torch.from_numpy(label)


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def save(path, picture):
    """Writes one drawing, and returns what a reader of the file will see: a picture has 256 shades."""
    if path.suffix == ".npy":
        np.save(path, picture)
        return picture
    shade = np.rint(picture * 255).astype(np.uint8)
    rows = b"".join(b"\0" + row.tobytes() for row in shade)  # 0: the row as it is
    head = struct.pack(">IIBBBBB", SIZE, SIZE, 8, 0, 0, 0, 0)  # 8 bits, gray
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows, 9))
                     + chunk(b"IEND", b""))
    return shade.astype(np.float32) / 255


def network(channels, pool, classes):
    a, b, c = channels
    side = SIZE // 8 if pool else SIZE // 4
    return nn.Sequential(
        nn.Conv2d(1, a, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(a, b, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(b, c, 3, padding=1), nn.ReLU(), *([nn.MaxPool2d(2)] if pool else []), nn.Flatten(),
        nn.Linear(c * side * side, classes))  # fmt: skip


def train(body, strokes, n, epochs, rng):
    images, labels = drawings(strokes, n, rng)
    unseen, answers = drawings(strokes, 3000, rng)
    optimizer = torch.optim.Adam(body.parameters(), lr=2e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    for epoch in range(epochs):
        order = torch.randperm(n)
        for at in range(0, n, 64):
            pick = order[at : at + 64]
            loss = nn.functional.cross_entropy(body(images[pick]), labels[pick])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        schedule.step()
        with torch.no_grad():
            right = (body(unseen).argmax(1) == answers).float().mean().item()
        print(f"epoch {epoch + 1} of {epochs}: {100 * right:.2f} % of 3000 unseen drawings read right",
              flush=True)
    return images, right


def export(model, sample, name, path):
    torch.onnx.export(model, (sample,), str(path), input_names=["image"], output_names=["probability"],
                      opset_version=18, dynamo=True,
                      external_data=False, dynamic_shapes=({0: torch.export.Dim("batch")},), verbose=False)
    made = onnx.load(str(path))
    made.graph.name = name
    for node in made.graph.node:  # the exporter notes paths of its own source here
        del node.metadata_props[:]
        node.doc_string = ""
    for value in [*made.graph.input, *made.graph.output, *made.graph.value_info, *made.graph.initializer]:
        del value.metadata_props[:]
    del made.graph.metadata_props[:]
    del made.metadata_props[:]
    onnx.checker.check_model(made)
    onnx.save(made, str(path))


def main():
    name = sys.argv[1] if len(sys.argv) == 2 else ""
    if name not in SETS:
        sys.exit(f"usage: make_demo_model.py {'|'.join(SETS)}")
    classes, channels, pool, n, epochs, enough, keep = SETS[name]
    shapes = STROKES if name == "digits" else STROKES | BESIDE_LETTERS
    rng = np.random.default_rng(SEED)
    torch.manual_seed(SEED)
    torch.set_num_threads(1)  # the same model on every machine
    body = network(channels, pool, len(classes))
    images, right = train(body, [shapes[c] for c in classes], n, epochs, rng)
    if right < enough:
        sys.exit(f"the network reads less than {100 * enough:.0f} % of unseen drawings: nothing was written")

    model = nn.Sequential(body, nn.Softmax(1)).eval()
    folder = EXAMPLES / name
    data = folder / "test_data_set_0"
    data.mkdir(parents=True, exist_ok=True)
    export(model, images[:2], name, folder / "model.onnx")
    (folder / "labels.txt").write_text("".join(f"{c}\n" for c in classes))
    chosen = torch.from_numpy(np.stack(
        [save(folder / file, draw(shapes[c], rng)) for file, c in keep.items()])[:, None])
    with torch.no_grad():
        wanted = model(chosen)
    print("the examples are read as", [classes[k] for k in wanted.argmax(1)], "for sure to",
          [round(p, 4) for p in wanted.max(1).values.tolist()])
    (data / "input_0.pb").write_bytes(numpy_helper.from_array(chosen.numpy(), "image").SerializeToString())
    (data / "output_0.pb").write_bytes(
        numpy_helper.from_array(wanted.numpy(), "probability").SerializeToString())


if __name__ == "__main__":
    main()
