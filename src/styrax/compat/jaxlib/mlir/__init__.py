"""MLIR's Python bindings, as far as lowering rules use them."""

from __future__ import annotations
