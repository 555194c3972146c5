"""Which frames tracebacks leave out."""

from __future__ import annotations

from ...core.source import _excluded as _exclude_paths
from ...core.source import api_boundary, register_exclusion

__all__ = ["_exclude_paths", "api_boundary", "register_exclusion"]
