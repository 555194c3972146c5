"""Containers of libraries that `vmap` maps over by rules of theirs: how one is cut into elements, and put together.

A rule `to_elt(cont, index, container, spec)` gives the element, in which `cont(array, axis)` stands for the slice of an
array; `from_elt(cont, size, element, spec)` gives the container, in which `cont(size, slice, axis)` stands for the
array.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..core.hooks import lax
from ..core.trees import tree, tree_paths
from .batch import moveaxis
from .mapping import spec_types, vmap


class Rules(NamedTuple):
    """What is registered for a type of containers."""

    spec_type: type
    axis_size_type: type
    to_elt: Callable[..., Any]
    from_elt: Callable[..., Any]
    make_iota: Callable[..., Any] | None


registered: dict[type, Rules] = {}


def register_vmappable(data_type: type, spec_type: type, axis_size_type: type, to_elt: Callable[..., Any],
                       from_elt: Callable[..., Any], make_iota: Callable[..., Any] | None) -> None:
    """Has `vmap` map over containers of a type.

    Args:
      data_type: the type.
      spec_type: the type of what stands in `in_axes` and `out_axes` for them.
      axis_size_type: the type of the sizes of mapped axes that they have.
      to_elt, from_elt: the rules, see above.
      make_iota: gives the positions along an axis of such a size.
    """
    registered[data_type] = Rules(spec_type, axis_size_type, to_elt, from_elt, make_iota)
    spec_types[spec_type] = call_with_specs


def unregister_vmappable(data_type: type) -> None:
    """Takes `register_vmappable` back. KeyError for a type that is not registered."""
    spec_types.pop(registered.pop(data_type).spec_type, None)


def _is_container(x: Any) -> bool:
    return type(x) in registered


def _is_leaf(x: Any) -> bool:
    return x is None or type(x) in spec_types


def call_with_specs(fun: Callable, args: Sequence[Any], in_axes: Any, out_axes: Any, axis_size: Any,
                    options: dict[str, Any]) -> Any:
    """A call of `vmap(fun)` some of whose axes are specifications of containers."""
    leaves, in_tree = tree.tree_flatten(tuple(args), is_leaf=_is_container)
    axes = in_axes if isinstance(in_axes, tuple) else (in_axes,) * len(args)
    dims = tree_paths.broadcast_prefix(axes, tuple(args), is_leaf=lambda x: _is_leaf(x) or _is_container(x))
    parts: list[Any] = []
    positions: list[int | None] = []

    def cut(x: Any, d: Any) -> Any:
        if type(d) in spec_types:
            return registered[type(x)].to_elt(cut, index, x, d)
        parts.append(x)
        positions.append(d)
        return x

    def index() -> Any:
        rules = next((r for r in registered.values() if isinstance(axis_size, r.axis_size_type)), None)
        if rules is None or rules.make_iota is None:
            return lax.iota("int32", size or 0)
        return rules.make_iota(axis_size)

    size = axis_size if isinstance(axis_size, int) else None
    for x, d in zip(leaves, dims, strict=True):
        cut(x, d)
    size = next((x.shape[d] for x, d in zip(parts, positions, strict=True) if d is not None), size)
    made: list[tuple[Any, list[Any], list[int | None]]] = []

    def element(*slices: Any) -> list[Any]:
        given = iter(slices)

        def take(x: Any, d: Any) -> Any:
            return registered[type(x)].to_elt(take, index, x, d) if type(d) in spec_types else next(given)

        result = fun(*tree.tree_unflatten(in_tree, [take(x, d) for x, d in zip(leaves, dims, strict=True)]))
        found: list[Any] = []
        where: list[int | None] = []

        def give(_: Any, x: Any, d: Any) -> Any:
            found.append(x)
            where.append(d)
            return x

        specs = tree_paths.broadcast_prefix(out_axes, result, is_leaf=_is_leaf)
        outs, _ = tree.tree_flatten(result)
        for x, d in zip(outs, specs, strict=True):
            _join(give, axis_size, x, d)
        made.append((result, specs, where))
        return found

    stacked = vmap(element, in_axes=tuple(positions), axis_size=size, **options)(*parts)
    (result, specs, where), = made
    arrays = iter([x[0] if d is None else moveaxis(x, 0, d) for x, d in zip(stacked, where, strict=True)]
                  if any(d != 0 for d in where) else stacked)
    outs, out_tree = tree.tree_flatten(result)
    return tree.tree_unflatten(out_tree, [
        _join(lambda *_: next(arrays), axis_size, x, d) for x, d in zip(outs, specs, strict=True)])


def _join(cont: Callable[..., Any], size: Any, x: Any, d: Any) -> Any:
    if type(d) not in spec_types:
        return cont(size, x, d)
    rules = next(r for r in registered.values() if r.spec_type is type(d))
    return rules.from_elt(cont, size, x, d)
