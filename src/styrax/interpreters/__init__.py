"""The open tables of rules, by transformation, for libraries that define primitives of their own."""

from __future__ import annotations

from ..lazy import names

__getattr__, __dir__, __all__ = names(
    __name__, {}, modules=("ad", "batching", "mlir", "partial_eval", "pxla", "xla"))
