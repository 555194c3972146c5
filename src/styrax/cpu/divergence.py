"""Divergence analysis: which of the scalars that a vector loop declares are the same in all lanes.

A counter that the turns of an inner loop carry along is one number: places that are computed from it are contiguous
from lane to lane, and no vectors of indices are gathered by.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ..compile.ir.expr import Expr
from ..compile.ir.loopir import Close, Declare, Let, Set, Statement, While, statements


def uniform(body: Sequence[Statement], lane: Expr, written: Callable[[Expr], bool]) -> frozenset[Expr]:
    """The scalars declared in the body of a loop over lanes that are the same in all of them. `written` tells whether
    an expression reads what the loop writes."""
    inside = list(statements(body))
    declared = {s.target for s in inside if isinstance(s, Declare)}
    if not declared:
        return frozenset()
    varying = {lane, *(t for s in inside if isinstance(s, Close) for t in s.accumulator.targets)}
    values = list(_assigned(inside))
    loops = [s for s in inside if isinstance(s, While)]
    while True:
        found = {t for t, e in values if t not in varying and _varies(e, varying, written)}
        for s in loops:  # each lane has turns of its own
            if _varies(s.condition, varying, written):
                found |= {t for t, _ in _assigned(list(statements([s])))} - varying
        if not found:
            return frozenset(declared - varying)
        varying |= found


def _assigned(inside: Sequence[Statement]) -> Iterator[tuple[Expr, Expr]]:
    """Scalars, and what they are given."""
    for s in inside:
        if isinstance(s, Let) or isinstance(s, Declare) and s.value is not None:
            yield s.target, s.value  # type: ignore[misc]
        elif isinstance(s, Set):
            yield from zip(s.targets, s.values, strict=True)


def _varies(e: Expr, varying: set[Expr], written: Callable[[Expr], bool]) -> bool:
    return not e.deps.isdisjoint(varying) or written(e)


__all__ = ["uniform"]
