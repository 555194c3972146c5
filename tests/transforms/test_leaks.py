"""checking_leaks: tracers that outlive their trace are named; what is held rightly is no leak."""

from __future__ import annotations

import numpy as np
import pytest

from tests.transforms.oracle import jax, styrax, vector

LEAKS = {
    "jit": lambda j, keep: j.jit(keep)(2.0),
    "vmap": lambda j, keep: j.vmap(keep)(vector),
    "scan": lambda j, keep: j.lax.scan(lambda c, x: (c, keep(x)), 0.0, vector),
    "make_jaxpr": lambda j, keep: j.make_jaxpr(keep)(2.0),
}


@pytest.mark.parametrize("name", LEAKS)
def test_leaks(name):
    kept = []

    def keep(x):
        kept.append(x * 2)
        return x

    with jax.checking_leaks(), pytest.raises(Exception):  # noqa: B017  # what JAX says depends on who holds the test
        LEAKS[name](jax, keep)
    with styrax.checking_leaks(), pytest.raises(Exception, match=r"Leaked trace \w+\. Leaked tracer"):
        LEAKS[name](styrax, keep)
    LEAKS[name](styrax, lambda x: keep(x))


HELD = {
    "closures": lambda j: j.jit(lambda x: j.vmap(lambda y: y * x)(vector))(2.0),
    "gradient of a scan": lambda j: j.grad(lambda x: j.lax.scan(lambda c, y: (c * x, y), x, vector)[0])(2.0),
    "hessian": lambda j: j.hessian(j.checkpoint(lambda x: j.numpy.sin(x).sum()))(vector),
    "pullback": lambda j: j.jit(lambda x: j.vjp(lambda y: j.numpy.sin(y) * x, x)[1](1.0)[0])(2.0),
    "cond": lambda j: j.vmap(lambda x: j.lax.cond(x > 2, lambda: x, lambda: j.numpy.cos(x)))(vector),
    "nested": lambda j: j.jit(j.vmap(j.jit(j.grad(lambda x: j.numpy.tanh(x) ** 2))))(vector),
    "while": lambda j: j.jit(lambda n: j.lax.fori_loop(0, n, lambda i, c: c + n, 0))(3),
    "mapped": lambda j: j.vmap(lambda x: j.lax.psum(x, "i"), axis_name="i")(vector),
    "random": lambda j: j.jit(lambda k: j.random.normal(k, (2,)))(j.random.key(0)),
}


@pytest.mark.parametrize("name", HELD)
def test_no_leaks(name):
    with styrax.checking_leaks():
        got = HELD[name](styrax)
    np.testing.assert_allclose(np.asarray(got), np.asarray(HELD[name](jax)), rtol=1e-5, atol=1e-6)
