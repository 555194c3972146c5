"""`ragged_all_to_all` against loops over senders and receivers."""

from __future__ import annotations

import numpy as np
import pytest

import styrax as jax
import styrax.numpy as jnp
from styrax import lax

STARTS = np.array([[0, 1, 3], [0, 2, 3], [4, 0, 0]])
SIZES = np.array([[1, 2, 0], [2, 1, 1], [0, 0, 3]])
TARGETS = np.array([[0, 0, 0], [1, 2, 1], [4, 0, 2]])


def exchange(*args):
    return lax.ragged_all_to_all(*args, axis_name="i")


def expected(operand, output):
    out = np.array(output)
    for sender in range(3):
        for receiver in range(3):
            n, start, target = (t[sender, receiver] for t in (SIZES, STARTS, TARGETS))
            out[receiver, target:target + n] = operand[sender, start:start + n]
    return out


@pytest.fixture(params=[(), (2,)])
def arrays(request):
    rng = np.random.default_rng(0)
    return [rng.normal(size=(3, 5, *request.param)).astype(np.float32) for _ in range(2)]


@pytest.mark.parametrize("transform", [lambda f: f, jax.jit])
def test_values(arrays, transform):
    got = transform(jax.vmap(exchange, axis_name="i"))(*arrays, STARTS, SIZES, TARGETS, SIZES.T)
    np.testing.assert_array_equal(got, expected(*arrays))


def test_derivatives(arrays):
    """Derivatives of the mapped function, and mapped derivatives, are those of a permutation."""
    weights = np.random.default_rng(1).normal(size=arrays[0].shape).astype(np.float32)
    units = [np.zeros_like(a) for a in arrays]
    wanted = [np.zeros_like(a) for a in arrays]
    for i in np.ndindex(arrays[0].shape):
        for unit, total in zip(units, wanted, strict=True):
            unit[i] = 1
            total[i] = (expected(*units) * weights).sum()
            unit[i] = 0

    mapped = jax.vmap(exchange, axis_name="i")
    outside = jax.grad(lambda *xs: (mapped(*xs, STARTS, SIZES, TARGETS, SIZES.T) * weights).sum(), (0, 1))(*arrays)
    inside = jax.vmap(lambda x, o, w, *n: jax.vjp(lambda *xs: exchange(*xs, *n), x, o)[1](w), axis_name="i")(
        *arrays, weights, STARTS, SIZES, TARGETS, SIZES.T)
    for got in (outside, inside):
        for a, b in zip(got, wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6)
    tangent = jax.jvp(lambda x: mapped(x, arrays[1], STARTS, SIZES, TARGETS, SIZES.T), (arrays[0],), (weights,))[1]
    np.testing.assert_allclose(tangent, expected(weights, np.zeros_like(weights)), rtol=1e-6)


def test_empty():
    out = jax.vmap(exchange, axis_name="i")(jnp.zeros((3, 0)), jnp.ones((3, 2)), STARTS, 0 * SIZES, TARGETS, 0 * SIZES)
    np.testing.assert_array_equal(out, np.ones((3, 2)))


def test_one_device():
    mesh = jax.make_mesh((1,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))
    number = lambda n: jnp.array([n])
    f = jax.shard_map(exchange, mesh=mesh, in_specs=(jax.P("i"),) * 6, out_specs=jax.P("i"))
    np.testing.assert_array_equal(f(jnp.arange(4.0), jnp.zeros(4), number(1), number(2), number(0), number(2)),
                                  [1, 2, 0, 0])


def test_errors():
    with pytest.raises(NameError):
        exchange(jnp.ones(2), jnp.ones(2), *[jnp.zeros(1, int)] * 4)
    for bad in (jnp.zeros(1), jnp.zeros((1, 1), int), jnp.zeros(0, int), jnp.zeros(2, int)):
        with pytest.raises(ValueError, match="ragged_all_to_all"):
            jax.vmap(lambda x: exchange(x, x, bad, *[jnp.zeros(1, int)] * 3), axis_name="i")(jnp.ones((1, 2)))  # noqa: B023


def test_programs_for_xla():
    """The call's name, its attributes and types are those that JAX writes."""
    import jax as theirs

    from styrax.xla.stablehlo import module_text

    numbers = [np.zeros(1, np.int32)] * 4
    args = (np.zeros(4, np.float32), np.zeros(4, np.float32), *numbers)
    mesh = theirs.make_mesh((1,), ("i",), axis_types=(theirs.sharding.AxisType.Auto,))
    f = theirs.shard_map(lambda *xs: theirs.lax.ragged_all_to_all(*xs, axis_name="i"), mesh=mesh,
                         in_specs=theirs.P("i"), out_specs=theirs.P("i"))
    wanted = theirs.jit(f).lower(*args).as_text()
    ours = module_text(jax.make_jaxpr(exchange, axis_env=[("i", 1)])(*args), axes={"i": 1})
    for part in ("ragged_all_to_all", "api_version = 4 : i32", "channel_id = 1 : i64",
                 "(tensor<4xf32>, tensor<4xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>)"):
        assert part in wanted and part in ours
