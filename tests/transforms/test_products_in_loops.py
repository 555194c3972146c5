"""Products in loops with matrices that do not change there, against JAX: however the matrices lie."""

from __future__ import annotations

import jax as real
import numpy as np
import pytest

import styrax

rng = np.random.default_rng(0)

LOOPS = {
    "scan": lambda j, step, c: j.lax.scan(lambda c, _: (step(c), c.sum()), c, None, length=5),
    "one turn": lambda j, step, c: j.lax.scan(lambda c, _: (step(c), None), c, None, length=1)[0],
    "no turns": lambda j, step, c: j.lax.scan(lambda c, _: (step(c), c), c, None, length=0),
    "fori": lambda j, step, c: j.lax.fori_loop(0, 5, lambda _, c: step(c), c),
    "while": lambda j, step, c: j.lax.while_loop(
        lambda s: s[0] < 6, lambda s: (s[0] + 1, step(s[1])), (np.int32(0), c)),
    "nested": lambda j, step, c: j.lax.scan(
        lambda c, _: (j.lax.fori_loop(0, 3, lambda _, c: step(c), c), None), c, None, length=2)[0],
    "in a branch": lambda j, step, c: j.lax.scan(
        lambda c, k: (j.lax.cond(k > 1, step, lambda c: c, c), None), c, j.numpy.arange(4))[0],
}
# name -> (shape of the matrix, shape of the carry, product)
PRODUCTS = {
    "matrix times vector": ((8, 8), (8,), lambda j, w, c: w @ c),
    "vector times matrix": ((8, 8), (8,), lambda j, w, c: c @ w),
    "rows times rows": ((8, 8), (5, 8), lambda j, w, c: c @ w.T),
    "rows times rows, turned": ((8, 8), (8, 5), lambda j, w, c: (w @ c)),
    "both sides": ((8, 8), (8, 8), lambda j, w, c: w @ c @ w.T),
    "batch": ((3, 8, 8), (3, 8), lambda j, w, c: j.numpy.einsum("bik,bk->bi", w, c)),
    "three dimensions": ((2, 4, 8), (3, 8), lambda j, w, c: j.numpy.einsum("iuk,bk->biu", w, c).reshape(3, 8)),
    "one row": ((1, 8), (8,), lambda j, w, c: (w @ c) * j.numpy.ones(8, c.dtype)),
    "one column": ((8, 1), (1,), lambda j, w, c: (w @ c)[:1]),
    "squares": ((8, 8), (8,), lambda j, w, c: (w @ c) * (c @ w)),
}


def program(j, loop, product):
    def f(w, c):
        return LOOPS[loop](j, lambda c: j.numpy.tanh(PRODUCTS[product][2](j, w, c)) / 2, c)

    return f


def same(f, *args, rtol=2e-5):
    for x, y in zip(*(j.tree.leaves(f(j)(*args)) for j in (styrax, real)), strict=True):
        assert x.dtype == y.dtype
        x, y = np.asarray(x, np.complex128), np.asarray(y, np.complex128)
        # Errors of a product are those of its largest terms, not of what is left where they cancel.
        largest = np.max(np.abs(y), initial=1, where=np.isfinite(y))
        np.testing.assert_allclose(x, y, rtol, rtol * largest)


@pytest.mark.parametrize("product", PRODUCTS)
@pytest.mark.parametrize("loop", LOOPS)
def test_values(loop, product):
    w, c = (rng.normal(size=s).astype(np.float32) for s in PRODUCTS[product][:2])
    same(lambda j: j.jit(program(j, loop, product)), w, c)


@pytest.mark.parametrize("product", PRODUCTS)
def test_gradients_and_maps(product):
    w, c = (rng.normal(size=s).astype(np.float32) for s in PRODUCTS[product][:2])
    total = lambda j: lambda w, c: sum(x.sum() for x in j.tree.leaves(program(j, "scan", product)(w, c)))
    same(lambda j: j.jit(j.grad(total(j), argnums=(0, 1))), w, c)
    same(lambda j: j.jit(j.vmap(program(j, "scan", product), (None, 0))), w, np.stack([c, -c]))
    same(lambda j: j.jit(j.vmap(j.grad(total(j), argnums=(0, 1)), (0, None))), np.stack([w, w / 2]), c)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "int8", "int32", "complex64", "bool"])
def test_dtypes(dtype):
    def f(j):
        def step(w, c):
            return (w @ c).astype(c.dtype)

        return j.jit(lambda w, c: j.lax.fori_loop(0, 3, lambda _, c: step(w, c), c))

    w, c = (real.numpy.asarray(rng.integers(-1, 2, s)).astype(dtype) for s in ((6, 6), (6, 6)))
    same(f, np.asarray(w), np.asarray(c)[0])
    same(lambda j: j.jit(lambda w, c: j.lax.fori_loop(0, 3, lambda _, c: (c @ w.T).astype(c.dtype), c)),
         np.asarray(w), np.asarray(c))


def test_not_a_number_and_infinity():
    w = np.array([[np.inf, 1], [0, 1]], np.float32)
    same(lambda j: j.jit(lambda w, c: j.lax.fori_loop(0, 2, lambda _, c: w @ c, c)), w, np.array([0, 1], np.float32))


def test_double_precision():
    def f(j):
        return j.jit(program(j, "scan", "rows times rows"))

    with styrax.enable_x64(True), real.enable_x64(True):
        same(f, rng.normal(size=(8, 8)), rng.normal(size=(5, 8)), rtol=1e-13)


LAYOUTS = {
    "rows times rows": (lambda j, a, b: a @ b.T, (40, 16), (12, 16)),
    "columns times columns": (lambda j, a, b: a.T @ b, (16, 40), (16, 12)),
    "columns times rows": (lambda j, a, b: a.T @ b.T, (16, 40), (12, 16)),
    "mapped": (lambda j, a, b: j.vmap(lambda r: b @ r)(a), (40, 16), (12, 16)),
    "batches": (lambda j, a, b: j.numpy.einsum("bik,bjk->bij", a, b), (3, 40, 16), (3, 12, 16)),
    "batches behind": (lambda j, a, b: j.numpy.einsum("ikb,jkb->bij", a, b), (40, 16, 3), (12, 16, 3)),
    "four dimensions": (lambda j, a, b: j.numpy.einsum("iuk,jvk->vuij", a, b), (20, 2, 16), (12, 3, 16)),
    "two sums": (lambda j, a, b: j.numpy.einsum("iuk,juk->ij", a, b), (20, 2, 16), (18, 2, 16)),
    "turned twice": (lambda j, a, b: a @ j.numpy.moveaxis(b.T.reshape(16, 3, 4), 0, -1).reshape(12, 16).T, (40, 16),
                     (12, 16)),
    "itself": (lambda j, a, b: a @ a.T, (40, 16), (1, 1)),
    "both dimensions of one": (lambda j, a, b: j.numpy.einsum("ijk,ljk->jil", a, a), (20, 3, 16), (1,)),
}


@pytest.mark.parametrize("dtype", ["float32", "int8", "complex64"])
@pytest.mark.parametrize("name", LAYOUTS)
def test_layouts(name, dtype):
    f, *shapes = LAYOUTS[name]
    a, b = (rng.integers(-2, 3, s).astype(dtype) for s in shapes)
    same(lambda j: j.jit(lambda a, b: f(j, a, b)), a, b)
    same(lambda j: j.jit(lambda a, b: j.lax.scan(lambda c, k: (c + k, f(j, a + c, b * k)), np.zeros((), dtype),
                                                 j.numpy.arange(3).astype(dtype))), a, b)
    if dtype == "float32":
        same(lambda j: j.jit(j.grad(lambda a, b: (f(j, a, b) ** 2).sum(), (0, 1))), a, b)
