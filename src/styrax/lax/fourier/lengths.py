"""How lengths are taken apart: radices of passes, rows and columns of a long transform, lengths to go over to."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache

WRITTEN_OUT = 13  # the largest radix of straight-line code; of larger ones the cost grows with the radix
# Of lengths that butterflies do; others go by a convolution, which takes as long as a radix of 130.
PRIMES = tuple(p for p in range(2, 128) if all(p % d for d in range(2, p)))
RADICES = (4, 2, 13, 11, 7, 5, 9, 3, *(p for p in PRIMES if p > WRITTEN_OUT))


def is_smooth(n: int) -> bool:
    """Whether butterflies do the length."""
    for p in PRIMES:
        while n % p == 0:
            n //= p
    return n == 1


@cache
def radices(n: int) -> tuple[int, ...]:
    """Radices whose product is a smooth length. Of 8, fewer passes would do; but they took no less time, and LLVM half
    as much again."""
    out: list[int] = []
    for r in RADICES:
        while n % r == 0:
            out.append(r)
            n //= r
    return tuple(out) or (1,)


@cache
def split(n: int) -> tuple[int, int] | None:
    """`n` as rows × columns for a transform in two steps, rows not more than columns: near to each other, and
    multiples of vectors where there are such. None where the lesser would be below 4."""
    best = None
    for d in divisors(n):
        if d * d <= n and d >= 4:
            other = n // d
            whole = (1 if d % 16 == 0 else 0) + (1 if other % 16 == 0 else 0)
            rank = (math.log2(other / d) - whole, d)
            if best is None or rank < best[0]:
                best = rank, (d, other)
    return None if best is None else best[1]


def divisors(n: int) -> Iterator[int]:
    for d in range(1, math.isqrt(n) + 1):
        if n % d == 0:
            yield d
            if d * d < n:
                yield n // d


@cache
def convolution_length(n: int) -> int:
    """The length of the convolution that stands for a transform of length `n`: the least of the form 2ᵃ·{1, 3, 5, 9}
    that has room for `2n - 1` elements and splits well."""
    return min(f << max(4, math.ceil(math.log2((2 * n - 1) / f))) for f in (1, 3, 5, 9))
