"""Products of which an operand is the same all along some dimensions: values and loops."""

from __future__ import annotations

import jax as real
import numpy as np
import pytest

import styrax
import styrax.numpy as jnp

rng = np.random.default_rng(0)
KINDS = {
    "float32": lambda x: x,
    "float64": lambda x: x.astype(np.float64),  # float32 without x64
    "complex64": lambda x: (x + 1j * x[::-1]).astype(np.complex64),
    "int8": lambda x: np.round(x * 2).astype(np.int8),
    "bool": lambda x: x > 0,
    "NaN": lambda x: np.where(x > 2, np.nan, x).astype(np.float32),
    "infinite": lambda x: np.where(x > 2, np.inf, x).astype(np.float32),
}
# The equation, and the letters that each of the operands repeats along.
EQUATIONS = {
    "left": ("bij,bjk->bik", "b", ""),
    "right": ("bij,bjk->bik", "", "b"),
    "same for all": ("bij,bjk->bik", "b", "b"),
    "first of two": ("abij,abjk->abik", "a", ""),
    "second of two": ("abij,abjk->abik", "", "b"),
    "each one": ("abij,abjk->baik", "a", "b"),
    "each one and both": ("abcij,cbajk->iabck", "ac", "bc"),
    "with vectors": ("bij,bj->bi", "b", ""),
    "vectors": ("bj,bjk->bk", "", "b"),
    "of vectors": ("bj,bj->b", "b", ""),
    "in front of both": ("ijb,bkj->bik", "b", ""),
    "outer": ("bi,bk->bik", "b", ""),
    "rows": ("bij,bjk->bik", "i", ""),
    "columns": ("bij,bjk->bik", "", "k"),
    "rows and columns of one": ("ij,jk->ik", "i", "k"),
    "rows, and a batch on the right": ("bij,bjk->bik", "i", "b"),
    "summed": ("bij,bjk->bik", "j", ""),
    "everything": ("bij,bjk->bik", "bij", "bjk"),
}
SIZES = {"a": 2, "b": 5, "c": 3, "i": 7, "j": 6, "k": 4}


def case(equation, left, right, sizes, kind):
    terms = equation.split("->")[0].split(",")
    operands, shapes = [], []
    for term, again in zip(terms, (left, right), strict=True):
        shapes.append([sizes[c] for c in term])
        operands.append(KINDS[kind](rng.normal(size=[1 if c in again else sizes[c] for c in term]).astype(np.float32)))
    return operands, shapes


def product(j, equation, shapes):
    return lambda *xs: j.numpy.einsum(equation, *(
        j.numpy.broadcast_to(x, s) for x, s in zip(xs, shapes, strict=True)))


@pytest.mark.parametrize("name", EQUATIONS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sizes", [SIZES, SIZES | {"b": 1, "j": 1}, SIZES | {"b": 0}, SIZES | {"j": 0}],
                         ids=["several", "one", "none", "nothing summed"])
def test_values(name, kind, sizes):
    equation, left, right = EQUATIONS[name]
    operands, shapes = case(equation, left, right, sizes, kind)
    expected = real.jit(product(real, equation, shapes))(*operands)
    ours = product(styrax, equation, shapes)
    for f in (styrax.jit(ours), ours):
        np.testing.assert_allclose(f(*operands), expected, 1e-5, 1e-5, strict=True)


@pytest.mark.parametrize("name", EQUATIONS)
def test_derivatives_of_a_batch(name):
    equation, left, right = EQUATIONS[name]
    operands, shapes = case(equation, left, right, SIZES, "float32")
    stacked = [np.stack([x, 2 * x, -x]) for x in operands]

    def slopes(j):
        f = product(j, equation, shapes)
        return j.jit(j.vmap(j.grad(lambda *xs: (f(*xs) ** 2).sum(), (0, 1))))(*stacked)

    for x, y in zip(slopes(styrax), slopes(real), strict=True):
        np.testing.assert_allclose(x, y, 1e-4, 1e-4, strict=True)


@pytest.mark.parametrize(("m", "k", "n"), [(96, 64, 40), (300, 256, 33)])
def test_large_and_in_a_loop(m, k, n):
    a, x = rng.normal(size=(m, k)).astype(np.float32) / k, rng.normal(size=(4, k, n)).astype(np.float32)

    def program(j):
        def step(c, _):
            return c + (j.numpy.broadcast_to(a, (4, m, k)) @ (x * c.mean()))[:, :k, :n].mean(), None

        return j.jit(lambda c: j.lax.scan(step, c, None, 3)[0])(np.ones(2, np.float32))

    np.testing.assert_allclose(program(styrax), program(real), 1e-5)


@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("right", [False, True])
def test_is_one_product(left, right):
    """What repeats is multiplied in one product, not in one for each member of the batch."""
    a, x = jnp.ones((1 if left else 8, 40, 64)), jnp.ones((1 if right else 8, 64, 32))

    def f(a, x):
        return jnp.broadcast_to(a, (8, 40, 64)) @ jnp.broadcast_to(x, (8, 64, 32))

    flops = styrax.jit(f).lower(a, x).compile().cost_analysis()["flops"]
    products = 1 if left and right else 8
    assert flops == pytest.approx(2 * 40 * 64 * 32 * products, rel=0.1)


@pytest.mark.parametrize("together", [False, True])
def test_elements_of_a_loop_are_not_one(together):
    """What a loop carries may be kept element by element, of which one is no other."""
    w = rng.normal(size=(2, 3, 3)).astype(np.float32)
    x = np.array([[1, 2, 3], [-1, 0.5, 2]], np.float32)

    def program(j):
        def run(w, x):
            return j.lax.scan(lambda c, _: (j.numpy.sin(c) @ w, j.numpy.sin(c).sum()), x, None, 3)

        return j.jit(j.vmap(run, (0 if together else None, 0)))(w if together else w[0], x)

    for a, b in zip(program(styrax), program(real), strict=True):
        np.testing.assert_allclose(a, b, 1e-4, 1e-5)
