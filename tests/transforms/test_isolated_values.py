"""What passes through transformations untouched: carries, references, keys and tracers that are asked for as values."""

from __future__ import annotations

import numpy as np
import pytest

import styrax
from tests.transforms.oracle import assert_same, vector

CARRIES = {
    "scan": lambda lax, x: lax.scan(lambda c, _: ((c[0], c[1] + 1), None), (x, 0.0), None, 3)[0][0],
    "fori_loop": lambda lax, x: lax.fori_loop(0, 3, lambda i, c: c, x),
    "while_loop": lambda lax, x: lax.while_loop(lambda c: c[1] < 3, lambda c: (c[0], c[1] + 1), (x, 0))[0],
}


@pytest.mark.parametrize("loop", CARRIES)
@pytest.mark.parametrize("value", [3, 2.5, True, np.float32(3), np.ones(2, np.float32)])
def test_a_carry_that_does_not_change_is_what_was_given(loop, value):
    import jax

    for package in (jax, styrax):
        assert CARRIES[loop](package.lax, value) is value


def loops_over_references(jax):
    jnp, lax = jax.numpy, jax.lax

    def powers(x):
        ref = jax.new_ref(x)

        def body(i):
            ref[...] = ref[...] * jnp.float32(2)
            return i + 1

        lax.while_loop(lambda i: i < 3, body, 0)
        return ref[...]

    def written(x):
        ref = jax.new_ref(jnp.zeros(3))

        def body(carry):
            i, y = carry
            ref[i] = y * i
            return i + 1, y * 2

        lax.while_loop(lambda c: c[0] < 3, body, (0, x))
        return ref[...].sum()

    return powers, written


@pytest.mark.parametrize("which", range(2))
@pytest.mark.parametrize("wrap", ["jit", "plain", "twice"])
def test_references_in_a_while_loop(which, wrap):
    def program(jax):
        f = loops_over_references(jax)[which]
        if wrap != "plain":
            f = jax.jit(f)
        if wrap == "twice":
            f = jax.jit(lambda x, g=f: g(x) + g(x * 2))
        y, linear = jax.linearize(f, np.float32(1.5))
        return y, linear(np.float32(2)), jax.jvp(f, (np.float32(1.5),), (np.float32(2),))

    assert_same(program)


def test_sums_over_groups_of_a_value_that_is_not_mapped():
    assert_same(lambda jax: jax.vmap(lambda x, c=jax.numpy.float32(3): jax.lax.psum(
        c, "i", axis_index_groups=[[0, 1], [2, 3]]) + x, axis_name="i")(jax.numpy.arange(4.0)))


def test_shardings_of_shapes():
    device = styrax.devices()[0]
    sharding = styrax.sharding.SingleDeviceSharding(device)
    f = styrax.jit(lambda x: {"a": x, "b": x + 1}, out_shardings={"a": sharding, "b": None})
    found = styrax.eval_shape(f, vector)
    assert (found["a"].sharding, found["b"].sharding) == (sharding, None)


def test_references_are_references_under_jit():
    import jax

    for package in (jax, styrax):
        found = []
        package.jit(lambda r, x, p=package, seen=found: seen.extend(isinstance(v, p.Ref) for v in (r, x)))(
            package.new_ref(package.numpy.ones(3)), 1.0)
        assert found == [True, False]


def test_values_that_stay_where_they_are():
    import jax

    for package in (jax, styrax):
        key = package.random.key(0)
        got = package.device_get({"key": key, "x": package.numpy.ones(2)})
        assert package.numpy.issubdtype(got["key"].dtype, package.dtypes.prng_key) and type(got["x"]) is np.ndarray
        assert package.jit(package.device_get)(2.0) == 2.0
