"""Operands laid out for kernels of products: the left one in blocks of rows, the right one in panels of columns.

Both go step by step through the contracted dimension. A step is 16 words of 4 bytes, a word one element or a few that
follow each other. What is behind the last row, column or term is zero. Packing is an ordinary loop: it casts, and fuses
with what makes the operand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..ir.expr import Expr
from ..ir.values import Stored, Value

if TYPE_CHECKING:
    from .builder import Builder

WORDS = 16  # of a step
UINT32 = np.dtype(np.uint32)


def steps(k: int, dtype: np.dtype) -> int:
    """The steps of k terms of a dtype."""
    return -(-k * dtype.itemsize // (4 * WORDS))


def blocks(b: Builder, left: Value, rows: int, dtype: np.dtype) -> Stored:
    """left[c, i, k] as (c, block, step, row, element): each row has the elements of a step."""
    count, m, k = left.shape
    assert isinstance(m, int) and isinstance(k, int)
    step = 4 * WORDS // dtype.itemsize

    def at(i: tuple[Expr, ...]) -> Expr:
        c, block, s, row, element = i
        return _element(b, left, (c, b.iadd(b.imul(block, rows), row), b.iadd(b.imul(s, step), element)),
                        m % rows != 0, k % step != 0, dtype)

    return b.in_memory(b.value((count, -(-m // rows), steps(k, dtype), rows, step), dtype, at))


def panels(b: Builder, right: Value, parts: int, width: int, dtype: np.dtype) -> Stored:
    """right[c, j, k] as (c, panel, step, part, word, column): panels of `parts` times `width` columns."""
    count, n, k = right.shape
    assert isinstance(n, int) and isinstance(k, int)
    columns, number = parts * width, 4 // dtype.itemsize
    ragged, short = n % columns != 0, k % (number * WORDS) != 0

    def at(i: tuple[Expr, ...]) -> Expr:
        c, panel, s, part, row, column = i
        j = b.iadd(b.iadd(b.imul(panel, columns), b.imul(part, width)), column)
        first = b.imul(b.iadd(b.imul(s, WORDS), row), number)
        if number == 1:
            return _element(b, right, (c, j, first), ragged, short, dtype)
        word: Expr | None = None
        for q in range(number):
            element = _element(b, right, (c, j, b.iadd(first, q)), ragged, short, dtype)
            bits = b.cast(b.bitcast(element, np.dtype(f"uint{8 * dtype.itemsize}")), UINT32)
            word = bits if word is None else b.or_(word, b.shl(bits, b.const(8 * dtype.itemsize * q, UINT32)))
        assert word is not None
        return word

    shape = (count, -(-n // columns), steps(k, dtype), parts, WORDS, width)
    return b.in_memory(b.value(shape, dtype if number == 1 else UINT32, at))


def _element(b: Builder, source: Value, index: tuple[Expr, Expr, Expr], ragged: bool, short: bool,
             dtype: np.dtype) -> Expr:
    """An element, or zero behind the last row (where the rows are `ragged`) or term (where these are `short`)."""
    wanted = [b.lt(index[axis], b.index(source.shape[axis])) for axis, asked in ((1, ragged), (2, short)) if asked]
    if not wanted:
        return b.cast(source.at(index), dtype)
    there = b.and_(*wanted) if len(wanted) == 2 else wanted[0]
    return b.cast(b.load_if(there, source, index, b.const(0, source.dtype)), dtype)
