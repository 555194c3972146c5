"""Attributes of StableHLO operations as text, for the rules that print them."""

from __future__ import annotations

from collections.abc import Sequence


def i64_array(values: Sequence[int]) -> str:
    """`array<i64: 1, 2>`, the form of most dimension attributes."""
    return f"array<i64: {', '.join(map(str, values))}>" if len(values) else "array<i64>"
