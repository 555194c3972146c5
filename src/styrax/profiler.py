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
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from .core.types.typing import PyTree
from .lazy import names
from .profiles.recordings import Recording, active, others
from .profiles.spaces import Span, serialize

P = ParamSpec("P")
R = TypeVar("R")


class ProfileOptions:
    """Settings of a trace, each of the type of its default.

    `host_tracer_level`: 0 keeps no annotations. `session_id`: the name of the folder of the files, by default the time.
    The others are kept for XLA's sake: they say how much of what devices do is recorded.
    """

    def __init__(self) -> None:
        self.python_tracer_level = 1
        self.host_tracer_level = 2
        self.enable_hlo_proto = True
        self.include_dataset_ops = True
        self.raise_error_on_start_failure = False
        self.duration_ms = 0
        self.start_timestamp_ns = 0
        self.repository_path = ""
        self.session_id = ""
        self.advanced_configuration: dict[str, bool | int | str] = {}

    def __setattr__(self, name: str, value: Any) -> None:
        kind = type(getattr(self, name, value))
        if not isinstance(value, kind):
            raise TypeError(f"ProfileOptions.{name} is of type {kind.__name__}, got {value!r} of type {type(value)}")
        super().__setattr__(name, value)


class _Trace:
    """A trace that is being recorded into a folder."""

    __slots__ = ("folder", "perfetto", "recording", "session")

    def __init__(self, folder: str, session: str, keep: bool, perfetto: bool):
        self.folder = folder
        self.session = session
        self.perfetto = perfetto
        self.recording = Recording()
        if keep:
            active.append(self.recording)
        for other in others.values():
            other.start()

    def events(self) -> dict[str, Any]:
        """The trace in the format that Perfetto and Chrome show."""
        names = [{"ph": "M", "pid": 1, "name": "process_name", "args": {"name": "/host:CPU"}}]
        spans = [{"ph": "X", "pid": 1, "tid": s.thread, "name": s.name, "ts": s.start / 1000, "dur": s.duration / 1000,
                  "args": {k: str(v) for k, v in s.details.items()}} for s in self.recording.spans]
        return {"displayTimeUnit": "ns", "traceEvents": [*names, *spans]}

    def write(self) -> None:
        """Ends the recording and writes it, in the layout that TensorBoard's profile plugin and Perfetto read."""
        if self.recording in active:
            active.remove(self.recording)
        folder = _folder_in(self.folder, self.session)
        host = socket.gethostname()
        (folder / f"{host}.xplane.pb").write_bytes(serialize(self.recording.spans, host))
        for pid, other in others.items():
            (folder / f"{host}_{pid}.xplane.pb").write_bytes(other.stop())
        events = gzip.compress(json.dumps(self.events()).encode())
        (folder / f"{host}.trace.json.gz").write_bytes(events)
        if self.perfetto:
            (folder / "perfetto_trace.json.gz").write_bytes(events)


_lock = threading.Lock()
_running: list[_Trace] = []


def start_trace(log_dir: str | os.PathLike, create_perfetto_link: bool = False, create_perfetto_trace: bool = False,
                profiler_options: ProfileOptions | None = None) -> None:
    """Begins to record annotated spans.

    Args:
      log_dir: the folder that `stop_trace` writes to.
      create_perfetto_link, create_perfetto_trace: whether `perfetto_trace.json.gz` is written too, to be opened at
        https://ui.perfetto.dev; no link is served.
      profiler_options: see `ProfileOptions`.

    Raises:
      RuntimeError: a trace is being recorded already.
    """
    with _lock:
        if _running:
            raise RuntimeError("Profile has already been started. Only one profile may be run at a time.")
        options = profiler_options or ProfileOptions()
        _running.append(_Trace(os.fspath(log_dir), options.session_id, options.host_tracer_level > 0,
                               create_perfetto_link or create_perfetto_trace))


def stop_trace() -> None:
    """Ends the recording and writes it. RuntimeError where none is running."""
    with _lock:
        if not _running:
            raise RuntimeError("No profile started")
        ended = _running.pop()
    ended.write()


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
        self.start = time.perf_counter_ns()
        return self

    def __exit__(self, *_: Any) -> None:
        end = time.perf_counter_ns()
        for recording in tuple(active):
            details = {k: v if isinstance(v, int | float | str) else str(v) for k, v in self.details.items()}
            recording.spans.append(Span(self.name, threading.get_ident(), self.start - recording.start,
                                        end - self.start, details))

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


class ProfileSession:
    """A recording that gives what it recorded instead of writing it to a folder."""

    def __init__(self, profiler_options: ProfileOptions | None = None):
        self._recording = Recording()
        if profiler_options is None or profiler_options.host_tracer_level > 0:
            active.append(self._recording)

    def stop(self) -> bytes:
        """Ends the recording: the trace, as an XSpace message for `ProfileData` and `export_profile_data`."""
        if self._recording in active:
            active.remove(self._recording)
        return serialize(self._recording.spans, socket.gethostname())


def export_profile_data(data: bytes, log_dir: str | os.PathLike) -> None:
    """Writes a trace that `ProfileSession.stop` gave, as `stop_trace` does for TensorBoard."""
    (_folder_in(log_dir) / f"{socket.gethostname()}.xplane.pb").write_bytes(data)


def _folder_in(log_dir: str | os.PathLike, session: str = "") -> Path:
    folder = Path(log_dir, "plugins", "profile", session or time.strftime("%Y_%m_%d_%H_%M_%S"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def device_memory_profile(backend: str | None = None) -> bytes:
    """How much memory the arrays that are alive take up, by type and device, as a compressed profile for pprof.

    Args:
      backend: the platform whose arrays are meant; by default all.
    """
    from .placement import live_arrays
    from .profiles import memory_profiles

    return memory_profiles.serialize(live_arrays(backend))


def save_device_memory_profile(filename: str | os.PathLike, backend: str | None = None) -> None:
    """Writes `device_memory_profile` to a file."""
    Path(filename).write_bytes(device_memory_profile(backend))


__getattr__, __dir__, _ = names(__name__, {
    "profiles.server": "register_subprocess start_server stop_server",
    "profiles.spaces": "ProfileData ProfileEvent ProfileLine ProfilePlane",
})
