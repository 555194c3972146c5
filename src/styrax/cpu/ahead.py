"""Things that are made ahead, by threads, of when they are asked for.

What was announced waits in a list, from which threads take one after another: some that are started for it, and whoever
asks for something that another thread is still at.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Generic, TypeVar

from . import background

K = TypeVar("K")
V = TypeVar("V")
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


class Ahead(Generic[K, V]):
    """What `make` gives for each of some keys, made once. Where it fails in a thread with an `error`, it is made anew
    for who asks, who is told."""

    def __init__(self, make: Callable[[K], V], name: str, error: type[Exception]):
        self._make, self._name, self._error = make, name, error
        self._made: dict[K, V] = {}
        self._waiting: list[K] = []
        self._begun: set[K] = set()  # by some thread, which is at it
        self._changed = threading.Condition()
        self.working = 0  # threads that take what waits

    def announce(self, keys: Iterable[K], threads: int) -> None:
        """Has those that are not there yet made, by at most so many threads."""
        with self._changed:
            wanted = [k for k in keys if k not in self._made and k not in self._begun and k not in self._waiting]
            self._waiting += wanted
            more = min(len(wanted), threads - self.working)
            self.working += max(more, 0)
        for _ in range(more):
            if not background.start(self._work, self._name):  # who asks makes them
                with self._changed:
                    self.working -= 1

    def get(self, key: K) -> V:
        """What belongs to a key. Makes it, or others that wait while another thread is at it."""
        while True:
            with self._changed:
                if key in self._made:
                    return self._made[key]
                if key in self._begun and not self._waiting:
                    self._changed.wait()
                    continue
                mine = self._waiting[0] if key in self._begun else key
                self._begin(mine)
            if mine == key:
                self._finish(mine)
            else:
                with suppress(self._error):
                    self._finish(mine)

    def _begin(self, key: K) -> None:
        self._begun.add(key)
        if key in self._waiting:
            self._waiting.remove(key)

    def _work(self) -> None:
        try:
            with _short_turns():
                while True:
                    with self._changed:
                        if not self._waiting:
                            return
                        key = self._waiting[0]
                        self._begin(key)
                    with suppress(self._error):
                        self._finish(key)
        finally:
            with self._changed:
                self.working -= 1

    def _finish(self, key: K) -> None:
        """Makes what was begun."""
        try:
            self._made[key] = self._make(key)
        finally:
            with self._changed:
                self._begun.discard(key)
                self._changed.notify_all()
