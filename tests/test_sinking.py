"""Sums that leave loops: values, against other ways to compute them, and what is left in the loops."""

import numpy as np
import pytest

import styrax as jax
import styrax.numpy as jnp
from styrax import lax
from styrax.compile.jaxprs.inline import inline
from styrax.compile.jaxprs.sinking import sink_sums
from styrax.core.programs.jaxpr import jaxprs_in_params

R = np.random.default_rng(0)
ROWS = R.normal(size=(9, 5, 6))
STATE = R.normal(size=(5, 6))


def primitives(jaxpr, inside=False):
    """The names of a program's equations that stand in loops, or of all."""
    found = [] if inside else [eqn.primitive.name for eqn in jaxpr.eqns]
    for eqn in jaxpr.eqns:
        for inner in jaxprs_in_params(eqn.params):
            found += primitives(inner, inside and eqn.primitive.name != "scan")
    return found


def loop(step, *init, **options):
    def f(xs):
        first = [jnp.asarray(x, xs.dtype) for x in init]
        return lax.scan(step, first[0] if len(first) == 1 else tuple(first), xs, **options)

    return f


def recurrent(w, xs):
    return lax.scan(lambda h, x: (jnp.tanh(h @ w["h"] + x @ w["x"] + w["b"]), None), jnp.zeros((5, 4), xs.dtype), xs)[0]


ONES = np.ones((6, 6))
WEIGHTS = {"h": R.normal(size=(4, 4)), "x": R.normal(size=(6, 4)), "b": R.normal(size=4)}


def weights(like):
    return {name: jnp.asarray(x, like.dtype) for name, x in WEIGHTS.items()}


def accumulated(c, x):
    return c + x.T @ x, None


# what a turn adds to, by whom, and how many products and reductions are left in the loop
PROGRAMS = {
    "product": (loop(accumulated, ONES), 0),
    "product, turned": (loop(lambda c, x: (c + (x.T @ (2 * x)).T, None), ONES), 0),
    "scaled": (loop(lambda c, x: (c + 0.5 * (x.T @ x) + -(x.T @ jnp.sin(x)), None), ONES), 0),
    "outer product": (loop(lambda c, x: (c + jnp.outer(x[0], x[1]), None), ONES), 0),
    "batched": (loop(lambda c, x: (c + jnp.einsum("bi,bj->bij", x, x + 1), None), np.ones((5, 6, 6))), 0),
    "sum of a row": (loop(lambda c, x: (c + x.sum(), None), 1.0), 0),
    "sum of elements": (loop(lambda c, x: ((jnp.cos(c[0]) * x, c[1] + jnp.sin(c[0]).sum()), None), STATE, 0.5), 0),
    "sums along dimensions": (
        loop(lambda c, x: ((jnp.cos(c[0]) * x, c[1] + c[0].sum(0), c[2] + 3 * x.sum(1)), None),
             STATE, np.ones(6), np.zeros(5)), 0),
    "padded": (loop(lambda c, x: ((c[0] + x, c[1] + lax.pad((c[0] * x).sum()[None], np.zeros((), x.dtype),
                                                            [(1, 2, 0)])), None), STATE, np.ones(4)), 0),
    "of each turn": (loop(lambda c, x: (c * jnp.sin(x), (c + x).sum()), STATE), 0),
    "of each turn, backwards": (loop(lambda c, x: (c * jnp.sin(x), ((c + x).sum(0), c)), STATE, reverse=True), 0),
    "both": (loop(lambda c, x: ((c[0] * jnp.sin(x), c[1] + (c[0] * x).sum()), c[0].sum()), STATE, 2.0), 0),
    # what stays
    "wanted at each turn": (loop(lambda c, x: (c + x.T @ x, c), ONES), 1),
    "read by the turn": (loop(lambda c, x: (c + x.T @ jnp.sin(x @ c), None), ONES), 2),
    "twice the carry": (loop(lambda c, x: (c + c + x.T @ x, None), ONES), 1),
    "subtracted from": (loop(lambda c, x: (x.T @ x - c, None), ONES), 1),
    "not linear": (loop(lambda c, x: (c + jnp.tanh(x.T @ x), None), ONES), 1),
    "padded with ones": (loop(lambda c, x: (c + jnp.pad((x.T @ x), 1, constant_values=1), None), np.ones((8, 8))), 1),
    "maximum": (loop(lambda c, x: (jnp.maximum(c, x.max()), None), 0.5), 1),
    "rounded": (loop(lambda c, x: (c + (x.T @ x).astype(np.float16).astype(x.dtype), None), ONES), 1),
    "scaled by what changes": (loop(lambda c, x: ((c[0] + 1, c[1] + c[0] * (x.T @ x)), None), 1.0, ONES),
                               1),
    "among products": (loop(lambda c, x: ((jnp.sin(c[0] @ STATE.T) @ x, c[1] + c[0].sum()), None), STATE, 0.5), 3),
    "in a loop": (lambda xs: lax.fori_loop(0, 3, lambda i, c: c + loop(accumulated, 0.1 * ONES)(xs)[0] * c,
                                           jnp.asarray(ONES, xs.dtype)), 1),
    "one turn": (lambda xs: loop(accumulated, ONES)(xs[:1]), 1),
}
# gradients of a recurrent network, and the products that are left in its two loops, or more
GRADIENTS = {
    "once": (lambda xs: jax.grad(lambda w: recurrent(w, xs).sum())(weights(xs)), 3),
    "of all states": (lambda xs: jax.grad(lambda w: jax.vmap(lambda x: recurrent(w, x[None]))(xs).sum())(weights(xs)),
                      None),
    "twice": (lambda xs: jax.grad(lambda w: sum((g * g).sum() for g in jax.tree.leaves(
        jax.grad(lambda v: recurrent(v, xs).sum())(w))))(weights(xs)), None),
    "of a batch": (lambda xs: jax.vmap(lambda s: jax.grad(lambda w: recurrent(w, s * xs).sum())(weights(xs)))(
        jnp.arange(3, dtype=xs.dtype)), None),
}


INTEGERS = ("product", "outer product", "batched", "sum of a row", "wanted at each turn", "subtracted from", "maximum",
            "padded with ones", "one turn")  # the others compute in floats
KINDS = [*((name, dtype) for name in PROGRAMS for dtype in (np.float32, np.float64)),
         *((name, np.int32) for name in INTEGERS),
         *((name, np.complex64) for name in PROGRAMS if name not in ("maximum", "rounded"))]  # (of real numbers)


@pytest.mark.parametrize(("name", "dtype"), KINDS)
def test_values(name, dtype):
    compare(PROGRAMS[name][0], (3 * ROWS if dtype == np.int32 else 0.5 * ROWS).astype(dtype))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(name, dtype):
    compare(GRADIENTS[name][0], (0.5 * ROWS).astype(dtype))


def compare(f, rows):
    """What is compiled, with each operation by itself."""
    with jax.enable_x64(rows.dtype == np.float64):
        xs = jnp.asarray(rows)
        got = jax.tree.leaves(jax.jit(f)(xs))
        with jax.disable_jit():
            expected = jax.tree.leaves(f(xs))
    exact = 1e-11 if rows.dtype == np.float64 else 3e-5
    assert [g.dtype for g in got] == [e.dtype for e in expected]
    for g, e in zip(got, expected, strict=True):
        np.testing.assert_allclose(g, e, rtol=exact, atol=exact)


@pytest.mark.parametrize("name", [*PROGRAMS, "once"])
def test_what_stays_in_loops(name):
    f, left = {**PROGRAMS, **GRADIENTS}[name]
    closed = inline(jax.make_jaxpr(f)(jnp.asarray(ROWS.astype(np.float32))))
    sunk = sink_sums(closed)
    names = [n for n in primitives(sunk.jaxpr, inside=True) if n in ("dot_general", "reduce_sum", "reduce_max")]
    assert len(names) == left
    before = [n for n in primitives(closed.jaxpr, inside=True) if n in ("dot_general", "reduce_sum", "reduce_max")]
    assert (sunk is closed) == (len(before) == left) or name == "in a loop"  # (where it leaves the inner one)


@pytest.mark.parametrize(("operand", "total"), [(jnp.bfloat16, np.float32), (np.int8, np.int32),
                                                (np.float16, np.float32)])
def test_wider_sums(operand, total):
    """Products of narrow numbers that are added up in wide ones."""
    def f(xs):
        product = lambda x: lax.dot_general(x, x, (((0,), (0,)), ((), ())), preferred_element_type=total)
        return lax.scan(lambda c, x: (c + product(x), None), jnp.ones((6, 6), total), xs)

    xs = jnp.asarray(np.round(ROWS * 8)).astype(operand)
    closed = inline(jax.make_jaxpr(f)(xs))
    assert "dot_general" not in primitives(sink_sums(closed).jaxpr, inside=True)
    wide = np.asarray(xs).astype(np.float64)
    np.testing.assert_array_equal(jax.jit(f)(xs)[0], 1 + np.einsum("tki,tkj->ij", wide, wide))  # (exact in both)


def test_no_turns():
    f = jax.jit(loop(accumulated, ONES))
    np.testing.assert_array_equal(f(jnp.zeros((0, 5, 6)))[0], ONES)
    np.testing.assert_array_equal(f(jnp.zeros((3, 0, 6)))[0], ONES)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite(bad):
    rows = ROWS.astype(np.float32)
    rows[3, 2, 1] = bad
    for name in ("product", "sums along dimensions", "of each turn"):
        compare(PROGRAMS[name][0], rows)


def test_large_rows_stay():
    """What is kept of all turns is not much larger than what a turn adds to."""
    def f(xs):
        return loop(lambda c, x: (c + jnp.sin(x).T @ jnp.cos(x), None), np.ones((6, 6)))(xs)

    for rows, left in ((10, 0), (50, 1)):
        closed = inline(jax.make_jaxpr(f)(jnp.zeros((4, rows, 6))))
        assert primitives(sink_sums(closed).jaxpr, inside=True).count("dot_general") == left

