"""The Schur form of a real matrix as a program of other operations: Francis's QR iteration with pairs of shifts.

The shifts are the eigenvalues of the last two rows, conjugate or not, so that nothing is complex (Golub and Van Loan,
Matrix Computations, 7.5). Functions take one matrix.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from styrax.core.hooks import lax
from styrax.core.tracing.trace import get_aval
from styrax.core.types import dtypes

from .matrices import band, identity, matmul, shape_of
from .qr_iteration import EXCEPTIONAL, at, deflated, given


def _turned(t: Any, z: Any, k: Any, q: Any) -> tuple[Any, Any]:
    """Some neighbouring rows and columns from `k` on in the basis of the columns of `q`."""
    n, size = shape_of(t)[0], shape_of(q)[0]
    t = lax.dynamic_update_slice(t, matmul(q.T, lax.dynamic_slice(t, (k, 0), (size, n))), (k, 0))
    t, z = (lax.dynamic_update_slice(v, matmul(lax.dynamic_slice(v, (0, k), (n, size)), q), (0, k)) for v in (t, z))
    return t, z


def _reflection(*parts: Any) -> Any:
    """The reflection that takes a vector to the first axis; of a vector of zeros none."""
    v = lax.concatenate([p[None] for p in parts], 0)
    largest = lax.reduce_max(lax.abs(v), (0,))
    idle = largest == 0
    v = v / lax.select(idle, lax.full_like(largest, 1), largest)
    length = lax.sqrt(lax.reduce_sum(v * v, (0,)))
    u = lax.concatenate([(v[0] + lax.select(v[0] < 0, -length, length))[None], v[1:]], 0)
    square = lax.reduce_sum(u * u, (0,))
    scale = lax.select(idle, lax.full_like(square, 0), 2 / lax.select(idle, lax.full_like(square, 1), square))
    return identity(len(parts), get_aval(v).dtype) - scale * (u[:, None] * u[None])


def _sweep(t: Any, z: Any, first: Any, last: Any, tries: Any) -> tuple[Any, Any]:
    """One step on the rows from `first` to `last`, three or more."""
    below, before = lax.abs(at(t, last, last - 1)), last - 1
    trace = at(t, before, before) + at(t, last, last)
    product = at(t, before, before) * at(t, last, last) - at(t, before, last) * at(t, last, before)
    strange = lax.rem(tries, np.int32(EXCEPTIONAL)) == EXCEPTIONAL - 1  # other shifts break a circle
    size = below + lax.abs(at(t, before, before - 1))
    trace, product = lax.select(strange, 1.5 * size, trace), lax.select(strange, size * size, product)
    head, under = at(t, first, first), at(t, first + 1, first)
    x = head * head + at(t, first, first + 1) * under - trace * head + product
    y = under * (head + at(t, first + 1, first + 1) - trace)

    def chase(k: Any, state: tuple[Any, ...]) -> tuple[Any, ...]:
        t, z, x, y, w = state
        t, z = _turned(t, z, k, _reflection(x, y, w))
        beyond = lax.select(k + 3 <= last, at(t, k + 3, k), lax.full_like(x, 0))
        return t, z, at(t, k + 1, k), at(t, k + 2, k), beyond

    t, z, x, y, _ = lax.fori_loop(first, last - 1, chase, (t, z, x, y, under * at(t, first + 2, first + 1)))
    t, z = _turned(t, z, last - 1, _reflection(x, y))
    return band(t, False, -1), z


def _standard(t: Any, z: Any, k: Any) -> tuple[Any, Any]:
    """The block of two rows from `k` on: triangular where its eigenvalues are real, else of equal diagonal elements."""
    a, b, c, d = (at(t, i, j) for i in (k, k + 1) for j in (k, k + 1))
    half = (a - d) / 2
    inside = half * half + b * c
    real = inside >= 0
    root = lax.sqrt(lax.select(real, inside, lax.full_like(inside, 0)))
    angle = lax.select(real, lax.atan2(c, half + lax.select(half < 0, -root, root)), lax.atan2(d - a, b + c) / 2)
    angle = lax.select(c == 0, lax.full_like(angle, 0), angle)
    cos, sin = lax.cos(angle), lax.sin(angle)
    t, z = _turned(t, z, k, lax.reshape(lax.concatenate([v[None] for v in (cos, -sin, sin, cos)], 0), (2, 2)))
    corner = lax.select(real, lax.full_like(c, 0), at(t, k + 1, k))
    return lax.dynamic_update_slice(t, corner[None, None], (k + 1, k)), z


def schur(a: Any, *, compute_schur_vectors: bool, **_: Any) -> list[Any]:
    """The Schur form of a real matrix, and its vectors if asked for; NaN where the iteration fails."""
    if not shape_of(a)[0]:
        return [a, a][:1 + compute_schur_vectors]
    info = dtypes.finfo(get_aval(a).dtype)
    size = lax.reduce_max(lax.abs(a), (0, 1))  # (whose square is multiplied with such numbers)
    fits = lax.bitwise_or(size == 0, lax.bitwise_and(size > float(info.tiny) ** 0.25, size < float(info.max) ** 0.25))
    size = lax.select(fits, lax.full_like(size, 1), size)
    t, z, good = deflated(a / size, _turn)
    return given(t * size, z, good, compute_schur_vectors)


def _turn(t: Any, z: Any, first: Any, last: Any, tries: Any) -> tuple[Any, Any, Any]:
    """A sweep over a block of three rows or more; smaller ones are done, and of two rows take the standard form."""
    rows = last - first + 1

    def found(t: Any, z: Any) -> tuple[Any, Any]:
        return t, z

    def pair(t: Any, z: Any) -> tuple[Any, Any]:
        return _standard(t, z, first)

    def sweep(t: Any, z: Any) -> tuple[Any, Any]:
        return _sweep(t, z, first, last, tries) if shape_of(t)[0] > 2 else (t, z)

    t, z = lax.switch(lax.min(rows, np.int32(3)) - 1, (found, pair, sweep), t, z)
    return t, z, lax.select(rows < 3, rows, lax.full_like(rows, 0))
