"""Arrays that are still to be summed along axes of a mesh: their summands, which differ by device.

Where devices share their memory, such an array is kept as the array of its summands, with these axes in front in the
mesh's order. Its shape is that of one summand; the value that it stands for is the sum along these axes.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from ..types.avals import ShapedArray
from .array import Array
from .devices import Sharding
from .explicit import sharding_of_type
from .shardings import NamedSharding, PartitionSpec


def summed_axes(told: Sharding | None) -> tuple[Hashable, ...]:
    """The axes of the mesh along which arrays of a sharding are still to be summed, in the mesh's order."""
    if not isinstance(told, NamedSharding) or not told.spec.unreduced:
        return ()
    return tuple(n for n in told.mesh.axis_names if n in told.spec.unreduced)


def axes_of_sums(aval: Any) -> tuple[Hashable, ...]:
    """The same for arrays of a type."""
    told = getattr(aval, "given_sharding", None)
    return () if told is None or not told.spec.unreduced else summed_axes(told)


def type_of_summands(aval: ShapedArray) -> ShapedArray:
    """The type `[*axes, *shape]` of all summands of an array, which tells no sharding."""
    axes = axes_of_sums(aval)
    if not axes:
        return aval if aval.given_sharding is None else aval.update(sharding=None)
    assert aval.given_sharding is not None
    sizes = aval.given_sharding.mesh.shape
    return aval.update(shape=(*(sizes[n] for n in axes), *aval.shape))


def by_summands(array: Array) -> bool:
    """Whether an array is kept as the array of its summands: where devices share their memory. XLA keeps each where it
    is."""
    return bool(axes_of_sums(array.aval)) and array._live().device.client.shared_memory


def sharding_of_summands(sharding: NamedSharding, ndim: int) -> NamedSharding:
    """The sharding of the array of all summands of arrays of a rank: each device has its own."""
    entries = (*summed_axes(sharding), *sharding.spec.partitions, *(None,) * (ndim - len(sharding.spec)))
    return sharding.update(spec=PartitionSpec(*entries))


def summands(array: Array) -> Array:
    """The summands of an array, as one array `[*axes, *shape]` over the same memory."""
    return Array(type_of_summands(array.aval), array._live())


def unsummed(rows: Array, sharding: NamedSharding) -> Array:
    """The array whose summands are these, under a sharding over a mesh with its devices."""
    count = len(summed_axes(sharding))
    out = Array(rows.aval.update(shape=rows.shape[count:], sharding=sharding_of_type(sharding, rows.shape[count:])),
                rows._live().on(sharding._device_assignment[0]), committed=True)
    out._sharding = sharding
    return out


__all__ = ["axes_of_sums", "by_summands", "sharding_of_summands", "summands", "summed_axes", "type_of_summands",
           "unsummed"]
