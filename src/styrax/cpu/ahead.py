"""Things that are made ahead, by threads, of when they are asked for.

What was announced waits in a list, from which threads take one after another: some that are started for it, and whoever
asks for something that another thread is still at.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Generic, TypeVar

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


_changed = threading.Condition()
_waiting: list[tuple[Ahead, Any]] = []  # what was announced, each with who makes it
_working: list[None] = []  # threads that take what waits


def _work() -> None:
    """What such a thread does."""
    try:
        with _short_turns():
            while True:
                with _changed:
                    if not _waiting:
                        return
                    mine = _take()
                _make(*mine)
    finally:
        with _changed:
            _working.pop()


def _take() -> tuple[Ahead, Any]:
    """The first that waits, which is begun by this."""
    maker, key = _waiting.pop(0)
    maker.begun.add(key)
    return maker, key


def _make(maker: Ahead, key: Any) -> None:
    """Makes what was begun for somebody else."""
    with suppress(maker.error):
        maker.finish(key)


class Ahead(Generic[K, V]):
    """What `make` gives for each of some keys, made once. Where it fails in a thread with an `error`, it is made anew
    for who asks, who is told. Threads are common to all such: more than there are processors for would only take turns
    with the program's own."""

    def __init__(self, make: Callable[[K], V], error: type[Exception]):
        self._make, self.error = make, error
        self._made: dict[K, V] = {}
        self.begun: set[K] = set()  # by some thread, which is at it

    def announce(self, keys: Iterable[K], threads: int) -> None:
        """Has those that are not there yet made, while at most so many threads make anything."""
        with _changed:
            wanted = [k for k in keys if k not in self._made and k not in self.begun and (self, k) not in _waiting]
            _waiting.extend((self, k) for k in wanted)
            more = max(min(len(wanted), threads - len(_working)), 0)
            _working.extend([None] * more)
        for _ in range(more):
            if not background.start(_work, "styrax-ahead"):  # who asks makes them
                with _changed:
                    _working.pop()

    def get(self, key: K) -> V:
        """What belongs to a key. Makes it, or others that wait while another thread is at it."""
        while True:
            with _changed:
                if key in self._made:
                    return self._made[key]
                if key not in self.begun:
                    if (self, key) in _waiting:
                        _waiting.remove((self, key))
                    self.begun.add(key)
                    other = None
                elif _waiting:
                    other = _take()
                else:
                    _changed.wait()
                    continue
            if other is None:
                self.finish(key)
            else:
                _make(*other)

    def finish(self, key: K) -> None:
        """Makes what was begun."""
        try:
            self._made[key] = self._make(key)
        finally:
            with _changed:
                self.begun.discard(key)
                _changed.notify_all()
