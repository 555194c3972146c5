"""Functions nested as deep as JAX can take them: each on a stack of its own, as a program would have it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import styrax
import styrax.numpy as jnp

lax = styrax.lax
x = np.float32(0.5)


def conds(depth):
    return lambda y: lax.cond(y > 0, conds(depth - 1), lambda z: -z, y + 1) if depth else y


def jits(depth):
    return styrax.jit(lambda y: jits(depth - 1)(y) + 1) if depth else lambda y: y


def scans(depth):
    return lambda y: lax.scan(lambda c, _: (scans(depth - 1)(c) + 1, None), y, None, length=1)[0] if depth else y


def loops(depth):
    return lambda y: lax.while_loop(lambda z: z < depth, lambda z: loops(depth - 1)(z) + 1, y) if depth else y


# what JAX's own stack frames leave room for in Python's default of 1,000, by constructor and transformation
DEPTHS = {
    conds: {"eager": 150, "jit": 150, "grad": 70, "vmap": 50},
    jits: {"eager": 120, "jit": 120, "grad": 90, "vmap": 60},
    scans: {"eager": 45, "jit": 45, "grad": 45, "vmap": 45},
    loops: {"eager": 120, "jit": 120, "jvp": 60, "vmap": 50},
}
TRANSFORMATIONS = {
    "eager": lambda f: f(x),
    "jit": lambda f: styrax.jit(f)(x),
    "grad": lambda f: styrax.grad(f)(x),
    "jvp": lambda f: styrax.jvp(f, (x,), (x,))[1],
    "vmap": lambda f: styrax.vmap(f)(x[None])[0],
}
CASES = [(f, name) for f, depths in DEPTHS.items() for name in depths]


@pytest.mark.parametrize(("make", "name"), CASES, ids=[f"{f.__name__}-{name}" for f, name in CASES])
def test_nested_functions(make, name):
    depth = DEPTHS[make][name]
    want = {"grad": 1.0, "jvp": 0.5}.get(name)
    if want is None:
        want = depth + 0.5
    with ThreadPoolExecutor(1) as fresh:
        got = fresh.submit(TRANSFORMATIONS[name], make(depth)).result()
    np.testing.assert_allclose(got, want)


@pytest.mark.parametrize("name", ["eager", "jit", "grad", "vmap"])
def test_long_chains(name):
    def chain(y):
        for _ in range(5_000):
            y = -y
        return y

    np.testing.assert_array_equal(TRANSFORMATIONS[name](chain), 1.0 if name == "grad" else x)


def test_long_chains_in_derivatives_of_programs():
    def chain(y):
        for _ in range(500):
            y = jnp.sin(y) * y
        return y.sum()

    got = styrax.jit(styrax.value_and_grad(chain))(jnp.full(3, 1.1))
    want, slope = 1.1, 1.0
    for _ in range(500):
        want, slope = np.sin(want) * want, slope * (np.cos(want) * want + np.sin(want))
    np.testing.assert_allclose(got[0], 3 * want, atol=1e-6)
    np.testing.assert_allclose(got[1], slope, atol=1e-6)
