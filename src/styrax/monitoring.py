"""Events that the system and libraries record, and functions that listen to them."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

Listener = Callable[..., None]

_listeners: dict[str, list[Listener]] = {"event": [], "duration": [], "time_span": [], "scalar": []}


def record_event(event: str, **kwargs: str | int) -> None:
    """Tells listeners of an event, with further details by keyword."""
    for listener in tuple(_listeners["event"]):
        listener(event, **kwargs)


def record_event_duration_secs(event: str, duration: float, **kwargs: str | int) -> None:
    """Tells listeners how many seconds something took."""
    for listener in tuple(_listeners["duration"]):
        listener(event, duration, **kwargs)


def record_event_time_span(event: str, start_time: float, end_time: float, **kwargs: str | int) -> None:
    """Tells listeners when something began and ended, in seconds."""
    for listener in tuple(_listeners["time_span"]):
        listener(event, start_time, end_time, **kwargs)


def record_scalar(event: str, value: float | int, **kwargs: str | int) -> None:
    """Tells listeners a number."""
    for listener in tuple(_listeners["scalar"]):
        listener(event, value, **kwargs)


@contextmanager
def event_duration(event: str) -> Any:
    """Records how long the block takes."""
    start = time.perf_counter()
    yield
    record_event_duration_secs(event, time.perf_counter() - start)


def register_event_listener(callback: Listener) -> None:
    """Has `callback(event, **kwargs)` called for every event."""
    _listeners["event"].append(callback)


def register_event_duration_secs_listener(callback: Listener) -> None:
    """Has `callback(event, duration, **kwargs)` called for every duration."""
    _listeners["duration"].append(callback)


def register_event_time_span_listener(callback: Listener) -> None:
    """Has `callback(event, start_time, end_time, **kwargs)` called for every time span."""
    _listeners["time_span"].append(callback)


def register_scalar_listener(callback: Listener) -> None:
    """Has `callback(event, value, **kwargs)` called for every number."""
    _listeners["scalar"].append(callback)


def _unregister(kind: str, callback: Listener) -> None:
    if callback not in _listeners[kind]:
        raise ValueError(f"{callback} is not registered")
    _listeners[kind].remove(callback)


def unregister_event_listener(callback: Listener) -> None:
    """Ends what `register_event_listener` began. ValueError for a function that is not registered."""
    _unregister("event", callback)


def unregister_event_duration_listener(callback: Listener) -> None:
    """Ends what `register_event_duration_secs_listener` began. ValueError for a function that is not registered."""
    _unregister("duration", callback)


def unregister_event_time_span_listener(callback: Listener) -> None:
    """Ends what `register_event_time_span_listener` began. ValueError for a function that is not registered."""
    _unregister("time_span", callback)


def unregister_scalar_listener(callback: Listener) -> None:
    """Ends what `register_scalar_listener` began. ValueError for a function that is not registered."""
    _unregister("scalar", callback)


def clear_event_listeners() -> None:
    """Ends all listening."""
    for listeners in _listeners.values():
        listeners.clear()
