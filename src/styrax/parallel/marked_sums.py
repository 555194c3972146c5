"""Functions over devices of which types outside tell that arguments are still to be summed along mesh axes, or were."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.arrays.shardings import PartitionSpec
from ..core.tracing.trace import get_aval
from ..core.types.manual_axes import Sums, in_order
from ..lax.collectives.casts import recast
from ..transforms.flattening import FlatFunction
from ..transforms.marks import Mark


class Marked:
    """A flat function whose arguments are known to be still to be summed along mesh axes, or to have been.

    Results are seen as varying outside; `sums` is what was known of them.
    """

    __slots__ = ("fun", "specs", "sums")

    def __init__(self, fun: FlatFunction, specs: Sequence[PartitionSpec | None]):
        self.fun = fun
        self.specs = specs
        self.sums: list[Sums | None] | None = None

    def __call__(self, *args: Any) -> list[Any]:
        given = []
        for x, spec in zip(args, self.specs, strict=True):
            for axes, mark in () if spec is None else ((spec.unreduced, Mark.UNREDUCED), (spec.reduced, Mark.REDUCED)):
                x = recast(x, in_order(axes), Mark.VARYING, mark)
            given.append(x)
        outs = self.fun(*given)
        self.sums = [getattr(get_aval(x), "sums", None) for x in outs]
        found = []
        for x, sums in zip(outs, self.sums, strict=True):
            for axes, mark in zip(sums or (), (Mark.UNREDUCED, Mark.REDUCED), strict=False):
                x = recast(x, in_order(axes), mark, Mark.VARYING)
            found.append(x)
        return found

    def of_results(self, results: Sequence[Any]) -> Sequence[Sums | None]:
        return [None] * len(results) if self.sums is None else self.sums


__all__ = ["Marked"]
