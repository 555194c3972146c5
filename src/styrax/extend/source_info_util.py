"""Where equations come from."""

from __future__ import annotations

from ..core.source import SourceInfo, current, register_exclusion, summarize


def new_source_info() -> SourceInfo:
    """A place that is not known."""
    return SourceInfo(None)


__all__ = ["SourceInfo", "current", "new_source_info", "register_exclusion", "summarize"]
