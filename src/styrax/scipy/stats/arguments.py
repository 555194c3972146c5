"""Arguments of distributions: constants that go with them, and distances from the location in scales."""

from __future__ import annotations

from typing import Any

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.numpy.promotion import number_like as number


def standardised(x: Any, loc: Any, scale: Any) -> Array:
    """(x - loc) / scale."""
    return lax.div(lax.sub(x, loc), scale)


__all__ = ["number", "standardised"]
