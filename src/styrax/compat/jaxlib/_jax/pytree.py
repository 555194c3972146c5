"""Pytrees."""

from __future__ import annotations

from ....core.trees.tree_paths import DictKey, FlattenedIndexKey, GetAttrKey, SequenceKey
from ....core.trees.treedef import PyTreeDef, default_registry

__all__ = ["DictKey", "FlattenedIndexKey", "GetAttrKey", "PyTreeDef", "SequenceKey", "default_registry"]
