"""Set operations of a given size on vectors that hold NaN, under `jit`: as JAX's."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

import styrax

NAN = np.nan
SOME, ALL, OTHER = (np.array(v, np.float32) for v in (
    [NAN, 1, 2, NAN, 1], [NAN, NAN, NAN, NAN, NAN], [2, 2, 5, NAN, 3]))
PAIRS = {"some all": (SOME, ALL), "all some": (ALL, SOME), "some other": (SOME, OTHER), "all all": (ALL, ALL)}


def assert_same(program: Any) -> None:
    ours, theirs = (m.tree.leaves(m.jit(lambda m=m: program(m))()) for m in (styrax, jax))
    for a, b in zip(ours, theirs, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("name", ["setdiff1d", "setxor1d", "union1d", "intersect1d"])
def test_operations(name: str, pair: str) -> None:
    def program(m: Any) -> Any:
        a, b = map(m.numpy.asarray, PAIRS[pair])
        f = getattr(m.numpy, name)
        distinct = [f(a, b, assume_unique=True, size=7, fill_value=9)] if name.startswith("set") else []
        return [[f(a, b, size=size, fill_value=fill) for size in (2, 7) for fill in (None, 9)], distinct]

    assert_same(program)


@pytest.mark.parametrize("equal_nan", [True, False])
def test_unique(equal_nan: bool) -> None:
    assert_same(lambda m: [m.numpy.unique(m.numpy.asarray(x), True, True, True, size=size, fill_value=fill,
                                          equal_nan=equal_nan)
                           for x in (SOME, ALL) for size in (2, 7) for fill in (None, 9)])


@pytest.mark.parametrize("shape, axis, fill", [
    ((3, 4), 1, [1, 2, 3]), ((3, 4), 0, [1, 2, 3, 4]), ((2, 3, 2), 1, [[0, 1], [2, 3]]), ((2, 3, 2), -1, [5])])
def test_slices_filled_up(shape: tuple[int, ...], axis: int, fill: Any) -> None:
    numbers = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    assert_same(lambda m: m.numpy.unique(m.numpy.asarray(numbers), axis=axis, size=6, fill_value=np.array(fill)))
