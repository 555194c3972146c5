"""The form of a row of the table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from tests.fuzz.draw import Call, Draw

# exact: values that no rounding touched stay so. smooth: rounds. jump: not continuous, so of exact values only.
# cut: not continuous, and rounds. kink: continuous, but its slope is not, so of exact values only where a derivative is
# taken.
Kind = Literal["exact", "smooth", "jump", "cut", "kink"]


@dataclass(frozen=True)
class Row:
    primitive: str
    make: Callable[[Draw], Call]
    kind: Kind = "smooth"
    name: str = ""
    adds: tuple[str, ...] = ()  # other primitives that it leads to
    composed: bool = False  # of several operations: rounding inside is as if operands were rounded
    narrow: bool = False  # has no meaning in a wider precision
    needs_axis: bool = False  # runs inside a vmap with a name
    limit: str = ""  # why its operands are not arbitrary

    @property
    def title(self) -> str:
        return self.name or self.primitive
