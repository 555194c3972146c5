"""Pytrees."""

from __future__ import annotations

from ....core.tree_paths import DictKey, FlattenedIndexKey, GetAttrKey, SequenceKey
from ....core.treedef import PyTreeDef, default_registry

__all__ = ["DictKey", "FlattenedIndexKey", "GetAttrKey", "PyTreeDef", "SequenceKey", "default_registry"]
