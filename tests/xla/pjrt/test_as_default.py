"""A plugin's platform as the default one: what else runs there without a word of where."""

from __future__ import annotations

import numpy as np
import pytest

import styrax as jax
import styrax.numpy as jnp

pytestmark = pytest.mark.usefixtures("default")


def test_arrays_of_nothing(device):
    """Cotangents of integers have no elements that could be passed."""
    out, pull = jax.vjp(lambda x, n: x * n, jnp.float32(2), jnp.int32(3))
    assert float(pull(out)[0]) == 18
    zero = np.zeros(3, jax.dtypes.float0)
    tangents = jax.jit(lambda x, t: (x, t))(jnp.arange(3), zero)
    assert tangents[1].dtype == jax.dtypes.float0 and tangents[0].devices() == {device}
    primals, out = jax.jvp(lambda x: jnp.argmax(x), (jnp.arange(3.0),), (jnp.ones(3),))
    assert int(primals) == 2 and out.dtype == jax.dtypes.float0


def test_what_is_not_used_needs_no_rule(device):
    f = jax.custom_vjp(lambda x: jnp.sin(x))
    f.defvjp(lambda x: (f(x), x), lambda x, ct: (ct * x,))
    x = jnp.arange(3.0)
    primals, tangents = jax.jit(lambda x: jax.jvp(lambda x: (f(x), x)[1], (x,), (x,)))(x)
    np.testing.assert_array_equal(np.asarray(primals), np.asarray(tangents))


def test_the_host_is_a_cpu(host_device):
    assert float(jax.lax.platform_dependent(2.0, cpu=lambda x: x + 1, cuda=lambda x: x * 10)) == 3


def test_invalid_values_are_found(device):
    x = jnp.array([1.0, 0.0])
    f = jax.jit(lambda x: jnp.sum(jnp.log(x - 1)))
    with jax.debug_nans(True):
        for run, name in ((lambda: x / x, "div"), (lambda: f(x), "log")):
            with pytest.raises(FloatingPointError, match=rf"invalid value \(nan\) encountered in {name}"):
                run()
    assert np.isnan(float(f(x)))


def test_a_mesh_of_other_devices(device):
    """Arrays go through the host's memory to a mesh over another backend's devices, and back."""
    (cpu,) = jax.devices("cpu")
    x = np.arange(8, dtype=np.float32).reshape(4, 2)
    for there in (cpu, device):
        sharding = jax.sharding.NamedSharding(jax.sharding.Mesh([there], ("x",)), jax.P("x"))
        for source in (x, jax.device_put(x, cpu), jax.device_put(x, device)):
            out = jax.device_put(source, sharding)
            assert out.devices() == {there} and out.sharding == sharding
            assert (out + 1).devices() == {there}
            np.testing.assert_array_equal(np.asarray(out), x)
