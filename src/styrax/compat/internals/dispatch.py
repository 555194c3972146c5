"""Running programs."""

from __future__ import annotations

from ...core.arrays.backends import apply_primitive
from ...placement import effects_barrier as wait_for_tokens

__all__ = ["apply_primitive", "wait_for_tokens"]
