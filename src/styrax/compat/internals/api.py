"""Transformations, and what they need (`jax._src.api`)."""

from __future__ import annotations

from typing import Any

import styrax as _public

from ...core.types.dtypes import dtype as _dtype


def __getattr__(name: str) -> Any:
    return getattr(_public, name)


__all__ = ["_dtype"]
