"""Programs in flight that call Python: what they need until they have ended, and failures that no result tells."""

from __future__ import annotations

from ...core.tracing.errors import JaxRuntimeError
from .plugin import Plugin


class Effects:
    """The ends of such programs, as events."""

    __slots__ = ("_failed", "_pending", "_plugin")

    def __init__(self, plugin: Plugin):
        self._plugin = plugin
        self._pending: list[tuple[int, object, bool]] = []
        self._failed: list[JaxRuntimeError] = []

    def add(self, event: int, needed: object, effectful: bool) -> None:
        """Notes a program that has been started, and lets go of those that have ended.

        Args:
          event: its end.
          needed: what is kept until then.
          effectful: whether `wait` raises its failure; that of a pure one is told by its results.
        """
        pending, self._pending = self._pending, [(event, needed, effectful)]
        for item in pending:
            if self._plugin.call("Event_IsReady", event=item[0]).ready:
                self._end(item)
            else:
                self._pending.append(item)

    def _end(self, item: tuple[int, object, bool]) -> None:
        event, _, effectful = item
        try:
            self._plugin.wait(event)
        except JaxRuntimeError as error:
            if effectful:
                self._failed.append(error)

    def wait(self) -> None:
        """Waits for all of them. Raises JaxRuntimeError for the first that failed."""
        pending, self._pending = self._pending, []
        for item in pending:
            self._end(item)
        failed, self._failed = self._failed, []
        if failed:
            raise failed[0]
