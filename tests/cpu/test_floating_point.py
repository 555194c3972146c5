"""Programs take subnormal numbers for zeros, as JAX's do, on every way to them; Python keeps them."""

from __future__ import annotations

import jax as real
import numpy as np
import pytest

import styrax
from styrax import lax
from styrax import numpy as jnp
from styrax.cpu import floating_point

LEAST = {"float32": 1e-40, "float64": 1e-310}


def numbers(dtype, n):
    return np.tile(np.array([LEAST[dtype], -LEAST[dtype], 1.0, 2 * np.finfo(dtype).tiny], dtype), -(-n // 4))[:n]


PROGRAMS = {
    "products": lambda j, x: x * x.dtype.type(0.25), "sums": lambda j, x: x + x, "quotients": lambda j, x: x / 3,
    "comparisons": lambda j, x: (x == 0, x > 0, j.numpy.where(x != 0, 1, 2)), "signs": lambda j, x: j.numpy.sign(x),
    "functions": lambda j, x: [f(j.numpy.abs(x)) for f in (j.numpy.log, j.numpy.sqrt, lambda y: j.numpy.exp(-90 * y))],
    "folds": lambda j, x: (x * 0.125).sum(), "in a loop": lambda j, x: j.lax.fori_loop(0, 40, lambda _, c: c * 0.05, x),
}


@pytest.mark.parametrize("n", [1, 5, 1000, 300_000])
@pytest.mark.parametrize("dtype", LEAST)
@pytest.mark.parametrize("name", PROGRAMS)
def test_values_are_those_of_jax(name, dtype, n):
    """In one lane and in many, by one thread and by several, at once and in the queue."""
    x = numbers(dtype, n)
    with styrax.enable_x64(True), real.enable_x64(True):
        results = [j.jit(lambda x, j=j: PROGRAMS[name](j, x))(j.numpy.asarray(x)) for j in (styrax, real)]
    for a, b in zip(*map(styrax.tree.leaves, results), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5 if dtype == "float32" else 1e-13)


@pytest.mark.parametrize("dtype", LEAST)
def test_operations_at_once(dtype):
    x = numbers(dtype, 8)
    with styrax.enable_x64(True):
        y = jnp.asarray(x)
        np.testing.assert_array_equal(np.asarray(y), x)  # nothing is computed
        np.testing.assert_array_equal(y + y, np.where(np.abs(x) < np.finfo(dtype).tiny, 0, 2 * x))
        np.testing.assert_array_equal(jnp.nextafter(y, y + 1), np.nextafter(x, np.maximum(2 * x, 1)))
    assert (x * 0.5 != 0).all()  # NumPy's are what they were


def test_python_that_is_called_keeps_them():
    seen = []

    def look(x):
        seen.append(float(np.float32(x) * np.float32(0.5)))
        return np.float32(x)

    def f(x):
        y = styrax.pure_callback(look, styrax.ShapeDtypeStruct((), np.float32), x, vmap_method="sequential")
        return y * 0.5, x * 0.5

    for program in (f, styrax.jit(f), lambda x: styrax.jit(styrax.vmap(f))(x[None])):
        after = program(jnp.float32(1e-40))
        assert all(float(np.asarray(v).ravel()[0]) == 0 for v in after)
    assert len(seen) >= 3 and all(4e-41 < v < 6e-41 for v in seen), seen
    assert np.float32(1e-40) * np.float32(0.5) != 0


def test_while_many_elements_are_at_it():
    x = jnp.full(1 << 21, 1e-20, jnp.float32)
    out = styrax.jit(lambda x: lax.fori_loop(0, 3, lambda _, c: c * 1e-7, x))(x)
    assert float(out.max()) == 0.0 and float(x.min()) > 0


def test_text_for_each_processor():
    for name in ("x86_64", "aarch64", "riscv64"):
        text = floating_point.source(name)
        for function in ("get_mode", "set_mode", "flush_subnormals", "keep_subnormals"):
            assert text.count(f"@{function}(") >= 1, (name, function)
    assert floating_point.processor("arm64") == "aarch64" and floating_point.processor("AMD64") == "x86_64"
