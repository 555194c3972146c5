"""Many arrays joined: each is written once, whoever reads the whole."""

from __future__ import annotations

import jax as real
import numpy as np
import pytest

import styrax
from styrax.compile.pipeline import compile_to_loops

RNG = np.random.default_rng(0)
COUNTS = [1, 8, 9, 16, 17, 40]
SHAPES = {"vectors": (5,), "scalars": (), "rows": (3, 4), "nothing": (0,), "one": (1, 1)}
READERS = {
    "as it is": lambda j, x: x,
    "elementwise": lambda j, x: j.numpy.abs(x) + x,
    "sum": lambda j, x: j.numpy.sum(x),
    "along the first": lambda j, x: j.numpy.sum(x, 0),
    "along the last": lambda j, x: j.numpy.cumsum(x, -1),
    "an element": lambda j, x: x.ravel()[-1:],
    "turned": lambda j, x: x.T,
}


def pieces(count, shape, dtype):
    values = RNG.integers(0, 2 if dtype is bool else 100, (count, *shape)).astype(dtype)
    return list(values * (1 + 2j) if np.dtype(dtype).kind == "c" else values)


def check(f, xs):
    wanted = real.jit(lambda xs: f(real, xs))(xs)
    for found in (styrax.jit(lambda xs: f(styrax, xs))(xs), f(styrax, [styrax.numpy.asarray(x) for x in xs])):
        assert found.shape == wanted.shape and found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-7)  # sines, summed in any order


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("join", ["stack", "concatenate"])
def test_axes(join, shape, count):
    xs = pieces(count, SHAPES[shape], np.float32)
    for axis in range(len(SHAPES[shape]) + (join == "stack")):
        check(lambda j, xs, axis=axis: getattr(j.numpy, join)(xs, axis) * 2, xs)


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint32, np.float16, np.complex64])
def test_dtypes(dtype):
    for axis in (0, 1):
        check(lambda j, xs, axis=axis: j.numpy.stack(xs, axis), pieces(20, (7,), dtype))
    check(lambda j, xs: j.numpy.concatenate(xs), pieces(20, (7,), dtype))


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("axis", [0, 1])
def test_readers(axis, reader):
    xs = pieces(20, (6, 3), np.float32)
    for join in ("stack", "concatenate"):
        check(lambda j, xs, join=join: READERS[reader](j, getattr(j.numpy, join)(xs, axis)), xs)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("join", ["stack", "concatenate"])
def test_transformations(join, axis):
    """Pieces of several sizes and computed ones, also in loops."""
    def joined(j, xs):
        return getattr(j.numpy, join)([j.numpy.sin(x) for x in xs], axis)

    def weighted(j, xs):
        whole = joined(j, xs)
        return j.numpy.sum(whole * j.numpy.arange(whole.size).reshape(whole.shape))

    def looped(j, x):
        return j.lax.scan(lambda c, _: (joined(j, [c + k for k in range(20)]).sum(0)[: c.shape[0]] * 0.01, c), x, None,
                          length=3)[0]

    xs = pieces(20, (4, 4), np.float32)
    check(lambda j, xs: j.numpy.stack(j.grad(lambda xs: weighted(j, xs))(xs)), xs)
    check(lambda j, xs: j.vmap(lambda *xs: joined(j, xs), in_axes=(0, None) * 10)(
        *(j.numpy.stack([x] * 3) if k % 2 == 0 else x for k, x in enumerate(xs))), xs)
    check(lambda j, xs: j.jvp(lambda xs: joined(j, xs), (xs,), (xs,))[1], xs)
    if join == "stack":
        check(lambda j, xs: looped(j, xs[0]), xs[:1])


def test_sizes_differ():
    xs = [np.arange(k, dtype=np.float32) for k in range(12)]
    check(lambda j, xs: j.numpy.concatenate(xs).sum(), xs)
    check(lambda j, xs: j.numpy.concatenate(xs)[::-1] + 1, xs)


@pytest.mark.parametrize("join", ["stack", "concatenate"])
def test_work_is_linear(join):
    """What each element costs does not depend on how many pieces there are."""
    def work(count):
        f = styrax.make_jaxpr(lambda xs: (getattr(styrax.numpy, join)(xs) * 2).sum())
        return compile_to_loops(f([np.ones(100, np.float32)] * count), "f").work

    assert work(300) < 300 / 30 * 1.5 * work(30)


@pytest.mark.parametrize("axis", [0, 1])
def test_pieces_in_common(axis):
    """Two wholes that begin alike are two, and are read while another is written."""
    def f(j, xs):
        a, b, c = (j.numpy.sin(x) for x in xs)
        first, second = j.numpy.stack([a, b], axis), j.numpy.stack([a, c], axis)
        third = j.numpy.stack([a + 1, second.sum(axis), j.numpy.cumsum(b)])
        return j.numpy.concatenate([v.ravel() for v in (
            first, second, first + second[::-1], third, j.numpy.cumsum(third, 0), first.sum(axis), second.T)])

    check(f, pieces(3, (30,), np.float32))


def test_systems_of_equations():
    """Right-hand sides that stack their components, in the steps of a solver, of one state and of many."""
    def right(j, y):
        a, b, c = y
        return j.numpy.stack([10 * (b - a), a * (28 - c) - b, j.numpy.where(a > 0, a * b - c, c)])

    def solved(j, y):
        def step(y, _):
            k1 = right(j, y)
            k2 = right(j, y + 0.005 * k1)
            y = y + 0.01 * (k1 / 3 + k2 * 2 / 3)
            return y, y[0]

        return j.numpy.concatenate([x.ravel() for x in j.lax.scan(step, y, None, length=5)])

    y = np.array([1.0, 2.0, 3.0], np.float32)
    for shape in ((), (1,), (40,), (3, 20)):
        check(lambda j, xs: solved(j, xs[0]), [np.broadcast_to(y.reshape(3, *(1 for _ in shape)), (3, *shape)).copy()])
    check(lambda j, xs: j.vmap(lambda y: solved(j, y))(xs[0]), [np.broadcast_to(y, (17, 3)).copy()])
    check(lambda j, xs: j.grad(lambda y: solved(j, y).sum())(xs[0]), [y])
