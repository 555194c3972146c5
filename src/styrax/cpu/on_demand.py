"""Functions that generated code calls, each compiled when a program first asks for it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

from . import background, llvm


class Family:
    """Functions whose names begin with a prefix. `source` gives the text of one by its whole name, None for no name of
    the family or nothing that this host has. Where they are `tiered`, code of level `BRIEF` calls such ones."""

    def __init__(self, prefix: str, source: Callable[[str], str | None], tiered: bool = False):
        self.tiered = tiered
        self._prefix, self._source = f"{prefix}_", source
        self._libraries: dict[tuple[str, int], llvm.Library] = {}
        self._begun: set[tuple[str, int]] = set()  # by threads
        self._lock = threading.RLock()
        llvm.add_resolver(self.address)
        if tiered:
            llvm.add_resolver(lambda symbol: self.address(symbol, llvm.BRIEF), brief=True)

    def compile_ahead(self, symbols: set[str], level: int = 1) -> None:
        """Compiles those of these functions that are not compiled yet in a thread."""
        level = level if self.tiered and level == llvm.BRIEF else 1
        wanted = {(symbol, level) for symbol in symbols if symbol.startswith(self._prefix)}
        wanted -= self._libraries.keys() | self._begun
        if wanted:
            self._begun.update(wanted)
            background.start(lambda: self._compile(sorted(symbol for symbol, _ in wanted), level), "styrax-kernels")

    def address(self, symbol: str, level: int = 1) -> int | None:
        """Where a function is; None where there is none of this name."""
        if not symbol.startswith(self._prefix):
            return None
        self._compile([symbol], level)
        library = self._libraries.get((symbol, level))
        return None if library is None else library.address(symbol)

    def _compile(self, symbols: Iterable[str], level: int) -> None:
        """Compiles functions as one module: LLVM's time has a part for each."""
        with background.Work(), self._lock:
            missing = [symbol for symbol in symbols if (symbol, level) not in self._libraries]
            texts = {symbol: text for symbol in missing if (text := self._source(symbol)) is not None}
            if texts:
                library = llvm.load(_joined(texts.values()), next(iter(texts)), level=level)
                self._libraries.update(dict.fromkeys([(symbol, level) for symbol in texts], library))


def _joined(texts: Iterable[str]) -> str:
    """Modules as one that declares what they declare once."""
    lines = [line for text in texts for line in text.split("\n")]
    declared = dict.fromkeys(line for line in lines if line.startswith("declare "))
    return "\n".join([*declared, *(line for line in lines if line not in declared)])


def compile_ahead(families: Iterable[Family], symbols: set[str], level: int) -> None:
    """Compiles the functions that a program calls in threads, while the program itself is compiled."""
    for family in families:
        family.compile_ahead(symbols, level)
