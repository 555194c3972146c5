"""The library below: its version."""

from __future__ import annotations

from ..version import JAX as __version__

__all__ = ["__version__"]
