"""Notes on operations for compilers (`set_xla_metadata`): equations keep those that they were written under."""

from __future__ import annotations

from ..settings.flags import Setting, State

Note = str | int | float | bool
Notes = tuple[tuple[str, Note], ...]

# None where nobody has made notes; no notes at all where someone has taken them back
notes = State("xla_metadata", None, traced=True)


class EquationContext:
    """What an equation was written under: the notes on it."""

    __slots__ = ("_notes",)

    def __init__(self, noted: Notes):
        self._notes = noted

    @property
    def xla_metadata(self) -> dict[str, Note]:
        return dict(self._notes)

    def manager(self) -> Setting:
        """Context manager: equations written inside are written under the same."""
        return Setting(notes, self._notes)


def current() -> EquationContext | None:
    """What equations are written under now; None where that is nothing."""
    noted = notes.value
    return None if noted is None else EquationContext(noted)


def extended(changes: dict[str, Note | None]) -> Setting:
    """Context manager: further notes are in force inside; a note of None takes one back."""
    found = {**dict(notes.value or ()), **changes}
    return Setting(notes, tuple((name, note) for name, note in sorted(found.items()) if note is not None))
