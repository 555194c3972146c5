"""checking_leaks: tracers that outlive their trace are named; what is held rightly is no leak."""

from __future__ import annotations

import numpy as np
import pytest

from tests.transforms.oracle import jax, styrax, vector

pytestmark = pytest.mark.usefixtures("old_objects_aside")

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


def _own_jvp(j):
    f = j.custom_jvp(lambda x: x * 2)
    f.defjvp(lambda primals, tangents: (f(*primals), tangents[0] * 3))
    return f


def _own_vjp(j):
    f = j.custom_vjp(lambda n, x: x * n, nondiff_argnums=(0,))
    f.defvjp(lambda n, x: (x * n, None), lambda n, _, ct: (ct * 3,))
    return lambda x: f(2, x)


HELD = {
    "relu": lambda j: j.jit(lambda x: j.nn.relu(x - 2))(vector),
    "gradient of relu": lambda j: j.jit(j.vmap(j.grad(lambda x: j.nn.relu(x - 2))))(vector),
    **{f"{kind.__name__} {name}": lambda j, kind=kind, use=use: use(j, kind(j))
       for kind in (_own_jvp, _own_vjp) for name, use in {
           "vmap": lambda j, f: j.vmap(f)(vector),
           "scan": lambda j, f: j.lax.scan(lambda c, x: (f(c), f(x)), 1.0, vector)[1],
           "inner": lambda j, f: j.jit(lambda x: j.jit(f)(x) + j.vmap(j.grad(f))(x))(vector)}.items()},
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
