"""Operands laid out for kernels of products: the left one in blocks of rows, the right one in panels of columns.

Both go step by step through the contracted dimension. A step is 16 words of 4 bytes, a word one element or a few that
follow each other. What is behind the last row, column or term is zero. Packing is an ordinary loop: it casts, and fuses
with what makes the operand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..ir.expr import Expr, unwrap
from ..ir.values import Stored, Value

if TYPE_CHECKING:
    from .builder import Builder, Nest

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
    lying = _words(b, right, number, dtype)
    if lying is not None:
        return panels(b, lying, parts, width, UINT32)
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


def _words(b: Builder, right: Value, number: int, dtype: np.dtype) -> Stored | None:
    """The same memory in words of `number` terms, where those of a word lie side by side: packing turns words then."""
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


AHEAD = 24  # steps of a packed panel that are asked for before they are read


def ahead(steps: int, width: int) -> int:
    """How many words behind a panel's first is what should be asked for first."""
    return min(steps, AHEAD) * WORDS * width


def panel(nest: Nest, right: Value, c: Expr, first: Expr, width: int, dtype: np.dtype) -> Stored:
    """`width` columns of right[c], the number `first` of them and those behind it, as (word, column) in memory of a
    thread's own. Columns that do not exist are not written: nobody reads what is made of them."""
    b = nest.b
    _, n, k = right.shape
    assert isinstance(n, int) and isinstance(k, int)
    whole = steps(k, dtype) * WORDS
    target = nest.scratch((whole, width), dtype)
    if k < whole:
        with nest.loop(whole - k) as word, nest.loop(width, vector=True) as column:
            nest.store(target, [b.iadd(word, k), column], b.const(0, dtype))

    def element(column: Expr, word: Expr) -> None:
        nest.store(target, [word, column], b.cast(right.at((c, b.iadd(first, column), word)), dtype))

    def copy(columns: int) -> None:
        row = right.strides[1] if isinstance(right, Stored) else None
        if isinstance(right, Stored) and right.dtype == dtype and right.strides[2] == 1 and isinstance(row, int) and (
                columns == width):
            nest.turn(target, 0, width, right, _behind(b, right, c, first), row, width, k)
        elif isinstance(right, Stored) and right.strides[2] == 1:
            with nest.loop(columns) as column, nest.loop(k, vector=True) as word:
                element(column, word)
        else:
            with nest.loop(k) as word, nest.loop(columns, vector=True) as column:
                element(column, word)

    if n % width == 0:
        copy(width)
    elif n < width:
        copy(n)
    else:
        with nest.if_(b.le(b.iadd(first, width), b.int(n))):
            copy(width)
        with nest.else_():
            copy(n % width)
    return target


def following(b: Builder, right: Value, c: Expr, first: Expr, packed: Stored) -> tuple[Stored, Expr]:
    """Where the columns from `first` on lie, if they do one after the other: what is packed after a panel. Else the
    panel. (Rows that lie far apart meet in few places of a cache, which cannot keep them so long.)"""
    if isinstance(right, Stored) and right.dtype == packed.dtype and right.strides[2] == 1 and (
            right.strides[1] == right.shape[2]):
        return right, _behind(b, right, c, first)
    return packed, b.int(0)


def _behind(b: Builder, right: Stored, c: Expr, first: Expr) -> Expr:
    """How far a matrix's column is behind the first element of all."""
    return b.iadd(b.imul(c, right.strides[0]), b.imul(first, right.strides[1]))


def _element(b: Builder, source: Value, index: tuple[Expr, Expr, Expr], ragged: bool, short: bool,
             dtype: np.dtype) -> Expr:
    """An element, or zero behind the last row (where the rows are `ragged`) or term (where these are `short`)."""
    wanted = [b.lt(index[axis], b.index(source.shape[axis])) for axis, asked in ((1, ragged), (2, short)) if asked]
    if not wanted:
        return b.cast(source.at(index), dtype)
    there = b.and_(*wanted) if len(wanted) == 2 else wanted[0]
    return b.cast(b.load_if(there, source, index, b.const(0, source.dtype)), dtype)
