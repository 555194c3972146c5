"""Transpositions of matrices whose last tiles are not whole, for elements of every size."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import styrax
import styrax.numpy as jnp

TYPES = ["bool", "uint8", "int8", "uint16", "float16", "bfloat16", "float32", "int64", "float64", "complex64",
         "complex128"]


def drawn(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Any bits, not-a-numbers among them."""
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    rng = np.random.default_rng(shape)
    if kind.kind == "b":
        return rng.integers(0, 2, shape).astype(kind)
    return np.frombuffer(rng.bytes(int(np.prod(shape)) * kind.itemsize), kind).reshape(shape)


def bits(x: object) -> bytes:
    return np.ascontiguousarray(x).tobytes()


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("rows, columns", [(300, 200), (33, 29), (60, 35), (17, 16), (16, 47), (1, 40), (130, 3)])
def test_transposed(dtype: str, rows: int, columns: int) -> None:
    with styrax.enable_x64(True):
        x, y = drawn((rows, columns), dtype), drawn((columns, rows), dtype)
        assert bits(styrax.jit(lambda x: x.T)(x)) == bits(x.T)
        c = drawn((columns, rows), "bool")
        chosen = styrax.jit(lambda c, x, y: jnp.where(c, x.T, y))(c, x, y)
        assert bits(chosen) == bits(np.where(c, x.T, y))


@pytest.mark.parametrize("dtype", TYPES)
def test_transposed_in_batches_and_loops(dtype: str) -> None:
    with styrax.enable_x64(True):
        x = drawn((5, 37, 50), dtype)
        assert bits(styrax.jit(styrax.vmap(jnp.transpose))(x)) == bits(x.transpose(0, 2, 1))
        _, turned = styrax.jit(lambda x: styrax.lax.scan(lambda _, row: (None, row.T), None, x))(x)
        assert bits(turned) == bits(x.transpose(0, 2, 1))
