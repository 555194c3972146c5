"""Sums of products: which are rounded once."""

from __future__ import annotations

import numpy as np
import pytest

import styrax as jax
from styrax.core.settings import config

RNG = np.random.default_rng(0)
X, Y, U, V = (RNG.normal(size=1003).astype(np.float32) for _ in range(4))


def once(exact):
    return exact.astype(np.float32)


def wide(*arrays):
    return [a.astype(np.longdouble) for a in arrays]


@pytest.mark.parametrize("size", [1, 1003])
def test_one_product_is_rounded_with_the_sum(size):
    x, y, z = X[:size], Y[:size], U[:size]
    a, b, c = wide(x, y, z)
    for f, exact in ((lambda x, y, z: x * y + z, a * b + c), (lambda x, y, z: x * y - z, a * b - c),
                     (lambda x, y, z: z - x * y, c - a * b), (lambda x, y, z: z + x * y, c + a * b)):
        np.testing.assert_array_equal(np.asarray(jax.jit(f)(x, y, z)), once(exact))


def test_strict_rounds_each():
    with config.states["styrax_numerics"]("strict"):
        np.testing.assert_array_equal(np.asarray(jax.jit(lambda x, y, z: x * y + z)(X, Y, U)), X * Y + U)


def test_differences_of_equal_products_are_zero():
    assert not np.asarray(jax.jit(lambda x, y, u, v: x * y - u * v)(X, Y, X.copy(), Y.copy())).any()
    z = (X + 1j * Y).astype(np.complex64)
    assert not np.asarray(jax.jit(lambda z, w: z * w)(z, z.conj())).imag.any()


def test_sums_held_in_registers_are_folded_one_after_the_other():
    """A product is not computed on its own as well, and the next sum's operands are read behind the one before: those
    of all would not fit into registers beside the sums."""
    x, y = RNG.normal(size=(8, 24, 48)).astype(np.float32), RNG.normal(size=(3, 48, 48)).astype(np.float32)
    f = jax.jit(lambda x, y: jax.lax.conv_general_dilated(x, y, (1,), "SAME", dimension_numbers=("NHC", "HIO", "NHC")))
    lines = f.lower(x, y).compile().as_text("llvm").splitlines()
    folds = [k for k, line in enumerate(lines) if "call" in line and "@llvm.fmuladd" in line]
    assert len(folds) > 4 and not any(" fmul " in line for line in lines)
    near = [(a, b) for a, b in zip(folds, folds[1:], strict=False) if b - a < 20]
    assert near and all(any("= load float" in line for line in lines[a:b]) for a, b in near)
