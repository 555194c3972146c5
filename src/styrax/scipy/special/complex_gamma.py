"""The logarithm of Γ in the complex plane."""

from __future__ import annotations

import math

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.numpy.broadcasting import choose_elements
from styrax.numpy.float_tests import signbit

_STEPS = 8  # of the recurrence Γ(z + 1) = z Γ(z), to where the series below has all digits
# B_2k / (2k (2k - 1)): the coefficients of Stirling's series, DLMF 5.11.1
_SERIES = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400)


def _right_half(z: Array) -> Array:
    """log Γ(z) for Re z ≥ 1/2: Stirling's series farther right, less the logarithms of the steps to there."""
    steps = sum((lax.log(z + k) for k in range(1, _STEPS)), lax.log(z))
    z = z + _STEPS
    inverse = 1 / z
    square = inverse * inverse
    series = lax.full_like(z, _SERIES[-1])
    for coefficient in _SERIES[-2::-1]:
        series = series * square + coefficient
    return (z - 0.5) * lax.log(z) - z + 0.5 * math.log(2 * math.pi) + series * inverse - steps


def loggamma_of_complex(z: Array) -> Array:
    """The branch of log Γ(z) that is real for positive z, and continuous but for a cut along the negative axis.

    NaN at the poles, and for what is not finite.

    Args:
      z: complex numbers.

    Returns:
      an array of the shape and dtype of `z`.

    References: DLMF 5.11.1 (the series), 5.5.1 (the recurrence), 5.5.3 (the reflection).
    """
    x, y = lax.real(z), lax.imag(z)
    left = lax.lt(x, lax.full_like(x, 0.5))
    pole = left & lax.eq(y, lax.full_like(y, 0)) & lax.eq(x, lax.round(x))
    safe = choose_elements(pole, 0.25, z)
    x = lax.real(safe)
    value = _right_half(choose_elements(left, 1 - safe, safe))
    # In the upper half plane log sin(πz) = -iπz + log(i/2) + log(1 - e^(2πiz)), without a jump.
    height = lax.abs(y)
    turns = lax.complex(-2 * np.pi * height, 2 * np.pi * (x - lax.round(x)))
    log_sine = lax.complex(np.pi * height - math.log(2), np.pi * (0.5 - x)) + lax.log(-lax.expm1(turns))
    reflection = math.log(math.pi) - log_sine
    reflection = choose_elements(signbit(y), lax.conj(reflection), reflection)
    finite = lax.is_finite(x) & lax.is_finite(y)
    return choose_elements(finite & ~pole, choose_elements(left, reflection - value, value), complex(np.nan, np.nan))
