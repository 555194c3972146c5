"""The parts of an array that devices hold: views of its memory where a part is in one piece, copies elsewhere.

And arrays made of such parts.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from ..types.dtypes import ExtendedDType
from . import differing
from .array import Array
from .devices import Device, ManyDevices, Shard, Sharding, together
from .shardings import NamedSharding
from .summands import by_summands, sharding_of_summands, summands, summed_axes, unsummed


def shards(array: Array) -> list[Shard]:
    """The parts of an array by the devices of its sharding."""
    return [shard for shard in all_shards(array) if shard.device.client is not None]


def all_shards(array: Array) -> list[Shard]:
    """The same with the devices of other processes, whose parts cannot be reached."""
    sharding, shape = array.sharding, array.shape
    seen: dict[Any, int] = {}
    out = []
    if summed_axes(sharding):
        parts = {device: None if device.client is None else partial(_summand, array, index, device)
                 for device, index in sharding._indices(shape).items()}
        return [Shard(device, sharding, shape, data) for device, data in parts.items()]
    for device, index in sharding.devices_indices_map(shape).items():
        place = bounds(index, shape)
        replica = seen.get(place, 0)
        seen[place] = replica + 1
        data = None if device.client is None else partial(part, array, index, device)
        out.append(Shard(device, sharding, shape, data, replica))
    return out


def bounds(index: tuple[slice, ...], shape: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    """Where a part begins and ends in each dimension."""
    return tuple(s.indices(d)[:2] for s, d in zip(index, shape, strict=True))


def part(array: Array, index: tuple[slice, ...], device: Device) -> Array:
    """A part of an array as an array on a device."""
    there = array._live().device
    if isinstance(there, ManyDevices):
        return there.part(array, device)
    if not array._is_spread():
        return array if array.aval.given_sharding is None else array.placed(None)
    if differing.differs(array):
        array = differing.copy_on(array, device)
    place = bounds(index, array.shape)
    local = tuple(stop - start for start, stop in place)
    aval = array.aval.update(shape=local, sharding=None)
    if local == array.shape:
        return type(array)(aval, array._live().on(device), True)
    dtype: Any = aval.dtype
    if isinstance(dtype, ExtendedDType):  # keys, by their data
        data = part(array.physical, (*index, *map(slice, dtype.element_shape)), device)  # type: ignore[attr-defined]
        return type(array)(aval, data.buffer, True)
    value = array._value[index]
    if value.flags.c_contiguous and value.size:
        first = int(np.ravel_multi_index([start for start, _ in place], array.shape)) if place else 0
        buffer = array._live()
        out = device.client.adopt(buffer.address + first * array.itemsize, aval, buffer, device)
    else:
        out = device.client.put(np.ascontiguousarray(value), aval, device)
    out.committed = True
    return out


def _summand(array: Array, index: tuple[slice, ...], device: Device) -> Array:
    """What a device has of an array that is still to be summed along mesh axes."""
    if not by_summands(array):
        return part(array, index, device)
    rows = summands(array)
    rows._sharding = sharding_of_summands(array.sharding, array.ndim)
    found = part(rows, rows.sharding.devices_indices_map(rows.shape)[device], device)
    return type(array)(found.aval.update(shape=array.sharding.shard_shape(array.shape)), found._live(), True)


def _whole_of_summands(shape: tuple[int, ...], sharding: NamedSharding, parts: Mapping[Device, Array]) -> Array:
    ones = (1,) * len(summed_axes(sharding))
    of_all = sharding_of_summands(sharding, len(shape))
    rows = whole((*(of_all.mesh.shape[n] for n in summed_axes(sharding)), *shape), of_all, {
        d: type(x)(x.aval.update(shape=(*ones, *x.shape)), x._live(), True) for d, x in parts.items()})
    return unsummed(rows, sharding)


def whole(shape: tuple[int, ...], sharding: Sharding, parts: Mapping[Device, Array]) -> Array:
    """The array of a shape whose parts devices hold."""
    if (many := together(sharding._device_assignment)) is not None:
        return many.of_parts(shape, sharding, parts)
    if isinstance(sharding, NamedSharding) and sharding.spec.unreduced:
        return _whole_of_summands(shape, sharding, parts)
    indices = sharding.addressable_devices_indices_map(shape)
    first = parts[next(iter(indices))]
    if len(indices) > 1 and type(first) is Array and first._live().device.client.shared_memory:
        unlike = differing.of_unlike_parts(shape, sharding, parts, indices)
        if unlike is not None:
            return unlike
    if first.shape == shape:
        return first.placed(sharding)
    if isinstance(first.dtype, ExtendedDType):
        inner = (*shape, *first.dtype.element_shape)
        data = whole(inner, sharding, {d: x.physical for d, x in parts.items()})  # type: ignore[attr-defined]
        return type(first)(first.aval.update(shape=shape), data.buffer).placed(sharding)
    value = np.empty(shape, first.dtype)
    for device, index in indices.items():
        value[index] = parts[device]._value
    device = sharding._device_assignment[0]
    return device.client.put(value, first.aval.update(shape=shape, sharding=None), device).placed(sharding)


__all__ = ["all_shards", "bounds", "part", "shards", "whole"]
