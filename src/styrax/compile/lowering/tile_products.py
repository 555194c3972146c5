"""Products of matrices of bfloat16 or 8-bit integers by the processor's matrix units: see `cpu.tiles`.

The left operand is read where it lies if its rows do without padding, the right one is packed: the elements of a step's
4 bytes side by side for each column. Packing is an ordinary loop, which fuses with what is before. Kernels write the
result where it belongs. Threads share panels that the shape alone decides.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

import ml_dtypes
import numpy as np

from ..ir.values import Shape, Stored, Value
from . import panels, passing_panels

if TYPE_CHECKING:
    from ..ir.expr import Expr
    from .builder import Builder, Nest

EDGE = 32  # rows and columns of a block of sums
BLOCKS = 16  # blocks of rows that a call computes
PANEL = 2048  # bytes of a step of a panel
STEP = 64  # bytes of a row that go through a tile at a time
WORTH = 64  # steps of blocks that are worth a call
SHARES = 16  # calls from which columns are put together
SMALLEST = 16  # rows, columns and terms from which a product pays,
LARGE = 1 << 17  # and multiplications
BFLOAT16, FLOAT32 = np.dtype(ml_dtypes.bfloat16), np.dtype(np.float32)
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


def result(dtype: np.dtype) -> str:
    """What a kernel's name ends in where it gives numbers of a dtype."""
    return {4: "", 2: "_bf16" if dtype == BFLOAT16 else "_i16", 1: "_i8"}[dtype.itemsize]


def product(b: Builder, kind: str, dtype: np.dtype, left: Stored, right: Stored, shape: Shape) -> Value:
    """left[c, i, k] · right[c, j, k], whose dimensions (c, i, j) are those of `shape`."""
    (count, m, k), n = left.shape, right.shape[1]
    assert isinstance(count, int) and isinstance(m, int) and isinstance(n, int) and isinstance(k, int)
    assert isinstance(left.dtype, np.dtype) and isinstance(right.dtype, np.dtype)
    size, terms = left.dtype.itemsize, right.dtype
    blocks, columns, steps = -(-m // EDGE), -(-n // EDGE), panels.steps(k, left.dtype)
    stride, rest = left.strides[1], 0
    lies = isinstance(stride, int) and left.strides[2] == 1 and m >= EDGE and k * size % 4 == 0
    if isinstance(stride, int) and lies:
        row, advance, block, rest = stride * size, STEP, EDGE * stride * size, k * size % STEP
    else:
        left = panels.blocks(b, left, EDGE, left.dtype)
        row, advance, block = STEP, EDGE * STEP, steps * EDGE * STEP
    passing = passing_panels.pays(blocks * EDGE * k * size, steps * PANEL, columns, blocks <= BLOCKS,
                                  passing_panels.GROUP)
    packed = None if passing else panels.panels(b, right, 2, 16, right.dtype)
    pieces = -(-blocks // min(BLOCKS, max(1, passing_panels.GROUP // (EDGE * k * size))))
    together = -(-blocks // pieces)
    # a call's columns: as few as are worth one, and as leave something for other threads
    wide = EDGE if passing else EDGE * min(-(-WORTH // (together * steps)), max(1, count * pieces * columns // SHARES))
    groups = -(-n // wide)

    def body(nest: Nest, outs: list[Stored], _: list[Stored]) -> None:
        def multiply(c: Expr, piece: Expr, column: Expr, here: Stored, at: Expr) -> None:
            first = b.imul(b.imul(piece, together), EDGE)
            rows = b.min(b.int(together * EDGE), b.isub(b.int(m), first))
            nest.call(f"tiles_{kind}{result(dtype)}", [
                (left, b.iadd(b.imul(c, left.strides[0]), b.imul(b.imul(piece, together), block // size))),
                b.int(row), b.int(advance), b.int(block), b.isub(rows, b.int(EDGE)) if lies else rows, b.int(rest),
                (here, at),
                (outs[0], b.iadd(b.imul(b.iadd(b.imul(c, m), first), n), column)), b.int(dtype.itemsize * n),
                rows, b.min(b.int(wide), b.isub(b.int(n), column)), b.int(steps - (rest > 0))],
                reads=[left, here], writes=[outs[0]], work=together * steps * wide // EDGE * 100,
                flops=2 * m * n * k / (pieces * groups))

        with nest.loop(count * groups * (1 if packed is None else pieces), parallel=True) as t:
            column, t = b.imul(b.floormod(t, groups), wide), b.floordiv(t, groups)
            if packed is None:
                here = passing_panels.panel(nest, right, t, column, 2, EDGE // 2, terms)
                with nest.loop(pieces) if pieces > 1 else nullcontext(b.int(0)) as piece:
                    multiply(t, piece, column, here, b.int(0))
            else:
                c = b.floordiv(t, pieces)
                panel = b.iadd(b.imul(c, columns), b.floordiv(column, EDGE))
                multiply(c, b.floormod(t, pieces), column, packed, b.imul(panel, steps * PANEL // 4))

    return b.nest([(shape, dtype)], body)[0]
