"""The polar factors by Halley's iteration with dynamical weights (QDWH)."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from styrax.core.arrays.array import Array
from styrax.core.hooks import lax
from styrax.core.types import dtypes
from styrax.core.types.typing import ArrayLike
from styrax.transforms.jit import jit

from ..casting import as_array
from .cholesky_factors import cholesky
from .qr_factors import qr
from .triangular import triangular_solve


@functools.partial(jit, static_argnames=("is_hermitian", "max_iterations", "eps", "dynamic_shape"))
def qdwh(x: ArrayLike, *, is_hermitian: bool = False, max_iterations: int | None = None, eps: float | None = None,
         dynamic_shape: tuple[int, int] | None = None) -> tuple[Array, Array, Array, Array]:
    """The polar decomposition x = u·h of a matrix, by dynamically weighted Halley iterations.

    Nakatsukasa, Bai and Gygi: Optimizing Halley's iteration for computing the matrix polar decomposition (2010).

    Args:
      x: a matrix of full rank, shape [m, n] with m ≥ n, of an inexact dtype.
      is_hermitian: ignored.
      max_iterations: how many iterations there are at most; by default as many as any matrix needs.
      eps: two successive iterates that differ, relatively, by less than (4·eps)^(1/3) are the end; by default the
        dtype's.
      dynamic_shape: the shape of the upper left part of `x` that counts; the rest is taken to be zero.

    Returns:
      `(u, h, num_iters, is_converged)`: u of shape [m, n] with orthonormal columns, h of shape [n, n] Hermitian with
      no negative eigenvalue.

    Raises:
      ValueError: fewer rows than columns, or a dtype that is not inexact.
    """
    a: Any = as_array(x)
    m, n = a.shape
    if m < n:
        raise ValueError("The input matrix of shape M x N must have M >= N.")
    if not dtypes.issubdtype(a.dtype, np.inexact):
        raise ValueError(f"data type {a.dtype} not inexact")
    info = dtypes.finfo(a.dtype)
    limit = 10 if max_iterations is None else max_iterations
    tolerance = (4 * float(info.eps if eps is None else eps)) ** (1 / 3)
    if dynamic_shape is not None:
        rows, columns = dynamic_shape
        inside = lax.bitwise_and(lax.lt(lax.broadcasted_iota(np.int32, a.shape, 0), np.int32(rows)),
                                 lax.lt(lax.broadcasted_iota(np.int32, a.shape, 1), np.int32(columns)))
        a = lax.select(inside, a, lax.full_like(a, 0))
    u, count, converged = _unitary(a, limit, tolerance, float(info.eps), float(info.tiny))
    # one step of Newton and Schulz takes the rounding of the iteration away
    u = lax.sub(lax.mul(u, lax.full_like(u, 1.5)), lax.mul(lax.dot(u, lax.dot(_adjoint(u), u)), lax.full_like(u, 0.5)))
    h = lax.dot(_adjoint(u), a)
    h = lax.mul(lax.add(h, _adjoint(h)), lax.full_like(h, 0.5))
    return u, h, count, converged


def _adjoint(a: Any) -> Any:
    return lax.transpose(lax.conj(a) if dtypes.issubdtype(a.dtype, np.complexfloating) else a, (1, 0))


def _unitary(a: Any, limit: int, tolerance: float, eps: float, tiny: float) -> tuple[Any, Any, Any]:
    """The unitary factor, the number of iterations, and whether they were enough."""
    m, n = a.shape
    size = lax.abs(a)
    # no singular value is larger than the geometric mean of the two norms
    ones, infinity = (lax.reduce_max(lax.reduce_sum(size, (axis,)), (0,)) if a.size else size.dtype.type(0)
                      for axis in (0, 1))
    scale = lax.sqrt(lax.mul(ones, infinity))
    scale = lax.select(lax.gt(scale, scale.dtype.type(tiny)), scale, lax.full_like(scale, 1))
    real = scale.dtype.type
    start = lax.div(a, lax.convert_element_type(scale, a.dtype))

    def going(state: tuple) -> Any:
        _, _, moving, i = state
        return lax.bitwise_and(moving, lax.lt(i, limit))

    def step(state: tuple) -> tuple:
        u, low, _, i = state
        # the weights that raise the least singular value, at least `low`, the most (equations 24 of the paper)
        square = lax.mul(low, low)
        d = lax.cbrt(lax.div(lax.mul(real(4), lax.sub(real(1), square)), lax.mul(square, square)))
        root = lax.sqrt(lax.add(real(1), d))
        inner = lax.sub(real(8), lax.mul(real(4), d))
        inner = lax.add(inner, lax.div(lax.mul(real(8), lax.sub(real(2), square)), lax.mul(square, root)))
        wa = lax.add(root, lax.mul(real(0.5), lax.sqrt(lax.max(inner, real(0)))))
        wb = lax.div(lax.mul(lax.sub(wa, real(1)), lax.sub(wa, real(1))), real(4))
        wc = lax.sub(lax.add(wa, wb), real(1))
        new = _weighted(u, wa, wb, wc)
        low = lax.div(lax.mul(low, lax.add(wa, lax.mul(wb, square))), lax.add(real(1), lax.mul(wc, square)))
        low = lax.min(low, real(1))
        moving = lax.gt(_norm(lax.sub(new, u)), lax.mul(_norm(new), real(tolerance)))
        settled = lax.gt(lax.abs(lax.sub(low, real(1))), real(10 * eps))
        return new, low, lax.bitwise_or(moving, settled), lax.add(i, 1)

    state = (start, lax.full_like(scale, max(eps, tiny)), True, 0)
    u, _, moving, count = lax.while_loop(going, step, state)
    return u, count, lax.bitwise_not(moving)


def _norm(a: Any) -> Any:
    size = lax.abs(a)
    return lax.sqrt(lax.reduce_sum(lax.mul(size, size), (0, 1)))


def _weighted(u: Any, wa: Any, wb: Any, wc: Any) -> Any:
    """u·(wa + wb·uᴴu)·(1 + wc·uᴴu)⁻¹: by QR where u may be nearly singular, by Cholesky where it cannot."""
    m, n = u.shape
    cast = lambda w: lax.convert_element_type(w, u.dtype)
    ratio = lax.div(wb, wc)
    first = lax.mul(u, cast(ratio))
    weight = lax.sub(wa, ratio)
    identity = lax.convert_element_type(lax.eq(lax.broadcasted_iota(np.int32, (n, n), 0),
                                               lax.broadcasted_iota(np.int32, (n, n), 1)), u.dtype)

    def by_qr(u: Any) -> Any:
        q, _ = qr(lax.concatenate([lax.mul(u, cast(lax.sqrt(wc))), identity], 0), full_matrices=False)
        product = lax.dot(lax.slice(q, (0, 0), (m, n)), _adjoint(lax.slice(q, (m, 0), (m + n, n))))
        return lax.add(first, lax.mul(product, cast(lax.div(weight, lax.sqrt(wc)))))

    def by_cholesky(u: Any) -> Any:
        factor = cholesky(lax.add(identity, lax.mul(lax.dot(_adjoint(u), u), cast(wc))))
        half = triangular_solve(factor, _adjoint(u), left_side=True, lower=True)
        solved = triangular_solve(factor, half, left_side=True, lower=True, transpose_a=True, conjugate_a=True)
        return lax.add(first, lax.mul(_adjoint(solved), cast(weight)))

    return lax.cond(lax.gt(wc, wc.dtype.type(100)), by_qr, by_cholesky, u)


__all__ = ["qdwh"]
