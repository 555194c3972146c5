"""The summands of arrays that are still to be summed along axes of a mesh, as arrays of their own, and back."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from styrax.core.arrays.array import Array
from styrax.core.arrays.explicit import on_devices, with_mapped_axis
from styrax.core.arrays.mesh import Mesh
from styrax.core.arrays.shardings import NamedSharding
from styrax.core.arrays.summands import axes_of_sums, summands, summed_axes, type_of_summands, unsummed
from styrax.core.hooks import lax
from styrax.core.programs import rules
from styrax.core.programs.primitive import Primitive
from styrax.core.types.effects import no_effects
from styrax.transforms import ad, batching

from .placing import reshard_p, untold

if TYPE_CHECKING:
    from styrax.core.programs.lowering import Builder

# From an array to its summands `[*axes, *shape]`. Their cotangents are equal along the axes if `equal`; else they are
# shares of the cotangent.
summands_p = Primitive("summands")
summands_p.declare(movement=True)


@summands_p.def_effectful_abstract_eval
def _summands_aval(x: Any, *, equal: bool) -> Any:
    return type_of_summands(x), no_effects


@summands_p.def_impl
def _summands(x: Array, *, equal: bool) -> Array:
    return summands(x)


def _summands_batch(args: Sequence[Any], dims: Sequence[int], *, equal: bool) -> Any:
    (x,), (d,) = args, dims
    count = len(axes_of_sums(x.aval))
    return summands_p.bind(x, equal=equal), count + d


def _summands_transpose(ct: Any, x: Any, *, equal: bool) -> list[Any]:
    if type(ct) is ad.Zero:
        return [ad.Zero(x.aval.to_ct_aval())]
    axes = tuple(range(len(axes_of_sums(x.aval))))
    if equal:
        ends = [1 if i in axes else d for i, d in enumerate(ct.shape)]
        one = lax.squeeze(lax.slice(ct, (0,) * len(ends), ends), axes)
    else:
        one = lax.reduce_sum(ct, axes)
    return [reshard_p.bind(one, dst_sharding=x.aval.cotangent_sharding)]


def _summands_loops(b: Builder, x: Any, **_: Any) -> Any:
    """Where nothing is known of devices, what there is of an array is its sum: the first summand."""
    shape = b.avals_out[0].shape
    count = len(shape) - len(x.shape)

    def at(index: Any) -> Any:
        first = functools.reduce(b.and_, [b.eq(i, b.index(0)) for i in index[:count]])
        return b.load_if(first, x, index[count:], b.const(0, x.dtype))

    return b.value(shape, x.dtype, at)


def _summands_hlo(m: Any, x: Any, **_: Any) -> Any:
    sizes = m.avals_out[0].shape[:-len(x.shape) or None]

    def first(x: Any) -> list[Any]:
        return [lax.pad(lax.expand_dims(x, tuple(range(len(sizes)))), np.zeros((), x.dtype),
                        [*[(0, n - 1, 0) for n in sizes], *[(0, 0, 0)] * x.ndim])]

    return m.call_traced(first, x)[0]


rules.loops[summands_p] = _summands_loops
rules.stablehlos[summands_p] = _summands_hlo
batching.primitive_batchers[summands_p] = _summands_batch
ad.deflinear2(summands_p, _summands_transpose)

# The array whose summands these are, with the sharding.
unsummed_p = Primitive("unsummed")
unsummed_p.declare(movement=True)


@unsummed_p.def_effectful_abstract_eval
def _unsummed_aval(rows: Any, *, sharding: NamedSharding) -> Any:
    return rows.update(shape=rows.shape[len(summed_axes(sharding)):], sharding=sharding), no_effects


@unsummed_p.def_impl
def _unsummed(rows: Array, *, sharding: NamedSharding) -> Array:
    return unsummed(rows, sharding if isinstance(sharding.mesh, Mesh) else on_devices(sharding, rows._live().device))


def _unsummed_batch(args: Sequence[Any], dims: Sequence[int], *, sharding: NamedSharding) -> Any:
    (rows,), (d,) = args, dims
    count = len(summed_axes(sharding))
    if d < count:
        rows, d = batching.moveaxis(rows, d, count), count
    told = with_mapped_axis(sharding, d - count, None, None)
    return unsummed_p.bind(rows, sharding=told), d - count


def _unsummed_transpose(ct: Any, rows: Any, *, sharding: NamedSharding) -> list[Any]:
    if type(ct) is ad.Zero:
        return [ad.Zero(rows.aval)]
    shape = rows.aval.shape
    count = len(summed_axes(sharding))
    return [lax.broadcast_in_dim(untold(ct), shape, tuple(range(count, len(shape))))]


def _unsummed_loops(b: Builder, rows: Any, *, sharding: NamedSharding) -> Any:
    return rules.loops[lax.reduce_sum_p](b, rows, axes=_in_front(sharding), out_sharding=None)


def _in_front(sharding: NamedSharding) -> tuple[int, ...]:
    return tuple(range(len(summed_axes(sharding))))


rules.loops[unsummed_p] = _unsummed_loops
rules.stablehlos[unsummed_p] = lambda m, rows, *, sharding: m.call_traced(
    lambda x: [lax.reduce_sum(x, _in_front(sharding))], rows)[0]
batching.primitive_batchers[unsummed_p] = _unsummed_batch
ad.deflinear2(unsummed_p, _unsummed_transpose)
