"""Arrays on a plugin's devices: moving there and back, sharing memory with the host, deletion."""

from __future__ import annotations

import copy
import gc
import pickle

import ml_dtypes
import numpy as np
import pytest

import styrax as jax
import styrax.numpy as jnp
from styrax.core.types.avals import ShapedArray
from styrax.cpu.executable import Memory
from styrax.xla.pjrt.plugin_buffers import Buffer

DTYPES = [np.bool_, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64, np.float16,
          np.float32, np.float64, np.complex64, np.complex128, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn,
          ml_dtypes.float8_e5m2, ml_dtypes.int4, ml_dtypes.uint4]


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize("shape", [(), (3,), (2, 5), (0, 3), (1, 1)], ids=str)
def test_there_and_back(device, dtype, shape):
    values = np.random.default_rng(0).integers(0, 7, shape).astype(dtype)
    with jax.enable_x64(True):
        there = jax.device_put(values, device)
        assert type(there.buffer) is Buffer and there.devices() == {device} and there.committed
        assert there.dtype == values.dtype and there.shape == shape and not np.asarray(there).flags.writeable
        np.testing.assert_array_equal(np.asarray(there), values)
        doubled = jax.jit(lambda x: x if x.dtype == bool else x + x)(there)
        np.testing.assert_array_equal(np.asarray(doubled), values if dtype == np.bool_ else values + values)
        back = jax.device_put(there, jax.devices("cpu")[0])
        assert type(back.buffer) is Memory
        np.testing.assert_array_equal(np.asarray(back), values)


@pytest.mark.parametrize("view", [lambda x: x.T, lambda x: x[::-1], lambda x: x[:, ::2], lambda x: x[1:, 1:]],
                         ids=["transposed", "reversed", "strided", "shifted"])
def test_views_of_any_strides(device, view):
    source = view(np.arange(24, dtype=np.float32).reshape(4, 6))
    there = jax.device_put(source, device)
    wanted = source.copy()
    source[...] = -1  # the array has elements of its own
    np.testing.assert_array_equal(np.asarray(there), wanted)
    np.testing.assert_array_equal(np.asarray(there + 1), wanted + 1)


def test_numpy_looks_into_the_memory(host_device):
    there = jax.device_put(np.arange(64, dtype=np.float32), host_device)
    view = np.asarray(there)
    assert view.ctypes.data == there.unsafe_buffer_pointer()
    del there
    gc.collect()
    np.testing.assert_array_equal(view, np.arange(64))


def aligned(count: int, offset: int) -> np.ndarray:
    """Numbers at an address that is `offset` bytes behind a multiple of 64."""
    raw = np.zeros(4 * count + 128, np.uint8)
    start = -raw.ctypes.data % 64 + offset
    out = raw[start:start + 4 * count].view(np.float32)
    out[:] = np.arange(count)
    return out


@pytest.mark.parametrize(("offset", "shared"), [(0, True), (4, False)])
def test_memory_of_others_is_adopted(host_device, offset, shared):
    """In place where it is aligned to 64 bytes, else copied."""
    source = aligned(1000, offset)
    aval = ShapedArray((1000,), np.dtype(np.float32))
    there = host_device.client.adopt(source.ctypes.data, aval, source, host_device)
    assert (there.unsafe_buffer_pointer() == source.ctypes.data) is shared
    total = jnp.sum(there)
    del there, source
    gc.collect()
    assert float(total) == 499500


def test_owners_are_let_go(host_device):
    class Owner:
        def __del__(self):
            gone.append(True)

    gone: list[bool] = []
    source = aligned(100, 0)
    aval = ShapedArray((100,), np.dtype(np.float32))
    there = host_device.client.adopt(source.ctypes.data, aval, Owner(), host_device)
    there.block_until_ready()
    assert not gone
    del there
    gc.collect()
    assert gone


def test_keys_and_containers_move(device):
    tree = {"key": jax.random.key(3), "x": (jnp.arange(3.0), 2)}
    there = jax.device_put(tree, device)
    for leaf in jax.tree.leaves(there):
        assert leaf.devices() == {device}
    np.testing.assert_array_equal(jax.random.key_data(there["key"]), jax.random.key_data(tree["key"]))
    np.testing.assert_array_equal(np.asarray(jax.random.uniform(there["key"], (4,))),
                                  np.asarray(jax.random.uniform(tree["key"], (4,))))


def test_deleted_arrays(device):
    x = jax.device_put(np.ones(3, np.float32), device)
    x.delete()
    assert x.is_deleted()
    for use in (lambda: x + 1, lambda: jax.jit(lambda x: x + 1)(x), lambda: np.asarray(x), x.block_until_ready):
        with pytest.raises(RuntimeError, match="Array has been deleted"):
            use()


def test_copies_and_pickles(device):
    x = jax.device_put(np.arange(3, dtype=np.float32), device)
    for other in (copy.deepcopy(x), pickle.loads(pickle.dumps(x)), jnp.array(x)):
        np.testing.assert_array_equal(np.asarray(other), np.asarray(x))
    assert pickle.loads(pickle.dumps(device)) is device
    assert x.is_ready() and x.block_until_ready() is x


def test_numpy_takes_them_by_dlpack(host_device):
    x = jax.device_put(np.arange(3, dtype=np.float32), host_device)
    np.testing.assert_array_equal(np.from_dlpack(x), [0, 1, 2])


def test_device(device):
    name = device.client.platform
    assert device.platform == {"cuda": "gpu", "rocm": "gpu"}.get(name, name)
    assert device.id == 0 and device.process_index == 0
    assert str(device) == f"{name}:0" and device in jax.devices(name)
    assert device.memory_stats() is None or device.memory_stats()["bytes_in_use"] >= 0
