"""Loops that treat each element of their arrays alone: the elements outside, in lanes, and the turns inside.

What a turn hands to the next stays in registers, where turn by turn it would go through memory. Of a `while` with a
predicate for each element (what batching makes of one), each vector of elements runs as often as its own need it.
Before (what lowering comes to otherwise), and after:

    copy c0[0] <- arg0[0] x 1000
    for t0 < 7:
      for i2 < 1000 vector(16) cost(500):
        t1[i2] = add(mul(c0[i2], 0.5:float32), 0.25:float32)
      copy c0[0] <- t1[0] x 1000
    copy out0[0] <- c0[0] x 1000

    for i0 < 1000 vector(64) cost(1312):
      var c0 = arg0[i0]
      for t0 < 7:
        c0 = add(mul(c0, 0.5:float32), 0.25:float32)
      c1[i0] = c0
    copy out0[0] <- c1[0] x 1000

Loop interchange with scalar promotion, and the outer loop vectorised: Allen and Kennedy, Optimizing compilers for
modern architectures (2001), chapters 5 and 8.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ...core.programs.jaxpr import ClosedJaxpr, DropVar, JaxprEqn
from ...core.settings import config
from ..ir.expr import Expr, Index, unwrap
from ..ir.loopir import Declare, Let, Loop, LoopKind, Set, Statement, Store, While, made_by
from ..ir.values import Define, Opaque, Operation, Shape, Stored, Value

if TYPE_CHECKING:
    from .builder import Builder
    from .lower import Lowering

ROW = 4096  # bytes of a row up to which the turns may stride over rows: one page
VECTOR = 16  # elements of one vector (of 4 bytes, where it has 64)
SIDE_BY_SIDE = 4  # vectors that run at once: each waits for its own turn before
TOGETHER = 2  # the same where a vector that has ended waits for the others
LARGEST = 256  # estimated instructions of a turn of them all
EXPECTED = 16  # turns of a loop whose length is not known


NAME = "interchange"  # what statements made here are marked with, and the word that switches it off


class NotPointwiseError(Exception):
    """A value reads other elements than its own."""


class Element(Value):
    """An array of which one element is at hand."""

    __slots__ = ("lanes", "expr")

    def __init__(self, lanes: Elements, expr: Expr, shape: Shape):
        self.lanes = lanes
        self.shape = shape
        self.dtype = expr.dtype
        self.depth = 0
        self.expr = expr

    def at(self, index: Sequence[Index]) -> Expr:
        b = self.lanes.b
        if not b.probing and tuple(map(b.index, index)) != self.lanes.index_in(self.shape):
            raise NotPointwiseError
        return self.expr


class Elements:
    """The element that stands for all: its index, a function of one loop variable."""

    def __init__(self, b: Builder, shape: tuple[int, ...]):
        self.b = b
        self.shape = shape
        self.count = math.prod(shape)
        self.var = rest = b.loop_var(self.count)
        index: list[Expr] = []
        for d in reversed(shape):
            index.append(b.floormod(rest, d))
            rest = b.floordiv(rest, d)
        self.index = tuple(reversed(index))
        self.long = _long(shape)

    def index_in(self, shape: Shape) -> tuple[Expr, ...]:
        """The element's index in an array of the same shape but for dimensions of one element."""
        given = iter([i for i, d in zip(self.index, self.shape, strict=True) if d != 1])
        return tuple(self.b.int(0) if d == 1 else next(given) for d in shape)

    def fit(self, shape: Shape) -> bool:
        return shape != () and _long(shape) == self.long

    def keep(self, value: Value) -> Value:
        """The value under a name, computed here."""
        b = self.b
        names = []
        for part in b.parts(value.at(self.index_in(value.shape))):
            name = b.arena.unique("get", part.dtype, b.name("e"), part.bounds)
            b.ops.append(Opaque([Let(name, part)]))
            names.append(name)
        return Element(self, b.complex(*names) if len(names) == 2 else names[0], value.shape)


def _long(shape: Shape) -> tuple[Index, ...]:
    return tuple(d for d in shape if d != 1)


def elements_of(lowering: Lowering, carried: Sequence[Value], programs: Sequence[ClosedJaxpr],
                outvars: Sequence[Any]) -> Elements | None:
    """The elements of a loop whose arrays all have one shape, if its programs look pointwise. Scalars that change with
    the turns are the same for all elements; their last values must not be wanted."""
    shapes = {tuple(map(unwrap, v.shape)) for v in carried if v.shape != ()}
    if len(shapes) != 1 or lowering.generic or lowering.b.elements is not None or f"-{NAME}" in config.config.debug:
        return None
    (shape,) = shapes
    if 0 in shape or any(v.shape == () and type(o) is not DropVar for v, o in zip(carried, outvars, strict=True)):
        return None
    if any(not (e.primitive.traits.elementwise or e.primitive.traits.movement) or e.effects
           for p in programs for e in p.jaxpr.eqns):
        return None
    return Elements(lowering.b, shape)  # type: ignore[arg-type]


class Interchange:
    """What a loop over the turns of each element consists of, as it is being lowered."""

    def __init__(self, lowering: Lowering, elements: Elements, initial: Sequence[Value]):
        self.lowering, self.b, self.elements = lowering, lowering.b, elements
        self.initial = initial
        self.targets = [self.b.mutable(v.dtype, "c") for v in initial]
        self.work = 0

    def state(self) -> list[Value]:
        from ..ir.values import Scalar

        return [Scalar(t) if v.shape == () else Element(self.elements, t, v.shape)
                for v, t in zip(self.initial, self.targets, strict=True)]

    def at(self, value: Value) -> Expr:
        return value.at(() if value.shape == () else self.elements.index)

    def statements(self, build: Callable[[], Sequence[Statement]]) -> list[Statement]:
        """What lowering a program comes to. NotPointwiseError if that is more than scalars."""
        lowering = self.lowering
        self.b.elements = self.elements
        try:
            ops, last = lowering.block(lambda: list(build()))
        finally:
            self.b.elements = None
        out: list[Statement] = []
        for op in ops:
            out += _scalar_statements(op)
        out += last
        self.work += sum(1 + sum(e.cost for e in s.exprs()) for s in out)
        return out

    def assign(self, values: Sequence[Expr]) -> Statement:
        b = self.b
        return Set([p for t in self.targets for p in b.parts(t)], [p for v in values for p in b.parts(v)])

    def finish(self, loop: Statement, turns: int, vectors: int) -> list[Value]:
        """The nest over the elements, and the loop's results."""
        b = self.b
        body: list[Statement] = [
            Declare(p, e) for t, v in zip(self.targets, self.initial, strict=True)
            for p, e in zip(b.parts(t), b.parts(self.at(v)), strict=True)]
        body.append(loop)
        results: list[Value] = []
        for t, v in zip(self.targets, self.initial, strict=True):
            if v.shape == ():
                results.append(v)  # not wanted
                continue
            out = Stored(b, b.buffer(v.dtype, b.product(v.shape), stem="c"), v.shape, v.dtype)
            body.append(Store(out.buffer, self.elements.var, t))
            results.append(out)
        times = 1
        while times < vectors and 2 * times * self.work <= LARGEST and self.elements.count >= 8 * times * VECTOR:
            times *= 2
        each = self.work * turns
        b.ops.append(Opaque([Loop(self.elements.var, self.elements.count, body, LoopKind.VECTOR, times * VECTOR, each,
                                  divisible=each * self.elements.count // VECTOR)]))
        return results


def _scalar_statements(op: Operation) -> list[Statement]:
    if isinstance(op, Define):
        return [Let(t, v) for t, v in zip(op.targets, op.values, strict=True)]
    if isinstance(op, Opaque) and all(isinstance(s, Let) for s in op.statements):
        return op.statements
    raise NotPointwiseError


@made_by(NAME)
def scan(lowering: Lowering, eqn: JaxprEqn, consts: Sequence[Value], initial: Sequence[Value],
         xs: Sequence[Value], slice_at: Callable[[Value], Value], ys: Sequence[Stored], step: Expr,
         t: Expr) -> list[Value] | None:
    """A `scan`, element by element; None where it is not pointwise. Results of the turns go to `ys`."""
    p = eqn.params
    length, closed = p["length"], p["jaxpr"]
    elements = elements_of(lowering, initial, [closed], eqn.outvars[:p["num_carry"]])
    if elements is None:
        return None
    for row in (*xs, *ys):
        if row.shape[1:] not in ((), elements.shape) or row in ys and row.shape[1:] == ():
            return None
        if row.shape[1:] and elements.count * row.dtype.itemsize > ROW:
            return None  # turn by turn, memory is read in its order
    turns = Interchange(lowering, elements, initial)

    def body() -> list[Statement]:
        outs = lowering.closed(closed, [*consts, *turns.state(), *map(slice_at, xs)])
        new, rows = outs[:p["num_carry"]], outs[p["num_carry"]:]
        stores: list[Statement] = [
            Store(y.buffer, y.place((step, *elements.index)), row.at(elements.index))
            for y, row in zip(ys, rows, strict=True)]
        return [*stores, turns.assign([turns.at(v) for v in new])]

    try:
        statements = turns.statements(body)
    except NotPointwiseError:
        return None
    return turns.finish(Loop(t, length, statements), length, SIDE_BY_SIDE)


@made_by(NAME)
def while_(lowering: Lowering, eqn: JaxprEqn, cond_consts: Sequence[Value], body_consts: Sequence[Value],
           initial: Sequence[Value]) -> list[Value] | None:
    """A `while`, element by element; None where it is not pointwise."""
    p = eqn.params
    cond, body = p["cond_jaxpr"], p["body_jaxpr"]
    elements = elements_of(lowering, initial, [cond, body], eqn.outvars)
    if elements is None or cond.out_avals[0].shape not in ((), elements.shape):
        return None
    turns = Interchange(lowering, elements, initial)
    b = lowering.b
    holds: list[Expr] = []

    def head() -> list[Statement]:
        (value,) = lowering.closed(cond, [*cond_consts, *turns.state()])
        target = b.arena.unique("get", value.dtype, b.name("p"))
        holds.append(target)
        return [Let(target, turns.at(value))]

    def turn() -> list[Statement]:
        state = turns.state()
        new = lowering.closed(body, [*body_consts, *state])
        values = [turns.at(v) for v in new]
        if cond.out_avals[0].shape:  # those that have ended wait for the others
            values = [b.select(holds[0], x, turns.at(old)) for x, old in zip(values, state, strict=True)]
        return [turns.assign(values)]

    try:
        first, then = turns.statements(head), turns.statements(turn)
    except NotPointwiseError:
        return None
    vectors = TOGETHER if cond.out_avals[0].shape else SIDE_BY_SIDE
    return turns.finish(While(first, holds[0], then, True), EXPECTED, vectors)


__all__ = ["Element", "Elements", "scan", "while_"]
