"""Products of matrices of bfloat16 or 8-bit integers by the processor's matrix units: see `cpu.tiles`.

The left operand is read where it lies if its rows do without padding, the right one is packed: the elements of a step's
4 bytes side by side for each column. Packing, and what becomes of the sums, are ordinary loops, which fuse with what is
around. Threads share panels that the shape alone decides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import ml_dtypes
import numpy as np

from ..ir.expr import Expr
from ..ir.values import Stored, Value

if TYPE_CHECKING:
    from .builder import Builder, Nest

EDGE = 32  # rows and columns of a block of sums
BLOCKS = 16  # blocks of rows that a call computes
SMALLEST = 16  # rows, columns and terms from which a product pays,
LARGE = 1 << 17  # and multiplications
BFLOAT16, FLOAT32, INT32, UINT32 = (np.dtype(d) for d in (ml_dtypes.bfloat16, np.float32, np.int32, np.uint32))
BYTES = {np.dtype(np.int8): "s", np.dtype(np.uint8): "u"}


def kind(lhs: object, rhs: object, out: np.dtype) -> str | None:
    """The kernel for operands and a result of such dtypes, or None."""
    if lhs == rhs == BFLOAT16:
        return "bf16" if out in (BFLOAT16, FLOAT32) else None
    if lhs in BYTES and rhs in BYTES and out.kind in "iu" and out.itemsize <= 4:  # sums wrap around as in `out`
        return BYTES[lhs] + BYTES[rhs]  # type: ignore[index]
    return None


def pays(m: object, n: object, k: object) -> bool:
    """Whether a product of known sizes is large enough, and no edge of it much shorter than a block."""
    if not (isinstance(m, int) and isinstance(n, int) and isinstance(k, int)):
        return False
    return min(m, n, k) >= SMALLEST and m * n * k >= LARGE


def product(b: Builder, kind: str, left: Stored, right: Stored, dtype: np.dtype) -> Value:
    """left[c, i, k] · right[c, j, k] as a value of shape (c, i, j)."""
    (count, m, k), n = left.shape, right.shape[1]
    assert isinstance(count, int) and isinstance(m, int) and isinstance(n, int) and isinstance(k, int)
    size = left.dtype.itemsize
    step = 64 // size
    blocks, panels, steps = -(-m // EDGE), -(-n // EDGE), -(-k // step)
    if left.strides[2] != 1 or m % EDGE or k % step or not isinstance(left.strides[1], int):
        left = _padded(b, left, blocks, steps, step)
        row, advance, block = 64, 2048, steps * 2048
    else:
        row, advance = left.strides[1] * size, 64
        block = EDGE * row
    packed = _packed(b, right, panels, steps, step)
    sums = FLOAT32 if dtype.kind != "i" and dtype.kind != "u" else INT32
    pieces = -(-blocks // BLOCKS)

    def body(nest: Nest, outs: list[Stored], _: list[Stored]) -> None:
        with nest.loop(count * pieces * panels, parallel=True) as t:
            panel, rest = b.floormod(t, panels), b.floordiv(t, panels)
            piece, c = b.imul(b.floormod(rest, pieces), BLOCKS), b.floordiv(rest, pieces)
            here = b.min(b.int(BLOCKS), b.isub(b.int(blocks), piece))
            nest.call(f"tiles_{kind}", [
                (left, b.iadd(b.imul(c, left.strides[0]), b.imul(piece, block // size))),
                b.int(row), b.int(advance), b.int(block),
                (packed, b.imul(b.iadd(b.imul(c, panels), panel), steps * 512)),
                (outs[0], b.iadd(b.imul(b.iadd(b.imul(c, blocks), piece), EDGE * EDGE * panels), b.imul(panel, EDGE))),
                b.int(4 * EDGE * panels), here, b.int(steps)],
                reads=[left, packed], writes=[outs[0]], work=min(blocks, BLOCKS) * steps * 100)

    (stored,) = b.nest([((count, blocks * EDGE, panels * EDGE), sums)], body)
    if dtype == sums and (m, n) == (blocks * EDGE, panels * EDGE):
        return stored
    return b.value((count, m, n), dtype, lambda i: b.cast(stored.at(i), dtype))


def _padded(b: Builder, left: Stored, blocks: int, steps: int, step: int) -> Stored:
    """The left operand as blocks of 32 rows, step after step."""
    _, m, k = left.shape

    def at(i: tuple[Expr, ...]) -> Expr:
        c, block, s, row, element = i
        return _element(b, left, (c, b.iadd(b.imul(block, EDGE), row), b.iadd(b.imul(s, step), element)),
                        m % EDGE != 0, k % step != 0)  # type: ignore[operator]

    return b.in_memory(b.value((left.shape[0], blocks, steps, EDGE, step), left.dtype, at))


def _packed(b: Builder, right: Stored, panels: int, steps: int, step: int) -> Stored:
    """The right operand as panels of 32 columns, step after step: two tiles of 16 rows of 16 columns, whose elements
    are the terms of 4 bytes as one word."""
    _, n, k = right.shape
    size = right.dtype.itemsize
    narrow = np.dtype(f"uint{8 * size}")

    def at(i: tuple[Expr, ...]) -> Expr:
        c, panel, s, half, row, column = i
        j = b.iadd(b.iadd(b.imul(panel, EDGE), b.imul(half, 16)), column)
        first = b.iadd(b.imul(s, step), b.imul(row, 4 // size))
        word: Expr | None = None
        for q in range(4 // size):
            element = _element(b, right, (c, j, b.iadd(first, q)), n % EDGE != 0, k % step != 0)  # type: ignore[operator]
            bits = b.cast(b.bitcast(element, narrow), UINT32)
            word = bits if word is None else b.or_(word, b.shl(bits, b.const(8 * size * q, UINT32)))
        assert word is not None
        return word

    return b.in_memory(b.value((right.shape[0], panels, steps, 2, 16, 16), UINT32, at))


def _element(b: Builder, source: Stored, index: tuple[Expr, Expr, Expr], ragged: bool, short: bool) -> Expr:
    """An element, or zero behind the last row (where the rows are `ragged`) or term (where these are `short`)."""
    wanted = [b.lt(index[axis], b.index(source.shape[axis])) for axis, asked in ((1, ragged), (2, short)) if asked]
    if not wanted:
        return source.at(index)
    return b.load_if(b.and_(*wanted) if len(wanted) == 2 else wanted[0], source, index,
                     b.const(0, source.dtype))
