"""Factors: which dimensions of operands and results of an operation are cut alike, for sharding propagation.

A dimension consists of factors, from major to minor; dimensions that share a factor are spread alike along it. The
trait `factors` is a rule `factors(operands, results, **params)` of the types that gives these, see `Factors`; what is
elementwise needs none. Operations of which nothing is said share nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

Dims = Sequence[Any]  # for each dimension a factor, a list of factors, or None: one of its own
Rule = Callable[..., "Factors"]


class Factors:
    """The factors of one operation.

    Args:
      operands, results: the factors of each operand and result, by dimension.
      late: factors that are followed only where no other tells: along which results are summed, or elements wander.
      sizes: of factors that are parts of dimensions; others are as large as the largest dimension they are.
      passing: whether the operation is followed before others, as elementwise ones are.
      reads: how often each operand is read by what the operation stands for.
      spread: whether results repeat the operand: these are followed from results to operands first.
    """

    __slots__ = ("operands", "results", "late", "sizes", "passing", "spread", "reads")

    def __init__(self, operands: Sequence[Dims], results: Sequence[Dims], *, late: Iterable[Any] = (),
                 sizes: Mapping[Any, int] | None = None, passing: bool = False, spread: bool = False, reads: int = 1):
        self.operands = operands
        self.results = results
        self.late = frozenset(late)
        self.sizes = sizes or {}
        self.passing = passing
        self.spread = spread
        self.reads = reads


def elementwise(operands: Sequence[Any], results: Sequence[Any], **_: Any) -> Factors:
    """Of operations on elements at the same index."""
    return Factors([range(len(x.shape)) for x in operands], [range(len(x.shape)) for x in results], passing=True)


def composed(operands: Sequence[Any], results: Sequence[Any], **_: Any) -> Factors:
    """Of elementwise operations that are made of several, which read the operands."""
    found = elementwise(operands, results)
    found.reads = 2
    return found


def apart(operands: Sequence[Any], results: Sequence[Any], **_: Any) -> Factors:
    """Of operations of which nothing is known."""
    return Factors([(None,) * len(_shape(x)) for x in operands], [(None,) * len(_shape(x)) for x in results])


def _shape(aval: Any) -> Sequence[Any]:
    return getattr(aval, "shape", ())


__all__ = ["Dims", "Factors", "Rule", "apart", "composed", "elementwise"]
