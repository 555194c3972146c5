"""Platforms and their clients."""

from __future__ import annotations

from ...core.arrays.backends import _loaded as _backends
from ..former.xla_bridge import (
    backends,
    default_backend,
    device_count,
    devices,
    get_backend,
    local_device_count,
    local_devices,
    process_count,
    process_index,
)

__all__ = [
    "_backends", "backends", "default_backend", "device_count", "devices", "get_backend", "local_device_count",
    "local_devices",
    "process_count", "process_index",
]
