"""Shardings that operations are told to give their results."""

from __future__ import annotations

from typing import Any

from .explicit import resolved
from .shardings import NamedSharding, PartitionSpec


def result_sharding(sharding: Any) -> NamedSharding | PartitionSpec:
    """An argument `out_sharding` as it is.

    Raises:
      TypeError: it is neither a `NamedSharding` nor a `PartitionSpec`.
      ValueError: it is a `PartitionSpec`, and no mesh is in force.
    """
    if not isinstance(sharding, (NamedSharding, PartitionSpec)):
        raise TypeError("The argument `out_sharding` only supports instances of `NamedSharding` or `PartitionSpec`. "
                        f"Got {sharding} of type: {type(sharding)}")
    resolved(sharding)
    return sharding


__all__ = ["result_sharding"]
