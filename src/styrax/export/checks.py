"""Checks that an export or a call of an exported program leaves out."""

from __future__ import annotations


class DisabledSafetyCheck:
    """A check that is not made."""

    __slots__ = ("_text",)

    def __init__(self, text: str):
        self._text = text

    @classmethod
    def platform(cls) -> DisabledSafetyCheck:
        """That a program runs on a platform that it was exported for."""
        return cls("platform")

    @classmethod
    def custom_call(cls, target_name: str) -> DisabledSafetyCheck:
        """That a program has no calls of a foreign function whose interface may change; "ALL" for any."""
        return cls(f"custom_call:{target_name}")

    def is_platform(self) -> bool:
        return self._text == "platform"

    def is_custom_call(self) -> str | None:
        """The name of the foreign function whose check is disabled; None for other checks."""
        kind, _, name = self._text.partition(":")
        return name if kind == "custom_call" else None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DisabledSafetyCheck) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __repr__(self) -> str:
        return self._text

    __str__ = __repr__
