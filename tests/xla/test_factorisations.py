"""Factorisations for clients that know no LAPACK: programs of other operations, run by XLA's client for CPUs."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import styrax
from styrax.lax import linalg
from styrax.xla.stablehlo import module_text
from tests import xla_cpu
from tests.xla.test_custom_calls import BATCH, CASES, matrices, symmetric

F32, F64, C64, C128 = np.float32, np.float64, np.complex64, np.complex128


def program(name, args, params):
    return styrax.make_jaxpr(lambda *xs: getattr(linalg, name)(*xs, **params))(*args)


def run(name, args, params):
    with styrax.enable_x64(any(x.dtype.itemsize > 4 and x.dtype != C64 for x in args)):
        return xla_cpu.run(program(name, args, params), *args, libraries=())


def on_cpu(name, args, params):
    with styrax.enable_x64(any(x.dtype.itemsize > 4 and x.dtype != C64 for x in args)):
        out = styrax.jit(lambda *xs: getattr(linalg, name)(*xs, **params))(*args)
    return [np.asarray(x) for x in styrax.tree.leaves(out)]


def tolerance(dtype):
    return 60 * float(np.finfo(dtype).eps)


def adjoint(x):
    return x.conj().swapaxes(-1, -2)


def assert_orthonormal(q):
    np.testing.assert_allclose(adjoint(q) @ q, np.broadcast_to(np.eye(q.shape[-1]), (*q.shape[:-2], *q.shape[-1:] * 2)),
                               atol=tolerance(q.dtype))


def assert_close(found, wanted, scale=1.0):
    assert found.dtype == wanted.dtype and found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=0, atol=tolerance(found.dtype) * scale)


UNIQUE = {  # results that are determined, signs and all
    **{case: given for case, given in CASES.items() if given[0] not in ("eig", "eigh", "schur", "svd")},
    "lu of f64": ("lu", [matrices(5, 5, dtype=F64)], {}),
    "lu of complex batches": ("lu", [matrices(2, 4, 3, dtype=C64)], {}),
    "lu of a singular matrix": ("lu", [np.array([[0, 1], [0, 2]], F32)], {}),
    "lu of panels": ("lu", [matrices(100, 90, dtype=F64)], {}),
    "qr of complex": ("qr", [matrices(4, 3, dtype=C128)], dict(full_matrices=False)),
    "qr with pivots of complex": ("qr", [matrices(2, 3, 5, dtype=C128)], dict(pivoting=True)),
    "hessenberg of complex": ("hessenberg", [matrices(2, 5, 5, dtype=C128)], {}),
    "tridiagonal of complex": ("tridiagonal", [symmetric(5, 5, dtype=C128)], {}),
    "tridiagonal of a number": ("tridiagonal", [matrices(1, 1)], {}),
    "few reflections": ("householder_product", [matrices(2, 5, 4), matrices(2, 2)], {}),
    "tridiagonal_solve with exchanges": (
        "tridiagonal_solve", [matrices(2, 9, dtype=C128), matrices(2, 9, dtype=C128) * 1e-3, matrices(2, 9, dtype=C128),
                              matrices(2, 9, 2, dtype=C128)], {}),
    "tridiagonal_solve of one": ("tridiagonal_solve", [matrices(1), matrices(1), matrices(1), matrices(1, 2)], {}),
    "symmetric_product": ("symmetric_product", [matrices(3, 2), symmetric(3, 3)], dict(alpha=2.0, beta=3.0)),
    "cholesky_update": ("cholesky_update", [np.triu(matrices(2, 3, 3)), matrices(2, 3)], {}),
}


@pytest.mark.parametrize("case", UNIQUE)
def test_results_are_those_of_the_cpu(case):
    for found, wanted in zip(run(*UNIQUE[case]), on_cpu(*UNIQUE[case]), strict=True):
        if found.dtype.kind == "i":
            np.testing.assert_array_equal(found, wanted)
        else:
            assert_close(found, wanted, np.abs(wanted).max(initial=1))


@pytest.mark.parametrize("n, dtype, lower", [(1, F32, True), (2, C64, False), (7, F64, False), (24, C128, True),
                                             (24, F32, True)])
def test_eigh(n, dtype, lower):
    x = np.stack([symmetric(n, n, dtype=dtype), np.eye(n, dtype=dtype), np.zeros((n, n), dtype),
                  np.ones((n, n), dtype)])
    given = np.tril(x) if lower else np.triu(x)
    v, w = run("eigh", [given], dict(lower=lower, symmetrize_input=False))
    assert_orthonormal(v)
    assert_close(v * w[:, None] @ adjoint(v), x, np.abs(w).max())
    assert_close(w, np.linalg.eigvalsh(x), np.abs(w).max())


def test_eigenvalues_of_all_sizes():
    """Large and small, near one another, of both signs: vectors of f64 to the last digits."""
    q, _ = np.linalg.qr(matrices(12, 12, dtype=F64))
    w = np.array([-1, -1 + 1e-9, -1e-13, 0, 1e-300, 1e-9, 2e-9, 0.5, 1, 1, 1, 1 + 1e-15])
    x = q * w @ q.T * 1e200
    v, found = run("eigh", [(x + x.T) / 2], {})
    assert_orthonormal(v)
    assert_close(found / 1e200, w)
    assert_close(v * (found / 1e200) @ v.T, x / 1e200)


@pytest.mark.parametrize("shape, dtype, full_matrices", [
    ((1, 1), F32, False), ((6, 3), F64, False), ((3, 6), C64, True), ((6, 3), F32, True), ((9, 9), C128, False)])
def test_svd(shape, dtype, full_matrices):
    m, n = shape
    x = np.stack([matrices(m, n, dtype=dtype), np.ones(shape, dtype), np.zeros(shape, dtype),
                  matrices(m, n, dtype=dtype) * np.logspace(0, -12, n).astype(dtype)])
    u, s, vh = run("svd", [x], dict(full_matrices=full_matrices))
    k = min(m, n)
    assert u.shape == (4, m, m if full_matrices else k) and vh.shape == (4, n if full_matrices else k, n)
    assert_orthonormal(u)
    assert_orthonormal(adjoint(vh))
    assert_close(u[..., :k] * s[:, None] @ vh[:, :k], x, s.max())
    assert_close(s, np.linalg.svd(x, compute_uv=False), s.max())
    assert (np.diff(s) <= 0).all() and (s >= 0).all()


def test_singular_values_alone():
    for x in (matrices(3, 7, 4, dtype=C128), matrices(4, 6)):
        (s,) = run("svd", [x], dict(compute_uv=False))
        assert_close(s, np.linalg.svd(x, compute_uv=False), s.max())


def test_factorisations_of_any_batch():
    v, w = run("eigh", [BATCH + BATCH.swapaxes(-1, -2)], {})
    assert_close(v * w[..., None, :] @ adjoint(v), BATCH + BATCH.swapaxes(-1, -2), 4)
    u, s, vh = run("svd", [BATCH], {})
    assert_close(u * s[..., None, :] @ vh, BATCH, 4)


@pytest.mark.parametrize("name, params", [
    ("eigh", {}), ("svd", {}), ("svd", dict(compute_uv=False)), ("qr", {}), ("qr", dict(pivoting=True)), ("lu", {}),
], ids=str)
@pytest.mark.parametrize("shape", [(0, 0), (0, 2, 2), (3, 0), (0, 3)], ids=str)
def test_empty_matrices(name, params, shape):
    args = [np.zeros((1, 0, 0) if name == "eigh" and shape[-1] != shape[-2] else shape, F32)]
    for found, wanted in zip(run(name, args, params), on_cpu(name, args, params), strict=True):
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("name", ["eig", "eigh", "svd", "tridiagonal_solve"])
def test_failures_are_nan(name):
    """What is not a number stays with its own matrix."""
    bad = np.full((2, 3, 3), np.nan, F32)
    bad[0] = symmetric(3, 3)
    zeros, ones = np.zeros((2, 3), F32), np.ones((2, 3, 3), F32)
    singular = [zeros, np.array([[1, 1, 1], [1, 0, 1]], F32), zeros, ones]
    for x in run(name, [bad] if name != "tridiagonal_solve" else singular, {}):
        assert np.isfinite(x[0]).all() and np.isnan(x[1]).all()


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_half_precision(dtype):
    x = matrices(3, 3).astype(dtype)
    (s,) = run("svd", [x], dict(compute_uv=False))
    assert s.dtype == dtype
    np.testing.assert_allclose(s.astype(F32), np.linalg.svd(x.astype(F32))[1], rtol=2e-2)


def test_one_function_for_equal_calls():
    text = module_text(styrax.make_jaxpr(lambda x: linalg.lu(linalg.lu(x)[0]))(matrices(3, 3)), libraries=())
    assert text.count("func.func private @lu") == 1 and "lapack" not in text


def spectra(x):
    """For each eigenvalue of one matrix, how far the nearest one of another is; both ways."""
    return lambda w: max(np.abs(x[:, None] - w).min(axis).max() for axis in (0, 1))


@pytest.mark.parametrize("x", [
    matrices(1, 1), matrices(2, 8, 8), matrices(12, 12, dtype=F64),
    np.stack([np.zeros((3, 3), C128), np.eye(3, dtype=C128), np.ones((3, 3), C128)]),
    np.roll(np.eye(6), 1, 0).astype(F32),  # which shifts that are zero leave as it is
], ids=lambda x: f"{x.shape}-{x.dtype}")
def test_eig(x):
    w, left, right = run("eig", [x], {})
    size = max(1, np.linalg.norm(x, axis=(-2, -1)).max())
    assert_close(x @ right, (right * w[..., None, :]).astype(right.dtype), size)
    assert_close(adjoint(left) @ x, w[..., None] * adjoint(left), size)
    for v in (left, right):
        assert_close(np.linalg.norm(v, axis=-2), np.ones_like(w.real))
    for found, one in zip(w.reshape(-1, w.shape[-1]), x.reshape(-1, *x.shape[-2:]), strict=True):
        assert spectra(np.linalg.eigvals(one.astype(C128)))(found) < tolerance(x.dtype) * size


def test_eigenvalues_alone():
    x = matrices(5, 5, dtype=C64)
    (w,) = run("eig", [x], dict(compute_left_eigenvectors=False, compute_right_eigenvectors=False))
    assert spectra(np.linalg.eigvals(x))(w) < 5 * tolerance(C64)


def test_eig_of_a_matrix_without_a_basis():
    """Vectors of a defective matrix are all the same one; none overflows."""
    x = np.diag(np.full(12, 2), 0).astype(F32) + np.diag(np.ones(11, F32), 1)
    w, right = run("eig", [x], dict(compute_left_eigenvectors=False))
    np.testing.assert_array_equal(w, 2)
    assert_close(np.abs(right), np.broadcast_to(np.eye(12, 1, dtype=F32), (12, 12)))


@pytest.mark.parametrize("n", [1, 7])
def test_schur_of_complex(n):
    x = matrices(2, n, n, dtype=C128)
    t, z = run("schur", [x], {})
    assert_orthonormal(z)
    assert_close(z @ t @ adjoint(z), x, n)
    np.testing.assert_array_equal(t, np.triu(t))


def test_schur_form_alone():
    x = matrices(4, 4, dtype=C64)
    (t,) = run("schur", [x], dict(compute_schur_vectors=False))
    assert spectra(np.linalg.eigvals(x))(np.diag(t)) < 5 * tolerance(C64)


REAL = {
    "one row": matrices(1, 1, dtype=F64), "two rows": matrices(2, 2, dtype=F64),
    "three rows": matrices(3, 3, dtype=F64), "a batch": matrices(3, 6, 6, dtype=F64),
    "single precision": matrices(2, 5, 5, dtype=F32), "many rows": matrices(33, 33, dtype=F64),
    "symmetric": symmetric(6, 6, dtype=F64), "skew": matrices(6, 6, dtype=F64) - matrices(6, 6, dtype=F64).T,
    "zeros": np.zeros((4, 4)),
    "triangular": np.triu(matrices(5, 5, dtype=F64)), "a circle": np.roll(np.eye(6), 1, 0),
    "one eigenvalue": np.eye(6) * 2 + np.eye(6, k=1), "a turn": np.array([[0.0, 1.0], [-1.0, 0.0]]),
    "real in two rows": np.array([[1.0, 2.0], [3.0, 4.0]]), "singular": np.outer(np.arange(5.0), np.ones(5)),
    "large": matrices(5, 5, dtype=F32) * F32(1e30), "small": matrices(5, 5, dtype=F32) * F32(1e-30),
    "no rows": np.zeros((0, 0), F32), "no matrices": np.zeros((0, 3, 3), F32),
}


@pytest.mark.parametrize("name", REAL)
def test_schur_of_real(name):
    """Blocks of one and two rows, these with conjugate eigenvalues and equal diagonal elements."""
    x = REAL[name]
    t, z = run("schur", [x], {})
    assert t.dtype == z.dtype == x.dtype and t.shape == z.shape == x.shape
    if not x.size:
        return
    size, n = np.abs(x).max() or 1, x.shape[-1]
    assert_orthonormal(z)
    assert_close((z @ (t / size) @ adjoint(z)).astype(x.dtype), x / size, n)
    np.testing.assert_array_equal(np.tril(t, -2), 0)
    for m in t.reshape(-1, n, n) / size:
        below = np.diag(m, -1)
        assert not (below[1:] * below[:-1]).any()
        for k in np.flatnonzero(below):
            assert m[k, k + 1] * m[k + 1, k] < 0 and abs(m[k, k] - m[k + 1, k + 1]) < n * tolerance(x.dtype)
    alone, = run("schur", [x], dict(compute_schur_vectors=False))
    np.testing.assert_array_equal(alone, t)


def test_schur_of_what_is_no_number():
    x = matrices(2, 4, 4, dtype=F32)
    x[1, 2, 2] = np.nan
    t, z = run("schur", [x], {})
    assert np.isfinite(t[0]).all() and np.isnan(t[1]).any() and np.isnan(z[1]).any()
