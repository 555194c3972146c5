"""Functions of pytrees, by their short names."""

from __future__ import annotations

from .core.trees.tree import tree_all as all
from .core.trees.tree import tree_flatten as flatten
from .core.trees.tree import tree_leaves as leaves
from .core.trees.tree import tree_map as map
from .core.trees.tree import tree_reduce as reduce
from .core.trees.tree import tree_reduce_associative as reduce_associative
from .core.trees.tree import tree_structure as structure
from .core.trees.tree import tree_transpose as transpose
from .core.trees.tree import tree_unflatten as unflatten
from .core.trees.tree_paths import static
from .core.trees.tree_paths import tree_broadcast as broadcast
from .core.trees.tree_paths import tree_flatten_with_path as flatten_with_path
from .core.trees.tree_paths import tree_leaves_with_path as leaves_with_path
from .core.trees.tree_paths import tree_map_with_path as map_with_path

__all__ = [
    "all", "broadcast", "flatten", "flatten_with_path", "leaves", "leaves_with_path", "map", "map_with_path", "reduce",
    "reduce_associative", "static", "structure", "transpose", "unflatten",
]
