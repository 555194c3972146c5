"""Work that a fork must not cut in two: libraries that are being opened, code that is being compiled.

A child has only the thread that forked. What another thread was in the midst of stays so in it for ever: the loader's
and LLVM's locks are held by nobody, their tables are half written. So a fork waits for the end of such work in all
other threads, and none begins until it is over.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable


class Work:
    """A context: the thread that is in it has something in hand that must be whole."""

    __slots__ = ("thread",)

    def __init__(self) -> None:
        self.thread = 0  # none yet

    def __enter__(self) -> Work:
        me = threading.get_ident()
        with _changed:
            # Who has begun must get to the end: a fork waits for it.
            while _forking and _forking[0] != me and all(work.thread != me for work in _works):
                _changed.wait()
            self.thread = me
            _works.append(self)
        return self

    def __exit__(self, *error: object) -> None:
        with _changed:
            _works.remove(self)
            _changed.notify_all()


_works: list[Work] = []
_forking: list[int] = []  # the thread that forks
_changed = threading.Condition()


def start(function: Callable[[], object], name: str) -> bool:
    """Does such work in a thread of its own. False where none begins: from Python 3.12 on, as the interpreter ends."""
    work = Work()
    with _changed:
        _works.append(work)  # a fork right after this waits for it

    def run() -> None:
        work.thread = threading.get_ident()
        try:
            function()
        finally:
            work.__exit__()

    # Not a daemon: LLVM must not be at work while the process takes it apart.
    try:
        threading.Thread(target=run, name=name).start()
    except RuntimeError:
        work.__exit__()
        return False
    return True


class Backlog:
    """Things to do one after another in a thread, which is there while there are some. Where the process forks they
    wait for the next, and at its end they are left, unless they are to be done `to_the_end`. With `patience` the thread
    begins so many seconds later: whoever adds to it may be in a hurry, and only one of them runs Python."""

    __slots__ = ("_changed", "_name", "_patience", "_to_the_end", "_waiting", "_working")

    def __init__(self, name: str, to_the_end: bool = False, patience: float = 0.0):
        self._name, self._to_the_end, self._patience = name, to_the_end, patience
        self._waiting: deque[Callable[[], object]] = deque()
        self._changed = threading.Condition()
        self._working = False

    def add(self, function: Callable[[], object]) -> None:
        with self._changed:
            self._waiting.append(function)
            if self._working:
                return
            self._working = True
        if not start(self._work, self._name):
            self._working = False

    def _work(self) -> None:
        main, end = threading.main_thread(), time.monotonic() + self._patience
        while time.monotonic() < end and main.is_alive() and not forking():
            main.join(0.02)
        while True:
            with self._changed:
                left = forking() or not self._to_the_end and not main.is_alive()
                if not self._waiting or left:
                    self._working = False
                    self._changed.notify_all()
                    return
                function = self._waiting.popleft()
            function()
            del function  # with all that it holds

    def settle(self) -> None:
        """Waits until the thread has nothing to do."""
        with self._changed:
            while self._working:
                self._changed.wait()


def forking() -> bool:
    """Whether another thread waits to fork."""
    return bool(_forking) and _forking[0] != threading.get_ident()


def before_fork() -> None:
    """Waits for the work of other threads, and lets none begin."""
    me = threading.get_ident()
    with _changed:
        if me in _forking:
            return  # called before, by one that takes locks which such work may need
        while _forking:
            _changed.wait()
        _forking.append(me)
        try:
            while any(work.thread != me for work in _works):
                _changed.wait()
        except BaseException:
            _forking.clear()
            _changed.notify_all()
            raise


def after_fork_in_parent() -> None:
    with _changed:
        _forking.clear()
        _changed.notify_all()


def after_fork_in_child() -> None:
    global _changed
    _changed = threading.Condition()  # another thread of the parent may have held it
    _forking.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=before_fork, after_in_parent=after_fork_in_parent, after_in_child=after_fork_in_child)
