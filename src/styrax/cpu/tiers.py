"""Tiered compilation: a program begins as code that LLVM generates quickly; called again, it goes on as optimised code.

Both come of one text and differ in LLVM's effort alone: results have the same bits. The optimised code is made by a
thread while the program is called on.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from . import background, llvm
from .units import Units

if TYPE_CHECKING:
    from .executable import Executable

HOT = 2  # calls that prove that there will be more


class Promotion:
    """The entry of a program that began quickly: counts its calls, and has it optimised when it proves hot."""

    __slots__ = ("begun", "calls", "entry", "executable", "library", "units")

    def __init__(self, executable: Executable, units: Sequence[str]):
        self.begun, self.calls = False, 0
        self.units = units
        self.entry, self.library = executable.entry, executable.library  # (whose code may be running for long)
        self.executable = weakref.ref(executable)
        executable.entry = executable.promotion = self

    def __call__(self, *words: int) -> int:
        self.count()
        return self.entry(*words)

    def count(self) -> None:
        self.calls += 1
        if self.calls >= HOT and not self.begun:
            self.begun = True
            _backlog.add(self._try)

    def _try(self) -> None:
        with suppress(llvm.CompileError, LookupError, MemoryError, OSError):  # the program goes on as it is
            self.finish()

    def finish(self) -> None:
        """Gives the program its optimised code."""
        executable = self.executable()
        if executable is not None and executable.promotion is self:
            executable.take_code(Units(1, self.units).load(executable.name))


_backlog = background.Backlog("styrax-tiers")


def settle() -> None:
    """Waits for the programs that are being optimised."""
    _backlog.settle()


__all__ = ["Promotion", "settle"]
