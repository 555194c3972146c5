"""The loop IR: buffers, and statements over scalar expressions.

A program is a list of statements. `str(statement)` is its printed form, which `parse` reads. Statements are not
changed once a pass has made them: what a pass changes, it makes anew, and each statement carries the name of the
pass that made it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from typing import Any, NoReturn

from ...core.types.index_type import ScalarType
from .expr import Expr, Index, naming, shared, show, walk


class BufferKind(StrEnum):
    """Where a buffer's memory comes from."""

    ARG = "arg"  # the caller passes a pointer
    OUT = "out"
    CONST = "const"
    TEMP = "temp"  # the memory plan places it in the workspace
    SCRATCH = "scratch"  # private to the function that declares it


class LoopKind(StrEnum):
    """How the iterations of a loop are run."""

    SERIAL = "serial"
    VECTOR = "vector"  # `width` at once, in lanes; what is left at the end under a mask
    JAM = "jam"  # independent, and worth running `width` side by side: see `loops.unroll_and_jam`
    JAMMED = "jammed"  # in steps of `width`; `rest` is the body of one of those left at the end


class _Making(threading.local):
    by = ""


_making = _Making()


@contextmanager
def made_by(name: str) -> Iterator[None]:
    """Statements that are made inside carry this pass's name."""
    before, _making.by = _making.by, name
    try:
        yield
    finally:
        _making.by = before


class Buffer:
    """A piece of memory holding `size` elements of `dtype` in row-major order. It is not changed once it is made, and
    equals itself alone; where it lies is said by a `Placement`.
    """

    __slots__ = ("name", "dtype", "size", "kind", "number", "donated", "once", "interval")

    name: str
    dtype: ScalarType
    size: Index
    kind: BufferKind
    number: int  # position among the program's pointers
    donated: bool
    once: bool  # one operation writes it, and nothing changes it afterwards
    interval: tuple[int, int] | None  # what its integers lie within, where that is less than their type says

    def __init__(self, name: str, dtype: ScalarType, size: Index, kind: BufferKind, number: int = -1,
                 donated: bool = False, once: bool = False, interval: tuple[int, int] | None = None):
        values = name, dtype, size, kind, number, donated, once, interval
        for slot, value in zip(Buffer.__slots__, values, strict=True):
            object.__setattr__(self, slot, value)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a buffer is not changed: {name} of {self}")

    @property
    def nbytes(self) -> Any:
        return self.size * self.dtype.itemsize if isinstance(self.size, int) else self.size

    def __repr__(self) -> str:
        return self.name


class Statement:
    """Base of the statements. `made_by` is the pass that made this one."""

    __slots__ = ("made_by",)
    made_by: str

    def __new__(cls, *args: Any, **kwargs: Any) -> Statement:
        self = object.__new__(cls)
        self.made_by = _making.by
        return self

    def bodies(self) -> Sequence[list[Statement]]:
        return ()

    def exprs(self) -> Sequence[Expr]:
        return ()

    def with_bodies(self, bodies: Sequence[list[Statement]]) -> Statement:
        """The same statement, made by the same pass, around other bodies."""
        new = self._around(*bodies)
        new.made_by = self.made_by
        return new

    def _around(self, *bodies: list[Statement]) -> Statement:
        raise TypeError(f"{type(self).__name__} has no bodies")

    def parts(self) -> Sequence[Part]:
        """The printed form: lines, each with the statements that stand indented under it."""
        raise TypeError(f"{type(self).__name__} has no printed form")

    def lines(self, marks: bool = False) -> list[str]:
        """The printed form as lines; with `marks`, it names the pass that made the statement. What long expressions
        share has a name, which is said before."""
        with naming(shared(self.exprs())) as out:
            parts = self.parts()
        first = len(out)
        for text, body in parts:
            out.append(text if len(out) > first or not marks else f"{text}  ; {self.made_by}")
            out += ["  " + line for s in body for line in s.lines(marks)]
        return out

    def __str__(self) -> str:
        return "\n".join(self.lines())


Part = tuple[str, Sequence[Statement]]


class Store(Statement):
    """buffer[offset] = value"""

    __slots__ = ("buffer", "offset", "value")

    def __init__(self, buffer: Buffer, offset: Expr, value: Expr):
        self.buffer = buffer
        self.offset = offset
        self.value = value

    def exprs(self) -> Sequence[Expr]:
        return (self.offset, self.value)

    def parts(self) -> Sequence[Part]:
        return ((f"{self.buffer}[{show(self.offset)}] = {show(self.value)}", ()),)


class Let(Statement):
    """Evaluates `value` here and now and names the result `target` (a `get` node)."""

    __slots__ = ("target", "value")

    def __init__(self, target: Expr, value: Expr):
        self.target = target
        self.value = value

    def exprs(self) -> Sequence[Expr]:
        return (self.value,)

    def parts(self) -> Sequence[Part]:
        return ((f"{show(self.target)} := {show(self.value)}", ()),)


class Declare(Statement):
    """A mutable scalar with its first value."""

    __slots__ = ("target", "value")

    def __init__(self, target: Expr, value: Expr | None):
        self.target = target
        self.value = value

    def exprs(self) -> Sequence[Expr]:
        return () if self.value is None else (self.value,)

    def parts(self) -> Sequence[Part]:
        first = f": {self.target.dtype}" if self.value is None else f" = {show(self.value)}"
        return ((f"var {show(self.target)}{first}", ()),)


class Set(Statement):
    """Assigns mutable scalars, all at once."""

    __slots__ = ("targets", "values")

    def __init__(self, targets: Sequence[Expr], values: Sequence[Expr]):
        self.targets = tuple(targets)
        self.values = tuple(values)

    def exprs(self) -> Sequence[Expr]:
        return self.values

    def parts(self) -> Sequence[Part]:
        return ((f"{', '.join(map(show, self.targets))} = {', '.join(map(show, self.values))}", ()),)


class Accumulator:
    """Scalars that a loop folds into: start values, and how two sets of them combine."""

    __slots__ = ("targets", "initial", "combine", "name")

    def __init__(self, targets: Sequence[Expr], initial: Sequence[Expr],
                 combine: Callable[[Sequence[Expr], Sequence[Expr]], Sequence[Expr]], name: str):
        self.targets = tuple(targets)
        self.initial = tuple(initial)
        self.combine = combine
        self.name = name


class Fold(Statement):
    """targets = combine(targets, values), inside a loop that carries the accumulator."""

    __slots__ = ("accumulator", "values")

    def __init__(self, accumulator: Accumulator, values: Sequence[Expr]):
        self.accumulator = accumulator
        self.values = tuple(values)

    def exprs(self) -> Sequence[Expr]:
        return self.values

    def parts(self) -> Sequence[Part]:
        targets = ", ".join(map(show, self.accumulator.targets))
        return ((f"{targets} {self.accumulator.name}= {', '.join(map(show, self.values))}", ()),)


class Open(Statement):
    """Starts an accumulator, with `width` lanes for the vector loop that folds into it."""

    __slots__ = ("accumulator", "width")

    def __init__(self, accumulator: Accumulator, width: int = 1):
        self.accumulator = accumulator
        self.width = width

    def exprs(self) -> Sequence[Expr]:
        return self.accumulator.initial

    def parts(self) -> Sequence[Part]:
        a = self.accumulator
        return ((f"open {', '.join(map(show, a.targets))} = {', '.join(map(show, a.initial))}"
                 + (f" x {self.width}" if self.width > 1 else ""), ()),)


class Close(Statement):
    """Combines an accumulator's lanes; its targets hold the result from here on."""

    __slots__ = ("accumulator",)

    def __init__(self, accumulator: Accumulator):
        self.accumulator = accumulator

    def parts(self) -> Sequence[Part]:
        return ((f"close {', '.join(map(show, self.accumulator.targets))}", ()),)


class Loop(Statement):
    """for var in range(extent). Iterations of a `parallel` loop may run on other threads.

    `work` estimates the instructions of one iteration, which decides on the size of a thread's chunk; `divisible` those
    of all iterations where these are independent and may become parallel, else it is 0.
    """

    __slots__ = ("var", "extent", "body", "kind", "width", "work", "divisible", "parallel", "rest")

    def __init__(self, var: Expr, extent: Index, body: list[Statement], kind: LoopKind = LoopKind.SERIAL,
                 width: int = 1, work: int = 0, divisible: int = 0, parallel: bool = False,
                 rest: list[Statement] | None = None):
        self.var = var
        self.extent = extent
        self.body = body
        self.kind = kind
        self.width = width
        self.work = work
        self.divisible = divisible
        self.parallel = parallel
        self.rest = rest  # of a jammed loop alone; empty where no iterations are left

    def replace(self, **changes: Any) -> Loop:
        return Loop(**{name: changes.get(name, getattr(self, name)) for name in Loop.__slots__})

    def bodies(self) -> Sequence[list[Statement]]:
        return (self.body,) if self.rest is None else (self.body, self.rest)

    def exprs(self) -> Sequence[Expr]:
        return (self.extent,) if isinstance(self.extent, Expr) else ()

    def parts(self) -> Sequence[Part]:
        kind = f" {self.kind}({self.width})" if self.kind is not LoopKind.SERIAL else ""
        kind += f" cost({self.divisible})" if self.divisible else ""
        kind += " parallel" if self.parallel else ""
        loop = f"for {show(self.var)} < {self.extent}{kind}:", self.body
        return (loop, ("rest:", self.rest)) if self.rest else (loop,)

    def _around(self, *bodies: list[Statement]) -> Statement:
        return self.replace(body=bodies[0], rest=bodies[1] if len(bodies) > 1 else None)


class If(Statement):
    __slots__ = ("condition", "then", "otherwise")

    def __init__(self, condition: Expr, then: list[Statement], otherwise: list[Statement]):
        self.condition = condition
        self.then = then
        self.otherwise = otherwise

    def bodies(self) -> Sequence[list[Statement]]:
        return (self.then, self.otherwise)

    def exprs(self) -> Sequence[Expr]:
        return (self.condition,)

    def parts(self) -> Sequence[Part]:
        then = f"if {show(self.condition)}:", self.then
        return (then, ("else:", self.otherwise)) if self.otherwise else (then,)

    def _around(self, *bodies: list[Statement]) -> Statement:
        return If(self.condition, *bodies)


class Switch(Statement):
    """Runs the branch whose number `index` is (already within range)."""

    __slots__ = ("index", "branches")

    def __init__(self, index: Expr, branches: list[list[Statement]]):
        self.index = index
        self.branches = branches

    def bodies(self) -> Sequence[list[Statement]]:
        return self.branches

    def exprs(self) -> Sequence[Expr]:
        return (self.index,)

    def parts(self) -> Sequence[Part]:
        return ((f"switch {show(self.index)}:", ()), *((f"case {i}:", body) for i, body in enumerate(self.branches)))

    def _around(self, *bodies: list[Statement]) -> Statement:
        return Switch(self.index, list(bodies))


class While(Statement):
    """Runs `head`, and as long as `condition` holds after it, `body`. An `open_ended` loop may never end by itself."""

    __slots__ = ("head", "condition", "body", "open_ended")

    def __init__(self, head: list[Statement], condition: Expr, body: list[Statement], open_ended: bool = False):
        self.open_ended = open_ended
        self.head = head
        self.condition = condition
        self.body = body

    def bodies(self) -> Sequence[list[Statement]]:
        return (self.head, self.body)

    def exprs(self) -> Sequence[Expr]:
        return (self.condition,)

    def parts(self) -> Sequence[Part]:
        opening = "while open ended:" if self.open_ended else "while:"
        return (opening, self.head), (f"  holds {show(self.condition)}", ()), ("do:", self.body)

    def _around(self, *bodies: list[Statement]) -> Statement:
        head, body = bodies
        return While(head, self.condition, body, self.open_ended)


class Copy(Statement):
    """Copies `count` elements between buffers; nothing where the plan made them one."""

    __slots__ = ("target", "target_offset", "source", "source_offset", "count")

    def __init__(self, target: Buffer, target_offset: Expr, source: Buffer, source_offset: Expr, count: Index):
        self.target = target
        self.target_offset = target_offset
        self.source = source
        self.source_offset = source_offset
        self.count = count

    def exprs(self) -> Sequence[Expr]:
        return (self.target_offset, self.source_offset)

    def parts(self) -> Sequence[Part]:
        return ((f"copy {self.target}[{show(self.target_offset)}] <- "
                 f"{self.source}[{show(self.source_offset)}] x {self.count}", ()),)


class Exchange(Statement):
    """At the end of a turn of a loop: of each pair of buffers, the carried one and the one with its next value, each
    has the other's memory from now on, one pair after the other. Next values may be those of other carried ones, whose
    own follow. After the last turn the carried ones' elements are in their own memory."""

    __slots__ = ("pairs",)

    def __init__(self, pairs: Sequence[tuple[Buffer, Buffer]]):
        self.pairs = tuple(pairs)

    def rotations(self) -> list[list[Buffer]]:
        """Chains of pairs: each buffer gets the next one's memory; the last, which is not carried, the first one's."""
        found: list[list[Buffer]] = []
        for a, b in self.pairs:
            chain = next((c for c in found if c[-1] is a), None)
            if chain is None:
                found.append([a, b])
            else:
                chain.append(b)
        return found

    def parts(self) -> Sequence[Part]:
        return ((f"exchange {', '.join(f'{a} with {b}' for a, b in self.pairs)}", ()),)


class Transpose(Statement):
    """Copies a matrix turned: target[target_offset + target_stride·c + r] = source[source_offset + source_stride·r + c]
    for each of `rows` rows r of the source and `columns` columns c. Strides may be negative."""

    __slots__ = ("target", "target_offset", "target_stride", "source", "source_offset", "source_stride", "rows",
                 "columns")

    def __init__(self, target: Buffer, target_offset: Expr, target_stride: int, source: Buffer, source_offset: Expr,
                 source_stride: int, rows: int, columns: int):
        self.target, self.target_offset, self.target_stride = target, target_offset, target_stride
        self.source, self.source_offset, self.source_stride = source, source_offset, source_stride
        self.rows, self.columns = rows, columns

    def reaches(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """The first and last elements, from the offsets on, of what is written and of what is read."""
        reached = []
        for steps, length in ((self.target_stride * (self.columns - 1), self.rows),
                              (self.source_stride * (self.rows - 1), self.columns)):
            reached.append((min(steps, 0), max(steps, 0) + length - 1))
        return reached[0], reached[1]

    def exprs(self) -> Sequence[Expr]:
        return (self.target_offset, self.source_offset)

    def parts(self) -> Sequence[Part]:
        return ((f"transpose {self.target}[{show(self.target_offset)}] by {self.target_stride} <- {self.source}"
                 f"[{show(self.source_offset)}] by {self.source_stride}, {self.rows} x {self.columns}", ()),)


class Call(Statement):
    """Calls a native function. An argument is an `Expr` by value, or by reference ("&", expr), or the address of an
    element (buffer, offset).
    """

    __slots__ = ("symbol", "arguments", "reads", "writes", "result", "work", "flops")

    def __init__(self, symbol: str, arguments: Sequence[Any], reads: Sequence[Buffer], writes: Sequence[Buffer],
                 result: Expr | None = None, work: float = 1e5, flops: float = 0.0):
        self.work = work  # estimated instructions
        self.flops = flops  # those that are known
        self.symbol = symbol
        self.arguments = list(arguments)
        self.reads = list(reads)
        self.writes = list(writes)
        self.result = result

    def exprs(self) -> Sequence[Expr]:
        out = []
        for a in self.arguments:
            if isinstance(a, Expr):
                out.append(a)
            elif isinstance(a, tuple) and isinstance(a[1], Expr):
                out.append(a[1])
        return out

    def parts(self) -> Sequence[Part]:
        given = [show(a) if isinstance(a, Expr) else f"&{a[0]}[{show(a[1])}]" if isinstance(a[0], Buffer)
                 else f"&{show(a[1])}" if isinstance(a, tuple) else repr(a) for a in self.arguments]
        result = "" if self.result is None else f" gives {show(self.result)}: {self.result.dtype}"
        used = "".join(f" {word} {', '.join(b.name for b in buffers)}"
                       for word, buffers in (("reads", self.reads), ("writes", self.writes)) if buffers)
        return ((f"call {self.symbol}({', '.join(given)}){result}{used}", ()),)


class Scratch(Statement):
    """Declares memory that is private to the kernel around it."""

    __slots__ = ("buffer",)

    def __init__(self, buffer: Buffer):
        self.buffer = buffer

    def parts(self) -> Sequence[Part]:
        return ((f"scratch {self.buffer}: {self.buffer.dtype}[{self.buffer.size}]", ()),)


class Pack(Statement):
    """The same function of several scalars, computed here in the lanes of a vector, for the statements that follow."""

    __slots__ = ("nodes",)

    def __init__(self, nodes: Sequence[Expr]):
        self.nodes = tuple(nodes)

    def exprs(self) -> Sequence[Expr]:
        return self.nodes

    def parts(self) -> Sequence[Part]:
        return ((f"pack {', '.join(map(show, self.nodes))}", ()),)


class Together(Statement):
    """The same statement of several iterations, in any order: what they have in common is computed once."""

    __slots__ = ("body",)

    def __init__(self, body: list[Statement]):
        self.body = body

    def bodies(self) -> Sequence[list[Statement]]:
        return (self.body,)

    def parts(self) -> Sequence[Part]:
        return (("together:", self.body),)

    def _around(self, *bodies: list[Statement]) -> Statement:
        return Together(*bodies)


# all there are: what is read, verified and emitted
STATEMENTS: tuple[type[Statement], ...] = (
    Call, Close, Copy, Declare, Exchange, Fold, If, Let, Loop, Open, Pack, Scratch, Set, Store, Switch, Together,
    Transpose, While)


def statements(body: Sequence[Statement]) -> Iterator[Statement]:
    """Every statement, outermost first."""
    for s in body:
        yield s
        for inner in s.bodies():
            yield from statements(inner)


def written(s: Statement) -> Sequence[Buffer]:
    """The buffers that a statement itself writes."""
    if isinstance(s, Store):
        return (s.buffer,)
    if isinstance(s, Copy | Transpose):
        return (s.target,)
    if isinstance(s, Exchange):
        return [b for pair in s.pairs for b in pair]
    return s.writes if isinstance(s, Call) else ()


def rewrite(body: list[Statement], change: Callable[[Statement], list[Statement]],
            inside: Callable[[Statement], bool] = lambda s: True) -> list[Statement]:
    """The statements with each replaced by what `change` gives for it, those inside it first, where `inside` agrees.
    What stays as it is stays the same object."""
    out: list[Statement] = []
    same = True
    for s in body:
        old = s.bodies() if inside(s) else ()
        new = [rewrite(inner, change, inside) for inner in old]
        if not all(x is y for x, y in zip(old, new, strict=True)):
            s, same = s.with_bodies(new), False
        changed = change(s)
        same = same and len(changed) == 1 and changed[0] is s
        out += changed
    return body if same else out


def show_program(body: Sequence[Statement], marks: bool = False) -> str:
    return "\n".join(line for s in body for line in s.lines(marks))


def declarations(body: Sequence[Statement], buffers: Sequence[Buffer]) -> list[str]:
    """The lines that declare what a program names: sizes, and those of `buffers` that it uses or a caller passes."""
    used: set[Buffer] = set()
    exprs: list[Expr] = []
    for s in statements(body):
        exprs += s.exprs()
        if isinstance(s, Store):
            used.add(s.buffer)
        elif isinstance(s, Copy):
            used |= {s.target, s.source}
            exprs += [s.count] if isinstance(s.count, Expr) else []
        elif isinstance(s, Exchange):
            used.update(*s.pairs)
        elif isinstance(s, Transpose):
            used |= {s.target, s.source}
        elif isinstance(s, Call):
            used |= {*s.reads, *s.writes, *(a[0] for a in s.arguments if isinstance(a, tuple) and a[0] != "&")}
    used.update(n.attr[0] for n in walk(exprs) if n.op in ("load", "transposed"))
    shown = [b for b in buffers if b.kind is not BufferKind.SCRATCH and (b in used or b.kind is not BufferKind.TEMP)]
    exprs += [b.size for b in shown if isinstance(b.size, Expr)]
    out = [f"size {show(n)}" for n in sorted((n for n in walk(exprs) if n.op == "param"), key=lambda n: n.id)]
    for b in shown:
        words = [word for word, holds in ((str(b.kind), b.kind is not BufferKind.TEMP), ("donated", b.donated),
                                          ("once", b.once)) if holds]
        out.append(" ".join((f"buffer {b.name}: {b.dtype} x {b.size}", *words)))
    return out
