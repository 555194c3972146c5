"""Memory of others that buffers of a plugin lie in."""

from __future__ import annotations

import ctypes
import itertools

from .plugin import Plugin

_Notice = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)


class Adoption:
    """Keeps the owners of such memory until the plugin needs it no longer, which programs in flight may for longer than
    the arrays live."""

    __slots__ = ("_farewell", "_held", "_notice", "_numbers", "_plugin")

    def __init__(self, plugin: Plugin):
        self._plugin = plugin
        self._held: dict[int, object] = {}
        self._numbers = itertools.count(1)
        self._notice = _Notice(self._let_go)
        self._farewell = _Notice(self._dropped)

    def hold(self, owner: object, event: int) -> None:
        """Keeps an owner until an event, which is let go of."""
        number = next(self._numbers)
        self._held[number] = owner
        self._plugin.call("Event_OnReady", event=event, callback=ctypes.cast(self._notice, ctypes.c_void_p),
                          argument=number)
        self._plugin.call("Event_Destroy", handle=event)

    def told(self, owner: object) -> dict[str, object]:
        """Keeps an owner until a view of its memory goes, which is to be made with these arguments."""
        number = next(self._numbers)
        self._held[number] = owner
        return {"gone": ctypes.cast(self._farewell, ctypes.c_void_p), "argument": number}

    def _dropped(self, _: int | None, number: int) -> None:
        """Called by the plugin, on one of its threads."""
        del self._held[number]

    def _let_go(self, error: int | None, number: int) -> None:
        """Called by the plugin, on one of its threads."""
        del self._held[number]
        if error:
            self._plugin.destroy_error(error)

