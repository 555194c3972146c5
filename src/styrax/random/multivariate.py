"""Random vectors and matrices that need linear algebra."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.types.typing import ArrayLike, DTypeLike, ShardingLike
from styrax.lax.shaping.shapes import canonical_shape
from styrax.transforms.jit import jit_for_all_shapes as jit

from .continuous import normal
from .keys import check_prng_key
from .uniforms import checked_dtype, float_dtype, placed, shape_of


def multivariate_normal(key: ArrayLike, mean: ArrayLike, cov: ArrayLike, shape: Sequence[int] | None = None,
                        dtype: DTypeLike | None = None, method: str = "cholesky", *,
                        out_sharding: ShardingLike | None = None) -> Array:
    """Vectors of a multivariate normal distribution.

    Args:
      key: a random key.
      mean: mean vectors, of shape `(..., n)`.
      cov: covariance matrices, of shape `(..., n, n)`.
      shape: shape of the array of vectors; by default that of `mean` and `cov` broadcast together.
      dtype: the float dtype that is drawn; by default that of `mean` and `cov`.
      method: how `cov` is factorised: "svd", "eigh" or "cholesky" (fastest, for positive definite ones).
      out_sharding: sharding of the result.

    Returns:
      an array of shape `(*shape, n)`, of the dtype to which `dtype`, `mean` and `cov` promote.

    Raises:
      ValueError: for shapes that do not fit or another method.

    Example:
      >>> import styrax as jax
      >>> import styrax.numpy as jnp
      >>> jax.random.multivariate_normal(jax.random.key(0), jnp.zeros(2), jnp.eye(2), (3,)).shape
      (3, 2)
    """
    from styrax.numpy.promotion import promote_dtypes_inexact

    key, _ = check_prng_key("multivariate_normal", key)
    mean, cov = promote_dtypes_inexact(mean, cov)
    dtype = float_dtype("multivariate_normal", mean.dtype if dtype is None else dtype)
    if method not in ("svd", "eigh", "cholesky"):
        raise ValueError("method must be one of {'svd', 'eigh', 'cholesky'}")
    mean_shape, cov_shape = shape_of(mean), shape_of(cov)
    if not mean_shape:
        raise ValueError(f"multivariate_normal requires mean.ndim >= 1, got mean.ndim == {len(mean_shape)}")
    n = mean_shape[-1]
    if len(cov_shape) < 2:
        raise ValueError(f"multivariate_normal requires cov.ndim >= 2, got cov.ndim == {len(cov_shape)}")
    if cov_shape[-2:] != (n, n):
        raise ValueError(f"multivariate_normal requires cov.shape == (..., n, n) for n={n}, but got cov.shape == "
                         f"{cov_shape}.")
    batch = lax.broadcast_shapes(mean_shape[:-1], cov_shape[:-2])
    shape = batch if shape is None else canonical_shape(shape)
    if lax.broadcast_shapes(shape, batch) != shape:
        raise ValueError(f"multivariate_normal: the shape {shape} must agree with the leading dimensions {batch} of "
                         "mean and cov.")
    return placed(_multivariate_normal(key, mean, cov, shape, dtype, method), out_sharding)


@partial(jit, static_argnums=(3, 4, 5))
def _multivariate_normal(key: Any, mean: Any, cov: Any, shape: tuple[int, ...], dtype: Any, method: str) -> Array:
    from styrax.numpy import einsum
    from styrax.numpy.linalg import cholesky, eigh, svd

    if method == "svd":
        u, s, _ = svd(cov)
        factor = u * lax.sqrt(s[..., None, :])
    elif method == "eigh":
        w, v = eigh(cov)
        factor = v * lax.sqrt(w[..., None, :])
    else:
        factor = cholesky(cov)
    standard = normal(key, (*shape, mean.shape[-1]), dtype)
    mean = lax.broadcast_to_rank(mean, standard.ndim)
    return mean + einsum("...ij,...j->...i", factor, standard)


def orthogonal(key: ArrayLike, n: int, shape: Sequence[int] = (), dtype: DTypeLike | None = None, m: int | None = None,
               *, out_sharding: ShardingLike | None = None) -> Array:
    """Matrices spread evenly over those with orthonormal columns, or rows where there are fewer of them.

    Args:
      key: a random key.
      n: number of rows.
      shape: shape of the array of matrices.
      dtype: a float or complex dtype.
      m: number of columns, `n` by default.
      out_sharding: sharding of the result.

    Returns:
      an array of shape `(*shape, n, m)`.

    Raises:
      ValueError: for a negative dimension or another dtype.
    """
    key, _ = check_prng_key("orthogonal", key)
    shape = canonical_shape(shape)
    dtype = checked_dtype("orthogonal", dtype, float, np.inexact, "a float or complex")
    rows = operator.index(n)
    columns = rows if m is None else operator.index(m)
    if rows < 0 or columns < 0:
        raise ValueError(f"negative dimensions are not allowed, got {n} and {m}")
    return placed(_orthogonal(key, rows, shape, dtype, columns), out_sharding)


@partial(jit, static_argnums=(1, 2, 3, 4))
def _orthogonal(key: Any, n: int, shape: tuple[int, ...], dtype: Any, m: int) -> Array:
    from styrax.numpy import conj, diagonal
    from styrax.numpy.linalg import qr

    z = normal(key, (*shape, max(n, m), min(n, m)), dtype)
    q, r = qr(z)
    # The factorisation is unique, and the result evenly spread, once the diagonal of r is positive.
    d = diagonal(r, 0, -2, -1)
    x = q * lax.expand_dims(lax.sign(d), (len(shape),))
    if n < m:
        x = conj(lax.transpose(x, (*range(len(shape)), len(shape) + 1, len(shape))))
    return x
