"""Divergence analysis: which of the scalars that a vector loop declares are the same in all lanes.

A counter that the turns of an inner loop carry along is one number: places that are computed from it are contiguous
from lane to lane, and no vectors of indices are gathered by.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ..compile.ir.expr import Expr
from ..compile.ir.loopir import Buffer, Close, Declare, Let, Set, Statement, While, statements


def uniform(body: list[Statement], lane: Expr, writes: Callable[[list[Statement]], frozenset[Buffer]],
            reads: Callable[[Expr], frozenset[Buffer]]) -> frozenset[Expr]:
    """The scalars declared in the body of a loop over lanes that are the same in all of them. `writes` and `reads` tell
    which memory statements write and an expression reads."""
    inside = list(statements(body))
    declared = {s.target for s in inside if isinstance(s, Declare)}
    if not declared:
        return frozenset()
    memory = writes(body)
    varying: set[Expr] = {lane, *(t for s in inside if isinstance(s, Close) for t in s.accumulator.targets)}

    def varies(e: Expr) -> bool:
        return not e.deps.isdisjoint(varying) or not memory.isdisjoint(reads(e))

    values = list(_assigned(inside))
    loops = [s for s in inside if isinstance(s, While)]
    while True:
        found = {t for t, e in values if t not in varying and varies(e)}
        for s in loops:  # each lane has turns of its own
            if varies(s.condition):
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


__all__ = ["uniform"]
