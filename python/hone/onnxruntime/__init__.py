# SPDX-License-Identifier: Apache-2.0
"""onnxruntime's interface on Hone: `import hone.onnxruntime as onnxruntime`.

What programs use to run models: sessions, options, OrtValues, bindings, exceptions. What would change a
result and is not there is refused by its name. Not there: onnxruntime's tools (quantization, transformers,
training) and its C structs.
"""

from __future__ import annotations

from .. import __version__ as _hone_version
from ._options import ExecutionMode, ExecutionOrder, GraphOptimizationLevel, RunOptions, SessionOptions
from ._ortvalue import IOBinding, OrtDevice, OrtValue
from ._session import InferenceSession, ModelMetadata, NodeArg, get_available_providers

__version__ = "1.23.2"  # whose interface this is
__author__ = "Hone"
SessionIOBinding = IOBinding
__all__ = [
    "ExecutionMode",
    "ExecutionOrder",
    "GraphOptimizationLevel",
    "IOBinding",
    "InferenceSession",
    "ModelMetadata",
    "NodeArg",
    "OrtDevice",
    "OrtValue",
    "RunOptions",
    "SessionIOBinding",
    "SessionOptions",
    "disable_telemetry_events",
    "enable_telemetry_events",
    "get_all_providers",
    "get_available_providers",
    "get_build_info",
    "get_device",
    "get_version_string",
    "preload_dlls",
    "set_default_logger_severity",
    "set_default_logger_verbosity",
    "set_seed",
]


def get_device() -> str:
    """CPU, or GPU where there is one that is used."""
    return "GPU" if len(get_available_providers()) > 1 else "CPU"


def get_all_providers() -> list[str]:
    """Those that there may be."""
    return ["CUDAExecutionProvider", "CPUExecutionProvider"]


def get_version_string() -> str:
    """The version whose interface this is."""
    return __version__


def get_build_info() -> str:
    """Who it is really."""
    return f"Hone {_hone_version}, with the interface of ORT {__version__}"


def set_default_logger_severity(severity: int) -> None:
    """Accepted: nothing is logged."""


def set_default_logger_verbosity(verbosity: int) -> None:
    """Accepted: nothing is logged."""


def enable_telemetry_events() -> None:
    """Accepted: there are none."""


def disable_telemetry_events() -> None:
    """Accepted: there are none."""


def set_seed(seed: int) -> None:
    """Refused: random ops draw by their own seeds."""
    from ._errors import refused

    raise refused("set_seed")


def preload_dlls(
    cuda: bool = True, cudnn: bool = True, msvc: bool = True, directory: "str | None" = None
) -> None:
    """Accepted: Hone finds a driver by itself."""


from . import capi as capi  # noqa: E402  (its modules take from the names above)
