"""Recording what a program spends its time on: the parts that it has annotated, as a trace that browsers can show."""

from __future__ import annotations

import functools
import gzip
import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ParamSpec, TypeVar

from .core.types.typing import PyTree

P = ParamSpec("P")
R = TypeVar("R")


class ProfileOptions:
    """Settings of a trace; there are none that change anything but which spans are kept.

    `python_tracer_level`, `host_tracer_level`: 0 keeps no annotations.
    """

    def __init__(self) -> None:
        self.python_tracer_level = 1
        self.host_tracer_level = 2
        self.device_tracer_level = 1


class _Recording:
    """A trace that is being recorded."""

    __slots__ = ("events", "folder", "keep", "start")

    def __init__(self, folder: str, keep: bool):
        self.folder = folder
        self.keep = keep
        self.start = time.perf_counter()
        self.events: list[dict[str, Any]] = []

    def write(self) -> str:
        """Writes the trace, in the layout that TensorBoard's profile plugin and Perfetto read; gives its path."""
        folder = os.path.join(self.folder, "plugins", "profile", time.strftime("%Y_%m_%d_%H_%M_%S"))
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, f"{socket.gethostname()}.trace.json.gz")
        names = [{"ph": "M", "pid": 1, "name": "process_name", "args": {"name": "/host:CPU"}}]
        with gzip.open(path, "wt") as file:
            json.dump({"displayTimeUnit": "ns", "traceEvents": [*names, *self.events]}, file)
        return path


_lock = threading.Lock()
_recording: list[_Recording] = []


def start_trace(log_dir: str | os.PathLike, create_perfetto_link: bool = False, create_perfetto_trace: bool = False,
                profiler_options: ProfileOptions | None = None) -> None:
    """Begins to record annotated spans.

    Args:
      log_dir: the folder that `stop_trace` writes to.
      create_perfetto_link, create_perfetto_trace: the trace can be opened in Perfetto in any case; no link is served.
      profiler_options: see `ProfileOptions`.

    Raises:
      RuntimeError: a trace is being recorded already.
    """
    with _lock:
        if _recording:
            raise RuntimeError("Profile has already been started. Only one profile may be run at a time.")
        keep = profiler_options is None or profiler_options.host_tracer_level > 0
        _recording.append(_Recording(os.fspath(log_dir), keep))


def stop_trace() -> None:
    """Ends the recording and writes it. RuntimeError where none is running."""
    with _lock:
        if not _recording:
            raise RuntimeError("No profile started")
        recording = _recording.pop()
    recording.write()


@contextmanager
def trace(log_dir: str | os.PathLike, create_perfetto_link: bool = False, create_perfetto_trace: bool = False,
          profiler_options: ProfileOptions | None = None) -> Iterator[None]:
    """Records annotated spans inside. See `start_trace`."""
    start_trace(log_dir, create_perfetto_link, create_perfetto_trace, profiler_options)
    try:
        yield
    finally:
        stop_trace()


class TraceAnnotation:
    """Names a span of time, as a context manager; further details are given by keyword."""

    __slots__ = ("details", "name", "start")

    def __init__(self, name: str, **kwargs: Any):
        self.name = name
        self.details = kwargs

    def __enter__(self) -> TraceAnnotation:
        self.start = time.perf_counter()
        return self

    def __exit__(self, *_: Any) -> None:
        end = time.perf_counter()
        for recording in _recording:
            if recording.keep:
                recording.events.append({
                    "ph": "X", "pid": 1, "tid": threading.get_ident(), "name": self.name,
                    "ts": (self.start - recording.start) * 1e6, "dur": (end - self.start) * 1e6,
                    "args": {k: str(v) for k, v in self.details.items()}})

    def __call__(self, fun: Callable) -> Callable:
        return annotate_function(fun, self.name, **self.details)


class StepTraceAnnotation(TraceAnnotation):
    """Names a step of a training loop: `StepTraceAnnotation("train", step_num=i)`."""

    __slots__ = ()


def annotate_function(func: Callable[P, R], name: str | None = None, **decorator_kwargs: PyTree) -> Callable[P, R]:
    """The function with its calls as named spans."""
    label = name or getattr(func, "__qualname__", None) or type(func).__name__

    @functools.wraps(func)
    def annotated(*args: Any, **kwargs: Any) -> Any:
        with TraceAnnotation(label, **decorator_kwargs):
            return func(*args, **kwargs)

    return annotated
