"""Explicit loop programs, written statement by statement: what a rule's `nest` is given."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ...core.types.index_type import scalar_type
from ..ir import loopir
from ..ir.expr import Expr, Index, unwrap
from ..ir.loopir import BufferKind, LoopKind, Statement
from ..ir.values import Stored
from .number_types import is_complex

if TYPE_CHECKING:
    from .builder import Builder


class Mutable:
    """A mutable scalar of a nest."""

    __slots__ = ("nest", "target")

    def __init__(self, nest: Nest, target: Expr):
        self.nest = nest
        self.target = target

    def get(self) -> Expr:
        """The value now (later assignments do not change it)."""
        return self.nest.let(self.target)

    def set(self, value: Expr) -> None:
        b = self.nest.b
        value = b.index(value) if isinstance(value, int) else value
        self.nest.add(loopir.Set(b.parts(self.target), b.parts(value)))


class Nest:
    """Writes an explicit loop program, statement by statement."""

    def __init__(self, builder: Builder):
        self.b = builder
        self.stack: list[list[Statement]] = []
        self.last_if: loopir.If | None = None

    def add(self, statement: Statement) -> None:
        self.stack[-1].append(statement)

    def finish(self) -> None:
        self.stack.pop()

    @contextmanager
    def _block(self, body: list[Statement]) -> Iterator[None]:
        self.stack.append(body)
        try:
            yield
        finally:
            self.stack.pop()

    @contextmanager
    def loop(self, extent: Index, parallel: bool = False, vector: bool = False, lanes: int = 0) -> Iterator[Expr]:
        """A counting loop; `parallel` promises that iterations are independent, `vector` that they are and contain
        only stores of expressions. `lanes` of a vector loop are as many as suit 32-bit numbers unless told."""
        var = self.b.loop_var(unwrap(extent))
        body: list[Statement] = []
        with self._block(body):
            yield var
        kind, width = (LoopKind.VECTOR, lanes) if vector else (LoopKind.SERIAL, 1)
        self.add(loopir.Loop(var, unwrap(extent), body, kind, width, parallel=parallel))

    def together(self, stores: Sequence[tuple[Stored, Sequence[Index], Expr]]) -> None:
        """Stores that share what they compute. None of them may read what another writes."""
        self.add(loopir.Together([loopir.Store(target.buffer, target.place([self.b.index(i) for i in index]), value)
                                  for target, index, value in stores]))

    def turn(self, target: Stored, to: Index, target_stride: int, source: Stored, at: Index, source_stride: int,
             rows: int, columns: int) -> None:
        """Copies a matrix turned (`loopir.Transpose`): from rows in memory to scratch memory, or from there to rows."""
        self.add(loopir.Transpose(target.buffer, self.b.iadd(target.offset, to), target_stride, source.buffer,
                                  self.b.iadd(source.offset, at), source_stride, rows, columns))

    def store(self, target: Stored, index: Sequence[Index], value: Expr) -> None:
        self.add(loopir.Store(target.buffer, target.place([self.b.index(i) for i in index]), value))

    def load(self, source: Stored, index: Sequence[Index]) -> Expr:
        return self.let(source.at([self.b.index(i) for i in index]))

    def let(self, e: Expr) -> Expr:
        if is_complex(e.dtype):
            return self.b.complex(self.let(e.args[0]), self.let(e.args[1]))
        target = self.b.arena.unique("get", e.dtype, self.b.name("v"), e.bounds)
        self.add(loopir.Let(target, e))
        return target

    def var(self, dtype: Any, init: Expr | int | float | None = None) -> Mutable:
        b = self.b
        target = b.mutable(scalar_type(dtype))
        if init is not None and not isinstance(init, Expr):
            init = b.const(init, dtype)
        for t, v in zip(b.parts(target), (None, None) if init is None else b.parts(init), strict=False):
            self.add(loopir.Declare(t, v))
        return Mutable(self, target)

    @contextmanager
    def if_(self, condition: Expr) -> Iterator[None]:
        statement = loopir.If(condition, [], [])
        with self._block(statement.then):
            yield
        self.add(statement)
        self.last_if = statement

    @contextmanager
    def else_(self) -> Iterator[None]:
        statement = self.last_if
        if statement is None or self.stack[-1][-1] is not statement:
            raise ValueError("else_ must directly follow its if_")
        with self._block(statement.otherwise):
            yield

    @contextmanager
    def while_(self, condition: Callable[[], Expr]) -> Iterator[None]:
        head: list[Statement] = []
        with self._block(head):
            holds = condition()
        body: list[Statement] = []
        with self._block(body):
            yield
        self.add(loopir.While(head, holds, body))

    def smallest(self, extent: Index, value: Callable[[Expr], Expr], largest: Expr) -> Expr:
        """The smallest of so many values, found in lanes, or `largest` if that is smaller."""
        b = self.b
        target, dtype = b.mutable(largest.dtype, "a"), largest.dtype
        found = loopir.Accumulator([target], [largest], lambda xs, ys: [b.min(xs[0], ys[0])], "min")
        lanes = max(b.vector_bytes // dtype.itemsize, 1)
        self.add(loopir.Open(found, lanes))
        with self.loop(extent, vector=True, lanes=lanes) as i:
            self.add(loopir.Fold(found, [value(i)]))
        self.add(loopir.Close(found))
        return target

    def scratch(self, shape: Sequence[Index], dtype: Any) -> Stored:
        """Private memory, not initialised."""
        b = self.b
        buffer = b.buffer(scalar_type(dtype), b.product(tuple(shape)), BufferKind.SCRATCH, stem="w")
        self.add(loopir.Scratch(buffer))
        return Stored(b, buffer, tuple(shape), scalar_type(dtype))

    def call(self, symbol: str, arguments: Sequence[Any], reads: Sequence[Any] = (), writes: Sequence[Any] = (),
             result: Any = None, work: float = 1e5, flops: float = 0.0) -> Expr | None:
        """Calls a native function; `result`: the dtype of what it returns."""
        b = self.b
        out: list[Any] = []
        for a in arguments:
            if isinstance(a, Stored):
                out.append((a.buffer, b.index(a.offset)))
            elif isinstance(a, tuple) and isinstance(a[0], Stored):
                out.append((a[0].buffer, b.iadd(a[0].offset, a[1])))
            elif isinstance(a, int):
                out.append(b.int(a))
            else:
                out.append(a)
        target = None if result is None else b.arena.unique("get", scalar_type(result), b.name("v"))
        b.begin(symbol)
        self.add(loopir.Call(symbol, out, [s.buffer for s in reads], [s.buffer for s in writes], target, work,
                             flops))
        return target
