"""exp, exp2, expm1, logistic; log, log2, log1p.

Exponentials: x = n*log(2) + r with |r| <= log(2)/2, log(2) in two parts, and a minimax polynomial for
e**r. Logarithms: x = m * 2**e with m in [0.75, 1.5), so that nothing cancels near 1, and a polynomial in
m - 1 (f32), or the series of atanh in s = f/(2+f) (f64, where a polynomial in f would be twice as long).
"""
from __future__ import annotations

from .block import Block, Register

LOG2_E = 1.4426950408889634
# log(2) = high + low; the high part ends in zeros, so that n*high is exact.
LN2_HIGH = (0.693145751953125, 0.6931471803691238)
LN2_LOW = (1.428606765330187e-06, 1.9082149292705877e-10)

# e**r = 1 + r + r**2 * row, relative to e**r - 1
EXP_ROW = (
    (0.49999997, 0.16666539, 0.041667756, 0.008367127, 0.0013835584),
    (
        0.5, 0.16666666666666677, 0.04166666666666669, 0.008333333333321745, 0.001388888888888625,
        0.0001984126988543378, 2.4801587295203543e-05, 2.755724511808515e-06, 2.7557316721141214e-07,
        2.5108680779736528e-08, 2.0897275984402302e-09,
    ),
)  # fmt: skip
# The same in f64 arithmetic to 2**-34, for f32 results
EXP_ROW_32 = (
    0.5000000077904894, 0.1666666686071018, 0.041666269936927826, 0.008333264353199072,
    0.001394607365114461, 0.000199183859343751,
)  # fmt: skip
# 2**r = 1 + r * row, |r| <= 1/2
EXP2_ROW = (
    (0.69314724, 0.24022655, 0.055502728, 0.009617064, 0.0013417744, 0.00015824502),
    (
        0.6931471805599453, 0.2402265069591007, 0.05550410866482322, 0.00961812910763007,
        0.001333355814609854, 0.0001540353038965499, 1.5252734084165226e-05, 1.3215490218915058e-06,
        1.017797337768634e-07,
        7.05356275135668e-09, 4.4663359882901314e-10, 2.7596715496778853e-11,
    ),
)  # fmt: skip


def reduce(b: Block, x: Register) -> tuple[Register, Register, Register]:
    """(n, n's bits, r) with x = n*log(2) + r."""
    n, n_bits = b.nearest(x, LOG2_E)
    r = b.fma(n, -b.pick(*LN2_HIGH), x)
    return n, n_bits, b.fma(n, -b.pick(*LN2_LOW), r)


def reduce_sum(b: Block, x: Register, low: Register) -> tuple[Register, Register, Register, Register]:
    """(r, r_low, n, n's bits) with x + low = n*log(2) + (r + r_low), for low small beside x."""
    n, n_bits = b.nearest(x, LOG2_E)
    first = b.fma(n, -b.pick(*LN2_HIGH), x)
    r, r_low = b.two_sum(first, b.fma(n, -b.pick(*LN2_LOW), low))
    return r, r_low, n, n_bits


def expm1_of_remainder(b: Block, r: Register) -> Register:
    """e**r - 1 for |r| <= log(2)/2."""
    return b.fma(r * r, b.poly(r, b.pick(*EXP_ROW)), r)


GONE = (-103.98, -745.14)  # below, e**x is nearer to 0 than to the smallest number


def without_gone(b: Block, x: Register, limit: float) -> tuple[Register, Register]:
    """Where x < limit, so that a power is 0, and x with 0 there. A product that is rounded to 0, as masked logits make
    many, would cost hundreds of cycles, as all do whose results are subnormal."""
    gone = b.compare("lt", x, b.constant(limit, x.kind))
    return gone, b.select(gone, 0.0, x)


def exp(b: Block, x: Register) -> Register:
    gone, known = without_gone(b, x, b.pick(*GONE))
    if b.has_avx512(x.kind):
        known = x  # the lanes that are gone are masked where the power is scaled
    n, n_bits, r = reduce(b, b.at_most(known, b.pick(89.0, 710.0)))
    power = b.poly(r, (1.0, 1.0, *EXP_ROW[0])) if b.single else expm1_of_remainder(b, r) + 1.0
    return b.select(gone, 0.0, b.scale(power, n, n_bits))


def exp2(b: Block, x: Register) -> Register:
    gone, x = without_gone(b, b.at_most(x, b.pick(129.0, 1025.0)), b.pick(-150.0, -1075.0))
    n, n_bits = b.nearest(x, 1.0)
    r = x - n
    power = b.scale(b.fma(r, b.poly(r, b.pick(*EXP2_ROW)), 1.0), n, n_bits)
    return b.select(gone, 0.0, power)


def expm1(b: Block, x: Register) -> Register:
    # e**x - 1 = 2**n * ((1 - 2**-n) + (e**r - 1))
    n, n_bits, r = reduce(b, b.at_least(b.at_most(x, b.pick(89.0, 710.0)), b.pick(-18.0, -39.0)))
    one = b.constant(1.0)
    y = expm1_of_remainder(b, r) + (1.0 - b.scale(one, -n, opposite(b, n_bits)))
    return b.copysign(b.scale(y, n, n_bits), x)


def opposite(b: Block, n_bits: Register) -> Register:
    """The bits of `nearest` for -n."""
    return b.pick(2 * 0x4B400000 - 2**32, 2 * 0x4338000000000000 - 2**64) - n_bits


def logistic(b: Block, x: Register) -> Register:
    # With x = n*log(2) + r: 1 / (1 + e**-x) = 2**n / (1 + 2**n + (e**-r - 1))
    gone, x = without_gone(b, b.at_most(x, b.pick(30.0, 60.0)), b.pick(*GONE))
    n, n_bits, r = reduce(b, x)
    one = b.constant(1.0)
    power = b.scale(one, n, n_bits)
    total, low = b.fast_two_sum(one, power)
    return b.select(gone, 0.0, power / (total + (low + expm1_of_remainder(b, -r))))


# log(1 + f) = f - f**2/2 + f**3 * row for 1 + f in [0.75, 1.5) (f32)
LOG_ROW = (
    0.33333462, -0.25000194, 0.19990373, -0.16642581, 0.1447563, -0.13209291, 0.10589784, -0.046020173,
)  # fmt: skip
# log(1 + f) = 2*s + s*R(s**2) with s = f/(2 + f); the row is R(z)/z (f64)
LOG_RATIO_ROW = (
    0.666666666666666, 0.4000000000005664, 0.28571428555841666, 0.22222224294640783, 0.181816660087579,
    0.1539110653128818, 0.1317371297806032, 0.1384209492052709,
)  # fmt: skip
# log2(1 + f) = f + f * row (f32)
LOG2_ROW = (
    0.44269502, -0.7213475, 0.48090076, -0.3606749, 0.2883838, -0.24014707, 0.20910218, -0.1902917,
    0.15068868, -0.06435425,
)  # fmt: skip
LOG2_E_LOW = 2.0355273740931033e-17


def log_terms(b: Block, f: Register) -> tuple[Register, Register]:
    """log(1 + f) as a sum: f itself and the rest."""
    square = f * f
    if b.single:
        return f, square * b.fma(f, b.poly(f, LOG_ROW), -0.5)
    half = square * 0.5
    s = f / (f + 2.0)
    z = s * s
    tail = s * b.fma(z, b.poly(z, LOG_RATIO_ROW), half)
    return f, tail - half


def log_sum(b: Block, f: Register, e: Register) -> Register:
    """e*log(2) + log(1 + f). The low part of log(2) is positive: an infinite e gives no NaN."""
    f, rest = log_terms(b, f)
    return b.fma(e, b.pick(*LN2_HIGH), b.fma(e, b.pick(*LN2_LOW), rest) + f)


def log(b: Block, x: Register) -> Register:
    m, e = b.split(x)
    return log_sum(b, m - 1.0, e)


def log2(b: Block, x: Register) -> Register:
    m, e = b.split(x)
    if b.single:
        f = m - 1.0
        return b.fma(f, b.poly(f, LOG2_ROW), e + f)
    f, rest = log_terms(b, b.abs(m) - 1.0)  # x86 gives m = -1 for -0.0
    high, low = b.fast_two_sum(f, rest)
    product, error = b.two_product(high, b.constant(LOG2_E))
    return e + (product + b.fma(low, LOG2_E, b.fma(high, LOG2_E_LOW, error)))


def log1p_split(b: Block, x: Register) -> tuple[Register, Register]:
    """(f, e) with 1 + x = (1 + f) * 2**e; f is rounded once, and NaN for x < -1."""
    m, e = b.split(x + 1.0)
    scale = b.scale(b.constant(1.0), -e, b.bits(b.pick(1.5 * 2.0**23, 1.5 * 2.0**52) - e))
    usual = (x > -1.0) & (x < b.pick(2.0**100, 2.0**1000))  # beyond, one is lost, and the scale subnormal in the end
    return b.select(usual, b.fma(x, scale, scale - 1.0), m - 1.0), e


def log1p(b: Block, x: Register) -> Register:
    f, e = log1p_split(b, x)
    return b.copysign(log_sum(b, f, e), x)


FUNCTIONS = {
    "exp": exp,
    "exp2": exp2,
    "expm1": expm1,
    "logistic": logistic,
    "log": log,
    "log2": log2,
    "log1p": log1p,
}
