"""Kinds of memory."""

from __future__ import annotations

from .lax.placing import Space

__all__ = ["Space"]
