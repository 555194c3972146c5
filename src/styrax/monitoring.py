"""Events that the system and libraries record, and functions that listen to them.

Under JAX's names it is told how long each function took to trace (`/jax/core/compile/jaxpr_trace_duration`) and to
compile (`/jax/core/compile/backend_compile_duration`), with `fun_name` by keyword.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import Any

from .core.settings.listeners import (
    Listener,
    listeners,
    record_event,
    record_event_duration_secs,
    record_event_time_span,
    record_scalar,
)


@contextmanager
def event_duration(event: str) -> Any:
    """Records how long the block takes."""
    start = time.perf_counter()
    yield
    record_event_duration_secs(event, time.perf_counter() - start)


def register_event_listener(callback: Listener) -> None:
    """Has `callback(event, **kwargs)` called for every event."""
    listeners["event"].append(callback)


def register_event_duration_secs_listener(callback: Listener) -> None:
    """Has `callback(event, duration, **kwargs)` called for every duration."""
    listeners["duration"].append(callback)


def register_event_time_span_listener(callback: Listener) -> None:
    """Has `callback(event, start_time, end_time, **kwargs)` called for every time span."""
    listeners["time_span"].append(callback)


def register_scalar_listener(callback: Listener) -> None:
    """Has `callback(event, value, **kwargs)` called for every number."""
    listeners["scalar"].append(callback)


def _unregister(kind: str, callback: Listener) -> None:
    if callback not in listeners[kind]:
        raise AssertionError(f"{callback} is not registered")
    listeners[kind].remove(callback)


def unregister_event_listener(callback: Listener) -> None:
    """Ends what `register_event_listener` began. AssertionError for a function that is not registered."""
    _unregister("event", callback)


def unregister_event_duration_listener(callback: Listener) -> None:
    """Ends what `register_event_duration_secs_listener` began. AssertionError for a function that is not registered."""
    _unregister("duration", callback)


def unregister_event_time_span_listener(callback: Listener) -> None:
    """Ends what `register_event_time_span_listener` began. AssertionError for a function that is not registered."""
    _unregister("time_span", callback)


def unregister_scalar_listener(callback: Listener) -> None:
    """Ends what `register_scalar_listener` began. AssertionError for a function that is not registered."""
    _unregister("scalar", callback)


def clear_event_listeners() -> None:
    """Ends all listening."""
    for each in listeners.values():
        each.clear()


__all__ = [
    "Listener", "clear_event_listeners", "event_duration", "record_event", "record_event_duration_secs",
    "record_event_time_span", "record_scalar", "register_event_duration_secs_listener", "register_event_listener",
    "register_event_time_span_listener", "register_scalar_listener", "unregister_event_duration_listener",
    "unregister_event_listener", "unregister_event_time_span_listener", "unregister_scalar_listener",
]
