"""Arrays, and how JAX's own pickles of them are read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.arrays import backends
from ...core.arrays.array import Array
from ...core.arrays.devices import Shard
from ...core.types.avals import ShapedArray

ArrayImpl = Array


def _reconstruct_array(make: Callable, args: tuple, state: Any, aval_state: dict[str, Any]) -> Array:
    """An array from a pickle that JAX wrote: a NumPy array in its own pickled form, and the weak type."""
    value = make(*args)
    value.__setstate__(state)
    return backends.get().put(value, ShapedArray(value.shape, value.dtype, aval_state.get("weak_type", False)), None)


__all__ = ["Array", "ArrayImpl", "Shard"]
