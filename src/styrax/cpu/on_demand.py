"""Functions that generated code calls, each compiled when a program first asks for it.

Each is a module of its own, so that the disk cache has it for every program. What a program will ask for is compiled
ahead (`ahead`), by threads, and by the program's own when it comes to link and finds functions missing.
"""

from __future__ import annotations

from collections.abc import Callable

from . import background, kept_kernels, llvm
from .ahead import Ahead

Wanted = tuple[str, int]  # a function, and LLVM's effort
Source = Callable[[str], str | None]
Name = Callable[[str], str]  # of another function


def _same(symbol: str) -> str:
    return symbol


class Family:
    """Functions whose names begin with a prefix. `source` gives the text of one by its whole name, None for no name of
    the family or nothing that this host has. Code of level `BRIEF` and below calls such of level `brief`: those whose
    names `quick` gives for theirs, with the same results and arguments, of which fewer have to be compiled. Those for
    which `home` gives one name stand in one module, that of the function of this name."""

    def __init__(self, prefix: str, source: Source, brief: int = llvm.BRIEF, quick: Name = _same, home: Name = _same):
        self._prefix, self._brief = f"{prefix}_", brief
        self._source, self._quick, self._home = source, quick, home
        self.ahead: Ahead[Wanted, llvm.Library | None] = Ahead(self._compiled, llvm.CompileError)
        llvm.add_resolver(self.address)
        llvm.add_resolver(lambda symbol: self.address(symbol, brief), brief=True)

    def compile_ahead(self, symbols: set[str], level: int, threads: int) -> None:
        """Compiles those of these functions that are not compiled yet in at most so many threads."""
        wanted = {s for s in symbols if s.startswith(self._prefix)}
        if not wanted:
            return
        brief, level = level <= llvm.BRIEF, max(level, 1)
        if brief:
            level, wanted = self._brief, set(map(self._quick, wanted))
        self.ahead.announce([(s, level) for s in sorted(set(map(self._home, wanted)))], threads)

    def address(self, symbol: str, level: int = 1) -> int | None:
        """Where a function is; None where there is none of this name."""
        if not symbol.startswith(self._prefix):
            return None
        brief = level <= llvm.BRIEF
        own = self._quick(symbol) if brief else symbol
        home = self._home(own)
        with background.Work():
            library = self.ahead.get((home, level))
        kept_kernels.also(symbol, own, home, brief)
        return None if library is None else library.address(own)

    def _compiled(self, wanted: Wanted) -> llvm.Library | None:
        symbol, level = wanted
        text = self._source(symbol)
        return None if text is None else kept_kernels.load(text, symbol, level)
