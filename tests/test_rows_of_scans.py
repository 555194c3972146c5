"""What a turn of a scan stores and gives as a result it stores where its row goes: values, whoever reads them."""

import numpy as np
import pytest

import styrax as jax
import styrax.numpy as jnp
from styrax import lax
from styrax.compile.ir.expr import walk
from styrax.compile.ir.loopir import Store, statements

R = np.random.default_rng(0)
XS = R.normal(size=(7, 6, 6)) / 2
C = R.normal(size=(6, 6)) / 2


def costly(c, x):
    return jnp.tanh(jnp.sin(c) * x + jnp.cos(x))


def of_rows(turn):
    """A program whose turns give `turn`'s results: the next carry, and rows."""
    return lambda xs, reverse=False: lax.scan(turn, jnp.asarray(C, xs.dtype), xs, reverse=reverse)


def with_(read):
    """A turn that gives a row, and reads it in its own way."""
    def turn(c, x):
        d = costly(c, x)
        return read(d, c), d
    return of_rows(turn)


def nested(c, x):
    def inner(e, row):
        g = costly(e, row)
        return g[::-1] * 0.5 + e, g
    e, rows = lax.scan(inner, c[0], x)
    return c * 0.5 + rows.T, rows


def several(c, x):
    d = costly(c, x)
    e = costly(d.T, x)
    return 0.1 * (d @ e), (d, e, d, d.T, e.sum(0), d > 0)


PROGRAMS = {
    "turned round": with_(lambda d, c: d[::-1] + jnp.roll(d, 1, 1)),
    "transposed": with_(lambda d, c: d.T * 0.5 + c),
    "a product": with_(lambda d, c: 0.1 * (d @ c) + 0.5 * d),
    "two products": with_(lambda d, c: 0.05 * (d @ c) @ d.T + 0.5 * d),
    "sums": with_(lambda d, c: c * 0.5 + d.sum(0) - d.max(1)[:, None]),
    "cumulative": with_(lambda d, c: jnp.cumsum(d, 0) * 0.2 + d),
    "sorted": with_(lambda d, c: jnp.sort(d, 1) + c * 0.1),
    "gathered": with_(lambda d, c: d[jnp.array([3, 1, 1, 5, 0, 2])] - d),
    "updated": with_(lambda d, c: d.at[1:3].set(c[:2]) * 0.9),
    "solved": with_(lambda d, c: jnp.linalg.solve(d @ d.T + 2 * jnp.eye(6, dtype=d.dtype), c)),
    "the carry itself": with_(lambda d, c: d),
    "by nobody": with_(lambda d, c: c),
    "a row of what is carried": of_rows(lambda c, x: (costly(c, x), c)),
    "several": of_rows(several),
    "in a loop": of_rows(nested),
    "a choice": with_(lambda d, c: lax.cond(d[0, 0] > 0, lambda: d.T, lambda: c @ d)),
}


def compare(f, *args):
    got = jax.tree.leaves(jax.jit(f)(*args))
    with jax.disable_jit():
        expected = jax.tree.leaves(f(*args))
    exact = 1e-11 if args[0].dtype == np.float64 else 2e-4
    for g, e in zip(got, expected, strict=True):
        assert g.dtype == e.dtype
        np.testing.assert_allclose(g, e, rtol=exact, atol=exact)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64])
@pytest.mark.parametrize("name", PROGRAMS)
def test_values(name, dtype, reverse):
    if dtype == np.complex64 and name in ("sums", "sorted", "several", "a choice"):
        dtype = np.float32  # (complex numbers have no order)
    with jax.enable_x64(dtype == np.float64):
        compare(lambda xs: PROGRAMS[name](xs, reverse), jnp.asarray(XS.astype(dtype)))


@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_of_batches(name):
    def loss(xs):
        return sum(jnp.sum(leaf * leaf) for leaf in jax.tree.leaves(PROGRAMS[name](xs)) if leaf.dtype != bool)

    xs = jnp.stack([jnp.asarray(XS.astype(np.float32)), jnp.asarray(-XS.astype(np.float32))])
    compare(lambda xs: jax.vmap(jax.grad(loss))(xs), xs)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite(bad):
    xs = XS.astype(np.float32)
    xs[2, 1, 3] = bad
    compare(PROGRAMS["a product"], jnp.asarray(xs))
    compare(PROGRAMS["turned round"], jnp.asarray(xs))


def test_a_row_is_stored_once():
    """Products read it where it lies: there is no other memory that it is written to first."""
    def f(xs, w):
        def turn(c, x):
            d = costly(c, x)
            return d @ w, d
        return lax.scan(turn, xs[0], xs)

    compiled = jax.jit(f).lower(np.zeros((9, 80, 64), np.float32), np.zeros((64, 64), np.float32)).compile()
    program = compiled.runtime_executable().program
    rows = [s.buffer for s in statements(program.statements) if isinstance(s, Store) and any(
        e.op == "tanh" for e in walk(s.exprs()))]
    assert len({program.placement.root(b) for b in rows}) == 1

