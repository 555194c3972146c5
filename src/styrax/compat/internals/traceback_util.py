"""Which frames tracebacks leave out."""

from __future__ import annotations

from types import FrameType

from ...core.tracing.source import UnfilteredStackTrace, api_boundary, is_ours, register_exclusion
from ...core.tracing.source import _excluded as _exclude_paths


def include_frame(frame: FrameType) -> bool:
    """Whether a frame is the user's."""
    return not is_ours(frame.f_code)


__all__ = ["UnfilteredStackTrace", "_exclude_paths", "api_boundary", "include_frame", "register_exclusion"]
