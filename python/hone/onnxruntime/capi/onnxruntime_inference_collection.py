# SPDX-License-Identifier: Apache-2.0
"""Sessions and values, where some programs look for them."""

from .. import IOBinding, InferenceSession, OrtDevice, OrtValue

Session = InferenceSession
