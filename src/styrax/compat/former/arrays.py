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


def _buffer(array: Array) -> DeviceBuffer:
    warn("Array.device_buffer", "Array.addressable_data(0), and its device Array.device", 2)
    return DeviceBuffer(array)


def _buffers(array: Array) -> list[DeviceBuffer]:
    warn("Array.device_buffers", "[shard.data for shard in Array.addressable_shards]", 2)
    return [DeviceBuffer(shard.data) for shard in array.addressable_shards]


def _called(device: Device) -> Device:
    warn("Array.device()", "Array.device, a property", 2)
    return device


def install() -> None:
    """Gives the classes these attributes."""
    Array.device_buffer = property(_buffer)  # type: ignore[attr-defined]
    Array.device_buffers = property(_buffers)  # type: ignore[attr-defined]
    Device.__call__ = _called  # type: ignore[method-assign,assignment]
