"""Running programs."""

from __future__ import annotations

from typing import Any

from ...core.arrays import backends
from ...core.programs.primitive import Primitive
from ...placement import effects_barrier as wait_for_tokens


def apply_primitive(prim: Primitive, *args: Any, **params: Any) -> Any:
    """Compiles a primitive for its arguments and runs it."""
    return backends.apply_primitive(prim, args, params)


__all__ = ["apply_primitive", "wait_for_tokens"]
