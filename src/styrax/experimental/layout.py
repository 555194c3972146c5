"""How the elements of an array lie in memory."""

from __future__ import annotations

import numpy as np

from ..core.arrays.layouts import AutoLayout, Format, Layout
from ..core.trees import tree, tree_paths
from ..core.types.typing import PyTree
from ..lax.shaping.annotations import layout_constraint_p


def with_layout_constraint(x: PyTree, layouts: PyTree) -> PyTree:
    """Arrays that are to lie in memory in a given order. On CPUs they lie row after row in any case.

    Args:
      x: a tree of arrays.
      layouts: their `Layout`s: a tree like `x`, or a prefix of it.

    Raises:
      ValueError: a layout is no `Layout`, or orders more or fewer dimensions than the array has.
    """
    leaves, treedef = tree.tree_flatten(x)
    found = tree_paths.broadcast_prefix(layouts, x, is_leaf=lambda leaf: isinstance(leaf, (Layout, AutoLayout)))
    if not all(isinstance(layout, Layout) for layout in found):
        raise ValueError("layouts passed to `with_layout_constraint` must be of type `Layout`. Got "
                         f"{[type(layout) for layout in found]}")
    for leaf, layout in zip(leaves, found, strict=True):
        if sorted(layout.major_to_minor) != list(range(np.ndim(leaf))):
            raise ValueError(f"the layout {layout} does not order the dimensions of an array of shape {np.shape(leaf)}")
    return tree.tree_unflatten(treedef, [
        layout_constraint_p.bind(leaf, layout=layout) for leaf, layout in zip(leaves, found, strict=True)])


__all__ = ["Format", "Layout", "with_layout_constraint"]
