# SPDX-License-Identifier: Apache-2.0
"""Exceptions and classes, where programs look for them."""

from .. import *  # noqa: F401,F403
from .. import (
    ExecutionMode,
    ExecutionOrder,
    GraphOptimizationLevel,
    InferenceSession,
    ModelMetadata,
    NodeArg,
    OrtDevice,
    OrtValue,
    RunOptions,
    SessionIOBinding,
    SessionOptions,
    get_all_providers,
    get_available_providers,
    get_build_info,
    get_device,
    get_version_string,
    set_seed,
)
from .._errors import CLASSES as _CLASSES

globals().update(_CLASSES)
