"""Programs in several modules of LLVM IR, which threads compile side by side, the first while others are written."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from . import llvm, runtime
from .ahead import Ahead


class Units:
    """The modules of one program, for LLVM's effort of a level. Only the last refers to the others, and its symbols are
    the program's."""

    def __init__(self, level: int, texts: Sequence[str] = ()):
        self.level, self.texts = level, [*texts]
        self._code = Ahead(partial(llvm.code, level=level), llvm.CompileError)

    def add(self, text: str) -> None:
        """A module before the last, of which a thread makes code meanwhile."""
        self.texts.append(text)
        self._begin([text])

    def _begin(self, texts: Sequence[str]) -> None:
        self._code.announce(texts, runtime.num_threads() - 1)

    def load(self, name: str) -> llvm.Library:
        """The code in the process."""
        *parts, main = self.texts
        if not parts:
            return llvm.load(main, name, level=self.level)
        self._begin([text for text in parts if not llvm.at_hand([text], self.level)])  # (else, no work for a thread)
        code = {text: self._code.get(text) for text in (main, *parts)}
        libraries = [llvm.load(text, name, level=self.level, blob=code[text]) for text in parts]
        symbols = {symbol: x.address(symbol) for x in libraries for symbol in x.symbols}
        library = llvm.load(main, name, symbols, self.level, blob=code[main])
        library.uses = libraries
        return library
