"""The parts of an array that devices hold: views of its memory where a part is in one piece, copies elsewhere."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from .array import Array
from .devices import Device, Shard


def shards(array: Array) -> list[Shard]:
    """The parts of an array by the devices of its sharding."""
    sharding, shape = array.sharding, array.shape
    seen: dict[Any, int] = {}
    out = []
    for device, index in sharding.addressable_devices_indices_map(shape).items():
        place = bounds(index, shape)
        replica = seen.get(place, 0)
        seen[place] = replica + 1
        out.append(Shard(device, sharding, shape, partial(part, array, index, device), replica))
    return out


def bounds(index: tuple[slice, ...], shape: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    """Where a part begins and ends in each dimension."""
    return tuple(s.indices(d)[:2] for s, d in zip(index, shape, strict=True))


def part(array: Array, index: tuple[slice, ...], device: Device) -> Array:
    """A part of an array as an array on a device."""
    if not array._is_spread():
        return array if array.aval.given_sharding is None else array.placed(None)
    place = bounds(index, array.shape)
    local = tuple(stop - start for start, stop in place)
    aval = array.aval.update(shape=local, sharding=None)
    if local == array.shape:
        return Array(aval, array._live().on(device), True)
    value = array._value[index]
    if value.flags.c_contiguous and value.size:
        first = int(np.ravel_multi_index([start for start, _ in place], array.shape)) if place else 0
        buffer = array._live()
        out = device.client.adopt(buffer.address + first * array.itemsize, aval, buffer, device)
    else:
        out = device.client.put(np.ascontiguousarray(value), aval, device)
    out.committed = True
    return out


__all__ = ["bounds", "part", "shards"]
