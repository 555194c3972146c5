"""What paired ratios say of two trees: their median, an interval that holds it, a verdict."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import NamedTuple

CONFIDENCE = 0.95
MARGIN = 0.03  # a difference that counts


class Estimate(NamedTuple):
    """The median of paired ratios, and an interval that holds the median of all such ratios."""

    median: float
    low: float
    high: float

    @property
    def verdict(self) -> str:
        if self.low > 1 + MARGIN:
            return "slower"
        if self.high < 1 - MARGIN:
            return "faster"
        return "same" if self.narrow else "unclear"

    @property
    def narrow(self) -> bool:
        return self.high - self.low <= 2 * MARGIN

    @property
    def decided(self) -> bool:
        return self.verdict != "unclear"


def estimate(ratios: Sequence[float]) -> Estimate:
    """From order statistics, so whatever the ratios' distribution: the k-th smallest and k-th largest of n hold the
    median between them unless fewer than k of n fall on one side of it, which is a matter of coins."""
    found = sorted(ratios)
    k = outside(len(found))
    low, high = (found[k - 1], found[-k]) if k else (0.0, math.inf)
    return Estimate(statistics.median(found), low, high)


def outside(n: int) -> int:
    """The largest k for which the k-th smallest and k-th largest of n hold the median with CONFIDENCE; 0 if n < 6."""
    tail, k = 0.0, 0
    while k < n:
        tail += math.comb(n, k) / 2**n
        if 2 * tail > 1 - CONFIDENCE:
            break
        k += 1
    return k
