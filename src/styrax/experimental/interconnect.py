"""What moving data between the devices of a mesh costs: bytes on the busiest link, and hops, by mesh axis.

Devices that are neighbours along an axis are linked, as are an axis' first and last. A collective over several axes
uses the links of all, each with its share of the data, one axis after the other (Sack and Gropp, Collective Algorithms
for Multiported Torus Networks, 2015).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np

Cost = tuple[int, int]  # bytes, hops


def ring(sizes: Sequence[int], shard: int) -> Cost:
    """Of giving all devices what each has `shard` bytes of; the inverse, with sums, is the same from the other end."""
    count = math.prod(sizes)
    if count == 1:
        return 0, 0
    return shard // len(sizes) * (count - 1), len(sizes) * max(sizes)


def exchange(sizes: Sequence[int], part: int) -> Cost:
    """Of giving each device a part of what each has, `part` bytes: half of all goes through the narrowest cut."""
    count = math.prod(sizes)
    if count == 1:
        return 0, 0
    links = min(sizes) ** (len(sizes) - 1) * (2 if min(sizes) > 2 else 1)
    return int(part * count / 2 / links), sum(sizes) // 2


def permutation(sizes: Sequence[int], part: int, pairs: Sequence[tuple[int, int]]) -> Cost:
    """Of sending `part` bytes from one device of each pair to the other, along one axis after the other,
    from the last on."""
    count = math.prod(sizes)
    if count == 1:
        return 0, 0
    used: Counter[tuple[int, tuple[int, ...]]] = Counter()
    hops = 0
    for source, target in pairs:
        here = [int(i) for i in np.unravel_index(source, sizes)]
        there = [int(i) for i in np.unravel_index(target, sizes)]
        length = 0
        for axis, size in reversed(list(enumerate(sizes))):
            ahead = (there[axis] - here[axis]) % size
            step, far = (1, ahead) if 2 * ahead < size else (-1, size - ahead)
            length += far
            for _ in range(far):
                before, here[axis] = here[axis], (here[axis] + step) % size
                link = 0 if size == 2 else before if step > 0 else here[axis]  # from there to the next
                used[axis, (*here[:axis], link, *here[axis + 1:])] += 1
        hops = max(hops, length)
    return part * max(used.values(), default=0), hops


__all__ = ["exchange", "permutation", "ring"]
