"""Joined arrays that are computed where they go, and loops cut between their pieces: the same as JAX's."""

from __future__ import annotations

import jax as real
import numpy as np
import pytest

import styrax
from styrax.compile.pipeline import compile_to_loops

rng = np.random.default_rng(0)
JOINS = {
    "two": lambda j, x, y, axis: j.numpy.concatenate([x * y, y + 1], axis),
    "three": lambda j, x, y, axis: j.numpy.concatenate([x * y, x - y, y * y + x], axis),
    "constant": lambda j, x, y, axis: j.numpy.concatenate([x * y, j.numpy.ones_like(x), y], axis),
    "parts": lambda j, x, y, axis: j.numpy.concatenate([(x * y)[:2], x[1:3] * 2], axis),
    "rotated": lambda j, x, y, axis: j.numpy.concatenate(
        [a * c - b * d for (a, b), (c, d) in ((j.numpy.split(x, 2, axis), j.numpy.split(y, 2, axis)),
                                              (j.numpy.split(y, 2, axis), j.numpy.split(x, 2, axis)))], axis),
    "slopes": lambda j, x, y, axis: j.numpy.gradient(x * y, axis=axis),
}
USES = {
    "alone": lambda j, z, axis: z,
    "rolled": lambda j, z, axis: j.numpy.roll(z, 3, axis) * 2,
    "flipped": lambda j, z, axis: j.numpy.flip(z, axis) - 1,
    "summed": lambda j, z, axis: z.sum(axis),
    "greatest": lambda j, z, axis: (z.max(axis), z.argmax(axis)),
    "in all": lambda j, z, axis: (z * z).sum(),
    "softmax": lambda j, z, axis: j.nn.softmax(z, axis),
    "added up": lambda j, z, axis: j.numpy.cumsum(z, axis),
    "sorted": lambda j, z, axis: j.numpy.sort(z, axis),
    "shifted difference": lambda j, z, axis: ((j.numpy.roll(z, 1, axis) - z) ** 2).sum(),
    "padded": lambda j, z, axis: j.numpy.pad(z, 1).sum(axis),
}
SHAPES = [(6, 40, 18), (4, 16, 300), (48, 2, 2)]


def program(join, use, axis):
    return lambda j: lambda x, y: USES[use](j, JOINS[join](j, x, y, axis), axis)


def same(f, *args, tolerance=2e-5):
    for x, y in zip(*(j.tree.leaves(f(j)(*args)) for j in (styrax, real)), strict=True):
        assert x.dtype == y.dtype and x.shape == y.shape
        wide = np.complex128 if np.iscomplexobj(y) else np.float64
        x, y = np.asarray(x, wide), np.asarray(y, wide)
        largest = np.abs(y[np.isfinite(y)]).max(initial=1.0)  # sums round by what is added up
        np.testing.assert_allclose(x, y, tolerance, tolerance * largest)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("join", JOINS)
def test_values(join, use, axis):
    f = program(join, use, axis)
    for shape in SHAPES:
        x, y = rng.normal(size=(2, *shape)).astype(np.float32)
        same(lambda j: j.jit(f(j)), x, y)
    same(lambda j: j.jit(j.vmap(f(j), (0, None))), np.stack([x, -x]), y)
    if use not in ("greatest", "sorted"):
        same(lambda j: j.jit(j.grad(lambda x, y: f(j)(x, y).sum())), x, y, tolerance=2e-4)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "complex64", "int8", "uint32", "bool"])
@pytest.mark.parametrize("join", ["two", "constant", "parts"])
def test_dtypes(join, dtype):
    x, y = (np.asarray(real.numpy.asarray(rng.integers(0, 5, size=(6, 40, 18))).astype(dtype)) for _ in range(2))
    for axis in range(3):
        same(lambda j, axis=axis: j.jit(program(join, "alone", axis)(j)), x, y)
        same(lambda j, axis=axis: j.jit(program(join, "summed", axis)(j)), x, y)


def test_odd_numbers_and_loops():
    x, y = rng.normal(size=(2, 40, 40)).astype(np.float32)
    x[3, [5, 20, 39]] = np.nan, np.inf, -np.inf
    for axis in (0, 1):
        for use in ("alone", "summed", "softmax", "greatest"):
            same(lambda j, u=use, a=axis: j.jit(program("two", u, a)(j)), x, y)

        def step(j, axis=axis):
            turn = lambda c: j.numpy.concatenate([c.swapaxes(0, axis)[20:] * 0.5, c.swapaxes(0, axis)[:20] + 0.1], 0)
            return j.jit(lambda c: j.lax.fori_loop(0, 5, lambda i, c: turn(c).swapaxes(0, axis), c))

        same(step, y)


def test_empty_and_single_pieces():
    for n in (0, 1, 15, 16, 17):
        x, y = rng.normal(size=(2, 5, n)).astype(np.float32)
        same(lambda j: j.jit(program("three", "alone", 1)(j)), x, y)
        same(lambda j: j.jit(program("three", "summed", 0)(j)), x, y)


def test_pieces_are_not_stored_first():
    x = np.ones((1000, 32), np.float32)
    for axis in (0, 1):
        joined = styrax.make_jaxpr(lambda x, y, a=axis: JOINS["two"](styrax, x, y, a))(x, x)
        assert compile_to_loops(joined, "f").placement.workspace == 0
