"""Products of matrices of bfloat16 or 8-bit integers by the processor's matrix units: see `cpu.tiles`.

The left operand is read where it lies if its rows do without padding, the right one is packed: the elements of a step's
4 bytes side by side for each column. Packing, and what becomes of the sums, are ordinary loops, which fuse with what is
around. Threads share panels that the shape alone decides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import ml_dtypes
import numpy as np

from ..ir.values import Shape, Stored, Value
from . import panels

if TYPE_CHECKING:
    from .builder import Builder, Nest

EDGE = 32  # rows and columns of a block of sums
BLOCKS = 16  # blocks of rows that a call computes
SMALLEST = 16  # rows, columns and terms from which a product pays,
LARGE = 1 << 17  # and multiplications
BFLOAT16, FLOAT32, INT32 = (np.dtype(d) for d in (ml_dtypes.bfloat16, np.float32, np.int32))
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


def product(b: Builder, kind: str, dtype: np.dtype, left: Stored, right: Stored, shape: Shape) -> Value:
    """left[c, i, k] · right[c, j, k], whose dimensions (c, i, j) are those of `shape`."""
    (count, m, k), n = left.shape, right.shape[1]
    assert isinstance(count, int) and isinstance(m, int) and isinstance(n, int) and isinstance(k, int)
    assert isinstance(left.dtype, np.dtype) and isinstance(right.dtype, np.dtype)
    size = left.dtype.itemsize
    step = 64 // size
    blocks, columns, steps = -(-m // EDGE), -(-n // EDGE), panels.steps(k, left.dtype)
    if left.strides[2] != 1 or m % EDGE or k % step or not isinstance(left.strides[1], int):
        left = panels.blocks(b, left, EDGE, left.dtype)
        row, advance, block = 64, 2048, steps * 2048
    else:
        row, advance = left.strides[1] * size, 64
        block = EDGE * row
    packed = panels.panels(b, right, 2, 16, right.dtype)
    sums = FLOAT32 if dtype.kind != "i" and dtype.kind != "u" else INT32
    pieces = -(-blocks // BLOCKS)

    def body(nest: Nest, outs: list[Stored], _: list[Stored]) -> None:
        with nest.loop(count * pieces * columns, parallel=True) as t:
            panel, rest = b.floormod(t, columns), b.floordiv(t, columns)
            piece, c = b.imul(b.floormod(rest, pieces), BLOCKS), b.floordiv(rest, pieces)
            here = b.min(b.int(BLOCKS), b.isub(b.int(blocks), piece))
            nest.call(f"tiles_{kind}", [
                (left, b.iadd(b.imul(c, left.strides[0]), b.imul(piece, block // size))),
                b.int(row), b.int(advance), b.int(block),
                (packed, b.imul(b.iadd(b.imul(c, columns), panel), steps * 512)),
                (outs[0], b.iadd(b.imul(b.iadd(b.imul(c, blocks), piece), EDGE * EDGE * columns), b.imul(panel, EDGE))),
                b.int(4 * EDGE * columns), here, b.int(steps)],
                reads=[left, packed], writes=[outs[0]], work=min(blocks, BLOCKS) * steps * 100,
                flops=2 * m * n * k / (pieces * columns))

    (stored,) = b.nest([((count, blocks * EDGE, columns * EDGE), sums)], body)
    if dtype == sums and (m, n) == (blocks * EDGE, columns * EDGE):
        return b.reshaped(stored, shape)
    if len(shape) == 2:
        return b.value(shape, dtype, lambda i: b.cast(stored.at((b.int(0), *i)), dtype))
    out = b.value((count, m, n), dtype, lambda i: b.cast(stored.at(i), dtype))
    return out if tuple(shape) == (count, m, n) else b.reshaped(out, shape)
