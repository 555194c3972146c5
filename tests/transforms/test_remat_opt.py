"""Forward rules whose residuals a `checkpoint` may find unneeded: `defvjp(…, optimize_remat=True)`."""

from __future__ import annotations

import numpy as np
import pytest

import styrax
import styrax.numpy as jnp
from tests.transforms.oracle import assert_same, vector


def rule(jax, optimize=True):
    f = jax.custom_vjp(jax.numpy.sin)
    f.defvjp(lambda x: (jax.numpy.sin(x), jax.numpy.cos(x)), lambda c, t: (t * c,), optimize_remat=optimize)
    return f


PROGRAMS = {
    "vjp": lambda jax, f: lambda x: jax.vjp(f, x)[0],
    "grad of checkpoint": lambda jax, f: jax.grad(lambda x: jax.checkpoint(lambda y: f(y) * 2)(x).sum()),
    "grad of checkpoint of vmap": lambda jax, f: jax.grad(lambda x: jax.checkpoint(jax.vmap(f))(x).sum()),
}


def equations(package, make) -> list[tuple[int, str]]:
    """The primitives of a program with how deep they stand; `closed_call` is looked through."""
    def walk(jaxpr, depth):
        for eqn in jaxpr.eqns:
            called = eqn.primitive.name == "closed_call"
            if not called:
                found.append((depth, eqn.primitive.name))
            for inner in package.extend.core.jaxprs_in_params(eqn.params):
                walk(inner, depth + (not called))

    found: list[tuple[int, str]] = []
    walk(package.make_jaxpr(make(package, rule(package)))(vector).jaxpr, 0)
    return found


@pytest.mark.parametrize("name", PROGRAMS)
def test_equations(name):
    """Where nothing needs the residuals the function stands, elsewhere the rule."""
    import jax.extend.core

    assert equations(styrax, PROGRAMS[name]) == equations(jax, PROGRAMS[name])


@pytest.mark.parametrize("transform", [
    lambda jax, f: f,
    lambda jax, f: jax.jit(f),
    lambda jax, f: jax.checkpoint(f),
    lambda jax, f: jax.jit(jax.checkpoint(f)),
    lambda jax, f: lambda x: jax.lax.scan(lambda c, _: (jax.checkpoint(f)(c), None), x, None, 3)[0],
])
def test_derivatives(transform):
    def program(jax):
        f = transform(jax, rule(jax))
        g = jax.grad(lambda x: f(x).sum())
        return g(vector), jax.jit(g)(vector), jax.vmap(jax.grad(lambda x: f(x)))(vector), g(vector[:0])

    assert_same(program)


def test_a_function_that_closes_over_a_tracer():
    def f(a, x):
        g = styrax.custom_vjp(lambda y: a * jnp.sin(y))
        g.defvjp(lambda y: (a * jnp.sin(y), a * jnp.cos(y)), lambda c, t: (t * c,), optimize_remat=True)
        return styrax.grad(styrax.checkpoint(g))(x)

    np.testing.assert_allclose(styrax.jit(f)(2.0, 1.0), 2 * np.cos(1.0), rtol=1e-6)
    np.testing.assert_allclose(styrax.vmap(f, (0, None))(vector, 1.0), vector * np.cos(1.0), rtol=1e-6)


def test_symbolic_zeros_are_not_supported():
    import jax

    for package in (jax, styrax):
        with pytest.raises(NotImplementedError):
            f = package.custom_vjp(lambda x: x)
            f.defvjp(lambda x: (x.value, None), lambda r, t: (t,), symbolic_zeros=True, optimize_remat=True)
            package.jit(package.grad(f))(1.0)
