"""The version."""

from __future__ import annotations

from ...version import JAX as __version__

__version_info__ = tuple(int(part) for part in __version__.split("."))
