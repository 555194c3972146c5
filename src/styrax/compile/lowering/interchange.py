"""Loops that treat each element of their arrays alone: the elements outside, in lanes, and the turns inside.

An element may be a few numbers: those of the trailing dimensions of each array, such as the state of one of many
differential equations; or all numbers of the loop, if these are few.

What a turn hands to the next stays in registers, where turn by turn it would go through memory. Of a `while` with a
predicate for each element (what batching makes of one), each vector of elements runs as often as its own need it.
Before (what lowering comes to otherwise), and after:

    copy c0[0] <- arg0[0] x 1000
    for t0 < 7:
      for i1 < 1000 vector(16) cost(750):
        t1[i1] = add(mul(c0[i1], 0.5:float32), 0.25:float32)
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

import itertools
import math
import os.path
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ...core.programs.jaxpr import ClosedJaxpr, DropVar, JaxprEqn
from ...core.settings import config
from ..costs import size
from ..ir.expr import Expr, Index, unwrap
from ..ir.loopir import Declare, Let, Loop, LoopKind, Set, Statement, Store, While, made_by
from ..ir.values import Define, Opaque, Operation, Shape, Stored, Value
from ..registers import is_avx512
from .folds import UNROLLED

if TYPE_CHECKING:
    from .builder import Builder
    from .lower import Lowering

SIDE_BY_SIDE = 4  # vectors that run at once: each waits for its own turn before
TOGETHER = 32  # lanes that do where one that has ended waits for the others
LARGEST = 256  # estimated instructions of a turn of them all
CARRIED = 8, 16  # registers that carries may have, of 16 or 32: the others are for what a turn computes
EXPECTED = 16  # turns of a loop whose length is not known
PARTS = 16  # numbers of an element that registers hold,
ALONE = 8  # and where there is only one, in no lanes


NAME = "interchange"  # what statements made here are marked with, and the word that switches it off


class NotPointwiseError(Exception):
    """A value reads other elements than its own."""


class Element(Value):
    """An array of which one element is at hand: its numbers by their indices."""

    __slots__ = ("lanes", "numbers")

    def __init__(self, lanes: Elements, numbers: dict[tuple[Expr, ...], Expr], shape: Shape):
        self.lanes = lanes
        self.shape = shape
        self.numbers = numbers
        self.dtype = self.any.dtype
        self.depth = 0

    @property
    def any(self) -> Expr:
        return next(iter(self.numbers.values()))

    def at(self, index: Sequence[Index]) -> Expr:
        b = self.lanes.b
        if b.probing:
            return self.any
        found = self.numbers.get(tuple(map(b.index, index)))
        if found is None:
            raise NotPointwiseError
        return found


class Elements:
    """The element that stands for all: its index, a function of one loop variable. Arrays may have a few numbers for
    each, in dimensions of their own after those of `shape`."""

    def __init__(self, b: Builder, shape: tuple[int, ...]):
        self.b = b
        self.shape = shape
        self.count = math.prod(shape)
        self.var = rest = b.loop_var(self.count) if self.count > 1 else b.int(0)
        index: list[Expr] = []
        for d in reversed(shape):
            index.append(b.floormod(rest, d))
            rest = b.floordiv(rest, d)
        self.index = [i for i, d in zip(reversed(index), shape, strict=True) if d != 1]
        self.long = [d for d in shape if d != 1]

    def indices(self, shape: Shape) -> list[tuple[Expr, ...]]:
        """The indices of the element's numbers in an array, whose dimensions of one element do not matter."""
        b, given = self.b, iter(self.index)
        left = len(self.long)
        choices: list[Sequence[Expr]] = []
        for d in shape:
            if d == 1:
                choices.append([b.int(0)])
            elif left:
                choices.append([next(given)])
                left -= 1
            else:
                choices.append([b.int(k) for k in range(d)])  # type: ignore[arg-type]
        return list(itertools.product(*choices))

    def fit(self, shape: Shape) -> bool:
        dims = [d for d in shape if d != 1]
        own, rest = dims[:len(self.long)], dims[len(self.long):]
        most = PARTS if self.count > 1 else ALONE
        known = shape != () and own == self.long and all(isinstance(d, int) for d in rest)
        return known and 0 < math.prod(rest) <= most  # type: ignore[arg-type]

    def keep(self, value: Value) -> Value:
        """The value under names, computed here."""
        b = self.b
        numbers = {}
        for index in self.indices(value.shape):
            names = []
            for part in b.parts(value.at(index)):
                name = b.arena.unique("get", part.dtype, b.name("e"), part.bounds)
                b.ops.append(Opaque([Let(name, part)]))
                names.append(name)
            numbers[index] = b.complex(*names) if len(names) == 2 else names[0]
        return Element(self, numbers, value.shape)


def elements_of(lowering: Lowering, carried: Sequence[Value], programs: Sequence[ClosedJaxpr],
                outvars: Sequence[Any]) -> Iterator[Elements]:
    """What the elements of a loop may be, if its programs look pointwise: the most dimensions that its arrays share
    first. Scalars that change with the turns are the same for all elements, whose last values then must not be
    wanted."""
    b = lowering.b
    shapes = {tuple(map(unwrap, v.shape)) for v in carried if v.shape != ()}
    if not shapes or lowering.generic or b.elements is not None or f"-{NAME}" in config.config.debug:
        return
    if any(0 in shape or not all(isinstance(d, int) for d in shape) for shape in shapes):
        return
    if not all(_scalar(e) for p in programs for e in p.jaxpr.eqns):
        return
    scalars = any(v.shape == () and type(o) is not DropVar for v, o in zip(carried, outvars, strict=True))
    shared = os.path.commonprefix(list(shapes))
    for ndim in range(len(shared), -1, -1):
        shape = shared[:ndim]
        several = math.prod(shape) > 1  # type: ignore[arg-type]
        numbers = sum(math.prod(v.shape[ndim:]) for v in carried)  # type: ignore[arg-type]
        if not several and any(_size(v) > PARTS for p in programs for e in p.eqns for v in e.outvars):
            return  # (lanes are for that)
        if numbers <= (PARTS if several else ALONE) and not (scalars and several):
            yield Elements(b, shape)  # type: ignore[arg-type]


def _size(v: Any) -> int:
    return math.prod(v.aval.shape)


def _scalar(eqn: JaxprEqn) -> bool:
    """Whether an equation comes to arithmetic on numbers that are at hand, without a loop of its own."""
    traits = eqn.primitive.traits
    if traits.contraction:
        (contracted, _), _ = eqn.params["dimension_numbers"]
        return math.prod(eqn.invars[0].aval.shape[d] for d in contracted) <= UNROLLED
    if traits.reduction:
        return math.prod(eqn.invars[0].aval.shape[d] for d in eqn.params["axes"]) <= UNROLLED
    return (traits.elementwise or traits.movement) and not eqn.effects


class Interchange:
    """What a loop over the turns of each element consists of, as it is being lowered."""

    def __init__(self, lowering: Lowering, elements: Elements, initial: Sequence[Value]):
        self.lowering, self.b, self.elements = lowering, lowering.b, elements
        self.initial = initial
        self.targets = [[self.b.mutable(v.dtype, "c") for _ in elements.indices(v.shape)] for v in initial]
        self.work = 0

    def state(self) -> list[Value]:
        from ..ir.values import Scalar

        return [Scalar(t[0]) if v.shape == () else
                Element(self.elements, dict(zip(self.elements.indices(v.shape), t, strict=True)), v.shape)
                for v, t in zip(self.initial, self.targets, strict=True)]

    def at(self, value: Value) -> list[Expr]:
        """The numbers of the element."""
        return [value.at(index) for index in self.elements.indices(value.shape)]

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
        self.work += int(size(out))
        return out

    def assign(self, values: Sequence[Sequence[Expr]]) -> Statement:
        b = self.b
        return Set([p for targets in self.targets for t in targets for p in b.parts(t)],
                   [p for numbers in values for v in numbers for p in b.parts(v)])

    def finish(self, loop: Statement, turns: int, together: bool = False) -> list[Value]:
        """The nest over the elements, and the loop's results. Those that run `together` end at once."""
        b = self.b
        body: list[Statement] = [
            Declare(p, e) for targets, v in zip(self.targets, self.initial, strict=True)
            for t, number in zip(targets, self.at(v), strict=True)
            for p, e in zip(b.parts(t), b.parts(number), strict=True)]
        body.append(loop)
        results: list[Value] = []
        for targets, v in zip(self.targets, self.initial, strict=True):
            if v.shape == () and self.elements.count > 1:
                results.append(v)  # not wanted
                continue
            out = Stored(b, b.buffer(v.dtype, b.product(v.shape), stem="c"), v.shape, v.dtype)
            body += [Store(out.buffer, out.place(index), t)
                     for index, t in zip(self.elements.indices(v.shape), targets, strict=True)]
            results.append(out)
        if self.elements.count == 1:
            b.ops.append(Opaque(body))
            return results
        widest = max(4, *(p.dtype.itemsize for targets in self.targets for t in targets for p in b.parts(t)))
        lanes = max(b.vector_bytes // widest, 1)
        vectors, times = max(TOGETHER // lanes, 1) if together else SIDE_BY_SIDE, 1
        numbers = sum(len(b.parts(t)) for targets in self.targets for t in targets)
        most = min(LARGEST // self.work if self.work else vectors, CARRIED[is_avx512(b.vector_bytes)] // numbers)
        while times < vectors and 2 * times <= most and self.elements.count >= 8 * times * lanes:
            times *= 2
        each = self.work * turns
        b.ops.append(Opaque([Loop(self.elements.var, self.elements.count, body, LoopKind.VECTOR, times * lanes, each,
                                  divisible=each * self.elements.count // lanes)]))
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
    for elements in elements_of(lowering, initial, [closed], eqn.outvars[:p["num_carry"]]):
        if any(not elements.fit(row.shape[1:]) and not (row.shape[1:] == () and (row in xs or elements.count == 1))
               for row in (*xs, *ys)):
            continue
        turns = Interchange(lowering, elements, initial)

        def body(turns: Interchange = turns, elements: Elements = elements) -> list[Statement]:
            outs = lowering.closed(closed, [*consts, *turns.state(), *map(slice_at, xs)])
            new, rows = outs[:p["num_carry"]], outs[p["num_carry"]:]
            stores: list[Statement] = [
                Store(y.buffer, y.place((step, *index)), row.at(index))
                for y, row in zip(ys, rows, strict=True) for index in elements.indices(row.shape)]
            return [*stores, turns.assign([turns.at(v) for v in new])]

        try:
            statements = turns.statements(body)
        except NotPointwiseError:
            continue
        return turns.finish(Loop(t, length, statements), length)
    return None


@made_by(NAME)
def while_(lowering: Lowering, eqn: JaxprEqn, cond_consts: Sequence[Value], body_consts: Sequence[Value],
           initial: Sequence[Value]) -> list[Value] | None:
    """A `while`, element by element; None where it is not pointwise."""
    cond, body = eqn.params["cond_jaxpr"], eqn.params["body_jaxpr"]
    for elements in elements_of(lowering, initial, [cond, body], eqn.outvars):
        if cond.out_avals[0].shape not in ((), elements.shape):
            continue
        try:
            return _while(Interchange(lowering, elements, initial), cond, body, cond_consts, body_consts)
        except NotPointwiseError:
            continue
    return None


def _while(turns: Interchange, cond: ClosedJaxpr, body: ClosedJaxpr, cond_consts: Sequence[Value],
           body_consts: Sequence[Value]) -> list[Value]:
    lowering, b = turns.lowering, turns.b
    holds: list[Expr] = []

    def head() -> list[Statement]:
        (value,) = lowering.closed(cond, [*cond_consts, *turns.state()])
        target = b.arena.unique("get", value.dtype, b.name("p"))
        holds.append(target)
        return [Let(target, turns.at(value)[0])]

    def turn() -> list[Statement]:
        state = turns.state()
        new = lowering.closed(body, [*body_consts, *state])
        values = [turns.at(v) for v in new]
        if cond.out_avals[0].shape:  # those that have ended wait for the others
            values = [[b.select(holds[0], x, y) for x, y in zip(new, turns.at(old), strict=True)]
                      for new, old in zip(values, state, strict=True)]
        return [turns.assign(values)]

    first, then = turns.statements(head), turns.statements(turn)
    return turns.finish(While(first, holds[0], then, True), EXPECTED, together=bool(cond.out_avals[0].shape))


__all__ = ["Element", "Elements", "scan", "while_"]
