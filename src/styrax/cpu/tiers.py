"""Tiered compilation: a program begins as code that LLVM generates quickly; called again, it goes on as optimised code.

Both come of one text and differ in LLVM's effort alone: results have the same bits. The optimised code is made by a
thread while the program is called on.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from ..compile.costs import instructions
from ..compile.pipeline import debugging
from ..compile.program import Program
from . import background, llvm

if TYPE_CHECKING:
    from .executable import Executable

INSTANT = 1500  # instructions of a whole call for which optimised code is not worth its making, ever
GAIN = 40e-6  # seconds, about, that LLVM saves with each expression of a program by generating code quickly
LOSS = 0.1e-9  # seconds, about, by which each estimated instruction of a call takes longer in such code
SEARCH = 32  # turns, about, of a library's loops that end by themselves: searches, insertions, series
HOT = 2  # calls that prove that there will be more


def first_level(program: Program) -> int:
    """LLVM's effort for the first calls of a program: `BRIEF` where the first one ends sooner by that."""
    if program.work < INSTANT:
        return llvm.BRIEF
    if program.builder.host_calls or debugging("-tiers"):
        return 1
    if program.least_work is not None and any(program.donated):
        return 1  # it may turn for long, and cannot be begun anew
    if program.generic:
        return llvm.BRIEF
    # Kernels that are called are no slower. Loops of unknown length are tried for a short time only.
    own = instructions(program.statements, endless=1.0, called=False, ending=SEARCH)
    return llvm.BRIEF if own * LOSS < len(program.builder.arena.nodes) * GAIN else 1


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
            _begin(self)

    def finish(self) -> None:
        """Gives the program its optimised code."""
        executable = self.executable()
        if executable is not None and executable.promotion is self:
            executable.take_code(llvm.load_units(self.units, executable.name, 1))


_waiting: deque[Promotion] = deque()
_changed = threading.Condition()
_working: list[bool] = []  # whether there is a thread for them


def _begin(promotion: Promotion) -> None:
    with _changed:
        _waiting.append(promotion)
        if _working:
            return
        _working.append(True)
    background.start(_work, "styrax-tiers")


def _work() -> None:
    while True:
        with _changed:
            # What waits at the end of the process is not needed any more; a fork does not wait for it.
            if not _waiting or background.forking() or not threading.main_thread().is_alive():
                _working.clear()
                _changed.notify_all()
                return
            promotion = _waiting.popleft()
        with suppress(llvm.CompileError, LookupError, MemoryError, OSError):  # the program goes on as it is
            promotion.finish()


def settle() -> None:
    """Waits for the programs that are being optimised."""
    with _changed:
        while _working:
            _changed.wait()


__all__ = ["INSTANT", "Promotion", "first_level", "settle"]
