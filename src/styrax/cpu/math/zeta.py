"""The Hurwitz zeta function and polygamma."""

from __future__ import annotations

from .block import Block, Register
from .gamma import through_double

# B(2j) / (2j)! for j = 1, 2, …: the coefficients of Euler and Maclaurin's sum
EULER_MACLAURIN_ROW = (
    0.08333333333333333, -0.001388888888888889, 3.306878306878307e-05, -8.267195767195768e-07,
    2.08767569878681e-08, -5.284190138687493e-10, 1.3382536530684679e-11, -3.3896802963225827e-13,
    8.586062056277845e-15, -2.174868698558062e-16, 5.5090028283602295e-18, -1.3954464685812522e-19,
)  # fmt: skip
FAR = 10.0
INF, NAN = float("inf"), float("nan")


def zeta_in_double(b: Block, s: Register, q: Register) -> Register:
    s, q = b.freeze(s), b.freeze(q)
    # Terms one by one until q is large or they do not count; a very negative q takes a step for each unit.
    zero = b.constant(0.0)
    far = b.fma(s, 0.5, FAR)

    def step(total: Register, q: Register):
        term = b.call("pow", q, -s)
        total, q = total + term, q + 1.0
        return [total, q], (q < far) & ((b.abs(term) > b.abs(total) * 2.0**-60) | (q < 1.0))

    total, w = b.iterate([zero, q], (q < far) & (s > 1.0), step, 1 << 16)
    power = b.call("pow", w, -s)
    total = total + b.fma(power, 0.5, power * w / (s - 1.0))
    # … + sum of B(2j)/(2j)! * s*(s + 1)*…*(s + 2j - 2) * w**(1 - s - 2j)
    inverse = 1.0 / w
    square = inverse * inverse
    product = power * s * inverse
    for j, coefficient in enumerate(EULER_MACLAURIN_ROW):
        total = b.fma(product, coefficient, total)
        k = s + (2.0 * j + 1.0)
        product = product * (k * (k + 1.0)) * square
    total = b.select(b.eq(q, INF), zero, total)
    whole_q = b.eq(b.floor(q), q)
    below = q <= 0.0
    undefined = (s < 1.0) | (below & b.ne(b.floor(s), s))
    result = b.select(undefined, b.constant(NAN), total)
    result = b.select(b.eq(s, 1.0) | (below & whole_q), b.constant(INF), result)
    return b.select(b.is_nan(s) | b.is_nan(q), s + q, result)


def polygamma_in_double(b: Block, n: Register, x: Register) -> Register:
    # (-1)**(n + 1) * n! * zeta(n + 1, x)
    order = n + 1.0
    magnitude = b.call("exp", b.call("lgamma", order)) * b.call("zeta", order, x)
    half = order * 0.5
    odd = b.ne(b.floor(half), half)
    result = b.select(odd, -magnitude, magnitude)
    result = b.select(b.eq(n, 0.0), b.call("digamma", x), result)
    valid = (n >= 0.0) & b.eq(b.floor(n), n)
    return b.select(valid, result, b.constant(NAN))


FUNCTIONS = {"zeta": through_double(zeta_in_double), "polygamma": through_double(polygamma_in_double)}
