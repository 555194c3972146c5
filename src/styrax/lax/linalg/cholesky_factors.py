"""The Cholesky factorisation of positive definite matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from styrax.core.arrays.array import Array
from styrax.core.programs import rules
from styrax.core.programs.primitive import Primitive
from styrax.core.tracing.trace import get_aval
from styrax.core.types.avals import ShapedArray
from styrax.core.types.typing import ArrayLike
from styrax.transforms import ad

from ..elementwise.arithmetic import div
from . import by_blocks, in_lanes
from .matrices import (
    INT32,
    Routine,
    band,
    batch_in_front,
    check_inexact,
    check_matrix,
    each_matrix,
    identity,
    in_dtype,
    matmul,
    nan_of,
    place_of,
    real_dtype,
    result_types,
    shape_of,
    symmetrised,
    working,
)
from .triangular import triangular_solve

if TYPE_CHECKING:
    from styrax.core.programs.lowering import Builder, Nest

cholesky_p = Primitive("cholesky")
batch_in_front(cholesky_p)

UNROLLED = 6  # matrices up to this size are factorised without loops


@result_types(cholesky_p)
def _cholesky_abstract(x: ShapedArray) -> ShapedArray:
    check_inexact("cholesky", x)
    check_matrix("cholesky", x, square=True)
    return ShapedArray(x.shape, x.dtype)


def cholesky(x: ArrayLike, *, symmetrize_input: bool = True) -> Array:
    """The lower triangular matrix `l` with `x == l @ l.T` (conjugated for complex ones).

    Args:
      x: positive definite matrices, of shape `[..., n, n]`.
      symmetrize_input: whether to use the mean of `x` and its adjoint; the lower triangle alone counts
        otherwise.

    Returns:
      matrices of the same shape, with zeros above the diagonal; NaN where `x` is not positive definite.

    Raises:
      TypeError: for other than floating-point and complex dtypes, and for matrices without a mean with their adjoint.
      ValueError: for other matrices that are not square.
    """
    if symmetrize_input:
        x = symmetrised("cholesky", x)
    check_matrix("cholesky", get_aval(x), square=True)
    return band(cholesky_p.bind(x), lower=True)


def _half_lower(x: Any) -> Any:
    """The lower triangle, with half the diagonal."""
    n = shape_of(x)[-1]
    dtype = get_aval(x).dtype
    divisor = np.broadcast_to(np.ones((), dtype) + identity(n, dtype), shape_of(x))
    return div(band(x, lower=True), divisor)


def _cholesky_jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    (x,), (tangent,) = primals, tangents
    factor = band(cholesky_p.bind(x), lower=True)
    if type(tangent) is ad.Zero:
        return factor, ad.Zero.from_primal_value(factor)
    # l⁻¹ dx l⁻ᴴ, whose lower half is l⁻¹ dl
    inner = triangular_solve(factor, tangent, left_side=False, lower=True, transpose_a=True, conjugate_a=True)
    inner = triangular_solve(factor, inner, left_side=True, lower=True)
    return factor, matmul(factor, _half_lower(inner))


rules.jvps[cholesky_p] = _cholesky_jvp


def _cholesky_loops(b: Builder, x: Any) -> Any:
    dtype = x.dtype
    x = working(b, x)
    *batch, size, _ = x.shape
    small = isinstance(size, int) and size <= UNROLLED
    real = real_dtype(x.dtype)

    def unrolled(n: Any, out: Any, at: list[Any]) -> None:
        """Row by row; a pivot of zero or below spoils the whole matrix, one that is NaN what follows, as in LAPACK."""
        def element(i: int, j: int) -> Any:
            return n.let(x.at([*at, b.index(i), b.index(j)]))

        factor: dict[tuple[int, int], Any] = {}
        good = b.const(True, np.bool_)
        inverse = []
        for i in range(size):
            for j in range(i + 1):
                total = element(i, j)
                for k in range(j):
                    total = b.sub(total, b.mul(factor[i, k], b.conj(factor[j, k])))
                if i == j:
                    pivot = n.let(b.real(total))
                    good = n.let(b.and_(good, b.not_(b.le(pivot, b.const(0, real)))))
                    root = n.let(b.sqrt(pivot))
                    inverse.append(n.let(b.div(b.const(1, real), root)))
                    factor[i, j] = b.cast(root, x.dtype)
                else:
                    factor[i, j] = n.let(b.mul(total, b.cast(inverse[j], x.dtype)))
        nan = nan_of(b, x.dtype)
        for i in range(size):
            for j in range(size):
                value = b.select(good, factor[i, j], nan) if j <= i else b.const(0, x.dtype)
                n.store(out, [*at, b.index(i), b.index(j)], value)

    width = in_lanes.width_for(b, x)
    if width:
        matrices = in_lanes.flat(b, x)

        def by_lanes(n: Nest, outs: Sequence[Any], ins: Sequence[Any]) -> None:
            count = matrices.shape[0]
            with in_lanes.each_block(b, n, count, width, x.dtype) as block:
                work = block.load(matrices, "lower")
                in_lanes.cholesky(block, work, size)
                block.keep(b.reshaped(outs[0], matrices.shape), work)

        return in_dtype(b, b.nest([(x.shape, x.dtype)], by_lanes)[0], dtype)

    if small:
        def body(n: Nest, outs: Sequence[Any], ins: Sequence[Any]) -> None:
            with each_matrix(n, batch) as at:
                unrolled(n, outs[0], at)

        return in_dtype(b, b.nest([(x.shape, x.dtype)], body)[0], dtype)

    def calls(n: Nest, outs: Sequence[Any], ins: Sequence[Any]) -> None:
        # By columns our lower triangle is the upper one of the transpose: xᵀ = uᴴ u with u = lᵀ.
        potrf = Routine(b, n, "potrf", x.dtype)
        with each_matrix(n, batch) as at:
            if by_blocks.pays(batch, size, size):
                by_blocks.cholesky(b, n, outs[0], outs[1], at)
            else:
                potrf("U", size, place_of(b, outs[0], at), size, place_of(b, outs[1], at), writes=outs)

    factor, info = b.nest([(x.shape, x.dtype, x), ((*batch, 1), INT32)], calls)
    nan, zero = nan_of(b, x.dtype), b.const(0, x.dtype)

    def element(index: Sequence[Any]) -> Any:
        *matrix, i, j = index
        failed = b.ne(info.at([*matrix, b.index(0)]), b.const(0, INT32))
        return b.select(b.gt(j, i), zero, b.select(failed, nan, factor.at(index)))

    return in_dtype(b, b.value(x.shape, x.dtype, element), dtype)


rules.loops[cholesky_p] = _cholesky_loops

