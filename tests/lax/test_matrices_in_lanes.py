"""Factorisations of many small matrices, one in each lane: against NumPy and SciPy, matrix by matrix."""

import numpy as np
import pytest
import scipy.linalg

import styrax as jax
import styrax.numpy as jnp
from styrax import lax

SIZES = (1, 2, 3, 5, 8, 16, 31, 32, 33)
BATCHES = ((4,), (7,), (16,), (37,), (3, 5), (2, 0), (2, 2, 9))
WAYS = [lambda f: f, jax.jit, lambda f: lambda *xs: jax.vmap(f)(*xs)]
IDS = ["eager", "jit", "vmap"]


def matrices(shape, dtype, seed=0):
    return np.random.default_rng([seed, *shape]).normal(size=shape).astype(dtype)


def tolerance(dtype):
    return 2e-4 if dtype == np.float32 else 1e-11


def each(f, *stacks):
    batch = stacks[0].shape[:-2]
    rows = [f(*(s[i] for s in stacks)) for i in np.ndindex(*batch)]
    return np.stack(rows).reshape(*batch, *rows[0].shape)


@pytest.mark.parametrize("way", WAYS, ids=IDS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", SIZES)
def test_cholesky(size, dtype, way):
    with jax.enable_x64(dtype == np.float64):
        x = matrices((21, size, size), dtype)
        x = x @ x.swapaxes(1, 2) + size * np.eye(size, dtype=dtype)
        found = np.asarray(way(jnp.linalg.cholesky)(x))
        np.testing.assert_allclose(found, np.linalg.cholesky(x), rtol=tolerance(dtype), atol=tolerance(dtype))
        assert (np.triu(found, 1) == 0).all()


@pytest.mark.parametrize("batch", BATCHES)
def test_batches(batch):
    x = matrices((*batch, 5, 5), np.float32)
    square = x @ x.swapaxes(-1, -2) + np.eye(5, dtype=np.float32)
    np.testing.assert_allclose(jnp.linalg.cholesky(square), np.linalg.cholesky(square), rtol=1e-3, atol=1e-4)
    rhs = matrices((*batch, 5, 2), np.float32, 1)
    np.testing.assert_allclose(jnp.linalg.solve(square, rhs), np.linalg.solve(square, rhs), rtol=2e-2, atol=2e-2)


def test_flawed_matrices_leave_others_alone():
    x = np.stack([np.eye(4, dtype=np.float32)] * 19)
    x[3, 2, 2], x[5, 1, 1], x[7, 0, 0], x[9, 3, 3], x[11, 2, 1] = -1, 0, np.nan, np.inf, np.nan
    found = np.asarray(lax.linalg.cholesky(x, symmetrize_input=False))
    for i in range(19):
        if i in (3, 5):
            assert np.isnan(found[i][np.tril_indices(4)]).all()
        elif i in (7, 11):
            assert np.isnan(found[i]).any()
        elif i == 9:
            assert np.isinf(found[i][3, 3])
        else:
            np.testing.assert_array_equal(found[i], np.eye(4))
    assert (found[:, np.triu_indices(4, 1)[0], np.triu_indices(4, 1)[1]] == 0).all()


@pytest.mark.parametrize("way", WAYS, ids=IDS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("rows", "columns"), [
    (1, 1), (2, 2), (3, 3), (6, 6), (4, 7), (9, 3), (20, 20), (32, 17), (33, 33)])
def test_lu(rows, columns, dtype, way):
    with jax.enable_x64(dtype == np.float64):
        x = matrices((19, rows, columns), dtype)
        x[4], x[6, :, 0] = 0, 0
        factors, pivots, order = map(np.asarray, way(lax.linalg.lu)(x))
        for i in range(19):
            lower = np.tril(factors[i], -1)[:, :min(rows, columns)] + np.eye(rows, min(rows, columns))
            upper = np.triu(factors[i])[:min(rows, columns)]
            np.testing.assert_allclose(lower @ upper, x[i][order[i]], rtol=tolerance(dtype), atol=tolerance(dtype))
            assert (np.abs(lower) <= 1 + 1e-6).all()
            wanted, found = scipy.linalg.lu_factor(x[i]) if rows == columns and i not in (4, 6) else (None, None)
            if wanted is not None:
                np.testing.assert_array_equal(pivots[i], found)
                np.testing.assert_allclose(factors[i], wanted, rtol=50 * tolerance(dtype), atol=tolerance(dtype))
            permutation = np.arange(rows)
            for k, p in enumerate(pivots[i]):
                permutation[[k, p]] = permutation[[p, k]]
            np.testing.assert_array_equal(order[i], permutation)


@pytest.mark.parametrize("way", WAYS, ids=IDS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("rows", "columns"), [
    (1, 1), (1, 4), (3, 3), (8, 8), (4, 7), (9, 3), (20, 20), (32, 17), (33, 2)])
def test_qr(rows, columns, dtype, way):
    with jax.enable_x64(dtype == np.float64):
        x = matrices((21, rows, columns), dtype)
        x[2], x[3, :, 0], x[4] = 0, 0, np.tri(columns, rows, dtype=dtype).T
        x[5] *= dtype(1e25)
        x[6] *= dtype(1e-25)
        for mode in ("reduced", "complete"):
            q, r = map(np.asarray, way(lambda x, mode=mode: jnp.linalg.qr(x, mode=mode))(x))
            for i in range(21):
                scale = max(np.abs(x[i]).max(), np.finfo(dtype).tiny)
                np.testing.assert_allclose(q[i] @ (r[i] / scale), x[i] / scale, atol=tolerance(dtype))
                np.testing.assert_allclose(q[i].T @ q[i], np.eye(q.shape[-1]), atol=tolerance(dtype))
                assert (np.tril(r[i], -1) == 0).all()
                if i not in (2, 3, 4):  # the signs are LAPACK's
                    wanted = np.linalg.qr(x[i], mode=mode)
                    np.testing.assert_allclose(q[i], wanted[0], atol=100 * tolerance(dtype))
                    np.testing.assert_allclose(r[i] / scale, wanted[1] / scale, atol=100 * tolerance(dtype))


def test_nan_stays_in_its_matrix():
    x = matrices((20, 4, 3), np.float32)
    x[7, 2, 1] = np.nan
    q, r = map(np.asarray, jnp.linalg.qr(x))
    for i in range(20):
        assert np.isnan(q[i]).any() == np.isnan(r[i]).any() == (i == 7)


FLAGS = [(left, lower, turned, unit) for left in (True, False) for lower in (True, False) for turned in (True, False)
         for unit in (True, False)]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("left", "lower", "turned", "unit"), FLAGS)
def test_triangular_solve(left, lower, turned, unit, dtype):
    with jax.enable_x64(dtype == np.float64):
        for size, others, count in ((1, 1, 5), (2, 3, 16), (5, 1, 18), (16, 2, 33), (32, 4, 9)):
            a = matrices((count, size, size), dtype) / size + np.eye(size, dtype=dtype)
            rhs = matrices((count, size, others) if left else (count, others, size), dtype, 1)
            found = lax.linalg.triangular_solve(a, rhs, left_side=left, lower=lower, transpose_a=turned,
                                                unit_diagonal=unit)

            def one(a, rhs):
                t = np.tril(a) if lower else np.triu(a)
                if unit:
                    t = t - np.diag(np.diag(t)) + np.eye(len(t), dtype=t.dtype)
                t = t.T if turned else t
                return np.linalg.solve(t, rhs) if left else np.linalg.solve(t.T, rhs.T).T

            np.testing.assert_allclose(found, each(one, a, rhs), rtol=20 * tolerance(dtype), atol=20 * tolerance(dtype))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "complex64"])
@pytest.mark.parametrize(("left", "lower", "turned", "unit"), FLAGS)
def test_triangular_solve_with_one_matrix_for_all(left, lower, turned, unit, dtype):
    """A matrix that is broadcast is solved with once, with the right-hand sides of the whole batch."""
    with jax.enable_x64(dtype == "float64"):
        for size, others, batch in ((9, 1, (5,)), (13, 3, (2, 3)), (40, 2, (4, 1)), (12, 2, (0,)), (3, 2, (7,))):
            a = jnp.asarray(matrices((1, size, size), np.float32)[0] / size + np.eye(size), dtype)
            shape = (*batch, size, others) if left else (*batch, others, size)
            rhs = jnp.asarray(matrices(shape, np.float32, 1), dtype)
            if dtype == "complex64":
                a, rhs = a + 0.1j * a.T, rhs - 1j * rhs

            def solve(a, rhs):
                return lax.linalg.triangular_solve(
                    jnp.broadcast_to(a, (*rhs.shape[:-2], *a.shape)), rhs, left_side=left, lower=lower,
                    transpose_a=turned, conjugate_a=turned, unit_diagonal=unit)

            triangle = np.asarray(jnp.tril(a) if lower else jnp.triu(a), np.result_type(dtype, np.float32)
                                  if dtype != "bfloat16" else np.float32)
            if unit:
                triangle = triangle - np.diag(np.diag(triangle)) + np.eye(size, dtype=triangle.dtype)
            triangle = triangle.T.conj() if turned else triangle
            inverse, wide = np.linalg.inv(triangle), np.asarray(rhs).astype(triangle.dtype)
            expected = inverse @ wide if left else wide @ inverse
            bound = 5e-2 if dtype in ("float16", "bfloat16") else 1e-5 if dtype != "float64" else 1e-12
            for f in (solve, jax.jit(solve), jax.jit(jax.vmap(solve, (None, 0)) if len(batch) == 2 else solve)):
                found = f(a, rhs)
                assert found.dtype == dtype
                np.testing.assert_allclose(np.asarray(found).astype(triangle.dtype), expected, rtol=bound,
                                           atol=bound * np.abs(expected).max(initial=1))


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_triangular_solve_with_one_matrix_for_some(dtype, left):
    """What repeats along some dimensions of the batch and not along others, as under vmap."""
    for size, others, few, batch in (
            (12, 1, (3, 1), (3, 50)), (40, 1, (1, 4), (5, 4)), (9, 3, (2, 1, 3, 1), (2, 4, 3, 5)),
            (20, 2, (1, 3, 1), (2, 3, 4)), (12, 1, (3, 1), (3, 0)), (3, 1, (3, 1), (3, 6)),
            (5, 1, (1, 4), (1, 4)), (12, 2, (1, 1), (1, 7)), (12, 1, (1,), (1,))):
        a = np.tril(matrices((*few, size, size), np.float32) / size + np.eye(size, dtype=np.float32)).astype(dtype)
        b = matrices((*batch, size, others) if left else (*batch, others, size), np.float32, 1).astype(dtype)
        if dtype == "complex64":
            a = a + 0.1j * a

        def solve(a, b):
            a = jnp.broadcast_to(a, (*b.shape[:-2], *a.shape[-2:]))
            return lax.linalg.triangular_solve(a, b, left_side=left, lower=True)

        inverse = np.linalg.inv(a)
        expected = inverse @ b if left else b @ inverse
        for f in (solve, jax.jit(solve)):
            np.testing.assert_allclose(f(a, b), expected, rtol=1e-4, atol=1e-5 * np.abs(expected).max(initial=1))


def test_nan_beyond_the_triangle_is_not_read():
    a = np.where(np.tri(4), 2, np.nan).astype(np.float32) * np.ones((20, 1, 1), np.float32)
    out = lax.linalg.triangular_solve(a, np.ones((20, 4, 1), np.float32), left_side=True, lower=True)
    assert np.isfinite(np.asarray(out)).all()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "complex64"])
def test_other_dtypes(dtype):
    x = matrices((20, 3, 3), np.float32)
    x = jnp.asarray(x @ x.swapaxes(1, 2) + 3 * np.eye(3, dtype=np.float32), dtype)
    found = lax.linalg.cholesky(x)
    assert found.dtype == x.dtype
    wide = np.asarray(x.astype(jnp.promote_types(dtype, np.float32)))
    np.testing.assert_allclose(np.asarray(found.astype(wide.dtype)), np.linalg.cholesky(wide), rtol=5e-2, atol=5e-2)


def test_slopes_and_loops():
    x = matrices((18, 3, 3), np.float64) / 5 + 2 * np.eye(3)
    with jax.enable_x64(True):
        def total(x):
            return jnp.sum(jnp.sin(jnp.linalg.inv(x))) + jnp.sum(jnp.linalg.slogdet(x)[1])

        slope = np.asarray(jax.jit(jax.grad(total))(x))
        step = 1e-6
        for place in ((0, 0, 0), (7, 1, 2), (17, 2, 1)):
            moved = [x.copy(), x.copy()]
            moved[0][place] += step
            moved[1][place] -= step
            wanted = float(total(moved[0]) - total(moved[1])) / (2 * step)
            assert slope[place] == pytest.approx(wanted, rel=1e-5, abs=1e-7)

        def turn(c, _):
            return jnp.linalg.solve(c, np.eye(3)) * 0.5 + jnp.eye(3), None

        found = jax.jit(lambda x: lax.scan(turn, x, None, length=4)[0])(x)
        wanted = x
        for _ in range(4):
            wanted = np.linalg.inv(wanted) * 0.5 + np.eye(3)
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9)
