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


Y = np.array([np.nan, 1.0, np.inf, 2.0, 3.0], np.float32)
SHARED = {
    "mean of some": lambda m, x: (lambda c: (x * c).sum() / c.sum())((m.numpy.exp(Y) < 25).astype(x.dtype)),
    "two products": lambda m, x: (lambda c: x * c + c * Y)((m.numpy.exp(x) < 25).astype("float32")),
    "narrow": lambda m, x: (lambda c: (x * c).sum() + c.sum())((m.numpy.exp(Y) < 25).astype("bfloat16")),
    "matrix": lambda m, x: (lambda c: (x * c) @ (Y * c))((m.numpy.exp(x) * m.numpy.exp(Y) < 25).astype("float32")),
    "scalar": lambda m, x: (lambda c: x * c + c * Y)((m.numpy.exp(x[3]) < 0.1).astype("float32")),
    "positions": lambda m, x: (lambda c: c[::-1] * x + m.numpy.cumsum(c))((m.numpy.exp(x) < 25).astype("float32")),
    "turns of a loop": lambda m, x: m.lax.fori_loop(
        0, 3, lambda k, z: (lambda c: z * c + Y * c)((m.numpy.exp(x + k) < 25).astype("float32")), x),
    "row": lambda m, x: m.numpy.stack([x, Y]) * (m.numpy.exp(x) < 25).astype("float32"),
    "column": lambda m, x: (m.numpy.exp(x) < 25).astype("float32")[:, None] * m.numpy.stack([x, Y], 1),
    "new axis": lambda m, x: (m.numpy.exp(x) < 25).astype("float32")[:, None] * Y[:, None],
    "transposed": lambda m, x: (m.numpy.stack([x, Y]) < 3).astype("float32").T * m.numpy.stack([x, Y], 1),
    "vectors": lambda m, x: m.numpy.vdot((x > -3).astype("float32"), Y),
    "vectors turned": lambda m, x: m.numpy.einsum("i,i->", Y, (x > -3).astype("float32")),
    "rows": lambda m, x: m.numpy.einsum(
        "ij,ij->i", m.numpy.stack([x, Y]), (m.numpy.stack([Y, x]) > -3).astype("float32")),
    "matrix and vector": lambda m, x: m.numpy.stack([x, Y]) @ (x > -3).astype("float32"),
    "complex": lambda m, x: (x > -3).astype("complex64") * m.lax.complex(x, m.numpy.asarray(Y)),
    "half": lambda m, x: (x > -3).astype("float16") * Y.astype("float16"),
    "batched": lambda m, x: m.vmap(
        lambda x: (lambda c: (x * c).sum() / c.sum())((m.numpy.exp(Y) < 25).astype(x.dtype)))(m.numpy.stack([x, Y])),
}


@pytest.mark.parametrize("name", list(SHARED))
def test_a_condition_that_several_use_is_a_condition_to_each(name):
    f = SHARED[name]
    np.testing.assert_allclose(styrax.jit(lambda x: f(styrax, x))(X), real.jit(lambda x: f(real, x))(X), rtol=1e-2)


@pytest.mark.parametrize("axis", [(), 1, (0,), (0, 1), None])
@pytest.mark.parametrize("name", ["max", "min", "sum", "prod"])
def test_slopes_of_reductions_with_nan(name, axis):
    """Of one element or none reduced: the element itself, so that its slope sees the condition that chose it."""
    x = np.float32([[np.nan], [-0.0], [3.0]])

    def results(m):
        f = lambda x: getattr(m.numpy, name)(x, axis=axis)
        slope = m.grad(lambda x: f(x).sum())
        return [m.jit(f)(x), m.jit(slope)(x), *((m.jit(m.jacfwd(slope))(x),) if name in ("max", "min") else ())]

    for ours, theirs in zip(results(styrax), results(real), strict=True):
        np.testing.assert_array_equal(ours, theirs)
        np.testing.assert_array_equal(np.signbit(ours) & (np.asarray(ours) == 0), np.signbit(theirs) & (theirs == 0))
