"""Pytrees."""

from __future__ import annotations

from ....core.trees.registry import default_registry
from ....core.trees.tree_paths import DictKey, FlattenedIndexKey, GetAttrKey, SequenceKey
from ....core.trees.treedef import PyTreeDef

__all__ = ["DictKey", "FlattenedIndexKey", "GetAttrKey", "PyTreeDef", "SequenceKey", "default_registry"]
