"""Reverse rules of users, behind rules that give no cotangent: they run where their results enter what has one."""

import jax as real
import numpy as np
import pytest

import styrax


def statistics(package, results):
    """A function whose rule gives a statistic in place of its second argument's derivative."""
    f = package.custom_vjp(lambda x, s: (x, s) if results == 2 else x)
    f.defvjp(lambda x, s: (f(x, s), s + 5.0), lambda kept, ct: (None, kept))
    return lambda x, s: f(x, s)[0] if results == 2 else f(x, s)


def stopping(package):
    g = package.custom_vjp(lambda x, y: x * y)
    g.defvjp(lambda x, y: (x * y, None), lambda _, ct: (None, ct))
    return g


USES = {
    "at once": lambda p, f, g, x, s, y: g(f(x, s), y),
    "after other functions": lambda p, f, g, x, s, y: g(p.numpy.sin(f(x, s)) * 2.0, y),
    "beside another use": lambda p, f, g, x, s, y: g(f(x, s), y) + x * s,
    "not used": lambda p, f, g, x, s, y: (f(x, s), y)[1],
    "stopped": lambda p, f, g, x, s, y: p.lax.stop_gradient(f(x, s)) * y,
    "as an integer": lambda p, f, g, x, s, y: f(x, s).astype(int) * y,
    "in a program": lambda p, f, g, x, s, y: p.jit(lambda x, s, y: g(f(x, s), y))(x, s, y),
    "in a loop": lambda p, f, g, x, s, y: p.lax.scan(lambda c, _: (g(f(x, s), c), None), y, None, length=2)[0],
    "in a branch": lambda p, f, g, x, s, y: p.lax.cond(x > 0, lambda: g(f(x, s), y), lambda: y),
    "computed again": lambda p, f, g, x, s, y: p.checkpoint(lambda x, s, y: g(f(x, s), y))(x, s, y),
}


@pytest.mark.parametrize("results", [1, 2])
@pytest.mark.parametrize("use", list(USES))
def test_derivatives_are_those_of_jax(use, results):
    def loss(package):
        f, g = statistics(package, results), stopping(package)
        return lambda *args: USES[use](package, f, g, *map(package.numpy.asarray, args))

    numbers = np.float32([2.0, 3.0, 4.0])
    for wrap in (lambda p, f: f, lambda p, f: p.jit(f)):
        ours, theirs = (wrap(p, p.grad(loss(p), (0, 1, 2)))(*numbers) for p in (styrax, real))
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)
    columns = np.stack([numbers, 2 * numbers], 1)
    ours, theirs = (p.vmap(p.grad(loss(p), (0, 1, 2)))(*columns) for p in (styrax, real))
    np.testing.assert_allclose(ours, theirs, rtol=1e-6)
