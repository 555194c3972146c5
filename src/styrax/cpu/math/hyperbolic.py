"""tanh, sinh, cosh and their inverses."""
from __future__ import annotations

from .block import Block, Register
from .exponential import expm1_of_remainder, log1p_split, log_sum, opposite, reduce

# sinh(r) = r + r**3 * row(r**2) and cosh(r) = 1 + r**2 * row(r**2), |r| <= log(2)/2
SINH_ROW = (
    (0.16666667, 0.008333175, 0.00019974084),
    (
        0.16666666666666666, 0.008333333333334428, 0.00019841269837066105, 2.7557326272619102e-06,
        2.5046734795650265e-08, 1.759414173096656e-10,
    ),
)  # fmt: skip
COSH_ROW = (
    (0.5, 0.04166646, 0.0013935452),
    (
        0.5, 0.041666666666666685, 0.0013888888888873264, 2.480158734928001e-05, 2.755725172139366e-07,
        2.0921809542155523e-09,
    ),
)  # fmt: skip


def tanh(b: Block, x: Register) -> Register:
    # With 2|x| = n*log(2) + r, c = 2**-n and p = e**r - 1, tanh is N/D = ((1 - c) + p) / ((1 + c) + p).
    # Less rounding than in that quotient is in 1 - 2c/D where the result is above 1/2, and in h - h*N/D,
    # h = N/(2c), below.
    y = b.abs(x)
    _, n_bits, r = reduce(b, b.at_most(y + y, b.pick(19.0, 39.0)))
    p = expm1_of_remainder(b, r)
    c = b.power_of_two(opposite(b, n_bits))
    small = y < 0.55
    numerator = p + (1.0 - c)
    half = numerator * b.power_of_two(n_bits - 1)
    quotient = b.select(small, numerator, c * 2.0) / (p + (c + 1.0))
    one = b.select(small, half, 1.0)
    return b.copysign(b.fma(-one, quotient, one), x)


def sinh_and_cosh_terms(b: Block, y: Register):
    """For y = n*log(2) + r >= 0: 4**-n, cosh(r) - 1, sinh(r), and n - 1 as `scale` wants it."""
    n, n_bits, r = reduce(b, b.at_most(y, b.pick(90.0, 711.0)))
    c = b.power_of_two(b.bits(b.fma(b.at_most(n, 40.0), -2.0, b.pick(1.5 * 2.0**23, 1.5 * 2.0**52))))
    square = r * r
    cosh1 = square * b.poly(square, b.pick(*COSH_ROW))
    sinh = b.fma(r * square, b.poly(square, b.pick(*SINH_ROW)), r)
    return c, cosh1, sinh, (n - 1.0, n_bits - 1)


def sinh(b: Block, x: Register) -> Register:
    # 2**(n-1) * ((1 - 4**-n)*cosh(r) + (1 + 4**-n)*sinh(r)); with n = 0 this is sinh(r) alone.
    c, cosh1, sinh, exponent = sinh_and_cosh_terms(b, b.abs(x))
    minus = 1.0 - c
    return b.copysign(b.scale(minus + b.fma(minus, cosh1, (c + 1.0) * sinh), *exponent), x)


def cosh(b: Block, x: Register) -> Register:
    c, cosh1, sinh, exponent = sinh_and_cosh_terms(b, b.abs(x))
    plus = c + 1.0
    return b.scale(plus + b.fma(plus, cosh1, (1.0 - c) * sinh), *exponent)


def asinh(b: Block, x: Register) -> Register:
    # log(x + sqrt(x**2 + 1)) = log1p(x + x**2/(1 + sqrt(x**2 + 1))); log(2*x) where 1 does not count.
    y = b.abs(x)
    huge = y > b.pick(2.0**30, 2.0**60)
    square = y * y
    inner = y + square / (b.sqrt(square + 1.0) + 1.0)
    f, e = log1p_split(b, b.select(huge, y, inner))
    return b.copysign(log_sum(b, f, e + b.select(huge, b.constant(1.0), 0.0)), x)


def acosh(b: Block, x: Register) -> Register:
    # log1p(d + sqrt(d*(d + 2))) with d = x - 1, which is exact near 1.
    huge = x > b.pick(2.0**30, 2.0**60)
    d = x - 1.0
    inner = b.select(huge, x, d + b.sqrt(b.fma(d, d, d + d)))
    f, e = log1p_split(b, b.select(x < 1.0, b.constant(float("nan")), inner))
    return log_sum(b, f, e + b.select(huge, b.constant(1.0), 0.0))


def atanh(b: Block, x: Register) -> Register:
    y = b.abs(x)
    f, e = log1p_split(b, (y + y) / (1.0 - y))
    return b.copysign(log_sum(b, f, e) * 0.5, x)


FUNCTIONS = {
    "tanh": tanh,
    "sinh": sinh,
    "cosh": cosh,
    "asinh": asinh,
    "acosh": acosh,
    "atanh": atanh,
}
