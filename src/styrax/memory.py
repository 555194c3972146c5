"""Kinds of memory."""

from __future__ import annotations

from .lax.collectives.placing import Space

__all__ = ["Space"]
