"""Factorisations of many small matrices at once: the lanes of a vector hold a matrix each.

A call of LAPACK for a matrix of a few rows spends more time on the call than on the matrix. Here blocks of as many
matrices as a vector has lanes are laid side by side in scratch memory, `[rows, columns, lanes]`, and eliminated column
by column (right-looking): every operation is one on vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from styrax.core.types.index_type import INDEX

from ..lane_blocks import blocks, covering
from .matrices import INT32, is_complex, nan_of

if TYPE_CHECKING:
    from styrax.core.programs.lowering import Builder, Expr, Nest, Value

LARGEST = 32  # rows and columns up to which a block stays in near caches
FEWEST = 4  # matrices from which lanes pay


def width_for(b: Builder, x: Value) -> int:
    """How many matrices a block has: a power of two of them. 0 where LAPACK is the better way."""
    *batch, rows, columns = x.shape
    if is_complex(x.dtype) or not all(isinstance(d, int) and 0 < d <= LARGEST for d in (rows, columns)):
        return 0
    count = b.product(batch)
    width = b.vector_bytes // x.dtype.itemsize
    while width >= FEWEST and not b.at_least(count, width):
        width //= 2
    return width if width >= FEWEST else 0


class Block:
    """Matrices side by side: `first` is the number of the first one in the batch."""

    __slots__ = ("b", "dtype", "first", "nest", "width")

    def __init__(self, b: Builder, nest: Nest, first: Expr, width: int, dtype: Any):
        self.b, self.nest, self.first, self.width, self.dtype = b, nest, first, width, dtype

    @contextmanager
    def lanes(self) -> Iterator[Expr]:
        """A loop over the matrices."""
        with self.nest.loop(self.width, vector=True, lanes=self.width) as lane:
            yield lane

    def scratch(self, *shape: int, dtype: Any = None) -> Any:
        return self.nest.scratch((*shape, self.width), self.dtype if dtype is None else dtype)

    def load(self, x: Value, triangle: str = "") -> Any:
        """The matrices of a value `[count, rows, columns]`, or the "lower" or "upper" triangles of them."""
        b, nest = self.b, self.nest
        _, *sizes = x.shape
        rows, columns = known(sizes)
        out = self.scratch(rows, columns)
        with nest.loop(rows) as i:
            begin = i if triangle == "upper" else b.int(0)
            count = b.iadd(i, 1) if triangle == "lower" else b.isub(b.int(columns), begin)
            with nest.loop(count) as k:
                j = b.iadd(begin, k)
                with self.lanes() as lane:
                    nest.store(out, (i, j, lane), x.at((b.iadd(self.first, lane), i, j)))
        return out

    def keep(self, out: Any, work: Any) -> None:
        """Stores `[rows, columns, lanes]` (or `[rows, lanes]`), or the first of these rows, into `[count, …]`, by
        squares that are turned in registers, where there are such."""
        b, nest, width = self.b, self.nest, self.width
        size = int(np.prod(out.shape[1:]))
        to, source = b.reshaped(out, (out.shape[0], size)), b.reshaped(work, (size, width))
        if size < width or work.dtype != self.dtype:
            with nest.loop(size) as k, self.lanes() as lane:
                nest.store(to, (b.iadd(self.first, lane), k), source.at((k, lane)))
            return
        with covering(b, nest, size, width) as begin, self.lanes() as lane:
            k = b.iadd(begin, lane)
            nest.together([(to, (b.iadd(self.first, r), k), b.turned(source, (k, b.int(0)), r, width))
                           for r in range(width)])

    def below(self, k: Expr, size: int) -> Any:
        """A loop over the rows (or columns) behind number `k`; gives their numbers."""
        return _from(self.b, self.nest, self.b.iadd(k, 1), size)

    def update(self, target: Any, place: Sequence[Any], x: Any, y: Any) -> None:
        """Takes a product from an element."""
        b = self.b
        with self.lanes() as lane:
            at = (*place, lane)
            self.nest.store(target, at, b.sub(target.at(at), b.mul(x.at(lane), y.at(lane))))


def known(sizes: Sequence[Any]) -> list[int]:
    """Sizes that are numbers, as those of matrices in lanes are (`width_for`)."""
    assert all(isinstance(d, int) for d in sizes)
    return list(sizes)


@contextmanager
def _from(b: Builder, nest: Nest, first: Expr, last: int) -> Iterator[Expr]:
    """A loop over numbers from `first` to before `last`; gives them."""
    with nest.loop(b.isub(b.int(last), first)) as i:
        yield nest.let(b.iadd(first, i))


class Entry:
    """An element of the matrices of a block."""

    __slots__ = ("place", "work")

    def __init__(self, work: Any, *place: Any):
        self.work, self.place = work, place

    def at(self, lane: Any) -> Any:
        return self.work.at((*self.place, lane))


@contextmanager
def each_block(b: Builder, nest: Nest, count: Any, width: int, dtype: Any) -> Iterator[Block]:
    """A loop over blocks, which threads may share."""
    with blocks(b, nest, 1, count, width) as (_, first):
        yield Block(b, nest, first, width, dtype)


def flat(b: Builder, x: Value) -> Value:
    """A batch as one dimension."""
    *batch, rows, columns = x.shape
    if len(batch) == 1:
        return x
    sizes = [b.index(d) for d in batch]

    def at(index: Sequence[Expr]) -> Expr:
        number, place = index[0], []
        for d in reversed(sizes[1:]):
            place.append(b.floormod(number, d))
            number = b.floordiv(number, d)
        return x.at((number, *reversed(place), *index[1:]))

    return b.value((b.product(batch), rows, columns), x.dtype, at)


# -- factorisations -----------------------------------------------------------------------------------------


def cholesky(block: Block, a: Any, n: int) -> None:
    """Factorises in place; NaN in matrices with a pivot of zero or below, zeros above the diagonal."""
    b, nest = block.b, block.nest
    zero, nan = b.const(0, block.dtype), nan_of(b, block.dtype)
    flaw, inverse = block.scratch(), block.scratch()
    with block.lanes() as lane:
        nest.store(flaw, (lane,), zero)
    with nest.loop(n) as k:
        with block.lanes() as lane:
            pivot = a.at((k, k, lane))
            spoiled = b.select(b.le(pivot, zero), nan, flaw.at((lane,)))
            nest.store(flaw, (lane,), spoiled)
        with block.lanes() as lane:
            root = b.sqrt(a.at((k, k, lane)))
            nest.together([(a, (k, k, lane), root), (inverse, (lane,), b.div(b.const(1, block.dtype), root))])
        with block.below(k, n) as i:
            with block.lanes() as lane:
                nest.store(a, (i, k, lane), b.mul(a.at((i, k, lane)), inverse.at((lane,))))
            with nest.loop(b.isub(i, k)) as m:  # columns k + 1 … i, of rows that are scaled already
                j = nest.let(b.iadd(b.iadd(k, 1), m))
                block.update(a, (i, j), Entry(a, i, k), Entry(a, j, k))
    with nest.loop(n) as i, nest.loop(n) as j, block.lanes() as lane:
        spoiled = flaw.at((lane,))
        value = b.select(b.ne(spoiled, spoiled), nan, a.at((i, j, lane)))
        nest.store(a, (i, j, lane), b.select(b.gt(j, i), zero, value))


def lu(block: Block, a: Any, rows: int, columns: int) -> tuple[Any, Any]:
    """Factorises in place with exchanges of rows; the rows exchanged with, and the order of the rows."""
    b, nest = block.b, block.nest
    steps = min(rows, columns)
    pivots, order = block.scratch(steps, dtype=INT32), block.scratch(rows, dtype=INT32)
    largest, held, moved = block.scratch(), block.scratch(), block.scratch(dtype=INT32)
    one, zero = b.const(1, block.dtype), b.const(0, block.dtype)
    with nest.loop(rows) as i, block.lanes() as lane:
        nest.store(order, (i, lane), b.cast(i, INT32))
    with nest.loop(steps) as k:
        with block.lanes() as lane:
            nest.together([(largest, (lane,), b.abs(a.at((k, k, lane)))), (pivots, (k, lane), b.cast(k, INT32))])
        with block.below(k, rows) as i, block.lanes() as lane:
            size = b.abs(a.at((i, k, lane)))
            larger = b.gt(size, largest.at((lane,)))
            place = b.select(larger, b.cast(i, INT32), pivots.at((k, lane)))
            nest.together([(largest, (lane,), b.select(larger, size, largest.at((lane,)))), (pivots, (k, lane), place)])
        with nest.loop(columns) as j:
            _exchange(block, a, k, pivots, held, lambda row, lane, j=j: (row, j, lane))
        _exchange(block, order, k, pivots, moved, lambda row, lane: (row, lane))
        with block.lanes() as lane:  # of a column of zeros nothing is to be taken
            pivot = a.at((k, k, lane))
            nest.store(held, (lane,), b.select(b.eq(pivot, zero), one, pivot))
        with block.below(k, rows) as i:
            with block.lanes() as lane:
                nest.store(a, (i, k, lane), b.div(a.at((i, k, lane)), held.at((lane,))))
            with block.below(k, columns) as j:
                block.update(a, (i, j), Entry(a, i, k), Entry(a, k, j))
    return pivots, order


def qr(block: Block, a: Any, m: int, n: int, columns: int) -> Any:
    """Factorises in place by reflections, zeros below the diagonal; the first columns of the unitary factor."""
    b, nest, steps = block.b, block.nest, min(m, n)
    zero, one = b.const(0, block.dtype), b.const(1, block.dtype)
    q, sums = block.scratch(m, columns), block.scratch(max(n, columns))
    factors, size, total, divisor = block.scratch(steps), block.scratch(), block.scratch(), block.scratch()

    def reflect(target: Any, j: Expr, first: Expr, last: int) -> None:
        """Applies reflection `j`, whose vector stands below the diagonal of `a`, to columns from `first` on."""
        def each_column() -> Any:
            return _from(b, nest, first, last)

        with each_column() as c, block.lanes() as lane:
            nest.store(sums, (c, lane), target.at((j, c, lane)))
        with block.below(j, m) as i, each_column() as c, block.lanes() as lane:
            nest.store(sums, (c, lane), b.add(sums.at((c, lane)), b.mul(a.at((i, j, lane)), target.at((i, c, lane)))))
        with each_column() as c:
            with block.lanes() as lane:
                nest.store(sums, (c, lane), b.mul(sums.at((c, lane)), factors.at((j, lane))))
            with block.lanes() as lane:
                nest.store(target, (j, c, lane), b.sub(target.at((j, c, lane)), sums.at((c, lane))))
        with block.below(j, m) as i, each_column() as c:
            block.update(target, (i, c), Entry(a, i, j), Entry(sums, c))

    with nest.loop(steps) as j:
        with block.lanes() as lane:
            nest.together([(size, (lane,), b.abs(a.at((j, j, lane)))), (total, (lane,), zero)])
        with block.below(j, m) as i, block.lanes() as lane:
            nest.store(size, (lane,), b.max(size.at((lane,)), b.abs(a.at((i, j, lane)))))
        with block.lanes() as lane:  # squares of huge and tiny numbers are those of their parts of the largest
            nest.store(size, (lane,), b.select(b.eq(size.at((lane,)), zero), one, size.at((lane,))))
        with block.below(j, m) as i, block.lanes() as lane:
            part = b.div(a.at((i, j, lane)), size.at((lane,)))
            nest.store(total, (lane,), b.add(total.at((lane,)), b.mul(part, part)))
        with block.lanes() as lane:
            head, rest = a.at((j, j, lane)), total.at((lane,))
            part = b.div(head, size.at((lane,)))
            length = b.mul(size.at((lane,)), b.sqrt(b.add(b.mul(part, part), rest)))
            image = b.select(b.lt(head, zero), length, b.neg(length))
            none = b.eq(rest, zero)  # nothing to be reflected
            nest.together([
                (factors, (j, lane), b.select(none, zero, b.div(b.sub(image, head), image))),
                (divisor, (lane,), b.select(none, one, b.sub(head, image))),
                (a, (j, j, lane), b.select(none, head, image))])
        with block.below(j, m) as i, block.lanes() as lane:
            nest.store(a, (i, j, lane), b.div(a.at((i, j, lane)), divisor.at((lane,))))
        reflect(a, j, b.iadd(j, 1), n)
    with nest.loop(m) as i, nest.loop(columns) as c, block.lanes() as lane:
        nest.store(q, (i, c, lane), b.select(b.eq(i, c), one, zero))
    with nest.loop(steps) as step:
        j = nest.let(b.isub(b.int(steps - 1), step))
        reflect(q, j, j, columns)
    with nest.loop(m) as i, nest.loop(b.min(i, b.int(n))) as c, block.lanes() as lane:
        nest.store(a, (i, c, lane), zero)
    return q


def _exchange(block: Block, a: Any, k: Expr, pivots: Any, held: Any, place: Any) -> None:
    """Exchanges row `k` of each matrix with that of its pivot."""
    b, nest = block.b, block.nest
    with block.lanes() as lane:
        nest.store(held, (lane,), a.at(place(k, lane)))
    with block.lanes() as lane:
        nest.store(a, place(k, lane), a.at(place(b.cast(pivots.at((k, lane)), INDEX), lane)))
    with block.lanes() as lane:
        nest.store(a, place(b.cast(pivots.at((k, lane)), INDEX), lane), held.at((lane,)))


def substitution(block: Block, entry: Callable[[Any, Any], Entry], place: Callable[[Any, Any], tuple[Any, ...]], x: Any,
                 size: int, others: int, ascending: bool, unit: bool) -> None:
    """Solves triangular systems in place. `entry(i, j)`: an element of the matrices; `place(i, c)`: where element i of
    right-hand side c stands in `x`."""
    b, nest = block.b, block.nest
    with nest.loop(size) as step:
        k = step if ascending else nest.let(b.isub(b.int(size - 1), step))
        if not unit:
            with nest.loop(others) as c, block.lanes() as lane:
                at = (*place(k, c), lane)
                nest.store(x, at, b.div(x.at(at), entry(k, k).at(lane)))
        with nest.loop(b.isub(b.int(size - 1), step)) as m:
            i = nest.let(b.iadd(b.iadd(k, 1), m) if ascending else m)
            with nest.loop(others) as c:
                block.update(x, place(i, c), entry(i, k), Entry(x, *place(k, c)))


__all__ = ["Entry", "cholesky", "each_block", "flat", "known", "lu", "qr", "substitution", "width_for"]
