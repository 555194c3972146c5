"""When files last changed and how large they are, as this process saw them first: many at once in a thread, without the
interpreter's lock, while modules are loaded."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Sequence

import numpy as np

from . import runtime

State = tuple[int, int]  # nanoseconds, bytes
_seen: dict[str, State | None] = {}
_looking = threading.Lock()


def state(file: str) -> State | None:
    """A file's time and size; None where there is none."""
    if file not in _seen:
        try:
            info = os.stat(file)
            _seen[file] = info.st_mtime_ns, info.st_size
        except OSError:
            _seen[file] = None
    return _seen[file]


def look(files: Sequence[str]) -> None:
    """Looks at files that will be asked for."""
    if sys.platform != "linux":  # whose record of a file is known here
        for file in files:
            state(file)
        return
    names = b"".join([os.fsencode(file) + b"\0" for file in files])
    found = np.empty((len(files), 2), np.int64)
    function = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_int64, ctypes.c_void_p)(
        runtime.address("styrax_file_states"))
    function(names, len(files), found.ctypes.data)
    for file, (time, size) in zip(files, found.tolist(), strict=True):
        _seen.setdefault(file, None if time < 0 else (time, size))
