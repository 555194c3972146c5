"""The sharding that types tell outside explicit sharding: replicated over a mesh without axes."""

from __future__ import annotations

import jax
import pytest

import styrax


def told(j, shape):
    """What a program sees of a type's sharding, eager and traced."""
    x = j.numpy.ones(shape)
    found = [j.typeof(x), j.core.ShapedArray(shape, j.numpy.float32), j.typeof(x).update(weak_type=True)]
    j.jit(lambda x: found.append(j.typeof(x)))(x)
    j.grad(lambda x: (found.append(j.typeof(x)), x.sum())[1])(x)
    j.vmap(lambda x: found.append(j.typeof(x)))(x[None])
    return [(str(a.sharding), a.sharding.is_fully_replicated, a.sharding.mesh.empty, len(a.sharding.spec))
            for a in found]


@pytest.mark.parametrize("shape", [(), (0,), (1,), (2, 3)], ids=str)
def test_types_tell_a_sharding(shape):
    assert told(styrax, shape) == told(jax, shape)


def test_nothing_given_stays_nothing():
    x = styrax.numpy.ones((2, 3))
    given = styrax.core.ShapedArray((2, 3), styrax.numpy.float32, sharding=styrax.typeof(x).sharding)
    assert given == styrax.typeof(x) and hash(given) == hash(styrax.typeof(x))
    assert styrax.eval_shape(lambda x: x, x).sharding is None
    assert styrax.typeof(x).update(shape=(2,)).sharding.spec == styrax.P(None)


def test_memories_of_a_device():
    ours, theirs = styrax.devices()[0], jax.devices()[0]
    assert [m.kind for m in ours.addressable_memories()] == [m.kind for m in theirs.addressable_memories()]
    assert ours.default_memory().kind == theirs.default_memory().kind
    assert ours.memory("pinned_host") == ours.addressable_memories()[1] != ours.default_memory()
    assert ours.default_memory().addressable_by_devices() == [ours]
    for device, errors in ((ours, styrax.errors), (theirs, jax.errors)):
        with pytest.raises(errors.JaxRuntimeError, match="Got memory kind: nowhere"):
            device.memory("nowhere")
