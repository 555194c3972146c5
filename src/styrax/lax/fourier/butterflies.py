"""Butterflies: discrete Fourier transforms of a few points, written out as scalar expressions.

A complex number is a pair (re, im) of expressions. All transforms are forward ones, `X[k] = Σ x[j] exp(-2πi·jk/r)`; an
inverse one is a forward one with the parts exchanged before and after.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from styrax.core.programs.lowering import Builder, Expr

    Pair = tuple[Expr, Expr]


def add(b: Builder, x: Pair, y: Pair) -> Pair:
    return b.add(x[0], y[0]), b.add(x[1], y[1])


def sub(b: Builder, x: Pair, y: Pair) -> Pair:
    return b.sub(x[0], y[0]), b.sub(x[1], y[1])


def mul(b: Builder, x: Pair, w: Pair) -> Pair:
    return (b.sub(b.mul(x[0], w[0]), b.mul(x[1], w[1])), b.add(b.mul(x[0], w[1]), b.mul(x[1], w[0])))


def unit_root(numerator: int, denominator: int) -> tuple[float, float]:
    """Cosine and sine of `-2π·numerator/denominator`, exact at multiples of an eighth of a turn."""
    eighths, rest = divmod(8 * (numerator % denominator), denominator)
    if rest == 0:
        h = math.sqrt(0.5)
        return ((1.0, 0.0), (h, -h), (0.0, -1.0), (-h, -h), (-1.0, 0.0), (-h, h), (0.0, 1.0), (h, h))[eighths]
    angle = -2 * math.pi * (numerator % denominator) / denominator
    return math.cos(angle), math.sin(angle)


def rotate(b: Builder, x: Pair, numerator: int, denominator: int) -> Pair:
    """`x` times a root of unity, with fewer operations where that is a multiple of an eighth of a turn."""
    re, im = x
    eighths, rest = divmod(8 * (numerator % denominator), denominator)
    if rest == 0 and eighths % 2 == 0:
        return ((re, im), (im, b.neg(re)), (b.neg(re), b.neg(im)), (b.neg(im), re))[eighths // 2]
    cosine, sine = (b.const(v, re.dtype) for v in unit_root(numerator, denominator))
    if rest:
        return mul(b, x, (cosine, sine))
    # both parts of the factor have one size: two products do
    (c, s) = unit_root(numerator, denominator)
    if (c > 0) == (s > 0):
        return b.mul(b.sub(re, im), cosine), b.mul(b.add(re, im), cosine)
    return b.mul(b.add(re, im), cosine), b.mul(b.sub(im, re), cosine)


def dft(b: Builder, x: Sequence[Pair]) -> list[Pair]:
    """The transform of `len(x)` points (Cooley and Tukey 1965 for composite numbers of them)."""
    n = len(x)
    if n == 1:
        return list(x)
    if n == 2:
        return [add(b, x[0], x[1]), sub(b, x[0], x[1])]
    first = next((p for p in range(2, n) if n % p == 0), n)
    if first == n:
        return _odd_prime(b, x)
    rest = n // first
    inner = [dft(b, x[j::first]) for j in range(first)]
    out: list[Pair] = [x[0]] * n
    for k in range(rest):
        column = [rotate(b, inner[j][k], j * k, n) for j in range(first)]
        for i, value in enumerate(dft(b, column)):
            out[k + rest * i] = value
    return out


def _odd_prime(b: Builder, x: Sequence[Pair]) -> list[Pair]:
    """By sums and differences of opposite points: what belongs to k and to n - k shares its products."""
    n, dtype = len(x), x[0][0].dtype
    half = range(1, (n + 1) // 2)
    sums = [add(b, x[j], x[n - j]) for j in half]
    differences = [sub(b, x[j], x[n - j]) for j in half]
    total = x[0]
    for s in sums:
        total = add(b, total, s)
    out = [total] * n
    for k in half:
        re, im = x[0]
        across: list[Expr] = []
        for j, s, d in zip(half, sums, differences, strict=True):
            cosine, sine = (b.const(v, dtype) for v in unit_root(j * k, n))
            re, im = b.add(re, b.mul(s[0], cosine)), b.add(im, b.mul(s[1], cosine))
            turned = [b.mul(d[1], sine), b.mul(d[0], sine)]
            across = turned if not across else [b.add(across[0], turned[0]), b.add(across[1], turned[1])]
        out[k] = b.sub(re, across[0]), b.add(im, across[1])
        out[n - k] = b.add(re, across[0]), b.sub(im, across[1])
    return out
