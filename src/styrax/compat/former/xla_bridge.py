"""Platforms and their clients."""

from __future__ import annotations

from ...extend.backend import backends, get_backend
from ...placement import (
    default_backend,
    device_count,
    devices,
    local_device_count,
    local_devices,
    process_count,
    process_index,
)

__all__ = [
    "backends", "default_backend", "device_count", "devices", "get_backend", "local_device_count", "local_devices",
    "process_count", "process_index",
]
