"""asin, acos, atan, atan2.

Results beyond the first polynomial are a constant minus it. The constant is added in two parts, the
high one to the large term and the low one to the small, so that only the last sum rounds.
"""
from __future__ import annotations

from .block import Block, Register

# pi/4 as high and low part
QUARTER_PI = ((0.7853981852531433, -2.1855694143368964e-08), (0.7853981633974483, 3.061616997868383e-17))
# asin(s) = s + s**3 * row(s**2), |s| <= 1/2
ASIN_ROW = (
    (0.1666666, 0.07500522, 0.04451373, 0.031831674, 0.014361389, 0.03760608),
    (
        0.1666666666666676, 0.0749999999997079, 0.044642857174623435, 0.03038194270714643,
        0.022372215007752567, 0.017351611617833187, 0.013980825664525902, 0.011398867588551942,
        0.010780517281189403, 0.003705359455529242, 0.02171011421801633, -0.021002988696142144,
        0.032631168915317074,
    ),
)  # fmt: skip
# atan(t) = t + t**3 * row(t**2), |t| <= tan(pi/8)
ATAN_ROW = (
    (-0.33333316, 0.19998528, -0.14244393, 0.105991915, -0.060901385),
    (
        -0.333333333333332, 0.1999999999995326, -0.14285714280167683, 0.11111110782204917,
        -0.09090897726518904, 0.07692059737197372, -0.06663099399194122, 0.05847860496644289,
        -0.050391950993464635, 0.0380622385801351, -0.017905126827200617,
    ),
)  # fmt: skip


def asin_terms(b: Block, x: Register) -> tuple[Register, Register, Register]:
    """(large, s, q): s + q is asin of s, with s = x, or s = sqrt((1 - |x|)/2) where |x| > 1/2."""
    y = b.abs(x)
    large = y > 0.5
    z = b.select(large, (1.0 - y) * 0.5, y * y)
    s = b.select(large, b.sqrt(z), x)
    return large, s, s * (z * b.poly(z, b.pick(*ASIN_ROW)))


def asin(b: Block, x: Register) -> Register:
    high, low = b.pick(*QUARTER_PI)
    large, s, q = asin_terms(b, x)
    # asin(x) = pi/2 - 2*asin(s)
    turned = b.fma(s, -2.0, 2.0 * high) + b.fma(q, -2.0, 2.0 * low)
    return b.select(large, b.copysign(turned, x), s + q)


def acos(b: Block, x: Register) -> Register:
    high, low = b.pick(*QUARTER_PI)
    large, s, q = asin_terms(b, x)
    # pi/2 - asin(x), 2*asin(s) for x > 1/2, pi - 2*asin(s) for x < -1/2
    factor = b.select(large, b.copysign(2.0, x), -1.0)
    quarters = b.select(large, b.select(x > 0.0, b.constant(0.0), 4.0), 2.0)
    return b.fma(factor, s, quarters * high) + b.fma(factor, q, quarters * low)


def atan_of_ratio(b: Block, y: Register, x: Register | float) -> tuple[Register, Register, Register]:
    """(quarters, t, q) with atan(y/x) = quarters*pi/4 + (t + q) for y, x >= 0."""
    high = 2.414213562373095
    large = y > x * high
    middle = (y > x * (high - 2.0)) | b.eq(y, float("inf"))
    difference = b.select(b.eq(y, x), b.constant(0.0), y - x)
    numerator = b.select(large, -x, b.select(middle, difference, y))
    denominator = b.select(large, y, b.select(middle, y + x, x))
    t = numerator / b.at_least(denominator, b.pick(2.0**-126, 2.0**-1022))
    z = t * t
    quarters = b.select(large, b.constant(2.0), b.select(middle, b.constant(1.0), 0.0))
    return quarters, t, t * (z * b.poly(z, b.pick(*ATAN_ROW)))


def atan(b: Block, x: Register) -> Register:
    high, low = b.pick(*QUARTER_PI)
    quarters, t, q = atan_of_ratio(b, b.abs(x), b.constant(1.0))
    return b.copysign(b.fma(quarters, high, t) + b.fma(quarters, low, q), x)


def atan2(b: Block, y: Register, x: Register) -> Register:
    high, low = b.pick(*QUARTER_PI)
    # Quarters of the largest numbers, so that their sum does not overflow.
    a, c = b.abs(y), b.abs(x)
    large = b.pick(2.0**126, 2.0**1022)
    scale = b.select((a > large) | (c > large), b.constant(0.25), 1.0)
    quarters, t, q = atan_of_ratio(b, a * scale, c * scale)
    left = b.bits(x) < 0
    quarters = b.select(left, 4.0 - quarters, quarters)
    t, q = b.select(left, -t, t), b.select(left, -q, q)
    return b.copysign(b.fma(quarters, high, t) + b.fma(quarters, low, q), y)


FUNCTIONS = {"asin": asin, "acos": acos, "atan": atan, "atan2": atan2}
