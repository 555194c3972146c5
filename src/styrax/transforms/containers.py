"""Containers of arrays that know a shape of their own: what one example of a mapped one is, and many of them are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..core.trees import tree


class Container(NamedTuple):
    """How `vmap` treats a type of containers, whose arrays all have the mapped axis at the same place.

    Attributes:
      element: `(container, axis) -> container`: the same arrays with the shape of one example.
      stacked: `(container, axis) -> container`: of arrays with the axis, the container with their shape.

    Both raise ValueError for an axis that cannot be mapped.
    """

    element: Callable[[Any, int], Any]
    stacked: Callable[[Any, int], Any]


containers: dict[type, Container] = {}


def _each(full: Any, axes: Sequence[Any], change: Callable[[Container, Any, int], Any]) -> Any:
    """A tree with its containers changed; `axes` has an entry for each leaf, None where there is no axis."""
    found, outer = tree.tree_flatten(full, is_leaf=lambda x: type(x) in containers)
    at, out = 0, []
    for x in found:
        known = containers.get(type(x))
        out.append(x if known is None or axes[at] is None else change(known, x, axes[at]))
        at += 1 if known is None else len(tree.tree_leaves(x))
    return tree.tree_unflatten(outer, out)


def structure_of_elements(full: Any, axes: Sequence[Any]) -> tree.PyTreeDef:
    """The structure of one example of arguments that are mapped over `axes`."""
    return tree.tree_structure(_each(full, axes, lambda known, x, axis: known.element(x, axis)))


def stacked(full: Any, axes: Sequence[Any]) -> Any:
    """Results of many examples, whose arrays have the mapped axis already."""
    return _each(full, axes, lambda known, x, axis: known.stacked(x, axis))
