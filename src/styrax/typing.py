"""Types for annotations: what functions of arrays take."""

from __future__ import annotations

from .core.arrays.array import Array
from .core.types.typing import DTypeLike, HostArray

ArrayLike = Array | HostArray  # with the class itself: `isinstance(x, ArrayLike)` works

__all__ = ["ArrayLike", "DTypeLike"]
