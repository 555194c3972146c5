"""What is printed of arrays while a function runs at once on all devices of a mesh: what each device has."""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .mesh import Mesh


class _Running(threading.local):
    """The mesh, and the arrays that the function made so far, by their identity: others are not the devices'."""

    def __init__(self) -> None:
        self.mesh: Mesh | None = None
        self.made: dict[int, weakref.ref] = {}


running = _Running()


@contextlib.contextmanager
def over(mesh: Mesh | None) -> Iterator[None]:
    """Inside, a function runs at once on all devices of a mesh; on None, it is traced."""
    before = running.mesh, running.made
    running.mesh, running.made = mesh, {}
    try:
        yield
    finally:
        running.mesh, running.made = before


def plainly() -> contextlib.AbstractContextManager[None]:
    """Inside, arrays are printed as they are: callbacks are one device's."""
    return over(None)


def note(x: Any) -> None:
    """An array that the function made."""
    with contextlib.suppress(TypeError):  # values of the user's types may have no weak references
        running.made[id(x)] = weakref.ref(x)


def is_made(x: Any) -> bool:
    found = running.made.get(id(x))
    return running.mesh is not None and found is not None and found() is x


def text(at: Callable[[dict[Any, int]], Any]) -> str:
    """What all devices have, one after the other; `at` gives it by the device's place along each axis."""
    mesh = running.mesh
    assert mesh is not None
    names = f"({', '.join(map(str, mesh.axis_names))},)"
    with over(None):
        return "\n".join(f"On {device} at mesh coordinates {names} = {place}:\n"
                         f"{at(dict(zip(mesh.axis_names, place, strict=True)))}\n"
                         for place, device in np.ndenumerate(mesh.devices))


__all__ = ["is_made", "note", "over", "plainly", "running", "text"]
