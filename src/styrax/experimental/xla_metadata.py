"""Notes for XLA on values and operations. The CPU compiler reads none."""

from __future__ import annotations

from contextlib import ContextDecorator
from typing import Any

from ..core.trees import tree
from ..core.types.typing import PyTree
from ..lax.shaping.annotations import xla_metadata_value_p


class MetadataScope(ContextDecorator):
    """Notes on the operations inside a `with` block, or of a decorated function."""

    def __init__(self, metadata: dict[str, Any]):
        self.metadata = metadata

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        return None


def set_xla_metadata(x: PyTree = None, **kwargs: str | int | float | bool | None) -> PyTree:
    """Attaches notes to a value, or to operations.

    Args:
      x: a tree of arrays; without it, the notes are for the operations of a block or a function.
      **kwargs: the notes: strings, numbers and booleans.

    Returns:
      the tree; without `x`, a context manager, which is a decorator as well.
    """
    if x is None:
        return MetadataScope(kwargs)
    if callable(x):
        return MetadataScope(kwargs)(x)
    notes = tuple(sorted(kwargs.items()))
    return tree.tree_map(lambda leaf: xla_metadata_value_p.bind(leaf, xla_metadata_kvs=notes), x)


__all__ = ["set_xla_metadata"]
