# SPDX-License-Identifier: Apache-2.0
"""InferenceSession. Many threads may run one at a time: each run takes a free session of Hone's, or makes
one."""

from __future__ import annotations

import concurrent.futures
import os
import tempfile
import warnings
from typing import Any, Callable, Mapping, Optional, Sequence

import numpy as np

from .._library import Error
from .._model import Model, Port
from .._session import Session
from .._value import Value
from ._errors import make, of, refused, translated
from ._options import RunOptions, SessionOptions
from ._ortvalue import IOBinding, OrtValue

_DRIVERS = (
    "/dev/nvidiactl",
    "/dev/dxg",
)  # the second under WSL; without them no library is loaded to find out


def get_available_providers() -> list[str]:
    """The CPU, and CUDA where there is a GPU."""
    cuda = any(os.path.exists(path) for path in _DRIVERS) and _has_cuda()
    return ["CUDAExecutionProvider", "CPUExecutionProvider"] if cuda else ["CPUExecutionProvider"]


def _has_cuda() -> bool:
    from .. import devices

    return any(row.get("device") == "cuda" and row.get("found") for row in devices())


NO_VERSION = (1 << 63) - 1  # of a model that says none


class NodeArg:
    """An input or output: `name`, `shape`, `type`."""

    __slots__ = ("name", "shape", "type")

    def __init__(self, name: str, shape: list, type_: str) -> None:
        self.name, self.shape, self.type = name, shape, type_

    def __repr__(self) -> str:
        return f"NodeArg(name='{self.name}', type='{self.type}', shape={self.shape})"


class ModelMetadata:
    """What a model's file says of itself."""

    __slots__ = (
        "custom_metadata_map",
        "description",
        "domain",
        "graph_description",
        "graph_name",
        "producer_name",
        "version",
    )

    def __init__(self, about: dict) -> None:
        self.custom_metadata_map = dict(about["metadata"])
        self.description, self.graph_description = about["doc_string"], about["graph_doc_string"]
        self.domain, self.graph_name, self.version = (
            about["domain"],
            about["graph_name"],
            about["model_version"] or NO_VERSION,
        )
        self.producer_name = about["producer_name"]


def _node(port: Port, dims: dict) -> NodeArg:
    shape = [dims.get(d, d) for d in port.shape or ()] if port.kind == "tensor" else []
    return NodeArg(port.name, shape, port.type)


class InferenceSession:
    """onnxruntime's session, on Hone."""

    def __init__(
        self,
        path_or_bytes: Any,
        sess_options: Optional[SessionOptions] = None,
        providers: Optional[Sequence] = None,
        provider_options: Optional[Sequence[dict]] = None,
        **kwargs: Any,
    ) -> None:
        if not isinstance(path_or_bytes, (str, os.PathLike, bytes, bytearray, memoryview)):
            raise TypeError(f"Unable to load from type '{type(path_or_bytes)}'")
        if kwargs.get("disabled_optimizers"):
            raise refused("disabled_optimizers")
        self._sess_options = sess_options or SessionOptions()
        path = isinstance(path_or_bytes, (str, os.PathLike))
        self._model_path = os.fspath(path_or_bytes) if path else None
        self._model_bytes = None if path else path_or_bytes
        if path and not os.path.exists(self._model_path) and not str(self._model_path).startswith("zoo:"):
            raise make(
                "NoSuchFile",
                f"Load model from {self._model_path} failed:Load model {self._model_path} failed. "
                "File doesn't exist",
            )
        self._providers, device = _choose(list(providers or [p for p, _ in self._sess_options._providers]))
        self._provider_options = {name: {} for name in self._providers}
        threads = max(0, self._sess_options.intra_op_num_threads)
        self._how = {"threads": threads, "device": device}
        with translated(loading=True):
            self._model = Model(path_or_bytes)
            self._free: list[Session] = [Session(self._model, **self._how)]
            if self._sess_options.optimized_model_filepath:
                self._model.save(self._sess_options.optimized_model_filepath)
        about, dims = self._model.about, self._sess_options._dims
        own = {port.name for port in self._model.inputs}
        open_ = [row for row in about["inputs"] if row["name"] not in own and about["ir_version"] >= 4]
        self._overridable = [NodeArg(row["name"], row["dims"] or [], row["type"]) for row in open_]
        self._inputs_meta = [_node(port, dims) for port in self._model.inputs]
        self._outputs_meta = [_node(port, dims) for port in self._model.outputs]
        self._model_meta = ModelMetadata(about)
        self._fixed = [
            (port.name, k, dims[d])
            for port in self._model.inputs
            for k, d in enumerate(port.shape or ())
            if d in dims
        ]
        self._needed = {port.name for port in self._model.inputs if port.kind != "optional"}
        self._names = {port.name: k for k, port in enumerate(self._model.outputs)}
        self._texts = [port.name for port in self._model.inputs if port.type == "tensor(string)"]
        self._opened: dict[tuple, Session] = {}

    # ---- what it is ----
    def get_inputs(self) -> list[NodeArg]:
        """The inputs that a run must give."""
        return self._inputs_meta

    def get_outputs(self) -> list[NodeArg]:
        """The outputs."""
        return self._outputs_meta

    def get_overridable_initializers(self) -> list[NodeArg]:
        """Weights that a run may give instead of the model's."""
        return self._overridable

    def get_modelmeta(self) -> ModelMetadata:
        """What the model's file says of itself."""
        return self._model_meta

    def get_providers(self) -> list[str]:
        """Where it runs, in onnxruntime's words."""
        return self._providers

    def get_provider_options(self) -> dict[str, dict]:
        """None that would matter."""
        return self._provider_options

    def get_session_options(self) -> SessionOptions:
        """The options it was made with."""
        return self._sess_options

    def set_providers(
        self, providers: Optional[Sequence] = None, provider_options: Optional[Sequence[dict]] = None
    ) -> None:
        """Runs elsewhere from now on."""
        self._providers, self._how["device"] = _choose(list(providers or []))
        self._provider_options = {name: {} for name in self._providers}
        with translated():
            self._free = [Session(self._model, **self._how)]

    def disable_fallback(self) -> None:
        """There is none: what fails, fails."""

    enable_fallback = disable_fallback

    def end_profiling(self) -> str:
        """Refused, as enable_profiling is."""
        raise refused("InferenceSession.end_profiling")

    # ---- runs ----
    def run(
        self,
        output_names: Optional[Sequence[str]],
        input_feed: Mapping[str, Any],
        run_options: Optional[RunOptions] = None,
    ) -> list:
        """One run: the outputs named, or all, as a list."""
        if run_options is not None and run_options.terminate:
            raise make("Fail", "Exiting due to terminate flag being set to true.")
        names = self._names
        if output_names:
            for name in output_names:
                if name not in names:
                    raise make("InvalidArgument", f"Invalid output name:{name}")
        session = self._taken(input_feed)
        try:
            outputs = session.run(_spelled(input_feed, self._texts) if self._texts else input_feed)
        except Error as wrong:
            raise of(wrong) from None
        finally:
            self._free.append(session) if session.model is self._model else None
        return [outputs[names[name]] for name in output_names] if output_names else list(outputs)

    def _taken(self, feed: Mapping[str, Any]) -> Session:
        """A session that nobody runs, for a feed that has what is needed."""
        if not self._needed <= feed.keys():
            raise ValueError(
                f"Required inputs "
                f"({[p.name for p in self._model.inputs if p.name not in feed]}) are missing from "
                f"input feed ({list(feed)})."
            )
        for name, k, want in self._fixed:
            have = np.shape(feed[name])[k]
            if have != want:
                raise make(
                    "InvalidArgument",
                    f"Got invalid dimensions for input: {name} for the following indices\n index: {k} "
                    f"Got: {have} Expected: {want}\n Please fix either the inputs/outputs or the model.",
                )
        if self._overridable and len(feed) > len(self._inputs_meta):
            opened = tuple(arg.name for arg in self._overridable if arg.name in feed)
            if opened:
                return self._open(opened)
        try:
            return self._free.pop()
        except IndexError:
            with translated():
                return Session(self._model, **self._how)

    def _open(self, names: tuple[str, ...]) -> Session:
        """The model once more, with initializers that a run gives."""
        if names not in self._opened:
            with translated(loading=True), tempfile.NamedTemporaryFile(suffix=".onnx") as file:
                if self._model_bytes is not None:
                    file.write(self._model_bytes)
                    file.flush()
                self._opened[names] = Session(Model(self._model_path or file.name, open=names), **self._how)
        return self._opened[names]

    def run_async(
        self,
        output_names: Optional[Sequence[str]],
        input_feed: Mapping[str, Any],
        callback: Callable[[Any, Any, str], None],
        user_data: Any,
        run_options: Optional[RunOptions] = None,
    ) -> None:
        """A run on another thread, which calls back with the results, the user's data and what was wrong, or
        ""."""

        def work() -> None:
            try:
                results, wrong = self.run(output_names, input_feed, run_options), ""
            except Exception as error:
                results, wrong = None, str(error)
            callback(results, user_data, wrong)

        _workers().submit(work)

    def run_with_ort_values(
        self,
        output_names: Optional[Sequence[str]],
        input_dict_ort_values: Mapping[str, OrtValue],
        run_options: Optional[RunOptions] = None,
    ) -> list[OrtValue]:
        """`run` on OrtValues."""
        feeds = {name: value._value for name, value in input_dict_ort_values.items()}
        return [OrtValue(value) for value in self.run(output_names, feeds, run_options)]

    def io_binding(self) -> IOBinding:
        """A binding for `run_with_iobinding`."""
        return IOBinding(self)

    def run_with_iobinding(self, iobinding: IOBinding, run_options: Optional[RunOptions] = None) -> None:
        """Runs on what is bound, and fills it."""
        if run_options is not None and run_options.terminate:
            raise make("Fail", "Exiting due to terminate flag being set to true.")
        for name in iobinding._outputs:
            if name not in self._names:
                raise make("InvalidArgument", f"Invalid output name:{name}")
        session, given = self._taken(iobinding._inputs), {
            n: a for n, a in iobinding._outputs.items() if a is not None
        }
        try:
            outputs = session.run(iobinding._inputs, out=given or None)
        except Error as wrong:
            raise of(wrong) from None
        finally:
            self._free.append(session) if session.model is self._model else None
        results = []
        for name in iobinding._outputs:
            value = outputs[self._names[name]]
            there = iobinding._device.get(name, "cpu")
            results.append(
                OrtValue(
                    value if there == "cpu" or not isinstance(value, np.ndarray) else Value(value).to(there)
                )
            )
        iobinding._results = results


def _spelled(feed: Mapping[str, Any], names: list[str]) -> Mapping[str, Any]:
    """Objects among text become text, as str() says it."""
    spelled = dict(feed)
    for name in names:
        array = np.asarray(feed[name]) if name in feed else None
        if array is not None and array.dtype.kind == "O":
            texts = [item if isinstance(item, str) else str(item) for item in array.ravel().tolist()]
            spelled[name] = np.array(texts, dtype=object).reshape(array.shape)
    return spelled


def _choose(providers: list) -> tuple[list[str], Optional[str]]:
    """The providers that are here, and Hone's device for the first of them."""
    known, device = [], None
    available = get_available_providers() if providers else []
    for provider in providers:
        name, options = provider if isinstance(provider, (tuple, list)) else (provider, {})
        if name not in available:
            warnings.warn(
                f"Specified provider '{name}' is not in available provider names.Available providers: "
                f"'{', '.join(available)}'",
                stacklevel=4,
            )
            continue
        if name == "CUDAExecutionProvider" and not known:
            device = f"cuda:{int((options or {}).get('device_id', 0))}"
        known.append(name)
    if "CPUExecutionProvider" not in known:
        known.append("CPUExecutionProvider")
    return known, device


_pool: Optional[concurrent.futures.ThreadPoolExecutor] = None


def _workers() -> concurrent.futures.ThreadPoolExecutor:
    global _pool
    if _pool is None:
        _pool = concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1, "hone-run-async")
    return _pool
