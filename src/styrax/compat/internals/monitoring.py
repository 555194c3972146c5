"""Events, and the functions that listen to them."""

from __future__ import annotations

from typing import Any

from ... import monitoring as _public
from ...core.settings.listeners import Listener, listeners


def get_event_listeners() -> list[Listener]:
    """Those for events, as a list of its own."""
    return [*listeners["event"]]


def get_event_duration_listeners() -> list[Listener]:
    """Those for durations."""
    return [*listeners["duration"]]


def get_event_time_span_listeners() -> list[Listener]:
    """Those for time spans."""
    return [*listeners["time_span"]]


def get_scalar_listeners() -> list[Listener]:
    """Those for numbers."""
    return [*listeners["scalar"]]


def __getattr__(name: str) -> Any:
    return getattr(_public, name)


__all__ = [
    "get_event_duration_listeners", "get_event_listeners", "get_event_time_span_listeners", "get_scalar_listeners",
]
