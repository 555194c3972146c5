"""Python's collector of cycles, while programs are made.

Tracing and compiling make many objects and hardly a cycle: looking for some in the midst of it costs as much again.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_frozen: list[bool] = []  # whether others were seen to freeze objects; to ask is to count them all


@contextmanager
def paused() -> Iterator[None]:
    """No collections begin by themselves."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def age() -> None:
    """Counts all objects that there are as old, without a walk through them: what is left of compiling lives as long as
    the program."""
    if not _frozen and gc.get_freeze_count():
        _frozen.append(True)
    if not _frozen:  # (what others have frozen stays so)
        gc.freeze()
        gc.unfreeze()
