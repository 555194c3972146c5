"""What each device has of arrays that are still to be summed along axes of a mesh, or were, as arrays, and back.

Such an array has a summand on each device along the axes along which sums are still to be made, and a copy along those
along which they were made: the cotangents of copies are summands.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from styrax.core.arrays.array import Array
from styrax.core.arrays.explicit import on_devices, with_mapped_axis
from styrax.core.arrays.mesh import Mesh
from styrax.core.arrays.shardings import NamedSharding
from styrax.core.arrays.summands import summands, summed_axes, unsummed
from styrax.core.hooks import lax
from styrax.core.programs import rules
from styrax.core.programs.primitive import Primitive
from styrax.core.tracing.trace import get_aval
from styrax.core.types.effects import no_effects
from styrax.core.types.typing import AxisName
from styrax.transforms import ad, batching

if TYPE_CHECKING:
    from styrax.core.programs.lowering import Builder


def axes_apart(told: NamedSharding | None) -> tuple[AxisName, ...]:
    """The axes of the mesh along which sums are still to be made, or were, in the mesh's order."""
    if told is None or not (told.spec.unreduced or told.spec.reduced):
        return ()
    return tuple(n for n in told.mesh.axis_names if n in told.spec.unreduced or n in told.spec.reduced)


def copied(rows: Any, told: NamedSharding) -> Any:
    """What devices have, `[*axes, *shape]`, from the summands: a copy along the axes along which sums were made."""
    axes, shape = axes_apart(told), get_aval(rows).shape
    own = [i for i, n in enumerate(axes) if n in told.spec.unreduced]
    if len(own) == len(axes):
        return rows
    sizes = [told.mesh.shape[n] for n in axes]
    return lax.broadcast_in_dim(rows, (*sizes, *shape[len(own):]),
                                (*own, *range(len(axes), len(axes) + len(shape) - len(own))))


def of_copies(rows: Any, told: NamedSharding) -> Any:
    """The summands, from what devices have: the first of the copies."""
    equal = [i for i, n in enumerate(axes_apart(told)) if n in told.spec.reduced]
    if not equal:
        return rows
    ends = [1 if i in equal else d for i, d in enumerate(get_aval(rows).shape)]
    return lax.squeeze(lax.slice(rows, (0,) * len(ends), ends), equal)


# From an array to what devices have of it. The cotangents of summands are equal along their axes if `equal`, else
# shares of the cotangent.
device_values_p = Primitive("device_values")
device_values_p.declare(movement=True)


@device_values_p.def_effectful_abstract_eval
def _values_aval(x: Any, *, equal: bool) -> Any:
    told = x.given_sharding
    return x.update(shape=(*(told.mesh.shape[n] for n in axes_apart(told)), *x.shape)), no_effects


@device_values_p.def_impl
def _values(x: Array, *, equal: bool) -> Array:
    if not x._live().device.client.shared_memory:
        return device_values_p._backend_impl(x, equal=equal)
    told = x.aval.given_sharding
    assert told is not None
    rows = copied(summands(x), told)
    return rows if rows.aval.given_sharding is None else Array(rows.aval.update(sharding=None), rows._live())


def _values_batch(args: Sequence[Any], dims: Sequence[int], *, equal: bool) -> Any:
    (x,), (d,) = args, dims
    return device_values_p.bind(x, equal=equal), len(axes_apart(x.aval.given_sharding)) + d


def _values_transpose(ct: Any, x: Any, *, equal: bool) -> list[Any]:
    if type(ct) is ad.Zero:
        return [ad.Zero(x.aval.to_ct_aval())]
    told, shape = x.aval.given_sharding, ct.shape
    if not equal and told.spec.unreduced:
        shares = tuple(i for i, n in enumerate(axes_apart(told)) if n in told.spec.unreduced)
        whole = lax.reduce_sum(ct, shares)
        ct = lax.broadcast_in_dim(whole, shape, tuple(i for i in range(len(shape)) if i not in shares))
    return [of_device_values_p.bind(ct, sharding=x.aval.cotangent_sharding)]


def _values_loops(b: Builder, x: Any, **_: Any) -> Any:
    """Where nothing is known of devices, what there is of an array is its sum: the first summand."""
    told = b.avals_in[0].given_sharding
    axes = axes_apart(told)
    own = [i for i, n in enumerate(axes) if n in told.spec.unreduced]

    def at(index: Any) -> Any:
        if not own:
            return x.at(index[len(axes):])
        first = functools.reduce(b.and_, [b.eq(index[i], b.index(0)) for i in own])
        return b.load_if(first, x, index[len(axes):], b.const(0, x.dtype))

    return b.value(b.avals_out[0].shape, x.dtype, at)


def _values_hlo(m: Any, x: Any, **_: Any) -> Any:
    told = m.avals_in[0].given_sharding
    sizes = [told.mesh.shape[n] for n in summed_axes(told)]

    def rows(x: Any) -> list[Any]:
        first = lax.pad(lax.expand_dims(x, tuple(range(len(sizes)))), np.zeros((), x.dtype),
                        [*[(0, n - 1, 0) for n in sizes], *[(0, 0, 0)] * x.ndim])
        return [copied(first, told)]

    return m.call_traced(rows, x)[0]


rules.loops[device_values_p] = _values_loops
rules.stablehlos[device_values_p] = _values_hlo
batching.primitive_batchers[device_values_p] = _values_batch
ad.deflinear2(device_values_p, _values_transpose)

# The array of which devices have this, under the sharding.
of_device_values_p = Primitive("of_device_values")


@of_device_values_p.def_effectful_abstract_eval
def _array_aval(rows: Any, *, sharding: NamedSharding) -> Any:
    return rows.update(shape=rows.shape[len(axes_apart(sharding)):], sharding=sharding), no_effects


@of_device_values_p.def_impl
def _array(rows: Array, *, sharding: NamedSharding) -> Array:
    if not rows._live().device.client.shared_memory:
        return of_device_values_p._backend_impl(rows, sharding=sharding)
    told = sharding if isinstance(sharding.mesh, Mesh) else on_devices(sharding, rows._live().device)
    rows = of_copies(rows, sharding)
    return unsummed(rows, told) if sharding.spec.unreduced else rows.placed(told)


def _array_batch(args: Sequence[Any], dims: Sequence[int], *, sharding: NamedSharding) -> Any:
    (rows,), (d,) = args, dims
    count = len(axes_apart(sharding))
    if d < count:
        rows, d = batching.moveaxis(rows, d, count), count
    return of_device_values_p.bind(rows, sharding=with_mapped_axis(sharding, d - count, None, None)), d - count


def _array_transpose(ct: Any, rows: Any, *, sharding: NamedSharding) -> list[Any]:
    return [ad.Zero(rows.aval) if type(ct) is ad.Zero else device_values_p.bind(ct, equal=True)]


def _array_of(rows: Any, sharding: NamedSharding) -> Any:
    return lax.reduce_sum(of_copies(rows, sharding), tuple(range(len(summed_axes(sharding)))))


def _array_loops(b: Builder, rows: Any, *, sharding: NamedSharding) -> Any:
    axes = axes_apart(sharding)
    own = [i for i, n in enumerate(axes) if n in sharding.spec.unreduced]

    def at(index: Any) -> Any:
        given = dict(zip(own, index, strict=False))
        return rows.at([*(given.get(i, b.index(0)) for i in range(len(axes))), *index[len(own):]])

    shape = (*(rows.shape[i] for i in own), *rows.shape[len(axes):])
    summed = b.value(shape, rows.dtype, at)
    return rules.loops[lax.reduce_sum_p](b, summed, axes=tuple(range(len(own))), out_sharding=None) if own else summed


rules.loops[of_device_values_p] = _array_loops
rules.stablehlos[of_device_values_p] = lambda m, rows, *, sharding: m.call_traced(
    lambda x: [_array_of(x, sharding)], rows)[0]
batching.primitive_batchers[of_device_values_p] = _array_batch
ad.deflinear2(of_device_values_p, _array_transpose)

__all__ = ["axes_apart", "copied", "device_values_p", "of_copies", "of_device_values_p"]
