"""Running primitives eagerly."""

from __future__ import annotations

from ..core.arrays import backends
from ..core.arrays.backends import Backend
from ..core.programs.primitive import Primitive
from ..core.types.avals import aval_rules as pytype_aval_mappings
from ..core.types.avals import canonicalizers as canonicalize_dtype_handlers
from ..core.types.typing import PyTree


def apply_primitive(prim: Primitive, *args: PyTree, **params: PyTree) -> PyTree:
    """Runs one primitive on arrays."""
    return backends.apply_primitive(prim, args, params)


__all__ = ["Backend", "apply_primitive", "canonicalize_dtype_handlers", "pytype_aval_mappings"]
