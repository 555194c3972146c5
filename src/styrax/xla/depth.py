"""Room on the interpreter's stack for programs that are nested deeply.

Rules print what is inside of an operation while they print the operation, so each level of nesting takes some calls. A
program that could be traced is to be printed as well, and that takes up to three times as many calls a level.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

FACTOR = 4
_lock = threading.Lock()
_inside = 0  # threads that have the room
_before = 0  # the limit without it


@contextmanager
def room() -> Iterator[None]:
    """Inside, calls may be nested several times as deeply as the interpreter's limit says."""
    global _inside, _before
    with _lock:
        if not _inside:
            _before = sys.getrecursionlimit()
            sys.setrecursionlimit(FACTOR * _before)
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if not _inside:
                sys.setrecursionlimit(_before)
