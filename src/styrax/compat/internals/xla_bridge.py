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

_ALIASES = {"gpu": ("cuda", "rocm", "oneapi")}


def expand_platform_alias(platform: str) -> list[str]:
    """The platforms that a name stands for."""
    return list(_ALIASES.get(platform, (platform,)))


def canonicalize_platform(platform: str) -> str:
    """A platform's own name. RuntimeError for a name of several of which none is there."""
    present = backends()
    for name in expand_platform_alias(platform):
        if platform not in _ALIASES or name in present:
            return name
    raise RuntimeError(f"Unknown backend: '{platform}' requested, but no platforms that are instances of {platform} "
                       f"are present. Platforms present are: {','.join(present)}")


__all__ = [
    "_backends", "backends", "canonicalize_platform", "default_backend", "device_count", "devices",
    "expand_platform_alias", "get_backend", "local_device_count",
    "local_devices",
    "process_count", "process_index",
]
