"""Shardings that operations are told to give their results."""

from __future__ import annotations

from typing import Any

from . import mesh
from .explicit import check_explicit, resolved
from .shardings import NamedSharding, PartitionSpec


def result_sharding(sharding: Any, name: str = "") -> NamedSharding | PartitionSpec:
    """An argument `out_sharding` of the function `name` as it is.

    Raises:
      TypeError: it is neither a `NamedSharding` nor a `PartitionSpec`.
      ValueError: it is a `PartitionSpec`, and no mesh is in force, or a sharding over another mesh than this, or over
        axes of it that are not explicit.
    """
    where = f" of {name}" if name else ""
    if not isinstance(sharding, (NamedSharding, PartitionSpec)):
        raise TypeError(f"`out_sharding` argument{where} only supports instances of `NamedSharding` or `PartitionSpec`."
                        f" Got {sharding} of type: {type(sharding)}")
    around, passed = mesh.state.abstract, f"passed to {name} " if name else ""
    told = resolved(sharding)
    if around.empty:
        return sharding
    if told.mesh.abstract_mesh != around:
        raise ValueError(f"Context mesh {around} should match the mesh of sharding {told.mesh.abstract_mesh} "
                         f"{passed.rstrip()}")
    check_explicit(told, passed)
    return sharding


__all__ = ["result_sharding"]
