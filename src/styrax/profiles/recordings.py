"""Recordings that run: what `TraceAnnotation` adds its spans to."""

from __future__ import annotations

import time
from typing import Protocol

from .spaces import Span


class Recording:
    """A recording: when it began, and the spans that have ended since."""

    __slots__ = ("spans", "start")

    def __init__(self) -> None:
        self.start = time.perf_counter_ns()
        self.spans: list[Span] = []


class OtherProcess(Protocol):
    """A process that is recorded along with this one."""

    def start(self) -> None: ...

    def stop(self) -> bytes: ...


active: list[Recording] = []
others: dict[int, OtherProcess] = {}
