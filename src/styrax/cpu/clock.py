"""Times of the nests of a compiled program, taken by native code between them."""

from __future__ import annotations

import ctypes
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..compile.instrumentation import CLOCK, instrumented
from ..core.programs.places import Place
from . import llvm
from .code import text

if TYPE_CHECKING:
    from .executable import Executable

# The table: the place that runs, since when, then for each place nanoseconds and executions.
_TEXT = """
@table = global ptr null
declare i32 @clock_gettime(i32, ptr)

define void @tick(i64 %place) nounwind {
  %time = alloca [2 x i64], align 8
  %failed = call i32 @clock_gettime(i32 CLOCK, ptr %time)
  %seconds = load i64, ptr %time
  %rest_at = getelementptr i64, ptr %time, i64 1
  %rest = load i64, ptr %rest_at
  %whole = mul i64 %seconds, 1000000000
  %now = add i64 %whole, %rest
  %all = load ptr, ptr @table
  %last = load i64, ptr %all
  %since_at = getelementptr i64, ptr %all, i64 1
  %since = load i64, ptr %since_at
  %spent = sub i64 %now, %since
  %rows = getelementptr i64, ptr %all, i64 2
  %last_at = getelementptr [2 x i64], ptr %rows, i64 %last
  %before = load i64, ptr %last_at
  %after = add i64 %before, %spent
  store i64 %after, ptr %last_at
  %count_at = getelementptr [2 x i64], ptr %rows, i64 %place, i64 1
  %count = load i64, ptr %count_at
  %more = add i64 %count, 1
  store i64 %more, ptr %count_at
  store i64 %place, ptr %all
  store i64 %now, ptr %since_at
  ret void
}
"""

_library: list[llvm.Library] = []
_lock = threading.Lock()  # one clock runs at a time


class Clock:
    """Nanoseconds and executions of each of `places` places while programs run that name them (`CLOCK`)."""

    def __init__(self, places: int):
        self._places = places
        self._table = (ctypes.c_int64 * (2 + 2 * (places + 1)))()

    def __enter__(self) -> Clock:
        _lock.acquire()
        if not _library:
            _library.append(_compiled())
        ctypes.c_void_p.from_address(_library[0].address("table")).value = ctypes.addressof(self._table)
        self.reset()
        return self

    def __exit__(self, *_: object) -> None:
        _lock.release()

    def reset(self) -> None:
        ctypes.memset(self._table, 0, ctypes.sizeof(self._table))
        self._table[0] = self._places  # what passes between calls belongs to no place

    def rows(self) -> list[tuple[int, int]]:
        """(nanoseconds, executions) of each place."""
        return [(self._table[2 + 2 * k], self._table[3 + 2 * k]) for k in range(self._places)]


def _compiled() -> llvm.Library:
    number = getattr(time, "CLOCK_MONOTONIC", 6 if sys.platform == "darwin" else 1)
    library = llvm.load(_TEXT.replace("CLOCK", str(number)), "clock", share=False)
    llvm.define({CLOCK: library.address("tick")})
    return library


@contextmanager
def clocked(executable: Executable) -> Iterator[tuple[Sequence[Place], Clock]]:
    """While it is open, calls of a program tell how long each of its nests takes: the same loops with clock calls in
    between."""
    program, places = instrumented(executable.program)
    with Clock(len(places)) as clock:
        library = text(program)[1].load(program.name)
        with executable.running(library):
            yield places, clock
