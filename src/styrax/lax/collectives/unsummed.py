"""The summands of arrays that are still to be summed along axes of a mesh, as arrays of their own, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from styrax.core.arrays.array import Array
from styrax.core.arrays.explicit import on_devices, with_mapped_axis
from styrax.core.arrays.shardings import NamedSharding
from styrax.core.arrays.summands import axes_of_sums, summands, summed_axes, type_of_summands, unsummed
from styrax.core.hooks import lax
from styrax.core.programs.primitive import Primitive
from styrax.core.types.effects import no_effects
from styrax.transforms import ad, batching

from .placing import reshard_p, untold

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
    one = lax.index_in_dim(lax.reshape(ct, (-1, *x.aval.shape)), 0, 0, False) if equal else lax.reduce_sum(ct, axes)
    return [reshard_p.bind(one, dst_sharding=x.aval.cotangent_sharding)]


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
    return unsummed(rows, on_devices(sharding, rows._live().device))


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


batching.primitive_batchers[unsummed_p] = _unsummed_batch
ad.deflinear2(unsummed_p, _unsummed_transpose)
