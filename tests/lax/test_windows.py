"""Window reductions against JAX's: values, derivatives in both modes, batching, errors."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from styrax import lax
from styrax.transforms.api import grad, jacfwd, jvp, vjp, vmap
from tests.lax.oracle import check, program

rng = np.random.default_rng(0)

# shape, window, keyword arguments
WINDOWS = [
    ((7,), (3,), dict()),
    ((4, 6), (2, 3), dict(window_strides=(2, 1), padding="SAME")),
    ((4, 6), (2, 3), dict(window_strides=(2, 3), padding="SAME_LOWER")),
    ((5, 6), (2, 2), dict(padding=((1, 2), (0, 1)), window_dilation=(1, 2))),
    ((3, 4), (2, 2), dict(base_dilation=(2, 3), padding=((1, 0), (2, 2)))),
    ((2, 5, 5, 3), (1, 2, 2, 1), dict(window_strides=(1, 2, 2, 1))),
    ((3, 4), (5, 2), dict()),
]
REDUCERS = {
    "sum": (lax.add, jax.lax.add, lambda d: 0),
    "max": (lax.max, jax.lax.max, lambda d: -np.inf if np.issubdtype(d, np.floating) else np.iinfo(d).min),
    "min": (lax.min, jax.lax.min, lambda d: np.inf if np.issubdtype(d, np.floating) else np.iinfo(d).max),
}


def pair(kind, window, kwargs, dtype=np.float32):
    ours, theirs, start = REDUCERS[kind]
    init = np.asarray(start(dtype), dtype)[()]
    return (lambda x: lax.reduce_window(x, init, ours, window, **kwargs),
            lambda x: jax.lax.reduce_window(x, init, theirs, window, **kwargs))


@pytest.mark.parametrize("platform", ["xla", "cpu"])
@pytest.mark.parametrize("kind", list(REDUCERS))
@pytest.mark.parametrize("case", WINDOWS, ids=lambda c: f"{c[0]}{list(c[2])}")
def test_values(case, kind, platform):
    shape, window, kwargs = case
    f, g = pair(kind, window, kwargs)
    check(platform, f, g, rng.normal(size=shape).astype(np.float32), atol=1e-5)


@pytest.mark.parametrize("dtype", ["int32", "uint8"])
def test_integers(dtype):
    for kind in REDUCERS:
        f, g = pair(kind, (2, 3), dict(window_strides=(1, 1), padding="SAME"), np.dtype(dtype))
        check("cpu", f, g, rng.integers(0, 100, size=(4, 6)).astype(dtype))


@pytest.mark.parametrize("platform", ["xla", "cpu"])
def test_any_monoid(platform):
    x = rng.normal(size=(4, 6)).astype(np.float32)
    i = rng.integers(0, 9, size=(4, 6)).astype(np.int32)
    f = lambda x: lax.reduce_window(x, np.float32(1), lax.mul, (2, 2), (1, 1), "SAME")
    g = lambda x: jax.lax.reduce_window(x, np.float32(1), jax.lax.mul, (2, 2), (1, 1), "SAME")
    check(platform, f, g, x, rtol=1e-5)

    def both(j, x, i):
        return j.reduce_window((x, i), (np.float32(0), np.int32(1)),
                               lambda a, c: (j.add(a[0], c[0]), j.mul(a[1], c[1])), (2, 2), (1, 1), "VALID")

    check(platform, lambda x, i: both(lax, x, i), lambda x, i: both(jax.lax, x, i), x, i, atol=1e-5)
    check(platform, lambda x: lax.reduce_window(x, False, lax.bitwise_or, (2, 2), (1, 1), "VALID"),
          lambda x: jax.lax.reduce_window(x, False, jax.lax.bitwise_or, (2, 2), (1, 1), "VALID"), i > 6)
    check(platform, lambda x: jvp(f, (x,), (x,)), lambda x: jax.jvp(g, (x,), (x,)), x, rtol=1e-5)


@pytest.mark.parametrize("platform", ["xla", "cpu"])
@pytest.mark.parametrize("kind", list(REDUCERS))
@pytest.mark.parametrize("case", WINDOWS[:6], ids=lambda c: f"{c[0]}{list(c[2])}")
def test_derivatives(case, kind, platform):
    shape, window, kwargs = case
    f, g = pair(kind, window, kwargs)
    x, t = rng.permutation(np.arange(2 * np.prod(shape))).reshape(2, *shape).astype(np.float32)
    # without ties: XLA's order within a window of several dimensions is not always the same
    check(platform, lambda x, t: jvp(f, (x,), (t,))[1], lambda x, t: jax.jvp(g, (x,), (t,))[1], x, t, atol=1e-5)
    x = np.round(rng.normal(size=shape), 1).astype(np.float32)  # ties
    if kind != "sum" and "window_dilation" in kwargs:
        with pytest.raises(NotImplementedError, match="window dilation"):
            program(lambda x: vjp(f, x)[1](f(x)), x)
        return
    ct = rng.normal(size=np.asarray(g(x)).shape).astype(np.float32)
    check(platform, lambda x, c: vjp(f, x)[1](c), lambda x, c: jax.vjp(g, x)[1](c), x, ct, atol=1e-5)


@pytest.mark.parametrize("platform", ["xla", "cpu"])
@pytest.mark.parametrize("kind", ["max", "min"])
def test_derivatives_of_ties(kind, platform):
    f, g = pair(kind, (3,), dict(padding=((1, 2),)))
    x = np.float32([0, 1, 1, -0.0, 0, 2, 2, 2, 0, -0.0, 0])
    t = np.arange(1, 12, dtype=np.float32)
    check(platform, lambda x, t: jvp(f, (x,), (t,))[1], lambda x, t: jax.jvp(g, (x,), (t,))[1], x, t)


@pytest.mark.parametrize("kind", list(REDUCERS))
def test_second_derivatives(kind):
    f, g = pair(kind, (2,), {})
    x = rng.normal(size=(5,)).astype(np.float32)

    def ours(x):
        y = f(x)
        return lax.reduce_sum(lax.mul(lax.mul(y, y), y), (0,))

    check("xla", jacfwd(grad(ours)), jax.jacfwd(jax.grad(lambda x: (g(x) ** 3).sum())), x, rtol=1e-4, atol=1e-4)
    check("xla", grad(lambda x: lax.reduce_sum(lax.sin(grad(ours)(x)), (0,))),
          jax.grad(lambda x: jnp.sin(jax.grad(lambda x: (g(x) ** 3).sum())(x)).sum()), x, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("platform", ["xla", "cpu"])
@pytest.mark.parametrize("name", ["add", "mul", "max", "bitwise_xor", "custom"])
def test_starts_that_are_not_neutral(name, platform):
    """Each window starts once; what lies outside of the operand is left out."""
    integers = name.startswith("bitwise")
    x = rng.integers(1, 9, size=(40, 4)) if integers else rng.uniform(0.5, 1, size=(40, 4))
    x = x.astype(np.int32 if integers else np.float32)
    init = x.dtype.type(3)
    sizes = [(2, 2), (2, 3)] if name == "custom" else [(2, 2), (20, 1)]
    for window in sizes:
        for padding, base in (("SAME", (1, 1)), (((3, 1), (2, 2)), (2, 2))):
            def run(j, x, start, window=window, padding=padding, base=base):
                combine = (lambda a, b: a * b + a + b) if name == "custom" else getattr(j, name)
                return j.reduce_window(x, start, combine, window, (1, 2), padding, base)

            check(platform, lambda x: run(lax, x, init), lambda x: run(jax.lax, x, init), x, rtol=1e-5)
            if platform == "cpu":
                check(platform, lambda x, s: run(lax, x, s), lambda x, s: run(jax.lax, x, s), x, init, rtol=1e-5)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_batching(axis):
    for kind in REDUCERS:
        f, g = pair(kind, (2, 3), dict(window_strides=(2, 1), padding="SAME"))
        x = rng.normal(size=(4, 6)).astype(np.float32)
        xs = np.stack([x, x[::-1], x * 2], axis)
        check("xla", vmap(f, axis), jax.vmap(g, axis), xs, atol=1e-5)
        check("xla", vmap(lambda x: vjp(f, x)[1](f(x)), axis), jax.vmap(lambda x: jax.vjp(g, x)[1](g(x)), axis), xs,  # noqa: B023
              atol=1e-5)
        check("xla", vmap(lambda x: jvp(f, (x,), (x,))[1], axis), jax.vmap(lambda x: jax.jvp(g, (x,), (x,))[1], axis),  # noqa: B023
              xs, atol=1e-5)


def test_parameters():
    for kind in REDUCERS:
        f, g = pair(kind, (2, 3), dict(window_strides=(1, 1), padding="SAME"))
        ours, theirs = program(f, np.ones((4, 6), np.float32))[0], jax.make_jaxpr(g)(np.ones((4, 6), np.float32))
        assert ours.eqns[0].primitive.name == theirs.eqns[0].primitive.name
        assert {k: str(v) for k, v in ours.eqns[0].params.items()} == {
            k: str(v) for k, v in theirs.eqns[0].params.items()}


X = np.ones((3, 4), np.float32)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((X, 0.0, lax.add, (2, 2), (1, 1), "WRONG"), RuntimeError, "padding type"),
        ((X, 0.0, lax.add, (2,), (1,), "SAME"), TypeError, "window_dimensions"),
        ((X, 0.0, lax.add, (2, 2), (1,), "SAME"), TypeError, "window_strides"),
        ((X, 0.0, lax.add, (2, 2), (0, 1), "VALID"), TypeError, "strictly positive"),
        ((X, 0.0, lax.add, (0, 2), (1, 1), "VALID"), TypeError, "strictly positive"),
        ((X, 0.0, lax.add, (2, 2), (1, 1), "VALID", (1,)), TypeError, "base_dilation"),
        ((X, 0.0, lax.add, (2, 2), (1, 1), ((1, 1),)), ValueError, "padding"),
        (((X, X), (0.0,), lax.add, (2, 2), (1, 1), "VALID"), ValueError, "tree structure"),
        ((X, np.zeros(2), lax.add, (2, 2), (1, 1), "VALID"), TypeError, "scalars"),
        ((X > 0, False, lax.add, (2, 2), (1, 1), "VALID"), TypeError, "number dtype"),
    ],
)
def test_errors(arguments, error, message):
    with pytest.raises(error, match=message):
        program(lambda: lax.reduce_window(*arguments))
