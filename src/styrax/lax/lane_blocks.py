"""Loops over blocks of what lies side by side: each block fills the lanes of vectors, and threads share blocks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from styrax.core.programs.lowering import Builder, Expr, Index, Nest


@contextmanager
def counted(b: Builder, nest: Nest, extent: Index) -> Iterator[Expr]:
    """A loop, or the one turn of it."""
    if isinstance(extent, int) and extent == 1:
        yield b.int(0)
        return
    with nest.loop(extent) as i:
        yield i


@contextmanager
def lanes(b: Builder, nest: Nest, width: int, vector: int) -> Iterator[Expr]:
    """A loop over what lies side by side, `vector` of it at a time, or the one turn of it."""
    if width == 1:
        yield b.int(0)
        return
    with nest.loop(width, vector=True, lanes=vector) as lane:
        yield lane


@contextmanager
def covering(b: Builder, nest: Nest, size: int, step: int) -> Iterator[Expr]:
    """A loop over pieces of `step` elements; the last one is moved back to end with the others."""
    with counted(b, nest, -(-size // step)) as i:
        first = b.imul(i, step)
        yield first if size % step == 0 else nest.let(b.min(first, b.int(size - step)))


@contextmanager
def blocks(b: Builder, nest: Nest, lines: Index, columns: Index, width: int) -> Iterator[tuple[Expr, Expr]]:
    """A loop over blocks of `width` columns of each line, which threads may share; gives line and first column. Columns
    that are no multiple of `width` end with a block that begins within the one before: what both compute is the
    same."""
    count = -(-columns // width) if isinstance(columns, int) else b.floordiv(b.iadd(columns, width - 1), width)
    total = b.product((lines, count))
    whole = isinstance(columns, int) and columns % width == 0

    def at(block: Expr) -> tuple[Expr, Expr]:
        line, column = b.floordiv(block, count), b.floormod(block, count)
        first = b.imul(column, width)
        if not whole:
            first = b.min(first, b.isub(columns, width))
        return nest.let(line), nest.let(first)

    if isinstance(total, int) and total == 1:
        yield b.int(0), b.int(0)
        return
    with nest.loop(total, parallel=True) as block:
        yield at(block)


__all__ = ["blocks", "counted", "covering", "lanes"]
