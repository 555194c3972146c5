"""Functions of pytrees: containers of arrays, nested."""

from __future__ import annotations

from .core.trees.registry import default_registry
from .core.trees.tree import (
    Partial,
    all_leaves,
    flatten_one_level,
    is_tree_node,
    register_pytree_node,
    register_pytree_node_class,
    register_static,
    tree_all,
    tree_flatten,
    tree_leaves,
    tree_map,
    tree_reduce,
    tree_reduce_associative,
    tree_structure,
    tree_transpose,
    tree_unflatten,
    treedef_children,
    treedef_is_leaf,
    treedef_tuple,
)
from .core.trees.tree_paths import (
    DictKey,
    FlattenedIndexKey,
    GetAttrKey,
    KeyEntry,
    KeyPath,
    SequenceKey,
    flatten_one_level_with_keys,
    keystr,
    register_dataclass,
    register_pytree_with_keys,
    register_pytree_with_keys_class,
    tree_broadcast,
    tree_flatten_with_path,
    tree_leaves_with_path,
    tree_map_with_path,
)
from .core.trees.treedef import PyTreeDef

_registry = default_registry.nodes  # what libraries look up types of nodes in

__all__ = [
    "DictKey", "FlattenedIndexKey", "GetAttrKey", "KeyEntry", "KeyPath", "Partial", "PyTreeDef", "SequenceKey",
    "all_leaves", "default_registry", "flatten_one_level", "flatten_one_level_with_keys", "is_tree_node", "keystr",
    "register_dataclass", "register_pytree_node", "register_pytree_node_class", "register_pytree_with_keys",
    "register_pytree_with_keys_class", "register_static", "tree_all", "tree_broadcast", "tree_flatten",
    "tree_flatten_with_path", "tree_leaves", "tree_leaves_with_path", "tree_map", "tree_map_with_path", "tree_reduce",
    "tree_reduce_associative", "tree_structure", "tree_transpose", "tree_unflatten", "treedef_children",
    "treedef_is_leaf", "treedef_tuple",
]
