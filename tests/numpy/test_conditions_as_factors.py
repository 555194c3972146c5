"""Products with conditions: 0 where they do not hold, also of infinities and NaNs, as JAX has it."""

import jax as real
import jax.numpy as rnp
import numpy as np
import pytest

import styrax
import styrax.numpy as jnp
from styrax.core.settings import config

HOLDS = np.array([False, True, False, True, False])
X = np.array([np.inf, np.nan, -np.inf, -2.0, np.nan], np.float32)


def equal(ours, theirs):
    assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
    np.testing.assert_array_equal(ours, theirs)


FUNCTIONS = {
    "array": lambda np, x, c: x * c,
    "reflected": lambda np, x, c: c * x,
    "function": lambda np, x, c: np.multiply(c, x),
    "number": lambda np, x, c: np.inf * c,
    "negative number": lambda np, x, c: c * -2.5,
    "comparison": lambda np, x, c: x * (x > 0),
    "twice": lambda np, x, c: x * c * c,
    "integers": lambda np, x, c: np.arange(5) * c,
    "conditions": lambda np, x, c: c * c,
    "empty": lambda np, x, c: x[:0] * c[:0],
    "one": lambda np, x, c: x[:1] * c[:1],
    "scalar": lambda np, x, c: x[0] * c[0],
    "sum": lambda np, x, c: (np.array([np.inf, 1, 2, 3, 4], dtype="float32") * c).sum(),
    "later factor": lambda np, x, c: np.exp(1000 * np.abs(x)) * c * 2.0,
}


@pytest.mark.parametrize("name", list(FUNCTIONS))
def test_products_are_those_of_jax(name):
    f = FUNCTIONS[name]
    theirs = f(rnp, rnp.asarray(X), rnp.asarray(HOLDS))
    equal(f(jnp, jnp.asarray(X), jnp.asarray(HOLDS)), theirs)
    equal(styrax.jit(lambda x, c: f(jnp, x, c))(X, HOLDS), real.jit(lambda x, c: f(rnp, x, c))(X, HOLDS))


def test_numpy_conditions_and_bools():
    equal(jnp.asarray(X) * HOLDS, rnp.asarray(X) * HOLDS)
    equal(HOLDS * jnp.asarray(X), HOLDS * rnp.asarray(X))
    equal(jnp.asarray(X) * True, rnp.asarray(X) * True)


def test_under_transformations():
    f = lambda x, c: ((x * c) ** 2).sum()
    finite = np.float32([1, 2, 3, 4, 5])
    equal(styrax.grad(f)(finite, HOLDS), real.grad(f)(finite, HOLDS))
    batch = np.stack([finite, 2 * finite])
    equal(styrax.vmap(styrax.grad(f), (0, None))(batch, HOLDS), real.vmap(real.grad(f), (0, None))(batch, HOLDS))
    loop = lambda lax, x, c: lax.fori_loop(0, 3, lambda k, x: x * c, x)
    equal(styrax.jit(lambda x, c: loop(styrax.lax, x, c))(X, HOLDS), loop(real.lax, X, HOLDS))
    equal(styrax.jit(styrax.vmap(lambda x, c: x * c))(X, HOLDS), real.jit(real.vmap(lambda x, c: x * c))(X, HOLDS))


def test_strict_numerics_keep_the_product():
    with config.states["styrax_numerics"]("strict"):
        assert np.isnan(styrax.jit(lambda x, c: x * c)(X, HOLDS)[0])


def test_the_program_is_that_of_a_conversion_and_a_product():
    ours = [e.primitive.name for e in styrax.make_jaxpr(lambda x, c: x * c)(X, HOLDS).eqns]
    assert ours == [e.primitive.name for e in real.make_jaxpr(lambda x, c: x * c)(X, HOLDS).eqns]
