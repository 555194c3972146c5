"""What takes longer than a second says on a terminal what it is, until it is done."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import threading
    from typing import TextIO

AFTER = 1.0  # seconds of silence
EVERY = 0.25  # seconds between two lines

stage = ""  # what is being done in it now: passes write their names here
_shown: list[str] = []  # what runs, the innermost last


def _terminal() -> TextIO | None:
    """Standard error where a person reads it."""
    stream = sys.stderr
    try:
        seen = stream is not None and stream.isatty() and os.environ.get("TERM") != "dumb"
    except ValueError:  # it is closed
        return None
    return stream if seen else None


class shown:
    """Context manager: names what runs inside it, on a line of standard error that is wiped out afterwards.

    There is no line where standard error is no terminal, and none in what lasts less than a second.
    """

    __slots__ = ("_done", "_stream", "_thread", "_what")

    _done: threading.Event

    def __init__(self, what: str):
        self._what = what

    def __enter__(self) -> None:
        global stage
        stage = ""
        self._stream = None if _shown else _terminal()  # the outermost tells
        _shown.append(self._what)
        if self._stream is not None:
            import threading

            self._done = threading.Event()
            self._thread = threading.Thread(target=self._tell, name="styrax-progress", daemon=True)
            try:
                self._thread.start()
            except RuntimeError:  # no thread begins as the interpreter ends
                self._stream = None

    def __exit__(self, *_: object) -> None:
        global stage
        _shown.remove(self._what)
        stage = ""
        if self._stream is not None:
            self._done.set()
            self._thread.join()

    def _tell(self) -> None:
        stream, seconds = self._stream, AFTER
        assert stream is not None
        if self._done.wait(AFTER):
            return
        while True:
            now = _shown[-1:] or [self._what]
            _write(stream, f"\r\x1b[K{now[0]}{f': {stage}' if stage else ''} ({seconds:.0f} s)")
            if self._done.wait(EVERY):
                break
            seconds += EVERY
        _write(stream, "\r\x1b[K")


def _write(stream: TextIO, text: str) -> None:
    try:
        stream.write(text)
        stream.flush()
    except (OSError, ValueError):  # nobody reads any more
        pass
