"""Scalar replacement: small temporary or private arrays whose elements are all named by number become scalars, which
live in registers.

The state of a model of three equations goes from turn to turn of its loop without a detour through memory. Before, and
after:

    copy c0[0] <- arg0[0] x 2
    for t1 < 9:
      t0[0] = c0[1]
      t0[1] = neg(c0[0])
      copy c0[0] <- t0[0] x 2

    var c0_0
    var c0_1
    c0_0, c0_1 = arg0[0], arg0[1]
    for t1 < 9:
      t0_0 := c0_1
      t0_1 := neg(c0_0)
      c0_0, c0_1 = t0_0, t0_1

What is assigned once, before it is read, is a value and no variable. Carr and Kennedy, Scalar replacement in the
presence of conditional control flow (1994).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..ir.expr import Expr
from ..ir.loads import known_loads
from ..ir.loopir import (
    Buffer,
    BufferKind,
    Call,
    Copy,
    Declare,
    Exchange,
    Fold,
    If,
    Let,
    Loop,
    LoopKind,
    Scratch,
    Set,
    Statement,
    Store,
    Switch,
    Together,
    Transpose,
    While,
)
from ..ir.placement import Placement
from ..lowering.builder import Builder
from ..lowering.number_types import NARROW_INTS, is_complex
from ..program import Program

MOST = 32  # elements of an array: some more than there are registers
READERS = (Store, Let, Declare, Set, Fold, If, Switch, While, Copy)  # whose expressions may read what is replaced


def run(program: Program) -> Program:
    """Replaces the arrays that qualify, each in the innermost list of statements that has all its uses."""
    gone = _Uses(program.placement).replaceable(program.statements)
    if not gone:
        return program
    return program.with_statements(_Replacement(program.builder, gone).body(program.statements))


def _named(buffer: Buffer, place: Expr, count: int | None) -> bool:
    """Whether elements are named by number. (Where a branch is never taken, there need not be such elements.)"""
    return (place.op == "const" and count is not None and isinstance(buffer.size, int)
            and 0 <= place.attr <= buffer.size - count)


def _accesses(s: Statement) -> Iterator[tuple[Buffer, Expr, int | None]]:
    """What a store or copy names: buffer, first place, how many elements."""
    if isinstance(s, Store):
        yield s.buffer, s.offset, 1
    elif isinstance(s, Copy):
        count = s.count if isinstance(s.count, int) else None
        yield s.target, s.target_offset, count
        yield s.source, s.source_offset, count


def _passed(s: Statement) -> Iterator[Buffer]:
    """The buffers of which a statement needs the memory."""
    if isinstance(s, Call):
        yield from (*s.reads, *s.writes)
        for a in s.arguments:
            if isinstance(a, tuple) and isinstance(a[0], Buffer):
                yield a[0]
    elif isinstance(s, Transpose):
        yield from (s.source, s.target)
    elif isinstance(s, Exchange):
        for pair in s.pairs:
            yield from pair


class _Uses:
    """Which buffers a program uses as scalars only."""

    def __init__(self, placement: Placement):
        self.found: set[Buffer] = set()
        self.refused: set[Buffer] = {*placement.aliases, *placement.aliases.values()}

    def replaceable(self, body: Sequence[Statement]) -> frozenset[Buffer]:
        self._look(body, None)
        return frozenset(b for b in self.found - self.refused if self._is_small(b))

    def _is_small(self, buffer: Buffer) -> bool:
        return (buffer.kind in (BufferKind.TEMP, BufferKind.SCRATCH) and isinstance(buffer.size, int)
                and buffer.size <= MOST and not is_complex(buffer.dtype) and buffer.dtype not in NARROW_INTS)

    def _look(self, body: Sequence[Statement], own: frozenset[Buffer] | None) -> None:
        """Looks at statements. Those that are spread over lanes or threads may write no scalars but their `own`."""
        if own is not None:
            own |= {s.buffer for s in body if isinstance(s, Scratch)}
        for s in body:
            for buffer, place, count in _accesses(s):
                self.found.add(buffer)
                if own is not None and buffer not in own or not _named(buffer, place, count):
                    self.refused.add(buffer)
            self.refused.update(_passed(s))
            for e in s.exprs():
                for n in known_loads(e) if e.reads else ():
                    if not isinstance(s, READERS) or n.op != "load" or not _named(n.attr[0], n.args[0], 1):
                        self.refused.add(n.attr[0])
            over = isinstance(s, Together) or isinstance(s, Loop) and (s.parallel or s.kind is not LoopKind.SERIAL)
            for inner in s.bodies():
                self._look(inner, frozenset() if over else own)


class _Replacement:
    """Replaces buffers by scalars."""

    def __init__(self, b: Builder, gone: frozenset[Buffer]):
        self.b, self.arena = b, b.arena
        self.gone = gone
        self.scalars: dict[Buffer, list[Expr]] = {}
        self.values: set[Buffer] = set()  # those whose elements are assigned once
        self.memo: dict[Expr, Expr] = {}
        self.touched: dict[Statement, frozenset[Buffer]] = {}

    # -- which statements use what ---------------------------------------------------------------------------
    def _own(self, s: Statement) -> frozenset[Buffer]:
        """The buffers to be replaced that a statement itself names."""
        named = {s.buffer} if isinstance(s, Scratch) else {buffer for buffer, _, _ in _accesses(s)}
        return self.gone & named.union(*[e.reads for e in s.exprs()])

    def _uses(self, s: Statement) -> frozenset[Buffer]:
        """The same with the statements inside."""
        found = self.touched.get(s)
        if found is None:
            found = self.touched[s] = self._own(s).union(*[self._uses(x) for inner in s.bodies() for x in inner])
        return found

    def _at_home(self, body: Sequence[Statement]) -> Iterator[tuple[Buffer, list[Statement]]]:
        """The buffers whose uses are all in this list (of which those around know nothing), but in none inside; with
        the statements that use them, in order."""
        users: dict[Buffer, list[Statement]] = {}
        for s in body:
            for buffer in self._uses(s):
                users.setdefault(buffer, []).append(s)
        for buffer, by in users.items():
            if buffer not in self.scalars:
                inside = sum(any(buffer in self._uses(x) for x in inner) for inner in by[0].bodies())
                if len(by) > 1 or inside != 1 or buffer in self._own(by[0]):
                    yield buffer, by

    def _assigned_once(self, buffer: Buffer, users: Sequence[Statement]) -> bool:
        """Whether each element is written once, by one of these statements of a list, before it is read."""
        known: set[int] = set()
        for s in users:
            if not known.issuperset(self._read(s, buffer)):
                return False
            if any(not self._only_reads(x, buffer) for inner in s.bodies() for x in inner):
                return False
            written = self._written(s, buffer)
            if not known.isdisjoint(written):
                return False
            known.update(written)
        return True

    def _only_reads(self, s: Statement, buffer: Buffer) -> bool:
        return not self._written(s, buffer) and all(
            self._only_reads(x, buffer) for inner in s.bodies() for x in inner)

    def _written(self, s: Statement, buffer: Buffer) -> Sequence[int]:
        if isinstance(s, Store) and s.buffer is buffer:
            return (s.offset.attr,)
        if isinstance(s, Copy) and s.target is buffer:
            return range(s.target_offset.attr, s.target_offset.attr + s.count)  # type: ignore[operator]
        return ()

    def _read(self, s: Statement, buffer: Buffer) -> Iterator[int]:
        for e in s.exprs():
            if buffer in e.reads:
                yield from (n.args[0].attr for n in known_loads(e) if n.attr[0] is buffer)
        if isinstance(s, Copy) and s.source is buffer:
            yield from range(s.source_offset.attr, s.source_offset.attr + s.count)  # type: ignore[operator]
        for inner in s.bodies():
            for x in inner:
                yield from self._read(x, buffer)

    # -- the statements anew ---------------------------------------------------------------------------------
    def body(self, old: list[Statement]) -> list[Statement]:
        """A list of statements; the same one where it uses none of the buffers."""
        if not any(self._uses(s) for s in old):
            return old
        out: list[Statement] = []
        for buffer, users in sorted(self._at_home(old), key=lambda found: found[0].name):
            origins = self.b.declarations.origins
            scalars = self.scalars[buffer] = [self.b.mutable(buffer.dtype) for _ in range(buffer.size)]  # type: ignore[arg-type]
            for k, scalar in enumerate(scalars):
                origins[scalar] = origins.get(buffer, ())
                self.memo[self.b.load(buffer, self.arena.int(k))] = scalar
            if self._assigned_once(buffer, users):
                self.values.add(buffer)
            else:
                out += [Declare(scalar, None) for scalar in scalars]
        for s in old:
            out += self.statement(s)
        return out

    def expr(self, e: Expr) -> Expr:
        return self.arena.substitute(e, {}, self.memo, reads=self.gone)

    def statement(self, s: Statement) -> list[Statement]:
        if not self._uses(s):
            return [s]
        if isinstance(s, Scratch):
            return []
        if isinstance(s, Copy):
            return self._copied(s)
        if isinstance(s, Store):
            value = self.expr(s.value)
            return self._assigned(s.buffer, s.offset, [value])
        if isinstance(s, Let):
            return [Let(s.target, self.expr(s.value))]
        if isinstance(s, Declare):
            return [Declare(s.target, None if s.value is None else self.expr(s.value))]
        if isinstance(s, Set):
            return [Set(s.targets, list(map(self.expr, s.values)))]
        if isinstance(s, Fold):
            return [Fold(s.accumulator, list(map(self.expr, s.values)))]
        bodies = [self.body(inner) for inner in s.bodies()]
        if isinstance(s, If):
            return [If(self.expr(s.condition), *bodies)]
        if isinstance(s, Switch):
            return [Switch(self.expr(s.index), bodies)]
        if isinstance(s, While):
            return [While(bodies[0], self.expr(s.condition), bodies[1], s.open_ended)]
        return [s.with_bodies(bodies)]

    def _assigned(self, buffer: Buffer, place: Expr, values: Sequence[Expr]) -> list[Statement]:
        """Statements that put values into consecutive places of a buffer, or into what stands for them."""
        scalars = self.scalars.get(buffer)
        if scalars is None:
            place = self.expr(place)
            return [Store(buffer, self.arena.iadd(place, k), v) for k, v in enumerate(values)]
        targets = scalars[place.attr : place.attr + len(values)]
        if buffer in self.values:
            return [Let(t, v) for t, v in zip(targets, values, strict=True)]
        return [Set(targets, values)]

    def _copied(self, s: Copy) -> list[Statement]:
        if s.source not in self.scalars and s.target not in self.scalars:
            return [Copy(s.target, self.expr(s.target_offset), s.source, self.expr(s.source_offset), s.count)]
        start = self.expr(s.source_offset)
        return self._assigned(s.target, s.target_offset, [
            self.expr(self.b.load(s.source, self.arena.iadd(start, k))) for k in range(s.count)])  # type: ignore[arg-type]


__all__ = ["run"]
