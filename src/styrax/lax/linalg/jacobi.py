"""Eigenvalues of Hermitian matrices and singular values as programs of other operations: rotations of pairs of vectors.

One-sided Jacobi iteration (Hestenes, 1958) in the order of a tournament (Brent and Luk, 1985), in which half as many
pairs as there are vectors are rotated at once. Inside, matrices are in batches of one dimension.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from styrax.core.hooks import lax
from styrax.core.tracing.trace import get_aval
from styrax.core.types import dtypes

from ..indexing.gather import take_along
from .matrices import INT32, adjoint, band, identity, is_complex, matmul, real_dtype, shape_of
from .qr_factors import qr

SWEEPS = 40  # at most; some ten are needed


def _conj(x: Any) -> Any:
    return lax.conj(x) if is_complex(get_aval(x).dtype) else x


def _lengths(x: Any) -> Any:
    return lax.sqrt(lax.reduce_sum(lax.square(lax.abs(x)), (2,)))


def _rotated(p: Any, q: Any, tolerance: float) -> tuple[Any, Any, Any]:
    """Pairs of vectors made orthogonal, and whether any pair was not."""
    mixed = lax.reduce_sum(_conj(p) * q, (2,))
    size, first, second = lax.abs(mixed), _lengths(p), _lengths(q)
    turned = lax.gt(size, first * second * tolerance)
    safe = lax.select(turned, size, lax.full_like(size, 1))
    # the tangent of the angle: the smaller root of t² + 2·zeta·t = 1
    zeta = (second - first) * (second + first) / (safe * 2)
    tangent = 1 / (lax.abs(zeta) + lax.sqrt(zeta * zeta + 1))
    tangent = lax.select(zeta < 0, -tangent, tangent)
    tangent = lax.select(turned, tangent, lax.full_like(tangent, 0))
    cosine = lax.rsqrt(tangent * tangent + 1)
    sine = cosine * tangent * (mixed / safe)
    rotated = cosine[..., None] * p - _conj(sine)[..., None] * q, sine[..., None] * p + cosine[..., None] * q
    return *rotated, lax.reduce_or(turned, (0, 1))


def _orthogonal(x: Any) -> Any:
    """The rows of each matrix, `[b, n, r]`, made orthogonal: combined by a unitary matrix."""
    count, rows, size = shape_of(x)
    half = -(-rows // 2)
    tolerance = float(dtypes.finfo(get_aval(x).dtype).eps) * math.sqrt(size)
    if rows % 2:
        x = lax.concatenate([x, lax.full_like(x[:, :1], 0)], 1)

    def play(_: Any, state: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
        """One round: all pairs, and the next ones come together. The first vector stays where it is."""
        p, q, moved = state
        p, q, turned = _rotated(p, q, tolerance)
        if half > 1:
            p, q = (lax.concatenate([p[:, :1], q[:, :1], p[:, 1:-1]], 1), lax.concatenate([q[:, 1:], p[:, -1:]], 1))
        return p, q, lax.bitwise_or(moved, turned)

    def sweep(state: tuple[Any, Any, Any, Any]) -> tuple[Any, Any, Any, Any]:
        p, q, _, done = state
        return *lax.fori_loop(np.int32(0), np.int32(2 * half - 1), play, (p, q, np.bool_(False))), done + 1

    p, q, *_ = lax.while_loop(lambda state: lax.bitwise_and(state[2], state[3] < SWEEPS), sweep,
                              (x[:, :half], x[:, half:], np.bool_(True), np.int32(0)))
    return lax.concatenate([p, q], 1)


def _sorted(keys: Any, x: Any) -> tuple[Any, Any]:
    """Keys that ascend, and the rows of matrices in that order."""
    keys, order = lax.sort((keys, lax.broadcasted_iota(INT32, shape_of(keys), 1)), num_keys=1)
    return keys, take_along(x, lax.broadcast_in_dim(order, (*shape_of(order), shape_of(x)[2]), (0, 1)), 1)


def _scaled(x: Any) -> tuple[Any, Any]:
    """Matrices with elements of size 1 at most, and what they were divided by."""
    size = lax.reduce_max(lax.abs(x), (1, 2))
    size = lax.select(size > 0, size, lax.full_like(size, 1))
    return x / size[:, None, None], size


def _batched(function: Callable[..., list[Any]], x: Any) -> list[Any]:
    """A function of matrices in batches of one dimension, for any batch."""
    *batch, m, n = shape_of(x)
    outs = function(lax.reshape(x, (math.prod(batch), m, n)))
    return [lax.reshape(out, (*batch, *shape_of(out)[1:])) for out in outs]


def eigh(x: Any, *, lower: bool, **_: Any) -> list[Any]:
    """Eigenvectors and eigenvalues, which ascend, of Hermitian matrices `[..., n, n]` of which one triangle counts.

    The columns of a positive definite matrix that a unitary one makes orthogonal are its eigenvectors, scaled. So the
    matrix is shifted by a little more than its norm, which that of its fourth power bounds.
    """
    part = real_dtype(get_aval(x).dtype)
    if not math.prod(shape_of(x)):
        return [x, np.zeros(shape_of(x)[:-1], part)]

    def found(x: Any) -> list[Any]:
        n = shape_of(x)[2]
        strict = band(x, lower, -1 if lower else 1)
        eye = identity(n, part)
        x, size = _scaled(strict + adjoint(strict) + lax.real(x) * eye if is_complex(get_aval(x).dtype)
                          else strict + adjoint(strict) + x * eye)
        square = matmul(x, x)
        fourth = matmul(square, square)
        norm = lax.sqrt(lax.sqrt(lax.sqrt(lax.reduce_sum(lax.square(lax.abs(fourth)), (1, 2)))))
        shift = lax.select(norm > 0, norm, lax.full_like(norm, 1)) * 1.25
        v = _orthogonal(x + eye * shift[:, None, None])
        norms = _lengths(v)
        # without the zeros that made the number of vectors even
        _, v = _sorted(norms, v)
        v = v[:, shape_of(v)[1] - n:]
        v = v / _lengths(v)[..., None]
        # rows are vectors: those of the conjugate matrix are combined to conjugate eigenvectors
        w = lax.real(lax.reduce_sum(_conj(v) * matmul(v, x), (2,))) if is_complex(get_aval(x).dtype) else (
            lax.reduce_sum(v * matmul(v, x), (2,)))
        w, v = _sorted(w * size[:, None], v)
        return [adjoint(v), w]

    return _batched(found, x)


def svd(x: Any, *, full_matrices: bool, compute_uv: bool, **_: Any) -> list[Any]:
    """Singular values, which descend, of matrices `[..., m, n]`, and the vectors left and right, see `lax.linalg.svd`.

    With x = q·r the rows of r, made orthogonal, are the right vectors scaled; what r makes of these are the left ones,
    scaled. Both are made orthonormal by a factorisation, which is stable for vectors of falling lengths (Drmač and
    Veselić, 2008).
    """
    *batch, m, n = shape_of(x)
    if m < n:
        s, *uv = svd(adjoint(x), full_matrices=full_matrices, compute_uv=compute_uv)
        return [s, *(adjoint(v) for v in reversed(uv))]
    dtype = get_aval(x).dtype
    if not math.prod((*batch, m, n)):
        shapes = ((*batch, m, m if full_matrices else n), (*batch, n, n)) if compute_uv else ()
        return [np.zeros((*batch, n), real_dtype(dtype)), *(np.broadcast_to(np.eye(*s[-2:], dtype=dtype), s)
                                                          for s in shapes)]

    def found(x: Any) -> list[Any]:
        x, size = _scaled(x)
        q, r = qr(x, full_matrices=full_matrices and compute_uv)
        r = r[:, :n]
        y = _orthogonal(r)
        s, y = _sorted(-_lengths(y), y)
        s, y = -s[:, :n] * size[:, None], y[:, :n]
        if not compute_uv:
            return [s]
        right, _ = qr(adjoint(y), full_matrices=False)
        left, form = qr(matmul(r, right), full_matrices=False)
        turn = lax.reduce_sum(form * identity(n, dtype), (2,))
        length = lax.abs(turn)
        turn = lax.select(length > 0, turn / lax.select(length > 0, length, lax.full_like(length, 1)),
                          lax.full_like(turn, 1))
        u = matmul(q[:, :, :n], left * turn[:, None, :])
        return [s, lax.concatenate([u, q[:, :, n:]], 2), adjoint(right)]

    return _batched(found, x)
