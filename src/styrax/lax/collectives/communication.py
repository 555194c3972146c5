"""Collectives that move values between the examples of a mapped axis.

A collective names one or more axes. Under `vmap` with such a name it becomes an ordinary operation
along the batch dimension; over the devices of a mesh it stays in the program and the backend runs it.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from styrax.core.hooks import lax
from styrax.core.programs import rules
from styrax.core.tracing.trace import get_aval, state
from styrax.core.trees import tree
from styrax.core.types import avals
from styrax.core.types.avals import ShapedArray
from styrax.core.types.effects import Effects
from styrax.core.types.typing import PyTree
from styrax.transforms import ad, batching
from styrax.transforms.batching import AxisData
from styrax.transforms.marks import Mark

from .axis_reductions import _times, psum, take_rows, within_groups
from .casts import known_along, recast, varying
from .named_axes import (
    AxisName,
    _check_bound,
    _collective,
    _effects,
    _group_size,
    _groups,
    _names,
    axis_index,
    axis_size,
)

# Moving values between examples
ppermute_p = _collective("ppermute", lambda params: params["axis_name"])


@ppermute_p.def_effectful_abstract_eval
def _ppermute_aval(x: Any, *, axis_name: tuple, perm: tuple) -> tuple[Any, Effects]:
    _check_bound(axis_name, "ppermute")
    return x, _effects(axis_name)


def _ppermute_transpose(ct: Any, x: Any, *, axis_name: tuple, perm: tuple) -> list[Any]:
    return [ppermute_p.bind(ct, axis_name=axis_name, perm=tuple((b, a) for a, b in perm))]


def _ppermute_batch(axis_data: AxisData, args: Any, dims: Any, *, axis_name: tuple, perm: tuple) -> Any:
    """Mapped axes become positions, among which the values move once no name is left."""
    (x,), (d,) = args, dims
    named = axis_data.name in axis_name
    if not named and d is None:
        return ppermute_p.bind(x, axis_name=axis_name, perm=perm), None
    if d is None and axis_name == (axis_data.name,) and len(perm) == axis_data.size:
        return x, None  # a permutation of equals
    x = batching.bdim_at_front(x, d, axis_data.size)
    axes = tuple(a + 1 if isinstance(a, int) else 0 if a == axis_data.name else a for a in axis_name)
    if not all(isinstance(a, int) for a in axes):
        return ppermute_p.bind(x, axis_name=axes, perm=perm), 0
    shape = get_aval(x).shape
    order = (*axes, *(i for i in range(len(shape)) if i not in axes))
    sizes = [shape[a] for a in axes]
    x = lax.reshape(lax.transpose(x, order), (math.prod(sizes), *(shape[i] for i in order[len(axes):])))
    x = lax.reshape(_moved(x, perm, axis_data.devices), tuple(shape[i] for i in order))
    return lax.transpose(x, tuple(np.argsort(order).tolist())), 0


def _moved(x: Any, perm: tuple, devices: bool) -> Any:
    """The rows of an array sent from sources to targets; zeros where nothing arrives."""
    shape = get_aval(x).shape
    size = shape[0]
    if devices:
        perm = tuple(tuple(k + size if -size <= k < 0 else k for k in pair) for pair in perm)
        if any(len({pair[i] for pair in perm}) != len(perm) for i in (0, 1)):
            raise ValueError(f"ppermute sources and destinations must be unique, got {perm}.")
        if not all(0 <= k < size for pair in perm for k in pair):
            raise IndexError(f"ppermute sources and destinations must be below {size}, the axes' size, got {perm}")
    elif any(len({pair[i] for pair in perm if 0 <= pair[i] < size}) != len(perm) for i in (0, 1)):
        raise AssertionError(f"Permutation doesn't match the axis size! {perm} for an axis of size {size}")
    sources = np.full(size, -1)
    for source, target in perm:
        sources[target] = source
    if (sources == np.arange(size)).all():
        return x
    moved = take_rows(x, np.maximum(sources, 0))
    if (sources < 0).any():
        received = np.broadcast_to((sources >= 0).reshape((size,) + (1,) * (len(shape) - 1)), shape)
        moved = lax.select(received, moved, lax.full(shape, 0, get_aval(x).dtype))
    return moved


ad.deflinear2(ppermute_p, _ppermute_transpose)
rules.fancy_batchers[ppermute_p] = _ppermute_batch


def ppermute(x: PyTree, axis_name: AxisName | Sequence[AxisName], perm: Sequence[tuple[int, int]]) -> PyTree:
    """Sends values between examples of a mapped axis.

    Args:
      x: array, or container of arrays.
      axis_name: name of the axis, or a tuple of names: then positions are those in the product of the axes, in the
        mesh's order of them.
      perm: `(source, target)` pairs of positions. Each target stands once; positions that are no
        target get zeros.

    Returns:
      a container like `x` of what each example receives.

    Raises:
      NameError: for an axis that is not mapped.
      ValueError: for one that is named twice.
    """
    axes = _names(axis_name)
    _check_bound(axes, "ppermute")
    if len(set(axes)) != len(axes):
        raise ValueError(f"ppermute over an axis twice: repeated axis in {axes}")
    axes = tuple(n for n in state.axis_sizes if n in axes)
    pairs = tuple((operator.index(a), operator.index(b)) for a, b in perm)

    def one(leaf: Any) -> Any:
        return ppermute_p.bind(leaf, axis_name=axes, perm=pairs)

    return tree.tree_map(one, x)


def pshuffle(x: PyTree, axis_name: AxisName | Sequence[AxisName], perm: Sequence[int]) -> PyTree:
    """`ppermute` by a permutation.

    Args:
      x: array, or container of arrays.
      axis_name: name of the axis.
      perm: for each position along the axis the one whose value it gets.

    Returns:
      a container like `x` of what each example receives.

    Raises:
      ValueError: where `perm` is not a permutation.
    """
    if set(perm) != set(range(len(perm))):
        raise ValueError(f"`perm` does not represent a permutation: {perm}")
    return ppermute(x, axis_name, [(source, target) for target, source in enumerate(perm)])


pbroadcast_p = _collective("pbroadcast", lambda params: _names(params["axis_name"]))


@pbroadcast_p.def_effectful_abstract_eval
def _pbroadcast_aval(x: Any, *, axis_name: Any, source: int) -> tuple[Any, Effects]:
    _check_bound(_names(axis_name), "pbroadcast")
    return x, _effects(_names(axis_name))


def _pbroadcast_transpose(ct: Any, x: Any, *, axis_name: Any, source: int) -> list[Any]:
    total = psum(ct, axis_name)
    aval = get_aval(total)
    here = lax.eq(axis_index(axis_name), np.int32(source))
    return [lax.select(lax.broadcast(here, aval.shape), total, lax.full(aval.shape, 0, aval.dtype))]


def _pbroadcast_batch(axis_data: AxisData, args: Any, dims: Any, *, axis_name: Any, source: int) -> Any:
    (x,), (d,) = args, dims
    if axis_data.name not in _names(axis_name):
        return pbroadcast_p.bind(x, axis_name=axis_name, source=source), d
    sizes = _sizes(axis_data, _names(axis_name))
    if not 0 <= source < math.prod(sizes):
        raise ValueError(f"pbroadcast source {source} is out of bounds for an axis of size {math.prod(sizes)}")
    for name, place in zip(_names(axis_name), np.unravel_index(source, sizes), strict=True):  # one after the other
        if name != axis_data.name:
            x = pbroadcast_p.bind(x, axis_name=(name,), source=int(place))
        elif d is not None:
            x, d = lax.index_in_dim(x, int(place), d, keepdims=False), None
    return x, d


ad.deflinear2(pbroadcast_p, _pbroadcast_transpose)
rules.fancy_batchers[pbroadcast_p] = _pbroadcast_batch


def pbroadcast(x: PyTree, axis_name: AxisName | Sequence[AxisName], source: int) -> PyTree:
    """The value that one example of a mapped axis has, for all of them.

    Args:
      x: array, or container of arrays.
      axis_name: name of the axis.
      source: the position of that example.

    Returns:
      a container like `x`.
    """

    def one(leaf: Any) -> Any:
        _check_bound(_names(axis_name), "pbroadcast")
        return pbroadcast_p.bind(leaf, axis_name=axis_name, source=source)

    return tree.tree_map(one, x)


def _sizes(axis_data: AxisData, names: Sequence[Any]) -> list[int]:
    """The sizes of axes, one of which is being mapped over."""
    return [axis_data.size if n == axis_data.name else state.axis_sizes[n] for n in names]


# Gathering and scattering
all_gather_p = _collective("all_gather", lambda params: params["axis_name"])


@all_gather_p.def_effectful_abstract_eval
def _all_gather_aval(x: Any, *, all_gather_dimension: int, axis_name: tuple, axis_index_groups: Any, axis_size: int,
                     tiled: bool) -> tuple[Any, Effects]:
    _check_bound(axis_name, "all_gather")
    shape = list(x.shape)
    if tiled:
        shape[all_gather_dimension] *= axis_size
    else:
        shape.insert(all_gather_dimension, axis_size)
    return x.update(shape=tuple(shape)), _effects(axis_name)


def _all_gather_transpose(ct: Any, x: Any, *, all_gather_dimension: int, axis_name: tuple, axis_index_groups: Any,
                          axis_size: int, tiled: bool) -> list[Any]:
    return [reduce_scatter_p.bind(ct, scatter_dimension=all_gather_dimension, axis_name=axis_name,
                                  axis_index_groups=axis_index_groups, axis_size=axis_size, tiled=tiled)]


def _all_gather_batch(axis_data: AxisData, args: Any, dims: Any, *, all_gather_dimension: int, axis_name: tuple,
                      axis_index_groups: Any, axis_size: int, tiled: bool) -> Any:
    (x,), (d,) = args, dims
    if axis_data.name not in axis_name:
        d = 0 if d is None else d
        x = batching.moveaxis(x, d, 0)
        return all_gather_p.bind(x, all_gather_dimension=all_gather_dimension + 1, axis_name=axis_name,
                                 axis_index_groups=axis_index_groups, axis_size=axis_size, tiled=tiled), 0
    if axis_index_groups is not None:
        if not axis_data.devices or len(axis_name) > 1:
            raise NotImplementedError("axis_index_groups not supported in vmap")
        if len({len(g) for g in axis_index_groups}) != 1:
            raise ValueError(f"axis_index_groups must all be the same size, got {axis_index_groups}")
        return within_groups(axis_data, x, d, axis_index_groups, lambda group, x: _all_gather_batch(
            group, (x,), (0,), all_gather_dimension=all_gather_dimension, axis_name=axis_name, axis_index_groups=None,
            axis_size=axis_size, tiled=tiled))
    x = batching.bdim_at_front(x, d, axis_data.size)
    shape = get_aval(x).shape[1:]
    sizes: list[int] = []
    at = axis_name.index(axis_data.name)
    for k, name in reversed(list(enumerate(axis_name))):
        # axes gathered so far stand in front, the mapped one behind those that come after it
        sizes = [*_sizes(axis_data, (name,)), *sizes]
        if k > at:
            x = all_gather_p.bind(x, all_gather_dimension=1, axis_name=(name,), axis_index_groups=None,
                                  axis_size=sizes[0], tiled=False)
        elif k < at:
            x = all_gather_p.bind(x, all_gather_dimension=0, axis_name=(name,), axis_index_groups=None,
                                  axis_size=sizes[0], tiled=False)
    x = lax.reshape(x, (axis_size, *shape)) if len(sizes) > 1 else x
    x = batching.moveaxis(x, 0, all_gather_dimension)
    if tiled:
        merged = list(shape)
        merged[all_gather_dimension] *= axis_size
        x = lax.reshape(x, merged)
    return x, None


ad.deflinear2(all_gather_p, _all_gather_transpose)
rules.fancy_batchers[all_gather_p] = _all_gather_batch

all_gather_invariant_p = _collective("all_gather_invariant", lambda params: params["axis_name"])


@all_gather_invariant_p.def_effectful_abstract_eval
def _all_gather_invariant_aval(x: Any, *, axis_name: tuple, **params: Any) -> tuple[Any, Effects]:
    out, effects = _all_gather_aval(x, axis_name=axis_name, **params)
    return out.update(vma=out.vma.difference(axis_name)), effects


def _own_part(ct: Any, x: Any, *, all_gather_dimension: int, axis_name: tuple, tiled: bool, **_: Any) -> list[Any]:
    """Cotangents of what is equal everywhere are whole: each takes its own part of them."""
    at, here = all_gather_dimension, axis_index(axis_name)
    if not tiled:
        return [lax.dynamic_index_in_dim(ct, here, at, keepdims=False)]
    size = x.aval.shape[at]
    return [lax.dynamic_slice_in_dim(ct, lax.mul(here, np.int32(size)), size, at)]


ad.deflinear2(all_gather_invariant_p, _own_part)
rules.fancy_batchers[all_gather_invariant_p] = _all_gather_batch


def all_gather(x: PyTree, axis_name: AxisName | Sequence[AxisName], *,
               axis_index_groups: Sequence[Sequence[int]] | None = None, axis: int = 0, tiled: bool = False,
               to: str = "varying") -> PyTree:
    """The values of all examples of a mapped axis, for each of them.

    Args:
      x: array, or container of arrays.
      axis_name: name of the axis or tuple of names.
      axis_index_groups: disjoint groups of positions that are gathered separately.
      axis: where the examples go in the result.
      tiled: whether they are concatenated along `axis` instead of stacked along a new one.
      to: what is known of the result over a mesh: that it may differ ("varying"), is equal ("invarying"), or is equal
        and its cotangents are still to be summed ("reduced").

    Returns:
      a container like `x`, equal for all examples of the axis (or of a group).

    Raises:
      ValueError: for an `axis` out of range, or another `to`.

    Example:
      >>> import styrax as jax
      >>> import styrax.numpy as jnp
      >>> jax.vmap(lambda x: jax.lax.all_gather(x, 'i'), axis_name='i')(jnp.array([1, 2]))
      Array([[1, 2],
             [1, 2]], dtype=int32)
    """
    if not (axes := _names(axis_name)):
        return x
    size = _group_size(axis_index_groups, axis_size(axes))
    if to not in ("invarying", "varying", "reduced"):
        raise ValueError("Got unexpected `to` value for `jax.lax.all_gather`. Allowed `to` values are: {'invarying', "
                         "'varying', 'reduced'}")

    def one(leaf: Any) -> Any:
        ndim = get_aval(leaf).ndim
        rank = ndim if tiled else ndim + 1
        if not -rank <= axis < rank:
            raise ValueError(f"axis {axis} is out of bounds for array of dimension {rank}")
        told = avals.manual and axis_index_groups is None  # types tell that the result is equal along the axes
        out = (all_gather_invariant_p if told else all_gather_p).bind(
            varying(leaf, axes) if told else leaf, all_gather_dimension=axis % rank, axis_name=axes,
            axis_index_groups=_groups(axis_index_groups), axis_size=size, tiled=tiled)
        if told and to == "reduced":
            return recast(out, axes, None, Mark.REDUCED)
        return varying(out, axes, spread=True) if told and to == "varying" else out

    return tree.tree_map(one, x)


reduce_scatter_p = _collective("reduce_scatter", lambda params: params["axis_name"])


@reduce_scatter_p.def_effectful_abstract_eval
def _reduce_scatter_aval(x: Any, *, scatter_dimension: int, axis_name: tuple, axis_index_groups: Any, axis_size: int,
                         tiled: bool) -> tuple[Any, Effects]:
    _check_bound(axis_name, "reduce_scatter")
    _check_scattered(x.shape[scatter_dimension], axis_size, tiled)
    block = (x.shape[scatter_dimension] // axis_size,) if tiled else ()
    shape = (*x.shape[:scatter_dimension], *block, *x.shape[scatter_dimension + 1:])
    return x.update(shape=shape), _effects(axis_name)


def _check_scattered(size: int, count: int, tiled: bool) -> None:
    if tiled and size % count:
        raise ValueError(f"tiled reduce_scatter operand scatter dimension size {size} must be divisible by "
                         f"shard_count {count}")
    if not tiled and size != count:
        raise ValueError(f"reduce_scatter operand scatter dimension size {size} must match shard count {count}")


def _reduce_scatter_transpose(ct: Any, x: Any, *, scatter_dimension: int, axis_name: tuple, axis_index_groups: Any,
                              axis_size: int, tiled: bool) -> list[Any]:
    return [all_gather_p.bind(ct, all_gather_dimension=scatter_dimension, axis_name=axis_name,
                              axis_index_groups=axis_index_groups, axis_size=axis_size, tiled=tiled)]


def _reduce_scatter_batch(axis_data: AxisData, args: Any, dims: Any, *, scatter_dimension: int, axis_name: tuple,
                          axis_index_groups: Any, axis_size: int, tiled: bool) -> Any:
    (x,), (d,) = args, dims
    if axis_data.name not in axis_name:
        x = batching.moveaxis(x, d, 0)
        return reduce_scatter_p.bind(x, scatter_dimension=scatter_dimension + 1, axis_name=axis_name,
                                     axis_index_groups=axis_index_groups, axis_size=axis_size, tiled=tiled), 0
    at = scatter_dimension
    if axis_index_groups is not None:
        if not axis_data.devices or len(axis_name) > 1:
            raise NotImplementedError("axis_index_groups not supported in vmap")
        return within_groups(axis_data, x, d, axis_index_groups, lambda group, x: _reduce_scatter_batch(
            group, (x,), (0,), scatter_dimension=at, axis_name=axis_name, axis_index_groups=None, axis_size=axis_size,
            tiled=tiled))
    shape = tuple(s for i, s in enumerate(get_aval(x).shape) if i != d)
    _check_scattered(shape[at], axis_size, tiled)
    if len(axis_name) > 1:  # dealt out along one axis after the other
        sizes = _sizes(axis_data, axis_name)
        block = (shape[at] // axis_size,) if tiled else ()
        x = lax.reshape(batching.bdim_at_front(x, d, axis_data.size),
                        (axis_data.size, *shape[:at], *sizes, *block, *shape[at + 1:]))
        d = 0
        for name, size in zip(axis_name, sizes, strict=True):
            (x, d) = _reduce_scatter_batch(axis_data, (x,), (d,), scatter_dimension=at, axis_name=(name,),
                                           axis_index_groups=None, axis_size=size, tiled=False)
        return x, d
    x = _times(x, axis_data.size) if d is None else lax.reduce_sum(x, (d,))
    if not tiled:
        return x, at
    return lax.reshape(x, (*shape[:at], axis_size, shape[at] // axis_size, *shape[at + 1:])), at


ad.deflinear2(reduce_scatter_p, _reduce_scatter_transpose)
rules.fancy_batchers[reduce_scatter_p] = _reduce_scatter_batch


def psum_scatter(x: PyTree, axis_name: AxisName | Sequence[AxisName], *, scatter_dimension: int = 0,
                 axis_index_groups: Sequence[Sequence[int]] | None = None, tiled: bool = False) -> PyTree:
    """The sum over a mapped axis, of which each example gets its own part.

    Args:
      x: array, or container of arrays.
      axis_name: name of the axis.
      scatter_dimension: the dimension that is dealt out.
      axis_index_groups: disjoint groups of positions that are summed and dealt out separately.
      tiled: whether each example gets a block of that dimension instead of one position of it.

    Returns:
      a container like `x`, of arrays without that dimension, or with `tiled` with a part of it.

    Raises:
      ValueError: where the dimension's size does not fit that of the axis.
    """
    if not (axes := _names(axis_name)):
        return x
    size = _group_size(axis_index_groups, axis_size(axes))

    def one(leaf: Any) -> Any:
        aval = get_aval(leaf)
        ndim = aval.ndim
        if aval.sums is not None and axis_index_groups is None:
            told = all(known_along(aval, n) is Mark.UNREDUCED for n in axes)
            leaf = recast(leaf, axes, Mark.UNREDUCED, Mark.VARYING) if told else varying(leaf, axes)
        dimension = _dimension("psum_scatter", scatter_dimension, ndim)
        return reduce_scatter_p.bind(leaf, scatter_dimension=dimension, axis_name=axes,
                                     axis_index_groups=_groups(axis_index_groups), axis_size=size, tiled=tiled)

    return tree.tree_map(one, x)


all_to_all_p = _collective("all_to_all", lambda params: _names(params["axis_name"]))


@all_to_all_p.def_effectful_abstract_eval
def _all_to_all_aval(x: Any, *, axis_name: Any, split_axis: int, concat_axis: int, axis_index_groups: Any,
                     tiled: bool) -> tuple[Any, Effects]:
    _check_bound(_names(axis_name), "all_to_all")
    size = _group_size(axis_index_groups, axis_size(_names(axis_name)))
    shape = list(x.shape)
    _check_split(shape[split_axis], size, axis_name)
    shape[split_axis] //= size
    shape[concat_axis] *= size
    return x.update(shape=tuple(shape)), _effects(_names(axis_name))


def _check_split(split: int, size: int, axis_name: Any) -> None:
    if split % size:
        raise ValueError(f"The size of all_to_all split_axis ({split}) has to be divisible by the size of "
                         f"the named axis {axis_name} ({size})")


def _all_to_all_transpose(ct: Any, x: Any, *, axis_name: Any, split_axis: int, concat_axis: int,
                          axis_index_groups: Any, tiled: bool) -> list[Any]:
    return [all_to_all_p.bind(ct, axis_name=axis_name, split_axis=concat_axis, concat_axis=split_axis,
                              axis_index_groups=axis_index_groups, tiled=tiled)]


def _all_to_all_batch(axis_data: AxisData, args: Any, dims: Any, *, axis_name: Any, split_axis: int, concat_axis: int,
                      axis_index_groups: Any, tiled: bool) -> Any:
    (x,), (d,) = args, dims
    names = _names(axis_name)
    x = batching.bdim_at_front(x, d, axis_data.size)
    if axis_data.name not in names:
        return all_to_all_p.bind(x, axis_name=axis_name, split_axis=split_axis + 1, concat_axis=concat_axis + 1,
                                 axis_index_groups=axis_index_groups, tiled=tiled), 0
    if axis_index_groups is not None:
        if not axis_data.devices or len(names) > 1:
            raise NotImplementedError("axis_index_groups not supported in vmap")
        return within_groups(axis_data, x, 0, axis_index_groups, lambda group, x: _all_to_all_batch(
            group, (x,), (0,), axis_name=axis_name, split_axis=split_axis, concat_axis=concat_axis,
            axis_index_groups=None, tiled=tiled))
    size = math.prod(_sizes(axis_data, names))
    shape = list(get_aval(x).shape[1:])
    _check_split(shape[split_axis], size, axis_name)
    if len(names) > 1:
        return _all_to_all_in_turn(axis_data, x, names, split_axis, concat_axis), 0
    block = shape[split_axis] // size
    # (from, ..., to, block, ...): `to` becomes the mapped axis, `from` goes in front of the concatenated one
    x = lax.reshape(x, (size, *shape[:split_axis], size, block, *shape[split_axis + 1:]))
    x = batching.moveaxis(x, split_axis + 1, 0)
    x = batching.moveaxis(x, 1, concat_axis + 1)
    shape[split_axis] = block
    shape[concat_axis] *= size
    return lax.reshape(x, (size, *shape)), 0


def _all_to_all_in_turn(axis_data: AxisData, x: Any, names: tuple[Any, ...], split: int, concat: int) -> Any:
    """`all_to_all` over several axes, one of which is the mapped one, in front of `x`: over one after the other."""
    sizes = _sizes(axis_data, names)
    size = math.prod(sizes)
    shape = list(get_aval(x).shape[1:])
    block = shape[split] // size
    x = lax.reshape(x, (axis_data.size, *shape[:split], *sizes, block, *shape[split + 1:]))
    for k, name in enumerate(names):  # to whom becomes from whom
        (x, _) = _all_to_all_batch(axis_data, (x,), (0,), axis_name=(name,), split_axis=split + k,
                                   concat_axis=split + k, axis_index_groups=None, tiled=True)
    x = lax.reshape(x, (axis_data.size, *shape[:split], size, block, *shape[split + 1:]))
    x = batching.moveaxis(x, split + 1, concat + 1)
    shape[split] = block
    shape[concat] *= size
    return lax.reshape(x, (axis_data.size, *shape))


ad.deflinear2(all_to_all_p, _all_to_all_transpose)
rules.fancy_batchers[all_to_all_p] = _all_to_all_batch


def all_to_all(x: PyTree, axis_name: AxisName | Sequence[AxisName], split_axis: int, concat_axis: int, *,
               axis_index_groups: Sequence[Sequence[int]] | None = None, tiled: bool = False) -> PyTree:
    """Transposes a dimension of the arrays with a mapped axis.

    Args:
      x: array, or container of arrays.
      axis_name: name of the axis.
      split_axis: the dimension that is dealt out to the examples.
      concat_axis: where what an example receives goes: a new dimension, or with `tiled` along an existing one.
      axis_index_groups: disjoint groups of positions within which this happens.
      tiled: whether blocks are dealt out and concatenated instead of single positions.

    Returns:
      a container like `x`, with `concat_axis` larger by as much as `split_axis` is smaller.

    Raises:
      ValueError: where the size of `split_axis` does not fit that of the axis, or `concat_axis` the arrays.
    """
    size = _group_size(axis_index_groups, axis_size(_names(axis_name)))
    groups = _groups(axis_index_groups)

    def one(leaf: Any) -> Any:
        aval: ShapedArray = get_aval(leaf)
        split = _dimension("all_to_all", split_axis, aval.ndim)
        if not tiled and concat_axis >= aval.ndim and aval.shape[split] == size:
            raise ValueError(f"axis {concat_axis} is out of bounds for an array of dimension {aval.ndim}")
        concat = _dimension("all_to_all", concat_axis, aval.ndim)
        if tiled or split == concat:
            if not tiled and aval.shape[split] != size:
                raise ValueError(_mismatch.format(size, aval.shape[split]))
            return all_to_all_p.bind(leaf, axis_name=axis_name, split_axis=split, concat_axis=concat,
                                     axis_index_groups=groups, tiled=tiled)
        if aval.shape[split] != size:
            raise ValueError(_mismatch.format(size, aval.shape[split]))
        if split < concat:
            concat += 1
            leaf = lax.expand_dims(leaf, (concat,))
        else:
            leaf = lax.expand_dims(leaf, (concat,))
            split += 1
        out = all_to_all_p.bind(leaf, axis_name=axis_name, split_axis=split, concat_axis=concat,
                                axis_index_groups=groups, tiled=tiled)
        return lax.squeeze(out, (split,))

    return tree.tree_map(one, x)


def _dimension(name: str, dim: int, ndim: int) -> int:
    """A dimension of an array, counted from the front. IndexError for one that it lacks."""
    if not -ndim <= dim < ndim:
        raise IndexError(f"{name} along dimension {dim} of an array of rank {ndim}: tuple index out of range")
    return dim % ndim


_mismatch = ("all_to_all requires the size of the mapped axis axis_name to equal x.shape[split_axis], but they are {} "
             "and {} respectively.")


def pswapaxes(x: PyTree, axis_name: AxisName | Sequence[AxisName], axis: int, *,
              axis_index_groups: Sequence[Sequence[int]] | None = None) -> PyTree:
    """Swaps a mapped axis with a dimension of the arrays, of the same size.

    Args:
      x: array, or container of arrays.
      axis_name: name of the axis.
      axis: the dimension.
      axis_index_groups: disjoint groups of positions within which this happens.

    Returns:
      a container like `x`.
    """
    return all_to_all(x, axis_name, axis, axis, axis_index_groups=axis_index_groups)


__all__ = [
    "all_gather", "all_gather_invariant_p", "all_gather_p",
    "all_to_all", "all_to_all_p", "pbroadcast", "pbroadcast_p", "ppermute", "ppermute_p",
    "pshuffle", "psum_scatter", "pswapaxes", "reduce_scatter_p",
]
