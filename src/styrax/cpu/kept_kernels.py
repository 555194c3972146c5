"""Functions that programs call by name, found on disk without their texts: under keys that programs are kept with."""

from __future__ import annotations

from collections.abc import Iterable

from . import llvm

Name = tuple[str, bool]  # a function, and whether it is code of level `BRIEF` or below
Kept = tuple[bytes, str]  # where the code of one lies, and the name that it has there
_keys: dict[Name, Kept] = {}
_libraries: dict[Name, llvm.Library] = {}  # as long as the process lives


def load(ir_text: str, symbol: str, level: int) -> llvm.Library:
    """`llvm.load`; where the code lies on disk is known from then on."""
    library = llvm.load(ir_text, symbol, level=level)
    _keys[symbol, level <= llvm.BRIEF] = llvm.key_of(ir_text, level), symbol
    return library


def also(symbol: str, own: str, home: str, brief: bool) -> None:
    """The function that is asked for by the name `symbol` is that of its `own` name in the module of `home`."""
    if symbol != home and (home, brief) in _keys:
        _keys[symbol, brief] = _keys[home, brief][0], own


def keys(symbols: Iterable[str]) -> dict[Name, Kept]:
    """Where those of some functions lie of which that is known."""
    return {(s, brief): _keys[s, brief] for s in symbols for brief in (False, True) if (s, brief) in _keys}


def accept(found: dict[Name, Kept]) -> None:
    """Takes what `keys` gave in another process."""
    _keys.update(found)


def _address(symbol: str, brief: bool) -> int | None:
    name = symbol, brief
    if name not in _libraries:
        library = llvm.load_kept(*_keys[name], brief) if name in _keys else None
        if library is None:
            return None
        _libraries[name] = library
    return _libraries[name].address(_keys[name][1])


llvm.add_resolver(lambda symbol: _address(symbol, False))
llvm.add_resolver(lambda symbol: _address(symbol, True), brief=True)
