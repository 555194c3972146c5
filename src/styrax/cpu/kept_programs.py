"""Compiled programs on disk, found by their jaxprs: a process that has them needs no compiler.

An entry is what the compiler made of a program but its machine code, which `llvm` finds by the text. It holds for as
long as the modules that it was made with are what they were: all of the package that were loaded then or, so that most
entries name the same ones, before.
"""

from __future__ import annotations

import os
import pickle
import re
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

import ml_dtypes
import numpy as np

from ..core.arrays import host_devices
from ..core.programs import program_keys
from ..core.programs.jaxpr import ClosedJaxpr
from ..core.settings import config
from ..core.types.dims import Recorder
from . import background, file_states, kept_kernels, libraries, llvm, llvm_library, runtime, store, tiles
from .executable import Compiled, calls_libraries
from .interface import Interface
from .units import Units

LARGE = 1 << 24  # bytes of constants, besides those of the jaxpr, from which a program is not kept
_BORN = time.time_ns()
_PACKAGE = __name__.partition(".")[0]
_FOLDER = os.path.dirname(os.path.dirname(__file__))  # other copies of the package have programs of their own
_stores: dict[str, tuple[store.Store, bool]] = {}
_writer = background.Backlog("styrax-keep", to_the_end=True, patience=0.3)
_USUAL = store.digest(b"modules", _FOLDER.encode())  # the entry that names the last list of modules
_CALLING = store.digest(b"libraries", _FOLDER.encode())  # one that is there where programs call BLAS or LAPACK
_ahead: list[threading.Event] = []  # set when that list has been looked at


def _place() -> tuple[store.Store, bool] | None:
    """Where programs are kept, and whether there were any when this process began; None where none are."""
    directory = config.cache_directory()
    if directory is None or not store.enabled() or config.config.debug or host_devices.cohort is not None:
        return None  # (processes that belong together have each a part of a program)
    found = _stores.get(directory)
    if found is None:
        programs = os.path.join(directory, "programs")
        found = _stores.setdefault(directory, (store.Store(programs), os.path.isdir(programs)))
    return found


def expected() -> bool:
    """Whether earlier processes have kept programs."""
    place = _place()
    return place is not None and place[1]


def look_ahead() -> None:
    """Looks in a thread at the files that programs on disk will be asked to be as old as, asks the system what such
    programs may use, and opens the libraries that they call."""
    done = threading.Event()

    def look() -> None:
        try:
            place = _place()
            if place is not None and (usual := place[0].get(_USUAL)) is not None:
                listed = _listed(place[0], usual)
                file_states.look([file for file, _ in listed])
                _sound[usual] = _unchanged(listed)
            tiles.available()
            if place is not None and _CALLING in place[0]:
                libraries.open_ahead()
        finally:
            done.set()

    if background.start(look, "styrax-look"):
        _ahead.append(done)


class Request:
    """A program that is wanted: looked for on disk, or compiled and kept there."""

    __slots__ = ("_closed", "_place", "_settings", "_sizes")

    def __init__(self, closed: ClosedJaxpr, name: str, donated: Sequence[bool], sizes: Recorder | None):
        self._place = _place()
        self._closed, self._sizes = closed, sizes
        if self._place is not None:
            machine = llvm.host()
            asked = None if sizes is None else (sizes.inputs, [*sizes.derived], [*sizes.guards], {**sizes.alias})
            self._settings = (_FOLDER, name, tuple(donated), asked, runtime.num_threads(), tiles.available(),
                              tuple(config.trace_context()), sys.version_info[:2], np.__version__,
                              ml_dtypes.__version__, machine.triple, machine.cpu, machine.features,
                              libraries.named_kernels())

    def _key(self) -> bytes | None:
        text = program_keys.key(self._closed)
        return None if text is None else store.digest(text.encode(), repr(self._settings).encode(),
                                                      llvm_library.identity())

    def find(self) -> Compiled | None:
        """What an earlier process compiled, where that holds for the sizes at hand. What it asked about them is written
        down as if it had been asked here."""
        if self._place is None or not self._place[1]:
            return None
        kept = self._place[0]
        key = self._key()
        payload = None if key is None else kept.get(key)
        if payload is None:
            return None
        # The list of modules comes first: only what this version of the package has written is read as that.
        if not _is_sound(kept, payload[: store.KEY_BYTES]):
            return None
        interface, constants, units, level, hasty, asked, kernels = pickle.loads(payload[store.KEY_BYTES :])
        if self._sizes is not None and not _admitted(self._sizes, *asked):
            return None
        kept_kernels.accept(kernels)
        own = self._closed.consts
        return Compiled(Interface(*interface), [own[c] if type(c) is int else c for c in constants],
                        Units(level, units), hasty, False)

    def keep(self, made: Compiled) -> None:
        """Writes to disk what was compiled, in a thread."""
        if self._place is None or made.calls_host:
            return
        numbers = {id(c): k for k, c in enumerate(self._closed.consts)}
        constants = [numbers.get(id(c), c) for c in made.constants]
        if sum(getattr(c, "nbytes", 0) for c in constants) > LARGE:
            return
        sizes = self._sizes
        asked = None if sizes is None else ([*sizes.derived], [*sizes.guards], {**sizes.alias})
        _writer.add(lambda: self._write(made, constants, asked))

    def _write(self, made: Compiled, constants: list[Any], asked: Any) -> None:
        assert self._place is not None
        kept, key = self._place[0], self._key()
        usual = kept.get(_USUAL)
        modules = _modules([] if usual is None else [file for file, _ in _listed(kept, usual)])
        if key is None or modules is None:
            return
        listed = pickle.dumps(modules)
        digest = store.digest(listed)
        if digest != usual or not _is_sound(kept, digest):
            _sound[digest] = kept.put(digest, listed) and kept.put(_USUAL, digest)
        texts = made.units.texts
        called = {word for text in texts for word in re.findall(r"@(\w+)", text)}
        if _CALLING not in kept and calls_libraries(texts):
            kept.put(_CALLING, b"")
        with suppress(pickle.PicklingError, TypeError, AttributeError):
            arrays = [c if type(c) is int else np.asarray(c) for c in constants]
            kept.put(key, digest + pickle.dumps((tuple(made.interface), arrays, texts, made.units.level, made.hasty,
                                                 asked, kept_kernels.keys(called))))


def _admitted(sizes: Recorder, derived: Any, guards: Any, alias: Any) -> bool:
    theirs = Recorder(sizes.values[: sizes.inputs])
    theirs.derived, theirs.guards = derived, guards
    values = theirs.complete(theirs.values)
    if not theirs.admits(values):
        return False
    sizes.values, sizes.derived, sizes.guards, sizes.alias = values, derived, guards, alias
    return True


def settle() -> None:
    """Waits for what is being written."""
    _writer.settle()


# ---------------------------------------------------------------------------------------------------------
# The modules that an entry was made with
# ---------------------------------------------------------------------------------------------------------

_States = list[tuple[str, file_states.State]]
_sound: dict[bytes, bool] = {}  # lists of modules -> whether they are what they were


def _modules(before: Iterable[str]) -> _States | None:
    """The package's modules that are loaded, and those in files that were listed `before`; None where one may have
    changed since."""
    loaded = {file for name, module in sys.modules.copy().items()  # other threads import
              if name.partition(".")[0] == _PACKAGE and (file := getattr(module, "__file__", None)) is not None}
    found = []
    for file in sorted(loaded.union(before)):
        state = file_states.state(file)
        if state is None and file not in loaded:  # an older version had it
            continue
        if state is None or state[0] >= _BORN:
            return None
        found.append((file, state))
    return found


def _listed(kept: store.Store, modules: bytes) -> _States:
    """A list of modules, by its digest; an empty one where there is none."""
    payload = kept.get(modules)
    return pickle.loads(payload) if payload is not None and store.digest(payload) == modules else []


def _unchanged(listed: _States) -> bool:
    return bool(listed) and all(file_states.state(file) == state for file, state in listed)


def _is_sound(kept: store.Store, modules: bytes) -> bool:
    for done in _ahead:
        done.wait()
    if modules not in _sound:
        _sound[modules] = _unchanged(_listed(kept, modules))
    return _sound[modules]
