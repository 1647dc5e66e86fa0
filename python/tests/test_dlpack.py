# SPDX-License-Identifier: Apache-2.0
"""DLPack: tensors of other libraries in, values out. torch and jax where they are installed."""

import gc
import subprocess
import sys

import numpy as np
import pytest

import hone


class Foreign:
    """A tensor that is nothing but DLPack, of the old or the new form."""

    def __init__(self, array, versions):
        self.array, self.versions, self.asked = array, versions, 0

    def __dlpack_device__(self):
        return 1, 0

    def __dlpack__(self, **how):
        if how and not self.versions:
            raise TypeError("unexpected keyword")
        self.asked += 1
        return self.array.__dlpack__(**how)


@pytest.mark.parametrize("versions", [False, True])
def test_in(model, versions):
    session = hone.Session(model("g (float[n] x) => (float[n] y) { y = Neg(x) }"))
    array = np.arange(100_000, dtype=np.float32)
    before = sys.getrefcount(array)
    foreign = Foreign(array, versions)
    for _ in range(3):
        assert (session.run({"x": foreign})[0] == -array).all()
    gc.collect()
    assert foreign.asked >= 3 and sys.getrefcount(array) == before + 1
    assert (hone.Value(foreign).numpy() == array).all()


def test_out_shares_memory_and_gives_it_back():
    value = hone.Value(np.arange(4, dtype=np.float32))
    array = np.from_dlpack(value)
    value.numpy()[0] = 9
    assert array[0] == 9
    del value
    gc.collect()
    assert array.tolist() == [9, 1, 2, 3]
    unused = hone.Value(np.ones(3, np.float32)).__dlpack__()
    del unused
    gc.collect()


def test_a_capsule_at_the_end_of_the_process():
    code = (
        "import hone, numpy as np; kept = hone.Value(np.ones(5, np.float32)).__dlpack__(max_version=(1, 0))"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_bf16_goes_out():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    value = hone.Value(np.ones(3, ml_dtypes.bfloat16))
    assert value.__dlpack_device__() == (1, 0) and value.__dlpack__(max_version=(1, 0)) is not None


def test_torch(model):
    torch = pytest.importorskip("torch")
    session = hone.Session(model("g (bfloat16[n] x) => (bfloat16[n] y) { y = Neg(x) }"))
    x = torch.arange(5, dtype=torch.bfloat16)
    out = torch.from_dlpack(session.run({"x": x}, values=True)[0])
    assert out.dtype == torch.bfloat16 and (out == -x).all()
    session = hone.Session(model("g (float[n,m] x) => (float[n,m] y) { y = Neg(x) }"))
    x = torch.rand(3, 5).T
    assert torch.equal(torch.from_dlpack(session.run({"x": x})[0]), -x)


def test_jax(model):
    jnp = pytest.importorskip("jax.numpy")
    session = hone.Session(model("g (float[n] x) => (float[n] y) { y = Neg(x) }"))
    x = jnp.arange(5, dtype=jnp.float32)
    assert (np.asarray(jnp.from_dlpack(session.run({"x": x}, values=True)[0])) == -np.asarray(x)).all()


def test_what_lies_elsewhere_is_refused(model):
    class Far(Foreign):
        def __dlpack__(self, **how):
            raise BufferError("far away")

    with pytest.raises(BufferError):
        hone.Session(model("g (float[n] x) => (float[n] y) { y = Neg(x) }")).run({"x": Far(np.ones(2), True)})
