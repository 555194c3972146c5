"""A primitive of one's own: ten lines, and every transformation, the compiler and StableHLO know it."""

from __future__ import annotations

import re

import numpy as np
import pytest

import styrax as jax
import styrax.numpy as jnp
from styrax import lax
from styrax.lax.elementwise.families import unary

# the addition, as docs/architecture.md shows it
softsign, softsign_p = unary(
    "softsign", (np.floating,), "x / (1 + |x|).",
    jvp=lambda t, ans, x: lax.mul(t, lax.square(lax.sub(1.0, lax.abs(ans)))),
    scalar=lambda b, x: b.div(x, b.add(b.const(1, x.dtype), b.abs(x))),
    hlo=lambda m, x: m.op1("stablehlo.divide", [x, m.op1("stablehlo.add", [
        m.const(np.ones((), x.aval.dtype), x.aval), m.op1("stablehlo.abs", [x], x.aval)], x.aval)], x.aval),
)


def reference(x):
    return x / (1 + np.abs(x))


def derivative(x):
    return 1 / (1 + np.abs(x)) ** 2


def second(x):
    return -2 * np.sign(x) / (1 + np.abs(x)) ** 3


X = np.linspace(-3, 4, 37).astype(np.float32)


def close(actual, expected, rtol=1e-5):
    np.testing.assert_allclose(np.asarray(actual), expected, rtol=rtol, atol=1e-6)


def test_eager_and_jit():
    close(softsign(X), reference(X))
    close(jax.jit(softsign)(X), reference(X))


def test_derivatives():
    close(jax.vmap(jax.grad(softsign))(X), derivative(X))
    close(jax.jit(jax.vmap(jax.grad(jax.grad(softsign))))(X), second(X), 1e-4)
    out, tangent = jax.jvp(softsign, (X,), (np.full_like(X, 2),))
    close(out, reference(X))
    close(tangent, 2 * derivative(X))
    out, linear = jax.linearize(softsign, X)
    close(linear(np.ones_like(X)), derivative(X))


def test_in_a_loop_under_grad_and_vmap():
    def f(x):
        final, _ = lax.scan(lambda c, _: (softsign(c), None), x, None, length=3)
        return final

    def expected(x):
        return x / (1 + 3 * np.abs(x))  # softsign iterated

    close(jax.jit(jax.vmap(f))(X), expected(X))
    close(jax.vmap(jax.grad(f))(X), 1 / (1 + 3 * np.abs(X)) ** 2, 1e-4)


@pytest.mark.parametrize("shape", [(), (5,), (1000,), (300, 400)], ids=str)
def test_loops_of_a_scan_are_those_of_tanh(shape):
    """But for the arithmetic and what it costs: what the compiler knows of one of its own, it knows of this one."""
    def loops(f):
        compiled = jax.jit(lambda x: lax.scan(lambda c, _: (f(c), c), x, None, length=7)).lower(
            np.ones(shape, np.float32)).compile()
        return re.sub(r" (cost|vector)\(\d+\)", "", compiled.as_text())

    element = r"(\w+(?:\[\w+\])?)"  # the operand, which stands in it twice
    ours, times = re.subn(rf"div\({element}, add\(1.0:float32, abs\(\1\)\)\)", r"tanh(\1)", loops(softsign))
    assert times == 1 and ours == loops(lax.tanh)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_dtypes(dtype):
    x = jnp.asarray(X, dtype)
    out = jax.jit(softsign)(x)
    assert out.dtype == x.dtype
    close(np.asarray(out).astype(np.float32), reference(np.asarray(x).astype(np.float32)), 2e-2)


def test_vectors_and_threads():
    x = np.random.default_rng(0).normal(size=(1 << 18) + 5).astype(np.float32)
    compiled = jax.jit(softsign).lower(x).compile()
    assert "vector(" in compiled.as_text() and "parallel" in compiled.as_text()
    close(compiled(x), reference(x))


def test_stablehlo():
    from tests import xla_cpu

    closed = jax.make_jaxpr(softsign)(X)
    assert "stablehlo.divide" in jax.jit(softsign).lower(X).as_text()
    (out,) = xla_cpu.run(closed, X)
    close(out, reference(X))


def test_bad_input():
    with pytest.raises(TypeError, match="softsign"):
        softsign(np.arange(3))
