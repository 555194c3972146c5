"""Elimination as programs of other operations: LU factorisation, its permutations, tridiagonal systems."""

from __future__ import annotations

from typing import Any

import numpy as np

from styrax.core.hooks import lax
from styrax.core.tracing.trace import get_aval

from .matrices import INT32, band, is_complex, shape_of
from .triangular import triangular_solve

PANEL = 64  # columns that are factorised together


def _size(x: Any) -> Any:
    """What pivots are chosen by: of complex numbers, as LAPACK does, the sum of both parts."""
    return lax.abs(lax.real(x)) + lax.abs(lax.imag(x)) if is_complex(get_aval(x).dtype) else lax.abs(x)


def _at(x: Any, i: Any, axis: int = 0) -> Any:
    return lax.dynamic_index_in_dim(x, i, axis, keepdims=False)


def _exchanged(x: Any, i: Any, j: Any) -> Any:
    """Two rows of an array exchanged."""
    here, there = _at(x, i), _at(x, j)
    return lax.dynamic_update_index_in_dim(lax.dynamic_update_index_in_dim(x, here, j, 0), there, i, 0)


def _panel(a: Any, start: Any, steps: Any) -> tuple[Any, Any, Any]:
    """The factors of a few columns, in the rows from `start` on; the pivots, and the order of the rows."""
    m, n = shape_of(a)
    rows, columns = lax.iota(INT32, m), lax.iota(INT32, n)

    def step(j: Any, state: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
        a, pivots, order = state
        here = start + j
        size = _size(_at(a, j, 1))
        p = lax.argmax(lax.select(rows < here, lax.full_like(size, -1), size), 0, INT32)
        a, order = _exchanged(a, here, p), _exchanged(order, here, p)
        column, row = _at(a, j, 1), _at(a, here)
        pivot = _at(row, j)
        zero = pivot == 0
        scaled = lax.select(zero, column, column / lax.select(zero, lax.full_like(pivot, 1), pivot))
        column = lax.select(rows > here, scaled, column)
        below = lax.select(rows > here, column, lax.full_like(column, 0))
        beyond = lax.select(columns > j, row, lax.full_like(row, 0))
        a = lax.dynamic_update_index_in_dim(a, column, j, 1) - below[:, None] * beyond[None]
        return a, lax.dynamic_update_index_in_dim(pivots, p, j, 0), order

    return lax.fori_loop(np.int32(0), steps, step, (a, lax.full((n,), 0, INT32), rows))


def lu(a: Any) -> list[Any]:
    """The factors of a matrix, packed, the pivots and the order of rows, panel by panel (LAPACK's `getrf`).

    All panels are one loop over the whole matrix, since each shape of its own would have to be compiled.
    """
    m, n = shape_of(a)
    steps = min(m, n)
    if not steps:
        return [a, lax.full((0,), 0, INT32), lax.iota(INT32, m)]
    width = min(PANEL, steps)
    rows, columns = (-(-size // width) * width for size in (m, n))
    a = lax.pad(a, np.zeros((), get_aval(a).dtype), [(0, rows - m, 0), (0, columns - n, 0)])
    down, across = lax.iota(INT32, rows), lax.broadcasted_iota(INT32, (width, columns), 1)

    def eliminate(i: Any, state: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
        a, pivots, order = state
        start = lax.convert_element_type(i, INT32) * width
        end = start + width
        panel, exchanges, moved = _panel(lax.dynamic_slice(a, (0, start), (rows, width)), start,
                                         lax.min(steps - start, np.int32(width)))
        a, order = (lax.index_take(x, (moved,), (0,)).reshape(x.shape) for x in (a, order))
        a = lax.dynamic_update_slice(a, panel, (0, start))
        given = lax.dynamic_slice(a, (start, 0), (width, columns))
        right = across >= end
        upper = triangular_solve(lax.dynamic_slice(panel, (start, 0), (width, width)),
                                 lax.select(right, given, lax.full_like(given, 0)), left_side=True, lower=True,
                                 unit_diagonal=True)
        a = lax.dynamic_update_slice(a, lax.select(right, upper, given), (start, 0))
        below = lax.select(lax.broadcast_in_dim(down >= end, (rows, width), (0,)), panel, lax.full_like(panel, 0))
        a = a - lax.dot(below, upper, precision=lax.Precision.HIGHEST)
        return a, lax.dynamic_update_slice(pivots, exchanges, (start,)), order

    panels = -(-steps // width)
    state = a, lax.full((panels * width,), 0, INT32), down
    if panels == 1 and steps == n:
        a, pivots, order = _panel(a, np.int32(0), np.int32(steps))
    else:
        a, pivots, order = lax.fori_loop(np.int32(0), np.int32(panels), eliminate, state)
    return [a[:m, :n], pivots[:steps], order[:m]]


def permutation(pivots: Any, *, permutation_size: int) -> Any:
    """The permutation that exchanges of rows, one after the other, make."""
    rows = lax.iota(INT32, permutation_size)
    steps = shape_of(pivots)[0]
    return lax.fori_loop(np.int32(0), np.int32(steps), lambda i, rows: _exchanged(rows, i, _at(pivots, i)),
                         rows) if steps else rows


def tridiagonal_solve(dl: Any, d: Any, du: Any, b: Any, **_: Any) -> Any:
    """The solution of one tridiagonal system, with exchanges of neighbouring rows (LAPACK's `gtsv`). NaN where a pivot
    is zero."""
    def eliminate(state: tuple, row: tuple) -> tuple:
        """What is left of the row at hand, and the next one: the larger of their first elements is the pivot."""
        p, q, rhs = state
        l, d, u, c = row
        stay = _size(p) >= _size(l)
        zero = lax.full_like(p, 0)
        factor = lax.select(stay, l, p) / lax.select(stay, p, l)
        pick = lambda x, y: lax.select(stay, x, y)
        kept = pick(p, l), pick(q, d), pick(zero, u), pick(rhs, c)
        left = pick(d, q) - factor * kept[1], pick(u, zero) - factor * kept[2], pick(c, rhs) - factor * kept[3]
        return left, kept

    zero = lax.full_like(d[:1], 0)
    du = lax.concatenate([du[:-1], zero], 0)
    (p, _, rhs), kept = lax.scan(eliminate, (d[0], du[0], b[0]), (dl[1:], d[1:], du[1:], b[1:]))
    diagonal = lax.concatenate([kept[0], p[None]], 0)

    def substitute(state: tuple, row: tuple) -> tuple:
        after, next_but_one = state
        p, q, r, c = row
        x = (c - q * after - r * next_but_one) / p
        return (x, after), x

    last = rhs / p
    _, x = lax.scan(substitute, (last, lax.full_like(last, 0)), kept, reverse=True)
    x = lax.concatenate([x, last[None]], 0)
    singular = lax.reduce_or(lax.eq(diagonal, lax.full_like(diagonal, 0)), (0,))
    return lax.select(lax.full_like(x, True, np.bool_) & singular, lax.full_like(x, np.nan), x)


def cholesky_update(r: Any, w: Any) -> Any:
    """The upper triangular factor of rᵀr + wwᵀ, by rotations that bring in one component of w each."""
    def rotate(k: Any, state: tuple[Any, Any]) -> tuple[Any, Any]:
        r, w = state
        row = _at(r, k)
        x, y = _at(row, k), _at(w, k)
        length = lax.sqrt(x * x + y * y)
        still = lax.eq(length, lax.full_like(length, 0))
        one = lax.full_like(length, 1)
        safe = lax.select(still, one, length)
        c, s = lax.select(still, one, x / safe), y / safe
        return lax.dynamic_update_index_in_dim(r, c * row + s * w, k, 0), c * w - s * row

    n = shape_of(w)[0]
    return band(lax.fori_loop(np.int32(0), np.int32(n), rotate, (band(r, False), w))[0], False) if n else r
