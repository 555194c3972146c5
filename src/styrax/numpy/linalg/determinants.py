"""Determinants and their logarithms."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.programs.named import named
from styrax.core.types import dtypes
from styrax.core.types.typing import ArrayLike
from styrax.lax import linalg as lax_linalg
from styrax.transforms.custom import custom_jvp
from styrax.transforms.jit import jit_for_all_shapes as jit

from .. import reductions, shaping
from ..binary import add, divide, multiply
from ..broadcasting import choose_elements
from ..indexing import gather_elements
from ..promotion import convert, typed
from .operands import check_square, matrices, permuted_rows, real_dtype


class SlogdetResult(NamedTuple):
    """Sign and logarithm of the modulus of determinants."""

    sign: Array
    logabsdet: Array


def _lu_parity(pivots: Any, lu: Any) -> tuple[Any, Any]:
    """The diagonal of LU factors, and how many row exchanges (and negative real diagonals) there were."""
    diagonal = shaping.diagonal(lu, axis1=-2, axis2=-1)
    exchanged = lax.ne(pivots, lax.broadcasted_iota(pivots.dtype, pivots.shape, pivots.ndim - 1))
    return diagonal, reductions.count_nonzero(exchanged, axis=-1)


def _slogdet(a: ArrayLike, *, method: str | None = None) -> SlogdetResult:
    """The sign and the logarithm of the modulus of the determinants of square matrices: det = sign · exp(logabsdet).

    Args:
      a: matrices of shape `[..., n, n]`; integers are taken as floats.
      method: "lu" (also for None) or "qr"; LU factors are used either way.

    Returns:
      a `SlogdetResult` of `sign` (of modulus 1; complex for complex matrices) and `logabsdet` (real), both of the
      batch's shape; 0 and -∞ where a matrix is singular.

    Raises:
      ValueError: for matrices that are not square, and another method.
    """
    (a,) = matrices("slogdet", a)
    check_square("slogdet", a)
    if method not in (None, "lu", "qr"):
        raise ValueError(f"Unknown slogdet method '{method}'. Supported methods are 'lu' (`None`), and 'qr'.")
    kind, weak = typed(a)
    lu, pivots, _ = lax_linalg.lu(a)
    diagonal, parity = _lu_parity(pivots, lu)
    singular = reductions.any(lax.eq(diagonal, convert(0, kind)), axis=-1)
    if dtypes.issubdtype(kind, np.complexfloating):
        sign = reductions.prod(divide(diagonal, convert(lax.abs(diagonal), kind)), axis=-1)
    else:
        sign = convert(1, kind)
        parity = add(parity, reductions.count_nonzero(lax.lt(diagonal, convert(0, kind)), axis=-1))
    from ..division import remainder

    odd = remainder(parity, 2)
    sign = multiply(sign, convert(add(multiply(-2, odd), 1), kind))
    real = real_dtype(kind)
    sign = choose_elements(singular, convert(0, kind), sign)
    logdet = choose_elements(singular, convert(-np.inf, real), reductions.sum(lax.log(lax.abs(diagonal)), axis=-1))
    return SlogdetResult(convert(sign, kind, weak), convert(logdet, real, weak))


slogdet = jit(named(_slogdet, "slogdet"), static_argnames=("method",))


def _entry(a: Any, i: int, j: int) -> Any:
    return gather_elements(a, (..., i, j))


def _det2(a: Any) -> Any:
    return lax.sub(lax.mul(_entry(a, 0, 0), _entry(a, 1, 1)), lax.mul(_entry(a, 0, 1), _entry(a, 1, 0)))


def _det3(a: Any) -> Any:
    def product(*places: tuple[int, int]) -> Any:
        out = _entry(a, *places[0])
        for place in places[1:]:
            out = lax.mul(out, _entry(a, *place))
        return out

    total = lax.add(product((0, 0), (1, 1), (2, 2)), product((0, 1), (1, 2), (2, 0)))
    total = lax.add(total, product((0, 2), (1, 0), (2, 1)))
    total = lax.sub(total, product((0, 2), (1, 1), (2, 0)))
    total = lax.sub(total, product((0, 0), (1, 2), (2, 1)))
    return lax.sub(total, product((0, 1), (1, 0), (2, 2)))


@custom_jvp
def _det(a: Any) -> Any:
    sign, logdet = slogdet(a)
    return multiply(sign, convert(lax.exp(logdet), sign.dtype))


@_det.defjvp
def _det_jvp(primals: tuple, tangents: tuple) -> tuple:
    # d det(a) = trace(adj(a)·da). The adjugate times da comes from the LU factors with the last pivot
    # divided out, so that it is right for matrices of rank n - 1, too.
    (a,), (t,) = primals, tangents
    lu, pivots, permutation = lax_linalg.lu(a)
    diagonal, parity = _lu_parity(pivots, lu)
    from ..accumulations import cumprod
    from ..division import remainder
    from ..updates import scatter

    sign = convert(add(multiply(-2, remainder(parity, 2)), 1), a.dtype)
    products = multiply(cumprod(diagonal, axis=-1), lax.expand_dims(sign, (sign.ndim,)))
    det_ = gather_elements(products, (..., -1))
    partial_det = gather_elements(products, (..., -2))
    last = gather_elements(diagonal, (..., -1))
    x = lax_linalg.triangular_solve(lu, permuted_rows(t, permutation), left_side=True, lower=True, unit_diagonal=True)
    x = lax.concatenate([
        multiply(gather_elements(x, (..., slice(None, -1), slice(None))),
                 lax.expand_dims(multiply(last, partial_det), (last.ndim, last.ndim + 1))),
        multiply(gather_elements(x, (..., slice(-1, None), slice(None))),
                 lax.expand_dims(partial_det, (partial_det.ndim, partial_det.ndim + 1)))], x.ndim - 2)
    upper = scatter(lu, (..., -1, -1), 1, "set")
    adjugate_t = lax_linalg.triangular_solve(upper, x, left_side=True, lower=False)
    return det_, shaping.trace(adjugate_t, axis1=-1, axis2=-2)


@jit
def det(a: ArrayLike) -> Array:
    """The determinants of square matrices: by products of elements up to size 3, else by LU factors.

    Gradients are right for matrices of rank n - 1, too.

    Args:
      a: matrices of shape `[..., n, n]`; integers are taken as floats.

    Returns:
      an array of the batch's shape; 1 for empty matrices.

    Raises:
      ValueError: for matrices that are not square.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.linalg.det(jnp.array([[1.0, 2.0], [3.0, 5.0]]))
      Array(-1., dtype=float32)
    """
    (a,) = matrices("det", a)
    if a.ndim >= 2 and a.shape[-2:] == (2, 2):
        return _det2(a)
    if a.ndim >= 2 and a.shape[-2:] == (3, 3):
        return _det3(a)
    check_square("det", a)
    if a.shape[-1] == 0:
        return lax.full(a.shape[:-2], 1, a.dtype)
    if a.shape[-1] == 1:
        return _entry(a, 0, 0)
    return _det(a)
