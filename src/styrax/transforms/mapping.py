"""`vmap`: a function of one example made a function of many."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar

from ..core.programs.name_stack import transform_name_stack
from ..core.tracing.source import api_boundary
from ..core.tracing.trace import get_aval, state
from ..core.trees import tree, tree_paths
from ..core.types import avals
from ..core.types.avals import MappingSpec
from ..core.types.typing import AxisName, Function, PyTree
from .aliasing import any_references, check_arguments
from .batch import AxisData, batch_flat, broadcast, matchaxis
from .containers import containers, stacked, structure_of_elements
from .flattening import FlatFunction
from .naming import LateInfo, argument_names, check_callable, leaf_path, wraps
from .views import any_view
from .vmappable import is_spec, over_arrays, vmappables

F = TypeVar("F", bound=Function)
_DOC = """Vectorized version of {fun}. Takes similar arguments as {fun} but with additional array axes \
over which {fun} is mapped."""


class _Unmapped:
    """Stands for None where None is a node of the tree and not a leaf."""


_unmapped = _Unmapped()


@api_boundary
def vmap(fun: F, in_axes: int | None | Sequence[PyTree] = 0, out_axes: PyTree = 0,
         axis_name: Hashable | None = None, axis_size: int | None = None,
         spmd_axis_name: AxisName | tuple[AxisName, ...] | None = None, sum_match: bool = False) -> F:
    """Maps a function over an axis of its arguments, all examples at once.

    Args:
      fun: a function of arrays and containers of them.
      in_axes: the axis to map over: an integer for all positional arguments, or a tuple (or list) with an
        entry for each: an integer, None where all examples share the argument, or a container of those
        that is a prefix of the argument. Keyword arguments are mapped over axis 0.
      out_axes: where the axis goes in the results: an integer, None for a result that does not depend
        on the example, or a container of those that is a prefix of the result.
      axis_name: a name of the axis, for collectives.
      axis_size: the size of the axis, needed where no argument is mapped.
      spmd_axis_name: mesh axis or axes that the mapped axis is laid out over.
      sum_match: whether a mapped result with `out_axes` None is summed over the axis.

    Returns:
      A function of the same arguments with the additional axes.

    Raises:
      ValueError: sizes do not agree, an axis is out of range, or the axes do not fit the arguments or
        results.
      TypeError: `fun` is not callable or the axes are not integers or None.

    Example:
      >>> import styrax as jax
      >>> import styrax.numpy as jnp
      >>> jax.vmap(jnp.dot, in_axes=(0, None))(jnp.ones((3, 2)), jnp.array([1.0, 2.0]))
      Array([3., 3., 3.], dtype=float32)
    """
    check_callable(fun)
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    if vmappables and any(map(is_spec, tree.tree_leaves((in_axes, out_axes), is_leaf=is_spec))):
        return over_arrays(_vmap_arrays, fun, in_axes, out_axes, dict(  # type: ignore[return-value]
            axis_name=axis_name, axis_size=axis_size, spmd_axis_name=spmd_axis_name, sum_match=sum_match))
    return _vmap_arrays(fun, in_axes, out_axes, axis_name, axis_size, spmd_axis_name, sum_match)


def _vmap_arrays(fun: F, in_axes: Any, out_axes: Any, axis_name: Hashable | None, axis_size: int | None,
                 spmd_axis_name: Any, sum_match: bool) -> F:
    """`vmap` where arrays alone are mapped over."""
    if not (in_axes is None or type(in_axes) in (int, tuple) or _is_axis(in_axes)):
        raise TypeError("vmap in_axes must be an int, None, or a tuple of entries corresponding to the positional "
                        f"arguments passed to the function, but got {in_axes}.")
    if type(in_axes) is not int and not all(map(_is_axis, tree.tree_leaves(in_axes))):
        raise TypeError("vmap in_axes must be an int, None, or (nested) container with those types as leaves, "
                        f"but got {in_axes}.")
    if type(out_axes) is not int and not all(map(_is_axis, tree.tree_leaves(out_axes))):
        raise TypeError("vmap out_axes must be an int, None, or (nested) container with those types as leaves, "
                        f"but got {out_axes}.")

    doc = getattr(fun, "__doc__", None)

    @wraps(fun, docstr=_DOC + ("\n\nOriginal documentation:\n\n{doc}" if doc else ""))
    def vmap_f(*args: Any, **kwargs: Any) -> Any:
        if isinstance(in_axes, tuple) and len(in_axes) != len(args):
            raise ValueError("vmap in_axes must be an int, None, or a tuple of entries corresponding to the "
                             f"positional arguments passed to the function, but got len(in_axes)={len(in_axes)}, "
                             f"len(args)={len(args)}")
        leaves, in_tree = tree.tree_flatten((args, kwargs))
        if any_references(leaves):
            check_arguments(leaves, (), "vmap", LateInfo("vmap", fun, lambda: (args, kwargs)))
        if type(in_axes) is int:
            dims: list[Any] = [in_axes] * len(leaves)
            if kwargs and in_axes != 0:
                n = len(tree.tree_leaves(args))
                dims[n:] = [0] * (len(leaves) - n)
        else:
            axes = in_axes if isinstance(in_axes, tuple) else (in_axes,) * len(args)
            dims = flatten_axes("vmap in_axes", axes, args) + [0] * len(tree.tree_leaves(kwargs))
        size = _axis_size(fun, args, kwargs, leaves, dims, axis_size)
        if containers:
            in_tree = structure_of_elements((args, kwargs), dims)
        dims = [d if type(d) is not int or d >= 0 else d + get_aval(x).ndim for x, d in zip(leaves, dims, strict=True)]
        axis = AxisData(axis_name, size, _names(spmd_axis_name),
                        _mapped_entry(leaves, dims) if avals.explicit else None)
        flat = FlatFunction(fun, in_tree)
        wanted: list[Any] = []

        def one_example(*xs: Any) -> list[Any]:
            outs = flat(*xs)
            wanted.extend(flatten_axes("vmap out_axes", out_axes, tree.tree_unflatten(flat.structure, outs)))
            return [state.trace.one_of_alike(x) if w is None else x for x, w in zip(outs, wanted, strict=True)]

        with transform_name_stack("vmap"):
            outs, out_dims = batch_flat(flat if type(out_axes) is int else one_example, leaves, dims, axis)
        out_tree = flat.structure
        if type(out_axes) is int:
            wanted = [out_axes] * len(outs)
        out = tree.tree_unflatten(out_tree, [
            _place(x, d, w, axis, sum_match, out_tree, i)
            for i, (x, d, w) in enumerate(zip(outs, out_dims, wanted, strict=True))])
        return stacked(out, wanted) if containers else out

    return vmap_f  # type: ignore[return-value]


def _mapped_entry(leaves: Sequence[Any], dims: Sequence[int | None]) -> Any:
    """The mesh axes that mapped dimensions are spread over. ValueError where they are spread differently."""
    found = []
    for x, d in zip(leaves, dims, strict=True):
        told = None if d is None else getattr(get_aval(x), "given_sharding", None)
        if d is not None:
            found.append(None if told is None else told.spec[d])
    for other in found[1:]:
        if other != found[0]:
            raise ValueError("Mapped away dimension of inputs passed to vmap should be sharded the same. Got "
                             f"inconsistent axis specs: {found[0]} vs {other}")
    return found[0] if found else None


def _is_axis(x: Any) -> bool:
    return x is None or type(x) is int or isinstance(x, MappingSpec)


def _names(spmd_axis_name: Any) -> Any:
    return spmd_axis_name if spmd_axis_name is None or isinstance(spmd_axis_name, tuple) else (spmd_axis_name,)


def _place(x: Any, dim: int | None, wanted: int | None, axis: AxisData, sum_match: bool, out_tree: Any, i: int) -> Any:
    """Leaf number `i` of the results with its batch axis where it is wanted."""
    size = axis.size
    if dim == wanted:
        if dim is None:
            get_aval_of_output(x)
        return x
    aval = get_aval_of_output(x)
    if aval.is_high:
        raise ValueError(f"at vmap out_axes{leaf_path(out_tree, i)}, got axis spec {wanted} but output was batched on "
                         f"axis {dim}")
    ndim = aval.ndim
    if wanted is None:
        if sum_match:
            return matchaxis(None, size, dim, None, x, True)
        if axis.name is not None:
            raise ValueError(f"vmap has mapped output (axis_name={axis.name}) but out_axes is None")
        raise ValueError(f"at vmap out_axes{leaf_path(out_tree, i)}, got axis spec None but output was batched on axis "
                         f"{dim}")
    rank = ndim + (dim is None)
    if not -rank <= wanted < rank:
        raise ValueError(f"axis {wanted} is out of bounds for array of dimension {rank}")
    if dim is None and axis.explicit_mesh_axis is not None and get_aval(x).given_sharding is not None:
        return broadcast(x, size, wanted % rank, axis.explicit_mesh_axis)
    return matchaxis(None, size, dim, wanted % rank, x)


def get_aval_of_output(x: Any) -> Any:
    try:
        return get_aval(x)
    except TypeError:
        raise TypeError(f"Output from batched function {x!r} with type {type(x)} is not a valid JAX type") from None


def flatten_axes(name: str, axes: Any, full: Any) -> list[Any]:
    """Axis specifications by leaf: `axes` is a prefix of `full`, None in it is a specification.

    Raises ValueError where it is not a prefix.
    """
    marked = tree.tree_map(lambda a: _unmapped if a is None else a, axes, is_leaf=lambda a: a is None)
    try:
        found = tree_paths.broadcast_prefix(marked, full)
    except ValueError:
        raise ValueError(tree_paths.not_a_prefix(name, marked, full)) from None
    return [None if a is _unmapped else a for a in found]


def _axis_size(fun: Callable, args: Sequence[Any], kwargs: dict[str, Any], leaves: Sequence[Any],
               dims: Sequence[int | None], axis_size: int | None) -> Any:
    """The size of the mapped axis, on which all arguments must agree."""
    size = axis_size
    agree = True
    some = axis_size is not None
    for x, d in zip(leaves, dims, strict=True):
        if type(d) is not int:
            continue
        try:
            shape = get_aval(x).shape
        except TypeError:
            if any_view([x]):
                raise
            raise TypeError(f"Argument '{x}' of type {type(x)} is not a valid JAX type") from None
        if not -len(shape) <= d < len(shape):
            rank = d + 1 if d >= 0 else -d
            raise ValueError(f"vmap was requested to map its argument along axis {d}, which implies that its rank "
                             f"should be at least {rank}, but is only {len(shape)} (its shape is {shape})")
        if not some:
            size, some = shape[d], True
        elif shape[d] != size:
            agree = False
    if not some:
        if leaves:
            raise ValueError("vmap must have at least one non-None value in in_axes or axis_size must be specified")
        raise ValueError("vmap wrapped function must be passed at least one argument containing an array or axis_size "
                         f"must be specified, got empty *args={tuple(args)} and **kwargs={kwargs}")
    if not agree:
        raise ValueError(_inconsistent(fun, args, kwargs, leaves, dims, axis_size))
    return size


def _inconsistent(fun: Callable, args: Sequence[Any], kwargs: dict[str, Any], leaves: Sequence[Any],
                  dims: Sequence[int | None], axis_size: int | None) -> str:
    names = [f"argument {name}" for name in argument_names(fun, args, {})] + [
        f"kwargs{tree_paths.keystr(path)}" for path, _ in tree_paths.tree_leaves_with_path(kwargs)]
    by_size: dict[Any, list[str]] = {}
    for name, x, d in zip(names, leaves, dims, strict=True):
        if type(d) is int:
            aval = get_aval(x)
            by_size.setdefault(aval.shape[d], []).append(
                f"axis {d} of {name} of type {aval.str_short(short_dtypes=False)}")
    lines = ["vmap got inconsistent sizes for array axes to be mapped:"]
    if axis_size is not None:
        lines.append(f"  * the `axis_size` argument was {axis_size};")
    for i, (size, where) in enumerate(sorted(by_size.items(), key=lambda item: -len(item[1]))):
        if len(where) == 1:
            lines.append(f"  * one axis had size {size}: {where[0]};")
        else:
            most = "most" if i == 0 else "some"
            lines.append(f"  * {most} axes ({len(where)} of them) had size {size}, e.g. {where[0]};")
    return "\n".join(lines)[:-1]
