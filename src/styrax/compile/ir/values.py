"""Values of a program being lowered, and the operations that put them into memory.

A lowering rule sees its operands as values: functions of their index. Most stay *computed*, and are inlined
where they are used; some are *stored* in a buffer by an operation (`Point`, `Reduce`, `Opaque`); those of
shape () that need a place of their own are mutable scalars.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ...core.types.index_type import ScalarType
from .expr import BOOL, LOADS, Expr, Index, naming, shared, show, walk
from .loopir import Buffer, Statement

if TYPE_CHECKING:
    from ..lowering.builder import Builder

Shape = tuple[Index, ...]


def is_empty(shape: Shape) -> bool:
    """Whether an array of this shape has no elements, and so no memory."""
    return any(isinstance(d, int) and d == 0 for d in shape)


class Value:
    """An array as a function of its index: `at(index)` gives the scalar expression of one element."""

    __slots__ = ("shape", "dtype", "depth")

    shape: Shape
    dtype: ScalarType
    depth: int

    def at(self, index: Sequence[Index]) -> Expr:
        raise TypeError("abstract value")

    @property
    def ndim(self) -> int:
        return len(self.shape)


class Computed(Value):
    """A value with no memory of its own. `condition` is the one that ones and zeros were made of, if they were; `kept`
    the value in memory all the same, with the operations among which it was stored for who reads it often; `flat` a
    value of the same elements in the same order, in another shape."""

    __slots__ = ("builder", "condition", "flat", "function", "kept", "known", "_probe", "_work")

    def __init__(self, builder: Builder, shape: Shape, dtype: ScalarType, function: Callable[[tuple[Expr, ...]], Expr],
                 flat: Value | None = None):
        self.builder = builder
        self.shape = shape
        self.flat = flat
        self.dtype = dtype
        self.function = function
        self.condition: Value | None = None
        self.kept: tuple[list[Operation], Value] | None = None
        self.known: dict[tuple[Expr | None, ...], Expr] = {}
        self._probe: tuple[tuple[Expr, ...], Expr] | None = None
        self._work = 0
        self.depth = 1

    def at(self, index: Sequence[Index]) -> Expr:
        b = self.builder
        place = tuple(map(b.index, index))
        # what a probe sees of the element at hand is not for others (see `elements`)
        key = (*place, None) if b.probing and b.elements is not None else place
        found = self.known.get(key)
        if found is None:
            b.evaluations += 1
            found = self.known[key] = self.function(place)
        return found

    def probe(self) -> tuple[tuple[Expr, ...], Expr]:
        """The value's expression at fresh loop variables; dimensions of one element have index 0."""
        if self._probe is None:
            b = self.builder
            index = b.loop_vars(self.shape)
            evaluations = b.evaluations
            element = self.looked_at(index)
            self._probe, self._work = (index, element), b.evaluations - evaluations
            if element.op == "const":  # everywhere: there is no need to ask operands, of which it may have many
                self.function = lambda _: element
        return self._probe

    def looked_at(self, index: Sequence[Index]) -> Expr:
        """The element at an index for those who only want to know what it is made of."""
        b = self.builder
        before, b.probing = b.probing, True
        try:
            return self.at(index)
        finally:
            b.probing = before

    def members_cost(self, count: int) -> list[int]:
        """What each of so many members of a record costs, along the last dimension, where its number is known."""
        b = self.builder
        index = b.loop_vars(self.shape[:-1])
        return [self.looked_at((*index, b.int(k))).cost for k in range(count)]

    @property
    def cost(self) -> int:
        return self.probe()[1].cost

    @property
    def divides(self) -> bool:
        """Whether places of what an element is read from are quotients of its own, as those of reshaped arrays."""
        return any(n.op in ("floordiv", "floormod") for n in walk([self.probe()[1]]))

    @property
    def gathers(self) -> bool:
        """Whether places of what an element is read from stand in memory."""
        return any(n.op in LOADS and any(m.op in LOADS for m in walk(n.args)) for n in walk([self.probe()[1]]))

    @property
    def work(self) -> int:
        """How many elements of others an element is made of. What folds to little may still be made of many: a sum of
        even and odd places of such a sum of indices doubles them."""
        self.probe()
        return self._work


class Stored(Value):
    """A value in memory: element `index` lies at `offset + Σ index·stride` of `buffer`, in elements."""

    __slots__ = ("builder", "buffer", "strides", "offset")

    def __init__(self, builder: Builder, buffer: Buffer, shape: Shape, dtype: ScalarType,
                 strides: Sequence[Index] | None = None, offset: Index = 0):
        self.builder = builder
        self.buffer = buffer
        self.shape = shape
        self.dtype = dtype
        self.strides = tuple(strides) if strides is not None else row_major(builder, shape)
        self.offset = offset
        self.depth = 0

    def place(self, index: Sequence[Index]) -> Expr:
        return self.builder.arena.affine(self.offset, index, self.strides)

    def at(self, index: Sequence[Index]) -> Expr:
        return self.builder.load(self.buffer, self.place(index))

    @property
    def contiguous(self) -> bool:
        return self.strides == row_major(self.builder, self.shape)


class Scalar(Value):
    """A 0-d value in a mutable scalar (complex ones in two)."""

    __slots__ = ("expr",)

    def __init__(self, expr: Expr):
        self.expr = expr
        self.shape = ()
        self.dtype = expr.dtype
        self.depth = 0

    def at(self, index: Sequence[Index]) -> Expr:
        return self.expr


def row_major(builder: Builder, shape: Shape) -> tuple[Index, ...]:
    strides: list[Index] = []
    step: Index = 1
    for d in reversed(shape):
        strides.append(step)
        step = builder.product((step, d))
    return tuple(reversed(strides))


class Operation:
    """A step of the program, in order: what the scheduler groups into nests. Operations are not changed once made."""

    __slots__ = ()

    def shown(self) -> Sequence[Expr]:
        """What is printed of it, besides the operations and statements inside."""
        return ()

    def text(self) -> list[str]:
        raise TypeError(f"{type(self).__name__} has no printed form")

    def lines(self) -> list[str]:
        """The printed form; what long expressions share has a name, which is said before."""
        with naming(shared(self.shown())) as out:
            return [*out, *self.text()]


class Define(Operation):
    """Mutable scalars get values: `targets = values`."""

    __slots__ = ("targets", "values", "fresh")

    def __init__(self, targets: Sequence[Expr], values: Sequence[Expr], fresh: bool = True):
        self.targets = tuple(targets)
        self.values = tuple(values)
        self.fresh = fresh  # declares the targets, too

    def shown(self) -> Sequence[Expr]:
        return self.values

    def text(self) -> list[str]:
        return [f"define {show(t)} = {show(v)}" for t, v in zip(self.targets, self.values, strict=True)]


class Point(Operation):
    """buffer[place(vars)] = value(vars), for all of `vars`. One of several with the same `whole` stores a part of what
    that stood for; the parts do not overlap."""

    __slots__ = ("vars", "buffer", "place", "value", "whole")

    def __init__(self, vars: Sequence[Expr], buffer: Buffer, place: Expr, value: Expr, whole: Operation | None = None):
        self.vars = tuple(vars)
        self.buffer = buffer
        self.place = place
        self.value = value
        self.whole = whole

    def shown(self) -> Sequence[Expr]:
        return (self.place, self.value)

    def text(self) -> list[str]:
        return [f"point[{_names(self.vars)}] {self.buffer}[{show(self.place)}] = {show(self.value)}"]


class Reduce(Operation):
    """For all of `outer`: folds `values` over `ranges`, and stores what comes out.

    `targets` are the accumulators (`get` nodes); `stores` the buffers and places of the results, empty for scalars.
    """

    __slots__ = ("outer", "ranges", "targets", "initial", "combine", "name", "values", "stores")

    def __init__(self, outer: Sequence[Expr], ranges: Sequence[Expr], targets: Sequence[Expr],
                 initial: Sequence[Expr], combine: Callable[[Sequence[Expr], Sequence[Expr]], Sequence[Expr]],
                 name: str, values: Sequence[Expr], stores: Sequence[tuple[Buffer, Expr, Expr]]):
        self.outer = tuple(outer)
        self.ranges = tuple(ranges)
        self.targets = tuple(targets)
        self.initial = tuple(initial)
        self.combine = combine
        self.name = name
        self.values = tuple(values)
        self.stores = list(stores)  # (buffer, place, expression of the targets)

    def shown(self) -> Sequence[Expr]:
        return (*self.values, *self.initial)

    def text(self) -> list[str]:
        head = f"reduce[{_names(self.outer)}; {_names(self.ranges)}] {_names(self.targets)} {self.name}= "
        return [head + _names(self.values) + f" from {_names(self.initial)}",
                *(f"  {buffer}[{show(place)}] = {show(value)}" for buffer, place, value in self.stores)]


class Opaque(Operation):
    """Statements that the scheduler leaves as they are."""

    __slots__ = ("statements",)

    def __init__(self, statements: list[Statement]):
        self.statements = statements

    def text(self) -> list[str]:
        return [line for s in self.statements for line in s.lines()]


class Region(Operation):
    """Operations under control flow; `build` makes the statements once its blocks are scheduled.

    `exprs` are what these statements evaluate themselves, `targets` the scalars they assign.
    """

    __slots__ = ("blocks", "build", "exprs", "targets")

    def __init__(self, blocks: Sequence[list[Operation]], build: Callable[[list[list[Statement]]], list[Statement]],
                 exprs: Sequence[Expr] = (), targets: Sequence[Expr] = ()):
        self.blocks = list(blocks)
        self.build = build
        self.exprs = tuple(exprs)
        self.targets = tuple(targets)

    def text(self) -> list[str]:
        out = ["region:"]
        for block in self.blocks:
            out += ["  block:", *("    " + line for op in block for line in op.lines())]
        return out


def _names(exprs: Sequence[Expr]) -> str:
    return ", ".join(map(show, exprs))


def show_operations(ops: Sequence[Operation]) -> str:
    return "\n".join(line for op in ops for line in op.lines())


class Token(Value):
    """The value of a token: order is the program's own."""

    __slots__ = ()

    def __init__(self) -> None:
        self.shape = ()
        self.dtype = BOOL
        self.depth = 0


def rewrite_operations(ops: Sequence[Operation], change: Callable[[Operation], Sequence[Operation]]
                       ) -> Sequence[Operation]:
    """The operations, also those of blocks inside, with each replaced by what `change` gives for it; the same object
    where nothing changes."""
    out: list[Operation] = []
    for op in ops:
        if isinstance(op, Region):
            blocks = [rewrite_operations(block, change) for block in op.blocks]
            same = all(x is y for x, y in zip(blocks, op.blocks, strict=True))
            out.append(op if same else Region([list(x) for x in blocks], op.build, op.exprs, op.targets))
        else:
            out += change(op)
    return ops if len(out) == len(ops) and all(x is y for x, y in zip(out, ops, strict=True)) else out
