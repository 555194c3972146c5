"""The order in which an accelerator is to compute values that do not depend on each other; CPUs have their own."""

from __future__ import annotations

from collections.abc import Sequence

from ..core.trees import tree
from ..core.types.typing import PyTree
from ..lax.control_flow.barriers import dce_sink


def control_dep(src: PyTree, dst: PyTree) -> tuple[()]:
    """`src` is to be computed before `dst`, trees of arrays; both are computed."""
    for leaf in tree.tree_leaves((src, dst)):
        dce_sink(leaf)
    return ()


def schedule(ops: Sequence[PyTree]) -> None:
    """The values of a sequence are to be computed in its order."""
    for before, after in zip(ops, ops[1:]):
        control_dep(before, after)


__all__ = ["control_dep", "schedule"]
