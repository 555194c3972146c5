"""Tridiagonal systems, by elimination with exchanges of neighbouring rows.

Right-hand sides are the lanes of vectors; of many systems with a few right-hand sides each, the systems are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np

from styrax.core.arrays.array import Array
from styrax.core.programs import rules
from styrax.core.programs.primitive import Primitive
from styrax.core.tracing.trace import get_aval
from styrax.core.types.avals import ShapedArray
from styrax.core.types.typing import ArrayLike
from styrax.transforms import ad

from ..elementwise.arithmetic import mul, neg
from ..indexing.static_slicing import slice_in_dim
from ..lane_blocks import blocks, counted, lanes
from ..shaping.broadcasting import broadcast_in_dim
from ..shaping.filling import pad
from ..shaping.reshaping import reshape, transpose
from .matrices import (
    batch_in_front,
    check_inexact,
    check_same_dtypes,
    each_matrix,
    in_dtype,
    is_complex,
    nan_of,
    result_types,
    shape_of,
    working,
)

if TYPE_CHECKING:
    from styrax.core.programs.lowering import Builder, Expr, Index, Nest, Value

BOOL = np.dtype(np.bool_)
NEAR = 1 << 18  # bytes of systems in lanes, which stay in near caches
STRIP = 16  # bytes of a row that are turned at once
KEPT = 4  # numbers of each row besides its right-hand sides

tridiagonal_solve_p = Primitive("tridiagonal_solve")
batch_in_front(tridiagonal_solve_p, 1, 1, 1)
_apart = rules.batchers[tridiagonal_solve_p]


def _batch(args: Sequence[Any], dims: Sequence[Any], **params: Any) -> tuple[Any, Any]:
    """Right-hand sides alone: they are further ones of the same systems."""
    if any(d is not None for d in dims[:3]):
        return _apart(args, dims, **params)
    sides, rank = args[3], len(shape_of(args[3]))
    sides = transpose(sides, (*(axis for axis in range(rank) if axis != dims[3]), dims[3]))
    *lead, k, size = shape_of(sides)
    out = tridiagonal_solve_p.bind(*args[:3], reshape(sides, (*lead, k * size)), **params)
    return reshape(out, (*lead, k, size)), len(lead) + 1


rules.batchers[tridiagonal_solve_p] = _batch


@result_types(tridiagonal_solve_p)
def _tridiagonal_solve_abstract(dl: ShapedArray, d: ShapedArray, du: ShapedArray, b: ShapedArray, *,
                                perturb_singular: bool = False) -> ShapedArray:
    check_inexact("tridiagonal_solve", dl, d, du, b)
    check_same_dtypes("tridiagonal_solve", dl, d, du, b)
    if len(b.shape) < 2:
        raise TypeError(f"Input 3 to tridiagonal_solve must have rank at least 2, but got shape={b.shape}")
    if not dl.shape == d.shape == du.shape == b.shape[:-1]:
        raise TypeError("tridiagonal_solve: the diagonals must have the shape of b without its last dimension, got "
                        f"{dl.shape}, {d.shape}, {du.shape} and {b.shape}")
    return ShapedArray(b.shape, b.dtype)


def tridiagonal_solve(dl: ArrayLike, d: ArrayLike, du: ArrayLike, b: ArrayLike, *,
                      perturb_singular: bool = False) -> Array:
    """Solves systems with tridiagonal matrices, with row exchanges.

    Args:
      dl: the lower diagonals, `[..., n]`; the first element is not used.
      d: the diagonals, `[..., n]`.
      du: the upper diagonals, `[..., n]`; the last element is not used.
      b: right-hand sides, `[..., n, k]`.
      perturb_singular: for platforms that eliminate without exchanges.

    Returns:
      solutions, of the shape of `b`.
    """
    return tridiagonal_solve_p.bind(dl, d, du, b, perturb_singular=bool(perturb_singular))


def _tridiagonal_solve_loops(b: Builder, dl: Any, d: Any, du: Any, rhs: Any, *, perturb_singular: bool) -> Any:
    dtype = rhs.dtype
    low, middle, high, rhs = (working(b, x) for x in (dl, d, du, rhs))
    *batch, n, k = rhs.shape
    if any(isinstance(size, int) and size == 0 for size in rhs.shape):
        return b.value(rhs.shape, dtype, lambda _: b.const(0, dtype))
    width = _systems_at_once(b, rhs)
    if width:
        out = _in_lanes(b, low, middle, high, rhs, width)
    else:
        def body(nest: Nest, outs: list[Value], ins: list[Value]) -> None:
            with each_matrix(nest, batch) as at:
                _Columns(b, nest, n, k, outs[0], at).solve(low, middle, high)

        out = b.nest([(rhs.shape, rhs.dtype, rhs)], body)[0]
    return in_dtype(b, out, dtype)


def _systems_at_once(b: Builder, rhs: Value) -> int:
    """How many systems lanes hold, one each: 0 where right-hand sides fill them, or nothing does."""
    *batch, n, k = rhs.shape
    width = b.vector_bytes // rhs.dtype.itemsize
    if is_complex(rhs.dtype) or not (isinstance(n, int) and isinstance(k, int)):
        return 0
    row = n * rhs.dtype.itemsize
    near = STRIP <= row and (KEPT + k) * row * width <= NEAR
    return width if near and 2 * k <= width and b.at_least(b.product(batch), width) else 0


class _Systems:
    """Elimination with exchanges of neighbouring rows (LAPACK's `gtsv`), by which a row has two elements right of the
    diagonal; then substitution. What one row leaves for the next has a place of its own, which is a register where
    there is one system with one right-hand side."""

    def __init__(self, b: Builder, nest: Nest, n: Index, k: Index, dtype: Any, width: int):
        self.b, self.nest, self.n, self.k, self.dtype, self.width = b, nest, n, k, dtype, width
        self.diagonal, self.next, self.far = (self.scratch(n) for _ in range(3))
        self.factor, self.stays, self.flawed = self.scratch(), self.scratch(dtype=BOOL), self.scratch(dtype=BOOL)
        self.pivot, self.beside = self.scratch(), self.scratch()  # of the row that is eliminated with
        self.side, self.other_side = self.scratch(k), self.scratch(k)

    def scratch(self, *shape: Index, dtype: Any = None) -> Value:
        return self.nest.scratch((*shape, self.width), self.dtype if dtype is None else dtype)

    def rows(self, fewer: int) -> Index:
        """The number of rows but for some, if there are as many."""
        b, n = self.b, self.n
        return max(n - fewer, 0) if isinstance(n, int) else b.max(b.isub(n, fewer), b.int(0))

    def lanes(self) -> AbstractContextManager[Expr]:
        """A loop over the systems."""
        return lanes(self.b, self.nest, self.width, self.width)

    def each(self) -> AbstractContextManager[tuple[Value, Callable[[Expr], tuple[Any, ...]], tuple[Expr, Expr]]]:
        """A loop over the right-hand sides: where they are, the place of an element by its row, and the side and the
        system."""
        raise NotImplementedError

    def put(self, stores: Sequence[tuple[Value, Sequence[Any], Expr]], alone: bool) -> None:
        """Stores what is computed before any of it. `alone`: not for lanes, so that scalars can replace memory."""
        if not alone:
            self.nest.together(stores)
            return
        values = [self.nest.let(value) for _, _, value in stores]
        for (target, index, _), value in zip(stores, values, strict=True):
            self.nest.store(target, index, value)

    @property
    def one_side(self) -> bool:
        return self.width == 1 and isinstance(self.k, int) and self.k == 1

    def size(self, x: Expr) -> Expr:
        """What pivots are chosen by: of complex numbers, as LAPACK does, the sum of both parts."""
        b = self.b
        return b.add(b.abs(b.real(x)), b.abs(b.imag(x))) if is_complex(self.dtype) else b.abs(x)

    def eliminate(self, low: Callable[[Expr, Expr], Expr]) -> None:
        """`low`: an element below the diagonal by its row and its system."""
        b, nest, alone = self.b, self.nest, self.width == 1
        zero, start = b.const(0, self.dtype), b.int(0)
        with self.lanes() as lane:
            self.put([(self.flawed, (lane,), b.const(False, BOOL)),
                      (self.pivot, (lane,), self.diagonal.at((start, lane))),
                      (self.beside, (lane,), self.next.at((start, lane)))], alone)
        with self.each() as (x, place, (column, lane)):
            nest.store(self.side, (column, lane), x.at(place(start)))
        with nest.loop(self.rows(1)) as i:
            j = nest.let(b.iadd(i, 1))
            with self.lanes() as lane:
                here, there = (i, lane), (j, lane)
                p, q, l = self.pivot.at((lane,)), self.beside.at((lane,)), low(j, lane)
                d, u = self.diagonal.at(there), self.next.at(there)
                stay = b.ge(self.size(p), self.size(l))
                pivot, second, third = b.select(stay, p, l), b.select(stay, q, d), b.select(stay, zero, u)
                factor = b.div(b.select(stay, l, p), pivot)
                flawed = b.or_(self.flawed.at((lane,)), b.eq(pivot, zero))
                self.put([
                    (self.factor, (lane,), factor), (self.stays, (lane,), stay), (self.flawed, (lane,), flawed),
                    (self.diagonal, here, pivot), (self.next, here, second), (self.far, here, third),
                    (self.pivot, (lane,), b.sub(b.select(stay, d, q), b.mul(factor, second))),
                    (self.beside, (lane,), b.sub(b.select(stay, u, zero), b.mul(factor, third)))], alone)
            with self.each() as (x, place, (column, lane)):
                stay, first, other = self.stays.at((lane,)), self.side.at((column, lane)), x.at(place(j))
                kept = b.select(stay, first, other)
                left = b.sub(b.select(stay, other, first), b.mul(self.factor.at((lane,)), kept))
                self.put([(x, place(i), kept), (self.side, (column, lane), left)], self.one_side)
        last = nest.let(b.isub(self.n, 1))
        with self.lanes() as lane:  # division by NaN spoils the solutions of a flawed system
            pivot = self.pivot.at((lane,))
            flawed = b.or_(self.flawed.at((lane,)), b.eq(pivot, zero))
            nest.store(self.diagonal, (last, lane), b.select(flawed, nan_of(b, self.dtype), pivot))
        with self.each() as (x, place, (column, lane)):
            nest.store(x, place(last), self.side.at((column, lane)))

    def substitute(self) -> None:
        b, nest = self.b, self.nest

        def solve(i: Expr, terms: int) -> None:
            with self.each() as (x, place, (column, lane)):
                value, at = x.at(place(i)), (column, lane)
                for factors, below in ((self.next, self.side), (self.far, self.other_side))[:terms]:
                    value = b.sub(value, b.mul(factors.at((i, lane)), below.at(at)))
                result = b.div(value, self.diagonal.at((i, lane)))
                shifted = [(self.other_side, at, self.side.at(at))] if terms else []
                self.put([*shifted, (x, place(i), result), (self.side, at, result)], self.one_side)

        solve(nest.let(b.isub(self.n, 1)), 0)
        with nest.loop(b.min(b.index(self.rows(1)), b.int(1))):
            solve(nest.let(b.isub(self.n, 2)), 1)
        with nest.loop(self.rows(2)) as step:
            solve(nest.let(b.isub(b.isub(self.n, 3), step)), 2)


class _Columns(_Systems):
    """One system: right-hand sides are lanes."""

    def __init__(self, b: Builder, nest: Nest, n: Index, k: Index, out: Value, at: Sequence[Expr]):
        super().__init__(b, nest, n, k, out.dtype, 1)
        self.out, self.at = out, at

    @contextmanager
    def each(self) -> Iterator[tuple[Value, Callable[[Expr], tuple[Any, ...]], tuple[Expr, Expr]]]:
        itemsize = self.dtype.itemsize // (2 if is_complex(self.dtype) else 1)
        with nullcontext(self.b.int(0)) if self.one_side else self.nest.loop(
                self.k, vector=True, lanes=self.b.vector_bytes // itemsize) as column:
            yield self.out, lambda i: (*self.at, i, column), (column, self.b.int(0))

    def solve(self, low: Value, middle: Value, high: Value) -> None:
        b, nest = self.b, self.nest
        with nest.loop(self.n) as i:
            nest.store(self.diagonal, (i, 0), middle.at((*self.at, i)))
        with nest.loop(self.rows(1)) as i:
            nest.store(self.next, (i, 0), high.at((*self.at, i)))
        nest.store(self.next, (b.isub(self.n, 1), 0), b.const(0, self.dtype))
        self.eliminate(lambda i, _: low.at((*self.at, i)))
        self.substitute()


class _Lanes(_Systems):
    """As many systems as lanes: right-hand sides one after the other."""

    def __init__(self, b: Builder, nest: Nest, n: int, k: int, dtype: Any, width: int):
        super().__init__(b, nest, n, k, dtype, width)
        self.low, self.sides = self.scratch(n), self.scratch(n, k)

    @contextmanager
    def each(self) -> Iterator[tuple[Value, Callable[[Expr], tuple[Any, ...]], tuple[Expr, Expr]]]:
        with counted(self.b, self.nest, self.k) as column, self.lanes() as lane:
            yield self.sides, lambda i: (i, column, lane), (column, lane)


def _in_lanes(b: Builder, low: Value, middle: Value, high: Value, rhs: Value, width: int) -> Value:
    *batch, n, k = rhs.shape
    assert isinstance(n, int) and isinstance(k, int)
    count = b.product(batch)
    diagonals = [b.reshaped(b.in_memory(x), (count, n)) for x in (low, middle, high)]
    sides = b.reshaped(b.in_memory(rhs), (count, n * k))

    def body(nest: Nest, outs: list[Value], ins: list[Value]) -> None:
        with blocks(b, nest, 1, count, width) as (_, first):
            systems = _Lanes(b, nest, n, k, rhs.dtype, width)
            start = b.imul(first, n)
            for x, into in zip(diagonals, (systems.low, systems.diagonal, systems.next), strict=True):
                nest.turn(into, b.int(0), width, x, start, n, width, n)
            with systems.lanes() as lane:
                nest.store(systems.next, (n - 1, lane), b.const(0, rhs.dtype))
            nest.turn(systems.sides, b.int(0), width, sides, b.imul(first, n * k), n * k, width, n * k)
            systems.eliminate(lambda i, lane: systems.low.at((i, lane)))
            systems.substitute()
            nest.turn(outs[0], b.imul(first, n * k), n * k, systems.sides, b.int(0), width, n * k, width)

    return b.reshaped(b.nest([((count, n * k), rhs.dtype)], body)[0], rhs.shape)


rules.loops[tridiagonal_solve_p] = _tridiagonal_solve_loops


def _beside(x: Any, by: int) -> Any:
    """Rows moved up (`by` = 1) or down (-1), with zeros moving in."""
    shape = shape_of(x)
    axis = len(shape) - 2
    kept = slice_in_dim(x, 1, None, axis=axis) if by > 0 else slice_in_dim(x, 0, shape[axis] - 1, axis=axis)
    config = [(0, 0, 0)] * len(shape)
    config[axis] = (0, 1, 0) if by > 0 else (1, 0, 0)
    return pad(kept, np.zeros((), get_aval(x).dtype), config)


def _each_row(diagonal: Any, x: Any) -> Any:
    shape = shape_of(x)
    return mul(broadcast_in_dim(diagonal, shape, tuple(range(len(shape) - 1))), x)


def _tridiagonal_solve_jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
    *diagonals, _ = primals
    out = tridiagonal_solve_p.bind(*primals, **params)
    total: Any = tangents[3]
    for tangent, moved in zip(tangents, (-1, 0, 1), strict=False):
        if type(tangent) is not ad.Zero:
            neighbour = out if moved == 0 else _beside(out, moved)
            total = ad.add_tangents(total, neg(_each_row(tangent, neighbour)))
    if type(total) is ad.Zero:
        return out, ad.Zero.from_primal_value(out)
    return out, tridiagonal_solve_p.bind(*diagonals, total, **params)


rules.jvps[tridiagonal_solve_p] = _tridiagonal_solve_jvp


def _tridiagonal_solve_transpose(ct: Any, dl: Any, d: Any, du: Any, b: Any, **params: Any) -> list[Any]:
    assert ad.is_undefined_primal(b)
    if type(ct) is ad.Zero:
        return [None, None, None, ad.Zero(b.aval)]

    def shifted(x: Any, by: int) -> Any:
        axis = len(shape_of(x)) - 1
        n = shape_of(x)[axis]
        kept = slice_in_dim(x, 1, None, axis=axis) if by > 0 else slice_in_dim(x, 0, n - 1, axis=axis)
        config = [(0, 0, 0)] * (axis + 1)
        config[axis] = (0, 1, 0) if by > 0 else (1, 0, 0)
        return pad(kept, np.zeros((), get_aval(x).dtype), config)

    return [None, None, None, tridiagonal_solve_p.bind(shifted(du, -1), d, shifted(dl, 1), ct, **params)]


rules.transposes[tridiagonal_solve_p] = _tridiagonal_solve_transpose
