"""Factorisations and solves against JAX's, which calls the same LAPACK: values, derivatives, batching, errors."""

from __future__ import annotations

import itertools

import jax
import numpy as np
import pytest

import styrax
from styrax.lax import linalg
from styrax.transforms.api import jvp, vjp, vmap
from tests.lax.oracle import check, program

theirs = jax.lax.linalg
DTYPES = ["float32", "complex64"]


def draw(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape)
    if dtype == "complex64":
        x = x + 1j * rng.normal(size=shape)
    return x.astype(dtype)


def adjoint(x):
    return np.conj(np.swapaxes(x, -1, -2))


def positive(n, dtype, batch=()):
    a = draw((*batch, n, n), dtype)
    return (a @ adjoint(a) + n * np.eye(n)).astype(dtype)


def both(name, **kwargs):
    return (lambda *xs: getattr(linalg, name)(*xs, **kwargs),
            lambda *xs: jax.tree.leaves(getattr(theirs, name)(*xs, **kwargs)))


@pytest.mark.parametrize("platform", ["xla", "cpu"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 1), (5, 5), (2, 3, 3), (30, 30)])
def test_cholesky(shape, dtype, platform):
    x = positive(shape[-1], dtype, shape[:-2])
    check(platform, *both("cholesky"), x, rtol=1e-4, atol=1e-4)
    check(platform, *both("cholesky", symmetrize_input=False), x, rtol=1e-4, atol=1e-4)
    t = draw(shape, dtype, 1)
    f, g = linalg.cholesky, theirs.cholesky
    if platform == "cpu":
        check("cpu", lambda x, t: jvp(f, (x,), (t,)), lambda x, t: jax.jvp(g, (x,), (t,)), x, t, rtol=1e-3, atol=1e-3)
        check("cpu", lambda x, t: vjp(f, x)[1](t), lambda x, t: jax.vjp(g, x)[1](t), x, t, rtol=1e-3, atol=1e-3)


def test_cholesky_of_other_matrices_is_nan():
    for n in (2, 20):
        x = -np.eye(n, dtype=np.float32)
        check("cpu", *both("cholesky"), x)
        x[0, 0] = 1
        check("cpu", *both("cholesky"), x)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 4, 30])
def test_triangular_solve(n, dtype):
    for left, lower, transpose, conjugate, unit in itertools.product([False, True], repeat=5):
        if n != 4 and (conjugate != transpose or unit == left):
            continue
        a = draw((2, n, n), dtype) / n + 2 * np.eye(n, dtype=np.float32)
        b = draw((2, n, 3) if left else (2, 3, n), dtype, 1)
        kwargs = dict(left_side=left, lower=lower, transpose_a=transpose, conjugate_a=conjugate, unit_diagonal=unit)
        f, g = both("triangular_solve", **kwargs)
        check("cpu", f, g, a, b, rtol=1e-3, atol=1e-4)
        if n != 4 or unit or lower == transpose or conjugate != transpose:
            continue
        check("xla", f, g, a, b, rtol=1e-3, atol=1e-4)
        g = lambda a, b: theirs.triangular_solve(a, b, **kwargs)  # noqa: B023
        t = draw(b.shape, dtype, 2)
        check("cpu", lambda a, b, t: jvp(f, (a, b), (a, t)), lambda a, b, t: jax.jvp(g, (a, b), (a, t)), a, b, t,  # noqa: B023
              rtol=1e-3, atol=1e-3)
        check("cpu", lambda a, b, t: vjp(f, a, b)[1](t), lambda a, b, t: jax.vjp(g, a, b)[1](t), a, b, t, rtol=1e-3,  # noqa: B023
              atol=1e-3)
        for axes in ((None, 0), (0, None), (1, 1)) if dtype == "float32" else ():
            args = [v[0] if x is None else v if x == 0 else np.swapaxes(v, 0, 1) for v, x in zip((a, b), axes)]
            check("cpu", vmap(f, axes), jax.vmap(g, axes), *args, rtol=1e-3, atol=1e-3)


def test_triangular_solve_many_sides():
    a, b = draw((40, 40), "float32") / 40 + 2 * np.eye(40, dtype=np.float32), draw((40, 600), "float32")
    for left in (True, False):
        check("cpu", *both("triangular_solve", left_side=left, lower=True), a, b if left else b.T.copy(), rtol=1e-3,
              atol=1e-4)
    check("cpu", *both("triangular_solve", left_side=True), a, b[:, 0].copy(), rtol=1e-3, atol=1e-4)


SHAPES = [(4, 4), (6, 3), (3, 6), (2, 5, 4), (40, 40)]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [*SHAPES, (0, 3)])
def test_lu(shape, dtype):
    x = draw(shape, dtype)
    check("cpu", *both("lu"), x, rtol=1e-3, atol=1e-4)
    if shape[-1] < 10 and 0 not in shape:
        f, g, t = (lambda x: linalg.lu(x)[0]), (lambda x: theirs.lu(x)[0]), draw(shape, dtype, 1)
        check("cpu", lambda x, t: jvp(f, (x,), (t,)), lambda x, t: jax.jvp(g, (x,), (t,)), x, t, rtol=1e-2, atol=1e-2)


def test_lu_pivots():
    pivots = np.array([[2, 2, 3], [0, 1, 4]], np.int32)
    check("cpu", lambda p: linalg.lu_pivots_to_permutation(p, 5), lambda p: theirs.lu_pivots_to_permutation(p, 5),
          pivots)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_qr(shape, dtype):
    x = draw(shape, dtype)
    for full, pivoting in itertools.product([False, True], repeat=2):
        f, g = both("qr", full_matrices=full, pivoting=pivoting)
        check("cpu", f, g, x, rtol=1e-3, atol=1e-4)
        # (JAX's own derivative with pivoting is wrong for wide matrices and fails on batches)
        if shape[-1] < 10 and not (pivoting and shape != (4, 4)):
            t = draw(shape, dtype, 1)
            f2, g2 = (lambda x: f(x)[:2]), (lambda x: g(x)[:2])  # noqa: B023
            check("cpu", lambda x, t: jvp(f2, (x,), (t,))[1], lambda x, t: jax.jvp(g2, (x,), (t,))[1], x, t, rtol=1e-2,  # noqa: B023
                  atol=1e-2)
    assert program(linalg.qr, np.ones((0, 3), np.float32))[0].out_avals[0].shape == (0, 0)


def test_derivatives_of_complete_qr():
    """All columns of q turn as LAPACK's do (differences say so), in both modes and mapped."""
    rng = np.random.default_rng(0)
    x, t = (rng.normal(size=(5, 2)) + 1j * rng.normal(size=(5, 2)) for _ in range(2))
    q = styrax.jit(lambda x: tuple(linalg.qr(x, full_matrices=True)))
    with styrax.enable_x64(True):
        derivatives = jvp(q, (x,), (t,))[1]
        for got, up, down in zip(derivatives, q(x + 1e-6 * t), q(x - 1e-6 * t), strict=True):
            np.testing.assert_allclose(got, (np.asarray(up) - np.asarray(down)) / 2e-6, rtol=1e-5, atol=1e-5)
        (slopes,) = vmap(lambda x: vjp(q, x)[1](derivatives))(np.stack([t, x]))
        products = sum((np.asarray(d) ** 2).sum().real for d in derivatives)
        np.testing.assert_allclose((np.asarray(slopes[1]) * t).sum().real, products, rtol=1e-10)
        assert [d.shape for d in jvp(q, (x[:, :0],), (t[:, :0],))[1]] == [(5, 5), (5, 0)]


def test_reflections():
    a, taus = draw((5, 3), "float32"), draw((3,), "float32", 1)
    check("cpu", *both("householder_product"), a, taus, rtol=1e-3, atol=1e-3)
    for left, transpose in itertools.product([False, True], repeat=2):
        c = draw((5, 4) if left else (4, 5), "float32", 2)
        check("cpu", *both("ormqr", left=left, transpose=transpose), a, taus, c, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(4, 4), (3, 5, 5), (40, 40)])
def test_eigh(shape, dtype):
    x = draw(shape, dtype)
    for lower in (False, True):
        check("cpu", *both("eigh", lower=lower, symmetrize_input=False), x, rtol=1e-3, atol=1e-4)
    check("cpu", *both("eigh"), x, rtol=1e-3, atol=1e-4)
    if shape[-1] < 10:
        t = draw(shape, dtype, 1)
        check("cpu", lambda x, t: jvp(linalg.eigh, (x,), (t,))[1],
              lambda x, t: jax.jvp(theirs.eigh, (x,), (t,))[1], x, t, rtol=1e-2, atol=1e-2)
        f, g = (lambda x: linalg.eigh(x)[1]), (lambda x: theirs.eigh(x)[1])
        w = np.ones(shape[:-1], np.float32)
        check("cpu", lambda x, w: vjp(f, x)[1](w), lambda x, w: jax.vjp(g, x)[1](w), x, w, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(4, 4), (6, 3), (3, 6), (2, 5, 4), (30, 40)])
def test_svd(shape, dtype):
    x = draw(shape, dtype)
    for full in (False, True):
        check("cpu", *both("svd", full_matrices=full), x, rtol=1e-3, atol=1e-4)
    check("cpu", *both("svd", compute_uv=False), x, rtol=1e-3, atol=1e-4)
    if shape[-1] < 10:
        t = draw(shape, dtype, 1)
        for kwargs in (dict(full_matrices=False), dict(compute_uv=False)):
            f, g = both("svd", **kwargs)
            check("cpu", lambda x, t: jvp(f, (x,), (t,))[1], lambda x, t: jax.jvp(g, (x,), (t,))[1], x, t, rtol=1e-2,  # noqa: B023
                  atol=1e-2)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(4, 4), (2, 5, 5)])
def test_eig(shape, dtype):
    x = draw(shape, dtype)
    for left, right in itertools.product([False, True], repeat=2):
        check("cpu", *both("eig", compute_left_eigenvectors=left, compute_right_eigenvectors=right), x, rtol=1e-3,
              atol=1e-4)
    t = draw(shape, dtype, 1)
    none = dict(compute_left_eigenvectors=False, compute_right_eigenvectors=False)
    f, g = both("eig", **none)
    check("cpu", lambda x, t: jvp(f, (x,), (t,))[1], lambda x, t: jax.jvp(g, (x,), (t,))[1], x, t, rtol=1e-2, atol=1e-2)
    slope = styrax.make_jaxpr(lambda x, t: jvp(f, (x,), (t,)))(x, t)  # the values are those of the vectors
    assert [e.primitive.name for e in slope.eqns].count("eig") == 1
    f, g = both("eig", compute_left_eigenvectors=False, enable_eigvec_derivs=True)
    check("cpu", lambda x, t: jvp(f, (x,), (t,))[1], lambda x, t: jax.jvp(g, (x,), (t,))[1], x, t, rtol=1e-2, atol=1e-2)
    with pytest.raises(NotImplementedError, match="enable_eigvec_derivs"):
        program(lambda x: jvp(linalg.eig, (x,), (x,)), x)


@pytest.mark.parametrize("dtype", DTYPES)
def test_other_forms(dtype):
    x = draw((2, 5, 5), dtype)
    check("cpu", *both("schur"), x, rtol=1e-3, atol=1e-3)
    check("cpu", *both("schur", compute_schur_vectors=False), x, rtol=1e-3, atol=1e-3)
    check("cpu", *both("hessenberg"), x, rtol=1e-3, atol=1e-3)
    for lower in (False, True):
        check("cpu", *both("tridiagonal", lower=lower), (x + adjoint(x)), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("dtype", DTYPES)
def test_tridiagonal_solve(dtype):
    args = [draw((2, 6), dtype, i) for i in range(3)] + [draw((2, 6, 3), dtype, 3)]
    args[1] = args[1] + 3
    f, g = linalg.tridiagonal_solve, theirs.tridiagonal_solve
    check("cpu", f, g, *args, rtol=1e-3, atol=1e-4)
    check("cpu", lambda *a: jvp(f, a, a), lambda *a: jax.jvp(g, a, a), *args, rtol=1e-3, atol=1e-3)
    check("cpu", lambda *a: vjp(f, *a)[1](a[3]), lambda *a: jax.vjp(g, *a)[1](a[3]), *args, rtol=1e-3, atol=1e-3)


def exact(l, d, u, b):
    """The solutions of all systems, one after the other, by NumPy."""
    wide = np.result_type(b.dtype, np.float64)
    out = np.empty(b.shape, wide)
    for i in np.ndindex(*b.shape[:-2]):
        a = np.diag(d[i].astype(wide)) + np.diag(l[i][1:], -1) + np.diag(u[i][:-1], 1)
        out[i] = np.linalg.solve(a, b[i].astype(wide))
    return out


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("batch", [(), (3,), (16,), (17,), (5, 7)])
def test_tridiagonal_systems_in_lanes(batch, dtype):
    """Right-hand sides are lanes, or systems; few rows, and some that are exchanged."""
    single = dtype in ("float32", "complex64")
    with styrax.enable_x64(not single):
        for n, k in ((1, 1), (2, 3), (3, 1), (4, 1), (5, 9), (17, 2), (33, 17)):
            l, d, u = (draw((*batch, n), dtype, i) for i in range(3))
            b = draw((*batch, n, k), dtype, 3)
            for middle in (d, d + 4):
                want = exact(l, middle, u, b)
                tolerance = (2e-2 if single else 1e-9) * np.abs(want).max()
                np.testing.assert_allclose(styrax.jit(linalg.tridiagonal_solve)(l, middle, u, b), want, rtol=1e-4,
                                           atol=tolerance)
            if n == 5:  # (called eagerly, one program serves all sizes)
                np.testing.assert_allclose(linalg.tridiagonal_solve(l, d + 4, u, b), want, rtol=1e-4, atol=tolerance)


@pytest.mark.parametrize("copies", [1, 8])
def test_flawed_tridiagonal_systems(copies):
    d, zeros = np.ones((3, 4), np.float32), np.zeros((3, 4), np.float32)
    d[1, 2] = 0
    b = np.ones((3, 4, 2), np.float32)
    args = [np.concatenate([x] * copies) for x in (zeros, d, zeros, b)]
    found = np.asarray(styrax.jit(linalg.tridiagonal_solve)(*args))
    want = np.ones_like(found)
    want[1::3] = np.nan
    np.testing.assert_array_equal(found, want)


def test_right_hand_sides_of_the_same_systems():
    """A batch of these alone is more of them."""
    l, d, u, b = draw((2, 6), "float32"), draw((2, 6), "float32", 1) + 4, draw((2, 6), "float32", 2), draw(
        (2, 6, 5, 3), "float32", 3)
    solve = styrax.vmap(linalg.tridiagonal_solve, (None, None, None, 2), 1)
    want = exact(l, d, u, b.reshape(2, 6, 15)).reshape(2, 6, 5, 3).transpose(0, 2, 1, 3)
    np.testing.assert_allclose(solve(l, d, u, b), want, rtol=1e-4, atol=1e-4)
    (eqn,) = [e for e in styrax.make_jaxpr(solve)(l, d, u, b).eqns if e.primitive.name == "tridiagonal_solve"]
    assert eqn.outvars[0].aval.shape == (2, 6, 15)
    slopes = styrax.jit(styrax.vmap(styrax.grad(lambda b: linalg.tridiagonal_solve(l[0], d[0], u[0], b).sum()), 2))(
        b[0].transpose(0, 2, 1))
    want = jax.vmap(jax.grad(lambda b: theirs.tridiagonal_solve(l[0], d[0], u[0], b).sum()), 2)(b[0].transpose(0, 2, 1))
    np.testing.assert_allclose(slopes, want, rtol=1e-4, atol=1e-4)


def test_products_and_updates():
    a, c = draw((3, 4), "float32"), draw((3, 3), "float32", 1)
    for engine, symmetric in itertools.product(("cpu", "xla"), (False, True)):
        check(engine, *both("symmetric_product", alpha=2.0, beta=0.5, symmetrize_output=symmetric), a, c, rtol=1e-4,
              atol=1e-4)
    r = np.triu(draw((5, 5), "float32")) + 3 * np.eye(5, dtype=np.float32)
    w = draw((5,), "float32", 1)
    found = program(linalg.cholesky_update, r, w)
    assert found[0].out_avals[0].shape == (5, 5)
    check("cpu", lambda r, w: linalg.cholesky_update(r, w), lambda r, w: np.linalg.cholesky(
        np.asarray(r.T @ r + np.outer(w, w))).T.astype(np.float32), r, w, rtol=1e-3, atol=1e-3)


def test_batching():
    x = positive(4, "float32", (3,))
    for name in ("cholesky", "lu", "qr", "eigh", "svd", "schur", "hessenberg"):
        f, g = both(name)
        for axis in (0, 1):
            moved = np.moveaxis(x, 0, axis).copy()
            check("cpu", vmap(f, axis), jax.vmap(g, axis), moved, rtol=1e-3, atol=1e-3)


def test_parameters():
    x = np.eye(3, dtype=np.float32)
    for name in ("cholesky", "lu", "qr", "eigh", "svd", "eig", "schur", "hessenberg", "tridiagonal"):
        f, g = both(name)
        ours, others = program(f, x)[0], jax.make_jaxpr(g)(x)
        last = [next(e for e in reversed(j.eqns) if e.primitive.name == name) for j in (ours, others)]
        assert {k: str(v) for k, v in last[0].params.items()} == {k: str(v) for k, v in last[1].params.items()}, name


@pytest.mark.parametrize(
    ("run", "error"),
    [
        (lambda L, z: L.cholesky(z(3, 4)), (TypeError, ValueError)),
        (lambda L, z: L.cholesky(z(3, 3).astype(np.int32)[:, :2]), (TypeError, ValueError)),
        (lambda L, z: L.triangular_solve(z(3, 3), z(3, 2)), ValueError),
        (lambda L, z: L.triangular_solve(z(3, 2), z(3, 2)), ValueError),
        (lambda L, z: L.triangular_solve(z(3, 3).astype(np.int32), z(3, 3).astype(np.int32)), TypeError),
        (lambda L, z: L.lu(z(3)), TypeError),
        (lambda L, z: L.lu(z(3, 3).astype(np.int32)), TypeError),
        (lambda L, z: L.qr(z(3)), TypeError),
        (lambda L, z: L.svd(z(3)), TypeError),
        (lambda L, z: L.eig(z(2, 3)), ValueError),
        (lambda L, z: L.eigh(z(3, 3), subset_by_index=(0, 2)), NotImplementedError),
        (lambda L, z: L.svd(z(3, 3), subset_by_index=(0, 2)), ValueError),
        (lambda L, z: L.schur(z(3, 3), sort_eig_vals=True), NotImplementedError),
        (lambda L, z: L.tridiagonal_solve(z(3), z(3), z(3), z(3)), TypeError),
        (lambda L, z: L.lu_pivots_to_permutation(z(3), 5), TypeError),
        (lambda L, z: L.lu_pivots_to_permutation(z(3).astype(np.int32), 2), ValueError),
    ],
)
def test_errors(run, error):
    with pytest.raises(error):
        program(lambda: run(linalg, lambda *s: np.zeros(s, np.float32)))
    with pytest.raises(error):
        run(theirs, lambda *s: jax.numpy.zeros(s, np.float32))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(2, 2), (3, 3), (7, 7), (40, 40), (2, 5, 5)])
def test_cholesky_outside_of_programs(shape, dtype):
    """Called eagerly, one program serves all sizes: LAPACK gets them when it runs."""
    x = draw(shape, dtype)
    x = x @ np.swapaxes(x, -1, -2).conj() + 3 * shape[-1] * np.eye(shape[-1], dtype=dtype)
    np.testing.assert_allclose(np.asarray(linalg.cholesky(x)), np.linalg.cholesky(x), rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("dtype", [*DTYPES, "float64"])
@pytest.mark.parametrize("shape", [(3, 4), (5, 2), (4, 4), (2, 6, 3), (0, 3), (3, 0)])
def test_raw_factors(shape, dtype):
    with jax.enable_x64(True), styrax.enable_x64(True):
        x = draw(shape, dtype)
        ours, theirs = (m.linalg.qr(x, mode="raw") for m in (styrax.numpy, jax.numpy))
        for a, b in zip(ours, theirs, strict=True):
            assert (a.shape, a.dtype) == (b.shape, b.dtype)
            np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-4, atol=1e-5)
        batched = styrax.vmap(lambda v: styrax.numpy.linalg.qr(v, mode="raw"))(np.stack([x, x]))
        np.testing.assert_allclose(np.asarray(batched[1][0]), np.asarray(ours[1]), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", DTYPES)
def test_eigenvalues_of_what_is_not_finite_are_nan_and_the_console_is_left_alone(dtype, capfd):
    x = draw((4, 3, 3), dtype)
    x[1, 0, 2], x[2, 1, 1] = np.nan, np.inf
    for compiled in (False, True):
        run = lambda j, compiled=compiled: (j.jit if compiled else lambda f: f)(j.lax.linalg.eig)(x)
        for ours, expected in zip(run(styrax), run(jax), strict=True):
            for part in (np.real, np.imag):
                np.testing.assert_array_equal(np.isnan(part(ours)), np.isnan(part(expected)))
            assert not np.isnan(ours[::3]).any()
    assert "On entry" not in "".join(capfd.readouterr())


def test_what_fails_is_nan_in_both_parts():
    small = np.complex64([[1, 2j], [2j, -1]])
    large = np.eye(40, dtype=np.complex64) * -1
    for name in ("cholesky", "eigh", "schur", "eig"):
        for flawed in (small, small * np.nan, large, large * np.nan):
            ours, expected = (jax.tree.leaves(getattr(j, name)(flawed)) for j in (linalg, theirs))
            for part in (np.real, np.imag):
                for a, b in zip(ours, expected, strict=True):
                    np.testing.assert_array_equal(np.isnan(part(a)), np.isnan(part(b)), name)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
def test_svd_of_what_is_not_finite(dtype, compiled):
    """On the matrix of infinities and what is huge LAPACK does not end, nor do JAX and NumPy."""
    with styrax.enable_x64(True), jax.enable_x64(True):
        svd = lambda j, x: j.jit(j.numpy.linalg.svd)(x) if compiled else j.numpy.linalg.svd(x)
        for x in ([[1, 2], [np.nan, 3]], [[1, np.inf], [2, 3]], [[np.inf]], [[1, 2], [3, 4], [-np.inf, 1]]):
            found, expected = (svd(j, np.array(x, dtype))[1] for j in (styrax, jax))
            np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
        largest = np.finfo(dtype).max
        endless = np.array([[-2, -1.2, 0.25, -1], [2, 0.25, 0.75, 2], [np.inf, -largest, 2, -3]], dtype)
        u, s, vh = svd(styrax, np.stack([np.eye(3, 4, dtype=dtype), endless, 2 * np.eye(3, 4, dtype=dtype)]))
        np.testing.assert_allclose(s[0::2], [[1, 1, 1], [2, 2, 2]], 1e-6)
        assert all(np.isnan(v[1]).all() and np.isfinite(v[0::2]).all() for v in (u, s, vh))


@pytest.mark.parametrize("n", [3, 8])
def test_cholesky_of_what_is_not_finite(n):
    """Compiled or not, what stands before the first NaN is there, as LAPACK leaves it."""
    for row, column in ((0, 0), (1, 0), (n - 1, 1), (n - 1, n - 1)):
        for value in (np.nan, np.inf):
            x = positive(n, "float32")
            x[row, column] = x[column, row] = value
            expected = np.asarray(theirs.cholesky(x))
            for compiled in (False, True):
                ours = (styrax.jit if compiled else lambda f: f)(linalg.cholesky)(x)
                np.testing.assert_array_equal(np.isnan(ours), np.isnan(expected))


def test_solves_of_no_columns(capfd):
    """Eager calls of any size go to one program, whose library must not complain of empty rows."""
    for dtype in (np.float32, np.complex64):
        for left, shape in ((True, (3, 0)), (False, (0, 3))):
            out = linalg.triangular_solve(np.eye(3, dtype=dtype), np.ones(shape, dtype), left_side=left, lower=True)
            assert out.shape == shape
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("dtype", ["int32", "uint8", "bool"])
@pytest.mark.parametrize("name", ["cholesky", "eigh"])
def test_whole_numbers_have_a_floating_point_mean(name, dtype):
    f, g = both(name)
    x = (np.eye(3) * 2 + np.eye(3, k=1)).astype(dtype)
    for found, want in zip(jax.tree.leaves(f(x)), jax.tree.leaves(g(x)), strict=True):
        assert found.dtype == want.dtype
        np.testing.assert_allclose(np.abs(found), np.abs(want), rtol=1e-5, atol=1e-5)
    with pytest.raises(TypeError):
        f(x, symmetrize_input=False)
