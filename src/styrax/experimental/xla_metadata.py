"""Notes for XLA on values and operations. The CPU compiler reads none."""

from __future__ import annotations

import functools
from typing import Any

from ..core.programs import metadata
from ..core.settings.flags import Setting
from ..core.trees import tree
from ..core.types.typing import Function, PyTree
from ..lax.shaping.annotations import xla_metadata_value_p
from ..transforms.stages import Lowered, Traced


class MetadataScope:
    """Notes on the operations inside a `with` block, or of a decorated function."""

    def __init__(self, changes: dict[str, metadata.Note | None]):
        self.changes = changes
        self._open: list[Setting] = []

    def __enter__(self) -> None:
        setting = metadata.extended(self.changes)
        setting.__enter__()
        self._open.append(setting)

    def __exit__(self, *error: object) -> None:
        self._open.pop().__exit__(*error)

    def __call__(self, fun: Function) -> Function:
        """The function with notes on its operations, also where it is traced or lowered without being called."""
        return NotedFunction(self, fun) if hasattr(fun, "lower") else self.around(fun)

    def around(self, fun: Function) -> Function:
        """The function with notes on the operations of its calls."""

        @functools.wraps(fun)
        def noted(*args: Any, **kwargs: Any) -> Any:
            with metadata.extended(self.changes):
                return fun(*args, **kwargs)

        return noted


class NotedFunction:
    """A compiled function with notes on its operations."""

    def __init__(self, scope: MetadataScope, fun: Any):
        functools.update_wrapper(self, fun, updated=())
        self._scope, self._fun = scope, fun

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._scope.around(self._fun)(*args, **kwargs)

    def trace(self, *args: Any, **kwargs: Any) -> Traced:
        return self._scope.around(self._fun.trace)(*args, **kwargs)

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        return self._scope.around(self._fun.lower)(*args, **kwargs)

    def eval_shape(self, *args: Any, **kwargs: Any) -> PyTree:
        return self._scope.around(self._fun.eval_shape)(*args, **kwargs)


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
