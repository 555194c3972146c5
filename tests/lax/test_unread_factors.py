"""Factorisations some results of which nothing reads: those are not computed, and the others are what they would be."""

from __future__ import annotations

import jax as real
import numpy as np
import pytest

import styrax
from styrax.compile.pipeline import compile_to_loops

RNG = np.random.default_rng(11)
SHAPES = [(9, 6), (6, 9), (7, 7), (1, 1), (5, 0), (0, 4), (3, 8, 5), (40, 4, 4), (2, 0, 3, 3), (70, 50)]
DTYPES = [np.float32, np.float64, np.complex64, np.complex128]


def matrices(shape, dtype):
    x = RNG.normal(size=shape)
    return (x + 1j * RNG.normal(size=shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


PROGRAMS = {
    "r": lambda j, x: j.lax.linalg.qr(x, full_matrices=False)[1],
    "full r": lambda j, x: j.lax.linalg.qr(x)[1],
    "q": lambda j, x: j.lax.linalg.qr(x, full_matrices=False)[0],
    "r and order": lambda j, x: j.lax.linalg.qr(x, pivoting=True, full_matrices=False)[1:],
    "singular values": lambda j, x: j.lax.linalg.svd(x, full_matrices=False)[1],
    "left vectors": lambda j, x: j.numpy.abs(j.lax.linalg.svd(x, full_matrices=False)[0]),
    "eigenvalues": lambda j, x: j.lax.linalg.eigh(x @ j.numpy.conj(j.numpy.swapaxes(x, -1, -2)))[1],
    "all in a loop": lambda j, x: j.lax.fori_loop(
        0, 3, lambda _, s: s + j.numpy.abs(j.lax.linalg.qr(x * 2)[1]).sum() + j.lax.linalg.svd(x)[1].sum(), 0.0),
}


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize("program", PROGRAMS)
def test_values(program, dtype):
    f, wide = PROGRAMS[program], np.dtype(dtype) in (np.float64, np.complex128)
    tolerance = 1e-10 if wide else 2e-3
    with real.enable_x64(wide), styrax.enable_x64(wide):
        for shape in SHAPES:
            if program == "r and order" and shape == (0, 4):
                continue  # (JAX's order of columns without rows names one of them four times)
            x = matrices(shape, dtype)
            wanted = real.jit(lambda x: f(real, x))(x)
            for found in (styrax.jit(lambda x: f(styrax, x))(x), f(styrax, styrax.numpy.asarray(x))):
                for have, want in zip(styrax.tree.leaves(found), real.tree.leaves(wanted), strict=True):
                    assert have.shape == want.shape and have.dtype == want.dtype
                    if program.startswith("left") or have.dtype.kind == "i":
                        np.testing.assert_allclose(have, want, atol=tolerance)
                    else:
                        np.testing.assert_allclose(np.abs(have), np.abs(want), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("program", ["r", "singular values", "eigenvalues"])
def test_derivatives_and_batches(program):
    x = matrices((4, 6, 5 if program != "eigenvalues" else 6), np.float32)

    def slope(j):
        weigh = lambda v: (v * j.numpy.arange(1.0, 1 + v.shape[-1])).sum()
        return j.jit(j.vmap(j.grad(lambda x: weigh(j.numpy.abs(PROGRAMS[program](j, x))))))(x)

    np.testing.assert_allclose(slope(styrax), slope(real), rtol=2e-2, atol=2e-2)


def test_not_finite():
    x = np.full((9, 9), np.nan, np.float32)
    for program in ("singular values", "eigenvalues", "r"):
        assert np.isnan(styrax.jit(lambda x, f=PROGRAMS[program]: f(styrax, x))(x)).any()


@pytest.mark.parametrize(("program", "routine"), [("r", "orgqr"), ("q", None)])
def test_what_is_called(program, routine):
    x = np.ones((60, 40), np.float32)
    closed = styrax.make_jaxpr(lambda x: PROGRAMS[program](styrax, x))(x)
    text = str(compile_to_loops(closed, "f"))
    assert "geqrf" in text and ("orgqr" in text) == (routine is None)
