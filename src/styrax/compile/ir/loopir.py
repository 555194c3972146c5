"""The loop IR: buffers, and statements over scalar expressions.

A program is a list of statements. `str(statement)` is its printed form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from .expr import Expr, Index, show


class Buffer:
    """A piece of memory holding `size` elements of `dtype` in row-major order.

    `kind`: "arg", "out", "const" (pointers the caller passes), "temp" (the plan places it in the
    workspace), "stack" (small, private to the kernel that declares it).
    `alias` is set by the memory plan: the buffer whose memory this one shares.
    """

    __slots__ = ("name", "dtype", "size", "kind", "number", "offset", "alias", "donated", "once")

    def __init__(self, name: str, dtype: np.dtype, size: Index, kind: str, number: int = -1):
        self.name = name
        self.dtype = dtype
        self.size = size
        self.kind = kind
        self.number = number  # position among the program's pointers
        self.offset: Index | None = None  # place in the workspace, in bytes
        self.alias: Buffer | None = None
        self.donated = False
        self.once = False  # one operation writes it, and nothing changes it afterwards

    @property
    def root(self) -> Buffer:
        buffer = self
        while buffer.alias is not None:
            buffer = buffer.alias
        return buffer

    @property
    def nbytes(self) -> Any:
        return self.size * self.dtype.itemsize if isinstance(self.size, int) else self.size

    def __repr__(self) -> str:
        return self.name


class Statement:
    """Base of the statements."""

    __slots__ = ()

    def bodies(self) -> Sequence[list[Statement]]:
        return ()

    def exprs(self) -> Sequence[Expr]:
        return ()

    def lines(self) -> list[str]:
        raise TypeError(f"{type(self).__name__} has no printed form")

    def __str__(self) -> str:
        return "\n".join(self.lines())


def _indent(body: Sequence[Statement]) -> list[str]:
    return ["  " + line for s in body for line in s.lines()]


class Store(Statement):
    """buffer[offset] = value"""

    __slots__ = ("buffer", "offset", "value")

    def __init__(self, buffer: Buffer, offset: Expr, value: Expr):
        self.buffer = buffer
        self.offset = offset
        self.value = value

    def exprs(self) -> Sequence[Expr]:
        return (self.offset, self.value)

    def lines(self) -> list[str]:
        return [f"{self.buffer}[{show(self.offset)}] = {show(self.value)}"]


class Let(Statement):
    """Evaluates `value` here and now and names the result `target` (a `get` node)."""

    __slots__ = ("target", "value")

    def __init__(self, target: Expr, value: Expr):
        self.target = target
        self.value = value

    def exprs(self) -> Sequence[Expr]:
        return (self.value,)

    def lines(self) -> list[str]:
        return [f"{show(self.target)} := {show(self.value)}"]


class Declare(Statement):
    """A mutable scalar with its first value."""

    __slots__ = ("target", "value")

    def __init__(self, target: Expr, value: Expr | None):
        self.target = target
        self.value = value

    def exprs(self) -> Sequence[Expr]:
        return () if self.value is None else (self.value,)

    def lines(self) -> list[str]:
        return [f"var {show(self.target)}" + ("" if self.value is None else f" = {show(self.value)}")]


class Set(Statement):
    """Assigns mutable scalars, all at once."""

    __slots__ = ("targets", "values")

    def __init__(self, targets: Sequence[Expr], values: Sequence[Expr]):
        self.targets = tuple(targets)
        self.values = tuple(values)

    def exprs(self) -> Sequence[Expr]:
        return self.values

    def lines(self) -> list[str]:
        return [f"{', '.join(map(show, self.targets))} = {', '.join(map(show, self.values))}"]


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

    def lines(self) -> list[str]:
        targets = ", ".join(map(show, self.accumulator.targets))
        return [f"{targets} {self.accumulator.name}= {', '.join(map(show, self.values))}"]


class Open(Statement):
    """Starts an accumulator, with `width` lanes for the vector loop that folds into it."""

    __slots__ = ("accumulator", "width")

    def __init__(self, accumulator: Accumulator, width: int = 1):
        self.accumulator = accumulator
        self.width = width

    def exprs(self) -> Sequence[Expr]:
        return self.accumulator.initial

    def lines(self) -> list[str]:
        a = self.accumulator
        return [f"open {', '.join(map(show, a.targets))} = {', '.join(map(show, a.initial))}"
                + (f" x {self.width}" if self.width > 1 else "")]


class Close(Statement):
    """Combines an accumulator's lanes; its targets hold the result from here on."""

    __slots__ = ("accumulator",)

    def __init__(self, accumulator: Accumulator):
        self.accumulator = accumulator

    def lines(self) -> list[str]:
        return [f"close {', '.join(map(show, self.accumulator.targets))}"]


class Loop(Statement):
    """for var in range(extent). `kind`: "serial" or "vector" (in steps of `width`, with a masked tail).
    Iterations of a `parallel` loop may run on other threads.
    """

    __slots__ = ("var", "extent", "body", "kind", "width", "work", "parallel")

    def __init__(self, var: Expr, extent: Index, body: list[Statement], kind: str = "serial", width: int = 1,
                 work: int = 0, parallel: bool = False):
        self.var = var
        self.extent = extent
        self.body = body
        self.kind = kind
        self.width = width
        self.work = work  # estimated instructions of one iteration: decides on the size of chunks
        self.parallel = parallel

    def bodies(self) -> Sequence[list[Statement]]:
        return (self.body,)

    def exprs(self) -> Sequence[Expr]:
        return (self.extent,) if isinstance(self.extent, Expr) else ()

    def lines(self) -> list[str]:
        kind = f" {self.kind}({self.width})" if self.kind != "serial" else ""
        kind += " parallel" if self.parallel else ""
        return [f"for {show(self.var)} < {self.extent}{kind}:", *_indent(self.body)]


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

    def lines(self) -> list[str]:
        out = [f"if {show(self.condition)}:", *_indent(self.then)]
        return out + ["else:", *_indent(self.otherwise)] if self.otherwise else out


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

    def lines(self) -> list[str]:
        out = [f"switch {show(self.index)}:"]
        for i, branch in enumerate(self.branches):
            out += [f"case {i}:", *_indent(branch)]
        return out


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

    def lines(self) -> list[str]:
        return ["while:", *_indent(self.head), f"  holds {show(self.condition)}", "do:", *_indent(self.body)]


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

    def lines(self) -> list[str]:
        return [f"copy {self.target}[{show(self.target_offset)}] <- "
                f"{self.source}[{show(self.source_offset)}] x {self.count}"]


class Call(Statement):
    """Calls a native function. An argument is an `Expr` by value, or by reference ("&", expr), or the address of an
    element (buffer, offset).
    """

    __slots__ = ("symbol", "arguments", "reads", "writes", "result", "work")

    def __init__(self, symbol: str, arguments: Sequence[Any], reads: Sequence[Buffer], writes: Sequence[Buffer],
                 result: Expr | None = None, work: float = 1e5):
        self.work = work  # estimated instructions
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

    def lines(self) -> list[str]:
        parts = [show(a) if isinstance(a, Expr) else f"&{a[0]}[{show(a[1])}]" if isinstance(a[0], Buffer)
                 else f"&{show(a[1])}" if isinstance(a, tuple) else repr(a) for a in self.arguments]
        return [f"call {self.symbol}({', '.join(parts)})"]


class Scratch(Statement):
    """Declares memory that is private to the kernel around it."""

    __slots__ = ("buffer",)

    def __init__(self, buffer: Buffer):
        self.buffer = buffer

    def lines(self) -> list[str]:
        return [f"scratch {self.buffer}: {self.buffer.dtype}[{self.buffer.size}]"]


class Together(Statement):
    """The same statement of several iterations, in any order: what they have in common is computed once."""

    __slots__ = ("body",)

    def __init__(self, body: list[Statement]):
        self.body = body

    def bodies(self) -> Sequence[list[Statement]]:
        return (self.body,)

    def lines(self) -> list[str]:
        return ["together:", *_indent(self.body)]


def statements(body: Sequence[Statement]) -> Iterator[Statement]:
    """Every statement, outermost first."""
    for s in body:
        yield s
        for inner in s.bodies():
            yield from statements(inner)


def show_program(body: Sequence[Statement]) -> str:
    return "\n".join(line for s in body for line in s.lines())
