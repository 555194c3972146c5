"""What a CPU lowering rule works with: scalars, values, reductions, explicit loop nests, library calls."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence, Set
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.types.index_type import INDEX, ScalarType, scalar_type
from ..costs import WORTH_KEEPING
from ..ir.expr import LOADS, UNBOUNDED, Arena, Expr, Index, coefficient, const_value, unwrap, walk
from ..ir.loads import copied
from ..ir.loopir import Buffer, Copy, Statement, Store
from ..ir.values import Computed, Define, Opaque, Operation, Point, Scalar, Shape, Stored, Token, Value, is_empty
from ..program import Kernels
from . import folds, intervals
from .declarations import Declarations
from .nests import Nest
from .number_types import is_complex, is_integer, part_dtype
from .rewrites import LEVELS
from .run_time_sizes import Sizes
from .scalars import Scalars

if TYPE_CHECKING:
    from .interchange import Elements

OFTEN = 16  # so often read, what is made of indices alone is stored if it costs anything: indices have 64 bits
MAX_WORK = 250  # elements of others that one may be made of before it is stored
MAX_DEPTH = 60  # longer chains of inlined values are cut: expressions stay small enough to walk


class Builder:
    """Builds the operations of one program: values and what puts them into memory, over parts that know scalars, sizes,
    and what is declared."""

    # (slots: a builder is made for each program, however small)
    __slots__ = (
        "inline", "constant", "vector_bytes", "aliases", "arena", "scalars", "declarations", "sizes", "ops", "avals_in",
        "avals_out", "unused", "evaluations", "host_calls", "elements", "probing", "kernels", "loops",
        *(
            "index int product iadd isub imul floordiv floormod const cast bitcast lift complex real imag conj select "
            "is_finite reduce_precision add sub mul div rem neg min max abs sign pow ipow sqrt rsqrt cbrt eq ne lt le "
            "gt ge and_ or_ xor not_ add_bits shl shr_logical shr_arith popcount clz binade nextafter copysign floor "
            "ceil trunc round_away round_even exp exp2 expm1 logistic log log2 log1p sin cos tan asin acos atan sinh "
            "cosh tanh atan2 asinh acosh atanh erf erfc erf_inv lgamma digamma polygamma zeta igamma igammac "
            "bessel_i0e bessel_i1e betainc extent at_least resolved name buffer mutable buffers loop_var loop_vars "
            "extents"
        ).split(),
    )

    inline: Callable[..., list[Value]]  # inline(closed, *values): writes a program here (see `lower`)
    constant: Callable[[np.ndarray], Value]  # a table that the program carries with it (see `lower`)

    def __init__(self, numerics: int = LEVELS["default"], vector_bytes: int = 64,
                 kernels: Kernels = Kernels()) -> None:
        self.vector_bytes = vector_bytes  # the widest vector worth using
        self.kernels = kernels  # what the host multiplies matrices with
        self.aliases: dict[Buffer, Buffer] = {}  # the same memory under another dtype
        self.arena = Arena()
        self.scalars = Scalars(self.arena, numerics)
        self.declarations = Declarations(self.scalars)
        self.sizes = Sizes(self.arena)
        self.ops: list[Operation] = []
        self.avals_in: Sequence[Any] = ()
        self.avals_out: Sequence[Any] = ()
        self.unused: Set[int] = frozenset()  # results of the equation that nothing reads
        self.host_calls: list[Any] = []
        self.elements: Elements | None = None  # while the turns of one element are lowered
        self.loops = 0  # around what is lowered
        self.evaluations = 0  # of elements of computed values, so far
        self.probing = False  # while a value's expression is only looked at
        self._offer(self.arena, self.scalars, self.declarations, self.sizes)

    def _offer(self, a: Arena, s: Scalars, d: Declarations, z: Sizes) -> None:
        """What rules see of the parts (`core.programs.lowering.Builder`), and what the compiler asks for often."""
        self.index, self.int, self.product = a.index, a.int, a.product
        self.iadd, self.isub, self.imul, self.floordiv, self.floormod = a.iadd, a.isub, a.imul, a.floordiv, a.floormod
        self.const, self.cast, self.bitcast, self.lift = s.const, s.cast, s.bitcast, s.lift
        self.complex, self.real, self.imag, self.conj = s.complex, s.real, s.imag, s.conj
        self.select, self.is_finite, self.reduce_precision = s.select, s.is_finite, s.reduce_precision
        self.add, self.sub, self.mul, self.div, self.rem, self.neg = s.add, s.sub, s.mul, s.div, s.rem, s.neg
        self.min, self.max, self.abs, self.sign = s.min, s.max, s.abs, s.sign
        self.pow, self.ipow, self.sqrt, self.rsqrt, self.cbrt = s.pow, s.ipow, s.sqrt, s.rsqrt, s.cbrt
        self.eq, self.ne, self.lt, self.le, self.gt, self.ge = s.eq, s.ne, s.lt, s.le, s.gt, s.ge
        self.and_, self.or_, self.xor, self.not_, self.add_bits = s.and_, s.or_, s.xor, s.not_, s.add_bits
        self.shl, self.shr_logical, self.shr_arith = s.shl, s.shr_logical, s.shr_arith
        self.popcount, self.clz, self.binade = s.popcount, s.clz, s.binade
        self.nextafter, self.copysign = s.nextafter, s.copysign
        self.floor, self.ceil, self.trunc = s.floor, s.ceil, s.trunc
        self.round_away, self.round_even = s.round_away, s.round_even
        self.exp, self.exp2, self.expm1, self.logistic = s.exp, s.exp2, s.expm1, s.logistic
        self.log, self.log2, self.log1p = s.log, s.log2, s.log1p
        self.sin, self.cos, self.tan, self.asin, self.acos, self.atan = s.sin, s.cos, s.tan, s.asin, s.acos, s.atan
        self.sinh, self.cosh, self.tanh, self.atan2 = s.sinh, s.cosh, s.tanh, s.atan2
        self.asinh, self.acosh, self.atanh = s.asinh, s.acosh, s.atanh
        self.erf, self.erfc, self.erf_inv = s.erf, s.erfc, s.erf_inv
        self.lgamma, self.digamma, self.polygamma, self.zeta = s.lgamma, s.digamma, s.polygamma, s.zeta
        self.igamma, self.igammac, self.bessel_i0e, self.bessel_i1e = s.igamma, s.igammac, s.bessel_i0e, s.bessel_i1e
        self.betainc = s.betainc
        self.extent, self.at_least, self.resolved = z.extent, z.at_least, z.resolved
        self.name, self.buffer, self.mutable, self.buffers = d.name, d.buffer, d.mutable, d.buffers
        self.loop_var, self.loop_vars, self.extents = d.loop_var, d.loop_vars, d.extents

    def parts(self, e: Expr) -> tuple[Expr, ...]:
        return (self.real(e), self.imag(e)) if is_complex(e.dtype) else (e,)

    # -- memory ----------------------------------------------------------------------------------
    def load(self, buffer: Buffer, place: Expr) -> Expr:
        dtype = buffer.dtype
        if is_complex(dtype):
            part = part_dtype(dtype)
            return self.complex(self.arena.node("load", (place,), part, (buffer, 0)),
                                self.arena.node("load", (place,), part, (buffer, 1)))
        bounds = intervals.of_type(dtype) if is_integer(dtype) else UNBOUNDED
        return self.arena.node("load", (place,), dtype, (buffer, None), buffer.interval or bounds)

    def holds(self, condition: Expr) -> bool:
        """Whether a condition is known to be true."""
        return condition.op == "const" and bool(const_value(condition))

    def load_if(self, condition: Expr, value: Value, index: Sequence[Index], other: Expr) -> Expr:
        """`value.at(index)` where `condition` holds, else `other`; memory is not touched where it does not."""
        if is_empty(value.shape):
            return other
        if condition.op == "const":
            return self.select(condition, value.at(index), other) if not _true(condition) else value.at(index)
        # an index that is in range anyway needs no guard, only a choice
        safe = [self.guard(condition, i, d) for i, d in zip(index, value.shape, strict=True)]
        return self.select(condition, value.at(safe), other)

    def guard(self, condition: Expr, i: Index, extent: Index) -> Expr:
        """An index that is read where a condition holds, and is in range there; it is not touched elsewhere."""
        i = self.index(i)
        high = extent - 1 if isinstance(extent, int) else None
        if high is not None and i.bounds[0] >= 0 and i.bounds[1] <= high:
            return i
        # keeps the index affine where the condition holds: the emitter masks the access (see cpu.emit)
        return self.arena.node("guard", (condition, i, self.index(extent)), INDEX, None,
                         (0, high if high is not None else (1 << 48)))

    # -- values ----------------------------------------------------------------------------------
    def value(self, shape: Sequence[Index], dtype: Any, at: Callable[[tuple[Expr, ...]], Expr],
              flat: Value | None = None) -> Value:
        return Computed(self, tuple(shape), scalar_type(dtype), at, flat)

    def factors(self, condition: Value, dtype: ScalarType) -> Value:
        """Ones and zeros made of a condition. Outside of "strict" numerics products with them are choices."""
        value = Computed(self, condition.shape, dtype, lambda index: self.cast(condition.at(index), dtype))
        value.condition = condition if self.scalars.numerics else None
        return value

    def materialize_if_reused(self, value: Value, times: Index) -> Value:
        """A value for a consumer that reads each element several times: kept where it costs something."""
        if not isinstance(value, Computed) or times == 1:
            return value
        often = isinstance(times, int) and times >= OFTEN and not value.probe()[1].reads
        if value.cost < (1 if often else WORTH_KEEPING):
            return value
        if value.kept is None or value.kept[0] is not self.ops:
            value.kept = self.ops, self.materialize(value)
        return value.kept[1]

    def cost(self, value: Value) -> int:
        """How many instructions, about, an element of a value takes: none where it lies in memory."""
        return value.cost if isinstance(value, Computed) else 0

    def materialize(self, value: Value, buffer: Buffer | None = None) -> Value:
        """The value in memory (or, 0-d, in a scalar): what loops over it again and again should read."""
        if isinstance(value, (Stored, Scalar)) and buffer is None:
            return value
        if self.elements is not None and buffer is None and self.elements.fit(value.shape):
            return self.elements.keep(value)
        if value.shape == () and buffer is None:
            e = value.at(())
            target = self.mutable(value.dtype, bounds=e.bounds)
            self.ops.append(Define(self.parts(target), self.parts(e)))
            return Scalar(target)
        if buffer is None:
            bounds = value.probe()[1].bounds if isinstance(value, Computed) else UNBOUNDED
            buffer = self.buffer(value.dtype, self.product(value.shape), once=True,
                                 interval=None if bounds == UNBOUNDED else bounds)
        stored = Stored(self, buffer, value.shape, value.dtype)
        self.write(stored, value)
        return stored

    def in_rows(self, value: Value) -> Value:
        """A value whose neighbours in the last dimension are read side by side, by lanes that run along it: itself, or
        a copy."""
        last = value.ndim - 1
        if isinstance(value, Stored):
            steps: list[Index | None] = [unwrap(value.strides[last])]
        elif isinstance(value, Computed):
            index, e = value.probe()
            steps = [coefficient(self.arena, n.args[0], index[last]) for n in walk([e]) if n.op in LOADS]
        else:
            return value
        if all(step is not None and self.index(step) in (self.int(0), self.int(1)) for step in steps):
            return value
        return self.materialize(self.value(value.shape, value.dtype, value.at))

    def repeats(self, value: Value, axes: Sequence[int]) -> bool:
        """Whether all along some dimensions elements are known to be the same, as those of what is broadcast are."""
        if isinstance(value, Stored):
            return all(unwrap(value.strides[d]) == 0 for d in axes)
        if not isinstance(value, Computed):
            return False
        index, e = value.probe()
        if any(n.op == "get" for n in walk([e])):  # elements kept apart, of which this is one
            return False
        return e.deps.isdisjoint(index[d] for d in axes)

    def apart(self, value: Value, axis: int) -> Value:
        """The value in memory, its members along a dimension each in an array of its own (a structure of arrays), for
        those who read them one by one: such loops are alike, and share what they have in common."""
        shape = value.shape[:axis] + value.shape[axis + 1:]
        if not all(type(d) is int for d in shape) or math.prod(shape) * value.dtype.itemsize < self.vector_bytes:
            return self.materialize(value)

        return self.stacked([self.materialize(self.member(value, axis, k)) for k in range(value.shape[axis])], axis)

    def member(self, value: Value, axis: int, k: int) -> Value:
        """The k-th of what a dimension of a value has."""
        return self.value(value.shape[:axis] + value.shape[axis + 1:], value.dtype,
                          lambda index: value.at((*index[:axis], self.int(k), *index[axis:])))

    def stacked(self, members: Sequence[Value], axis: int) -> Value:
        """Values of one shape joined along a new dimension; an element is chosen by its number there."""
        def at(index: tuple[Expr, ...]) -> Expr:
            rest, number = index[:axis] + index[axis + 1:], index[axis]
            found = members[-1].at(rest)
            for k in range(len(members) - 2, -1, -1):
                found = self.select(self.eq(number, self.int(k)), members[k].at(rest), found)
            return found

        shape = members[0].shape
        return self.value((*shape[:axis], len(members), *shape[axis:]), members[0].dtype, at)

    def write(self, target: Stored, value: Value, joining: bool = False) -> None:
        """Appends the operation that stores a value. With `joining` what only moves it may share others' loops."""
        if any(isinstance(d, int) and d == 0 for d in value.shape):
            return
        # loops over the shape that elements were made in divide no places
        while isinstance(value, Computed) and value.flat is not None and target.contiguous and value.divides:
            value = value.flat
            target = Stored(self, target.buffer, value.shape, target.dtype, offset=target.offset)
        if isinstance(value, Computed):
            index, e = value.probe()
        else:
            index = self.loop_vars(value.shape)
            e = value.at(index)
        if isinstance(value, Stored) and value.contiguous and target.contiguous and not joining:
            self.ops.append(Opaque([Copy(target.buffer, self.index(target.offset), value.buffer,
                                         self.index(value.offset), self.product(value.shape))]))
            return
        self.ops.append(Point([v for v in index if v.op == "var"], target.buffer, target.place(index), e))

    def joined(self, shape: Sequence[Index], pieces: Sequence[tuple[Value, Index]], dimension: int) -> Value:
        """Pieces in memory, side by side along a dimension, which they need not have; each comes with the place where
        it begins."""
        dtype = pieces[0][0].dtype
        whole = Stored(self, self.buffer(dtype, self.product(shape)), tuple(shape), dtype)
        for x, start in pieces:
            offset = unwrap(self.imul(self.index(start), whole.strides[dimension]))
            strides = [s for d, s in enumerate(whole.strides) if d != dimension or x.ndim == whole.ndim]
            self.write(Stored(self, whole.buffer, x.shape, dtype, strides, offset), x)
        return whole

    def view(self, value: Value) -> Value:
        """The value in memory; one that only rearranges what is stored, by strides, where it lies."""
        if not isinstance(value, Computed):
            return value if value.shape != () else self.in_memory(value)
        index, e = value.probe()
        load = copied(e)
        if load is not None:
            place = load.args[0]
            strides = [coefficient(self.arena, place, v) if v.op == "var" else self.int(1) for v in index]
            if all(s is not None and not s.deps for s in strides):
                zero = self.int(0)
                offset = self.arena.substitute(place, {v: zero for v in index if v.op == "var"}, {})
                return Stored(self, load.attr[0], value.shape, value.dtype, [unwrap(s) for s in strides], offset)  # type: ignore[arg-type]
        return self.materialize(value)

    def in_memory(self, value: Value) -> Stored:
        """The value, contiguous in memory (also 0-d ones)."""
        if isinstance(value, Stored) and value.contiguous:
            return value
        return self.materialize(value, self.buffer(value.dtype, self.product(value.shape)))  # type: ignore[return-value]

    def reshaped(self, value: Value, shape: Sequence[Index]) -> Stored:
        """The value, contiguous in memory, in another shape."""
        stored = self.in_memory(value)
        return Stored(self, stored.buffer, tuple(shape), stored.dtype, offset=stored.offset)

    def of_shape(self, value: Value, shape: Sequence[Index]) -> Value:
        """The value where a guard says that its sizes are these."""
        if tuple(value.shape) == tuple(shape):
            return value
        if isinstance(value, Stored) and value.contiguous:
            return self.reshaped(value, shape)
        return self.value(shape, value.dtype, value.at)

    def pairs(self, value: Value) -> Stored:
        """Floats as complex numbers, half as many along the last dimension: the same memory."""
        *lead, last = value.shape
        dtype = np.dtype(f"complex{16 * value.dtype.itemsize}")
        return self._seen_as(value, dtype, (*lead, last // 2))  # type: ignore[operator]

    def numbers(self, value: Value) -> Stored:
        """Complex numbers as floats, twice as many along the last dimension: the same memory."""
        *lead, last = value.shape
        return self._seen_as(value, part_dtype(value.dtype), (*lead, 2 * last))  # type: ignore[operator]

    def _seen_as(self, value: Value, dtype: ScalarType, shape: Shape) -> Stored:
        stored = self.in_memory(value)
        if stored.offset != 0:
            copy = self.buffer(stored.dtype, self.product(stored.shape))
            stored = self.materialize(stored, copy)  # type: ignore[assignment]
        view = self.buffer(dtype, self.product(shape), stored.buffer.kind)
        self.aliases[view] = stored.buffer
        return Stored(self, view, shape, dtype)

    def turned(self, value: Value, index: Sequence[Index], row: int, count: int) -> Expr:
        """Element `row` after `index`, which differs from lane to lane of `count`: squares are turned in registers."""
        assert isinstance(value, Stored)
        place = value.place([self.index(i) for i in index])
        if not is_complex(value.dtype):
            return self.arena.node("transposed", (place,), value.dtype, (value.buffer, None, row, count))
        part = part_dtype(value.dtype)
        return self.complex(*[
            self.arena.node("transposed", (place,), part, (value.buffer, p, row, count)) for p in (0, 1)])

    def reduce(self, shape: Sequence[Index], ranges: Sequence[Index], dtypes: Sequence[Any], combine: Any,
               init: Sequence[Expr], body: Callable[[tuple[Expr, ...], tuple[Expr, ...]], Any]) -> list[Value]:
        """Folds `body(i, r)` over all r in `ranges`, for every i in `shape`. See the module's guide in README.md."""
        return folds.reduce(self, shape, ranges, dtypes, combine, init, body)

    def few(self, ranges: Sequence[Index]) -> Sequence[Index]:
        """The ranges of a reduction. Those known at run time alone say that they are short where the sizes at hand
        are, and the terms are added in the order in which a program of these sizes adds them."""
        count = self.product(ranges)
        if isinstance(count, int) or not self.sizes.at_most(count, folds.UNROLLED):
            return ranges
        return [d if isinstance(d, int) else self.min(d, self.int(folds.UNROLLED)) for d in ranges]

    def contract(self, lhs: Value, rhs: Value, dimension_numbers: Any, dtype: Any, loops: bool = True) -> Value | None:
        """A dot product over `dimension_numbers` by a library or a kernel, or None where a `reduce` does better."""
        from .products import product

        return product(self, lhs, rhs, dimension_numbers, scalar_type(dtype), loops)

    def for_loops(self, lhs: Value, rhs: Value, dimension_numbers: Any, dtype: Any) -> Value:
        """The right operand of such a product for a `reduce`, laid out anew if that gains."""
        from .products import for_loops

        return for_loops(self, lhs, rhs, dimension_numbers, scalar_type(dtype))

    def convolve(self, lhs: Value, rhs: Value, space: Sequence[tuple[int, ...]], groups: int,
                 dtype: Any, contiguous: bool) -> Value | None:
        """lhs[n, c, …] with rhs[o, c / groups, …] as [n, …, o], or None where a `reduce` is the better way."""
        from .convolution_products import Dimension, convolution

        return convolution(self, lhs, rhs, [Dimension(*d) for d in space], groups, dtype, contiguous)

    # -- explicit programs -----------------------------------------------------------------------
    def begin(self, symbol: str, work: float = 0.0) -> None:
        """Has a native function compiled that the program will call, for so many instructions in all."""
        self.kernels.begin(symbol, work)

    def nest(self, outs: Sequence[tuple], body: Callable[[Nest, list[Stored], list[Stored]], None],
             inputs: Sequence[Value] = ()) -> list[Value]:
        """An explicit loop program that owns its outputs. `outs`: (shape, dtype) or (shape, dtype, value to
        start from)."""
        ins = [self.in_memory(v) for v in inputs]
        targets: list[Stored] = []
        statements: list[Statement] = []
        for out in outs:
            shape, dtype = tuple(out[0]), scalar_type(out[1])
            stored = Stored(self, self.buffer(dtype, self.product(shape)), shape, dtype)
            targets.append(stored)
            if len(out) > 2:
                source = self.in_memory(out[2])
                copy = Copy(stored.buffer, self.int(0), source.buffer, self.index(source.offset), self.product(shape))
                statements.append(copy)
        nest = Nest(self)
        nest.stack.append(statements)
        body(nest, targets, ins)
        nest.finish()
        self.ops.append(Opaque(statements))
        return list(targets)

    def update(self, x: Value, window: Value, starts: Sequence[Index],
               combine: Callable[[Expr, Expr], Expr] | None = None) -> Value:
        """`x` with a window replaced, or combined with what stands there, in place where the memory plan can prove it.
        The window is computed where it goes, unless it is made of other elements that it replaces."""
        if isinstance(x, Stored) and isinstance(window, Computed):
            index, made = window.probe()
            here = x.place([self.iadd(start, i) for start, i in zip(starts, index, strict=True)])
            if any(e.op == "load" and e.attr[0] is x.buffer and e.args[0] is not here for e in walk([made])):
                window = self.materialize(window)
        (out,) = self.nest([(x.shape, x.dtype, x)], lambda *_: None)
        assert isinstance(out, Stored)
        target = Stored(self, out.buffer, window.shape, out.dtype, out.strides, out.place(starts))
        if combine is not None:
            new = window
            window = self.value(new.shape, out.dtype, lambda i: combine(target.at(i), new.at(i)))
        if self.product(window.shape) == 1:
            value = window.at((self.int(0),) * len(window.shape))
            self.ops.append(Opaque([Store(target.buffer, self.index(target.offset), value)]))
        else:
            self.write(target, window)
        return out

    def interleaved(self, shape: Shape, dtype: ScalarType, parts: Sequence[tuple[Sequence[int], Sequence[int], Value]]
                    ) -> Value:
        """Values that fill a shape together: (first places, steps, value) of each."""
        (out,) = self.nest([(shape, dtype)], lambda *_: None)
        assert isinstance(out, Stored)
        for starts, steps, value in parts:
            strides = [self.imul(stride, step) for stride, step in zip(out.strides, steps, strict=True)]
            self.write(Stored(self, out.buffer, value.shape, out.dtype, [unwrap(s) for s in strides],
                              out.place([self.int(i) for i in starts])), value)
        return out

    def call(self, symbol: str, outs: Sequence[tuple], inputs: Sequence[Value],
             arguments: Callable[[list[Stored], list[Stored]], Sequence[Any]]) -> list[Value]:
        """Calls a native library function once. `arguments(outs, ins)` gives its arguments: a scalar by value,
        ("&", scalar) by reference, a value in memory, or (value, offset).
        """
        def body(n: Nest, targets: list[Stored], ins: list[Stored]) -> None:
            n.call(symbol, arguments(targets, ins), reads=ins, writes=targets)

        return self.nest(outs, body, inputs)

    def token(self) -> Value:
        """A token: order is the program's own."""
        return Token()

    def host_call(self, function: Callable[..., Any], outs: Sequence[tuple], inputs: Sequence[Value],
                  in_place: bool = False) -> list[Value]:
        """Calls a Python function at this point of the program. `function(*arrays)` gets NumPy arrays, valid during the
        call alone, and returns an array for each of `outs`, (shape, dtype). With `in_place`,
        `function(arrays, results)` writes the results, which begin as the values in `outs`, (shape, dtype, value).
        """
        from .host_calls import host_call

        return host_call(self, function, outs, inputs, in_place)


def _true(e: Expr) -> bool:
    return bool(const_value(e))
