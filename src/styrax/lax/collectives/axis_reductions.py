"""Reductions across the examples of mapped axes: sums, means, extrema."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from styrax.core.arrays import backends
from styrax.core.arrays.mesh import told_by_types
from styrax.core.hooks import lax
from styrax.core.programs import rules
from styrax.core.programs.primitive import Primitive
from styrax.core.tracing.source import api_boundary
from styrax.core.tracing.trace import Tracer, get_aval
from styrax.core.trees import tree
from styrax.core.types import avals, dtypes
from styrax.core.types.effects import Effects
from styrax.core.types.typing import PyTree
from styrax.transforms import ad, batching
from styrax.transforms.batching import AxisData
from styrax.transforms.marks import Mark

from ..reductions.reduce import check_axes
from .casts import known_along, recast, varying
from .named_axes import AxisName, _check_bound, _collective, _effects, _groups, _names, axis_size, refuse_names

if TYPE_CHECKING:
    from styrax.core.programs.lowering import Builder


# Reductions: psum, pmax, pmin
def _reduction(name: str, plain: str, of_constant: Callable[[Any, int], Any]) -> Primitive:
    """A reduction over named axes, and over positional ones as `vmap` makes them of names."""
    primitive = _collective(name, lambda params: params["axes"])

    @primitive.def_effectful_abstract_eval
    def aval(x: Any, *, axes: tuple, axis_index_groups: Any) -> tuple[Any, Effects]:
        _check_bound(axes, "psum")
        positional = tuple(a for a in axes if isinstance(a, int))
        check_axes(x, positional)
        shape = tuple(d for i, d in enumerate(x.shape) if i not in positional)
        told = x.given_sharding
        if told is not None and positional:
            kept = tuple(e for i, e in enumerate(told.spec) if i not in positional)
            told = told.update(spec=told.spec.update(partitions=kept))
        aval = x.update(shape=shape, weak_type=False, vma=x.vma.difference(axes), sharding=told)
        return aval, _effects(axes)

    @primitive.def_impl
    def eagerly(x: Any, *, axes: tuple, axis_index_groups: Any) -> Any:
        if all(isinstance(a, int) for a in axes):  # which keeps weak types, where a traced sum does not
            return getattr(lax, f"{plain}_p").bind(x, axes=axes, out_sharding=None)
        return backends.apply_primitive(primitive, (x,), dict(axes=axes, axis_index_groups=axis_index_groups))

    def batch(axis_data: AxisData, args: Any, dims: Any, *, axes: tuple, axis_index_groups: Any) -> Any:
        (x,), (d,) = args, dims
        named = axis_data.name is not None and axis_data.name in axes
        if named and axis_index_groups is not None:
            if not axis_data.devices or axes != (axis_data.name,):
                raise NotImplementedError(
                    "axis_index_groups not supported in vmap collectives. Please open a feature request!")
            return within_groups(axis_data, x, d, axis_index_groups, lambda _, x: (
                primitive.bind(x, axes=(0,), axis_index_groups=None), None))
        if named and axis_data.alike:
            x, d = lax.index_in_dim(x, 0, d, keepdims=False), None
        if d is None:
            rest = tuple(a for a in axes if a != axis_data.name)
            x = of_constant(x, axis_data.size)
            return (primitive.bind(x, axes=rest, axis_index_groups=None) if rest else x), None
        moved = tuple(a + (a >= d) if isinstance(a, int) else a for a in axes)
        if named:
            moved = tuple(d if a == axis_data.name else a for a in moved)
            return primitive.bind(x, axes=moved, axis_index_groups=None), None
        out = primitive.bind(x, axes=moved, axis_index_groups=axis_index_groups)
        return out, d - sum(isinstance(a, int) and a < d for a in moved)

    def loops(b: Builder, x: Any, *, axes: tuple, **_: Any) -> Any:
        refuse_names(name, axes)
        return rules.loops[getattr(lax, f"{plain}_p")](b, x, axes=axes, out_sharding=None)

    rules.fancy_batchers[primitive] = batch
    rules.loops[primitive] = loops
    return primitive


def _from_front(axes: tuple, ndim: int) -> tuple:
    """Positions counted from either end as those from the front. Raises ValueError for those that there are not, and
    NameError for names that are not in scope."""
    for a in axes:
        if not isinstance(a, int):
            axis_size(a)
        elif not -ndim <= a < ndim:
            raise ValueError(f"axis {a} is out of bounds for array of dimension {ndim}")
    return tuple(a % ndim if isinstance(a, int) else a for a in axes)


def take_rows(x: Any, rows: np.ndarray) -> Any:
    """These rows of an array."""
    aval = get_aval(x)
    numbers = lax.GatherDimensionNumbers(
        offset_dims=tuple(range(1, aval.ndim)), collapsed_slice_dims=(0,), start_index_map=(0,))
    return lax.gather(x, rows.astype(np.int32)[:, None], numbers, (1, *aval.shape[1:]), mode="promise_in_bounds")


def _times(x: Any, size: int) -> Any:
    aval = get_aval(x)
    if aval.sums is not None:  # which may be added up only
        return lax.reduce_sum(lax.broadcast(x, (size,)), (0,))
    return lax.mul(lax.full_like(x, size), x)


def _sum_of_equals(x: Any, size: int) -> Any:
    aval, out = get_aval(x), _times(x, size)
    return lax.convert_element_type(out, aval.dtype) if aval.ndim else out  # scalars alone stay weakly typed


def within_groups(axis_data: AxisData, x: Any, d: int | None, groups: Sequence[Sequence[int]],
                  rule: Callable[[AxisData, Any], tuple[Any, int | None]]) -> tuple[Any, int]:
    """A collective within groups of positions: `rule` for each group alone, which it is given in front.

    Raises ValueError for groups that leave positions out.
    """
    size = axis_data.size
    order = np.array([i for g in groups for i in g])
    if sorted(order) != list(range(size)):
        raise ValueError(f"axis_index_groups must cover all indices exactly once, got {groups} for an axis of {size}")
    x = batching.bdim_at_front(x, d, size)
    parts = []
    for group in groups:
        out, at = rule(axis_data._replace(size=len(group)), take_rows(x, np.array(group)))
        parts.append(batching.bdim_at_front(out, at, len(group)))
    return take_rows(lax.concatenate(parts, 0), np.argsort(order)), 0


psum_p = _reduction("psum", "reduce_sum", _sum_of_equals)
psum_p.declare(nan=True)
# The sum is known to be equal along the axes.
psum_invariant_p = _reduction("psum_invariant", "reduce_sum", _sum_of_equals)
psum_invariant_p.declare(nan=True)
pmax_p = _reduction("pmax", "reduce_max", lambda x, size: x)
pmin_p = _reduction("pmin", "reduce_min", lambda x, size: x)


def _psum_transpose(ct: Any, x: Any, *, axes: tuple, axis_index_groups: Any) -> list[Any]:
    positional = sorted(a for a in axes if isinstance(a, int))
    named = tuple(a for a in axes if not isinstance(a, int))
    if positional:
        shape = x.aval.shape
        ct = lax.broadcast_in_dim(ct, shape, tuple(i for i in range(len(shape)) if i not in positional))
    return [psum_p.bind(ct, axes=named, axis_index_groups=axis_index_groups) if named else ct]


def _psum_invariant_transpose(ct: Any, x: Any, *, axes: tuple, axis_index_groups: Any) -> list[Any]:
    (ct,) = _psum_transpose(ct, x, axes=tuple(a for a in axes if isinstance(a, int)), axis_index_groups=None)
    return [varying(ct, [a for a in axes if not isinstance(a, int)])]


ad.deflinear2(psum_p, _psum_transpose)
ad.deflinear2(psum_invariant_p, _psum_invariant_transpose)


def _reduce(primitive: Primitive, x: Any, axis_name: Any, groups: Any) -> Any:
    axes = _names(axis_name)
    if primitive is psum_p and groups is None:
        axes = told_by_types(axes)
        if not axes:
            return x
    if groups is not None and sorted(i for g in groups for i in g) != list(range(sum(map(len, groups)))):
        raise ValueError(f"axis_index_groups must cover all indices exactly once, got {groups}")
    if groups is not None and any(isinstance(a, int) for a in axes):
        raise ValueError("axis_index_groups only supported for sums over just named axes")

    def one(leaf: Any) -> Any:
        _check_bound(axes, "psum")
        if avals.manual and groups is not None and primitive is psum_p:
            raise NotImplementedError("psum with axis_index_groups where types tell what varies: pass check_vma=False")
        if avals.manual and len(set(axes)) != len(axes):
            raise ValueError(f"{primitive.name} over an axis twice: {axes}")
        if avals.manual and groups is None:
            named = [a for a in axes if not isinstance(a, int)]
            aval = get_aval(leaf)
            known = {known_along(aval, a) for a in named}
            if primitive is psum_p and len(known) > 1:
                raise ValueError("jax.lax.psum can only accept axis_name which corresponds to one of varying, "
                                 "unreduced, reduced or invarying state of the input. Got input type: "
                                 f"{aval.str_short()}, axes: {tuple(named)}")
            if primitive is psum_p and known == {Mark.UNREDUCED}:
                leaf = recast(leaf, named, Mark.UNREDUCED, Mark.VARYING)
            leaf = varying(leaf, named)
            if primitive is psum_p:
                return psum_invariant_p.bind(leaf, axes=axes, axis_index_groups=None)
        return primitive.bind(leaf, axes=axes, axis_index_groups=_groups(groups))

    return tree.tree_map(one, x)


@api_boundary
def psum(x: PyTree, axis_name: AxisName | Sequence[AxisName], *,
         axis_index_groups: Sequence[Sequence[int]] | None = None) -> PyTree:
    """The sum over a mapped axis.

    Args:
      x: array, or container of arrays; booleans are summed as integers. Python numbers give a Python-like
        constant: `psum(1, name)` is the size of the axis.
      axis_name: name of the axis, or a tuple of names and positions.
      axis_index_groups: disjoint groups of positions along the axis that are summed separately.

    Returns:
      a container like `x` of the sums, equal for all examples of the axis (or of a group).

    Raises:
      NameError: for a name that is not in scope.

    Example:
      >>> import styrax as jax
      >>> import styrax.numpy as jnp
      >>> jax.vmap(lambda x: x / jax.lax.psum(x, 'i'), axis_name='i')(jnp.array([1.0, 3.0]))
      Array([0.25, 0.75], dtype=float32)
    """
    axes = _names(axis_name)

    def one(leaf: Any) -> Any:
        aval = get_aval(leaf)
        if aval.dtype == np.bool_:
            leaf = lax.convert_element_type(leaf, np.int32)
        grouped = axis_index_groups is not None and not isinstance(leaf, Tracer)
        if grouped or isinstance(leaf, (bool, int, float, complex, np.generic)):
            size = axis_size(axes) if axis_index_groups is None else len(axis_index_groups[0])
            factor: Any = type(leaf)(size) if isinstance(leaf, np.generic) else size
            return leaf * factor
        known = axes if isinstance(leaf, Tracer) else _from_front(axes, aval.ndim)
        return _reduce(psum_p, leaf, known, axis_index_groups)

    return tree.tree_map(one, x)


@api_boundary
def pmean(x: PyTree, axis_name: AxisName | Sequence[AxisName], *,
          axis_index_groups: Sequence[Sequence[int]] | None = None) -> PyTree:
    """The mean over a mapped axis; integers are taken as floats.

    Args:
      x, axis_name, axis_index_groups: as for `psum`.

    Returns:
      a container like `x` of the means, equal for all examples of the axis (or of a group).

    Raises:
      NameError: for a name that is not in scope.

    Example:
      >>> import styrax as jax
      >>> import styrax.numpy as jnp
      >>> jax.vmap(lambda x: jax.lax.pmean(x, 'i'), axis_name='i')(jnp.array([1.0, 3.0]))
      Array([2., 2.], dtype=float32)
    """
    sums = psum(x, axis_name, axis_index_groups=axis_index_groups)
    size = psum(1, axis_name, axis_index_groups=axis_index_groups)

    def one(total: Any) -> Any:
        if not isinstance(total, (Tracer, np.ndarray)) and not hasattr(total, "aval"):
            return total / size
        dtype = dtypes.to_inexact_dtype(total.dtype)
        total = lax.convert_element_type(total, dtype) if total.dtype != dtype else total
        return lax.div(total, lax.full_like(total, size, shape=()))

    return tree.tree_map(one, sums)


@api_boundary
def pmax(x: PyTree, axis_name: AxisName | Sequence[AxisName], *,
         axis_index_groups: Sequence[Sequence[int]] | None = None) -> PyTree:
    """The maximum over a mapped axis; NaN where there is one.

    Args:
      x: array, or container of arrays.
      axis_name, axis_index_groups: as for `psum`.

    Returns:
      a container like `x` of the maxima, equal for all examples of the axis (or of a group).

    Raises:
      NameError: for a name that is not in scope.
    """
    return _reduce(pmax_p, x, axis_name, axis_index_groups)


@api_boundary
def pmin(x: PyTree, axis_name: AxisName | Sequence[AxisName], *,
         axis_index_groups: Sequence[Sequence[int]] | None = None) -> PyTree:
    """The minimum over a mapped axis; NaN where there is one.

    Args:
      x: array, or container of arrays.
      axis_name, axis_index_groups: as for `psum`.

    Returns:
      a container like `x` of the minima, equal for all examples of the axis (or of a group).

    Raises:
      NameError: for a name that is not in scope.
    """
    return _reduce(pmin_p, x, axis_name, axis_index_groups)
