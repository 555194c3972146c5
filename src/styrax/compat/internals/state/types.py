"""The types of references."""

from __future__ import annotations

from ....core.types.avals import AbstractRef
from ....core.types.effects import AccumEffect, ReadEffect, RefEffect, WriteEffect

__all__ = ["AbstractRef", "AccumEffect", "ReadEffect", "RefEffect", "WriteEffect"]
