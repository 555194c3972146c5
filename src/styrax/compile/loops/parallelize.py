"""Loops whose iterations the threads share: outermost ones, of independent iterations, with enough work.

Before, and after:

    for i0 < 4096 cost(5242880):
      for i1 < 4096 vector(16):
        out0[(4096*i0 + i1)] = sin(arg0[i1])

    for i0 < 4096 cost(5242880) parallel:
      for i1 < 4096 vector(16):
        out0[(4096*i0 + i1)] = sin(arg0[i1])
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..costs import THREADED, instructions
from ..ir.expr import Arena, Expr, Index, coefficient
from ..ir.loopir import Buffer, BufferKind, Loop, Statement, Store, rewrite
from ..program import Program

LINE = 64  # bytes of memory that go from core to core where two threads write to them,
WAITING = 320  # in as long a time, about, as so many estimated instructions take


def run(program: Program) -> Program:
    """Marks loops as parallel, and those that were so in explicit nests as serial where they have too little work."""
    arena = program.builder.arena

    def shared(s: Statement) -> list[Statement]:
        if isinstance(s, Loop) and s.parallel and instructions([s]) < THREADED:
            return [s.replace(parallel=False)]
        if isinstance(s, Loop) and s.divisible >= THREADED and trips(s.extent) >= 2 * max(s.width, 1):
            slower = max(s.divisible // 2, WAITING * lines_shared(s, arena))  # two threads, which wait while they work
            return [s.replace(parallel=True)] if s.divisible - slower >= THREADED // 2 else [s]
        return [s]

    return program.with_statements(rewrite(
        program.statements, shared, inside=lambda s: not (isinstance(s, Loop) and s.divisible)))


def trips(extent: Index) -> int:
    """The most iterations that a loop can have."""
    return extent if isinstance(extent, int) else extent.bounds[1]


def lines_shared(loop: Loop, arena: Arena) -> int:
    """To how many lines of memory two neighbouring turns of a loop write (false sharing): one in each row of those that
    loops inside of known length walk through, where the turns lie side by side."""
    found: dict[tuple[Buffer, Expr], int] = {}
    for s, inside in _stores(loop.body, ()):
        step = _step(arena, s, loop.var)
        if s.buffer.kind is not BufferKind.SCRATCH and 0 < step < LINE:
            rows = 1
            for each in inside:
                if isinstance(each.extent, int) and _step(arena, s, each.var) >= LINE:
                    rows *= max(1, each.extent // (each.width if each.rest is not None else 1))
            found[s.buffer, s.offset] = rows if rows > 1 else 0
    return sum(found.values())


def _step(arena: Arena, s: Store, v: Expr) -> int:
    """By how many bytes a store moves with a loop; 0 where nobody knows."""
    c = coefficient(arena, s.offset, v)
    return abs(c.attr) * s.buffer.dtype.itemsize if c is not None and c.op == "const" else 0


def _stores(body: Sequence[Statement], inside: tuple[Loop, ...]) -> Iterator[tuple[Store, tuple[Loop, ...]]]:
    """Stores, and the loops around each."""
    for s in body:
        if isinstance(s, Store):
            yield s, inside
        for inner in s.bodies():
            yield from _stores(inner, (*inside, s) if isinstance(s, Loop) else inside)
