"""Elimination as programs of other operations: LU factorisation, its permutations, tridiagonal systems."""

from __future__ import annotations

from typing import Any

import numpy as np

from styrax.core.hooks import lax
from styrax.core.tracing.trace import get_aval

from .matrices import INT32, band, is_complex, shape_of
from .triangular import triangular_solve

PANEL = 64  # columns at least that are factorised together
PANELS = 16  # at most: each is a part of the program


def _size(x: Any) -> Any:
    """What pivots are chosen by: of complex numbers, as LAPACK does, the sum of both parts."""
    return lax.abs(lax.real(x)) + lax.abs(lax.imag(x)) if is_complex(get_aval(x).dtype) else lax.abs(x)


def _at(x: Any, i: Any, axis: int = 0) -> Any:
    return lax.dynamic_index_in_dim(x, i, axis, keepdims=False)


def _exchanged(x: Any, i: Any, j: Any) -> Any:
    """Two rows of an array exchanged."""
    here, there = _at(x, i), _at(x, j)
    return lax.dynamic_update_index_in_dim(lax.dynamic_update_index_in_dim(x, here, j, 0), there, i, 0)


def _panel(a: Any) -> tuple[Any, Any, Any]:
    """The factors of a few columns, the pivots, and the order of the rows."""
    m, n = shape_of(a)
    steps = min(m, n)
    rows, columns = lax.iota(INT32, m), lax.iota(INT32, n)

    def step(j: Any, state: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
        a, pivots, order = state
        size = _size(_at(a, j, 1))
        p = lax.argmax(lax.select(rows < j, lax.full_like(size, -1), size), 0, INT32)
        a, order = _exchanged(a, j, p), _exchanged(order, j, p)
        column, row = _at(a, j, 1), _at(a, j)
        pivot = _at(row, j)
        whole = lax.bitwise_and(rows > j, lax.ne(pivot, lax.full_like(pivot, 0)))
        column = lax.select(whole, column / lax.select(lax.ne(pivot, lax.full_like(pivot, 0)), pivot,
                                                       lax.full_like(pivot, 1)), column)
        a = lax.dynamic_update_index_in_dim(a, column, j, 1)
        below = lax.select(rows > j, column, lax.full_like(column, 0))
        beyond = lax.select(columns > j, row, lax.full_like(row, 0))
        return a - below[:, None] * beyond[None], lax.dynamic_update_index_in_dim(pivots, p, j, 0), order

    return lax.fori_loop(np.int32(0), np.int32(steps), step, (a, lax.full((steps,), 0, INT32), rows))


def lu(a: Any) -> list[Any]:
    """The factors of a matrix, packed, the pivots and the order of rows, panel by panel (LAPACK's `getrf`)."""
    m, n = shape_of(a)
    steps = min(m, n)
    order, pivots = lax.iota(INT32, m), lax.full((0,), 0, INT32)
    width = max(PANEL, -(-steps // PANELS))
    for start in range(0, steps, width):
        end = min(start + width, steps)
        panel, exchanges, moved = _panel(a[start:, start:end])
        left, right, later = (lax.index_take(x, (moved,), (0,)) for x in (a[start:, :start], a[start:, end:],
                                                                           order[start:]))
        if end < n:
            upper = triangular_solve(panel[:end - start], right[:end - start], left_side=True, lower=True,
                                     unit_diagonal=True)
            rest = right[end - start:] - lax.dot(panel[end - start:], upper, precision=lax.Precision.HIGHEST)
            right = lax.concatenate([upper, rest], 0)
        a = lax.concatenate([a[:start], lax.concatenate([left, panel, right], 1)], 0)
        pivots = lax.concatenate([pivots, exchanges + np.int32(start)], 0)
        order = lax.concatenate([order[:start], later], 0)
    return [a, pivots, order]


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
