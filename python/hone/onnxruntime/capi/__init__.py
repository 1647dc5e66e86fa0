# SPDX-License-Identifier: Apache-2.0
"""The places where onnxruntime has its exceptions and classes."""

from . import _pybind_state, onnxruntime_inference_collection, onnxruntime_pybind11_state
