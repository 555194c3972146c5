"""Attributes that arrays and devices had once."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.arrays.array import Array
from ...core.arrays.devices import Device
from ..deprecations import warn


class DeviceBuffer:
    """The memory of an array on one device: `device()`, `to_py()`, and what the array has."""

    def __init__(self, array: Array):
        self._array = array

    def device(self) -> Device:
        return next(iter(self._array.devices()))

    def to_py(self) -> np.ndarray:
        return np.asarray(self._array)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._array, name)


def device_buffer(array: Array) -> DeviceBuffer:
    """The array on its one device; warns."""
    warn("Array.device_buffer", "Array.addressable_data(0), and its device Array.device", 3)
    return DeviceBuffer(array)


def device_buffers(array: Array) -> list[DeviceBuffer]:
    """The array on each of its devices; warns."""
    warn("Array.device_buffers", "[shard.data for shard in Array.addressable_shards]", 3)
    return [DeviceBuffer(shard.data) for shard in array.addressable_shards]


def _called(device: Device) -> Device:
    warn("Array.device()", "Array.device, a property", 2)
    return device


def install() -> None:
    """Has `Array.device()` work, which was a method once."""
    Device.__call__ = _called  # type: ignore[method-assign,assignment]
