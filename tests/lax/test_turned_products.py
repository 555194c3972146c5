"""Products that are wanted turned: values, of all kinds of operands, where what is turned is used in several ways."""

from __future__ import annotations

import jax as real
import numpy as np
import pytest

import styrax

rng = np.random.default_rng(0)


def array(*shape, dtype=np.float32):
    return rng.normal(size=shape).astype(dtype)


def einsum(text, **options):
    return lambda j, a, b: j.numpy.einsum(text, a, b, **options)


def both_ways(j, a, b):
    c = a @ b
    return c.T, c + 1


def network(j, x, *ws):
    def loss(ws):
        y = x
        for w in ws:
            y = j.numpy.tanh(y @ w)
        return (y**2).sum()

    return j.tree.map(lambda w, g: w - 0.1 * g, list(ws), j.grad(loss)(list(ws)))


def many(j, xs, w):
    def loss(w):
        return sum(j.numpy.tanh(xs[t] @ w + w[0]).sum() for t in range(len(xs)))

    return j.grad(loss)(w)


def scanned(j, xs, w):
    def loss(w):
        return j.lax.scan(lambda c, x: (j.numpy.tanh(c @ w + x), None), xs[0], xs)[0].sum()

    return j.grad(loss)(w)


PROGRAMS = {
    "turned": (lambda j, a, b: (a @ b).T, array(7, 5), array(5, 9)),
    "batched": (lambda j, a, b: (a @ b).swapaxes(1, 2), array(3, 7, 5), array(3, 5, 9)),
    "batch moved": (lambda j, a, b: (a @ b).transpose(1, 2, 0), array(3, 7, 5), array(3, 5, 9)),
    "several free": (einsum("aib,ic->cab"), array(4, 5, 6), array(5, 3)),
    "several free, mixed": (einsum("aib,icd->bdac"), array(4, 5, 6), array(5, 3, 2)),
    "several summed, small left": (einsum("krj,ijk->ri"), array(30, 5, 25), array(20, 25, 30)),
    "several summed, small right": (einsum("ijk,krj->ir"), array(20, 25, 30), array(30, 5, 25)),
    "several summed, many columns": (einsum("ijk,kj->i"), array(40, 6, 7), array(7, 6)),
    "three summed": (einsum("ajkl,lkjb->ba"), array(12, 4, 5, 6), array(6, 5, 4, 33)),
    "several summed, one element": (einsum("ijk,krj->ir"), array(20, 1, 3), array(3, 5, 1)),
    "whole numbers": (lambda j, a, b: (a @ b).T, array(7, 5).astype(np.int32), array(5, 9).astype(np.int32)),
    "complex": (lambda j, a, b: (a @ b).T, array(7, 5) + 1j * array(7, 5), array(5, 9) - 2j * array(5, 9)),
    "halves": (lambda j, a, b: (a.astype(j.numpy.float16) @ b.astype(j.numpy.float16)).T.astype(np.float32),
               np.round(array(7, 5) * 4), np.round(array(5, 9) * 4)),
    "two types": (lambda j, a, b: j.lax.dot_general(
        a.astype(j.numpy.bfloat16), b, (((1,), (0,)), ((), ())), precision=("highest", "default"),
        preferred_element_type=np.float32).T, array(7, 5), array(5, 9)),
    "one element": (lambda j, a, b: (a @ b).T, array(1, 1), array(1, 1)),
    "empty": (lambda j, a, b: (a @ b).T, array(0, 5), array(5, 9)),
    "nothing summed": (lambda j, a, b: (a @ b).T, array(7, 0), array(0, 9)),
    "NaN": (lambda j, a, b: (a @ b).T, np.array([[1, np.nan], [np.inf, 2]], np.float32), array(2, 3)),
    "both ways": (both_ways, array(7, 5), array(5, 9)),
    "large": (lambda j, a, b: (a @ b).T * 2, array(130, 300), array(300, 170)),
    "network": (network, array(8, 20), array(20, 30), array(30, 30), array(30, 4)),
    "same weights again": (many, array(12, 16, 40), array(40, 64)),
    "scanned": (scanned, array(12, 16, 40), array(40, 40) / 10),
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("mapped", [False, True])
def test_values(name, mapped):
    f, *args = PROGRAMS[name]
    results = []
    for j in (styrax, real):
        g = lambda *a, j=j: f(j, *a)
        results.append(j.jit(j.vmap(g) if mapped else g)(*(np.stack([a, a * 2]) if mapped else a for a in args)))
    for x, y in zip(*map(real.tree.leaves, results), strict=True):
        np.testing.assert_allclose(x, y, 1e-4, 1e-4, strict=True)
