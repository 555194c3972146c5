"""Factorisations of large matrices by blocks of columns: the library factorises a block, and the threads share what
becomes of the columns behind it (right-looking: Golub and Van Loan, Matrix Computations, sections 4.2, 3.4 and 5.2).

The library's own routines run on one thread. Blocks depend on shapes alone, so that results have the same bits on any
number of threads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from .matrices import INT32, Routine, is_complex, place_of

if TYPE_CHECKING:
    from styrax.core.programs.lowering import Builder, Nest

BLOCK = 48  # columns of a block
BLOCKS = 4  # the fewest that are worth it
PANEL = 128  # columns of a panel whose columns do not depend on one another, at most
TRIANGLES = 64 * 65  # elements that LAPACK's products of reflections want besides
TALL = 8  # times as many rows as columns: factorising blocks is nearly all the work


def pays(batch: Sequence[Any], rows: Any, columns: Any) -> bool:
    """Whether a matrix is factorised by blocks: a single one, large in both directions."""
    sizes = (*batch, rows, columns)
    if not all(isinstance(d, int) for d in sizes) or any(d != 1 for d in batch):
        return False
    return min(rows, columns) >= BLOCKS * BLOCK and rows <= TALL * columns


def panel(count: int) -> int:
    """How many of so many independent columns each thread's call takes: an even number of panels, nearly of one width,
    in whole eights."""
    return -(-count // (2 * -(-count // (2 * PANEL))) // 8) * 8


class Columns:
    """A matrix that lies in memory by columns: the matrix `at` of a value with rows and columns exchanged."""

    def __init__(self, b: Builder, n: Nest, value: Any, at: list[Any]):
        self.b, self.n, self.value, self.dtype = b, n, value, value.dtype
        self.count, self.rows = value.shape[-2:]
        self._memory, self._start = place_of(b, value, at)

    def element(self, row: Any, column: Any) -> tuple[Any, Any]:
        """Where an element is."""
        b = self.b
        return self._memory, b.add(self._start, b.add(b.mul(b.index(column), b.index(self.rows)), b.index(row)))

    def routine(self, name: str, library: str = "lapack") -> Routine:
        return Routine(self.b, self.n, name, self.dtype, library)

    def number(self, value: int) -> tuple[str, Any]:
        """A scalar factor, as BLAS takes it."""
        return "&", self.b.const(value, self.dtype)

    def below(self, row: Any) -> Any:
        """How many rows there are from one on."""
        return self.b.sub(self.b.index(self.rows), self.b.index(row))

    @contextmanager
    def each_block(self, steps: int, back: bool = False) -> Iterator[tuple[Any, Any, Any]]:
        """A loop over the blocks of the first columns: the number of each, its first column, and how many it has."""
        b, blocks = self.b, -(-steps // BLOCK)
        with self.n.loop(blocks) as turn:
            k = b.sub(b.index(blocks - 1), turn) if back else turn
            start = b.mul(k, b.index(BLOCK))
            yield k, start, b.min(b.index(BLOCK), b.sub(b.index(steps), start))

    @contextmanager
    def blocks_from(self, first: Any) -> Iterator[tuple[Any, Any, Any]]:
        """The same for all columns from one on, which the threads share."""
        b = self.b
        rest = b.sub(b.index(self.count), b.index(first))
        with self.n.loop(b.floordiv(b.add(rest, b.index(BLOCK - 1)), b.index(BLOCK)), parallel=True) as j:
            passed = b.mul(j, b.index(BLOCK))
            yield j, b.add(b.index(first), passed), b.min(b.index(BLOCK), b.sub(rest, passed))


def cholesky(b: Builder, n: Nest, x: Any, info: Any, at: list[Any]) -> None:
    """Makes the upper triangle of x, given by columns, the factor u of uᴴ u; `info` is not 0 if there is none."""
    u, size = Columns(b, n, x, at), x.shape[-1]
    potrf, trsm, gemm = u.routine("potrf"), u.routine("trsm", "blas"), u.routine("gemm", "blas")
    failed, place = n.scratch((1,), INT32), [*at, b.index(0)]
    n.store(info, place, b.const(0, INT32))
    with u.each_block(size) as (_, start, count):
        potrf("U", count, u.element(start, start), size, failed, writes=[x, failed])
        n.store(info, place, b.max(n.load(info, place), n.load(failed, [b.index(0)])))
        behind = b.add(start, count)
        with u.blocks_from(behind) as (_, column, wide):
            trsm("L", "U", "C", "N", count, wide, u.number(1), u.element(start, start), size, u.element(start, column),
                 size, reads=[x], writes=[x])
        with u.blocks_from(behind) as (_, column, wide):
            gemm("C", "N", b.add(b.sub(column, behind), wide), wide, count, u.number(-1), u.element(start, behind),
                 size, u.element(start, column), size, u.number(1), u.element(behind, column), size, reads=[x],
                 writes=[x])


def lu(b: Builder, n: Nest, x: Any, pivots: Any, at: list[Any]) -> None:
    """Makes x, given by columns, both factors, with row exchanges, which are counted from 1."""
    f, rows, steps = Columns(b, n, x, at), x.shape[-1], pivots.shape[-1]
    getrf, laswp, trsm, gemm = (f.routine("getrf"), f.routine("laswp"), f.routine("trsm", "blas"),
                                f.routine("gemm", "blas"))
    exchanges, first = place_of(b, pivots, at)
    info = n.scratch((1,), INT32)
    with f.each_block(steps) as (_, start, count):
        own, behind = (exchanges, b.add(first, start)), b.add(start, count)
        getrf(f.below(start), count, f.element(start, start), rows, own, info, writes=[x, pivots, info])
        with f.blocks_from(behind) as (_, column, wide):
            laswp(wide, f.element(start, column), rows, 1, count, own, 1, reads=[pivots], writes=[x])
            trsm("L", "L", "N", "U", count, wide, f.number(1), f.element(start, start), rows, f.element(start, column),
                 rows, reads=[x], writes=[x])
            gemm("N", "N", f.below(behind), wide, count, f.number(-1), f.element(behind, start), rows,
                 f.element(start, column), rows, f.number(1), f.element(behind, column), rows, reads=[x], writes=[x])
        with n.loop(count) as i:
            place = [*at, b.add(start, i)]
            n.store(pivots, place, b.add(n.load(pivots, place), b.cast(start, INT32)))
    with n.loop((steps - 1) // BLOCK, parallel=True) as k:  # the columns of a block, by the exchanges of later ones
        column = b.mul(k, b.index(BLOCK))
        laswp(BLOCK, f.element(0, column), rows, b.add(column, b.index(BLOCK + 1)), steps, (exchanges, first), 1,
              reads=[pivots], writes=[x])


def qr(b: Builder, n: Nest, x: Any, tau: Any, at: list[Any], q: Any = None) -> None:
    """Makes x, given by columns, its upper triangular factor, with elementary reflections below that, whose factors
    are `tau`; and `q`, by columns, their product."""
    f, rows, steps = Columns(b, n, x, at), x.shape[-1], min(x.shape[-2:])
    geqrf, larft = f.routine("geqrf"), f.routine("larft")
    factors, first = place_of(b, tau, at if len(tau.shape) > 1 else [])
    room = BLOCK * BLOCK
    triangles = n.scratch((-(-steps // BLOCK) * room,), x.dtype)  # of the compact form of each block's reflections
    info, work = n.scratch((1,), INT32), n.scratch((room,), x.dtype)
    others = n.scratch((-(-max(x.shape[-2], q.shape[-2] if q is not None else 0) // BLOCK) * room,), x.dtype)

    def reflected(target: Columns, operation: str, k: Any, start: Any, count: Any, column: Any, wide: Any,
                  j: Any) -> None:
        target.routine("larfb")(
            "L", operation, "F", "C", f.below(start), wide, count, f.element(start, start), rows,
            (triangles, b.mul(k, b.index(room))), BLOCK, target.element(start, column), rows,
            (others, b.mul(j, b.index(room))), BLOCK, reads=[x, triangles], writes=[target.value, others])

    with f.each_block(steps) as (k, start, count):
        own = factors, b.add(first, start)
        geqrf(f.below(start), count, f.element(start, start), rows, own, work, room, info,
              writes=[x, tau, work, info])
        larft("F", "C", f.below(start), count, f.element(start, start), rows, own,
              (triangles, b.mul(k, b.index(room))), BLOCK, reads=[x, tau], writes=[triangles])
        with f.blocks_from(b.add(start, count)) as (j, column, wide):
            reflected(f, "C" if is_complex(x.dtype) else "T", k, start, count, column, wide, j)
    if q is None:
        return
    one, zero = b.const(1, x.dtype), b.const(0, x.dtype)
    with n.loop(q.shape[-2], parallel=True) as j, n.loop(rows) as i:
        n.store(q, [*at, j, i], b.select(b.eq(i, j), one, zero))
    product = Columns(b, n, q, at)
    with f.each_block(steps, back=True) as (k, start, count), product.blocks_from(start) as (j, column, wide):
        reflected(product, "N", k, start, count, column, wide, j)


def eigen(b: Builder, n: Nest, x: Any, w: Any, v: Any, info: Any, at: list[Any], triangle: str) -> None:
    """Eigenvalues w and eigenvectors v, by columns, of a Hermitian x, given by one triangle, which it overwrites: its
    tridiagonal form, divide and conquer on that, and reflections of vectors, which the threads share."""
    f, z, size, real = Columns(b, n, x, at), Columns(b, n, v, at), x.shape[-1], w.dtype
    hermitian = is_complex(x.dtype)
    place, status = [*at], n.scratch((1,), INT32)
    off, tau = n.scratch((size,), real), n.scratch((size,), x.dtype)
    work, ints = n.scratch((1 + 4 * size + size * size,), x.dtype), n.scratch((3 + 5 * size,), INT32)
    numbers = n.scratch((1 + 4 * size + 2 * size * size,), real) if hermitian else None
    f.routine("hetrd" if hermitian else "sytrd")(
        triangle, size, f.element(0, 0), size, place_of(b, w, at), off, tau, work, size * BLOCK, status,
        writes=[x, w, off, tau, work, status])
    more = [] if numbers is None else [numbers, 1 + 4 * size + 2 * size * size]
    f.routine("stedc")(
        "I", size, place_of(b, w, at), off, z.element(0, 0), size, work, 1 + 4 * size + size * size, *more, ints,
        3 + 5 * size, status, writes=[w, off, v, work, ints, status, *more[:1]])
    n.store(info, place, n.load(status, [b.index(0)]))
    wide, statuses = panel(size), n.scratch((size,), INT32)
    room = wide * BLOCK + TRIANGLES
    panels = -(-size // wide)
    rooms = n.scratch((panels * room,), x.dtype)
    with n.loop(panels, parallel=True) as p:
        column = b.mul(p, b.index(wide))
        count = b.min(b.index(wide), b.sub(b.index(size), column))
        f.routine("unmtr" if hermitian else "ormtr")(
            "L", triangle, "N", size, count, f.element(0, 0), size, tau, z.element(0, column), size,
            (rooms, b.mul(p, b.index(room))), room, (statuses, p), reads=[x, tau], writes=[v, rooms, statuses])
