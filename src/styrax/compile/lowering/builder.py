"""What a CPU lowering rule works with: scalars, values, reductions, explicit loop nests, library calls."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.types.dims import Dim, Recorder, Terms, add_terms
from ...core.types.index_type import INDEX, ScalarType, scalar_type
from ..costs import WORTH_KEEPING
from ..ir.expr import BOOL, NO_DEPS, UNBOUNDED, Expr, Index, coefficient, const_value, poly_terms, unwrap
from ..ir.loopir import Buffer, BufferKind, Call, Copy, If, Let, Loop, LoopKind, Scratch, Statement, Store, While
from ..ir.loopir import Declare as DeclareStatement
from ..ir.loopir import Set as SetStatement
from ..ir.values import Computed, Define, Opaque, Operation, Point, Reduce, Scalar, Shape, Stored, Value
from .scalars import Scalars, int_range, is_complex, is_integer, part_dtype

if TYPE_CHECKING:
    from .interchange import Elements

MAX_DEPTH = 60  # longer chains of inlined values are cut: expressions stay small enough to walk
LONG_REDUCTION = 1 << 15  # reductions over more elements, with few results, are cut into pieces
MAX_PARTS = 64  # parts of a split reduction, at most
STEP = 64  # elements that a step of a vectorised reduction takes: several vectors
UNROLLED = 8  # reductions over so few elements are written out


class Builder(Scalars):
    """Builds the operations of one program."""

    token: Callable[[], Value]  # the value of a token
    inline: Callable[..., list[Value]]  # inline(closed, *values): writes a program here (see `lower`)

    def __init__(self) -> None:
        super().__init__()
        self.ops: list[Operation] = []
        self.avals_in: Sequence[Any] = ()
        self.avals_out: Sequence[Any] = ()
        self.buffers: list[Buffer] = []
        self.names: dict[str, int] = {}
        self.sizes: dict[int, Expr] = {}  # numbers of symbols -> run-time sizes
        self.recorder: Recorder | None = None  # where those symbols come from
        self.host_calls: list[Any] = []
        self.elements: Elements | None = None  # while the turns of one element are lowered
        self.probing = False  # while a value's expression is only looked at

    # -- names, buffers, variables ---------------------------------------------------------------
    def name(self, stem: str) -> str:
        n = self.names[stem] = self.names.get(stem, -1) + 1
        return f"{stem}{n}"

    def buffer(self, dtype: ScalarType, size: Index, kind: BufferKind = BufferKind.TEMP, number: int = -1,
               stem: str = "t") -> Buffer:
        buffer = Buffer(self.name(stem), scalar_type(dtype), unwrap(size), kind, number)
        self.buffers.append(buffer)
        return buffer

    def loop_vars(self, shape: Shape, stem: str = "i") -> tuple[Expr, ...]:
        """An index with a fresh loop variable for each dimension of more than one element."""
        return tuple(self.int(0) if d == 1 and isinstance(d, int) else self.loop_var(d, stem) for d in shape)

    def loop_var(self, extent: Index, stem: str = "i") -> Expr:
        v = self.var(self.name(stem), extent)
        self.extents[v] = extent
        return v

    @property
    def extents(self) -> dict[Expr, Index]:
        try:
            return self._extents
        except AttributeError:
            self._extents: dict[Expr, Index] = {}
            return self._extents

    def mutable(self, dtype: ScalarType, stem: str = "s") -> Expr:
        """A mutable scalar; a complex one is a pair of them."""
        dtype = scalar_type(dtype)
        if is_complex(dtype):
            part = part_dtype(dtype)
            return self.complex(self.mutable(part, stem), self.mutable(part, stem))
        bounds = int_range(dtype) if dtype is not INDEX and is_integer(dtype) else UNBOUNDED
        return self.unique("get", dtype, self.name(stem), bounds)

    def parts(self, e: Expr) -> tuple[Expr, ...]:
        return (self.real(e), self.imag(e)) if is_complex(e.dtype) else (e,)

    # -- sizes known at run time -------------------------------------------------------------------
    def extent(self, d: Any) -> Index:
        """A dimension of an abstract value as an index expression."""
        if type(d) is not Dim:
            return d
        self.recorder = d.recorder
        return unwrap(self._polynomial(d.recorder, d.recorder.canonical(d.terms)))

    def _polynomial(self, recorder: Recorder, terms: Terms) -> Expr:
        total = self.int(0)
        for m, c in terms.items():
            term = self.int(c)
            for s in m:
                term = self.imul(term, self._symbol(recorder, s))
            total = self.iadd(total, term)
        return total

    def _symbol(self, recorder: Recorder, number: int) -> Expr:
        number = recorder.alias.get(number, number)
        found = self.sizes.get(number)
        if found is None:
            first = number - recorder.inputs
            if first < 0:
                found = self.param(f"n{number}")
            else:
                kind, x, y = recorder.derived[first]
                divide = self.floordiv if kind == "//" else self.floormod
                found = divide(self._polynomial(recorder, x), self._polynomial(recorder, y))
            self.sizes[number] = found
        return found

    def at_least(self, size: Index, bound: int) -> bool:
        """Whether a size is that large. One known at run time alone is looked at for the sizes at hand: the answer
        becomes a guard of the program."""
        if isinstance(size, int):
            return size >= bound
        numbers = {e: number for number, e in self.sizes.items()}
        polynomial = poly_terms(size)
        if self.recorder is None or not all(a in numbers for m in polynomial for a in m):
            return False
        terms = {tuple(sorted(numbers[a] for a in m)): c for m, c in polynomial.items()}
        return self.recorder.ask(">=", add_terms(terms, {(): bound}, -1))

    def resolved(self, value: Any) -> Any:
        """Static parameters with their sizes as index expressions."""
        if type(value) is Dim:
            return self.extent(value)
        if type(value) in (tuple, list):
            return type(value)(map(self.resolved, value))
        return value

    # -- memory ----------------------------------------------------------------------------------
    def load(self, buffer: Buffer, place: Expr) -> Expr:
        dtype = buffer.dtype
        if is_complex(dtype):
            part = part_dtype(dtype)
            return self.complex(self.node("load", (place,), part, (buffer, 0)),
                                self.node("load", (place,), part, (buffer, 1)))
        bounds = int_range(dtype) if is_integer(dtype) and dtype is not INDEX else UNBOUNDED
        return self.node("load", (place,), dtype, (buffer, None), bounds)

    def load_if(self, condition: Expr, value: Value, index: Sequence[Index], other: Expr) -> Expr:
        """`value.at(index)` where `condition` holds, else `other`; memory is not touched where it does not."""
        if condition.op == "const":
            return self.select(condition, value.at(index), other) if not _true(condition) else value.at(index)
        # an index that is in range anyway needs no guard, only a choice
        safe = [self._clamped(condition, i, d) for i, d in zip(index, value.shape, strict=True)]
        return self.select(condition, value.at(safe), other)

    def _clamped(self, condition: Expr, i: Index, extent: Index) -> Expr:
        i = self.index(i)
        high = extent - 1 if isinstance(extent, int) else None
        if high is not None and i.bounds[0] >= 0 and i.bounds[1] <= high:
            return i
        # keeps the index affine where the condition holds: the emitter masks the access (see cpu.emit)
        return self.node("guard", (condition, i, self.index(extent)), INDEX, None,
                         (0, high if high is not None else (1 << 48)))

    # -- values ----------------------------------------------------------------------------------
    def value(self, shape: Sequence[Index], dtype: Any, at: Callable[[tuple[Expr, ...]], Expr]) -> Value:
        return Computed(self, tuple(shape), scalar_type(dtype), at)

    def materialize_if_reused(self, value: Value, times: Index) -> Value:
        """A value for a consumer that reads each element several times: kept where it costs something."""
        costly = isinstance(value, Computed) and value.cost >= WORTH_KEEPING
        return self.materialize(value) if costly and times != 1 else value

    def materialize(self, value: Value, buffer: Buffer | None = None) -> Value:
        """The value in memory (or, 0-d, in a scalar): what loops over it again and again should read."""
        if isinstance(value, (Stored, Scalar)) and buffer is None:
            return value
        if self.elements is not None and buffer is None and self.elements.fit(value.shape):
            return self.elements.keep(value)
        if value.shape == () and buffer is None:
            e = value.at(())
            target = self.mutable(value.dtype)
            self.ops.append(Define(self.parts(target), self.parts(e)))
            return Scalar(target)
        if buffer is None:
            buffer = self.buffer(value.dtype, self.product(value.shape))
            buffer.once = True
        stored = Stored(self, buffer, value.shape, value.dtype)
        self.write(stored, value)
        return stored

    def write(self, target: Stored, value: Value) -> None:
        """Appends the operation that stores a value."""
        if any(isinstance(d, int) and d == 0 for d in value.shape):
            return
        if isinstance(value, Computed):
            index, e = value.probe()
        else:
            index = self.loop_vars(value.shape)
            e = value.at(index)
        if isinstance(value, Stored) and value.contiguous and target.contiguous:
            self.ops.append(Opaque([Copy(target.buffer, self.index(target.offset), value.buffer,
                                         self.index(value.offset), self.product(value.shape))]))
            return
        self.ops.append(Point([v for v in index if v.op == "var"], target.buffer, target.place(index), e))

    def view(self, value: Value) -> Value:
        """The value in memory; one that only rearranges what is stored, by strides, where it lies."""
        if not isinstance(value, Computed):
            return value if value.shape != () else self.in_memory(value)
        index, e = value.probe()
        load = e.args[0] if e.op == "complex" else e
        if load.op == "load" and (e is load or (load.attr[1] == 0 and e.args[1].op == "load"
                                                and e.args[1].args == load.args and e.args[1].attr[0] is load.attr[0])):
            place = load.args[0]
            strides = [coefficient(self, place, v) if v.op == "var" else self.int(1) for v in index]
            if all(s is not None and not s.deps for s in strides):
                zero = self.int(0)
                offset = self.substitute(place, {v: zero for v in index if v.op == "var"}, {})
                return Stored(self, load.attr[0], value.shape, value.dtype, [unwrap(s) for s in strides], offset)  # type: ignore[arg-type]
        return self.materialize(value)

    def in_memory(self, value: Value) -> Stored:
        """The value, contiguous in memory (also 0-d ones)."""
        if isinstance(value, Stored) and value.contiguous:
            return value
        return self.materialize(value, self.buffer(value.dtype, self.product(value.shape)))  # type: ignore[return-value]

    def reduce(self, shape: Sequence[Index], ranges: Sequence[Index], dtypes: Sequence[Any], combine: Any,
               init: Sequence[Expr], body: Callable[[tuple[Expr, ...], tuple[Expr, ...]], Any]) -> list[Value]:
        """Folds `body(i, r)` over all r in `ranges`, for every i in `shape`. See the module's guide in README.md."""
        shape, ranges = tuple(shape), tuple(ranges)
        dtypes = [scalar_type(d) for d in dtypes]
        name = combine if isinstance(combine, str) else "fold"
        fold = _named_combine(self, combine) if isinstance(combine, str) else (
            lambda accs, elems: _as_tuple(combine(self, tuple(accs), tuple(elems))))
        if isinstance(combine, str):  # small floats accumulate in float32
            wide = [np.dtype(np.float32) if d.itemsize < 4 and d.kind not in "iub" and not _narrow(d) else d
                    for d in dtypes]
        else:
            wide = dtypes
        init = [self.cast(e, w) for e, w in zip(init, wide, strict=True)]

        def elements(i: tuple[Expr, ...], r: tuple[Expr, ...]) -> tuple[Expr, ...]:
            return tuple(self.cast(e, w) for e, w in zip(_as_tuple(body(i, r)), wide, strict=True))

        count = self.product(ranges)
        if isinstance(count, int) and count <= UNROLLED:
            return self._unrolled(shape, ranges, dtypes, fold, init, elements)
        pieces = _split(self.product(shape), ranges)
        if pieces is not None:
            partials = self._split_reduction(shape, ranges, wide, fold, name, init, elements, *pieces)
            shape_, ranges, elements = shape, partials[0].shape[:1], (
                lambda i, r: tuple(p.at((r[0], *i)) for p in partials))
            if ranges[0] <= UNROLLED:  # type: ignore[operator]
                return self._unrolled(shape_, ranges, dtypes, fold, init, elements)
        return self._fold(shape, ranges, dtypes, wide, fold, name, init, elements)

    def _fold(self, shape: Shape, ranges: Shape, dtypes: Sequence[ScalarType], wide: Sequence[ScalarType],
              fold: Callable[..., Any], name: str, init: Sequence[Expr], elements: Callable[..., tuple[Expr, ...]],
              limit: tuple[int, Callable[[tuple[Expr, ...]], Expr]] | None = None) -> list[Value]:
        """Appends a reduction. `limit`: a range whose extent depends on the outer index."""
        outer, inner = self.loop_vars(shape), self.loop_vars(ranges, "r")
        if limit is not None:
            self.extents[inner[limit[0]]] = limit[1](outer)
        values = elements(outer, inner)
        targets = [self.mutable(w, "a") for w in wide]
        flat_targets = [p for t in targets for p in self.parts(t)]
        flat_init = [p for e in init for p in self.parts(e)]
        flat_values = [p for e in values for p in self.parts(e)]

        def flat_fold(accs: Sequence[Expr], elems: Sequence[Expr]) -> list[Expr]:
            out = fold(_regroup(self, accs, wide), _regroup(self, elems, wide))
            return [p for e in out for p in self.parts(e)]

        results: list[Value] = []
        stores = []
        for target, dtype in zip(targets, dtypes, strict=True):
            final = self.cast(target, dtype)
            if shape == ():
                results.append(Scalar(final))
            else:
                stored = Stored(self, self.buffer(dtype, self.product(shape)), shape, dtype)
                stores.append((stored.buffer, stored.place(outer), final))
                results.append(stored)
        if not any(isinstance(d, int) and d == 0 for d in shape):
            self.ops.append(Reduce([v for v in outer if v.op == "var"], [v for v in inner if v.op == "var"],
                                   flat_targets, flat_init, flat_fold, name, flat_values, stores))
        return results

    def _split_reduction(self, shape: Shape, ranges: Shape, wide: Sequence[ScalarType], fold: Callable[..., Any],
                         name: str, init: Sequence[Expr], elements: Callable[..., tuple[Expr, ...]], axis: int,
                         size: int) -> list[Value]:
        """A long reduction with few results: parts of it first. The split depends on shapes alone."""
        whole = ranges[axis]
        count = -(-whole // size)  # type: ignore[operator]

        def partial(i: tuple[Expr, ...], r: tuple[Expr, ...]) -> tuple[Expr, ...]:
            return elements(i[1:], (*r[:axis], self.iadd(self.imul(i[0], size), r[axis]), *r[axis + 1:]))

        def extent(i: tuple[Expr, ...]) -> Expr:
            return self.min(self.int(size), self.isub(whole, self.imul(i[0], size)))

        parts = (*ranges[:axis], size, *ranges[axis + 1:])
        return self._fold((count, *shape), parts, wide, wide, fold, name, init, partial, (axis, extent))

    def _unrolled(self, shape: Shape, ranges: Shape, dtypes: Sequence[ScalarType], fold: Callable[..., Any],
                  init: Sequence[Expr], elements: Callable[..., tuple[Expr, ...]]) -> list[Value]:
        def at(i: tuple[Expr, ...]) -> tuple[Expr, ...]:
            accs: Sequence[Expr] | None = None
            for r in np.ndindex(*ranges):  # type: ignore[arg-type]
                values = elements(i, tuple(map(self.int, r)))
                accs = fold(tuple(init) if accs is None else accs, values)
            return tuple(init) if accs is None else tuple(accs)

        known: dict[tuple[Expr, ...], tuple[Expr, ...]] = {}

        def element(k: int) -> Callable[[tuple[Expr, ...]], Expr]:
            def one(i: tuple[Expr, ...]) -> Expr:
                if i not in known:
                    known[i] = at(i)
                return self.cast(known[i][k], dtypes[k])

            return one

        return [self.value(shape, d, element(k)) for k, d in enumerate(dtypes)]

    def contract(self, lhs: Value, rhs: Value, dimension_numbers: Any, dtype: Any) -> Value | None:
        """A dot product over `dimension_numbers` by a library, or None where a `reduce` is the better way."""
        from .products import product

        return product(self, lhs, rhs, dimension_numbers, scalar_type(dtype))

    # -- explicit programs -----------------------------------------------------------------------
    def nest(self, outs: Sequence[tuple], body: Callable[[Nest, list[Stored], list[Stored]], None],
             inputs: Sequence[Value] = ()) -> list[Value]:
        """An explicit loop program that owns its outputs. `outs`: (shape, dtype) or (shape, dtype, value to
        start from)."""
        ins = [self.in_memory(v) for v in inputs]
        targets: list[Stored] = []
        starts: list[tuple[Buffer, Buffer]] = []
        statements: list[Statement] = []
        for out in outs:
            shape, dtype = tuple(out[0]), scalar_type(out[1])
            stored = Stored(self, self.buffer(dtype, self.product(shape)), shape, dtype)
            targets.append(stored)
            if len(out) > 2:
                source = self.in_memory(out[2])
                copy = Copy(stored.buffer, self.int(0), source.buffer, self.index(source.offset), self.product(shape))
                statements.append(copy)
                starts.append((stored.buffer, source.buffer))
        nest = Nest(self)
        nest.stack.append(statements)
        body(nest, targets, ins)
        nest.finish()
        self.ops.append(Opaque(statements, starts))
        return list(targets)

    def call(self, symbol: str, outs: Sequence[tuple], inputs: Sequence[Value],
             arguments: Callable[[list[Stored], list[Stored]], Sequence[Any]]) -> list[Value]:
        """Calls a native library function once. `arguments(outs, ins)` gives its arguments: a scalar by value,
        ("&", scalar) by reference, a value in memory, or (value, offset).
        """
        def body(n: Nest, targets: list[Stored], ins: list[Stored]) -> None:
            n.call(symbol, arguments(targets, ins), reads=ins, writes=targets)

        return self.nest(outs, body, inputs)

    def host_call(self, function: Callable[..., Any], outs: Sequence[tuple], inputs: Sequence[Value]) -> list[Value]:
        """Calls a Python function at this point of the program. `function(*arrays)` gets NumPy arrays, valid during the
        call alone, and returns an array for each of `outs`, (shape, dtype).
        """
        from .host_calls import host_call

        return host_call(self, function, outs, inputs)


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
        self.nest.add(SetStatement(b.parts(self.target), b.parts(value)))


class Nest:
    """Writes an explicit loop program, statement by statement."""

    def __init__(self, builder: Builder):
        self.b = builder
        self.stack: list[list[Statement]] = []
        self.last_if: If | None = None

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
    def loop(self, extent: Index, parallel: bool = False, vector: bool = False) -> Iterator[Expr]:
        """A counting loop; `parallel` promises that iterations are independent, `vector` that they are and contain
        only stores of expressions."""
        var = self.b.loop_var(unwrap(extent))
        body: list[Statement] = []
        with self._block(body):
            yield var
        self.add(Loop(var, unwrap(extent), body, LoopKind.VECTOR if vector else LoopKind.SERIAL, 0 if vector else 1,
                      parallel=parallel))

    def store(self, target: Stored, index: Sequence[Index], value: Expr) -> None:
        self.add(Store(target.buffer, target.place([self.b.index(i) for i in index]), value))

    def load(self, source: Stored, index: Sequence[Index]) -> Expr:
        return self.let(source.at([self.b.index(i) for i in index]))

    def let(self, e: Expr) -> Expr:
        if is_complex(e.dtype):
            return self.b.complex(self.let(e.args[0]), self.let(e.args[1]))
        target = self.b.unique("get", e.dtype, self.b.name("v"), e.bounds)
        self.add(Let(target, e))
        return target

    def var(self, dtype: Any, init: Expr | int | float | None = None) -> Mutable:
        b = self.b
        target = b.mutable(scalar_type(dtype))
        if init is not None and not isinstance(init, Expr):
            init = b.const(init, dtype)
        for t, v in zip(b.parts(target), (None, None) if init is None else b.parts(init), strict=False):
            self.add(DeclareStatement(t, v))
        return Mutable(self, target)

    @contextmanager
    def if_(self, condition: Expr) -> Iterator[None]:
        statement = If(condition, [], [])
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
        self.add(While(head, holds, body))

    def scratch(self, shape: Sequence[Index], dtype: Any) -> Stored:
        """Private memory, not initialised."""
        b = self.b
        buffer = b.buffer(scalar_type(dtype), b.product(tuple(shape)), BufferKind.SCRATCH, stem="w")
        self.add(Scratch(buffer))
        return Stored(b, buffer, tuple(shape), scalar_type(dtype))

    def call(self, symbol: str, arguments: Sequence[Any], reads: Sequence[Any] = (), writes: Sequence[Any] = (),
             result: Any = None, work: float = 1e5) -> Expr | None:
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
        target = None if result is None else b.unique("get", scalar_type(result), b.name("v"))
        self.add(Call(symbol, out, [s.buffer for s in reads], [s.buffer for s in writes], target, work))
        return target


def _split(results: Index, ranges: Shape) -> tuple[int, int] | None:
    """Which range to cut, and the size of a piece, where a reduction is long and has few results."""
    sizes = [r for r in ranges if isinstance(r, int)]
    if not isinstance(results, int) or len(sizes) < len(ranges):
        return None
    count = math.prod(sizes)
    if results * STEP >= LONG_REDUCTION or count < LONG_REDUCTION:
        return None
    axis = 0 if sizes[0] >= 8 else max(range(len(sizes)), key=lambda d: sizes[d])
    rest = count // sizes[axis]
    pieces = min(MAX_PARTS, max(2, count // LONG_REDUCTION))
    size = -(-sizes[axis] // pieces)
    if rest == 1:
        size = -(-size // 64) * 64
    return (axis, size) if size < sizes[axis] else None


def _as_tuple(x: Any) -> tuple:
    return tuple(x) if isinstance(x, (tuple, list)) else (x,)


def _true(e: Expr) -> bool:
    return bool(const_value(e))


def _narrow(dtype: ScalarType) -> bool:
    from .scalars import NARROW_INTS

    return dtype in NARROW_INTS


def _regroup(b: Builder, parts: Sequence[Expr], dtypes: Sequence[ScalarType]) -> tuple[Expr, ...]:
    out = []
    it = iter(parts)
    for d in dtypes:
        out.append(b.complex(next(it), next(it)) if is_complex(d) else next(it))
    return tuple(out)


def _named_combine(b: Builder, name: str) -> Callable[[Sequence[Expr], Sequence[Expr]], tuple[Expr, ...]]:
    method = getattr(b, {"and": "and_", "or": "or_"}.get(name, name))
    return lambda accs, elems: tuple(method(x, y) for x, y in zip(accs, elems, strict=True))


__all__ = ["BOOL", "Builder", "Mutable", "NO_DEPS", "Nest"]
