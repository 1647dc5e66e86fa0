# SPDX-License-Identifier: Apache-2.0
"""SessionOptions and RunOptions. Threads are honoured; what changes no result is accepted, and kept so that
it can be read back; what would change one, or what a program would wait for in vain, is refused by name."""

from __future__ import annotations

import enum
from typing import Any

from ._errors import refused


class GraphOptimizationLevel(enum.IntEnum):
    """Accepted: Hone's passes change no result."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(enum.IntEnum):
    """Accepted."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class ExecutionOrder(enum.IntEnum):
    """Accepted."""

    DEFAULT = 0
    PRIORITY_BASED = 1
    MEMORY_EFFICIENT = 2


# Entries of a session's configuration that would change results, or what a model is: with these values they
# are nothing.
_HARMLESS = {
    "session.set_denormal_as_zero": ("0",),
    "session.load_model_format": ("", "ONNX"),
    "session.save_model_format": ("", "ONNX"),
    "mlas.enable_gemm_fastmath_arm64_bfloat16": ("0",),
    "ep.context_enable": ("0",),
    "session.model_external_initializers_file_folder_path": ("",),
    "session.record_ep_graph_assignment_info": ("0",),
}


class SessionOptions:
    """How a session shall run; the names and defaults are onnxruntime's."""

    _DEFAULTS = {
        "enable_cpu_mem_arena": True,
        "enable_mem_pattern": True,
        "enable_mem_reuse": True,
        "enable_profiling": False,
        "execution_mode": ExecutionMode.ORT_SEQUENTIAL,
        "execution_order": ExecutionOrder.DEFAULT,
        "graph_optimization_level": GraphOptimizationLevel.ORT_ENABLE_ALL,
        "inter_op_num_threads": 0,
        "intra_op_num_threads": 0,
        "log_severity_level": -1,
        "log_verbosity_level": 0,
        "logid": "",
        "optimized_model_filepath": "",
        "profile_file_prefix": "onnxruntime_profile_",
        "use_deterministic_compute": False,
        "use_per_session_threads": True,
    }
    __slots__ = tuple(_DEFAULTS) + ("_config", "_dims", "_providers")
    enable_cpu_mem_arena: bool
    enable_mem_pattern: bool
    enable_mem_reuse: bool
    enable_profiling: bool
    execution_mode: ExecutionMode
    execution_order: ExecutionOrder
    graph_optimization_level: GraphOptimizationLevel
    inter_op_num_threads: int
    intra_op_num_threads: int
    log_severity_level: int
    log_verbosity_level: int
    logid: str
    optimized_model_filepath: str
    profile_file_prefix: str
    use_deterministic_compute: bool
    use_per_session_threads: bool

    def __init__(self) -> None:
        for name, value in self._DEFAULTS.items():
            setattr(self, name, value)
        self._config: dict[str, str] = {}
        self._dims: dict[str, int] = {}
        self._providers: list[tuple[str, dict[str, Any]]] = []

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "enable_profiling" and value:
            raise refused("SessionOptions.enable_profiling (hone.Session has profile= and report('steps'))")
        if name in ("intra_op_num_threads", "inter_op_num_threads") and not isinstance(value, int):
            raise TypeError(f"SessionOptions.{name} is a number, not {type(value).__name__}")
        object.__setattr__(self, name, value)

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Keeps an entry; refuses one that would change results."""
        if value not in _HARMLESS.get(key, (value,)):
            raise refused(f"the session configuration entry '{key}' = '{value}'")
        self._config[key] = value

    def get_session_config_entry(self, key: str) -> str:
        """An entry that was added."""
        if key not in self._config:
            raise RuntimeError(f"SessionOptions does not have configuration with key: {key}")
        return self._config[key]

    def add_free_dimension_override_by_name(self, name: str, size: int) -> None:
        """A free dim of the inputs that shall be so many: what inputs say; runs with others are refused."""
        self._dims[name] = int(size)

    def add_provider(self, name: str, options: "dict[str, Any]") -> None:
        """A provider, after those named so far."""
        self._providers.append((name, options))

    def has_providers(self) -> bool:
        """Whether providers were added here."""
        return bool(self._providers)


class RunOptions:
    """How a run shall go; the names and defaults are onnxruntime's."""

    _DEFAULTS = {
        "log_severity_level": -1,
        "log_verbosity_level": 0,
        "logid": "",
        "only_execute_path_to_fetches": False,
        "terminate": False,
        "training_mode": False,
    }
    __slots__ = tuple(_DEFAULTS) + ("_config",)
    log_severity_level: int
    log_verbosity_level: int
    logid: str
    only_execute_path_to_fetches: bool
    terminate: bool
    training_mode: bool

    def __init__(self) -> None:
        for name, value in self._DEFAULTS.items():
            setattr(self, name, value)
        self._config: dict[str, str] = {}

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "training_mode" and value:
            raise refused("RunOptions.training_mode")
        object.__setattr__(self, name, value)

    def add_run_config_entry(self, key: str, value: str) -> None:
        """Keeps an entry; none of them changes a result."""
        self._config[key] = value

    def get_run_config_entry(self, key: str) -> str:
        """An entry that was added."""
        return self._config[key]

    def add_active_adapter(self, adapter: Any) -> None:
        """Refused: weights do not change from run to run."""
        raise refused("RunOptions.add_active_adapter")


def _refuse(owner: type, *names: str) -> None:
    for name in names:

        def method(self, *args, _what=f"{owner.__name__}.{name}", **more):
            raise refused(_what)

        method.__name__, method.__doc__ = name, "Refused, by its name."
        setattr(owner, name, method)


_refuse(
    SessionOptions,
    "add_external_initializers",
    "add_external_initializers_from_files_in_memory",
    "add_initializer",
    "add_free_dimension_override_by_denotation",
    "register_custom_ops_library",
    "add_provider_for_devices",
    "set_provider_selection_policy",
    "set_provider_selection_policy_delegate",
    "set_load_cancellation_flag",
)
