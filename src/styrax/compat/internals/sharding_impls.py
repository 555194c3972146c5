"""How arrays lie on devices."""

from __future__ import annotations

from typing import Any

from ...core.arrays import shardings as _own
from ...core.arrays.explicit import resolved
from ...core.arrays.out_shardings import result_sharding


def canonicalize_sharding(sharding: Any, api_name: str, check_mesh_consistency: bool = True) -> Any:
    """What a function named `api_name` was told about the sharding of its result, over the mesh that is set."""
    return None if sharding is None else resolved(result_sharding(sharding))


def __getattr__(name: str) -> Any:
    return getattr(_own, name)


__all__ = ["canonicalize_sharding"]
