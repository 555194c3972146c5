"""Windows of signal processing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.programs.named import named
from styrax.core.tracing.source import api_boundary
from styrax.core.tracing.trace import concrete_or_error
from styrax.core.types.typing import ArrayLike

from .binary import add, divide, multiply, power, subtract
from .conversion import asarray
from .creation import ones
from .promotion import default_float
from .ufuncs import i0


def _points(M: Any, name: str) -> tuple[int, Any]:
    """The length of a window and its points 0 … M - 1."""
    m = concrete_or_error(int, M, f"M argument of jnp.{name}")
    return m, lax.iota(default_float(), max(m, 0))


class Window(Protocol):
    """A window of M points."""

    def __call__(self, M: int) -> Array: ...


def _window(name: str, doc: str, values: Callable[[int, Any], Any]) -> Window:
    @api_boundary
    def function(M: int) -> Array:
        m, n = _points(M, name)
        return ones(max(m, 0), default_float()) if m <= 1 else values(m, n)

    return named(function, name, doc)


bartlett = _window("bartlett", "The triangular window of M points, 0 at its ends.", lambda m, n: subtract(
    1, divide(lax.abs(subtract(add(multiply(2, n), 1), m)), m - 1)))
hanning = _window("hanning", "Hann's window of M points: a raised cosine, 0 at its ends.", lambda m, n: multiply(
    0.5, subtract(1, lax.cos(divide(multiply(2 * np.pi, n), m - 1)))))
hamming = _window("hamming", "Hamming's window of M points.", lambda m, n: subtract(
    0.54, multiply(0.46, lax.cos(divide(multiply(2 * np.pi, n), m - 1)))))
blackman = _window("blackman", "Blackman's window of M points.", lambda m, n: add(
    subtract(0.42, multiply(0.5, lax.cos(divide(multiply(2 * np.pi, n), m - 1)))),
    multiply(0.08, lax.cos(divide(multiply(4 * np.pi, n), m - 1)))))


@api_boundary
def kaiser(M: int, beta: ArrayLike) -> Array:
    """Kaiser's window of M points with shape parameter `beta`."""
    m, n = _points(M, "kaiser")
    if m <= 1:
        return ones(max(m, 0), default_float())
    alpha = 0.5 * (m - 1)
    arc = lax.sqrt(subtract(1, power(divide(subtract(n, alpha), alpha), 2)))
    return divide(i0(multiply(beta, arc)), i0(asarray(beta)))
