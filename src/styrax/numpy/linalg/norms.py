"""Norms of vectors and matrices, and what they tell: condition numbers and ranks."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.programs.named import named
from styrax.core.tracing.source import api_boundary
from styrax.core.types import dtypes
from styrax.core.types.typing import ArrayLike, Axis
from styrax.transforms.jit import jit_for_all_shapes as jit

from .. import linalg, reductions, shaping
from ..binary import divide, greater, multiply
from ..broadcasting import choose_elements
from ..indexing import gather_elements
from ..promotion import axis_indices, convert, shape_of, unwrap
from .equations import inv
from .operands import matrices, real_dtype


def _modulus_squared(x: Any) -> Any:
    if dtypes.issubdtype(x.dtype, np.complexfloating):
        return lax.real(lax.mul(x, lax.conj(x)))
    return lax.mul(x, x)


def _norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """The norms of vectors or matrices.

    Args:
      x: an array; integers are taken as floats.
      ord: which one. Of vectors any number p for (Σ|x|ᵖ)^(1/p) (2 by default), ±∞ for the largest or smallest modulus,
        and 0 for how many are nonzero; of matrices "fro" (the default), "nuc" for the sum of the singular values,
        ±2 for the largest or smallest of these, and ±1 and ±∞ for that of the columns' and rows' absolute sums.
      axis: one axis for vectors, two for matrices. With None, all elements as one vector if `ord` is None, too;
        otherwise `x` is one vector or matrix.
      keepdims: whether reduced axes stay, with size 1.

    Returns:
      real numbers, of the shape of `x` without the reduced axes.

    Raises:
      ValueError: for norms that do not exist, and other numbers of axes.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.linalg.norm(jnp.array([3.0, 4.0]))
      Array(5., dtype=float32)
    """
    (x,) = matrices("norm", x)
    rank = x.ndim
    if axis is None:
        if ord is None:
            return lax.sqrt(reductions.sum(_modulus_squared(x), keepdims=keepdims))
        axes: tuple[int, ...] = tuple(range(rank))
    else:
        axes = axis_indices(tuple(axis) if isinstance(axis, (tuple, list)) else (operator.index(axis),), rank)
    if len(axes) == 1:
        return _vector_norm(x, ord, axes, keepdims)
    if len(axes) == 2:
        return _matrix_norm(x, ord, axes, keepdims)
    raise ValueError(f"Improper number of axes for norm: axis={axes}. Pass one axis to compute a vector-norm, or two "
                     f"axes to compute a matrix-norm.")


def _vector_norm(x: Any, ord: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    if ord is None or (not hasattr(ord, "aval") and not isinstance(ord, str) and ord == 2):
        return lax.sqrt(reductions.sum(_modulus_squared(x), axis=axes, keepdims=keepdims))
    if isinstance(ord, str):
        raise ValueError(f"Invalid order '{ord}' for vector norm.")
    if not hasattr(ord, "aval"):
        if ord == np.inf:
            return reductions.max(lax.abs(x), axis=axes, keepdims=keepdims, initial=0)
        if ord == -np.inf:
            return reductions.min(lax.abs(x), axis=axes, keepdims=keepdims, initial=np.inf)
        if ord == 0:
            return reductions.sum(
                lax.ne(x, convert(0, x.dtype)), axis=axes, dtype=real_dtype(x.dtype), keepdims=keepdims
            )
        if ord == 1:
            return reductions.sum(lax.abs(x), axis=axes, keepdims=keepdims)
    size = lax.abs(x)
    exponent = convert(unwrap(ord), size.dtype)
    total = reductions.sum(lax.pow(size, exponent), axis=axes, keepdims=keepdims)
    inverse = convert(1.0 / ord, size.dtype) if not hasattr(ord, "aval") else lax.div(convert(1, size.dtype), exponent)
    return lax.pow(total, inverse)


def _matrix_norm(x: Any, ord: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    row, column = axes

    def restored(out: Any) -> Any:
        return lax.expand_dims(out, tuple(sorted(axes))) if keepdims else out

    if ord is None or ord in ("f", "fro"):
        return lax.sqrt(reductions.sum(_modulus_squared(x), axis=axes, keepdims=keepdims))
    if ord in (1, -1, np.inf, -np.inf):
        first, second = (row, column) if ord in (1, -1) else (column, row)
        if not keepdims and second > first:
            second -= 1
        sums = reductions.sum(lax.abs(x), axis=first, keepdims=keepdims)
        if ord in (1, np.inf):
            return reductions.max(sums, axis=second, keepdims=keepdims, initial=0)
        return reductions.min(sums, axis=second, keepdims=keepdims, initial=np.inf)
    if ord in ("nuc", 2, -2):
        moved = shaping.moveaxis(x, axes, (-2, -1))
        s = linalg.svd(moved, compute_uv=False)
        if ord == "nuc":
            out = reductions.sum(s, axis=-1)
        elif ord == 2:
            out = reductions.max(s, axis=-1, initial=0)
        else:
            out = reductions.min(s, axis=-1, initial=np.inf)
        return restored(out)
    raise ValueError(f"Invalid order '{ord}' for matrix norm.")


_norm_jit = jit(named(_norm, "norm"), static_argnames=("ord", "axis", "keepdims"))
_norm_dynamic = jit(_norm, static_argnames=("axis", "keepdims"))


@api_boundary
def _norm_entry(x: ArrayLike, ord: int | float | str | None = None, axis: Axis = None, keepdims: bool = False) -> Array:
    axis = tuple(axis) if isinstance(axis, list) else axis
    if hasattr(ord, "aval"):
        return _norm_dynamic(x, ord, axis, keepdims)
    return _norm_jit(x, ord, axis, keepdims)


norm = named(_norm_entry, "norm", _norm.__doc__)


@api_boundary
def matrix_norm(x: ArrayLike, /, *, keepdims: bool = False, ord: int | float | str = "fro") -> Array:
    """The norms of matrices.

    Args:
      x: matrices of shape `[..., m, n]`; integers are taken as floats.
      keepdims: whether their axes stay, with size 1.
      ord: as for `norm`.

    Returns:
      real numbers, of the batch's shape.
    """
    return norm(x, ord=ord, keepdims=keepdims, axis=(-2, -1))


@api_boundary
def vector_norm(x: ArrayLike, /, *, axis: Axis = None, keepdims: bool = False, ord: int | float | str = 2) -> Array:
    """The norms of vectors.

    Args:
      x: an array; integers are taken as floats.
      axis: an axis, several whose elements make one vector, or None for all.
      keepdims: whether reduced axes stay, with size 1.
      ord: as for vectors in `norm`.

    Returns:
      real numbers, of the shape of `x` without the reduced axes.
    """
    (x,) = matrices("vector_norm", x)
    axes = axis_indices(tuple(axis) if isinstance(axis, (tuple, list)) else axis, x.ndim)
    if ord is None or (not hasattr(ord, "aval") and ord == 2):
        return lax.sqrt(reductions.sum(_modulus_squared(x), axis=axes, keepdims=keepdims))
    return _vector_norm(x, ord, axes, keepdims)


def _cond(x: ArrayLike, p: int | float | str | None = None) -> Array:
    """The condition numbers of matrices in a norm; NaN where one holds NaN.

    Args:
      x: matrices of shape `[..., m, n]`, square ones unless `p` is ±2; integers are taken as floats.
      p: 2 (also for None) for the largest singular value by the smallest, -2 for the reverse; in the other norms
        of `norm`, |x|·|x⁻¹|, ∞ where x is singular.

    Returns:
      real numbers, of the batch's shape.

    Raises:
      ValueError: for empty matrices, rank below 2, and others than square ones where they are needed.
    """
    (x,) = matrices("cond", x)
    if x.ndim < 2:
        raise ValueError(f"jnp.linalg.cond: input array must be at least 2D; got arr.shape={x.shape}")
    if 0 in x.shape[-2:]:
        raise ValueError(f"jnp.linalg.cond: input array must not be empty; got x.shape={x.shape}")
    if p is None or p == 2:
        s = linalg.svd(x, compute_uv=False)
        return divide(gather_elements(s, (..., 0)), gather_elements(s, (..., -1)))
    if p == -2:
        s = linalg.svd(x, compute_uv=False)
        return divide(gather_elements(s, (..., -1)), gather_elements(s, (..., 0)))
    if x.shape[-1] != x.shape[-2]:
        raise ValueError(f"jnp.linalg.cond: for p={p!r}, array must be square; got arr.shape={x.shape}")
    r = multiply(norm(x, ord=p, axis=(-2, -1)), norm(inv(x), ord=p, axis=(-2, -1)))
    # NaN in the result is infinity, unless it was in the matrix.
    unknown = lax.bitwise_and(lax.ne(r, r), lax.bitwise_not(reductions.any(lax.ne(x, x), axis=(-2, -1))))
    return choose_elements(unknown, np.inf, r)


cond = jit(named(_cond, "cond"), static_argnames=("p",))


def _matrix_rank(M: ArrayLike, rtol: ArrayLike | None = None, *, hermitian: bool = False,
                 tol: ArrayLike | None = None) -> Array:
    """How many singular values of each matrix exceed a bound.

    Args:
      M: matrices of shape `[..., m, n]`; of rank below 2, whether there is a nonzero element.
      rtol: the bound as a share of the largest one; by default the epsilon of the dtype times the larger of m and n.
      hermitian: whether the matrices are known to be Hermitian.
      tol: the bound itself, in place of `rtol`.

    Returns:
      integers, of the batch's shape.

    Raises:
      ValueError: for both `rtol` and `tol`.
    """
    if rtol is not None and tol is not None:
        raise ValueError("matrix_rank: only one of tol or rtol may be specified.")
    (m,) = matrices("matrix_rank", M)
    if m.ndim < 2:
        return convert(reductions.any(lax.ne(m, convert(0, m.dtype))), np.dtype(np.int32))
    s = linalg.svd(m, full_matrices=False, compute_uv=False, hermitian=hermitian)
    if tol is not None:
        threshold = convert(unwrap(tol), s.dtype)
        threshold = lax.broadcast_in_dim(threshold, s.shape[:-1], ()) if shape_of(threshold) == () else threshold
    else:
        top = reductions.max(s, axis=-1)
        if rtol is None:
            threshold = multiply(multiply(top, np.asarray(max(m.shape[-2:]), s.dtype)),
                                 np.asarray(dtypes.finfo(s.dtype).eps, s.dtype))
        else:
            threshold = multiply(top, rtol)
    return reductions.sum(greater(s, lax.expand_dims(threshold, (threshold.ndim,))), axis=-1)


matrix_rank = jit(named(_matrix_rank, "matrix_rank"), static_argnames=("hermitian",))
