"""Windows of signal processing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
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


def _window(name: str, M: Any, values: Callable[[int, Any], Array]) -> Array:
    m, n = _points(M, name)
    return ones(m, default_float()) if m <= 1 else values(m, n)


@api_boundary
def bartlett(M: int) -> Array:
    """The triangular window 1 - |2n - (M-1)| / (M-1) for n = 0 … M - 1, 0 at its ends.

    Args:
      M: the number of points.

    Returns:
      a vector of M floats of the default dtype; [1] for one point.

    Raises:
      TypeError: for a negative M.
    """
    return _window("bartlett", M, lambda m, n: subtract(
        1, divide(lax.abs(subtract(add(multiply(2, n), 1), m)), m - 1)))


@api_boundary
def hanning(M: int) -> Array:
    """Hann's window 0.5 - 0.5·cos(2πn/(M-1)) for n = 0 … M - 1, 0 at its ends.

    Args:
      M: the number of points.

    Returns:
      a vector of M floats of the default dtype; [1] for one point.

    Raises:
      TypeError: for a negative M.
    """
    return _window("hanning", M, lambda m, n: multiply(
        0.5, subtract(1, lax.cos(divide(multiply(2 * np.pi, n), m - 1)))))


@api_boundary
def hamming(M: int) -> Array:
    """Hamming's window 0.54 - 0.46·cos(2πn/(M-1)) for n = 0 … M - 1.

    Args:
      M: the number of points.

    Returns:
      a vector of M floats of the default dtype; [1] for one point.

    Raises:
      TypeError: for a negative M.
    """
    return _window("hamming", M, lambda m, n: subtract(
        0.54, multiply(0.46, lax.cos(divide(multiply(2 * np.pi, n), m - 1)))))


@api_boundary
def blackman(M: int) -> Array:
    """Blackman's window 0.42 - 0.5·cos(2πn/(M-1)) + 0.08·cos(4πn/(M-1)) for n = 0 … M - 1, 0 at its ends.

    Args:
      M: the number of points.

    Returns:
      a vector of M floats of the default dtype; [1] for one point.

    Raises:
      TypeError: for a negative M.
    """
    return _window("blackman", M, lambda m, n: add(
        subtract(0.42, multiply(0.5, lax.cos(divide(multiply(2 * np.pi, n), m - 1)))),
        multiply(0.08, lax.cos(divide(multiply(4 * np.pi, n), m - 1)))))


@api_boundary
def kaiser(M: int, beta: ArrayLike) -> Array:
    """Kaiser's window I0(β·√(1 - (2n/(M-1) - 1)²)) / I0(β) for n = 0 … M - 1.

    Args:
      M: the number of points.
      beta: the shape parameter β: 0 gives a rectangle, larger ones a narrower peak.

    Returns:
      a vector of M floats of the default dtype; [1] for one point.

    Raises:
      TypeError: for a negative M.
    """
    m, n = _points(M, "kaiser")
    if m <= 1:
        return ones(m, default_float())
    alpha = 0.5 * (m - 1)
    arc = lax.sqrt(subtract(1, power(divide(subtract(n, alpha), alpha), 2)))
    return divide(i0(multiply(beta, arc)), i0(asarray(beta)))
