"""Types for annotations: what functions of arrays take."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from .core.array import Array


class SupportsDType(Protocol):
    """Anything with a `dtype`."""

    @property
    def dtype(self) -> np.dtype: ...


ArrayLike = Array | np.ndarray | np.bool_ | np.number | bool | int | float | complex
DTypeLike = str | type[Any] | np.dtype | SupportsDType

__all__ = ["ArrayLike", "DTypeLike"]
