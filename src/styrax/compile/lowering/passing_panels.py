"""Panels of a right operand that a thread packs as it comes to them, in memory of its own: see `panels`.

The panel stays in the second cache until the kernel has multiplied it with all rows, which are read again for each
panel, where the processor does that quickly. That costs less than packed panels in memory would.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..ir.expr import Expr
from ..ir.values import Stored, Value
from .panels import UINT32, steps, terms_of_word, word, words, words_of_step

if TYPE_CHECKING:
    from .builder import Builder, Nest

NEAR = 1 << 19  # bytes of a panel that stays in the second cache,
GROUP = 1 << 20  # and of a left operand whose rows stay there while packed panels pass
SHARES = 16  # panels from which threads share them alone


def pays(rows: int, panel: int, panels: int, one_call: bool, most: int) -> bool:
    """Whether panels are packed as they pass. `rows`, `panel`: bytes of the left operand and of a panel; `one_call`:
    whether a call of the kernel multiplies a panel with all rows; `most`: bytes of rows from where it reads quickly."""
    return rows <= most and panel <= NEAR and (one_call or panels >= SHARES)


def panel(nest: Nest, right: Value, c: Expr, first: Expr, parts: int, width: int, dtype: np.dtype) -> Stored:
    """`parts` times `width` columns of right[c], the number `first` of them and those behind it, as (step, part, word,
    column). Columns that do not exist are not written: nobody reads what is made of them."""
    lying = words(nest.b, right, dtype)
    if lying is not None:
        return panel(nest, lying, c, first, parts, width, UINT32)
    packing = _Packing(nest, right, c, first, (parts, width), dtype)
    columns, n = parts * width, right.shape[1]
    assert isinstance(n, int)
    packing.zeros()
    if n % columns == 0:
        packing.copy(columns)
    elif n < columns:
        packing.copy(n)
    else:
        with nest.if_(nest.b.le(nest.b.iadd(first, columns), nest.b.int(n))):
            packing.copy(columns)
        with nest.else_():
            packing.copy(n % columns)
    return packing.target


def following(b: Builder, right: Value, c: Expr, first: Expr, width: int, packed: Stored) -> tuple[Stored, Expr]:
    """Where `width` columns from `first` on lie, or the last ones, if they do one after the other: what is packed after
    a panel. Else the panel. (Rows that lie far apart meet in few places of a cache, which cannot keep them so long.)"""
    if isinstance(right, Stored) and right.dtype == packed.dtype and right.strides[2] == 1 and (
            right.strides[1] == right.shape[2]) and right.shape[1] >= width:
        return right, _behind(b, right, c, b.min(first, b.isub(right.shape[1], width)))
    return packed, b.int(0)


class _Packing:
    """The loops that pack a panel."""

    def __init__(self, nest: Nest, right: Value, c: Expr, first: Expr, shape: tuple[int, int], dtype: np.dtype):
        self.nest, self.b, self.right, self.c, self.first = nest, nest.b, right, c, first
        self.parts, self.width = shape
        self.dtype, k = dtype, right.shape[2]
        assert isinstance(k, int)
        self.number, self.height = terms_of_word(dtype), words_of_step(dtype)
        self.short = k % self.number != 0
        self.full, self.rest = divmod(-(-k // self.number), self.height)  # steps, and words behind them
        self.target = nest.scratch((steps(k, dtype), self.parts, self.height, self.width),
                                   dtype if self.number == 1 else UINT32)

    def zeros(self) -> None:
        """The words behind the last term."""
        nest, b = self.nest, self.b
        if self.rest:
            with nest.loop(self.height - self.rest) as row, nest.loop(self.parts) as part, (
                    nest.loop(self.width, vector=True)) as column:
                nest.store(self.target, [b.int(self.full), part, b.iadd(row, self.rest), column],
                           b.const(0, self.target.dtype))

    def copy(self, columns: int) -> None:
        """All words of so many columns."""
        right = self.right
        by_terms = turns = False
        if isinstance(right, Stored):
            by_terms = right.strides[2] == 1
            turns = by_terms and self.number == 1 and right.dtype == self.dtype and isinstance(right.strides[1], int)
        for part in range(-(-columns // self.width)):
            here = min(self.width, columns - part * self.width)
            if turns and here == self.width and self.parts == 1:  # all steps lie one after the other
                self._turn(self.b.int(0), self.height * self.full + self.rest, part, here)
                continue
            body = self._along_terms if by_terms else self._along_columns
            if turns and here == self.width:
                body = self._turn
            if self.full:
                with self.nest.loop(self.full) as step:
                    body(step, self.height, part, here)
            if self.rest:
                body(self.b.int(self.full), self.rest, part, here)

    def _turn(self, step: Expr, count: int, part: int, columns: int) -> None:
        """Words of a step that lie side by side, turned in registers."""
        b, right, width = self.b, self.right, self.width
        assert isinstance(right, Stored) and isinstance(right.strides[1], int)
        to = b.imul(b.iadd(b.imul(step, self.parts), part), self.height * width)
        at = b.iadd(_behind(b, right, self.c, b.iadd(self.first, part * width)), b.imul(step, self.height))
        self.nest.turn(self.target, to, width, right, at, right.strides[1], columns, count)

    def _along_terms(self, step: Expr, count: int, part: int, columns: int) -> None:
        with self.nest.loop(columns) as column, self.nest.loop(count, vector=True) as row:
            self._store(step, row, part, column)

    def _along_columns(self, step: Expr, count: int, part: int, columns: int) -> None:
        with self.nest.loop(count) as row, self.nest.loop(columns, vector=True) as column:
            self._store(step, row, part, column)

    def _store(self, step: Expr, row: Expr, part: int, column: Expr) -> None:
        b = self.b
        place = self.c, b.iadd(b.iadd(self.first, part * self.width), column), b.imul(
            b.iadd(b.imul(step, self.height), row), self.number)
        value = word(b, self.right, place, False, self.short, self.dtype)
        self.nest.store(self.target, [step, b.int(part), row, column], value)


def _behind(b: Builder, right: Stored, c: Expr, first: Expr) -> Expr:
    """How far a matrix's column is behind the first element of all."""
    return b.iadd(b.imul(c, right.strides[0]), b.imul(first, right.strides[1]))
