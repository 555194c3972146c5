"""What a turn of a loop reaches by numbers that it reads: `x[i[k]]`. Processors do not foresee such places, but the
numbers of later turns can be read ahead (S. Ainsworth and T. M. Jones, Software prefetching for indirect memory
accesses, CGO 2017)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ..compile.ir.expr import INDEX, LOADS, Expr, Polynomial, coefficient, poly_terms, walk
from ..compile.ir.loads import loads_of
from ..compile.ir.loopir import Buffer, If, Loop, Statement, Store, Together
from .guards import Guards

AHEAD = 16  # turns of a loop that prefetching looks ahead
FAR = 1 << 20  # bytes
LINE = 64  # bytes that a prefetch brings
LINES = 4  # after so many processors see a stream
WORTH = 32  # bytes reached in a turn; where it is fewer, processors get to later turns by themselves


class Turning(NamedTuple):
    """A loop's variable, its step, and where it ends, as a name or number in LLVM's IR."""

    var: Expr
    step: int
    end: str


def reached(body: Sequence[Statement], var: Expr, guards: Guards) -> dict[tuple[Buffer, Expr], int]:
    """Far buffers and the places there that turns of a loop reach some turns later (those of the loop around, where it
    turns less often), at the first turns of the loops inside, with how many elements are reached from there on. What
    the places are read from is read in every turn."""
    found: dict[tuple[Buffer, Expr], int] = {}
    read: set[Expr] | None = None
    for buffer, place, inside in _far_accesses(body, {}):
        if var in place.deps:
            read = _always_read(body) if read is None else read
            row = _row(guards.split(place)[0], var, inside, read, guards)
            if row is not None:
                first, count = row
                found[buffer, first] = max(found.get((buffer, first), 0), count)
    return found


def _always_read(body: Sequence[Statement]) -> set[Expr]:
    parts = [part for s in body for part in (s.body if isinstance(s, Together) else (s,))]
    return {n for s in parts for n in loads_of(s.exprs())}


def is_far(buffer: Buffer) -> bool:
    """Whether a buffer is so large that its elements are expected to lie in no near cache."""
    return isinstance(buffer.size, int) and buffer.size * buffer.dtype.itemsize >= FAR


def _far_accesses(body: Sequence[Statement], inside: dict[Expr, int]
                  ) -> Iterator[tuple[Buffer, Expr, dict[Expr, int]]]:
    """Buffer, place, and the loops around inside, with their extents."""
    for s in body:
        if isinstance(s, Store) and is_far(s.buffer):
            yield s.buffer, s.offset, inside
        for n in loads_of([e for e in s.exprs() if any(map(is_far, e.reads))]):
            if n.op == "load" and is_far(n.attr[0]):
                yield n.attr[0], n.args[0], inside
        if isinstance(s, Loop) and isinstance(s.extent, int):
            yield from _far_accesses(s.body, {**inside, s.var: s.extent})
        elif isinstance(s, If | Together):
            for part in s.bodies():
                yield from _far_accesses(part, inside)


def _row(place: Expr, var: Expr, inside: dict[Expr, int], read: set[Expr], guards: Guards) -> tuple[Expr, int] | None:
    """The place with the loops inside at their first turns, and how many elements on from there they reach; None where
    no numbers lead there that every turn reads one after the other."""
    arena, count, leading = guards.arena, 1, []
    first: Polynomial = {}
    for m, c in poly_terms(place).items():
        if any(a in inside for a in m):
            count = max(count, inside[m[0]] if len(m) == c == 1 else 1)
            continue
        first[m] = c
        leading += [a for a in m if a is not var and var in a.deps]
    numbers = {n for n in walk(leading) if n.op in LOADS}
    if not numbers or any(a.deps & inside.keys() for a in leading):
        return None
    later = {n: there for n in numbers & read if (there := _later(n, var, guards)) is not None}
    if len(later) < len(numbers):
        return None
    return arena.substitute(arena.poly(first), {var: arena.iadd(var, AHEAD)}, later), count


def _later(number: Expr, var: Expr, guards: Guards) -> Expr | None:
    """A number that is read some turns later, or the last one."""
    arena, (buffer, *_), (place,) = guards.arena, number.attr, number.args
    step = coefficient(arena, place, var)
    if (number.op != "load" or step is None or step.op != "const" or step.attr < 1 or guards.under(place)
            or not isinstance(buffer.size, int) or buffer.size < 2 * AHEAD):
        return None
    last = buffer.size - 1
    there = arena.node("min", (arena.iadd(place, AHEAD * step.attr), arena.int(last)), INDEX, None, (0, last))
    return arena.node(number.op, (there,), number.dtype, number.attr, number.bounds)
