"""Tangents of integers and booleans, of dtype `float0`, in compiled programs: values without memory."""

import jax as real
import numpy as np
import pytest

import styrax


def programs(j):
    """Functions of an array of floats in which `float0` is computed, carried, scanned, chosen, returned."""
    lax, jnp = j.lax, j.numpy
    compare = lambda x: j.jvp(lambda v: v > 0, (x,), (x,))
    none = lambda x: np.zeros(x.shape, j.dtypes.float0)
    return {
        "jvp": compare,
        "several results": lambda x: (x + 1, compare(x), x * 2, (x * x).sum()),
        "gradient": lambda x: j.grad(lambda a, i: (a * i["k"]).sum(), argnums=(0, 1), allow_int=True)(
            x, {"k": jnp.arange(x.size).reshape(x.shape)}),
        "mask": lambda x: j.vjp(lambda a, m: jnp.where(m, a, 0), x, x > 0)[1](x),
        "linearize": lambda x: j.linearize(lambda v: (v > 0, v * 2), x)[1](x),
        "inner jit": lambda x: j.jit(lambda z: (z, x))(compare(x)[1]),
        "scan rows": lambda x: lax.scan(lambda c, _: (c + 1, compare(c)), x, None, length=3),
        "scan carry": lambda x: lax.scan(lambda c, _: ((c[0] + 1, compare(c[0])[1]), c[0]), (x, none(x)), None,
                                        length=3),
        "jvp of scan": lambda x: j.jvp(
            lambda v: lax.scan(lambda c, _: (c + 1, c * v), jnp.int32(0), None, length=3), (x,), (x,)),
        "cond": lambda x: lax.cond(x.sum() > 0, lambda: compare(x), lambda: compare(-x)),
        "jvp of cond": lambda x: j.jvp(
            lambda v: lax.cond(v.sum() > 0, lambda v: (v > 0, v), lambda v: (v < 0, v * 2), v), (x,), (x,)),
        "while": lambda x: lax.while_loop(
            lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1], compare(x)[1]), (0, x, none(x))),
        "jvp of while": lambda x: j.jvp(
            lambda v: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * 2), (0, v)), (x,), (x,)),
        "map": lambda x: lax.map(compare, x.reshape(-1)),
        "vmap": lambda x: j.vmap(compare)(x.reshape(-1)),
        "vmap of jit": lambda x: j.vmap(j.jit(compare))(x.reshape(-1)),
        "checkpoint": lambda x: j.grad(
            lambda v: j.checkpoint(lambda m, v: jnp.where(m, v, 2 * v).sum())(v > 0, v))(x),
    }


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("name", list(programs(styrax)))
@pytest.mark.parametrize("shape", [(3,), (0,), (2, 5), (1,)])
def test_programs(name, shape, compiled):
    x = np.linspace(-1, 2, int(np.prod(shape)), dtype=np.float32).reshape(shape)
    ours, theirs = programs(styrax)[name], programs(real)[name]
    got = (styrax.jit(ours) if compiled else ours)(styrax.numpy.asarray(x))
    want = real.jit(theirs)(real.numpy.asarray(x))
    assert str(styrax.tree.structure(got)) == str(real.tree.structure(want))
    for a, b in zip(styrax.tree.leaves(got), real.tree.leaves(want), strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype
        if a.dtype == real.dtypes.float0:
            assert isinstance(a, np.ndarray)
        else:
            np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-6)


def test_scalars():
    got = styrax.jit(lambda x: styrax.jvp(lambda v: v > 0, (x,), (x,)))(1.0)
    assert bool(got[0]) and got[1].shape == () and got[1].dtype == real.dtypes.float0


@pytest.mark.parametrize("n", [4, 3_000_000])
def test_as_arguments_and_on_the_queue(n):
    z = np.zeros(3, real.dtypes.float0)
    x = styrax.numpy.ones(n)
    f = styrax.jit(lambda z, x: (z, x * 2, z, styrax.lax.fori_loop(0, 9, lambda i, c: styrax.numpy.sin(c), x).sum()))
    for _ in range(2):  # the second call takes the short way
        a, twice, b, total = f(z, x)
        assert a.shape == b.shape == (3,) and a.dtype == b.dtype == z.dtype
        assert twice.sum() == 2 * n and np.isfinite(total)


def test_in_programs_as_text():
    f = lambda j: str(j.make_jaxpr(lambda x: j.jvp(lambda v: v > 0, (x,), (x,)))(np.ones(3, np.float32)))
    assert f(styrax) == f(real)
