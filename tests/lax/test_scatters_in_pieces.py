"""Many updates that meet in few places: pieces of them are combined apart, whatever the order."""

from __future__ import annotations

import jax as real
import ml_dtypes
import numpy as np
import pytest

import styrax
from styrax.cpu import runtime
from styrax.lax.indexing.scatter_lowering import APART, _apart

RNG = np.random.default_rng(7)
DTYPES = [np.float32, np.float16, ml_dtypes.bfloat16, np.int8, np.uint32, bool, np.complex64]
COUNTS = [4095, 4096, 5003, 70_001]
# Of complex numbers there is no least, of truth values no sum; products are never made in pieces.
CASES = [(operation, dtype, count) for operation in ("add", "subtract", "min", "max", "multiply") for dtype in DTYPES
         for count in (COUNTS if operation != "multiply" else COUNTS[:2])
         if np.dtype(dtype).kind not in {"min": "c", "max": "c"}.get(operation, "b")]


def arguments(count, dtype, places=40, window=()):
    """An array, some places of which are outside, and small whole numbers, whose sums are exact."""
    where = RNG.integers(-3, places + 3, count).astype(np.int32)
    x, new = RNG.integers(0, 3, (places, *window)).astype(dtype), RNG.integers(0, 2, (count, *window)).astype(dtype)
    return x, where, new


def both(f, *args):
    """What comes of it under JAX, and here: compiled and eager."""
    return real.jit(lambda *a: f(real, *a))(*args), (
        styrax.jit(lambda *a: f(styrax, *a))(*args), f(styrax, *map(styrax.numpy.asarray, args)))


def check(f, *args):
    wanted, results = both(f, *args)
    for found in results:
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(np.asarray(found), np.asarray(wanted))


@pytest.mark.parametrize(("operation", "dtype", "count"), CASES,
                         ids=lambda v: v if isinstance(v, str | int) else np.dtype(v).name)
def test_same_as_one_after_another(operation, dtype, count):
    short = np.dtype(dtype).itemsize < 4 and np.dtype(dtype).kind not in "iub"
    x, where, new = arguments(count, dtype, 700 if short else 40)  # (sums of few numbers are exact in those, too)
    for order in (where, np.sort(where)):
        check(lambda j, x, where, new: getattr(j.numpy.asarray(x).at[where], operation)(new), x, order, new)


@pytest.mark.parametrize("mode", ["drop", "clip", "promise_in_bounds"])
def test_modes(mode):
    x, where, new = arguments(9001, np.float32)
    where = np.clip(where, 0, 39) if mode == "promise_in_bounds" else where
    check(lambda j, x, where, new: j.numpy.asarray(x).at[where].add(new, mode=mode), x, where, new)


@pytest.mark.parametrize("window", [(1,), (3,), (16,), (2, 5)])
def test_windows(window):
    x, where, new = arguments(5001, np.float32, window=window)
    for operation in ("add", "max"):
        check(lambda j, x, where, new, op=operation: getattr(j.numpy.asarray(x).at[where], op)(new), x, where, new)


def test_two_dimensions_of_places():
    x = np.zeros((7, 5), np.float32)
    rows, columns = RNG.integers(0, 7, (300, 20)), RNG.integers(0, 5, (300, 20))
    new = RNG.integers(0, 5, (300, 20)).astype(np.float32)
    check(lambda j, x, r, c, new: j.numpy.asarray(x).at[r, c].add(new), x, rows, columns, new)
    check(lambda j, x, r, new: j.numpy.asarray(x).at[r].min(new[:, :, None]), x, rows, new)


def test_edge_values():
    x = np.array([-0.0, 0.0, np.nan, np.inf, -np.inf, 1.0], np.float32)
    where = np.arange(6000, dtype=np.int32) % 5  # nothing comes to the last
    values = RNG.choice(np.array([-0.0, 1, -1, 3], np.float32), 6000)
    for special in (None, np.nan, np.inf, -np.inf):
        new = values.copy()
        if special is not None:
            new[4321] = special
        for operation in ("add", "min", "max"):
            check(lambda j, x, where, new, op=operation: getattr(j.numpy.asarray(x).at[where], op)(new), x, where, new)
    nothing = np.full(6000, 100, np.int32)  # all of it outside
    _, results = both(lambda j, x, where, new: j.numpy.asarray(x).at[where].add(new), x, nothing, values)
    for found in results:
        np.testing.assert_array_equal(np.signbit(found), np.signbit(x))


def test_derivatives_in_a_loop():
    _, where, new = arguments(4500, np.float32)
    new = new + RNG.normal(size=new.shape).astype(np.float32)

    def loss(j, new, where):
        def step(total, weight):
            sums = j.ops.segment_sum(new * weight, where, 40)
            return total + j.numpy.sum(sums ** 2) + j.ops.segment_max(new, where, 40)[3], None

        return j.lax.scan(step, 0.0, j.numpy.arange(1.0, 4.0))[0]

    wanted = real.jit(real.vmap(real.grad(lambda n, w: loss(real, n, w)), (0, None)))(np.stack([new, new * 2]), where)
    found = styrax.jit(styrax.vmap(styrax.grad(lambda n, w: loss(styrax, n, w)), (0, None)))(
        np.stack([new, new * 2]), where)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-3)


def test_threads_and_wide_numbers():
    with styrax.enable_x64(True):
        where, new = RNG.integers(0, 30, 20_000), RNG.normal(size=20_000)
        f = styrax.jit(lambda w, n: styrax.ops.segment_sum(n, w, 30))
        before, found = runtime.num_threads(), []
        try:
            for threads in (1, 2, 3):
                runtime.set_num_threads(threads)
                found.append(np.asarray(f(where, new)))
        finally:
            runtime.set_num_threads(before)
        assert found[0].dtype == np.float64
        np.testing.assert_array_equal(found[0], found[1])
        np.testing.assert_array_equal(found[0], found[2])
        np.testing.assert_allclose(found[0], np.bincount(where, new, 30), rtol=1e-12)


@pytest.mark.parametrize("axes", [(0, 0, 0), (1, 1, 0), (0, 0, 1)])
@pytest.mark.parametrize("operation", ["add", "set", "max"])
@pytest.mark.parametrize(("members", "places", "window"), [(3, 30_000, ()), (5, 4000, (9,)), (2, 70_000, ())])
def test_members_of_a_batch_are_shared_among_threads(members, places, window, operation, axes):
    """Some of the updates are outside; those that replace have places of their own, in no order."""
    count = -(-APART // (members * max(1, *window, 1)))
    x, new = RNG.normal(size=(members, places, *window)), RNG.normal(size=(members, count, *window))
    x, new = x.astype(np.float32), new.astype(np.float32)
    where = RNG.integers(-places, places + 50, (members, count)).astype(np.int32)
    if operation == "set":
        where = np.stack([RNG.permutation(max(places, count))[:count] for _ in range(members)]).astype(np.int32)
    wanted = x.astype(np.float64)
    for out, w, n in zip(wanted, where, new, strict=True):
        inside = w < places
        if operation == "set":
            out[w[inside]] = n[inside]
        else:
            {"add": np.add, "max": np.maximum}[operation].at(out, w[inside], n[inside])
    args = [np.moveaxis(v, 0, axis) for v, axis in zip((x, where, new), axes, strict=True)]
    f = styrax.jit(styrax.vmap(lambda x, w, n: getattr(x.at[w], operation)(n), axes))
    before, found = runtime.num_threads(), []
    try:
        for threads in (1, 2, 3):
            runtime.set_num_threads(threads)
            found.append(np.asarray(f(*args)))
    finally:
        runtime.set_num_threads(before)
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])
    np.testing.assert_allclose(found[0], wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("shape", "dtype", "together"), [
    ((50,), np.float32, 4), ((1,), np.int8, 4), ((7, 5), np.complex64, 1), ((300, 3), np.float64, 1),
    ((128,), np.float32, 1)])
def test_pieces_of_threads_lie_apart(shape, dtype, together):
    """Not on the same lines of memory; those of single elements, whose places are random, on pages of their own."""
    rows, *rest = _apart(shape, np.dtype(dtype), together)
    nbytes = together * rows * int(np.prod(rest)) * np.dtype(dtype).itemsize
    assert rows >= shape[0] and tuple(rest) == shape[1:]
    assert nbytes % (4096 if together > 1 else 128) == 0
