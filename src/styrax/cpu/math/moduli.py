"""log_modulus, log1p_modulus: the logarithm of |x + iy| and of |1 + x + iy|, the real parts of complex logarithms.

Where the modulus is close to 1, its square less 1 cancels: squares and sums are taken in two parts each.
"""
from __future__ import annotations

from .block import Block, Register
from .exponential import log_sum

# Where the greater part is above the first or below the second, both are scaled by 2**∓third: squares are numbers.
RANGE = ((2.0**60, 2.0**-50, 100), (2.0**500, 2.0**-450, 600))


def log_modulus(b: Block, x: Register, y: Register) -> Register:
    x, y, moved = scaled(b, x, y)
    total, rest = sum_of_squares(b, x, y)
    return half_log(b, total, rest, moved)


def log1p_modulus(b: Block, x: Register, y: Register) -> Register:
    # (1 + x)**2 + y**2 = 1 + (2x + x**2 + y**2); elsewhere the rounding of 1 + x does not matter, or there is none
    close = (b.abs(x) < 0.5) & (b.abs(y) < 2.0)
    away, away_y, moved = scaled(b, x + 1.0, y)
    total, rest = sum_of_squares(b, b.select(close, x, away), b.select(close, y, away_y))
    total, more = b.two_sum(total, b.select(close, x + x, 0.0))
    rest = rest + more
    whole, more = b.two_sum(total, b.select(close, b.constant(1.0), 0.0))
    return half_log(b, whole, rest + more, b.select(close, 0.0, moved))


def scaled(b: Block, x: Register, y: Register) -> tuple[Register, Register, Register]:
    """x and y by a power of two that keeps their squares within range, and the exponent of its inverse's square."""
    above, below, shift = b.pick(*RANGE)
    big = b.at_least(b.abs(x), b.abs(y))
    huge, tiny = big > above, b.compare("lt", big, b.constant(below))
    factor = b.select(huge, b.constant(2.0**-shift), b.select(tiny, b.constant(2.0**shift), 1.0))
    moved = b.select(huge, b.constant(2.0 * shift), b.select(tiny, b.constant(-2.0 * shift), 0.0))
    return x * factor, y * factor, moved


def sum_of_squares(b: Block, x: Register, y: Register) -> tuple[Register, Register]:
    """x**2 + y**2 and what it lacks, which is small beside it."""
    first, first_rest = b.two_product(x, x)
    second, second_rest = b.two_product(y, y)
    total, rest = b.two_sum(first, second)
    return total, rest + (first_rest + second_rest)


def half_log(b: Block, total: Register, rest: Register, moved: Register) -> Register:
    """log((total + rest) * 2**moved) / 2; the rest counts where the total is between 3/8 and 3/2."""
    m, e = b.split(total)
    below = b.eq(e, -1.0)
    known = b.select(below, rest + rest, b.select(b.eq(e, 0.0), rest, 0.0))
    return log_sum(b, (m - 1.0) + known, e + moved) * 0.5


FUNCTIONS = {"log_modulus": log_modulus, "log1p_modulus": log1p_modulus}
