"""Profiles of memory: how much the arrays that are alive take up, as pprof reads it.

The numbers of fields are those of pprof's `profile.proto`.
"""

from __future__ import annotations

import gzip
import time
from collections.abc import Iterable
from typing import Protocol

from ..protocol_buffers import Scalar, encode


class LiveArray(Protocol):
    """What is asked of an array."""

    @property
    def nbytes(self) -> int: ...

    @property
    def device(self) -> object: ...

    @property
    def aval(self) -> object: ...


def serialize(arrays: Iterable[LiveArray]) -> bytes:
    """Counts and bytes of arrays by type and device: a compressed `Profile` message."""
    totals: dict[tuple[str, str], list[int]] = {}
    for x in arrays:
        total = totals.setdefault((str(x.aval), str(x.device)), [0, 0])
        total[0] += 1
        total[1] += x.nbytes
    words: dict[str, int] = {"": 0}

    def word(text: str) -> int:
        return words.setdefault(text, len(words))

    fields: list[tuple[int, Scalar]] = [
        (1, encode([(1, word("allocations")), (2, word("count"))])),
        (1, encode([(1, word("space")), (2, word("bytes"))])),
    ]
    for n, ((aval, device), (count, size)) in enumerate(totals.items(), 1):
        labels = [(3, encode([(1, word(k)), (2, word(v))])) for k, v in (("kind", "buffer"), ("device", device))]
        fields += [
            (2, encode([(1, n), (2, count), (2, size), *labels])),
            (4, encode([(1, n), (4, encode([(1, n)]))])),
            (5, encode([(1, n), (2, word(aval)), (3, word(aval))])),
        ]
    default = word("space")
    return gzip.compress(encode([*fields, *((6, text) for text in words), (9, time.time_ns()), (14, default)]))
