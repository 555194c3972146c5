"""Views of references as arguments of programs, which take the reference and the indices apart.

To users a view is one leaf of a tree; where a function is traced it is the node of what it consists of.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.trees import tree
from ..core.types.typing import PyTree
from .ref_indexing import Transform
from .references import Ref, TransformedRef


class _Parts:
    """The node that stands for a view where its parts are the leaves."""

    __slots__ = ("view",)

    def __init__(self, view: TransformedRef):
        self.view = view


def _join(_: None, parts: Sequence[Any]) -> TransformedRef:
    return TransformedRef(*parts)


def _take_apart(x: _Parts) -> tuple[tuple[Ref, tuple[Transform, ...]], None]:
    return (x.view.ref, x.view.transforms), None


tree.register_pytree_node(_Parts, _take_apart, _join)


def any_view(leaves: Sequence[Any]) -> bool:
    return any([type(x) is TransformedRef for x in leaves])


def apart(x: PyTree) -> PyTree:
    """The tree with nodes in place of views: what is rebuilt from its structure has the views again."""
    return tree.tree_map(lambda leaf: _Parts(leaf) if type(leaf) is TransformedRef else leaf, x)


def flatten_arguments(x: PyTree) -> tuple[list[Any], tree.PyTreeDef]:
    """The leaves of a function's arguments and their structure, views taken apart."""
    leaves, structure = tree.tree_flatten(x)
    return tree.tree_flatten(apart(x)) if any_view(leaves) else (leaves, structure)
