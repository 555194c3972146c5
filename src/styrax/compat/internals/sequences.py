"""Maps, zips and parts of lists, as libraries use them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from ...api_util import safe_map

A = TypeVar("A")
B = TypeVar("B")


def safe_zip(*sequences: Sequence[A]) -> list[tuple[A, ...]]:
    """`zip` as a list, of sequences of equal length. Raises ValueError for others."""
    return list(zip(*sequences, strict=True))


def unzip2(pairs: Iterable[tuple[A, B]]) -> tuple[tuple[A, ...], tuple[B, ...]]:
    """The first and the second parts of pairs."""
    found = list(pairs)
    return tuple(a for a, _ in found), tuple(b for _, b in found)


def split_list(items: Sequence[A], lengths: Sequence[int]) -> list[list[A]]:
    """The parts of a sequence, of given lengths, and what is left."""
    parts, rest = [], list(items)
    for n in lengths:
        parts.append(rest[:n])
        rest = rest[n:]
    return [*parts, rest]


__all__ = ["safe_map", "safe_zip", "split_list", "unzip2"]
