#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Stands where `hone compare --python` wants a Python, and says that every runtime is there. Each
misbehaves in its own way:

    ort       answers as HONE_FAKE_ANSWER (a folder with output_K.npy) says, which is right
    openvino  answers too, but with another number
    torch     hangs while it loads
    mnn       crashes at its first run
    ncnn      says something that is no answer
    tvm       does not take the model
The words behind its name are those that compare.py gets, after that file's own name."""
import glob, os, shutil, signal, sys, time


def say(text):
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def answer(name, folder):
    files = sorted(glob.glob(os.path.join(os.environ["HONE_FAKE_ANSWER"], "output_*.npy")))
    for k, file in enumerate(files):
        to = os.path.join(folder, f"out_{k}.npy")
        shutil.copyfile(file, to)
        if name == "openvino":
            with open(to, "r+b") as f:  # the sign of the last f32
                f.seek(-1, os.SEEK_END)
                top = f.read(1)[0]
                f.seek(-1, os.SEEK_END)
                f.write(bytes([0x40 if top < 0x40 else top ^ 0x80]))
    return len(files)


def work(name, folder):
    if name == "torch":
        time.sleep(1000)
    if name == "ncnn":
        say("Hello! \x07 I am not what you think.")
        time.sleep(1000)
    if name == "tvm":
        return say("cannot there is no such op")
    print("runtimes print things", file=sys.stderr)
    say('{"worker": 1}')
    if sys.stdin.readline() != "load\n":
        return
    if name == "mnn":
        os.kill(os.getpid(), signal.SIGSEGV)
    say('{"load_ms": 1.5, "first_ms": 1, "before_bytes": 1000000}')
    for line in sys.stdin:
        word, rest = line.split(maxsplit=1) if " " in line else (line.strip(), "")
        if word == "run":
            say('{"ms": [' + ", ".join(["1"] * int(rest.split()[0])) + "]}")
        elif word == "outputs":
            say('{"outputs": %d}' % answer(name, rest.strip()))
        elif word == "memory":
            say('{"peak_bytes": 5000000}')


what, *rest = sys.argv[2:]
if what == "find":
    for name in ["ort", "openvino", "torch", "mnn", "ncnn", "tvm"]:
        say(f"found {name} 9.{len(name)}")
    say("end")
elif what == "convert":
    say("done")
else:
    work(rest[0], rest[3])
