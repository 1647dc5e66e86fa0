# SPDX-License-Identifier: Apache-2.0
"""The other side of `hone compare`: one runtime in one process, driven by lines. The command carries this
file and starts it; it is not meant to be called by hand.

    compare.py find                                                 which runtimes this Python has
    compare.py convert RUNTIME MODEL FEED FOLDER THREADS PRECISION  the model in the runtime's own format,
                                                                    into FOLDER
    compare.py work    RUNTIME MODEL FEED FOLDER THREADS PRECISION  says {"worker": 1}; then, line by line on
                                                                    standard input, as to the
                                                                    worker of `hone bench`, with one line
                                                                    of JSON each:
        load            first of all, with one run          -> {"load_ms": T, "first_ms": T, "before_bytes":
                                                            BYTES}
        run N MS        N runs, none begun after MS (0: no limit)   -> {"ms": [T1, …]}
        outputs FOLDER  writes what the last run gave there         -> {"outputs": COUNT}     out_0.npy …
        memory          the largest resident memory since the load  -> {"peak_bytes": BYTES}
        quit

FEED is a folder: feed.json names inputs and outputs, input_K.npy are the numbers. Whatever cannot be done
is answered with `cannot WHY`. Imports and conversion are not part of a runtime's load time. Everything is
asked to compute in PRECISION: f32, bf16 or f16. Who cannot be asked for it is left out; but ONNX Runtime
always computes in f32, and is what halves are measured against."""
import gc, importlib.metadata, importlib.util, json, os, re, shutil, subprocess, sys, time

# name: modules that must be there, and what to install where one is not
NEEDS = {
    "ort": [("onnxruntime", "onnxruntime")],
    "openvino": [("openvino", "openvino")],
    "torch": [("torch", "torch"), ("onnx", "onnx"), ("onnx2torch", "onnx2torch")],
    "mnn": [("MNN", "MNN")],
    "ncnn": [("ncnn", "ncnn"), ("pnnx", "pnnx")],
    "tvm": [("tvm", "apache-tvm"), ("onnx", "onnx")],
}
now = time.perf_counter_ns


class Cannot(Exception):
    """A runtime cannot take the model; the text says why."""


def one_line(text, most=240):
    return " ".join(str(text).split())[:most]


def version_of(module, package):
    names = [package] + importlib.metadata.packages_distributions().get(module, [])
    for name in names:
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            pass
    return "?"


def find(say):
    for name, needs in NEEDS.items():
        absent = [package for module, package in [("numpy", "numpy")] + needs
                  if importlib.util.find_spec(module) is None]
        if absent:
            say(f"missing {name} not installed: pip install {' '.join(absent)}")
        else:
            say(f"found {name} {version_of(*needs[0])}")
    say("end")


# ---- the runtimes ----
# Each: convert() where it has a format of its own; load(), from a file to something that can run; run();
# outputs(), in the model's order.


class Runtime:
    precisions = {"f32"}  # those that it can be asked for

    def __init__(self, job):
        self.job = job
        if job.precision not in self.precisions:
            raise Cannot(f"it cannot be asked for {job.precision} here")

    def bring(self):
        """Imports, which are not timed."""


class Ort(Runtime):
    precisions = {"f32", "bf16", "f16"}  # in f32, whatever was asked: the reference

    def bring(self):
        import onnxruntime

        self.ort = onnxruntime
        onnxruntime.set_default_logger_severity(4)

    def load(self):
        o = self.ort.SessionOptions()
        o.intra_op_num_threads, o.inter_op_num_threads, o.log_severity_level = self.job.threads, 1, 4
        self.session = self.ort.InferenceSession(self.job.model, o, providers=["CPUExecutionProvider"])
        self.io = self.session.io_binding()  # saves turning arrays into tensors at each run
        for name, value in self.job.inputs:
            self.io.bind_ortvalue_input(name, self.ort.OrtValue.ortvalue_from_numpy(value))
        for output in self.session.get_outputs():
            self.io.bind_output(output.name)

    def run(self):
        self.session.run_with_iobinding(self.io)

    def outputs(self):
        return self.io.copy_outputs_to_cpu()


class OpenVino(Runtime):
    precisions = {"f32", "bf16", "f16"}

    def bring(self):
        import openvino

        self.ov = openvino

    def load(self):
        ov = self.ov
        model = ov.Core().read_model(self.job.model)
        values = dict(self.job.inputs)
        ports = [(next(n for n in port.get_names() if n in values), port) for port in model.inputs]
        model.reshape({port: ov.PartialShape(list(values[name].shape)) for name, port in ports})
        compiled = ov.Core().compile_model(model, "CPU",
                                           {"INFERENCE_PRECISION_HINT": self.job.precision,
                                            "INFERENCE_NUM_THREADS": self.job.threads,
                                                          "NUM_STREAMS": 1, "PERFORMANCE_HINT": "LATENCY"})
        self.request = compiled.create_infer_request()
        self.tensors = [ov.Tensor(values[name], shared_memory=True) for name, _ in ports]
        for k, tensor in enumerate(self.tensors):
            self.request.set_input_tensor(k, tensor)
        self.count = len(compiled.outputs)

    def run(self):
        self.request.start_async()
        self.request.wait()

    def outputs(self):
        return [self.request.get_output_tensor(k).data for k in range(self.count)]


class Torch(Runtime):
    """Through onnx2torch, traced and frozen. Convolutions run channels-last."""

    def bring(self):
        import warnings

        warnings.simplefilter("ignore")
        import torch

        self.torch = torch
        torch.set_num_threads(self.job.threads)
        torch.set_grad_enabled(False)

    def arguments(self):
        values = [self.torch.from_numpy(value) for _, value in self.job.inputs]
        return [v.contiguous(memory_format=self.torch.channels_last) if v.dim() == 4 else v for v in values]

    def convert(self):
        self.bring()
        import onnx, onnx2torch

        try:
            module = onnx2torch.convert(self.job.model)
        except NotImplementedError:  # it knows ops of older opsets only
            module = onnx2torch.convert(onnx.version_converter.convert_version(onnx.load(self.job.model), 18))
        module = module.eval().to(memory_format=self.torch.channels_last)
        traced = self.torch.jit.trace(module, tuple(self.arguments()), check_trace=False)
        self.torch.jit.save(self.torch.jit.freeze(traced), self.job.own("model.pt"))

    def load(self):
        self.module = self.torch.jit.load(self.job.own("model.pt"))
        self.values = self.arguments()

    def run(self):
        self.result = self.module(*self.values)

    def outputs(self):
        result = self.result if isinstance(self.result, (list, tuple)) else [self.result]
        return [r.contiguous().numpy() for r in result]


class Mnn(Runtime):
    """By its module interface, which runs control flow too. Whole numbers are 32 bits wide there."""

    precisions = {"f32", "f16"}

    def bring(self):
        import MNN, numpy

        self.mnn, self.numpy = MNN, numpy

    def convert(self):
        import _tools  # what the command mnnconvert calls; that one reports home as well

        target = self.job.own("model.mnn")
        _tools.mnnconvert(["mnnconvert", "-f", "ONNX", "--modelFile", self.job.model, "--MNNModel", target,
                           "--bizCode", "hone"])
        if not os.path.exists(target):
            raise Cannot("its converter did not take the model")

    def constant(self, value):
        expr, kind = self.mnn.expr, value.dtype.kind
        value = value if value.dtype == self.numpy.uint8 else value.astype(self.numpy.float32 if kind == "f"
            else self.numpy.int32)
        which = expr.uint8 if value.dtype == self.numpy.uint8 else expr.float if kind == "f" else expr.int
        return expr.const(value, list(value.shape), expr.NCHW, which)

    def load(self):
        manager = self.mnn.nn.create_runtime_manager(
            ({"backend": "CPU", "precision": "high" if self.job.precision == "f32" else "low",
              "numThread": self.job.threads},))
        names = [name for name, _ in self.job.inputs]
        self.net = self.mnn.nn.load_module_from_file(self.job.own("model.mnn"), names, self.job.outputs,
                                                     runtime_manager=manager)
        self.values = [self.constant(value) for _, value in self.job.inputs]

    def run(self):
        self.result = [var.read() for var in self.net.onForward(self.values)]  # computed when it is read

    def outputs(self):
        return self.result


class Ncnn(Runtime):
    """Converted by pnnx, which says in a script of its own which axis of each input and output is the
    batch."""

    precisions = {"f32", "bf16", "f16"}

    def bring(self):
        import ncnn, numpy

        self.ncnn, self.numpy = ncnn, numpy

    def convert(self):
        program = shutil.which("pnnx",
                               path=os.path.dirname(importlib.util.find_spec(
                                   "pnnx").origin)) or shutil.which("pnnx")
        if not program:
            raise Cannot("its converter pnnx is not there")
        link = self.job.own("model.onnx")
        os.path.exists(link) or os.symlink(self.job.model, link)
        short = {"float32": "f32", "float64": "f64", "float16": "f16", "int64": "i64", "int32": "i32",
                 "int16": "i16", "int8": "i8", "uint8": "u8"}
        shapes = ",".join(f"[{','.join(map(str, v.shape))}]{short.get(str(v.dtype), 'f32')}"
                          for _, v in self.job.inputs)
        done = subprocess.run([program, link, "inputshape=" + shapes, "fp16=0"], capture_output=True,
                              text=True, errors="replace")
        if done.returncode or not os.path.exists(self.job.own("model.ncnn.param")):
            raise Cannot("its converter pnnx did not take the model"
                         + (f" (signal {-done.returncode})" if done.returncode < 0 else ""))

    def load(self):
        self.net = self.ncnn.Net()
        for option in ["use_fp16_packed", "use_fp16_storage", "use_fp16_arithmetic", "use_bf16_storage",
                       "use_bf16_packed"]:
            if hasattr(self.net.opt, option):
                setattr(self.net.opt, option,
                        option.split("_")[1] == {"f16": "fp16"}.get(self.job.precision, self.job.precision))
        self.net.opt.num_threads = self.job.threads
        if self.net.load_param(self.job.own("model.ncnn.param")) or self.net.load_model(
            self.job.own("model.ncnn.bin")):
            with open(self.job.own("work.log"), errors="replace") as f:  # our standard error
                absent = re.findall(r"layer (\S+) not exists", f.read())
            raise Cannot("it did not load what pnnx wrote"
                         + (": it has no " + ", ".join(absent) if absent else ""))
        script = open(self.job.own("model_ncnn.py")).read()
        self.feeds = []  # the arrays are kept: a Mat does not own its numbers
        for k, (_, value) in enumerate(self.job.inputs):
            axis = re.search(rf'ex\.input\("in{k}".*batch_index=(\d+)', script)
            value = value.astype(self.numpy.float32 if value.dtype.kind == "f" else self.numpy.int32)
            value = value.squeeze(int(axis.group(1))) if axis and value.shape[int(
                axis.group(1))] == 1 else value
            value = self.numpy.ascontiguousarray(value)
            self.feeds.append((f"in{k}", value, self.ncnn.Mat(value)))
        self.names = [f"out{k}" for k in range(len(self.job.outputs))]
        if not set(self.net.output_names()).issuperset(self.names):
            raise Cannot("its converter lost an output")

    def run(self):
        extractor = self.net.create_extractor()
        for name, _, mat in self.feeds:
            extractor.input(name, mat)
        self.result = [extractor.extract(name) for name in self.names]
        if any(code for code, _ in self.result):
            raise Cannot("a run failed; it may lack an op of the model")

    def outputs(self):
        return [self.numpy.array(mat) for _, mat in self.result]


class Tvm(Runtime):
    """Compiled for this CPU by Relax's own pipeline, not tuned: tuning takes hours."""

    def bring(self):
        import tvm
        from tvm import relax

        self.tvm, self.relax = tvm, relax

    def convert(self):
        self.bring()
        import onnx
        from tvm.relax.frontend.onnx import from_onnx

        shapes = {name: list(value.shape) for name, value in self.job.inputs}
        module = from_onnx(onnx.load(self.job.model), shape_dict=shapes,
                           dtype_dict={name: str(value.dtype) for name, value in self.job.inputs},
                           sanitize_input_names=False)
        target = self.tvm.target.Target(
            {"kind": "llvm", "mcpu": self.tvm.target.codegen.llvm_get_system_cpu(),
             "num-cores": self.job.threads})
        self.relax.build(module, target=target).export_library(self.job.own("model.so"))

    def load(self):
        self.machine = self.relax.VirtualMachine(self.tvm.runtime.load_module(self.job.own("model.so")),
                                                 self.tvm.cpu())
        self.main = self.machine["main"]
        self.values = [self.tvm.runtime.tensor(value) for _, value in self.job.inputs]

    def run(self):
        self.result = self.main(*self.values)

    def outputs(self):
        one = hasattr(self.result, "numpy")
        return [r.numpy() for r in ([self.result] if one else self.result)]


RUNTIMES = {"ort": Ort, "openvino": OpenVino, "torch": Torch, "mnn": Mnn, "ncnn": Ncnn, "tvm": Tvm}


# ---- the work ----


class Job:
    def __init__(self, model, feed, folder, threads, precision):
        import numpy

        self.model, self.folder, self.threads, self.precision = model, folder, int(threads), precision
        with open(os.path.join(feed, "feed.json")) as f:
            told = json.load(f)
        self.inputs = [(i["name"], numpy.load(os.path.join(feed, i["file"]))) for i in told["inputs"]]
        self.outputs = [o["name"] for o in told["outputs"]]

    def own(self, name):
        return os.path.join(self.folder, name)


def memory(field):
    """Bytes, of a field of the kernel's account of this process; 0 where there is none."""
    try:
        with open("/proc/self/status") as f:
            return next((int(line.split()[1]) * 1024 for line in f if line.startswith(field)), 0)
    except OSError:
        return 0


def forget_peak():
    try:
        with open("/proc/self/clear_refs", "w") as f:
            f.write("5")
    except OSError:
        pass


def write(runtime, folder):
    import numpy

    outputs = [numpy.asarray(o) for o in runtime.outputs()]
    for k, o in enumerate(outputs):
        o = o if o.dtype.kind in "fiub" else o.astype(numpy.float32)
        numpy.save(os.path.join(folder, f"out_{k}.npy"), numpy.ascontiguousarray(o).reshape(o.shape))
    return len(outputs)


def timed(what):
    began = now()
    what()
    return (now() - began) * 1e-6


def work(runtime, job, say):
    def answer(**what):
        say(json.dumps(what))

    runtime.bring()
    gc.collect()
    answer(worker=1)
    if sys.stdin.readline().strip() != "load":
        return
    forget_peak()
    before, load = memory("VmRSS"), timed(runtime.load)
    gc.freeze()
    run = runtime.run
    answer(load_ms=load, first_ms=timed(run), before_bytes=before)
    for line in sys.stdin:
        word, _, rest = line.strip().partition(" ")
        if word == "run":
            count, limit = rest.split()
            times, end = [], now() + float(limit) * 1e6
            while len(times) < int(count) and (float(limit) == 0 or not times or now() < end):
                t = now()
                run()
                times.append((now() - t) * 1e-6)
            answer(ms=times)
        elif word == "outputs":
            answer(outputs=write(runtime, rest))
        elif word == "memory":
            answer(peak_bytes=memory("VmHWM"))
        else:
            break


def main():
    answers = os.fdopen(os.dup(1), "w")  # whatever else is printed, by Python or by C, goes to standard error
    os.dup2(2, 1)

    def say(text):
        answers.write(text + "\n")
        answers.flush()

    what, *rest = sys.argv[1:]
    if what == "find":
        return find(say)
    try:
        job = Job(*rest[1:])
        runtime = RUNTIMES[rest[0]](job)
        if what == "work":
            work(runtime, job, say)
        elif hasattr(runtime, "convert"):
            os.chdir(job.folder)  # converters leave files where they stand
            runtime.convert()
            say("done")
        else:
            say("done")
    except Cannot as e:
        say("cannot " + one_line(e))
    except BaseException as e:
        say("cannot " + one_line(f"{type(e).__name__}: {e}"))


main()
sys.stdout.flush()
os._exit(0)  # some runtimes crash when Python takes them down
