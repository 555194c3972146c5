"""A program that tells the time: clock calls between its nests, and what each nest is, reads, writes and computes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..core.programs.places import Place
from .costs import instructions, operations, traffic
from .ir.expr import Expr
from .ir.loopir import (
    Buffer,
    Call,
    Copy,
    Fold,
    If,
    Let,
    Loop,
    LoopKind,
    Set,
    Statement,
    Switch,
    While,
    statements,
    written,
)
from .ir.placement import Placement
from .program import Program

CLOCK = "styrax_tick"  # styrax_tick(i64 place): the time since the last call belongs to the place that it named
WORTH_A_LOOK = 2000  # estimated instructions of a loop's turn in which clock calls do not count


def instrumented(program: Program) -> tuple[Program, list[Place]]:
    """A compiled program with a clock call before each of its places, and these."""
    made = _Instrumentation(program)
    return program.with_statements(made.body(program.statements, 0)), made.places


class _Instrumentation:
    def __init__(self, program: Program):
        self.int = program.builder.int
        self.origins = program.builder.declarations.origins
        self.placement: Placement = program.placement
        self.places: list[Place] = []

    def body(self, body: Sequence[Statement], depth: int) -> list[Statement]:
        out: list[Statement] = []
        for s in body:
            if not isinstance(s, (Loop, Copy, Call, While, If, Switch)) or self._is_nothing(s):
                out.append(s)
                continue
            number, outer = len(self.places), _holds_nests(s)
            self.places.append(self._place(s, depth, number + 1 if outer else None))
            out.append(self._tick(number))
            if outer:
                around = len(self.places)
                self.places.append(self.places[number]._replace(around=None, turns=True))
                inside = [[*self.body(inner, depth + 1), self._tick(around)] for inner in s.bodies()]
                s = s.with_bodies(inside)
            out.append(s)
        if not depth:
            out.append(self._tick(len(self.places)))  # the end
        return out

    def _is_nothing(self, s: Statement) -> bool:
        return isinstance(s, Copy) and self.placement.root(s.target) is self.placement.root(s.source)

    def _tick(self, number: int) -> Call:
        return Call(CLOCK, [self.int(number)], [], [], work=0)

    def _place(self, s: Statement, depth: int, around: int | None) -> Place:
        origins = tuple(dict.fromkeys(
            origin for name in _written(s) for origin in self.origins.get(name, ())))
        if isinstance(s, Copy):  # what a loop starts with is not what its turns compute
            origins = origins[:1]
        form = type(s).__name__.lower()
        if around is not None:
            return Place(depth, form, origins, 0.0, 0.0, "", around)
        found = operations(s)
        return Place(depth, form, origins, traffic(s, self.placement), sum(found.values()),
                     max(found, key=found.__getitem__, default=""), None)


def _holds_nests(s: Statement) -> bool:
    """Whether a statement is a loop or branch around nests, which are to be told apart."""
    if isinstance(s, Loop) and (s.parallel or s.kind is not LoopKind.SERIAL or s.rest is not None):
        return False
    return any(instructions(inner) >= WORTH_A_LOOK and any(isinstance(x, (Loop, Call, Copy)) for x in inner)
               for inner in s.bodies())


def _written(s: Statement) -> Iterator[Buffer | Expr]:
    """The buffers and mutable scalars that get values in a statement."""
    for x in statements([s]):
        yield from written(x)
        if isinstance(x, Fold):
            yield from x.accumulator.targets
        elif isinstance(x, Set):
            yield from x.targets
        elif isinstance(x, Let):
            yield x.target
