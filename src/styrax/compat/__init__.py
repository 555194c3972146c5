"""Programs written for JAX, unchanged."""

from .finder import install

__all__ = ["install"]
