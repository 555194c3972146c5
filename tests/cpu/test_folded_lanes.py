"""Reductions along the vector end with a fold of its lanes: in registers, with no branch on what the data are."""

from __future__ import annotations

import platform
import re

import ml_dtypes
import numpy as np
import pytest

import styrax as jax
import styrax.numpy as jnp
from styrax import lax

LENGTHS = [17, 24, 31, 33, 40, 64, 100]
DTYPES = ["bool", "int8", "uint8", "int16", "int32", "uint32", "float16", "bfloat16", "float32"]


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def rows(dtype, length, rng):
    x = rng.standard_normal((37, length)) * 50
    if dtype == "bool":
        return x > 60
    if "float" in dtype:
        x[3, 5] = np.nan
        x[4, :] = -np.inf
        x[5, length - 1] = np.inf
        x[6, 0] = np.nan
        return x.astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    return x.astype("int64").astype(dtype)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_extrema_and_their_places(dtype, length, rng):
    x = rows(dtype, length, rng)
    found = jax.jit(lambda x: (x.max(1), x.min(1), jnp.argmax(x, 1), jnp.argmin(x, 1)))(x)
    wide = x.astype("float64") if x.dtype.kind not in "biu" else x
    with np.errstate(invalid="ignore"):
        expected = wide.max(1), wide.min(1), wide.argmax(1), wide.argmin(1)
    for got, want in zip(found, expected, strict=True):
        np.testing.assert_array_equal(np.asarray(got).astype(want.dtype), want)


@pytest.mark.parametrize("length", LENGTHS)
def test_sums_products_and_bits(length, rng):
    x = rng.integers(-9, 9, (37, length)).astype("int32")
    found = jax.jit(lambda x: (x.sum(1), x.prod(1), lax.reduce_and(x, (1,)), lax.reduce_or(x, (1,)),
                               lax.reduce_xor(x, (1,)), (x > 5).any(1), (x > -9).all(1)))(x)
    expected = (x.sum(1, dtype="int32"), x.prod(1, dtype="int32"), np.bitwise_and.reduce(x, 1),
                np.bitwise_or.reduce(x, 1), np.bitwise_xor.reduce(x, 1), (x > 5).any(1), (x > -9).all(1))
    for got, want in zip(found, expected, strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("wide", ["float64", "int64", "complex128"])
def test_elements_of_eight_bytes_and_more(wide, length, rng):
    with jax.enable_x64(True):
        x = (rng.standard_normal((21, length)) * 50).astype(wide)
        if wide == "complex128":
            x = x + 1j * rng.standard_normal(x.shape)
            found, expected = [jax.jit(lambda x: x.sum(1))(x)], [x.sum(1)]
        else:
            found = jax.jit(lambda x: (x.max(1), x.min(1), jnp.argmax(x, 1), x.sum(1)))(x)
            expected = x.max(1), x.min(1), x.argmax(1), x.sum(1)
        for got, want in zip(found, expected, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-12)


@pytest.mark.parametrize("length", LENGTHS)
def test_pairs_of_different_sizes(length, rng):
    """A float with a place of eight bytes; the lanes are as many of both."""
    with jax.enable_x64(True):
        x = rng.standard_normal((21, length)).astype("float32")
        x[2, 3] = x[2, 9] = 7

        def later(a, b):
            return tuple(jnp.where((b[0] > a[0]) | ((b[0] == a[0]) & (b[1] > a[1])), b[k], a[k]) for k in (0, 1))

        place = lambda x: lax.broadcasted_iota(jnp.int64, x.shape, 1)
        value, at = jax.jit(lambda x: lax.reduce(
            (x, place(x)), (jnp.float32(-jnp.inf), jnp.int64(-1)), later, (1,)))(x)
        np.testing.assert_array_equal(value, x.max(1))
        np.testing.assert_array_equal(at, length - 1 - x[:, ::-1].argmax(1))


@pytest.mark.skipif(platform.machine() != "x86_64", reason="reads assembly of x86-64")
@pytest.mark.parametrize("function", [lambda x: x.max(1), lambda x: x.min(1), lambda x: jnp.argmax(x, 1)],
                         ids=["max", "min", "argmax"])
def test_no_branch_depends_on_data(function, rng):
    x = rng.standard_normal((5000, 24)).astype("float32")
    text = jax.jit(function).lower(x).compile().as_text("asm")
    loop = text[text.index("part1:") if "part1:" in text else text.index("run:"):].partition("retq")[0]
    jumps = re.findall(r"\n\tj(?!mp)\w+", loop)
    assert jumps and not re.search(r"\n\t(testb|vucomis[sd]|ucomis[sd])\b", loop), loop


COMPARED = {
    "any": lambda np, x: (x == x[0]).any(1),
    "all of columns": lambda np, x: (x <= x[0]).all(0),
    "among others": lambda np, x: (x[:, :, None] == x[0, :3]).any(-1),
    "of two widths": lambda np, x: ((x != x[1]) & (np.arange(x.shape[1]) < 20)).any(1),
    "of indices": lambda np, x: (np.arange(x.shape[1]) + 15 * (x > x[0]) > 20).any(0),
    "not compared": lambda np, x: x.astype(bool).any(0),
    "odd": lambda np, x: np.logical_xor.reduce(x > x[2], axis=1) if np.__name__ == "numpy" else (
        lax.reduce(x > x[2], np.array(False), lax.bitwise_xor, (1,))),
}


@pytest.mark.parametrize("dtype", [*DTYPES, "int64", "float64"])
@pytest.mark.parametrize("name", COMPARED)
def test_booleans_as_wide_as_what_is_compared(name, dtype, rng):
    with jax.enable_x64(True):
        for length in LENGTHS:
            x = rows(dtype, length, rng) if dtype in DTYPES else (rng.standard_normal((37, length)) * 2).astype(dtype)
            with np.errstate(invalid="ignore"):  # ml_dtypes compares NaNs with a warning
                expected = COMPARED[name](np, x)
            np.testing.assert_array_equal(jax.jit(lambda x: COMPARED[name](jnp, x))(x), expected)
            batched = jax.jit(jax.vmap(lambda x: COMPARED[name](jnp, x)))(np.stack([x[::-1], x]))
            np.testing.assert_array_equal(batched[1], expected)
