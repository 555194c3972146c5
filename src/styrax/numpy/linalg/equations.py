"""Systems of linear equations: solutions, inverses, least squares, pseudo-inverses."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.types import dtypes
from styrax.core.types.typing import ArrayLike
from styrax.lax import linalg as lax_linalg
from styrax.transforms.jit import jit_for_all_shapes as jit

from .. import dot_products, linalg, reductions
from ..binary import divide, greater, multiply, subtract
from ..broadcasting import choose_elements, sharding_of, spread
from ..complex_parts import conj
from ..indexing import gather_elements
from ..patterns import eye
from ..promotion import axis_indices, check_arraylike, convert, shape_of, unwrap
from .operands import HIGHEST, adjoint, matrices, permuted_rows, real_dtype, transposed


def lu_solve_by_permutation(lu: Any, permutation: Any, b: Any, trans: int) -> Any:
    """Solves with matrices given by their LU factors and row permutations, which are broadcast to the batch of b; b has
    the columns of right sides.

    `trans` 0 solves a·x = b, 1 aᵀ·x = b, 2 aᴴ·x = b.
    """
    batch = b.shape[:-2]
    lu = spread(lu, (*batch, *lu.shape[-2:]))
    if trans == 0:
        x = permuted_rows(b, spread(permutation, (*batch, permutation.shape[-1])))
        x = lax_linalg.triangular_solve(lu, x, left_side=True, lower=True, unit_diagonal=True)
        return lax_linalg.triangular_solve(lu, x, left_side=True, lower=False)
    conjugate = trans == 2
    x = lax_linalg.triangular_solve(lu, b, left_side=True, lower=False, transpose_a=True, conjugate_a=conjugate)
    x = lax_linalg.triangular_solve(lu, x, left_side=True, lower=True, unit_diagonal=True, transpose_a=True,
                                    conjugate_a=conjugate)
    iota = lax.broadcasted_iota(permutation.dtype, permutation.shape, permutation.ndim - 1,
                                out_sharding=sharding_of(permutation))
    inverse = lax.sort((permutation, iota), dimension=permutation.ndim - 1, num_keys=1)[1]
    return permuted_rows(x, spread(inverse, (*batch, inverse.shape[-1])))


@jit
def solve(a: ArrayLike, b: ArrayLike) -> Array:
    """x with a·x = b, for square matrices a, by LU factors. It is inf or NaN where a matrix is singular.

    Args:
      a: matrices of shape `[..., n, n]`; integers are taken as floats.
      b: one vector `[n]`, or matrices `[..., n, k]` of right-hand sides. Batch axes are broadcast.

    Returns:
      an array of the shape of `b`, with the batch axes of both.

    Raises:
      ValueError: for shapes that do not fit.

    Example:
      >>> import styrax.numpy as jnp
      >>> a = jnp.array([[2.0, 0.0], [0.0, 4.0]])
      >>> jnp.linalg.solve(a, jnp.array([2.0, 2.0]))
      Array([1. , 0.5], dtype=float32)
    """
    a, b = matrices("solve", a, b)
    if a.ndim < 2:
        raise ValueError(f"left hand array must be at least two dimensional; got a.shape={a.shape}")
    if a.shape[-1] != a.shape[-2]:
        raise ValueError(f"The arguments to solve must have shapes a=[..., m, m] and b=[..., m, k] or b=[..., m]; got "
                         f"a={a.shape} and b={b.shape}")
    if b.ndim < 1:
        raise ValueError(f"right hand array must be at least one dimensional; got b.shape={b.shape}")
    vector = b.ndim == 1
    right = lax.expand_dims(b, (1,)) if vector else b
    if right.shape[-2] != a.shape[-1]:
        if a.ndim == b.ndim + 1 and a.shape[-1] == b.shape[-1]:
            raise ValueError(f"Invalid shapes for solve: {a.shape}, {b.shape}. Prior to JAX v0.5.0, this would have "
                             "been treated as a batched 1-dimensional solve. To recover this behavior, use "
                             "solve(a, b[..., None]).squeeze(-1).")
        raise ValueError(f"The arguments to solve must have shapes a=[..., m, m] and b=[..., m, k] or b=[..., m]; got "
                         f"a={a.shape} and b={b.shape}")
    batch = lax.broadcast_shapes(a.shape[:-2], right.shape[:-2])
    lu, _, permutation = lax_linalg.lu(lax.stop_gradient(a))  # each matrix once, also one for many right-hand sides
    right = spread(right, (*batch, *right.shape[-2:]))

    def product(x: Any) -> Any:
        return dot_products.matmul(a, x, precision=HIGHEST)

    def transposed_product_solve(_: Any, x: Any) -> Any:
        return lu_solve_by_permutation(lu, permutation, x, 1)

    out = lax.custom_linear_solve(product, right, lambda _, x: lu_solve_by_permutation(lu, permutation, x, 0),
                                  transposed_product_solve)
    return lax.squeeze(out, (out.ndim - 1,)) if vector else out


@jit
def inv(a: ArrayLike) -> Array:
    """The inverses of square matrices; inf or NaN where one is singular.

    Args:
      a: matrices of shape `[..., n, n]`; integers are taken as floats.

    Returns:
      matrices of the shape of `a`.

    Raises:
      ValueError: for matrices that are not square.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.linalg.inv(jnp.array([[2.0, 0.0], [0.0, 4.0]]))
      Array([[0.5 , 0.  ],
             [0.  , 0.25]], dtype=float32)
    """
    (a,) = matrices("inv", a)
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise ValueError(f"Argument to inv must have shape [..., n, n], got {a.shape}.")
    return solve(a, spread(eye(a.shape[-1], dtype=a.dtype), a.shape))


@partial(jit, static_argnames=("numpy_resid",))
def _lstsq(a: Any, b: Any, rcond: Any, *, numpy_resid: bool = False) -> tuple[Any, Any, Any, Any]:
    a, b = matrices("lstsq", a, b)
    if a.shape[0] != b.shape[0]:
        raise ValueError("Leading dimensions of input arrays must match")
    vector = b.ndim == 1
    if vector:
        b = lax.expand_dims(b, (1,))
    if a.ndim != 2:
        raise TypeError(f"{a.ndim}-dimensional array given. Array must be two-dimensional")
    if b.ndim != 2:
        raise TypeError(f"{b.ndim}-dimensional array given. Array must be one or two-dimensional")
    m, n = a.shape
    kind = a.dtype
    real = real_dtype(kind)
    if a.size == 0:
        s = lax.full((0,), 0, real)
        rank: Any = lax.full((), 0, np.dtype(np.int32))
        x = lax.full((n, *b.shape[1:]), 0, kind)
    else:
        if rcond is None:
            rcond = convert(float(dtypes.finfo(real).eps) * max(n, m), real)
        else:
            rcond = choose_elements(lax.lt(*_same(rcond, 0)), convert(float(dtypes.finfo(real).eps), real),
                                    convert(rcond, real))
        u, s, vt = linalg.svd(a, full_matrices=False)
        positive = lax.gt(s, convert(0, real))
        large = lax.ge(s, lax.broadcast_in_dim(multiply(rcond, gather_elements(s, 0)), s.shape, ()))
        mask = lax.bitwise_and(positive, large)
        rank = reductions.sum(mask)
        safe = choose_elements(mask, s, 1)
        inverse = choose_elements(mask, divide(1.0, safe), 0)
        uty = dot_products.matmul(adjoint(u), b, precision=HIGHEST)
        scaled = multiply(convert(lax.expand_dims(inverse, (1,)), kind), uty)
        x = dot_products.matmul(adjoint(vt), scaled, precision=HIGHEST)
    if numpy_resid and (m <= n or n == 0 or a.size == 0):
        residuals = lax.full((0,), 0, real)
    elif a.size == 0:
        residuals = reductions.sum(multiply(lax.abs(b), lax.abs(b)), axis=0)
    else:
        difference = subtract(b, dot_products.matmul(a, x, precision=HIGHEST))
        square = lax.abs(difference)
        residuals = reductions.sum(multiply(square, square), axis=0)
    if vector:
        x = lax.reshape(x, (n,))
    return x, residuals, rank, s


def _same(x: Any, y: Any) -> tuple[Any, Any]:
    from ..promotion import promote_dtypes

    x, y = promote_dtypes(x, y)
    return x, y


def lstsq(a: ArrayLike, b: ArrayLike, rcond: float | None = None, *,
          numpy_resid: bool = False) -> tuple[Array, Array, Array, Array]:
    """x that makes |a·x - b| least, and among these |x|, by singular values.

    Args:
      a: a matrix of shape `[m, n]`; integers are taken as floats.
      b: a vector `[m]` or a matrix `[m, k]`.
      rcond: singular values below this share of the largest count as 0; by default the epsilon of the dtype times
        the larger of m and n.
      numpy_resid: whether the residuals are empty where NumPy's are; not under `jit`, since that depends on the rank.

    Returns:
      `(x, residuals, rank, s)`: the solution `[n]` or `[n, k]`, the squares of |a·x - b| for each column (one for a
      vector), the rank of `a` (a scalar integer), and its singular values, falling.

    Raises:
      ValueError: for numbers of rows that differ.
      TypeError: for other ranks.
    """
    check_arraylike("jnp.linalg.lstsq", a, b)
    x, residuals, rank, s = _lstsq(unwrap(a), unwrap(b), rcond, numpy_resid=False)
    if numpy_resid and (int(rank) < shape_of(a)[-1] or shape_of(a)[0] <= shape_of(a)[1]):
        residuals = lax.full((0,), 0, residuals.dtype)
    return x, residuals, rank, s


@partial(jit, static_argnames=("hermitian",))
def _pinv(a: Any, rtol: Any = None, hermitian: bool = False) -> Any:
    a = conj(a)
    real = real_dtype(a.dtype)
    if rtol is None:
        rtol = lax.mul(convert(10 * max(a.shape[-2:]), real), convert(float(dtypes.finfo(real).eps), real))
    rtol = convert(unwrap(rtol), real)
    if 0 in a.shape[-2:]:
        return transposed(lax.full_like(a, 0)) if a.shape[-1] != a.shape[-2] else lax.full_like(a, 0)
    u, s, vh = linalg.svd(a, full_matrices=False, hermitian=hermitian)
    top = gather_elements(s, (..., slice(0, 1)))
    rank = len(shape_of(rtol))
    missing = max(top.ndim - 1 - rank, 0)
    shares = lax.expand_dims(rtol, (*range(missing), missing + rank))
    cutoff = multiply(shares, top)
    s = choose_elements(greater(s, cutoff), s, np.inf)
    right = divide(transposed(u), convert(lax.expand_dims(s, (s.ndim,)), u.dtype))
    return dot_products.matmul(transposed(vh), right, precision=HIGHEST)


def pinv(a: ArrayLike, rtol: ArrayLike | None = None, hermitian: bool = False, *,
         rcond: ArrayLike | None = None) -> Array:
    """The pseudo-inverses of matrices, by their singular values.

    Args:
      a: matrices of shape `[..., m, n]`; integers are taken as floats.
      rtol: singular values up to this share of the largest count as 0; by default 10 times the epsilon of the dtype
        times the larger of m and n. Of an array of a shape that broadcasts with `[...]` each matrix has its own.
      hermitian: whether `a` is known to be Hermitian.
      rcond: another name for `rtol`.

    Returns:
      matrices of shape `[..., n, m]`.

    Raises:
      ValueError: below rank 2, and where both `rtol` and `rcond` are given.
    """
    if rcond is not None:
        if rtol is not None:
            raise ValueError("pinv: only one of rtol and rcond may be specified.")
        rtol = rcond
    (a,) = matrices("pinv", a)
    if a.ndim < 2:
        raise ValueError(f"{a.ndim}-dimensional array given. Array must be at least two-dimensional")
    return _pinv(a, rtol, hermitian)


def tensorinv(a: ArrayLike, ind: int = 2) -> Array:
    """The inverse of an array as a linear map from its last axes to its first ones.

    Args:
      a: an array; its first `ind` sizes multiply to the same number as the others. Integers are taken as floats.
      ind: how many axes are first ones.

    Returns:
      an array of shape `a.shape[ind:] + a.shape[:ind]`; `tensordot(tensorinv(a, ind), a, ind)` is the identity.

    Raises:
      ValueError: for sizes that do not fit, and an `ind` that is not positive.
    """
    (a,) = matrices("tensorinv", a)
    ind = operator.index(ind)
    if ind <= 0:
        raise ValueError(f"ind must be a positive integer; got ind={ind}")
    rows, columns = a.shape[:ind], a.shape[ind:]
    if math.prod(rows) != math.prod(columns):
        raise ValueError("tensorinv is only possible when the product of the first `ind` dimensions equals that of the "
                         f"remaining dimensions. got arr.shape={a.shape} with {ind=}.")
    return lax.reshape(inv(lax.reshape(a, (math.prod(rows), math.prod(columns)))), (*columns, *rows))


def tensorsolve(a: ArrayLike, b: ArrayLike, axes: Sequence[int] | None = None) -> Array:
    """x with tensordot(a, x, x.ndim) = b.

    Args:
      a: an array whose shape begins with that of `b`; the other sizes multiply to `b.size`. Integers are taken as
        floats.
      b: an array.
      axes: axes of `a` that are moved to its end first.

    Returns:
      an array of shape `a.shape[b.ndim:]`.

    Raises:
      ValueError: for shapes that do not fit.
    """
    a, b = matrices("tensorsolve", a, b)
    if axes is not None:
        moved = axis_indices(axes, a.ndim)
        a = lax.transpose(a, (*(i for i in range(a.ndim) if i not in moved), *moved))
    shape = a.shape[b.ndim:]  # type: ignore[union-attr]
    if a.shape[:b.ndim] != b.shape:  # type: ignore[union-attr]
        raise ValueError(f"After moving axes to end, leading shape of a must match shape of b. got a.shape={a.shape}, "  # type: ignore[union-attr]
                         f"b.shape={b.shape}")
    if b.size != math.prod(shape):
        raise ValueError("Input arrays must have prod(a.shape[:b.ndim]) == prod(a.shape[b.ndim:]); got "
                         f"a.shape={a.shape}, b.ndim={b.ndim}.")  # type: ignore[union-attr]
    return lax.reshape(solve(lax.reshape(a, (b.size, b.size)), lax.reshape(b, (b.size,))), shape)
