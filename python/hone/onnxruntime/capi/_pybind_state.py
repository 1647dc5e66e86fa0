# SPDX-License-Identifier: Apache-2.0
"""The same under its other name."""

from .onnxruntime_pybind11_state import *  # noqa: F401,F403
from .._errors import CLASSES as _CLASSES

globals().update(_CLASSES)
