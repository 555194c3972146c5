"""Products of matrices by panels that stay in vector registers: see `cpu.microkernels`.

Both operands are packed, by loops that cast to what the kernel multiplies: half precisions to float32 where it has
nothing narrower, 8-bit integers to 16 bits. The result is written where it belongs, edges by masks. Threads share
panels that the shape alone decides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import ml_dtypes
import numpy as np

from ..ir.values import Shape, Stored, Value
from . import panels
from .number_types import SMALL_FLOATS

if TYPE_CHECKING:
    from ..program import Panels
    from .builder import Builder, Nest

SMALLEST = 16  # rows, columns and terms from which a product pays,
LARGE = 1 << 17  # and multiplications
SHORT = 64  # rows or terms up to which BLAS loses time,
NARROWEST = 32  # with so many columns,
STREAMED = 1 << 18  # where the larger operand or the result has so many elements
TILES = 16  # rows that loops treat as fast
READ = 1 << 18  # bytes of an operand that is not in the nearest caches
FLOATS = {np.dtype(np.float32): "f32", np.dtype(np.float64): "f64"}
IN_FLIGHT = 12  # sums that registers add to while one waits
HUGE = 1 << 26  # multiplications to which packing is little
WORDS = {"f32": np.dtype(np.float32), "bf16": np.dtype(ml_dtypes.bfloat16), "i16": np.dtype(np.int16)}
NARROW = {"bf16": WORDS["bf16"], "f16": np.dtype(np.float16)}
FLOAT32, INT32 = np.dtype(np.float32), np.dtype(np.int32)
WIDENED = frozenset(map(np.dtype, (np.int8, np.uint8, np.int16)))


def kind(b: Builder, lhs: np.dtype, rhs: np.dtype, out: np.dtype) -> str | None:
    """The kernel for operands and a result of such dtypes, or None."""
    found = None
    if lhs in WIDENED and rhs in WIDENED and out.kind in "iu" and out.itemsize <= 4:  # sums wrap around as in `out`
        found = "i16"
    elif lhs == rhs == out == FLOAT32:
        found = "f32"
    elif lhs == rhs and lhs in SMALL_FLOATS and (out == FLOAT32 or out in SMALL_FLOATS):
        found = "bf16" if lhs == WORDS["bf16"] and "bf16" in b.kernels.panels else "f32"
    return found if found in b.kernels.panels else None


def pays(m: object, n: object, k: object, blas: bool) -> bool:
    """Whether a product of known sizes is large enough. BLAS packs while it multiplies, and does better in between:
    where no edge is short, or all fits into near caches, and the operands are not few against multiplications."""
    if not (isinstance(m, int) and isinstance(n, int) and isinstance(k, int)):
        return False
    if blas:
        return (min(m, k) <= SHORT and n >= NARROWEST and n * max(m, k) >= STREAMED) or m * n * k >= HUGE
    return min(m, n, k) >= SMALLEST and m * n * k >= LARGE


def result(sizes: Panels, kind: str, dtype: np.dtype) -> tuple[str, np.dtype]:
    """What a kernel's name ends in where it gives numbers of a dtype, or sums, and the dtype of what it gives."""
    name = next((name for name, d in NARROW.items() if d == dtype and name in sizes.narrow), None)
    return ("", INT32 if kind == "i16" else FLOAT32) if name is None else (f"_{name}", dtype)


def product(b: Builder, kind: str, dtype: np.dtype, left: Value, right: Value, shape: Shape) -> Value:
    """left[c, i, k] · right[c, j, k], whose dimensions (c, i, j) are those of `shape`."""
    (count, m, k), n = left.shape, right.shape[1]
    assert isinstance(count, int) and isinstance(m, int) and isinstance(n, int) and isinstance(k, int)
    sizes, word = b.kernels.panels[kind], WORDS[kind]
    blocks = -(-m // sizes.rows)
    rows = -(-m // blocks)  # blocks of equal height
    width = sizes.columns
    columns, steps = -(-n // width), panels.steps(k, word)
    a, packed = panels.blocks(b, left, rows, word), panels.panels(b, right, 1, width, word)
    suffix, results = result(sizes, kind, dtype)
    pieces = -(-blocks // sizes.blocks)
    together = -(-blocks // pieces)
    step = 64 // word.itemsize

    def body(nest: Nest, outs: list[Stored], _: list[Stored]) -> None:
        with nest.loop(count * pieces * columns, parallel=True) as t:
            panel, rest = b.floormod(t, columns), b.floordiv(t, columns)
            piece, c = b.imul(b.floormod(rest, pieces), together), b.floordiv(rest, pieces)
            row, column = b.imul(piece, rows), b.imul(panel, width)
            nest.call(f"panels_{kind}_{rows}{suffix}", [
                (a, b.imul(b.iadd(b.imul(c, blocks), piece), steps * rows * step)),
                (packed, b.imul(b.iadd(b.imul(c, columns), panel), steps * width * 64 // packed.dtype.itemsize)),
                (outs[0], b.iadd(b.imul(b.iadd(b.imul(c, m), row), n), column)), b.int(results.itemsize * n),
                b.min(b.int(together * rows), b.isub(b.int(m), row)), b.min(b.int(width), b.isub(b.int(n), column)),
                b.int(steps)],
                reads=[a, packed], writes=[outs[0]], work=together * rows * width * steps,
                flops=2 * m * n * k / (pieces * columns))

    (stored,) = b.nest([(shape, results)], body)
    return stored if dtype == results else b.value(shape, dtype, lambda i: b.cast(stored.at(i), dtype))


def streams(b: Builder, dtype: np.dtype, m: object, n: object, k: object) -> bool:
    """Whether a product of floats has so few rows that it is read rather than multiplied: packing the right operand,
    whose rows lie in memory, would cost more than it gains. Loops do as well with rows that fill their tiles."""
    kind = FLOATS.get(dtype, "")
    if kind not in b.kernels.panels or not (isinstance(m, int) and isinstance(n, int) and isinstance(k, int)):
        return False
    return (0 < m <= 2 * b.kernels.panels[kind].rows and m != TILES and n >= NARROWEST and k >= SMALLEST
            and k * n * dtype.itemsize > READ)


def streamed(b: Builder, left: Value, right: Stored, shape: Shape) -> Value:
    """A product of few rows, in panels as wide as registers hold their sums."""
    (count, m, k), n = left.shape, right.shape[1]
    assert isinstance(count, int) and isinstance(m, int) and isinstance(n, int) and isinstance(k, int)
    dtype = right.dtype
    assert isinstance(dtype, np.dtype)
    kind = FLOATS[dtype]
    sizes, lanes = b.kernels.panels[kind], b.vector_bytes // dtype.itemsize
    blocks = -(-m // sizes.rows)
    rows = -(-m // blocks)
    most = (sizes.rows + 1) * (sizes.columns // lanes) // (rows + 1)  # vectors: of sums, and of a row of b
    # panels in fours, which few threads share equally, and sums enough not to wait for each other
    vectors = min(range(1, most + 1), key=lambda v: (rows * v < IN_FLIGHT and v < most,
                                                     -(-n // (4 * v * lanes)) * 4 * v, -v))
    width = vectors * lanes
    columns, step = -(-n // width), 64 // dtype.itemsize
    a = panels.blocks(b, left, rows, dtype)
    batch, _, row = right.strides
    assert isinstance(row, int)

    def body(nest: Nest, outs: list[Stored], _: list[Stored]) -> None:
        with nest.loop(count * columns, parallel=True) as t:
            c, column = b.floordiv(t, columns), b.imul(b.floormod(t, columns), width)
            nest.call(f"panels_{kind}_{rows}_streamed_{vectors}", [
                (a, b.imul(c, blocks * panels.steps(k, dtype) * rows * step)),
                (right, b.iadd(b.imul(c, batch), column)),
                b.int(dtype.itemsize * row), (outs[0], b.iadd(b.imul(c, m * n), column)), b.int(dtype.itemsize * n),
                b.int(m),
                b.min(b.int(width), b.isub(b.int(n), column)), b.int(k)],
                reads=[a, right], writes=[outs[0]], work=m * width * k / lanes * 2, flops=2 * m * n * k / columns)

    return b.nest([(shape, dtype)], body)[0]
