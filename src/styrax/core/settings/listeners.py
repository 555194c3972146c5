"""Who listens to events, and how they are told."""

from __future__ import annotations

from collections.abc import Callable

Listener = Callable[..., None]

listeners: dict[str, list[Listener]] = {"event": [], "duration": [], "time_span": [], "scalar": []}


def record_event(event: str, **kwargs: str | int) -> None:
    """Tells listeners of an event, with further details by keyword."""
    for listener in tuple(listeners["event"]):
        listener(event, **kwargs)


def record_event_duration_secs(event: str, duration: float, **kwargs: str | int) -> None:
    """Tells listeners how many seconds something took."""
    for listener in tuple(listeners["duration"]):
        listener(event, duration, **kwargs)


def record_event_time_span(event: str, start_time: float, end_time: float, **kwargs: str | int) -> None:
    """Tells listeners when something began and ended, in seconds."""
    for listener in tuple(listeners["time_span"]):
        listener(event, start_time, end_time, **kwargs)


def record_scalar(event: str, value: float | int, **kwargs: str | int) -> None:
    """Tells listeners a number."""
    for listener in tuple(listeners["scalar"]):
        listener(event, value, **kwargs)
