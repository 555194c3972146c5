"""What a compiler tells of the pieces of a program that it times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..tracing.source import SourceInfo

Origin = tuple[str, SourceInfo | None]  # an equation: its primitive, the user's line


class Place(NamedTuple):
    """A nest, or a loop or branch around nests."""

    depth: int  # how many loops and branches with places of their own are around it
    form: str  # the statement's kind
    origins: Sequence[Origin]  # the equations whose results it writes
    bytes: float  # that one execution reads or writes, those of a buffer at most once each
    flops: float  # of one execution, a transcendental function as that of its instructions
    dtype: str  # of most of what it computes; empty where it computes nothing
    around: int | None  # of a loop or branch around nests: the number of the place that has the time of its own
    turns: bool = False  # such a place
