"""Arrays without elements: sorted, taken from, folded, and derivatives of that, as in JAX."""

import jax as real
import numpy as np
import pytest

import styrax
from styrax.core.settings.config import states

SHAPES = [(0,), (0, 3), (3, 0), (2, 0, 3)]


def unswerving(j, x):
    """A function with a loop inside that has no reverse mode: what is constant needs none."""
    return j.lax.random_gamma_grad(x, x)


def programs(j, axis):
    jnp = j.numpy
    add = jnp.frompyfunc(lambda x, y: x + y, 2, 1, identity=0.0)
    none = np.zeros(0, np.int32)
    return {
        "sort": lambda x: j.grad(lambda x: jnp.sort(x, axis=axis).sum())(x),
        "sort of two": lambda x: j.grad(lambda x: j.lax.sort((x, x * 2), dimension=axis, num_keys=1)[1].sum())(x),
        "batched sort": lambda x: j.vmap(j.grad(lambda x: jnp.sort(x).sum()))(x.reshape(4, 0)),
        "take": lambda x: jnp.take(x, none, axis=axis),
        "take all": lambda x: jnp.take(x, none),
        "take gradient": lambda x: j.grad(lambda x: jnp.take(x, none, axis=axis).sum())(x),
        "take along": lambda x: jnp.take_along_axis(x, jnp.zeros(x.shape, int), axis),
        "permutation": lambda x: j.random.permutation(j.random.key(0), x, axis=axis),
        "fold": lambda x: add.reduce(x, axis=axis),
        "fold gradient": lambda x: j.grad(lambda x: add.reduce(x, axis=axis).sum())(x),
        "where": lambda x: jnp.where(x > 0, 1, x),
        "where gradient": lambda x: j.grad(lambda x: unswerving(j, jnp.where(x > 0, jnp.ones_like(x), x)).sum())(x),
        "mask": lambda x: x[np.zeros(x.shape, bool)],
    }


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("name", list(programs(styrax, 0)))
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_programs(name, shape, compiled):
    for axis in range(len(shape)):
        run = lambda j, axis=axis: (j.jit if compiled else lambda f: f)(programs(j, axis)[name])
        got = run(styrax)(styrax.numpy.zeros(shape))
        want = run(real)(real.numpy.zeros(shape))
        assert got.shape == want.shape and got.dtype == want.dtype
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("name", ["median", "nanmedian"])
def test_medians_of_no_rows(name):
    for shape, axis in (((0, 3), 1), ((3, 0), 0)):
        got, want = (j.jit(j.grad(lambda x, j=j, axis=axis: getattr(j.numpy, name)(x, axis=axis).sum()))(
            np.zeros(shape, np.float32)) for j in (styrax, real))
        assert got.shape == want.shape == shape


@pytest.mark.parametrize("shape", [*SHAPES, (1, 0)], ids=str)
def test_text(shape):
    for dtype in (np.float32, np.int32, bool):
        assert repr(styrax.numpy.zeros(shape, dtype)) == repr(real.numpy.zeros(shape, dtype))


@pytest.mark.parametrize("debug", ["", "bounds"])
def test_windows_of_padding_alone(debug):
    def f(lax, x):
        return lax.reduce_window(x, np.inf, lax.min, (2, 1), (2, 1), [(1, 0), (1, 1)], base_dilation=(2, 1),
                                 window_dilation=(1, 2)), lax.pad(x, np.float32(2), [(1, 2, 0), (3, 0, 1)])

    for shape in ((4, 0), (0, 4), (0, 0)):
        x = np.zeros(shape, np.float32)
        with states["styrax_debug"](debug):
            got = styrax.jit(lambda x: f(styrax.lax, x))(x)
        for a, b in zip(got, real.jit(lambda x: f(real.lax, x))(x), strict=True):
            np.testing.assert_array_equal(a, b, strict=True)


LOOPS_FOR_EACH = {
    "betainc": lambda j, x: j.scipy.special.betainc(x, x, x),
    "gammainc": lambda j, x: j.scipy.special.gammainc(x, x),
    "gammaincc": lambda j, x: j.scipy.special.gammaincc(x, x),
    "random_gamma_grad": lambda j, x: j.lax.random_gamma_grad(x, x),
    "gamma": lambda j, x: j.random.gamma(j.random.key(0), x),
    "poisson": lambda j, x: j.random.poisson(j.random.key(0), x).astype(np.float32),
    "reduce_window": lambda j, x: j.lax.reduce_window(x, 0.0, j.lax.add, (1,) * x.ndim, (1,) * x.ndim, "SAME"),
}


@pytest.mark.parametrize("given, shape", [((0, 1), (1, 0, 1)), ((0,), (0,)), ((0, 1), (0, 1)), ((1, 0), (0, 1))])
@pytest.mark.parametrize("mapped", [False, True])
@pytest.mark.parametrize("name", LOOPS_FOR_EACH)
def test_loops_for_each_of_no_elements(name, mapped, given, shape):
    """An element at a place that folds to a constant must not be read outside of the loop that never turns."""
    x = np.zeros((2, *given) if mapped else given, np.float32)
    results = []
    for j in (styrax, real):
        f = lambda x, j=j: LOOPS_FOR_EACH[name](j, x.reshape(shape)) * 2 + 1
        results.append(j.jit(j.vmap(f) if mapped else f)(x))
    got, want = results
    assert got.shape == want.shape and got.dtype == want.dtype
