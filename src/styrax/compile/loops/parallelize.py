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

from ..costs import THREADED, instructions
from ..ir.expr import Index
from ..ir.loopir import Loop, Statement, rewrite
from ..program import Program


def run(program: Program) -> Program:
    """Marks loops as parallel, and those that were so in explicit nests as serial where they have too little work."""
    def shared(s: Statement) -> list[Statement]:
        if isinstance(s, Loop) and s.parallel and instructions([s]) < THREADED:
            return [s.replace(parallel=False)]
        if isinstance(s, Loop) and s.divisible >= THREADED and trips(s.extent) >= 2 * max(s.width, 1):
            return [s.replace(parallel=True)]
        return [s]

    return program.with_statements(rewrite(
        program.statements, shared, inside=lambda s: not (isinstance(s, Loop) and s.divisible)))


def trips(extent: Index) -> int:
    """The most iterations that a loop can have."""
    return extent if isinstance(extent, int) else extent.bounds[1]
