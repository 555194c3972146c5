"""Where equations come from: places in the user's program, and the scopes around them."""

from __future__ import annotations

from typing import Any

from ..core.programs.name_stack import (
    NameStack,
    current_name_stack,
    extend_name_stack,
    new_name_stack,
    reset_name_stack,
    set_name_stack,
    transform_name_stack,
)
from ..core.tracing.source import SourceInfo, current, inherit, register_exclusion
from ..core.tracing.source import summarize as _summarize


def new_source_info() -> SourceInfo:
    """A place that is not known."""
    return SourceInfo(None)


def summarize(source_info: SourceInfo, num_frames: int = 1) -> str:
    """The place as text."""
    return _summarize(source_info)


def user_context(info: SourceInfo | None, *, name_stack: NameStack | None = None) -> Any:
    """Context manager: what is written inside is said to come from a place, and to stand in scopes."""
    if info is not None and name_stack is not None:
        info = info.replace(name_stack)
    return inherit(info)


__all__ = [
    "NameStack", "SourceInfo", "current", "current_name_stack", "extend_name_stack", "new_name_stack",
    "new_source_info", "register_exclusion", "reset_name_stack", "set_name_stack", "summarize", "transform_name_stack",
    "user_context",
]
