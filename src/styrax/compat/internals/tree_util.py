"""Functions of trees, and how trees differ."""

from __future__ import annotations

from typing import Any

from ... import tree_util as _public
from ...core.trees.differences import equality_errors, equality_errors_pytreedef, prefix_errors
from ...core.trees.tree_paths import broadcast_prefix


def __getattr__(name: str) -> Any:
    return getattr(_public, name)


__all__ = ["broadcast_prefix", "equality_errors", "equality_errors_pytreedef", "prefix_errors"]
