"""The state of programs that run in several processes."""

from __future__ import annotations

from ...distributed import State, global_state

__all__ = ["State", "global_state"]
