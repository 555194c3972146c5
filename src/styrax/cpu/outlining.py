"""Outlining: which nests become functions of their own.

Layers of a network are alike. As functions, nests of one form are written and compiled once (identical code folding; so
are the functions of threads, see `segments`), several modules share the work, and LLVM, whose time grows faster than a
function's length, sees short ones. What a nest needs from around it is passed as arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..compile.costs import instructions, size
from ..compile.ir.expr import LOADS, Expr, walk
from ..compile.ir.loopir import (
    Accumulator,
    Buffer,
    Call,
    Close,
    Copy,
    Declare,
    Exchange,
    Fold,
    Let,
    Loop,
    LoopKind,
    Open,
    Scratch,
    Set,
    Statement,
    Store,
    Switch,
    Transpose,
    While,
    statements,
)

MANY = 16  # nests of a program from which outlining pays for all of them
LONG = 4096  # the same of estimated instructions that stand in its loops
SEVERAL = 128  # the same for those that are worth a call: there is work for several threads that compile
WORTH_A_CALL = 1000  # estimated instructions of a nest that is: calls keep nothing in registers


def outlined(body: Sequence[Statement]) -> frozenset[Loop]:
    """The nests of a program that become functions of their own."""
    found = _nests(body, repeated=False)
    if len(found) < MANY and (length := size(body)) < LONG:
        found = [s for s in found if instructions([s]) >= WORTH_A_CALL] if length >= SEVERAL else []
    return frozenset(found)


def _nests(body: Sequence[Statement], repeated: bool) -> list[Loop]:
    found: list[Loop] = []
    for s in body:
        if not isinstance(s, Loop):
            for inner in s.bodies():
                found += _nests(inner, repeated or isinstance(s, While))
        elif not s.parallel:  # (those of threads are functions anyway)
            inside = _nests(s.body, repeated=True) if s.kind is LoopKind.SERIAL else []
            if len(inside) > 1 or any(isinstance(x, Loop) and x.parallel for x in statements(s.body)):
                found += inside
            elif _closed(s) and (not repeated or instructions([s]) >= WORTH_A_CALL):
                found.append(s)
    return found


def _closed(s: Loop) -> bool:
    """Whether a nest assigns only scalars that it declares."""
    own: set[object] = set()
    assigned: set[object] = set()
    for x in statements([s]):
        if isinstance(x, Declare):
            own.add(x.target)
        elif isinstance(x, Open):
            own.add(x.accumulator)
        elif isinstance(x, Set):
            assigned.update(x.targets)
        elif isinstance(x, (Fold, Close)):
            assigned.add(x.accumulator)
    return assigned <= own


class Form:
    """A nest up to the names of its buffers and scalars. Nests with the same `key` have the same code, in which
    `sources` of one stand for those of the other."""

    __slots__ = ("_root", "key", "numbers", "sources")

    def __init__(self, nest: Loop, root: Callable[[Buffer], Buffer]):
        self._root = root
        self.numbers: dict[Any, int] = {}  # of expressions, buffers and accumulators, in the order of their occurrence
        self.sources: list[Any] = []  # by number
        tokens: list[Any] = []
        self._statement(nest, tokens)
        self.key = tuple(tokens)

    def _new(self, source: Any) -> int:
        number = self.numbers[source] = len(self.sources)
        self.sources.append(source)
        return number

    def _statement(self, s: Statement, tokens: list[Any]) -> None:
        tokens.append(type(s))
        for e in s.exprs():
            tokens.append(self._expr(e, tokens))
        if isinstance(s, (Let, Declare)):
            tokens.append(self._expr(s.target, tokens))
        elif isinstance(s, Set):
            tokens += [self._expr(e, tokens) for e in s.targets]
        elif isinstance(s, Store):
            tokens.append(self._buffer(s.buffer, tokens))
        elif isinstance(s, Scratch):
            tokens.append(self._buffer(s.buffer, tokens))
        elif isinstance(s, Loop):
            tokens += (self._expr(s.var, tokens), s.extent if isinstance(s.extent, int) else None, s.kind, s.width)
        elif isinstance(s, (Open, Fold, Close)):
            values = s.values if isinstance(s, Fold) else s.accumulator.initial
            tokens += (s.width if isinstance(s, Open) else 0, *self._accumulator(s.accumulator, values, tokens))
        elif isinstance(s, Copy):
            tokens += (self._buffer(s.target, tokens), self._buffer(s.source, tokens),
                       s.count if isinstance(s.count, int) else self._expr(s.count, tokens))
        elif isinstance(s, Exchange):
            tokens += [self._buffer(b, tokens) for pair in s.pairs for b in pair]
        elif isinstance(s, Transpose):
            tokens += (self._buffer(s.target, tokens), s.target_stride, self._buffer(s.source, tokens),
                       s.source_stride, s.rows, s.columns)
        elif isinstance(s, Call):
            tokens += (s.symbol, *self._arguments(s, tokens))
        elif isinstance(s, Switch):
            tokens.append(len(s.branches))
        elif isinstance(s, While):
            tokens.append(s.open_ended)
        for body in s.bodies():
            tokens.append(len(body))
            for x in body:
                self._statement(x, tokens)

    def _accumulator(self, a: Accumulator, values: Sequence[Expr], tokens: list[Any]) -> Iterable[Any]:
        """Who combines is known by what it makes of an accumulator's scalars and others."""
        known = self.numbers.get(a)
        if known is None:
            known = self._new(a)
            combined = a.combine(a.targets, [t.arena.other(t.dtype, k) for k, t in enumerate(a.targets)])
            tokens += [a.name, *[self._expr(e, tokens) for e in (*a.targets, *combined)]]
        yield known
        for e in values:
            yield self._expr(e, tokens)

    def _arguments(self, s: Call, tokens: list[Any]) -> Iterable[Any]:
        for a in s.arguments:
            if isinstance(a, Expr):
                yield self._expr(a, tokens)
            elif isinstance(a[0], Buffer):
                yield self._buffer(a[0], tokens), self._expr(a[1], tokens)
            else:
                yield a[0], self._expr(a[1], tokens)
        yield None if s.result is None else self._expr(s.result, tokens)
        for b in (*s.reads, None, *s.writes):
            yield None if b is None else self._buffer(b, tokens)

    def _buffer(self, buffer: Buffer, tokens: list[Any]) -> int:
        number = self.numbers.get(buffer)
        if number is None:
            root = self._root(buffer)
            memory = None if root is buffer else self._buffer(root, tokens)
            number = self._new(buffer)
            size = buffer.size if isinstance(buffer.size, int) else self._expr(buffer.size, tokens)
            tokens += (memory, buffer.dtype, size, buffer.kind, buffer.once)
        return number

    def _expr(self, e: Expr, tokens: list[Any]) -> int:
        numbers = self.numbers
        number = numbers.get(e)
        if number is not None:
            return number
        for n in walk([e]):
            if n in numbers:
                continue
            attr = n.attr
            if n.op in LOADS:
                attr = (self._buffer(attr[0], tokens), *attr[1:])
            elif n.op == "poly":
                attr = tuple(sorted([(tuple([numbers[a] for a in m]), c) for m, c in attr]))
            elif n.op != "const" and not n.args:  # a variable, known by where it occurs
                attr = None
            self._new(n)
            tokens += (n.op, n.dtype, attr, n.bounds, *[numbers[a] for a in n.args])
        return numbers[e]
