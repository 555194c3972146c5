"""Maps, zips and parts of lists, as libraries use them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, TypeVar

from ...api_util import safe_map

A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")


def safe_zip(*sequences: Sequence[A]) -> list[tuple[A, ...]]:
    """`zip` as a list, of sequences of equal length. Raises ValueError for others."""
    return list(zip(*sequences, strict=True))


def unzip2(pairs: Iterable[tuple[A, B]]) -> tuple[tuple[A, ...], tuple[B, ...]]:
    """The first and the second parts of pairs."""
    found = list(pairs)
    return tuple(a for a, _ in found), tuple(b for _, b in found)


def unzip3(triples: Iterable[tuple[A, B, C]]) -> tuple[tuple[A, ...], tuple[B, ...], tuple[C, ...]]:
    """The first, the second and the third parts of triples."""
    found = list(triples)
    return tuple(a for a, _, _ in found), tuple(b for _, b, _ in found), tuple(c for _, _, c in found)


def foreach(function: Callable[..., Any], *sequences: Sequence[Any]) -> None:
    """Calls a function with the elements of sequences of equal length. Raises ValueError for others."""
    for items in safe_zip(*sequences):
        function(*items)


def concatenate(sequences: Iterable[Sequence[A]]) -> list[A]:
    """The elements of sequences, one after the other."""
    return [x for items in sequences for x in items]


def curry(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that, called with some arguments, waits for the others."""
    return partial(partial, function)


def split_list(items: Sequence[A], lengths: Sequence[int]) -> list[list[A]]:
    """The parts of a sequence, of given lengths, and what is left."""
    parts, rest = [], list(items)
    for n in lengths:
        parts.append(rest[:n])
        rest = rest[n:]
    return [*parts, rest]


def partition_list(second: Sequence[bool], items: Sequence[A]) -> tuple[list[A], list[A]]:
    """The elements where `second` is false, and those where it is true."""
    pairs = list(zip(second, items, strict=True))
    return [x for there, x in pairs if not there], [x for there, x in pairs if there]


def merge_lists(second: Sequence[bool], first_items: Sequence[A], second_items: Sequence[A]) -> list[A]:
    """What `partition_list` has taken apart, together again. Raises ValueError for lists of other lengths."""
    if len(second) != len(first_items) + len(second_items) or sum(second) != len(second_items):
        raise ValueError(f"{len(first_items)} and {len(second_items)} elements do not fit {list(second)}")
    parts = iter(first_items), iter(second_items)
    return [next(parts[there]) for there in second]


def tuple_insert(items: tuple[A, ...], place: int, value: A) -> tuple[A, ...]:
    """The tuple with an element more, before the one at a place."""
    return *items[:place], value, *items[place:]


def tuple_update(items: tuple[A, ...], place: int, value: A) -> tuple[A, ...]:
    """The tuple with another element at a place."""
    return *items[:place], value, *items[place + 1 :]


def tuple_delete(items: tuple[A, ...], place: int) -> tuple[A, ...]:
    """The tuple without the element at a place."""
    return *items[:place], *items[place + 1 :]


def subvals(items: Iterable[A], new: Iterable[tuple[int, A]]) -> tuple[A, ...]:
    """The elements with others at some places, given as pairs of place and element."""
    out = list(items)
    for place, value in new:
        out[place] = value
    return tuple(out)


__all__ = [
    "concatenate", "curry", "foreach", "merge_lists", "partition_list", "safe_map", "safe_zip", "split_list", "subvals",
    "tuple_delete", "tuple_insert", "tuple_update", "unzip2", "unzip3",
]
