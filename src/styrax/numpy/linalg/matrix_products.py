"""Products, powers and traces of matrices, as the array API spells them."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.programs.named import named
from styrax.core.tracing.source import api_boundary
from styrax.core.types.typing import ArrayLike, DTypeLike, ShardingLike
from styrax.transforms.jit import jit_for_all_shapes as jit

from .. import dot_products, shaping
from ..broadcasting import spread
from ..conversion import asarray
from ..patterns import eye
from ..promotion import arrays, check_arraylike, shape_of, unwrap, user_dtype
from .equations import inv


def _matrix_power(a: ArrayLike, n: int) -> Array:
    """The n-th powers of square matrices, by repeated squaring; of the inverses for negative n.

    Args:
      a: matrices of shape `[..., m, m]`; integers are taken as floats for negative n.
      n: an integer.

    Returns:
      matrices of the shape of `a`.

    Raises:
      TypeError: for other shapes and other n.
    """
    (a,) = arrays("jnp.linalg.matrix_power", a)
    a = asarray(a)
    if a.ndim < 2:
        raise TypeError(f"{a.ndim}-dimensional array given. Array must be at least two-dimensional")
    if a.shape[-2] != a.shape[-1]:
        raise TypeError("Last 2 dimensions of the array must be square")
    try:
        n = operator.index(n)
    except TypeError as error:
        raise TypeError(f"exponent must be an integer, got {n}") from error
    if n == 0:
        return spread(eye(a.shape[-1], dtype=a.dtype), a.shape)
    if n < 0:
        a, n = inv(a), -n
    if n == 1:
        return a
    if n == 2:
        return dot_products.matmul(a, a)
    if n == 3:
        return dot_products.matmul(dot_products.matmul(a, a), a)
    square: Any = None
    out: Any = None
    while n > 0:
        square = a if square is None else dot_products.matmul(square, square)
        n, bit = divmod(n, 2)
        if bit:
            out = square if out is None else dot_products.matmul(out, square)
    return out


matrix_power = jit(named(_matrix_power, "matrix_power"), static_argnames=("n",))


def multi_dot(arrays: Sequence[ArrayLike], *, precision: lax.PrecisionLike = None) -> Array:
    """The product of matrices in the order that takes least work.

    Args:
      arrays: two or more matrices; the first and the last one may be vectors, a row and a column.
      precision: how exactly an accelerator computes.

    Returns:
      a matrix, without the axes that vectors lack.

    Raises:
      ValueError: for fewer arrays, other ranks, and sizes that do not match.
    """
    check_arraylike("jnp.linalg.multi_dot", *arrays)
    members = [asarray(unwrap(x)) for x in arrays]
    if len(members) < 2:
        raise ValueError(f"multi_dot requires at least two arrays; got len(arrays)={len(members)}")
    if any(x.ndim not in (1, 2) for x in (members[0], members[-1])) or any(x.ndim != 2 for x in members[1:-1]):
        raise ValueError("multi_dot: input arrays must all be two-dimensional, except for the first and last array "
                         f"which may be 1 or 2 dimensional. Got shapes={[x.shape for x in members]}")
    if any(a.shape[-1] != b.shape[0] for a, b in zip(members[:-1], members[1:])):
        raise ValueError("multi_dot: last dimension of each array must match first dimension of following array. Got "
                         f"array shapes {[x.shape for x in members]}")
    from ..einsums import einsum

    operands: list[Any] = []
    for i, x in enumerate(members):
        operands += [x, [i, i + 1] if x.ndim == 2 else [i + 1] if i == 0 else [i]]
    n = len(members)
    output = [*([0] if members[0].ndim == 2 else []), *([n] if members[-1].ndim == 2 else [])]
    return einsum(*operands, output, optimize="optimal", precision=precision)


def cross(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1) -> Array:
    """The cross product of vectors with 3 components.

    Args:
      x1, x2: arrays that broadcast, of size 3 along `axis`.
      axis: the axis of the components, here and in the result.

    Returns:
      an array of the broadcast shape and common dtype.

    Raises:
      ValueError: for other sizes along `axis`.
    """
    x1, x2 = arrays("jnp.linalg.outer", x1, x2)
    if shape_of(x1)[axis] != 3 or shape_of(x2)[axis] != 3:
        raise ValueError(f"Both input arrays must be (arrays of) 3-dimensional vectors, but they have "
                         f"x1.shape[axis]={shape_of(x1)[axis]} and x2.shape[axis]={shape_of(x2)[axis]}")
    return dot_products.cross(x1, x2, axis=axis)


def outer(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """All products of an element of one vector and one of another.

    Args:
      x1, x2: vectors; they are not conjugated.

    Returns:
      a matrix of shape `[x1.size, x2.size]`.

    Raises:
      ValueError: for other ranks.
    """
    x1, x2 = arrays("jnp.linalg.outer", x1, x2)
    if len(shape_of(x1)) != 1 or len(shape_of(x2)) != 1:
        raise ValueError(f"Input arrays must be one-dimensional, but they are x1.ndim={len(shape_of(x1))} "
                         f"x2.ndim={len(shape_of(x2))}")
    return dot_products.outer(x1, x2)


@api_boundary
def matmul(x1: ArrayLike, x2: ArrayLike, /, *, precision: lax.PrecisionLike = None,
           preferred_element_type: DTypeLike | None = None) -> Array:
    """The product of matrices, or of vectors where an argument has one axis; batch axes are broadcast.

    Args:
      x1, x2: arrays of shape `[..., m, k]` or `[k]`, and `[..., k, n]` or `[k]`.
      precision: how exactly an accelerator computes.
      preferred_element_type: dtype of the sums and the result.

    Returns:
      an array of shape `[..., m, n]`, without the axes that vectors lack.
    """
    return dot_products.matmul(x1, x2, precision=precision, preferred_element_type=preferred_element_type)


def vecdot(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1, precision: lax.PrecisionLike = None,
           preferred_element_type: DTypeLike | None = None) -> Array:
    """The products of vectors Σ conj(x1)·x2 along an axis.

    Args:
      x1, x2: arrays of one size along `axis`; the other axes are broadcast.
      axis: the axis of the components.
      precision: how exactly an accelerator computes.
      preferred_element_type: dtype of the sums and the result.

    Returns:
      an array of the broadcast shape without `axis`.
    """
    return dot_products.vecdot(x1, x2, axis=axis, precision=precision, preferred_element_type=preferred_element_type)


def tensordot(x1: ArrayLike, x2: ArrayLike, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2,
              precision: lax.PrecisionLike = None, preferred_element_type: DTypeLike | None = None,
              out_sharding: ShardingLike | None = None) -> Array:
    """The product of two arrays, summed over several axes of each.

    Args:
      x1, x2: arrays.
      axes: how many axes are summed over, the last of `x1` and the first of `x2`; or those of each, as a pair.
      precision: how exactly an accelerator computes.
      preferred_element_type: dtype of the sums and the result.
      out_sharding: sharding of the result.

    Returns:
      an array of the axes of `x1` that are left, then those of `x2`.
    """
    return dot_products.tensordot(x1, x2, axes=axes, precision=precision, preferred_element_type=preferred_element_type,
                                  out_sharding=out_sharding)


def matrix_transpose(x: ArrayLike, /) -> Array:
    """The matrices transposed; they are not conjugated.

    Args:
      x: matrices of shape `[..., m, n]`.

    Returns:
      matrices of shape `[..., n, m]`.

    Raises:
      ValueError: below rank 2.
    """
    return shaping.matrix_transpose(x)


def diagonal(x: ArrayLike, /, *, offset: int = 0) -> Array:
    """The diagonals of matrices.

    Args:
      x: matrices of shape `[..., m, n]`.
      offset: how many places the diagonal lies above the main one, or below it if negative.

    Returns:
      an array of the diagonals along its last axis; that is empty for offsets beyond the matrices.

    Raises:
      ValueError: below rank 2.
    """
    check_arraylike("jnp.linalg.diagonal", x)
    return shaping.diagonal(x, offset=offset, axis1=-2, axis2=-1)


def trace(x: ArrayLike, /, *, offset: int = 0, dtype: DTypeLike | None = None) -> Array:
    """The sums of the diagonals of matrices.

    Args:
      x: matrices of shape `[..., m, n]`.
      offset: how many places the diagonal lies above the main one, or below it if negative.
      dtype: dtype of the sum; by default that of `x`, with booleans and small integers widened as in `sum`.

    Returns:
      an array of the batch's shape.

    Raises:
      ValueError: below rank 2.
    """
    check_arraylike("jnp.linalg.trace", x)
    return shaping.trace(
        x, offset=offset, axis1=-2, axis2=-1, dtype=None if dtype is None else user_dtype(dtype, "trace")
    )
