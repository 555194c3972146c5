"""The types of references."""

from __future__ import annotations

from ....core.avals import AbstractRef
from ....core.effects import AccumEffect, ReadEffect, RefEffect, WriteEffect

__all__ = ["AbstractRef", "AccumEffect", "ReadEffect", "RefEffect", "WriteEffect"]
