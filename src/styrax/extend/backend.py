"""Platforms and their clients."""

from __future__ import annotations

from typing import Any

from ..core.arrays import backends as _registry
from ..core.arrays.backends import Backend
from ..core.arrays.devices import Device
from ..transforms.jit import clear_caches


def get_backend(platform: str | Backend | None = None) -> Backend:
    """The client of a platform, the default one for None. RuntimeError for an unknown platform."""
    return _registry.get(platform) if platform is None or isinstance(platform, str) else platform


def backends() -> dict[str, Any]:
    """The clients of all platforms, by name."""
    return {platform: _registry.get(platform) for platform in _registry.platforms()}


def clear_backends() -> None:
    """Forgets compiled programs. Arrays stay valid."""
    clear_caches()


def clear_in_memory_compilation_cache() -> None:
    """Forgets compiled programs in this process; those on disk stay."""
    clear_caches()


def get_default_device() -> Device:
    """The device that arrays are put on by default."""
    from ..core.settings.config import config

    return config.jax_default_device or _registry.get().devices()[0]
