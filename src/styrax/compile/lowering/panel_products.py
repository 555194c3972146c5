"""Products of matrices by panels that stay in vector registers: see `cpu.microkernels`.

Operands are packed, but for left ones that few panels meet and that lie well, by loops that cast to what the kernel
multiplies: half precisions to float32 where it has nothing narrower, 8-bit integers to 16 bits where it has no bytes or
the right ones are unsigned. The result is written where it belongs, edges by masks. Threads share panels that the shape
alone decides.
"""

from __future__ import annotations

import functools
from contextlib import nullcontext
from typing import TYPE_CHECKING

import ml_dtypes
import numpy as np

from ..ir.expr import unwrap
from ..ir.values import Shape, Stored, Value
from ..registers import is_avx512
from . import panels, passing_panels
from .number_types import SMALL_FLOATS

if TYPE_CHECKING:
    from ..ir.expr import Expr
    from ..program import Panels
    from .builder import Builder, Nest

SMALLEST = 16  # rows, columns and terms from which a product pays,
LARGE = 1 << 17  # and multiplications
SHORT = 64  # rows or terms up to which BLAS loses time,
NARROWEST = 32  # with so many columns,
STREAMED = 1 << 18  # where the larger operand or the result has so many elements
TILES = 16  # rows that loops treat as fast
READ, FAR = 1 << 18, 1 << 21  # bytes of an operand that is not in the nearest caches, nor in the second
FLOATS = {np.dtype(np.float32): "f32", np.dtype(np.float64): "f64"}
IN_FLIGHT = 8  # sums that registers add to while one waits
AHEAD = 24  # steps of a packed panel that are asked for before they are read
FEW = 32  # panels for which a left operand is not worth packing
HUGE = 1 << 26  # multiplications to which packing is little; fewer are enough
BROAD, BROADEST = 1 << 24, 512  # with so many columns
LARGEST = 1 << 30  # the same without AVX-512
WORDS = {"f32": np.dtype(np.float32), "f64": np.dtype(np.float64), "bf16": np.dtype(ml_dtypes.bfloat16),
         "i16": np.dtype(np.int16), "i8": np.dtype(np.int8), "u8": np.dtype(np.int8)}
NARROW = {"bf16": WORDS["bf16"], "f16": np.dtype(np.float16)}
FLOAT32 = WORDS["f32"]
SUMS = {"f64": WORDS["f64"]} | dict.fromkeys(("i16", "i8", "u8"), np.dtype(np.int32))
BYTES = {np.dtype(np.int8): "i8", np.dtype(np.uint8): "u8"}
WIDENED = frozenset(map(np.dtype, (np.int8, np.uint8, np.int16)))


def kind(b: Builder, lhs: np.dtype, rhs: np.dtype, out: np.dtype) -> str | None:
    """The kernel for operands and a result of such dtypes, or None."""
    found = None
    if lhs in WIDENED and rhs in WIDENED and out.kind in "iu" and out.itemsize <= 4:  # sums wrap around as in `out`
        bytes_ = BYTES.get(lhs) if rhs == WORDS["i8"] else None
        found = bytes_ if bytes_ in b.kernels.panels else "i16"
    elif lhs == rhs == out == FLOAT32:
        found = "f32"
    elif lhs == rhs and lhs in SMALL_FLOATS and (out == FLOAT32 or out in SMALL_FLOATS):
        found = "bf16" if lhs == WORDS["bf16"] and "bf16" in b.kernels.panels else "f32"
    return found if found in b.kernels.panels else None


def pays(b: Builder, m: object, n: object, k: object, blas: bool) -> bool:
    """Whether a product of known sizes is large enough. BLAS packs while it multiplies, and does better in between:
    where no edge is short, or all fits into near caches, and the operands are not few against multiplications. (In
    vectors of 32 bytes it needs longer for these, so packing is less of the whole.)"""
    if not (isinstance(m, int) and isinstance(n, int) and isinstance(k, int)):
        return False
    if blas:
        enough = LARGEST if not is_avx512(b.vector_bytes) else BROAD if n >= BROADEST else HUGE
        return m * n * k >= enough or (
            min(m, k) <= SHORT and n >= NARROWEST and n * max(m, k) >= STREAMED)
    return min(m, n, k) >= SMALLEST and m * n * k >= LARGE


def result(sizes: Panels, kind: str, dtype: np.dtype) -> tuple[str, np.dtype]:
    """What a kernel's name ends in where it gives numbers of a dtype, or sums, and the dtype of what it gives."""
    name = next((name for name, d in NARROW.items() if d == dtype and name in sizes.narrow), None)
    return ("", SUMS.get(kind, FLOAT32)) if name is None else (f"_{name}", dtype)


def left_term(b: Builder, kind: str, x: Expr) -> Expr:
    """A term of a left operand as a kernel wants it: bytes with 128 more than they have, unsigned."""
    return b.xor(x, b.const(-128, WORDS["i8"])) if kind == "i8" else x


def product(b: Builder, kind: str, dtype: np.dtype, left: Value, right: Value, shape: Shape, stretches: int = 1
            ) -> Value:
    """left[c, i, k] · right[c, j, k], whose dimensions (c, i, j) are those of `shape`. With `stretches` of terms, which
    threads take each alone, as a sum of so many, if they are equal and operands lie in memory."""
    if stretches > 1:
        x, y = (_in_stretches(b, operand, stretches, WORDS[kind]) for operand in (left, right))
        if x is not None and y is not None:
            sums = product(b, kind, SUMS.get(kind, FLOAT32), x, y, (stretches, *shape))
            return b.value(shape, dtype, lambda index: b.cast(functools.reduce(
                b.add, [sums.at([b.index(p), *index]) for p in range(stretches)]), dtype))
    (count, m, k), n = left.shape, right.shape[1]
    assert isinstance(count, int) and isinstance(m, int) and isinstance(n, int) and isinstance(k, int)
    sizes, word = b.kernels.panels[kind], WORDS[kind]
    blocks = -(-m // sizes.rows)
    rows = -(-m // blocks)  # blocks of equal height
    width = sizes.columns
    columns, steps = -(-n // width), panels.steps(k, word)
    block_size, panel_size = rows * steps * 64, width * steps * 64  # bytes
    # where all rows stay near while panels pass, a thread packs each panel as it comes to it
    passing = passing_panels.pays(blocks * block_size, panel_size, columns, blocks <= sizes.blocks, sizes.again)
    pieces = -(-blocks // (sizes.blocks if passing else min(sizes.blocks, max(1, passing_panels.GROUP // block_size))))
    together = -(-blocks // pieces)
    if kind == "i8":
        signed = left
        left = b.value(signed.shape, word, lambda i: left_term(b, kind, signed.at(i)))
    lying = panels.lying(b, left, rows, word) if columns <= FEW else None
    if lying is None:
        a = panels.blocks(b, left, rows, word)
        matrix, height, long = blocks * block_size // word.itemsize, block_size // word.itemsize // rows, steps
    else:
        a, matrix, height, long = lying.matrices, lying.batch, lying.row, k * word.itemsize
    packed = None if passing else panels.panels(b, right, 1, width, word)
    suffix, results = result(sizes, kind, dtype)
    kernel = f"panels_{kind}_{rows}{suffix}{'_lying' if lying else ''}"
    b.begin(kernel, count * m * n * steps)

    def body(nest: Nest, outs: list[Stored], _: list[Stored]) -> None:
        def multiply(c: Expr, piece: Expr, column: Expr, here: Stored, at: Expr, then: tuple[Stored, Expr]) -> None:
            block = b.imul(piece, together)
            row = b.imul(block, rows)
            nest.call(kernel, [
                (a, b.iadd(b.imul(c, matrix), b.imul(row, height))),
                *([b.int(height * word.itemsize)] if lying else []), (here, at), then,
                (outs[0], b.iadd(b.imul(b.iadd(b.imul(c, m), row), n), column)), b.int(results.itemsize * n),
                b.min(b.int(together * rows), b.isub(b.int(m), row)), b.min(b.int(width), b.isub(b.int(n), column)),
                b.int(long)],
                reads=[a, here], writes=[outs[0]], work=together * rows * width * steps,
                flops=2 * m * n * k / (pieces * columns))

        with nest.loop(count * columns * (1 if packed is None else pieces), parallel=True) as t:
            panel, rest = b.floormod(t, columns), b.floordiv(t, columns)
            column = b.imul(panel, width)
            if packed is None:
                here = passing_panels.panel(nest, right, rest, column, 1, width, word)
                then = passing_panels.following(b, right, rest, b.iadd(column, width), width, here)
                with nest.loop(pieces) if pieces > 1 else nullcontext(b.int(0)) as piece:
                    multiply(rest, piece, column, here, b.int(0), then)
            else:
                c, size = b.floordiv(rest, pieces), panel_size // packed.dtype.itemsize
                at = b.imul(b.iadd(b.imul(c, columns), panel), size)
                multiply(c, b.floormod(rest, pieces), column, packed, at, ahead(b, packed, at, steps, width, word))

    (stored,) = b.nest([(shape, results)], body)
    return stored if dtype == results else b.value(shape, dtype, lambda i: b.cast(stored.at(i), dtype))


def _in_stretches(b: Builder, operand: Value, stretches: int, word: np.dtype) -> Stored | None:
    """operand[0, i, k] as (stretch, i, term), each of whole steps."""
    count, rows, k = operand.shape
    if not isinstance(k, int) or not isinstance(operand, Stored) or count != 1 or (
            k % (stretches * panels.STEP // word.itemsize)):
        return None
    _, row, term = operand.strides
    return Stored(b, operand.buffer, (stretches, rows, k // stretches), operand.dtype,
                  (unwrap(b.imul(term, k // stretches)), row, term), operand.offset)


def ahead(b: Builder, packed: Stored, at: Expr, steps: int, width: int, word: np.dtype) -> tuple[Stored, Expr]:
    """What a kernel should ask for first that multiplies the panel at a place: words behind the panel's first, as long
    as as many follow. (For what no memory is there some processors walk the page tables each time they are asked.)"""
    step = panels.words_of_step(word) * width
    last = b.isub(b.product(packed.shape), steps * step)
    return packed, b.min(b.iadd(at, min(steps, AHEAD) * step), last)


def streams(b: Builder, dtype: np.dtype, m: object, n: object, k: object) -> bool:
    """Whether a product of floats has so few rows that it is read rather than multiplied: packing the right operand,
    whose rows lie in memory, would cost more than it gains. Loops do as well with rows that fill their tiles, as long
    as caches hold the operand."""
    kind = FLOATS.get(dtype, "")
    if kind not in b.kernels.panels or not (isinstance(m, int) and isinstance(n, int) and isinstance(k, int)):
        return False
    return (0 < m <= 2 * b.kernels.panels[kind].rows and n >= NARROWEST and k >= SMALLEST
            and k * n * dtype.itemsize > (FAR if m == TILES else READ))


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
