"""Indices that are computed from guarded indices: nothing outside of a buffer is read, and what is read is right."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import jax
import numpy as np
import pytest

import styrax
from styrax.core.settings.config import states

Step = Callable[[Any, Any], Any]


def _pad(rng: Random) -> Step:
    config = [(rng.randint(-1, 3), rng.randint(-1, 3), rng.randint(0, 2)) for _ in range(2)]

    def step(m: Any, x: Any) -> Any:
        return m.lax.pad(x, m.numpy.zeros((), x.dtype), config) if x.size else x

    return step


def _joined(rng: Random) -> Step:
    axis, other = rng.randint(0, 1), rng.randint(0, 1)

    def step(m: Any, x: Any) -> Any:
        part = x[:1] if other else x[:, ::-1]
        return m.numpy.concatenate([x, part if part.shape[1 - axis] == x.shape[1 - axis] else x, x], axis)

    return step


def _taken(rng: Random) -> Step:
    axis, size = rng.randint(0, 1), rng.randint(1, 5)
    index = np.array([rng.choice([rng.randint(-9, 9), rng.randint(-99, 99)]) for _ in range(size)], np.int32)
    mode = rng.choice(["fill", "clip", "wrap"])

    def step(m: Any, x: Any) -> Any:
        return m.numpy.take(x, m.numpy.asarray(index), axis=axis, mode=mode, fill_value=1) if x.size else x

    return step


def _by_positions(rng: Random) -> Step:
    """Indices computed from what a padding lets through of positions."""
    shift = rng.randint(-2, 3)

    def step(m: Any, x: Any) -> Any:
        positions = m.lax.broadcasted_iota("int32", x.shape, 1)
        places = m.lax.pad(positions, np.int32(7), [(0, 0, 0), (1, -1, 0)]) * 2 - shift if x.shape[1] else positions
        chosen = m.numpy.where((places > 2) & (positions < 3), places, positions)
        return m.numpy.take_along_axis(x, chosen, axis=1, mode="fill", fill_value=0)

    return step


def _sliced(rng: Random) -> Step:
    start, stride = rng.randint(0, 2), rng.choice([1, 2, -1])
    return lambda m, x: x[::stride, start:]


KINDS = (_pad, _joined, _taken, _by_positions, _sliced)


@pytest.mark.parametrize("seed", range(60))
def test_compositions_of_guarded_accesses_stay_inside_their_buffers(seed: int) -> None:
    rng = Random(seed)
    steps = [rng.choice(KINDS)(rng) for _ in range(rng.randint(2, 5))]
    dtype = rng.choice([np.float32, np.int32, np.bool_, np.complex64])
    x = (np.arange(rng.randint(1, 4) * 5).reshape(-1, 5) % 7).astype(dtype)

    def run(m: Any) -> Any:
        def program(x: Any) -> Any:
            for step in steps:
                x = step(m, x)
            return x

        return np.asarray(m.jit(program)(x))

    with states["styrax_debug"]("bounds,verify"):
        checked = run(styrax)
    expected = run(jax)
    np.testing.assert_array_equal(checked, expected)
    np.testing.assert_array_equal(run(styrax), expected)


def test_a_condition_that_a_guard_simplified_holds_only_where_the_guard_does() -> None:
    """Rows of a padded array by numbers beyond its end: inside it, the padding's upper bound needs no test."""
    x = np.array([[True, False], [True, True], [False, False]])
    places = np.array([[21], [40], [1]], np.int32)

    def program(m: Any) -> Any:
        def f(x: Any, places: Any) -> Any:
            wide = m.lax.pad(x[:, :1], np.False_, [(0, 0, 0), (1, 0, 1)])
            return m.numpy.take_along_axis(wide, places, axis=1, mode="fill")

        return np.asarray(m.jit(f)(x, places))

    with states["styrax_debug"]("bounds"):
        np.testing.assert_array_equal(program(styrax), program(jax))
