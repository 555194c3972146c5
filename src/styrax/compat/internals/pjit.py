"""`jit`, and functions that see axes of a mesh in another way than what is around."""

from __future__ import annotations

from typing import Any

from ...parallel.axes import auto_axes, explicit_axes
from ...transforms import jit_rules as _own


def __getattr__(name: str) -> Any:
    return getattr(_own, name)


__all__ = ["auto_axes", "explicit_axes"]
