"""Values that are to be spread over devices alike."""

from __future__ import annotations

import numpy as np

from ..core.trees import tree
from ..core.types.typing import PyTree
from ..lax.shaping.annotations import shard_alike_p


def shard_alike(x: PyTree, y: PyTree) -> tuple[PyTree, PyTree]:
    """The arguments, of which compilers that spread them are to do one as the other.

    Args:
      x, y: trees of arrays, of equal structures and shapes.

    Raises:
      ValueError: their structures or shapes differ.
    """
    xs, x_tree = tree.tree_flatten(x)
    ys, y_tree = tree.tree_flatten(y)
    if x_tree != y_tree:
        raise ValueError(f"Trees should match. Got `x` tree: {x_tree} and `y` tree: {y_tree}.")
    for a, b in zip(xs, ys, strict=True):
        if np.shape(a) != np.shape(b):
            raise ValueError("The leaves shapes of `x` and `y` should match. Got `x` leaf shape: "
                             f"{np.shape(a)} and `y` leaf shape: {np.shape(b)}.")
    pairs = [shard_alike_p.bind(a, b) for a, b in zip(xs, ys, strict=True)]
    return tree.tree_unflatten(x_tree, [a for a, _ in pairs]), tree.tree_unflatten(y_tree, [b for _, b in pairs])


__all__ = ["shard_alike"]
