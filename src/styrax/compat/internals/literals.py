"""Numbers in programs that keep their dtype."""

from __future__ import annotations

from ...core.types.avals import TypedComplex, TypedFloat, TypedInt

typed_scalar_types = {TypedInt, TypedFloat, TypedComplex}

__all__ = ["TypedComplex", "TypedFloat", "TypedInt", "typed_scalar_types"]
