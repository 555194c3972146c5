"""What holds of loops after every pass over them.

Names are defined where they are used, and once; accumulators are folded and closed in the scope that opens them; what
is assigned was declared; iterations of parallel loops write places of their own; an access whose extent is known lies
inside its buffer; lanes take the same branch; kinds are of their enumerations, and places are indices.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...core.types.index_type import INDEX
from . import loopir
from .expr import LOADS, Expr, Index, poly_terms, walk
from .loopir import Accumulator, Buffer, BufferKind, LoopKind, Statement


class LoopIRError(Exception):
    """Loops that no pass may give: a fault of the compiler."""


def verify(body: Sequence[Statement], name: str = "program") -> None:
    """Checks a program. Raises `LoopIRError`, which shows the statement."""
    _Verifier(name).block(body, _Scope())


class _Scope:
    """What is known at a place: a stack of what the statements around it define."""

    __slots__ = ("accumulators", "conditional", "extents", "lanes", "mutables", "names", "own", "parallel", "scratch")

    def __init__(self, outer: _Scope | None = None):
        self.names: set[Expr] = set(outer.names) if outer else set()
        self.mutables: set[Expr] = set(outer.mutables) if outer else set()
        self.accumulators: set[Accumulator] = set(outer.accumulators) if outer else set()
        self.extents: dict[Expr, Index] = dict(outer.extents) if outer else {}
        self.conditional: bool = outer.conditional if outer else False  # whether these statements may not run at all
        # of the parallel loop around: what differs with its iterations, and what each of these has for itself
        self.parallel: set[Expr] | None = None if outer is None or outer.parallel is None else set(outer.parallel)
        self.own: set[Expr | Accumulator] = set(outer.own) if outer else set()
        # of the vector loop around: what differs with its lanes
        self.lanes: set[Expr] | None = None if outer is None or outer.lanes is None else set(outer.lanes)
        self.scratch: set[Buffer] = set(outer.scratch) if outer else set()


class _Verifier:
    def __init__(self, name: str):
        self.name = name

    def fail(self, s: Statement, what: str) -> None:
        raise LoopIRError(f"{self.name}: {what}, in what {s.made_by or 'nobody'} made:\n{s}")

    def block(self, body: Sequence[Statement], scope: _Scope) -> None:
        opened: list[Accumulator] = []
        for s in body:
            if isinstance(s, loopir.Open):
                opened.append(s.accumulator)
            self.statement(s, scope)
        for a in opened:
            if a in scope.accumulators:
                self.fail(body[0], f"the accumulator {a.targets[0]} is opened and not closed")

    def statement(self, s: Statement, scope: _Scope) -> None:
        self.uses(s, scope)
        if isinstance(s, loopir.Store):
            self.write(s, s.buffer, s.offset, scope)
        elif isinstance(s, loopir.Copy):
            self.write(s, s.target, s.target_offset, scope)
            self.inside(s, s.target, s.target_offset, scope, s.count)
            self.inside(s, s.source, s.source_offset, scope, s.count)
        elif isinstance(s, loopir.Exchange):
            rotations = s.rotations()
            touched = [b for chain in rotations for b in chain]
            if len(set(touched)) < len(touched) or any((a.size, a.dtype) != (b.size, b.dtype) for a, b in s.pairs):
                self.fail(s, "buffers that are exchanged are pairs of one size and kind")
            if any(len(chain) > 3 for chain in rotations):
                self.fail(s, "more than three memories change their roles in turn")
            own = {BufferKind.TEMP, BufferKind.OUT}
            if any({b.kind for b in chain} - own or chain[-1].kind is not BufferKind.TEMP for chain in rotations):
                self.fail(s, "buffers that are exchanged are the program's own")
            if scope.parallel is not None:
                self.fail(s, "iterations of a parallel loop exchange buffers")
        elif isinstance(s, loopir.Transpose):
            self.write(s, s.target, s.target_offset, scope)
            if s.rows > abs(s.target_stride) or s.columns > abs(s.source_stride):
                self.fail(s, "rows or columns overlap")
            for buffer, place, (low, high) in zip((s.target, s.source), s.exprs(), s.reaches(), strict=True):
                self.inside(s, buffer, place, scope, high - low + 1, low)
        elif isinstance(s, loopir.Let):
            self.define(s, (s.target,), scope, s.value)
        elif isinstance(s, loopir.Declare):
            self.define(s, (s.target,), scope)
            scope.mutables.add(s.target)
        elif isinstance(s, loopir.Set):
            self.assign(s, s.targets, scope)
        elif isinstance(s, loopir.Open):
            scope.accumulators.add(s.accumulator)
            if scope.parallel is not None:
                scope.own.add(s.accumulator)
        elif isinstance(s, loopir.Fold):
            if s.accumulator not in scope.accumulators:
                self.fail(s, "the accumulator is not open")
            if scope.parallel is not None and s.accumulator not in scope.own:
                self.fail(s, "iterations of a parallel loop fold into one accumulator")
        elif isinstance(s, loopir.Close):
            if s.accumulator not in scope.accumulators:
                self.fail(s, "the accumulator is not open")
            scope.accumulators.discard(s.accumulator)
            self.define(s, s.accumulator.targets, scope)
        elif isinstance(s, loopir.Call):
            if s.result is not None:
                self.define(s, (s.result,), scope)
        elif isinstance(s, loopir.Scratch):
            scope.scratch.add(s.buffer)
        elif isinstance(s, loopir.Pack):
            if len(s.nodes) < 2 or len({(n.op, n.dtype) for n in s.nodes}) > 1:
                self.fail(s, "a pack is of several equal functions")
        elif isinstance(s, loopir.Loop):
            self.loop(s, scope)
        elif isinstance(s, loopir.If | loopir.Switch):
            if scope.lanes is not None and any(not scope.lanes.isdisjoint(e.deps) for e in s.exprs()):
                self.fail(s, "lanes take branches of their own")
            for inner in s.bodies():
                self.block(inner, self.branch(scope))
        elif isinstance(s, loopir.While):
            inside = self.branch(scope)
            self.block(s.head, inside)
            self.known(s, (s.condition,), inside)
            self.block(s.body, _Scope(inside))
        elif isinstance(s, loopir.Together):
            self.block(s.body, scope)
        else:
            self.fail(s, "no such statement")

    def branch(self, scope: _Scope) -> _Scope:
        inside = _Scope(scope)
        inside.conditional = True
        return inside

    def loop(self, s: loopir.Loop, scope: _Scope) -> None:
        if not isinstance(s.kind, LoopKind):
            self.fail(s, f"{s.kind!r} is no kind of loop")
        if (s.rest is not None) != (s.kind is LoopKind.JAMMED):
            self.fail(s, "jammed loops alone have a rest")
        if s.rest == [] and not (isinstance(s.extent, int) and s.extent % s.width == 0):
            self.fail(s, "iterations that are left at the end are not run")
        if s.var in scope.names:
            self.fail(s, f"the variable {s.var} is another loop's already")
        for inner in s.bodies():
            inside = _Scope(scope)
            inside.names.add(s.var)
            inside.extents[s.var] = s.extent
            if s.kind is LoopKind.JAMMED and inner is s.body:
                inside.extents[s.var] = s.extent - s.extent % s.width - s.width + 1 if isinstance(s.extent, int) else 0
            if s.parallel and s.extent not in (0, 1):
                inside.parallel = {s.var}
            elif inside.parallel is not None:
                inside.own.add(s.var)
            if s.kind is LoopKind.VECTOR and s.width != 1 and scope.lanes is None:
                inside.lanes = {s.var}
            self.block(inner, inside)

    def uses(self, s: Statement, scope: _Scope) -> None:
        if isinstance(s, loopir.While):
            return  # its condition stands after its head
        exprs = [*s.exprs(), s.count] if isinstance(s, loopir.Copy) and isinstance(s.count, Expr) else s.exprs()
        self.known(s, exprs, scope)
        for n in walk(exprs):
            if n.op in LOADS:
                if n.args[0].dtype is not INDEX:
                    self.fail(s, f"{n.args[0]} is a place, but no index")
                if n.op == "load":
                    self.inside(s, n.attr[0], n.args[0], scope)

    def known(self, s: Statement, exprs: Iterable[Expr], scope: _Scope) -> None:
        for e in exprs:
            for d in e.deps:
                if d not in scope.names:
                    self.fail(s, f"{d} is not defined here")

    def define(self, s: Statement, targets: Sequence[Expr], scope: _Scope, value: Expr | None = None) -> None:
        for t in targets:
            if t in scope.names:
                self.fail(s, f"{t} is defined twice")
            scope.names.add(t)
            if scope.lanes is not None and (value is None or not scope.lanes.isdisjoint(value.deps)):
                scope.lanes.add(t)
            if scope.parallel is not None:
                scope.own.add(t)
                scope.parallel.add(t)

    def assign(self, s: Statement, targets: Sequence[Expr], scope: _Scope) -> None:
        for t in targets:
            if t not in scope.mutables:
                self.fail(s, f"{t} is assigned, but not declared")
            if scope.parallel is not None and t not in scope.own:
                self.fail(s, f"iterations of a parallel loop assign {t}")

    def write(self, s: Statement, buffer: Buffer, place: Expr, scope: _Scope) -> None:
        if not isinstance(buffer.kind, BufferKind):
            self.fail(s, f"{buffer.kind!r} is no kind of buffer")
        if buffer.kind in (BufferKind.ARG, BufferKind.CONST):
            self.fail(s, f"{buffer} belongs to the caller")
        if place.dtype is not INDEX:
            self.fail(s, f"{place} is a place, but no index")
        if scope.parallel is not None and buffer not in scope.scratch and not place.deps & scope.parallel and (
                _elements(buffer) not in (0, 1) or _elements(buffer) == 1 and not scope.conditional):
            self.fail(s, "iterations of a parallel loop write one place")
        if isinstance(s, loopir.Store):
            self.inside(s, buffer, place, scope)

    def inside(self, s: Statement, buffer: Buffer, place: Expr, scope: _Scope, count: Index = 1, first: int = 0
               ) -> None:
        """Where an access to `count` elements, from the `first` after a place on, is made for certain, and all the
        extents it depends on are numbers."""
        size = _elements(buffer)
        if scope.conditional or size is None or not isinstance(count, int) or count <= 0:
            return
        low, high = first, first + count - 1
        for atoms, factor in poly_terms(place).items():
            if not atoms:
                low, high = low + factor, high + factor
                continue
            extent = scope.extents.get(atoms[0]) if len(atoms) == 1 else None
            if not isinstance(extent, int):
                return
            if extent <= 0:
                return
            low, high = low + min(0, factor * (extent - 1)), high + max(0, factor * (extent - 1))
        if low < 0 or high >= size:
            self.fail(s, f"{buffer}[{place}] reaches from {low} to {high}, outside of {size} elements")


def _elements(buffer: Buffer) -> int | None:
    return buffer.size if isinstance(buffer.size, int) else None
