"""Matrix products: large ones go to BLAS on panels that the shape alone decides, the others are loops.

BLAS is single-threaded inside and our own threads share the panels, so the bits do not depend on their number. Sums of
few rows and columns over many terms are cut into stretches instead (split-K). A program whose sizes are known only when
it runs is either one for large products or one for others (`Builder.at_least`).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..ir.expr import LOADS, Expr, Index, coefficient, unwrap, walk
from ..ir.loads import copied
from ..ir.values import Computed, Stored, Value
from ..registers import is_avx512
from . import panel_products, tile_products
from .number_types import is_complex

if TYPE_CHECKING:
    from .builder import Builder, Nest

BLAS: dict[np.dtype, str] = {
    np.dtype(np.float32): "s", np.dtype(np.float64): "d", np.dtype(np.complex64): "c", np.dtype(np.complex128): "z"}
LARGE = 1 << 18  # multiplications of one product from which a call into BLAS pays; below, tiles in registers do better,
REPEATED = 1 << 21  # and longer in loops, which are worth some milliseconds of compilation (not with AVX-512)
THREADED = 1 << 20  # multiplications from which a product is cut into panels
FEWEST = 4  # rows and columns that are BLAS's
NEAR = 1 << 19  # bytes of a right operand that loops read again and again
PACKED = 16  # rows from which a right operand is worth a copy by columns
PANEL = 512  # rows of a panel at most
SMALL = 10**6  # multiplications of a product for which OpenBLAS has kernels that read operands where they lie
LONG, STRETCHES = 8, 8  # times the longer edge from which sums are cut into stretches, and how many of these at most
FEW_ROWS, FEW_TERMS = 8, 24  # edges up to which loops keep up with memory (see `loops_do_better`), and
FEW = 12, 16  # others that a tile in registers holds, of which the processor has 16 or 32
INT32 = np.dtype(np.int32)

Dims = Sequence[int]


class Matrices:
    """An operand as a batch of matrices, in dimensions of (size, stride): element (b, i, k) lies at offset + the place
    of b + i·row + k·column."""

    __slots__ = ("value", "batch", "row", "column")

    def __init__(self, value: Stored, batch: Sequence[tuple[Index, Index]], row: Index, column: Index):
        self.value = value
        self.batch = batch
        self.row = row
        self.column = column

    def start(self, b: Builder, number: Expr) -> Expr:
        """Where a matrix begins."""
        out = b.int(0)
        for k, (size, stride) in enumerate(reversed(self.batch)):
            last = k == len(self.batch) - 1
            out = b.iadd(out, b.imul(number if last else b.floormod(number, size), stride))
            number = number if last else b.floordiv(number, size)
        return out


def product(b: Builder, lhs: Value, rhs: Value, dimension_numbers: Any, dtype: np.dtype, loops: bool = True
            ) -> Value | None:
    """The dot product over the contracted dimensions by BLAS or a kernel, or None where loops are the better way.
    `loops`: whether who asks has such that take what BLAS is slow at."""
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
    lhs_free = [d for d in range(lhs.ndim) if d not in lhs_contract and d not in lhs_batch]
    rhs_free = [d for d in range(rhs.ndim) if d not in rhs_contract and d not in rhs_batch]
    sizes = [b.product([v.shape[d] for d in dims]) for v, dims in
             ((lhs, lhs_batch), (lhs, lhs_free), (rhs, rhs_free), (lhs, lhs_contract))]
    count, m, n, k = sizes
    shape = tuple(lhs.shape[d] for d in (*lhs_batch, *lhs_free)) + tuple(rhs.shape[d] for d in rhs_free)
    assert isinstance(lhs.dtype, np.dtype) and isinstance(rhs.dtype, np.dtype)
    if dtype == lhs.dtype == rhs.dtype and panel_products.streams(b, dtype, m, n, k):
        rows = _by_rows(b, rhs, (count, n, k), rhs_batch, rhs_free, rhs_contract)
        if rows is not None:
            return panel_products.streamed(
                b, _to_be_packed(b, lhs, (count, m, k), lhs_batch, lhs_free, lhs_contract, lhs_contract), rows, shape)
    along_columns = _runs_along(b, rhs, rhs_free)
    if dtype == rhs.dtype and dtype in panel_products.FLOATS and loops_do_better(
            m, n, k, FEW[is_avx512(b.vector_bytes)] if along_columns else 0):
        return None
    if loops and dtype == lhs.dtype == rhs.dtype and dtype in panel_products.FLOATS and _loops_beat_blas(
            b, dtype, m, n, k):
        return None
    if b.kernels.tiles and (found := tile_products.kind(lhs.dtype, rhs.dtype, dtype)) and tile_products.pays(m, n, k):
        return tile_products.product(b, found, dtype, _cubic(b, lhs, (count, m, k), lhs_batch, lhs_free, lhs_contract),
                                     _cubic(b, rhs, (count, n, k), rhs_batch, rhs_free, rhs_contract), shape)
    if dtype == lhs.dtype == rhs.dtype and dtype in BLAS and count == 1 and (
            pieces := _stretches(m, n, k)) > 1 and not _blas_is_narrow(b, m, n, k):
        return _in_stretches(b, dtype, m, n, k, _matrices(b, lhs, lhs_batch, lhs_free, lhs_contract),
                             _matrices(b, rhs, rhs_batch, rhs_free, rhs_contract), shape, _small(m, n, k, pieces))
    found = panel_products.kind(b, lhs.dtype, rhs.dtype, dtype)
    own = found is not None and all(panel_products.pays(b, m, n, k, blas) for blas in (True, False))
    by_blas = lhs.dtype in BLAS and not own and not _blas_is_narrow(b, m, n, k)  # (asking it opens the library)
    if dtype == lhs.dtype == rhs.dtype and not by_blas and panel_products.FLOATS.get(dtype) in b.kernels.panels:
        found = panel_products.FLOATS[dtype]
    if found is not None and panel_products.pays(b, m, n, k, by_blas):
        return panel_products.product(
            b, found, dtype, _to_be_packed(b, lhs, (count, m, k), lhs_batch, lhs_free, lhs_contract, lhs_contract),
            _to_be_packed(b, rhs, (count, n, k), rhs_batch, rhs_free, rhs_contract, rhs_free), shape,
            _stretches(m, n, k))
    if dtype not in BLAS or lhs.dtype != dtype or rhs.dtype != dtype:
        return None
    large = REPEATED if b.loops and not is_complex(dtype) and not is_avx512(b.vector_bytes) else LARGE
    if 0 in (m, n, k) or not (b.at_least(b.product([m, n, k]), large)
                               and b.at_least(m, FEWEST) and b.at_least(n, FEWEST)):
        return None
    left = _matrices(b, lhs, lhs_batch, lhs_free, lhs_contract)
    right = _matrices(b, rhs, rhs_batch, rhs_free, rhs_contract)

    def body(nest: Nest, outs: list[Stored], ins: list[Stored]) -> None:
        out = outs[0]
        if isinstance(count, int) and count == 1:
            _panels(b, nest, dtype, m, n, k, left, right, out)
            return
        with nest.loop(count, parallel=True) as i:
            _gemm(b, nest, dtype, m, n, k, left, right, out, left.start(b, i), right.start(b, i),
                  b.imul(i, b.product([m, n])))

    (result,) = b.nest([(shape, dtype)], body)
    return result


def loops_do_better(m: Index, n: Index, k: Index, few: int) -> bool:
    """Whether an edge is so short that packing, in BLAS or here, costs more than it gains. `few`: up to how many rows
    or columns, which is none where the elements of the right operand's rows do not lie side by side, unless there is
    little to do for each of them."""
    if not (isinstance(m, int) and isinstance(n, int) and isinstance(k, int)):
        return False
    return m <= FEW_ROWS or k <= FEW_TERMS or min(m, n) <= few


def _loops_beat_blas(b: Builder, dtype: np.dtype, m: Index, n: Index, k: Index) -> bool:
    """Whether tiles in registers do better than a BLAS that computes in narrower vectors than the host has, without
    packing: where caches hold the right operand."""
    near = isinstance(n, int) and isinstance(k, int) and k * n * dtype.itemsize <= NEAR
    return near and _blas_is_narrow(b, m, n, k)


def _blas_is_narrow(b: Builder, m: Index, n: Index, k: Index) -> bool:
    """Whether BLAS, for which a product is large enough, computes in narrower vectors than the host has."""
    if not (isinstance(m, int) and isinstance(n, int) and isinstance(k, int)) or m * n * k < LARGE:
        return False
    return is_avx512(b.vector_bytes) and b.kernels.blas_bytes() < b.vector_bytes


def for_loops(b: Builder, lhs: Value, rhs: Value, dimension_numbers: Any, dtype: np.dtype) -> Value:
    """The right operand as loops want it that take a product from BLAS: its rows side by side in memory."""
    (left_contract, contract), (left_batch, batch) = dimension_numbers
    free = [d for d in range(rhs.ndim) if d not in contract and d not in batch]
    m = b.product([lhs.shape[d] for d in range(lhs.ndim) if d not in left_contract and d not in left_batch])
    n, k = (b.product([rhs.shape[d] for d in dims]) for dims in (free, contract))
    pays = isinstance(m, int) and m >= PACKED and isinstance(n, int) and n >= FEWEST
    if not (pays and dtype == rhs.dtype and dtype in panel_products.FLOATS
            and not _runs_along(b, rhs, free) and _loops_beat_blas(b, dtype, m, n, k)):
        return rhs
    order = [*batch, *contract, *free]
    place = {d: k for k, d in enumerate(order)}
    packed = b.in_memory(b.value([rhs.shape[d] for d in order], rhs.dtype,
                                 lambda i: rhs.at([i[place[d]] for d in range(rhs.ndim)])))
    return Stored(b, packed.buffer, rhs.shape, rhs.dtype, [packed.strides[place[d]] for d in range(rhs.ndim)],
                  packed.offset)


def _runs_along(b: Builder, value: Value, dims: Dims) -> bool:
    """Whether neighbours in the last of some dimensions lie side by side."""
    if not dims:
        return False
    if isinstance(value, Stored):
        return _is_one(unwrap(value.strides[dims[-1]]))
    if isinstance(value, Computed):
        index, e = value.probe()
        if (load := copied(e)) is not None:
            step = coefficient(b.arena, load.args[0], index[dims[-1]])
            return step is not None and step.op == "const" and step.attr == 1
    return dims[-1] == value.ndim - 1


def _matrices(b: Builder, value: Value, batch: Dims, free: Dims, contract: Dims) -> Matrices:
    """The operand's matrices where it lies, if its strides allow; else from a packed copy."""
    stored = b.view(value)
    if isinstance(stored, Stored):
        rows, columns, together = (_merged(b, stored, dims) for dims in (free, contract, batch))
        if rows is not None and columns is not None and any(
                _is_one(near[1]) and _covers(far[1], near[0]) for near, far in ((rows, columns), (columns, rows))):
            apart = [(stored.shape[d], unwrap(stored.strides[d])) for d in batch]
            return Matrices(stored, apart if together is None else [together], rows[1], columns[1])
    order = (*batch, *free, *contract)
    shape = tuple(value.shape[d] for d in order)
    inverse = {d: k for k, d in enumerate(order)}
    packed = b.in_memory(b.value(shape, value.dtype, lambda i: value.at([i[inverse[d]] for d in range(value.ndim)])))
    count, height, width = (b.product([value.shape[d] for d in dims]) for dims in (batch, free, contract))
    return Matrices(packed, [(count, b.product([height, width]))], width, 1)


def _cubic(b: Builder, value: Value, shape: Sequence[Index], *dims: Dims) -> Stored:
    """The operand as (batch, free, contracted), three dimensions in all."""
    found = _matrices(b, value, *dims)
    if len(found.batch) > 1:
        order = [d for part in dims for d in part]
        moved = b.value([value.shape[d] for d in order], value.dtype,
                        lambda i: value.at([i[order.index(d)] for d in range(value.ndim)]))
        return b.reshaped(moved, shape)
    ((_, step),) = found.batch
    return Stored(b, found.value.buffer, tuple(shape), value.dtype, (step, found.row, found.column), found.value.offset)


def _by_rows(b: Builder, value: Value, shape: Sequence[Index], *dims: Dims) -> Stored | None:
    """The operand as (batch, free, contracted) where neighbours in the free dimensions lie side by side in memory."""
    if isinstance(value, Computed) and copied(value.probe()[1]) is None or not _runs_along(b, value, dims[1]):
        return None
    found = _cubic(b, value, shape, *dims)
    return found if found.strides[1] == 1 and isinstance(found.strides[2], int) else None


def _to_be_packed(b: Builder, value: Value, shape: Sequence[Index], batch: Dims, free: Dims, contract: Dims,
                  along: Dims) -> Value:
    """The same for who packs it. What is computed of elements that lie side by side `along` some dimensions is computed
    where it is packed, which reads each element once."""
    if not (isinstance(value, Computed) and len(batch) <= 1 and len(free) == len(contract) == 1
            and _computed_along(b, value, along[0])):
        return _cubic(b, value, shape, batch, free, contract)
    order = [*batch, *free, *contract]

    def at(index: tuple[Expr, ...]) -> Expr:
        place = dict(zip(order, index[-len(order) :], strict=True))
        return value.at([place[d] for d in range(value.ndim)])

    return b.value(shape, value.dtype, at)


def _computed_along(b: Builder, value: Computed, dim: int) -> bool:
    """Whether a value takes some computing, of elements that neighbours in a dimension have side by side or share."""
    index, e = value.probe()
    loads = [n.args[0] for n in walk([e]) if n.op in LOADS]
    steps = [coefficient(b.arena, place, index[dim]) for place in loads]
    return copied(e) is None and all(
        s is not None and s.op == "const" and s.attr in (0, 1) for s in steps)


def _is_one(x: Index) -> bool:
    return isinstance(x, int) and x == 1


def _covers(stride: Index, size: Index) -> bool:
    """Whether a stride is known to reach over so many elements."""
    return stride is size or isinstance(stride, int) and isinstance(size, int) and stride >= size


def _merged(b: Builder, stored: Stored, dims: Dims) -> tuple[Index, Index] | None:
    """Several dimensions as one of (size, stride), if they lie so."""
    size: Index = 1
    step: Index | None = None
    for d in reversed(dims):
        extent, stride = stored.shape[d], unwrap(stored.strides[d])
        if _is_one(extent):
            continue
        if step is None:
            step = stride
        elif b.index(stride) is not b.imul(step, size):  # equal expressions are one
            return None
        size = b.product([size, extent])
    return size, 1 if step is None else step


def _panels(b: Builder, nest: Nest, dtype: np.dtype, m: Index, n: Index, k: Index, left: Matrices, right: Matrices,
            out: Stored) -> None:
    zero = b.int(0)
    if not b.at_least(b.product([m, n, k]), THREADED):
        _gemm(b, nest, dtype, m, n, k, left, right, out, zero, zero, zero)
        return
    by_rows = b.at_least(m - n, 0)
    whole = m if by_rows else n
    pieces: Index = 1
    if b.at_least(whole, 33):
        pieces = unwrap(b.imul(_ceil(b, whole, 2 * PANEL), 2))  # an even number: few threads share them equally
    grain = 4 if by_rows else 16  # as many as BLAS computes at once
    size = _ceil(b, _ceil(b, whole, pieces), grain) * grain
    with nest.loop(_ceil(b, whole, size), parallel=True) as p:
        start = b.imul(p, size)
        here = b.min(b.index(size), b.isub(whole, start))
        if by_rows:
            _gemm(b, nest, dtype, here, n, k, left, right, out, b.imul(start, left.row), zero, b.imul(start, n), ld=n)
        else:
            _gemm(b, nest, dtype, m, here, k, left, right, out, zero, b.imul(start, right.row), start, ld=n)


def _stretches(m: Index, n: Index, k: Index) -> int:
    """Into how many stretches the sums of a product of known sizes are cut: where they are long and the result is
    small, threads that share its rows or columns would each pack most of the operands."""
    if not (isinstance(m, int) and isinstance(n, int) and isinstance(k, int)):
        return 1
    longer = max(m, n)
    if min(m, n) < FEWEST or m * n * k < THREADED or k < LONG * longer:
        return 1
    return min(STRETCHES, 1 << (2 * k // (LONG * longer)).bit_length() - 1)


def _small(m: Index, n: Index, k: Index, stretches: int) -> int:
    """As many stretches, or some more if these are products that BLAS does not pack for."""
    assert isinstance(m, int) and isinstance(n, int) and isinstance(k, int)
    return next((more for more in range(stretches, 4 * STRETCHES + 1) if m * n * -(-k // more) <= SMALL), stretches)


def _in_stretches(b: Builder, dtype: np.dtype, m: Index, n: Index, k: Index, left: Matrices, right: Matrices,
                  shape: Sequence[Index], stretches: int) -> Value:
    """A product as a sum of products, which threads share."""
    size = _ceil(b, k, stretches)

    def body(nest: Nest, outs: list[Stored], _: list[Stored]) -> None:
        with nest.loop(stretches, parallel=True) as p:
            start = b.imul(p, size)
            here = b.min(b.index(size), b.isub(k, start))
            _gemm(b, nest, dtype, m, n, here, left, right, outs[0], b.imul(start, left.column),
                  b.imul(start, right.column), b.imul(p, b.product([m, n])))

    (parts,) = b.nest([((stretches, *shape), dtype)], body)
    return b.value(shape, dtype, lambda index: functools.reduce(
        b.add, [parts.at([b.index(p), *index]) for p in range(stretches)]))


def _ceil(b: Builder, x: Index, y: Index) -> Index:
    """x / y, rounded up."""
    return unwrap(b.floordiv(b.isub(b.iadd(x, y), 1), y))


def _gemm(b: Builder, nest: Nest, dtype: np.dtype, m: Index, n: Index, k: Index, left: Matrices, right: Matrices,
          out: Stored, left_at: Expr, right_at: Expr, out_at: Expr, ld: Index | None = None) -> None:
    """out = left · rightᵀ in row-major order, which to BLAS is outᵀ = right · leftᵀ by columns."""
    def flag(x: Matrices, by_columns: bool) -> tuple[str, Expr]:
        # BLAS sees memory by columns: an operand whose contracted dimension is contiguous is transposed to it
        return "&", b.const(ord("T" if by_columns else "N"), np.int8)

    def i32(x: Index) -> tuple[str, Expr]:
        return "&", b.cast(b.index(x), INT32)

    right_transposed = _is_one(right.column) and not _is_one(right.row)
    left_transposed = not (_is_one(left.column) and not _is_one(left.row)) and _is_one(left.row)
    lda = right.row if right_transposed else right.column
    ldb = left.column if left_transposed else left.row
    if _is_one(left.column) and _is_one(left.row):
        ldb, left_transposed = k, False
    if _is_one(right.column) and _is_one(right.row):
        lda, right_transposed = k, True
    one, zero = b.const(1, dtype), b.const(0, dtype)
    nest.call(f"blas_{BLAS[dtype]}gemm", [
        flag(right, right_transposed), flag(left, left_transposed), i32(n), i32(m), i32(k), ("&", one),
        (right.value, right_at), i32(_at_least(lda, k if right_transposed else n)),
        (left.value, left_at), i32(_at_least(ldb, m if left_transposed else k)), ("&", zero),
        (out, out_at), i32(ld if ld is not None else n), b.int(1), b.int(1),
    ], reads=[left.value, right.value], writes=[out], work=_upper(m) * _upper(n) * _upper(k) / 16,
        flops=(8 if is_complex(dtype) else 2) * _upper(m) * _upper(n) * _upper(k))


def _upper(x: Index) -> int:
    return x if isinstance(x, int) else min(x.bounds[1], 1 << 12)


def _at_least(stride: Index, size: Index) -> Index:
    return max(stride, size) if isinstance(stride, int) and isinstance(size, int) else stride
