"""The Hurwitz zeta function and polygamma."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from .block import Block, Register
from .exponential import exp, log

# B(2j) / (2j)! for j = 1, 2, …: the coefficients of Euler and Maclaurin's sum
EULER_MACLAURIN_ROW = (
    0.08333333333333333, -0.001388888888888889, 3.306878306878307e-05, -8.267195767195768e-07,
    2.08767569878681e-08, -5.284190138687493e-10, 1.3382536530684679e-11, -3.3896802963225827e-13,
    8.586062056277845e-15, -2.174868698558062e-16, 5.5090028283602295e-18, -1.3954464685812522e-19,
)  # fmt: skip
TERMS = 10  # at most, as XLA takes: with more, sums from a negative q would be others
INF, NAN = float("inf"), float("nan")


class Precision(NamedTuple):
    """How a double is computed: to all its digits, or to more than a single has."""

    power: Callable[[Block, Register, Register], Register]
    far: float  # Euler and Maclaurin's sum is used from here on, and half the exponent more
    epsilon: float  # what terms must have of the total to count


def exact_power(b: Block, q: Register, s: Register) -> Register:
    return b.call("pow", q, -s)


def short_power(b: Block, q: Register, s: Register) -> Register:
    """q**-s, of negative q for whole numbers s."""
    half = s * 0.5
    odd = b.ne(b.floor(half), half)
    size = exp(b, log(b, b.abs(q)) * -s)
    return b.select((q < 0.0) & odd, -size, size)


EXACT = Precision(exact_power, 10.0, 2.0**-60)
SHORT = Precision(short_power, 4.0, 2.0**-32)


def hurwitz(b: Block, s: Register, q: Register, precision: Precision) -> Register:
    s, q = b.freeze(s), b.freeze(q)
    # Terms one by one until q is large or they do not count
    zero = b.constant(0.0)
    far = b.fma(s, 0.5, precision.far)

    def step(total: Register, q: Register):
        term = precision.power(b, q, s)
        total, q = total + term, q + 1.0
        return [total, q], (q < far) & ((b.abs(term) > b.abs(total) * precision.epsilon) | (q < 1.0))

    total, w = b.iterate([zero, q], (q < far) & (s > 1.0), step, TERMS)
    power = precision.power(b, w, s)
    total = total + b.fma(power, 0.5, power * w / (s - 1.0))
    # … + sum of B(2j)/(2j)! * s*(s + 1)*…*(s + 2j - 2) * w**(1 - s - 2j)
    inverse = 1.0 / w
    square = inverse * inverse
    product = power * s * inverse
    rest = zero
    for j, coefficient in enumerate(EULER_MACLAURIN_ROW):
        rest = b.fma(product, coefficient, rest)
        k = s + (2.0 * j + 1.0)
        product = product * (k * (k + 1.0)) * square
    # What overflows belongs to sums that it cannot change.
    total = total + b.select(b.abs(rest) < INF, rest, zero)
    whole_q = b.eq(b.floor(q), q)
    below = q <= 0.0
    undefined = (s < 1.0) | (below & b.ne(b.floor(s), s))
    result = b.select(undefined, b.constant(NAN), total)
    half = s * 0.5
    at_pole = b.select(b.eq(b.floor(half), half), b.constant(INF), NAN)
    result = b.select(below & whole_q, at_pole, result)
    return b.select(b.eq(s, 1.0), b.constant(INF), result)


def derivative_of_digamma(b: Block, n: Register, x: Register, precision: Precision) -> Register:
    # (-1)**(n + 1) * n! * zeta(n + 1, x)
    order = n + 1.0
    magnitude = b.call("exp", b.call("lgamma", order)) * hurwitz(b, order, x, precision)
    half = order * 0.5
    odd = b.ne(b.floor(half), half)
    result = b.select(odd, -magnitude, magnitude)
    result = b.select(b.eq(n, 0.0), b.call("digamma", x), result)
    valid = (n >= 0.0) & b.eq(b.floor(n), n)
    return b.select(valid, result, b.constant(NAN))


def zeta(b: Block, s: Register, q: Register) -> Register:
    if b.single:
        return b.narrow(hurwitz(b.in_double(), b.widen(s), b.widen(q), SHORT))
    return hurwitz(b, s, q, EXACT)


def polygamma(b: Block, n: Register, x: Register) -> Register:
    if b.single:
        return b.narrow(derivative_of_digamma(b.in_double(), b.widen(n), b.widen(x), SHORT))
    return derivative_of_digamma(b, n, x, EXACT)


FUNCTIONS = {"zeta": zeta, "polygamma": polygamma}
