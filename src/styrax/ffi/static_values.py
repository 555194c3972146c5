"""Attributes of foreign calls: static values that go with a call, hashable, and as MLIR has them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np


class FrozenDict:
    """A dictionary that can be a parameter."""

    __slots__ = ("_items",)

    def __init__(self, items: Mapping[str, Any]):
        self._items = {k: hashable(k, v) for k, v in items.items()}

    def items(self) -> Iterable[tuple[str, Any]]:
        return self._items.items()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FrozenDict) and self._items == other._items

    def __hash__(self) -> int:
        return hash(frozenset(self._items.items()))

    def __repr__(self) -> str:
        return f"FrozenDict({self._items!r})"


class HashableArray:
    """An array that can be a parameter, by its contents."""

    __slots__ = ("val",)

    def __init__(self, val: np.ndarray):
        self.val = np.array(val)
        self.val.setflags(write=False)

    def _key(self) -> tuple[Any, ...]:
        return self.val.shape, self.val.dtype, self.val.tobytes()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HashableArray) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return f"HashableArray({self.val!r})"


def hashable(name: str, value: Any) -> Any:
    """An attribute as a parameter of an equation. Raises TypeError for what has no hash."""
    if isinstance(value, np.ndarray):
        return HashableArray(value)
    if isinstance(value, dict):
        return FrozenDict(value)
    try:
        hash(value)
    except TypeError as error:
        raise TypeError(f"Non-hashable keyword argument to ffi_call {name}: {value}") from error
    return value


def plain(value: Any) -> Any:
    """The attribute that `hashable` made a parameter of."""
    if isinstance(value, HashableArray):
        return value.val
    if isinstance(value, FrozenDict):
        return {k: plain(v) for k, v in value.items()}
    return value


