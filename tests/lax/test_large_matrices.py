"""Factorisations by blocks, against NumPy's matrices: every dtype, tall and wide matrices, failures, loops, threads."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

import styrax
import styrax.numpy as jnp
from styrax.lax import linalg
from styrax.lax.linalg.by_blocks import BLOCK, BLOCKS, panel, pays

DTYPES = ["float32", "float64", "complex64", "complex128", "bfloat16"]
LARGE = BLOCK * BLOCKS  # the smallest that is taken by blocks
SHAPES = [(LARGE, LARGE), (LARGE + 1, LARGE + 1), (300, 250), (250, 300), (5 * BLOCK, 5 * BLOCK), (900, LARGE + 5)]


def draw(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape)
    if dtype.startswith("complex"):
        x = x + 1j * rng.normal(size=shape)
    return jnp.asarray(x, dtype)


def wide(x):
    """In NumPy's widest type."""
    x = np.asarray(x)
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


def close(got, want, dtype, size):
    eps = float(jnp.finfo(dtype).eps)
    scale = np.abs(want).max()
    assert got.shape == want.shape
    assert np.abs(got - want).max() <= 4 * size * eps * scale


@pytest.fixture(autouse=True)
def double():
    with styrax.enable_x64(True):
        yield


def positive(size, dtype):
    a = wide(draw((size, size), dtype))
    return jnp.asarray(a @ a.conj().T + size * np.eye(size), dtype)


def test_sizes_that_are_taken_by_blocks():
    assert pays((), LARGE, LARGE) and pays((1, 1), LARGE, 2 * LARGE)
    assert not pays((2,), LARGE, LARGE) and not pays((), LARGE - 1, LARGE) and not pays((), 20 * LARGE, LARGE)
    for n in range(1, 2000):  # panels of an even number, but for the shortest, hold all columns
        assert panel(n) % 8 == 0 and panel(n) * -(-n // panel(n)) >= n and panel(n) <= 136


@pytest.mark.parametrize("jit", [True, False])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [LARGE, LARGE + 1, 250, 6 * BLOCK - 1])
def test_cholesky(size, dtype, jit):
    x = positive(size, dtype)
    factor = (styrax.jit(linalg.cholesky) if jit else linalg.cholesky)(x)
    assert factor.dtype == x.dtype
    low = wide(factor)
    assert not np.triu(low, 1).any()
    close(low @ low.conj().T, wide(x), dtype, size)


@pytest.mark.parametrize("place", [0, BLOCK, LARGE - 1])
def test_cholesky_of_other_matrices_is_nan(place):
    x = np.array(positive(LARGE, "float32"))
    x[place, place] = -1
    factor = np.asarray(linalg.cholesky(x))
    assert np.isnan(factor[np.tril_indices(LARGE)]).all() and not np.triu(factor, 1).any()
    x[place, place] = np.nan
    assert np.isnan(np.asarray(linalg.cholesky(x))[-1, -1])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_lu(shape, dtype):
    x = draw(shape, dtype)
    factors, pivots, permutation = styrax.jit(linalg.lu)(x)
    f, steps = wide(factors), min(shape)
    low = np.tril(f[:, :steps], -1) + np.eye(shape[0], steps)
    assert np.abs(low).max() <= 1.42  # the largest of each column was taken, by the sum of its parts
    close(low @ np.triu(f[:steps]), wide(x)[np.asarray(permutation)], dtype, max(shape))
    order = np.arange(shape[0])
    for i, j in enumerate(np.asarray(pivots)):
        order[[i, j]] = order[[j, i]]
    np.testing.assert_array_equal(order, permutation)


def test_lu_of_a_singular_matrix():
    x = np.ones((LARGE, LARGE), np.float32)
    factors, _, permutation = linalg.lu(x)
    np.testing.assert_array_equal(np.triu(factors)[1:], 0)
    assert sorted(np.asarray(permutation)) == list(range(LARGE))


@pytest.mark.parametrize("mode", ["reduced", "complete", "r"])
@pytest.mark.parametrize("dtype", DTYPES[:4])
@pytest.mark.parametrize("shape", SHAPES)
def test_qr(shape, dtype, mode):
    x = draw(shape, dtype)
    found = styrax.jit(lambda x: jnp.linalg.qr(x, mode=mode))(x)
    want = np.linalg.qr(wide(x), mode=mode)
    if mode == "r":
        close(np.abs(wide(found)), np.abs(want), dtype, max(shape))
        return
    q, r = map(wide, found)
    assert (q.shape, r.shape) == (want[0].shape, want[1].shape) and not np.tril(r, -1).any()
    close(q @ r, wide(x), dtype, max(shape))
    close(q.conj().T @ q, np.eye(q.shape[1]), dtype, max(shape))


def test_reflections():
    x = draw((300, 250), "float32")
    packed, taus = linalg.geqrf(x)
    q = linalg.householder_product(packed, taus)
    close(wide(q) @ np.triu(wide(packed))[:250], wide(x), "float32", 300)


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("dtype", DTYPES[:4])
@pytest.mark.parametrize("size", [LARGE, 301])
def test_eigh(size, dtype, lower):
    x = draw((size, size), dtype)
    whole = np.tril(wide(x)) if lower else np.triu(wide(x))
    whole = whole + whole.conj().T - np.diag(np.diag(whole).real)
    v, w = styrax.jit(lambda x: linalg.eigh(x, lower=lower, symmetrize_input=False))(x)
    assert w.dtype == np.finfo(dtype).dtype and v.dtype == x.dtype
    v, w = wide(v), wide(w)
    assert (np.diff(w) >= 0).all()
    close(w, np.linalg.eigvalsh(whole), dtype, size)
    close(v * w @ v.conj().T, whole, dtype, size)
    close(v.conj().T @ v, np.eye(size), dtype, size)


@pytest.mark.parametrize("scale", [1e-33, 1e-30, 1e30, 3e36])
def test_eigh_of_numbers_without_squares(scale):
    x = np.asarray(positive(LARGE, "float32")) / 1000
    _, w = linalg.eigh(x * np.float32(scale))
    close(wide(w) / float(np.float32(scale)), np.linalg.eigvalsh(wide(x)), "float32", LARGE)


def test_eigh_of_zeros_and_of_no_numbers():
    v, w = linalg.eigh(np.zeros((LARGE, LARGE), np.float32))
    np.testing.assert_array_equal(w, 0)
    close(wide(v).T @ wide(v), np.eye(LARGE), "float32", LARGE)
    assert np.isnan(linalg.eigh(np.full((LARGE, LARGE), np.nan, np.float32))[1]).all()


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("dtype", DTYPES[:4])
@pytest.mark.parametrize("shape", [*SHAPES[:4], (LARGE, 2 * LARGE), (2 * LARGE, LARGE)])
def test_svd(shape, dtype, full):
    x = draw(shape, dtype)
    u, s, vh = styrax.jit(lambda x: linalg.svd(x, full_matrices=full))(x)
    assert s.dtype == np.finfo(dtype).dtype and u.dtype == vh.dtype == x.dtype
    want, k = np.linalg.svd(wide(x), full_matrices=full), min(shape)
    u, s, vh = wide(u), wide(s), wide(vh)
    assert [v.shape for v in (u, s, vh)] == [v.shape for v in want]
    close(s, want[1], dtype, max(shape))
    close(u[:, :k] * s @ vh[:k], wide(x), dtype, max(shape))
    close(u.conj().T @ u, np.eye(u.shape[1]), dtype, max(shape))
    close(vh @ vh.conj().T, np.eye(len(vh)), dtype, max(shape))


def test_svd_of_deficient_matrices():
    x = np.ones((LARGE + 8, LARGE), np.float32)
    u, s, vh = map(wide, linalg.svd(x, full_matrices=True))
    close(s, np.linalg.svd(x)[1].astype(float), "float32", LARGE)
    close(u.T @ u, np.eye(LARGE + 8), "float32", LARGE)
    np.testing.assert_array_equal(linalg.svd(np.zeros((LARGE, LARGE), np.float32))[1], 0)
    x[3, 5] = np.nan
    assert all(np.isnan(v).all() for v in linalg.svd(x))


@pytest.mark.parametrize("scale", [1e-33, 1e-30, 1e30, 1e35])
def test_svd_of_numbers_without_squares(scale):
    x = np.asarray(draw((LARGE, LARGE + 9), "float32"))
    close(wide(linalg.svd(x * np.float32(scale))[1]) / float(np.float32(scale)), np.linalg.svd(wide(x))[1], "float32",
          LARGE)


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("count", [1, 63, 64, 100, 257, 600])
def test_triangular_solve(count, left):
    a = np.tril(draw((100, 100), "float64")) / 100 + np.eye(100)
    x = wide(draw((100, count) if left else (count, 100), "float64"))
    found = linalg.triangular_solve(a, a @ x if left else x @ a, left_side=left, lower=True)
    close(wide(found), x, "float64", 100)


def test_in_loops_and_derivatives():
    x, t = positive(LARGE, "float64"), draw((LARGE, LARGE), "float64", 1)
    t = t + t.T

    def logdet(x):
        return 2 * jnp.sum(jnp.log(jnp.diagonal(jnp.linalg.cholesky(x))))

    slope = np.trace(np.linalg.solve(wide(x), wide(t)))
    np.testing.assert_allclose(styrax.jvp(logdet, (x,), (t,))[1], slope, rtol=1e-9)
    np.testing.assert_allclose(np.sum(wide(styrax.jit(styrax.grad(logdet))(x)) * wide(t)), slope, rtol=1e-9)
    each = styrax.jit(lambda xs: styrax.lax.map(logdet, xs))(jnp.stack([x, 2 * x, 3 * x]))
    many = styrax.vmap(logdet)(jnp.stack([x, 2 * x, 3 * x]))
    want = [np.linalg.slogdet(k * wide(x))[1] for k in (1, 2, 3)]
    np.testing.assert_allclose(each, want, rtol=1e-12)
    np.testing.assert_allclose(many, want, rtol=1e-12)


def test_bits_are_the_same_on_any_number_of_threads():
    code = f"""
import hashlib, numpy as np, styrax, styrax.numpy as jnp
a = np.random.default_rng(0).normal(size=({LARGE + 60}, {LARGE + 60})).astype(np.float32)
s = a @ a.T + np.eye(len(a), dtype=np.float32)
found = [jnp.linalg.cholesky(s), *jnp.linalg.qr(a), *jnp.linalg.eigh(s), *jnp.linalg.svd(a), jnp.linalg.solve(a, s)]
print(hashlib.sha256(b"".join(np.asarray(x).tobytes() for x in found)).hexdigest())
"""
    bits = [subprocess.run([sys.executable, "-c", code], env={**os.environ, "STYRAX_NUM_THREADS": str(n)},
                           capture_output=True, text=True, check=True).stdout for n in (1, 2, 3)]
    assert bits[0] and bits[0] == bits[1] == bits[2]
