"""Where a user's program stands: cheap capture of frames, resolved to text only when asked.

Capturing stores the code object and the offset of the instruction of the innermost frame that is not
ours. Files under this package, and those registered with ``register_exclusion``, count as ours.
"""

from __future__ import annotations

import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from types import CodeType, FrameType, TracebackType
from typing import Any, Protocol, TypeVar

from ..programs.name_stack import NameStack
from ..programs.name_stack import empty as no_scopes
from ..programs.name_stack import state as scopes

F = TypeVar("F", bound=Callable[..., Any])

_package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep
_ours: dict[CodeType, bool] = {}  # what has been found, by the paths below


class _Paths(list[str]):
    """The starts of names of files. What was found by them is forgotten when one comes or goes."""

    def append(self, path: str) -> None:
        super().append(path)
        _ours.clear()

    def remove(self, path: str) -> None:
        super().remove(path)
        _ours.clear()


_excluded = _Paths([_package])


def register_exclusion(path: str) -> None:
    """Has files whose names start with ``path`` hidden like our own."""
    _excluded.append(path)


def is_ours(code: CodeType) -> bool:
    """Whether the code object belongs to this package or to a registered path."""
    found = _ours.get(code)
    if found is None:
        if len(_ours) > 100_000:
            _ours.clear()
        name = code.co_filename
        found = name.startswith((*_excluded, "<frozen ", "<styrax "))
        _ours[code] = found
    return found


class SourceInfo:
    """A place in a user's program and the name stack that was in force there."""

    __slots__ = ("code", "lasti", "name_stack", "outer")

    def __init__(self, code: CodeType | None, lasti: int = -1, name_stack: NameStack = no_scopes, outer: tuple = ()):
        self.code = code
        self.lasti = lasti
        self.name_stack = name_stack
        self.outer = outer

    @property
    def file_name(self) -> str:
        return self.code.co_filename if self.code is not None else "<unknown>"

    @property
    def function_name(self) -> str:
        return self.code.co_qualname if self.code is not None else "<unknown>"

    @property
    def position(self) -> tuple[int, int]:
        """The line, counted from 1, and the column, counted from 0; (0, 0) where unknown."""
        if self.code is None:
            return 0, 0
        return _position(self.code, self.lasti)

    @property
    def line(self) -> int:
        return self.position[0]

    def summary(self) -> str:
        """``file.py:12:8 (function)``."""
        if self.code is None:
            return "<unknown>"
        line, column = self.position
        return f"{self.file_name}:{line}:{column} ({self.code.co_qualname})"

    def source_line(self) -> str:
        """The text of the line, where the file can be read."""
        import linecache

        return linecache.getline(self.file_name, self.line).strip() if self.code is not None else ""

    def replace(self, name_stack: NameStack) -> SourceInfo:
        return SourceInfo(self.code, self.lasti, name_stack, self.outer)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, SourceInfo)
            and self.code is other.code
            and self.lasti == other.lasti
            and self.name_stack == other.name_stack
        )

    def __hash__(self) -> int:
        return hash((self.code, self.lasti))

    def __repr__(self) -> str:
        return f"SourceInfo({self.summary()})"


unknown = SourceInfo(None)


def summarize(info: SourceInfo | None) -> str:
    """``file.py:12:8 (function)``, or an empty string where the place is not known."""
    return "" if info is None or info.code is None else info.summary()


def _position(code: CodeType, lasti: int) -> tuple[int, int]:
    if lasti < 0:
        return code.co_firstlineno, 0
    for i, (line, _, column, _) in enumerate(code.co_positions()):
        if i == lasti // 2:
            return line or code.co_firstlineno, column or 0
    return code.co_firstlineno, 0


def user_frame(depth: int = 1) -> FrameType | None:
    """The innermost frame that is not ours, counted from ``depth`` calls out, or None."""
    frame: FrameType | None = sys._getframe(depth)
    ours = _ours
    while frame is not None:
        code = frame.f_code
        found = ours.get(code)
        if not (is_ours(code) if found is None else found):
            return frame
        frame = frame.f_back
    return None


class _Inherited(threading.local):
    """The place that equations are said to come from while a program is run again, if any."""

    info: SourceInfo | None = None


inherited = _Inherited()


class inherit:
    """Context manager: equations written inside are said to come from ``info``, where that is known, and stand in its
    scopes inside of those that are open."""

    __slots__ = ("info", "outer", "stack")

    def __init__(self, info: SourceInfo | None):
        self.info = info

    def __enter__(self) -> None:
        self.outer = inherited.info
        self.stack = scopes.stack
        if self.info is not None:
            inherited.info = self.info
            scopes.stack = self.stack + self.info.name_stack

    def __exit__(self, *_: Any) -> None:
        inherited.info = self.outer
        scopes.stack = self.stack


def current(name_stack: NameStack | None = None) -> SourceInfo:
    """The place in the user's program that is running now, or that wrote the equation being run again."""
    stack = scopes.stack if name_stack is None else name_stack
    info = inherited.info
    if info is not None:
        return info if info.name_stack is stack else info.replace(stack)
    frame = user_frame(2)
    return SourceInfo(None, -1, stack) if frame is None else SourceInfo(frame.f_code, frame.f_lasti, stack)


def current_line() -> str:
    """``file:line (function): text`` of the user's line that is running, or an empty string."""
    frame = user_frame(2)
    if frame is None:
        return ""
    info = SourceInfo(frame.f_code, frame.f_lasti)
    text = info.source_line()
    return info.summary() + (f": {text}" if text else "")


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warns at the user's line instead of at ours."""
    frame: FrameType | None = sys._getframe(1)
    level = 2
    while frame is not None and is_ours(frame.f_code):
        frame = frame.f_back
        level += 1
    warnings.warn(message, category, stacklevel=level)


def describe_function(fun: Any) -> str:
    """``name at file.py:12`` of a function, seen through wrappers and partials."""
    while True:
        inner = getattr(fun, "__wrapped__", None) or getattr(fun, "func", None)
        if inner is None or (getattr(fun, "__code__", None) is not None and not hasattr(fun, "__wrapped__")):
            break
        fun = inner
    code = getattr(fun, "__code__", None)
    name = getattr(fun, "__name__", None) or type(fun).__name__
    place = f"{code.co_filename}:{code.co_firstlineno}" if code is not None else "<unknown>"
    return f"{name} at {place}"


# Tracebacks. An exception that leaves one of our entry points loses the frames that are ours: what
# remains is the user's call and the user's functions below it.

NOTE = ("--------------------\nFor simplicity, JAX has removed its internal frames from the traceback of the following "
        "exception. Set JAX_TRACEBACK_FILTERING=off to include these.")


UNMODIFIED = """The stack trace below excludes JAX-internal frames.
The preceding is the original exception that occurred, unmodified.

--------------------"""


class UnfilteredStackTrace(Exception):
    """The cause of an exception whose traceback was filtered, with the whole traceback."""


def _entries(entry: TracebackType | None) -> Iterator[TracebackType]:
    while entry is not None:
        yield entry
        entry = entry.tb_next


def filter_traceback(whole: TracebackType | None) -> TracebackType | None:
    """A traceback without the frames that are ours."""
    result = None
    for entry in reversed([e for e in _entries(whole) if not is_ours(e.tb_frame.f_code)]):
        result = TracebackType(result, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return result


def _with_callers(entry: TracebackType) -> TracebackType:
    """A traceback from the outermost caller on."""
    frame = entry.tb_frame.f_back
    while frame is not None:
        entry = TracebackType(entry, frame, frame.f_lasti, frame.f_lineno)
        frame = frame.f_back
    return entry


def _mark_frames(error: BaseException) -> None:
    """Has our frames marked as such, by which tools leave them out."""
    for entry in _entries(error.__traceback__):
        if is_ours(entry.tb_frame.f_code):
            entry.tb_frame.f_locals["__tracebackhide__"] = True


def _keep_whole(error: BaseException) -> None:
    """Takes our frames out of a traceback, and keeps the whole one as that of the cause."""
    if not isinstance(error.__cause__, UnfilteredStackTrace) and error.__traceback__ is not None:
        import traceback

        words = "".join(traceback.format_exception_only(error))
        whole = UnfilteredStackTrace(f"{words}\n{UNMODIFIED}").with_traceback(_with_callers(error.__traceback__))
        whole.__cause__, whole.__context__ = error.__cause__, error.__context__
        whole.__suppress_context__ = error.__suppress_context__
        error.__cause__, error.__context__ = whole, None
    error.__traceback__ = filter_traceback(error.__traceback__)


class Flag(Protocol):
    """A setting."""

    @property
    def value(self) -> Any: ...


filter_flag: Flag | None = None  # the settings put theirs here, which stand above this module


def filtering() -> bool:
    """Whether tracebacks are to be filtered: JAX_TRACEBACK_FILTERING is not off."""
    return filter_flag is None or filter_flag.value != "off"


def api_boundary(fun: F) -> F:
    """Wraps an entry point: exceptions leave it without our frames."""
    import functools

    return functools.wraps(fun)(boundary(fun))  # type: ignore[return-value]


def boundary(fun: F) -> F:
    """`api_boundary` of a function that gets its name and documentation elsewhere."""

    def entry(*args: Any, **kwargs: Any) -> Any:
        try:
            return fun(*args, **kwargs)
        except Exception as error:
            hide_frames(error)
            raise

    return entry  # type: ignore[return-value]


def hide_frames(error: BaseException, note: bool = True) -> None:
    """Takes our frames out of the traceback of ``error`` where filtering is on, and notes that where it does.

    Where the setting is ``tracebackhide``, they are only marked, and where it is ``remove_frames``, the exception's
    cause has the whole traceback.

    To be called where the exception is caught and raised again: the frames above follow. Exceptions during whose
    handling it was raised, and which nobody but us has seen, go as well; of those that are said to be its cause, our
    frames.
    """
    if not filtering():
        return
    mode = "" if filter_flag is None else filter_flag.value
    if mode == "tracebackhide":
        return _mark_frames(error)
    if mode == "remove_frames":
        return _keep_whole(error)
    error.__traceback__ = filter_traceback(error.__traceback__)
    seen: BaseException = error
    while seen.__cause__ is not None or seen.__context__ is not None:
        if seen.__cause__ is not None:
            seen = seen.__cause__
            seen.__traceback__ = filter_traceback(seen.__traceback__)
            continue
        context = seen.__context__
        assert context is not None
        shortened = filter_traceback(context.__traceback__)
        if shortened is None:
            seen.__context__ = context.__context__
        else:
            context.__traceback__ = shortened
            seen = context
    if note and NOTE not in getattr(error, "__notes__", ()):
        error.add_note(NOTE)
