"""Eigenvalues of any square matrix as a program of other operations: Francis's QR iteration on the Hessenberg form.

Complex, with single shifts, implicitly, and deflation at the end (Golub and Van Loan, Matrix Computations, 7.5).
Functions take one matrix.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from styrax.core.hooks import lax
from styrax.core.tracing.trace import get_aval
from styrax.core.types import dtypes

from .eigen import diagonal
from .matrices import INT32, adjoint, band, complex_dtype, identity, is_complex, matmul, shape_of
from .qr_factors import householder_product
from .reflections import hessenberg

SWEEPS = 30  # for each eigenvalue, at most; two or three are needed
EXCEPTIONAL = 10  # after so many, another shift breaks a circle


def at(x: Any, i: Any, j: Any) -> Any:
    """An element as a scalar."""
    return lax.dynamic_slice(x, (i, j), (1, 1))[0, 0]


def _shift(t: Any, last: Any, tries: Any) -> Any:
    """The eigenvalue of the last two rows that is nearer to the last element."""
    before = last - 1
    a, b, c, d = (at(t, i, j) for i in (before, last) for j in (before, last))
    half = (a - d) / 2
    root = lax.sqrt(half * half + b * c)
    below = lax.select(lax.abs(half + root) < lax.abs(half - root), half - root, half + root)
    flat = below == 0
    shift = lax.select(flat, d, d - b * c / lax.select(flat, lax.full_like(below, 1), below))
    return lax.select(lax.rem(tries, np.int32(EXCEPTIONAL)) == EXCEPTIONAL - 1, d + lax.abs(c) * 0.75, shift)


def _sweep(t: Any, z: Any, first: Any, last: Any, shift: Any) -> tuple[Any, Any]:
    """One step on the rows from `first` to `last`: rotations of neighbours chase a bulge down."""
    n = shape_of(t)[0]

    def rotate(k: Any, state: tuple[Any, Any, Any, Any]) -> tuple[Any, Any, Any, Any]:
        t, z, x, y = state
        length = lax.sqrt(lax.square(lax.abs(x)) + lax.square(lax.abs(y)))
        idle = length == 0
        length = lax.select(idle, lax.full_like(length, 1), length)
        c, s = lax.select(idle, lax.full_like(x, 1), x / length), y / length
        turn = lax.reshape(lax.concatenate([v[None] for v in (lax.conj(c), lax.conj(s), -s, c)], 0), (2, 2))
        t = lax.dynamic_update_slice(t, matmul(turn, lax.dynamic_slice(t, (k, 0), (2, n))), (k, 0))
        t, z = (lax.dynamic_update_slice(v, matmul(lax.dynamic_slice(v, (0, k), (n, 2)), adjoint(turn)), (0, k))
                for v in (t, z))
        return t, z, at(t, k + 1, k), at(t, k + 2, k)

    state = t, z, at(t, first, first) - shift, at(t, first + 1, first)
    t, z, *_ = lax.fori_loop(first, last, rotate, state)
    return band(t, False, -1), z


def reduced(a: Any) -> tuple[Any, Any]:
    """The Hessenberg form, reflections below it, and its basis; of a matrix of two rows or more."""
    dtype = get_aval(a).dtype
    packed, taus = hessenberg(a)
    z = identity(shape_of(a)[0], dtype)
    product = householder_product(packed[1:, :-1], taus)
    return packed, lax.pad(product, np.zeros((), dtype), [(1, 0, 0)] * 2) + z * (z[:1].T)


def split_off(t: Any, last: Any) -> tuple[Any, Any]:
    """A Hessenberg form without the elements beside the diagonal that are as good as zero, and the first of the rows
    that hang together with the row `last`."""
    n, dtype = shape_of(t)[0], get_aval(t).dtype
    info, places = dtypes.finfo(dtype), lax.iota(INT32, n)
    size = lax.abs(diagonal(t))
    beside = lax.abs(diagonal(lax.pad(t, np.zeros((), dtype), [(0, 0, 0), (1, -1, 0)])))
    near = size + lax.pad(size, np.zeros((), size.dtype), [(1, -1, 0)])
    split = beside <= near * float(info.eps) + float(info.tiny)
    cut = lax.bitwise_and(lax.broadcast_in_dim(split, (n, n), (0,)),
                          lax.broadcasted_iota(INT32, (n, n), 0) == lax.broadcasted_iota(INT32, (n, n), 1) + 1)
    t = lax.select(cut, lax.full_like(t, 0), t)
    return t, lax.reduce_max(lax.select(lax.bitwise_and(split, places <= last), places, lax.full_like(places, 0)), (0,))


def deflated(a: Any, turn: Callable[..., tuple[Any, Any, Any]]) -> tuple[Any, Any, Any]:
    """The Schur form, its vectors, and whether all eigenvalues were found.

    Args:
      turn: gives for `(t, z, first, last, tries)`, with the rows of the last block that does not fall apart yet, the
        matrices after a sweep over it and how many of its rows, from the last on, are done.
    """
    n = shape_of(a)[0]
    if n == 1:
        return a, identity(n, get_aval(a).dtype), a[0, 0] == a[0, 0]
    packed, z = reduced(a)

    def step(state: tuple) -> tuple:
        t, z, last, tries, left = state
        t, first = split_off(t, last)
        t, z, rows = turn(t, z, first, last, tries)
        tries = lax.select(rows > 0, lax.full_like(tries, 0), tries + 1)
        return t, z, last - rows, tries, left - 1

    state = band(packed, False, -1), z, np.int32(n - 1), np.int32(0), np.int32(SWEEPS * n)
    t, z, last, *_ = lax.while_loop(lambda state: lax.bitwise_and(state[2] > 0, state[4] > 0), step, state)
    return t, z, last <= 0


def _turn(t: Any, z: Any, first: Any, last: Any, tries: Any) -> tuple[Any, Any, Any]:
    done = first == last
    swept = _sweep(t, z, first, last, _shift(t, lax.max(last, np.int32(1)), tries))
    t, z = (lax.select(done, old, new) for old, new in zip((t, z), swept, strict=True))
    return t, z, lax.convert_element_type(done, INT32)


def _schur(a: Any) -> tuple[Any, Any, Any]:
    """The complex Schur form, its vectors, and whether all eigenvalues were found."""
    t, z, good = deflated(a, _turn)
    return band(t, False), z, good


def _vectors(t: Any) -> Any:
    """The eigenvectors of an upper triangular matrix, in columns, by substitution."""
    n = shape_of(t)[0]
    w = diagonal(t)
    info = dtypes.finfo(get_aval(t).dtype)
    least = lax.max(lax.reduce_max(lax.abs(t), (0, 1)) * float(info.eps), np.array(info.tiny, info.dtype))

    def substitute(k: Any, x: Any) -> Any:
        i = lax.convert_element_type(n - 1 - k, INT32)
        row = lax.dynamic_index_in_dim(t, i, 0)
        gap = at(t, i, i) - w
        gap = lax.select(lax.abs(gap) < least, lax.convert_element_type(lax.full_like(lax.abs(gap), 1) * least,
                                                                        get_aval(t).dtype), gap)
        places = lax.iota(INT32, n)
        new = lax.select(places > i, -matmul(row, x)[0] / gap, lax.full_like(gap, 0))
        size = lax.max(lax.abs(new), np.ones((), info.dtype))  # no component grows beyond 1
        x, new = x / size[None], new / size
        return lax.dynamic_update_index_in_dim(x, lax.select(places == i, lax.full_like(new, 1), new), i, 0)

    return lax.fori_loop(np.int32(0), np.int32(n), substitute, lax.full_like(t, 0))


def _normalised(v: Any) -> Any:
    """Columns of length 1 whose largest components are real."""
    size = lax.abs(v)
    v = v / lax.reduce_max(size, (0,))[None]
    size = lax.abs(v)
    v = v / lax.sqrt(lax.reduce_sum(lax.square(size), (0,)))[None]
    places = lax.broadcasted_iota(INT32, shape_of(v), 0) == lax.argmax(size, 0, INT32)[None]
    largest = lax.reduce_sum(lax.select(places, v, lax.full_like(v, 0)), (0,))
    return v * (lax.conj(largest) / lax.abs(largest))[None]


def _unless(good: Any, x: Any) -> Any:
    nan = complex(np.nan, np.nan) if is_complex(get_aval(x).dtype) else np.nan
    return lax.select(good, x, lax.full_like(x, nan))


def eig(a: Any, *, compute_left_eigenvectors: bool, compute_right_eigenvectors: bool, **_: Any) -> list[Any]:
    """The eigenvalues of a matrix, and the vectors of length 1 that are asked for; NaN where the iteration fails."""
    t, z, good = _schur(lax.convert_element_type(a, complex_dtype(get_aval(a).dtype)))
    outs = [diagonal(t)]
    if compute_left_eigenvectors:  # of the adjoint, which is upper triangular in reverse
        outs.append(_normalised(matmul(z, lax.rev(_vectors(lax.rev(adjoint(t), (0, 1))), (0, 1)))))
    if compute_right_eigenvectors:
        outs.append(_normalised(matmul(z, _vectors(t))))
    return [_unless(good, x) for x in outs]


def schur(a: Any, *, compute_schur_vectors: bool, **_: Any) -> list[Any]:
    """The Schur form of a complex matrix, and its vectors if asked for; NaN where the iteration fails."""
    return given(*_schur(a), compute_schur_vectors)


def given(t: Any, z: Any, good: Any, vectors: bool) -> list[Any]:
    """A Schur form, and its vectors if asked for; NaN where the iteration failed."""
    return [_unless(good, x) for x in ([t, z] if vectors else [t])]
