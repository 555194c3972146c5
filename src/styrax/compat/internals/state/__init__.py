"""References."""

from __future__ import annotations

from ....ref import AbstractRef

__all__ = ["AbstractRef"]
