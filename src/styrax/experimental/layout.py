"""How the elements of an array lie in memory."""

from __future__ import annotations

import numpy as np

from ..core.arrays.layouts import Format, Layout, check_rank
from ..core.trees import tree, tree_paths
from ..core.types.typing import Function, PyTree
from ..lax.shaping.annotations import layout_constraint_p
from ..transforms.naming import wraps


def with_layout_constraint(x: PyTree, layouts: PyTree) -> PyTree:
    """Arrays that are to lie in memory in a given order. On CPUs they lie row after row in any case.

    Args:
      x: a tree of arrays.
      layouts: their `Layout`s: a tree like `x`, or a prefix of it.

    Raises:
      ValueError: a layout is no `Layout`, or orders more or fewer dimensions than the array has.
    """
    leaves, treedef = tree.tree_flatten(x)
    found = tree_paths.broadcast_prefix(layouts, x, is_leaf=lambda leaf: leaf is None or isinstance(leaf, Layout))
    if not all(isinstance(layout, Layout) for layout in found):
        raise ValueError("layouts passed to `with_layout_constraint` must be of type `Layout`. Got "
                         f"{[type(layout) for layout in found]}")
    for leaf, layout in zip(leaves, found, strict=True):
        check_rank("One of with_layout_constraint arguments", layout, np.shape(leaf))
    return tree.tree_unflatten(treedef, [
        layout_constraint_p.bind(leaf, layout=layout) for leaf, layout in zip(leaves, found, strict=True)])


def explicit_layout(fun: Function, *, in_layouts: PyTree = None, out_layouts: PyTree = None) -> Function:
    """A function whose arguments and results are to lie in memory in given orders (`with_layout_constraint`).

    The name is of newer releases of JAX than those that this one is measured by; this is what it means here.

    Args:
      fun: a function of arrays and containers of them.
      in_layouts: the positional arguments' `Layout`s, as a tuple with one for each, or a prefix of it; None for any.
      out_layouts: those of the results, a tree like them or a prefix; None for any.

    Raises:
      ValueError: as `with_layout_constraint`.
    """
    @wraps(fun)
    def constrained(*args: PyTree, **kwargs: PyTree) -> PyTree:
        if in_layouts is not None:
            args = with_layout_constraint(args, in_layouts)
        outs = fun(*args, **kwargs)
        return outs if out_layouts is None else with_layout_constraint(outs, out_layouts)

    return constrained


__all__ = ["Format", "Layout", "explicit_layout", "with_layout_constraint"]
