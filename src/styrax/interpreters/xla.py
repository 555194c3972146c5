"""Running primitives eagerly."""

from __future__ import annotations

from typing import Any

from ..core.arrays import backends
from ..core.types.avals import aval_rules as pytype_aval_mappings
from ..core.types.avals import canonicalizers as canonicalize_dtype_handlers


def apply_primitive(prim: Any, *args: Any, **params: Any) -> Any:
    """Runs one primitive on arrays."""
    return backends.apply_primitive(prim, args, params)


__all__ = ["apply_primitive", "canonicalize_dtype_handlers", "pytype_aval_mappings"]
