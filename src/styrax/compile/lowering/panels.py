"""Operands laid out for kernels of products: the left one in blocks of rows, the right one in panels of columns.

Both go step by step through the contracted dimension. A step is 16 words of 4 bytes, a word one element or a few that
follow each other; or 8 words of 8 bytes. What is behind the last row, column or term is zero. Packing is an ordinary
loop: it casts, and fuses with what makes the operand.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..ir.expr import Expr, unwrap
from ..ir.values import Stored, Value

if TYPE_CHECKING:
    from .builder import Builder

STEP = 64  # bytes
PLACES, MEETING = 64, 4  # lines so many lines apart meet in a nearest cache, which keeps twice as many at least
UINT32 = np.dtype(np.uint32)


def steps(k: int, dtype: np.dtype) -> int:
    """The steps of k terms of a dtype."""
    return -(-k * dtype.itemsize // STEP)


def words_of_step(dtype: np.dtype) -> int:
    """The words of a step."""
    return STEP // max(4, dtype.itemsize)


def terms_of_word(dtype: np.dtype) -> int:
    """The terms of a word."""
    return max(1, 4 // dtype.itemsize)


def blocks(b: Builder, left: Value, rows: int, dtype: np.dtype) -> Stored:
    """left[c, i, k] as (c, block, step, row, element): each row has the elements of a step."""
    count, m, k = left.shape
    assert isinstance(m, int) and isinstance(k, int)
    step = STEP // dtype.itemsize

    def at(i: tuple[Expr, ...]) -> Expr:
        c, block, s, row, element = i
        return _element(b, left, (c, b.iadd(b.imul(block, rows), row), b.iadd(b.imul(s, step), element)),
                        m % rows != 0, k % step != 0, dtype)

    return b.in_memory(b.value((count, -(-m // rows), steps(k, dtype), rows, step), dtype, at))


class Rows(NamedTuple):
    """Left operands as a kernel reads them, which need not be packed: rows of elements that follow each other."""

    matrices: Stored
    batch: int  # from one matrix to the next, in elements,
    row: int  # and from a row to the next


def lying(b: Builder, left: Value, rows: int, dtype: np.dtype) -> Rows | None:
    """left[c, i, k] where it lies, if it does in whole words, and so many rows do not meet in few places of a cache."""
    if not isinstance(left, Stored) or left.dtype != dtype or left.strides[2] != 1:
        return None
    number = terms_of_word(dtype)
    batch, row, offset, terms = (unwrap(x) for x in (
        0 if left.shape[0] == 1 else left.strides[0], left.strides[1], left.offset, left.shape[2]))
    if not all(isinstance(x, int) and x % number == 0 for x in (batch, row, offset, terms)):
        return None
    assert isinstance(batch, int) and isinstance(row, int)
    places = Counter(row * dtype.itemsize * i // STEP % PLACES for i in range(rows))
    return Rows(left, batch, row) if max(places.values()) <= MEETING else None


def panels(b: Builder, right: Value, parts: int, width: int, dtype: np.dtype) -> Stored:
    """right[c, j, k] as (c, panel, step, part, word, column): panels of `parts` times `width` columns."""
    count, n, k = right.shape
    assert isinstance(n, int) and isinstance(k, int)
    columns, number, height = parts * width, terms_of_word(dtype), words_of_step(dtype)
    lying = words(b, right, dtype)
    if lying is not None:
        return panels(b, lying, parts, width, UINT32)
    ragged, short = n % columns != 0, k % (number * height) != 0

    def at(i: tuple[Expr, ...]) -> Expr:
        c, panel, s, part, row, column = i
        j = b.iadd(b.iadd(b.imul(panel, columns), b.imul(part, width)), column)
        first = b.imul(b.iadd(b.imul(s, height), row), number)
        return word(b, right, (c, j, first), ragged, short, dtype)

    shape = (count, -(-n // columns), steps(k, dtype), parts, height, width)
    return b.in_memory(b.value(shape, dtype if number == 1 else UINT32, at))


def word(b: Builder, right: Value, index: tuple[Expr, Expr, Expr], ragged: bool, short: bool, dtype: np.dtype) -> Expr:
    """The word from an index on, along the terms."""
    c, j, first = index
    if dtype.itemsize >= 4:
        return _element(b, right, index, ragged, short, dtype)
    made: Expr | None = None
    for q in range(4 // dtype.itemsize):
        element = _element(b, right, (c, j, b.iadd(first, q)), ragged, short, dtype)
        bits = b.cast(b.bitcast(element, np.dtype(f"uint{8 * dtype.itemsize}")), UINT32)
        made = bits if made is None else b.or_(made, b.shl(bits, b.const(8 * dtype.itemsize * q, UINT32)))
    assert made is not None
    return made


def words(b: Builder, right: Value, dtype: np.dtype) -> Stored | None:
    """The same memory in words of several terms, where those of a word lie side by side: packing turns words then."""
    number = terms_of_word(dtype)
    if number == 1 or not isinstance(right, Stored) or right.dtype != dtype or right.strides[2] != 1:
        return None
    batch = 0 if right.shape[0] == 1 else right.strides[0]
    places = [unwrap(x) for x in (batch, right.strides[1], right.offset, right.shape[2], right.buffer.size)]
    if not all(isinstance(x, int) and x % number == 0 for x in places):
        return None
    batch, row, offset, terms, size = (x // number for x in places)  # type: ignore[operator]
    view = b.buffer(UINT32, size, right.buffer.kind)
    b.aliases[view] = right.buffer
    return Stored(b, view, (*right.shape[:2], terms), UINT32, (batch, row, 1), offset)


def _element(b: Builder, source: Value, index: tuple[Expr, Expr, Expr], ragged: bool, short: bool,
             dtype: np.dtype) -> Expr:
    """An element, or zero behind the last row (where the rows are `ragged`) or term (where these are `short`)."""
    wanted = [b.lt(index[axis], b.index(source.shape[axis])) for axis, asked in ((1, ragged), (2, short)) if asked]
    if not wanted:
        return b.cast(source.at(index), dtype)
    there = b.and_(*wanted) if len(wanted) == 2 else wanted[0]
    return b.cast(b.load_if(there, source, index, b.const(0, source.dtype)), dtype)
