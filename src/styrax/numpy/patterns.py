"""Matrices of a pattern: diagonals, triangles, powers."""

from __future__ import annotations

import math
import operator
from functools import partial
from typing import Any

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.programs.named import named
from styrax.core.tracing.source import api_boundary
from styrax.core.tracing.trace import Tracer, get_aval
from styrax.core.types.typing import ArrayLike, DeviceLike, Dim, DTypeLike
from styrax.lax.collectives.placing import spread_as
from styrax.transforms.jit import jit_for_all_shapes as jit

from .broadcasting import canonical_shape, choose_elements, spread
from .conversion import asarray, place
from .promotion import arrays, convert, default_int, is_array, shape_of, user_dtype


def _below(shape: tuple, offset: int) -> Any:
    """Booleans: column <= row + offset, in the last two dimensions."""
    kind = np.dtype(np.int32)
    rows = lax.add(lax.broadcasted_iota(kind, shape, len(shape) - 2), convert(offset, kind))
    return lax.ge(rows, lax.broadcasted_iota(kind, shape, len(shape) - 1))


def _diagonal_mask(shape: tuple, offset: int) -> Any:
    kind = np.dtype(np.int32)
    rows, columns = lax.broadcasted_iota(kind, shape, 0), lax.broadcasted_iota(kind, shape, 1)
    return lax.eq(lax.add(rows, convert(offset, kind)), columns)


@api_boundary
def eye(N: Dim, M: Dim | None = None, k: int | ArrayLike = 0, dtype: DTypeLike | None = None, *,
        device: DeviceLike | None = None) -> Array:
    """A matrix with ones on its k-th diagonal and zeros elsewhere.

    Args:
      N, M: the numbers of rows and columns; square by default.
      k: the diagonal: above the main one for positive numbers. May be traced.
      dtype: dtype of the result; by default the float dtype in force.
      device: where the result lives: a device or a sharding, by default the default device.

    Returns:
      an array of shape [N, M].

    Raises:
      ValueError: for negative sizes.
      TypeError: for sizes that are no integers.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.eye(2, 3, k=1)
      Array([[0., 1., 0.],
             [0., 0., 1.]], dtype=float32)
    """
    kind = user_dtype(float if dtype is None else dtype, "eye")
    rows, columns = canonical_shape((N, N if M is None else M))
    if rows < 0 or columns < 0:
        raise ValueError(f"negative dimensions are not allowed, got {rows} and {columns}")
    if isinstance(k, Tracer) or is_array(k):
        index = np.dtype(np.int32)
        shape = (rows, columns)
        at = lax.add(lax.broadcasted_iota(index, shape, 0), convert(k, index))
        return place(convert(lax.eq(at, lax.broadcasted_iota(index, shape, 1)), kind), device)
    return place(convert(_diagonal_mask((rows, columns), operator.index(k)), kind), device)  # type: ignore[arg-type]


def identity(n: Dim, dtype: DTypeLike | None = None) -> Array:
    """The n × n identity matrix.

    Args:
      n: the number of rows.
      dtype: dtype of the result; by default the float dtype in force.

    Returns:
      an array of shape [n, n].
    """
    return eye(n, dtype=dtype)


def tri(N: int, M: int | None = None, k: int = 0, dtype: DTypeLike | None = None) -> Array:
    """A matrix with ones on and below its k-th diagonal, zeros above.

    Args:
      N, M: the numbers of rows and columns; square by default.
      k: the diagonal: above the main one for positive numbers.
      dtype: dtype of the result; float32 by default.

    Returns:
      an array of shape [N, M].

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.tri(2, 3)
      Array([[1., 0., 0.],
             [1., 1., 0.]], dtype=float32)
    """
    kind = user_dtype(np.dtype(np.float32) if dtype is None else dtype, "tri")
    return convert(_below((N, N if M is None else M), k), kind)


def _mask_of(m: Any, mask: Array) -> Array:
    """A mask of matrices, for each of them, spread as they are."""
    return spread_as(spread(mask, m.shape), get_aval(m).given_sharding)


def _tril(m: ArrayLike, k: int = 0) -> Array:
    """The lower triangles of matrices: zeros above the k-th diagonal.

    Args:
      m: matrices, shape [..., M, N].
      k: the last diagonal that stays: above the main one for positive numbers.

    Returns:
      an array of the shape and dtype of `m`.

    Raises:
      ValueError: below rank 2.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.tril(jnp.ones((2, 2)))
      Array([[1., 0.],
             [1., 1.]], dtype=float32)
    """
    (m,) = arrays("tril", m)
    if len(m.shape) < 2:
        raise ValueError("Argument to jax.numpy.tril must be at least 2D")
    mask = _below(m.shape[-2:], k)
    return lax.select(_mask_of(m, mask), m, lax.full_like(m, 0))


def _triu(m: ArrayLike, k: int = 0) -> Array:
    """The upper triangles of matrices: zeros below the k-th diagonal.

    Args:
      m: matrices, shape [..., M, N].
      k: the first diagonal that stays: above the main one for positive numbers.

    Returns:
      an array of the shape and dtype of `m`.

    Raises:
      ValueError: below rank 2.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.triu(jnp.ones((2, 2)))
      Array([[1., 1.],
             [0., 1.]], dtype=float32)
    """
    (m,) = arrays("triu", m)
    if len(m.shape) < 2:
        raise ValueError("Argument to jax.numpy.triu must be at least 2D")
    mask = _below(m.shape[-2:], k - 1)
    return lax.select(_mask_of(m, mask), lax.full_like(m, 0), m)


tril = jit(named(_tril, "tril"), static_argnames=("k",))
triu = jit(named(_triu, "triu"), static_argnames=("k",))


@partial(jit, static_argnames=("k",))
def _diag(v: Any, k: int) -> Any:
    if len(v.shape) == 1:
        zero = lax.full_like(v, 0, shape=())
        n = v.shape[0] + abs(k)
        v = lax.pad(v, zero, ((max(0, -k), max(0, k), 0),))
        return choose_elements(_diagonal_mask((n, n), k), lax.expand_dims(v, (1,)), zero)
    from .shaping import diagonal

    return diagonal(convert(v, v.dtype), offset=k)


def diag(v: ArrayLike, k: int = 0) -> Array:
    """The k-th diagonal of a matrix, or the matrix with a vector on its k-th diagonal.

    Args:
      v: a vector of size n, or a matrix.
      k: the diagonal: above the main one for positive numbers.

    Returns:
      for a vector an array of shape [n + |k|, n + |k|], for a matrix a vector, empty where there is no such diagonal.

    Raises:
      ValueError: for other ranks.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.diag(jnp.array([1, 2]))
      Array([[1, 0],
             [0, 2]], dtype=int32)
      >>> jnp.diag(jnp.array([[1, 2], [3, 4]]))
      Array([1, 4], dtype=int32)
    """
    (v,) = arrays("diag", v)
    if len(shape_of(v)) not in (1, 2):
        raise ValueError("diag input must be 1d or 2d")
    return _diag(asarray(v), operator.index(k))


def diagflat(v: ArrayLike, k: int = 0) -> Array:
    """The matrix with the elements of `v`, in row order, on its k-th diagonal and zeros elsewhere.

    Args:
      v: an array of any shape with n elements.
      k: the diagonal: above the main one for positive numbers.

    Returns:
      an array of shape [n + |k|, n + |k|] and of the dtype of `v`.
    """
    (v,) = arrays("diagflat", v)
    v = lax.reshape(asarray(v), (math.prod(shape_of(v)),))
    size = v.shape[0]  # type: ignore[union-attr]
    length = size + abs(k)
    out = lax.full((length * length,), 0, v.dtype)  # type: ignore[union-attr]
    i = lax.iota(default_int(), size)
    row, column = (i, lax.add(i, convert(k, i.dtype))) if k >= 0 else (lax.sub(i, convert(k, i.dtype)), i)
    at = lax.add(column, lax.mul(row, convert(length, i.dtype)))
    from .updates import scatter

    return lax.reshape(scatter(out, at, v, "set"), (length, length))


def _vander(x: ArrayLike, N: int | None = None, increasing: bool = False) -> Array:
    """The Vandermonde matrix of a vector: its powers as columns.

    Args:
      x: a vector of size n.
      N: how many powers, from 0; n by default.
      increasing: whether the powers rise from left to right.

    Returns:
      an array of shape [n, N] and of the dtype of `x`.

    Raises:
      ValueError: for other ranks, and for negative `N`.
    """
    (x,) = arrays("vander", x)
    if len(x.shape) != 1:
        raise ValueError("x must be a one-dimensional array")
    count = x.shape[0] if N is None else operator.index(N)
    if count < 0:
        raise ValueError("N must be nonnegative")
    powers = lax.iota(x.dtype, count)
    if not increasing:
        powers = lax.sub(convert(count - 1, x.dtype), powers)
    from .binary import power

    return power(lax.expand_dims(x, (1,)), lax.expand_dims(powers, (0,)))


vander = jit(named(_vander, "vander"), static_argnames=("N", "increasing"))
