"""Functions that programs call by name, found on disk without their texts: under keys that programs are kept with."""

from __future__ import annotations

from collections.abc import Iterable

from . import llvm

Name = tuple[str, bool]  # a function, and whether it is code of level `BRIEF` or below
_keys: dict[Name, bytes] = {}
_libraries: dict[Name, llvm.Library] = {}  # as long as the process lives


def load(ir_text: str, symbol: str, level: int) -> llvm.Library:
    """`llvm.load`; where the code lies on disk is known from then on."""
    library = llvm.load(ir_text, symbol, level=level)
    _keys[symbol, level <= llvm.BRIEF] = llvm.key_of(ir_text, level)
    return library


def keys(symbols: Iterable[str]) -> dict[Name, bytes]:
    """Where those of some functions lie of which that is known."""
    return {(s, brief): _keys[s, brief] for s in symbols for brief in (False, True) if (s, brief) in _keys}


def accept(found: dict[Name, bytes]) -> None:
    """Takes what `keys` gave in another process."""
    _keys.update(found)


def _address(symbol: str, brief: bool) -> int | None:
    name = symbol, brief
    if name not in _libraries:
        library = llvm.load_kept(_keys[name], symbol, brief) if name in _keys else None
        if library is None:
            return None
        _libraries[name] = library
    return _libraries[name].address(symbol)


llvm.add_resolver(lambda symbol: _address(symbol, False))
llvm.add_resolver(lambda symbol: _address(symbol, True), brief=True)
