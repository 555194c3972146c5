"""Programs written for JAX, unchanged. See README.md."""

from __future__ import annotations

from .finder import install, installed

__all__ = ["install", "installed"]
