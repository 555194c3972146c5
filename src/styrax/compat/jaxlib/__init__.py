"""`jaxlib`, as far as libraries use it."""

from __future__ import annotations

from ...version import JAX as __version__

__all__ = ["__version__"]
