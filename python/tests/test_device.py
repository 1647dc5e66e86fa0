# SPDX-License-Identifier: Apache-2.0
"""Values on a device: the tests' own plugin, whose memory the host cannot read as it is. Skipped where it was
not built for the machine that this Python runs on."""

import os
import sys
from pathlib import Path

import numpy as np
import pytest

import hone

ROOT = Path(__file__).resolve().parents[2]
BUILT = [
    Path(os.environ.get("HONE_PLUGIN_PLAIN", ROOT / "build" / "tests" / "plugin_plain.so")),
    ROOT / "build-cross" / "tests" / "plugin_plain.so",
]


def machine(path):
    """What an ELF file says it is for: its class, order of bytes and machine. An emulated Python finds a
    plugin of the host's beside it, which it cannot load."""
    with open(path, "rb") as file:
        head = file.read(20)
    return head[4:6], head[18:20]


X, W = np.random.rand(5, 8).astype(np.float32), np.random.rand(8, 8).astype(np.float32)
WANT = np.maximum(X @ W, 0)


@pytest.fixture(scope="module", autouse=True)
def _plugin():
    ours = [path for path in BUILT if path.exists() and machine(path) == machine(sys.executable)]
    if not ours:
        pytest.skip("the tests' plugin was not built here for this machine")
    hone.load_plugin(ours[0])


class Foreign:
    """Somebody's tensor on that device."""

    def __init__(self, value):
        self.value = value

    def __dlpack_device__(self):
        return self.value.__dlpack_device__()

    def __dlpack__(self, stream=None, max_version=None):
        return self.value.__dlpack__(max_version=max_version)


def test_values_stay_there(model):
    proto = model("g (float[n, 8] x, float[8, 8] w) => (float[n, 8] y) { a = MatMul(x, w)\n y = Relu(a) }")
    session = hone.Session(proto, device="plain:0", stay=True)
    y = session.run({"x": X, "w": W})["y"]
    assert isinstance(y, hone.Value) and y.device == "plain:0" and y.shape == (5, 8)
    assert np.allclose(y.to("cpu").numpy(), WANT, atol=1e-5)
    with pytest.raises(hone.Error, match="lies on plain:0"):
        y.numpy()
    x = hone.Value(X).to("plain:0")
    for given in (x, Foreign(x)):
        assert np.allclose(session.run({"x": given, "w": W})["y"].to("cpu").numpy(), WANT, atol=1e-5)
    assert y.__dlpack_device__() == (12, 0)
    home = hone.Session(proto, device="plain:0").run({"x": x, "w": W})["y"]
    assert isinstance(home, np.ndarray) and np.allclose(home, WANT, atol=1e-5)
    with pytest.raises(hone.Error):
        hone.Session(proto).run({"x": x, "w": W})


def test_devices_are_listed():
    assert any(row["device"] == "plain" and row["found"] for row in hone.devices())
