"""Reductions by Householder's reflections, column by column, as programs of other operations.

A reflection is 1 - tau·v·vᴴ with v[0] = 1. Results are packed as LAPACK packs them: the rest of each v stands where its
reflection has left zeros. Functions take one matrix.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from styrax.core.hooks import lax
from styrax.core.tracing.trace import get_aval

from .matrices import INT32, adjoint, band, identity, is_complex, matmul, real_dtype, shape_of
from .qr_factors import householder_product


def _dot(x: Any, y: Any) -> Any:
    return lax.dot(x, y, precision=lax.Precision.HIGHEST)


def _conj(x: Any) -> Any:
    return lax.conj(x) if is_complex(get_aval(x).dtype) else x


def _column(a: Any, j: Any) -> Any:
    return lax.dynamic_index_in_dim(a, j, 1, keepdims=False)


def _reflection(x: Any, start: Any) -> tuple[Any, Any]:
    """The reflection of a vector after which all but its first component, which becomes real, are zero; `start` says
    where the vector starts. (LAPACK's `larfg`.)"""
    places = lax.iota(INT32, shape_of(x)[0])
    zero, here = lax.full_like(x, 0), places == start
    head = lax.reduce_sum(lax.select(here, x, zero), (0,))
    rest = lax.select(places > start, x, zero)
    size = lax.reduce_max(lax.abs(rest), (0,))
    largest = lax.max(size, lax.abs(head))
    safe = lax.select(largest > 0, largest, lax.full_like(largest, 1))
    tail = lax.reduce_sum(lax.square(lax.abs(rest / safe)), (0,))
    length = safe * lax.sqrt(tail + lax.square(lax.abs(head / safe)))
    beta = lax.select(lax.real(head) < 0, length, -length) if is_complex(get_aval(x).dtype) else (
        lax.select(head < 0, length, -length))
    idle = lax.bitwise_and(lax.eq(size, lax.full_like(size, 0)), lax.eq(_imag(head), lax.full_like(size, 0)))
    one = lax.full_like(head, 1)
    tau = lax.select(idle, lax.full_like(head, 0), (beta - head) / lax.select(idle, one, beta * one))
    v = rest / lax.select(idle, one, head - beta)
    return lax.select(here, lax.full_like(v, 1), v), tau


def _imag(x: Any) -> Any:
    return lax.imag(x) if is_complex(get_aval(x).dtype) else lax.full_like(x, 0)


def _reflected(a: Any, v: Any, tau: Any) -> Any:
    """The adjoint of a reflection times a matrix."""
    return a - _conj(tau) * v[:, None] * _dot(_conj(v)[None], a)


def _packed(form: Any, vectors: Any, offset: int) -> Any:
    """The form on and above a diagonal, reflections below it."""
    return band(form, False, -offset) + band(vectors, True, -offset - 1)


def _put(x: Any, value: Any, j: Any, axis: int) -> Any:
    return lax.dynamic_update_index_in_dim(x, value, j, axis)


def pivoted(a: Any) -> tuple[Any, Any, Any]:
    """The QR factorisation with the longest remaining column first: packed reflections and r, their factors, and the
    order of the columns. (LAPACK's `geqp3`.)"""
    m, n = shape_of(a)
    k = min(m, n)

    def step(j: Any, state: tuple) -> tuple:
        a, vectors, taus, order = state
        below = lax.broadcasted_iota(INT32, (m, n), 0) >= j
        lengths = lax.reduce_sum(lax.square(lax.abs(lax.select(below, a, lax.full_like(a, 0)))), (0,))
        lengths = lax.select(lax.iota(INT32, n) < j, lax.full_like(lengths, -1), lengths)
        p = lax.argmax(lengths, 0, INT32)
        here, there = _column(a, j), _column(a, p)
        a = _put(_put(a, here, p, 1), there, j, 1)
        first, second = (lax.dynamic_index_in_dim(order, i, 0, keepdims=False) for i in (j, p))
        order = _put(_put(order, first, p, 0), second, j, 0)
        v, tau = _reflection(there, j)
        # columns before are done: what they would become below the diagonal is not read
        return _reflected(a, v, tau), _put(vectors, v, j, 1), _put(taus, tau, j, 0), order

    state = a, lax.full_like(a, 0), lax.full_like(a, 0, shape=(k,)), lax.iota(INT32, n)
    form, vectors, taus, order = lax.fori_loop(np.int32(0), np.int32(k), step, state)
    return _packed(form, vectors, 0), taus, order


def hessenberg(a: Any) -> tuple[Any, Any]:
    """The reduction to Hessenberg form, packed, and the factors of its reflections. (LAPACK's `gehrd`.)"""
    n = shape_of(a)[0]

    def step(j: Any, state: tuple) -> tuple:
        a, vectors, taus = state
        v, tau = _reflection(_column(a, j), j + 1)
        a = a - tau * _dot(a, v[:, None]) * _conj(v)[None]
        return _reflected(a, v, tau), _put(vectors, v, j, 1), _put(taus, tau, j, 0)

    state = a, lax.full_like(a, 0), lax.full_like(a, 0, shape=(n - 1,))
    form, vectors, taus = lax.fori_loop(np.int32(0), np.int32(n - 1), step, state) if n > 1 else state
    return _packed(form, vectors, 1), taus


def tridiagonal(a: Any, *, lower: bool) -> list[Any]:
    """The reduction of a Hermitian matrix to tridiagonal form: reflections in the triangle that counts, the diagonal,
    the one beside it, and the reflections' factors. (LAPACK's `hetrd`.)"""
    if not lower:
        turned, d, e, taus = tridiagonal(lax.rev(a, (0, 1)), lower=True)
        return [lax.rev(turned, (0, 1)), *(lax.rev(x, (0,)) for x in (d, e, taus))]
    n = shape_of(a)[0]
    part = lax.real if is_complex(get_aval(a).dtype) else lambda x: x
    eye = identity(n, real_dtype(get_aval(a).dtype))
    strict = band(a, True, -1)
    form, taus = hessenberg(strict + adjoint(strict) + part(a) * eye)
    d = lax.reduce_sum(part(form) * eye, (1,))
    e = lax.reduce_sum(part(form)[1:, :n - 1] * eye[1:, 1:], (1,))
    return [band(form, True) + band(a, False, 1), d, e, taus]


def product(a: Any, taus: Any, c: Any, *, left: bool, transpose: bool) -> Any:
    """The product of matrices with those of reflections, `[..., m, k]`, from the left or the right."""
    *batch, size, columns = shape_of(a)
    if columns < size:
        a = lax.pad(a, np.zeros((), get_aval(a).dtype), [(0, 0, 0)] * (len(batch) + 1) + [(0, size - columns, 0)])
    q = householder_product(a, taus)
    q = adjoint(q) if transpose else q
    return matmul(q, c) if left else matmul(c, q)
