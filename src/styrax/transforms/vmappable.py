"""Types of libraries that `vmap` maps over: containers of arrays with axes of their own kind.

A type says how an element of it is made of elements of its arrays, and back. Mapping over it is mapping over its
arrays: the function that takes values apart runs once to see which arrays along which axes, and again to give elements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from ..core import hooks
from ..core.tracing.trace import get_aval, set_current_trace, state
from ..core.trees import tree
from ..core.types.typing import Function, PyTree
from .batch import matchaxis


class Vmappable(NamedTuple):
    """How values of a type are mapped over."""

    spec_type: type
    to_elt: Function | None
    from_elt: Function | None
    make_iota: Function | None


vmappables: dict[type, Vmappable] = {}


def register_vmappable(data_type: type, spec_type: type, axis_size_type: type, to_elt: Function | None,
                       from_elt: Function | None, make_iota: Function | None) -> None:
    """Lets `vmap` map over a type.

    Args:
      data_type: the type.
      spec_type: the type of what stands for it in `in_axes` and `out_axes`.
      axis_size_type: the type of the mapped axis' size.
      to_elt: `to_elt(element_of, index, value, spec)` gives an element of a value; `element_of(array, axis)` is one of
        an array.
      from_elt: `from_elt(all_of, size, element, spec)` gives the value back; `all_of(size, element, axis)` is an array.
      make_iota: gives the numbers of the elements.

    Raises:
      ValueError: the type is registered already.
    """
    if data_type in vmappables:
        raise ValueError(f"{data_type} is registered already")
    vmappables[data_type] = Vmappable(spec_type, to_elt, from_elt, make_iota)


def unregister_vmappable(data_type: type) -> None:
    """`vmap` no longer maps over a type. Raises KeyError where it does not."""
    del vmappables[data_type]


def is_vmappable(x: Any) -> bool:
    """Whether a value is of a type of a library that is mapped over."""
    return type(x) in vmappables


def is_spec(x: Any) -> bool:
    """Whether something stands for values of such types in `in_axes`."""
    return any(type(x) is entry.spec_type for entry in vmappables.values())


def over_arrays(vmap: Callable[..., Any], fun: Callable[..., Any], in_axes: Any, out_axes: Any,
                options: dict[str, Any]) -> Callable[..., Any]:
    """`vmap(fun, in_axes, out_axes)` for arguments or results of registered types, by `vmap` of arrays alone."""

    def mapped(*args: Any, **kwargs: Any) -> Any:
        leaves, structure = tree.tree_flatten((args, kwargs), is_leaf=is_vmappable)
        axes = in_axes if isinstance(in_axes, tuple) else (in_axes,) * len(args)
        specs = [*_spread(axes, args), *[0] * (len(leaves) - len(tree.tree_leaves(args, is_leaf=is_vmappable)))]
        found: list[tuple[Any, Any]] = []

        def note(x: Any, axis: Any) -> Any:
            found.append((x, axis))
            return x if axis is None else _some_element(x, axis)

        for x, spec in zip(leaves, specs, strict=True):
            _element(note, x, spec)
        made: list[PyTree] = []

        def of_arrays(*arrays: Any) -> None:
            rest = iter(arrays)
            inner = [_element(lambda *_: next(rest), x, spec) for x, spec in zip(leaves, specs, strict=True)]
            inner_args, inner_kwargs = tree.tree_unflatten(structure, inner)
            outs = fun(*inner_args, **inner_kwargs)
            elements, out_tree = tree.tree_flatten(outs, is_leaf=is_vmappable)
            trace: Any = state.trace  # under which elements are put together, with values for all of an array's

            def every(_: Any, x: Any, axis: Any) -> Any:
                val, dim = trace.to_pair(x)
                with set_current_trace(trace.parent):
                    return matchaxis(options.get("axis_name"), trace.axis_data.size, dim, axis, val)

            made.append(tree.tree_unflatten(out_tree, [
                _whole(every, size, x, spec)
                for x, spec in zip(elements, _spread(out_axes, outs), strict=True)]))

        if not found:
            found.append((0, None))
        size: Any = options.get("axis_size")
        for x, axis in found:
            size = size if axis is None else get_aval(x).shape[axis]
        vmap(of_arrays, in_axes=tuple(axis for _, axis in found), out_axes=0, **options)(*(x for x, _ in found))
        return made[0]

    return mapped


def _some_element(x: Any, axis: int) -> Any:
    """What an element of an array looks like."""
    aval = get_aval(x)
    if aval.shape[axis]:
        return hooks.lax.index_in_dim(x, 0, axis, keepdims=False)
    return hooks.lax.full((*aval.shape[:axis], *aval.shape[axis:][1:]), 0, aval.dtype)


def _spread(axes: Any, full: Any) -> list[Any]:
    """The axes, a prefix of a tree, for each of its leaves."""
    is_leaf = lambda a: a is None or is_spec(a) or type(a) is int

    def parts(prefix: Any, whole: Any) -> Iterator[Any]:
        if is_leaf(prefix):
            yield from [prefix] * len(tree.tree_leaves(whole, is_leaf=is_vmappable))
            return
        below = tree.tree_structure(prefix, is_leaf=lambda a: a is not prefix)
        for a, x in zip(tree.tree_leaves(prefix, is_leaf=lambda a: a is not prefix), below.flatten_up_to(whole)):
            yield from parts(a, x)

    return list(parts(axes, full))


def _element(element_of: Callable[[Any, Any], Any], x: Any, spec: Any) -> Any:
    entry = vmappables.get(type(x))
    if entry is None or entry.to_elt is None or spec is None:
        return element_of(x, spec)
    return entry.to_elt(lambda y, axis: _element(element_of, y, axis), lambda: None, x, spec)


def _whole(all_of: Callable[[Any, Any, Any], Any], size: Any, x: Any, spec: Any) -> Any:
    entry = vmappables.get(type(x))
    if entry is None or entry.from_elt is None or spec is None:
        return all_of(size, x, spec)
    return entry.from_elt(lambda n, y, axis: _whole(all_of, n, y, axis), size, x, spec)


__all__: Sequence[str] = ["is_spec", "is_vmappable", "over_arrays", "register_vmappable", "unregister_vmappable",
                          "vmappables"]
