"""The table of operations, by family. Importing a family imports `jax`, whichever that is in the process."""

from __future__ import annotations

import importlib

from ..rows import Row

FAMILIES = (
    "elementwise",
    "activations",
    "special",
    "reductions",
    "indexing",
    "shaping",
    "sorting",
    "contractions",
    "linalg",
    "windows",
    "fourier",
    "loops",
    "random",
)


def load(odd: bool = False) -> list[Row]:
    """All rows, in the order in which they are reported."""
    rows = [row for name in FAMILIES for row in importlib.import_module(f"{__name__}.{name}").FAMILY]
    return [row.odd() for row in rows] if odd else rows
