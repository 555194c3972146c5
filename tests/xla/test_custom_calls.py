"""LAPACK in StableHLO: the custom calls are JAX's, and XLA's client for CPUs runs them."""

from __future__ import annotations

import jax
import ml_dtypes
import numpy as np
import pytest

import styrax
from styrax.lax import linalg
from styrax.xla.stablehlo import module_text
from tests import xla_cpu
from tests.xla import structure

RNG = np.random.default_rng(0)


def matrices(*shape, dtype=np.float32):
    x = RNG.normal(size=shape)
    return (x + 1j * RNG.normal(size=shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


def symmetric(*shape, dtype=np.float32):
    x = matrices(*shape, dtype=dtype)
    return x + x.swapaxes(-1, -2).conj()


C64 = np.complex64
TALL, WIDE, SQUARE, BATCH = matrices(4, 3), matrices(3, 4, dtype=C64), matrices(3, 3), matrices(2, 5, 3, 3)
PIVOTS = np.array([2, 3, 2], np.int32)


def theirs(name):
    """A function of JAX's `lax.linalg`, some of which have no public name."""
    from jax._src.lax import linalg as private

    return getattr(private, name)


CASES = {
    "eigh": ("eigh", [symmetric(3, 3)], dict(symmetrize_input=False)),
    "eigh of upper triangles": ("eigh", [symmetric(3, 3, dtype=C64)], dict(symmetrize_input=False, lower=False)),
    "eigh of batches": ("eigh", [symmetric(2, 5, 3, 3)], dict(symmetrize_input=False)),
    "eig": ("eig", [SQUARE], {}),
    "eig, values alone": ("eig", [BATCH], dict(compute_left_eigenvectors=False, compute_right_eigenvectors=False)),
    "eig of complex": ("eig", [matrices(3, 3, dtype=C64)], dict(compute_left_eigenvectors=False)),
    "schur": ("schur", [SQUARE], {}),
    "schur, form alone": ("schur", [matrices(2, 3, 3, dtype=C64)], dict(compute_schur_vectors=False)),
    "hessenberg": ("hessenberg", [BATCH], {}),
    "hessenberg of a number": ("hessenberg", [matrices(1, 1)], {}),
    "tridiagonal": ("tridiagonal", [symmetric(3, 3)], {}),
    "tridiagonal of upper triangles": ("tridiagonal", [symmetric(2, 3, 3, dtype=C64)], dict(lower=False)),
    "svd": ("svd", [TALL], {}),
    "svd, narrow": ("svd", [WIDE], dict(full_matrices=False)),
    "svd, values alone": ("svd", [BATCH], dict(compute_uv=False)),
    "geqrf": ("geqrf", [BATCH], {}),
    "qr of tall": ("qr", [TALL], {}),
    "qr of tall, narrow": ("qr", [TALL], dict(full_matrices=False)),
    "qr of wide": ("qr", [WIDE], {}),
    "qr of batches": ("qr", [matrices(2, 4, 3)], {}),
    "qr with pivots": ("qr", [TALL], dict(pivoting=True)),
    "householder_product": ("householder_product", [TALL, matrices(3)], {}),
    "ormqr": ("ormqr", [TALL, matrices(3), matrices(4, 2)], {}),
    "ormqr from the right": ("ormqr", [matrices(4, 3, dtype=C64), matrices(3, dtype=C64), matrices(2, 4, dtype=C64)],
                             dict(left=False, transpose=True)),
    "lu": ("lu", [TALL], {}),
    "lu of batches": ("lu", [BATCH], {}),
    "lu of wide": ("lu", [WIDE], {}),
    "tridiagonal_solve": ("tridiagonal_solve", [matrices(3), matrices(3) + 4, matrices(3), matrices(3, 2)], {}),
    "tridiagonal_solve of batches": ("tridiagonal_solve", [matrices(2, 3), matrices(2, 3) + 4, matrices(2, 3),
                                                           matrices(2, 3, 2)], {}),
}


def printed(name, args, params):
    return module_text(styrax.make_jaxpr(lambda *xs: getattr(linalg, name)(*xs, **params))(*args))


def run(name, args, params):
    return xla_cpu.run(styrax.make_jaxpr(lambda *xs: getattr(linalg, name)(*xs, **params))(*args), *args)


@pytest.mark.parametrize("case", CASES)
def test_calls_are_those_of_jax(case):
    name, args, params = CASES[case]
    text = jax.jit(lambda *xs: theirs(name)(*xs, **params)).lower(*args).as_text()
    ours = printed(*CASES[case])
    assert structure.custom_calls(ours) == structure.custom_calls(text)
    if name != "lu":  # pivots become a permutation in a loop there, of other steps
        assert structure.counts(ours).keys() == structure.counts(text).keys()


@pytest.mark.parametrize("case", CASES)
def test_values_are_those_of_jax(case):
    name, args, params = CASES[case]
    wanted = jax.tree.leaves(theirs(name)(*args, **params))
    for x, y in zip(run(*CASES[case]), wanted, strict=True):
        assert x.dtype == y.dtype
        np.testing.assert_allclose(x, y, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("pivots", [PIVOTS, np.stack([PIVOTS, PIVOTS[::-1] + 1]), np.zeros((0,), np.int32),
                                    np.zeros((0, 2), np.int32)], ids=lambda p: str(p.shape))
def test_permutations(pivots):
    (out,) = run("lu_pivots_to_permutation", [pivots], dict(permutation_size=5))
    np.testing.assert_array_equal(out, jax.lax.linalg.lu_pivots_to_permutation(pivots, 5))


@pytest.mark.parametrize("shape", [(3, 3), (1, 1), (2, 3, 3), (0, 0)], ids=str)
def test_updates(shape):
    r, w = np.triu(matrices(*shape)), matrices(*shape[:-1])
    w[..., :1] = 0
    (out,) = run("cholesky_update", [r, w], {})
    np.testing.assert_allclose(out.swapaxes(-1, -2) @ out, r.swapaxes(-1, -2) @ r + w[..., None] * w[..., None, :],
                               rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(out, np.triu(out))


@pytest.mark.parametrize("name, params", [
    ("eigh", {}), ("eig", {}), ("svd", {}), ("qr", {}), ("qr", dict(pivoting=True)), ("lu", {}), ("schur", {}),
], ids=str)
@pytest.mark.parametrize("shape", [(0, 0), (0, 2, 2), (3, 0), (0, 3)], ids=str)
def test_empty_matrices(name, params, shape):
    if shape[-1] != shape[-2] and name in ("eigh", "eig", "schur"):
        shape = (1, 0, 0)
    args = [np.zeros(shape, np.float32)]
    wanted = jax.tree.leaves(theirs(name)(*args, **params))
    if params:  # (JAX says that all columns of a matrix without rows are the first one)
        wanted[-1] = np.arange(shape[-1], dtype=np.int32) + np.zeros_like(wanted[-1])
    for x, y in zip(run(name, args, params), wanted, strict=True):
        assert x.dtype == y.dtype
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("name", ["eigh", "eig", "svd", "hessenberg", "tridiagonal_solve"])
def test_failures_are_nan(name):
    bad = np.full((2, 3, 3), np.nan, np.float32)
    bad[0] = symmetric(3, 3)
    args = [bad] if name != "tridiagonal_solve" else [bad[..., 0] * 0, bad[..., 0] * 0, bad[..., 0] * 0, bad]
    outs = run(name, args, {})
    wanted = jax.tree.leaves(theirs(name)(*args))
    for x, y in zip(outs, wanted, strict=True):
        np.testing.assert_array_equal(np.isnan(x), np.isnan(y))


def test_double_precision():
    with styrax.enable_x64(True), jax.enable_x64(True):
        x = matrices(3, 3, dtype=np.complex128)
        assert "lapack_zgesdd_ffi" in printed("svd", [x], {})
        np.testing.assert_allclose(run("svd", [x], dict(compute_uv=False))[0], np.linalg.svd(x)[1], rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_half_precision(dtype):
    """Not in JAX: LAPACK computes in f32, as in programs for the CPU."""
    x = matrices(3, 3).astype(dtype)
    (s,) = run("svd", [x], dict(compute_uv=False))
    assert s.dtype == dtype
    np.testing.assert_allclose(s.astype(np.float32), np.linalg.svd(x.astype(np.float32))[1], rtol=2e-2)
