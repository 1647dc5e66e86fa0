#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Classic models as their converters write them:  artifacts_classic.py FOLDER [--list] [--only WORD]

Trains small models with fixed seeds, converts them (skl2onnx, onnxmltools, CatBoost's own writer) and
stores each as ONNX's tests are: FOLDER/NAME/model.onnx and
FOLDER/NAME/test_data_set_0/{input,output}_K.pb, the outputs being ONNX Runtime's. What is there already
is left alone. NAME begins with the tool. Nothing of this is needed to build or to test;
compare_artifacts.py reads what it leaves."""
import argparse
import pathlib
import shutil
import sys
import warnings
import zlib

import classic_models


def value_proto(onnx, numpy, value, name=""):
    """A tensor, a list or a dict as the message that ONNX's test data has for it."""
    if isinstance(value, list):
        message = onnx.SequenceProto(name=name)
        message.elem_type = onnx.SequenceProto.MAP if value and isinstance(value[0],
            dict) else onnx.SequenceProto.TENSOR
        items = message.map_values if message.elem_type == onnx.SequenceProto.MAP else message.tensor_values
        items.extend(value_proto(onnx, numpy, v) for v in value)
        return message
    if isinstance(value, dict):
        message = onnx.MapProto(name=name)
        strings = any(isinstance(k, str) for k in value)
        message.key_type = onnx.TensorProto.STRING if strings else onnx.TensorProto.INT64
        if strings:
            message.string_keys.extend(k.encode() for k in value)
        else:
            message.keys.extend(int(k) for k in value)
        values = [v if isinstance(v, (str, numpy.integer, int)) else numpy.float32(v) for v in value.values()]
        message.values.CopyFrom(value_proto(onnx, numpy, [numpy.array(v) for v in values]))
        return message
    value = numpy.asarray(value)
    if value.dtype.kind in "OUS":
        value = value.astype(object)
        return onnx.helper.make_tensor(name, onnx.TensorProto.STRING, value.shape,
                                       [str(v).encode() for v in value.ravel()])
    return onnx.numpy_helper.from_array(numpy.ascontiguousarray(value).reshape(value.shape), name)


def store(folder, model, feeds, onnx, numpy, ort):
    """The model, its inputs and what ONNX Runtime makes of them; a folder is there whole or not at all."""
    part = folder.with_name(folder.name + ".part")
    data = part / "test_data_set_0"
    shutil.rmtree(part, ignore_errors=True)
    data.mkdir(parents=True)
    (part / "model.onnx").write_bytes(model.SerializeToString())
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(str(part / "model.onnx"), options, providers=["CPUExecutionProvider"])
    slots = session.get_inputs()
    if not isinstance(feeds, dict):
        feeds = {slots[0].name: feeds}
    results = session.run(None, {s.name: feeds[s.name] for s in slots})
    for i, slot in enumerate(slots):
        (data / f"input_{i}.pb").write_bytes(
            value_proto(onnx, numpy, feeds[slot.name], slot.name).SerializeToString())
    for i, (slot, value) in enumerate(zip(session.get_outputs(), results)):
        (data / f"output_{i}.pb").write_bytes(value_proto(onnx, numpy, value, slot.name).SerializeToString())
    part.rename(folder)


def main():
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("folder", type=pathlib.Path)
    words.add_argument("--list", action="store_true", help="print the names and stop")
    words.add_argument("--only", default="", metavar="WORD", help="only names that contain this")
    args = words.parse_args()
    try:
        import numpy
        import onnx
        import onnx.numpy_helper
        import onnxruntime as ort
        table = classic_models.table()
    except ImportError as missing:
        print(f"classic models: skipped ({missing})")
        return 0
    warnings.filterwarnings("ignore")
    ort.set_default_logger_severity(4)
    table = {name: make for name, make in table.items() if args.only in name}
    if args.list:
        print("\n".join(table))
        return 0
    failed = made = 0
    for name, make in table.items():
        folder = args.folder / name
        if folder.exists():
            continue
        try:
            numpy.random.seed(zlib.crc32(name.encode()) & 0xFFFF)
            model, feeds = make(numpy.random.default_rng(zlib.crc32(name.encode())))
            store(folder, model, feeds, onnx, numpy, ort)
            made += 1
        except Exception as error:  # the tool's fault or the runtime's: named, and the others go on
            failed += 1
            print(
                f"FAIL  {name:<44} {type(error).__name__}: "
                f"{str(error).strip().splitlines()[0][:160] if str(error).strip() else ''}", flush=True)
    for part in args.folder.glob("*.part"):
        shutil.rmtree(part)
    print(f"classic models: {made} made, {len(table) - made - failed} were there, {failed} could not be made")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
