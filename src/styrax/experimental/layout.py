"""How the elements of an array lie in memory."""

from __future__ import annotations

from ..core.arrays.layouts import Format, Layout

__all__ = ["Format", "Layout"]
