"""Functions that generated code calls, each compiled when a program first asks for it.

Each is a module of its own, so that the disk cache has it for every program. What a program will ask for waits in a
list, from which threads take one after another: some that are started for it, and the program's own when it comes to
link and finds functions missing.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from . import background, kept_kernels, llvm

Wanted = tuple[str, int]  # a function, and LLVM's effort
TURN = 0.0005  # seconds

_usual: list[float] = []  # how long a turn is otherwise, for each thread that works
_turns = threading.Lock()


@contextmanager
def _short_turns() -> Iterator[None]:
    """Lets threads take turns with Python more often: one that comes back from LLVM would wait for 5 ms each time while
    the program's own thread is at its loops."""
    with _turns:
        if not _usual:
            _usual.append(sys.getswitchinterval())
            sys.setswitchinterval(min(TURN, _usual[0]))
        else:
            _usual.append(_usual[0])
    try:
        yield
    finally:
        with _turns:
            usual = _usual.pop()
            if not _usual and sys.getswitchinterval() == min(TURN, usual):  # nobody has set it meanwhile
                sys.setswitchinterval(usual)


class Family:
    """Functions whose names begin with a prefix. `source` gives the text of one by its whole name, None for no name of
    the family or nothing that this host has. Where they are `tiered`, code of level `BRIEF` calls such ones."""

    def __init__(self, prefix: str, source: Callable[[str], str | None], tiered: bool = False):
        self.tiered = tiered
        self._prefix, self._source = f"{prefix}_", source
        self._libraries: dict[Wanted, llvm.Library | None] = {}
        self._waiting: list[Wanted] = []
        self._begun: set[Wanted] = set()  # by some thread, which is at it
        self._working = 0  # threads that take what waits
        self._changed = threading.Condition()
        llvm.add_resolver(self.address)
        if tiered:
            llvm.add_resolver(lambda symbol: self.address(symbol, llvm.BRIEF), brief=True)

    def compile_ahead(self, symbols: set[str], level: int, threads: int) -> None:
        """Compiles those of these functions that are not compiled yet in at most so many threads."""
        level = level if self.tiered and level == llvm.BRIEF else 1
        wanted = {(symbol, level) for symbol in symbols if symbol.startswith(self._prefix)}
        with self._changed:
            wanted -= self._libraries.keys() | self._begun | set(self._waiting)
            self._waiting += sorted(wanted)
            more = min(len(wanted), threads - self._working)
            self._working += max(more, 0)
        for _ in range(more):
            if not background.start(self._compile_waiting, "styrax-kernels"):  # who calls them compiles them
                with self._changed:
                    self._working -= 1

    def address(self, symbol: str, level: int = 1) -> int | None:
        """Where a function is; None where there is none of this name."""
        if not symbol.startswith(self._prefix):
            return None
        wanted = symbol, level
        if wanted not in self._libraries:
            with background.Work():
                self._provide(wanted)
        library = self._libraries[wanted]
        return None if library is None else library.address(symbol)

    def _provide(self, wanted: Wanted) -> None:
        """Compiles a function, or others that wait while another thread is at it."""
        while True:
            with self._changed:
                if wanted in self._libraries:
                    return
                if wanted in self._begun and not self._waiting:
                    self._changed.wait()
                    continue
                mine = self._waiting[0] if wanted in self._begun else wanted
                self._begin(mine)
            self._compile(mine)

    def _begin(self, wanted: Wanted) -> None:
        self._begun.add(wanted)
        if wanted in self._waiting:
            self._waiting.remove(wanted)

    def _compile_waiting(self) -> None:
        try:
            with _short_turns():
                while True:
                    with self._changed:
                        if not self._waiting:
                            return
                        wanted = self._waiting[0]
                        self._begin(wanted)
                    with suppress(llvm.CompileError):  # who asks for it is told
                        self._compile(wanted)
        finally:
            with self._changed:
                self._working -= 1

    def _compile(self, wanted: Wanted) -> None:
        """Compiles a function that was begun."""
        try:
            text = self._source(wanted[0])
            self._libraries[wanted] = None if text is None else kept_kernels.load(text, *wanted)
        finally:
            with self._changed:
                self._begun.discard(wanted)
                self._changed.notify_all()

