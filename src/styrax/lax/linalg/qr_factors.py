"""QR factorisation, and products of Householder reflections."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from styrax.core.arrays.array import Array
from styrax.core.programs import rules
from styrax.core.programs.primitive import Primitive, multiple_results
from styrax.core.tracing.trace import get_aval
from styrax.core.types.avals import ShapedArray
from styrax.core.types.typing import ArrayLike
from styrax.transforms import ad

from ..casting import convert_element_type
from ..elementwise.arithmetic import add, mul, sub
from ..elementwise.functions import real
from ..indexing.gather import take_along
from ..indexing.static_slicing import slice_in_dim
from ..shaping.broadcasting import broadcast_in_dim
from ..shaping.joining import concatenate
from . import by_blocks, in_lanes
from .matrices import (
    INT32,
    Routine,
    adjoint,
    band,
    batch_in_front,
    by_columns,
    check_batch_ranks,
    check_inexact,
    check_rank,
    each_matrix,
    identity,
    in_dtype,
    is_complex,
    matmul,
    place_of,
    real_dtype,
    result_types,
    shape_of,
    working,
)
from .triangular import triangular_solve

if TYPE_CHECKING:
    from styrax.core.programs.lowering import Builder

qr_p = multiple_results("qr")
batch_in_front(qr_p)

BLOCK = 64  # columns that LAPACK's blocked routines like to have work space for


@result_types(qr_p)
def _qr_abstract(x: ShapedArray, *, pivoting: bool, full_matrices: bool, use_magma: Any = None) -> list[ShapedArray]:
    check_inexact("qr", x)
    check_rank("qr", x)
    *batch, m, n = x.shape
    k = m if full_matrices else min(m, n)
    out = [ShapedArray((*batch, m, k), x.dtype), ShapedArray((*batch, k, n), x.dtype)]
    return [*out, ShapedArray((*batch, n), INT32)] if pivoting else out


def qr(x: ArrayLike, *, pivoting: bool = False, full_matrices: bool = True,
       use_magma: bool | None = None) -> tuple[Array, ...]:
    """The factorisation of matrices into orthonormal columns and an upper triangle.

    Args:
      x: matrices of shape `[..., m, n]`.
      pivoting: whether to exchange columns so that the diagonal of `r` descends.
      full_matrices: whether `q` is square; it has `min(m, n)` columns otherwise.
      use_magma: for GPUs.

    Returns:
      `(q, r)`, and the order of columns with `pivoting`.
    """
    return tuple(qr_p.bind(x, pivoting=pivoting, full_matrices=full_matrices, use_magma=use_magma))


def _unitary(name: str, dtype: Any) -> str:
    """LAPACK's name for a routine on orthogonal matrices, which are unitary in the complex case."""
    return ("un" if is_complex(dtype) else "or") + name


def _by_lanes(b: Builder, x: Any, columns: int, width: int) -> list[Any]:
    *batch, m, n = x.shape
    matrices = in_lanes.flat(b, x)
    count = matrices.shape[0]

    def body(nest: Any, outs: Sequence[Any], ins: Sequence[Any]) -> None:
        with in_lanes.each_block(b, nest, count, width, x.dtype) as block:
            factors = block.load(matrices)
            q = in_lanes.qr(block, factors, m, n, columns)
            block.keep(b.reshaped(outs[0], (count, m, columns)), q)
            block.keep(b.reshaped(outs[1], (count, columns, n)), factors)

    return b.nest([((*batch, m, columns), x.dtype), ((*batch, columns, n), x.dtype)], body)


def _qr_loops(b: Builder, x: Any, *, pivoting: bool, full_matrices: bool, use_magma: Any = None) -> list[Any]:
    dtype = x.dtype
    x = working(b, x)
    *batch, m, n = x.shape
    k = min(m, n)
    columns = m if full_matrices else k
    with_q = 0 not in b.unused
    width = 0 if pivoting else in_lanes.width_for(b, x)
    if width:
        return [in_dtype(b, found, dtype) for found in _by_lanes(b, x, columns, width)]
    one, zero = b.const(1, x.dtype), b.const(0, x.dtype)
    work_size = max(1, 2 * n + (n + 1) * BLOCK, m * BLOCK)

    def body(nest: Any, outs: Sequence[Any], ins: Sequence[Any]) -> None:
        factors, *rest = outs
        q, order = (rest[0], rest[1:]) if with_q else (None, rest)
        with each_matrix(nest, batch) as at:
            if order:
                with nest.loop(n) as j:
                    nest.store(order[0], [*at, j], b.const(0, INT32))
            if not order and by_blocks.pays(batch, m, n):
                by_blocks.qr(b, nest, factors, nest.scratch((k,), x.dtype), at, q)
            elif k:
                tau, work = nest.scratch((k,), x.dtype), nest.scratch((work_size,), x.dtype)
                info = nest.scratch((1,), INT32)
                place = place_of(b, factors, at)
                if order:
                    more = [nest.scratch((2 * n,), real_dtype(x.dtype))] if is_complex(x.dtype) else []
                    Routine(b, nest, "geqp3", x.dtype)(
                        m, n, place, m, place_of(b, order[0], at), tau, work, work_size, *more, info,
                        writes=[factors, order[0], tau, work, info, *more])
                else:
                    Routine(b, nest, "geqrf", x.dtype)(m, n, place, m, tau, work, work_size, info,
                                                       writes=[factors, tau, work, info])
                if q is not None:
                    with nest.loop(k) as j, nest.loop(m) as i:
                        nest.store(q, [*at, j, i], nest.load(factors, [*at, j, i]))
                    with nest.loop(columns - k) as j, nest.loop(m) as i:
                        nest.store(q, [*at, b.add(j, b.index(k)), i], zero)
                    Routine(b, nest, _unitary("gqr", x.dtype), x.dtype)(
                        m, columns, k, place_of(b, q, at), m, tau, work, work_size, info, reads=[tau],
                        writes=[q, work, info])
            elif q is not None:
                with nest.loop(columns) as j, nest.loop(m) as i:
                    nest.store(q, [*at, j, i], b.select(b.eq(i, j), one, zero))
            if order:
                with nest.loop(n) as j:
                    start = nest.load(order[0], [*at, j])
                    nest.store(order[0], [*at, j], b.sub(start, b.const(1, INT32)) if k else b.cast(j, INT32))

    transposed = by_columns(b, x)
    targets: list[Any] = [(transposed.shape, x.dtype, transposed)]
    if with_q:
        targets.append(((*batch, columns, m), x.dtype))
    if pivoting:
        targets.append(((*batch, n), INT32))
    factors, *found = b.nest(targets, body)

    def upper(index: Sequence[Any]) -> Any:
        *at, i, j = index
        return b.select(b.ge(j, i), factors.at([*at, j, i]), zero)

    r = b.value((*batch, columns, n), x.dtype, upper)
    r = in_dtype(b, r, dtype)
    if not with_q:
        return [r, r, *found]
    q, *order = found
    return [in_dtype(b, by_columns(b, q), dtype), r, *order]


rules.loops[qr_p] = _qr_loops

geqrf_p = multiple_results("geqrf")
batch_in_front(geqrf_p)


@result_types(geqrf_p)
def _geqrf_abstract(x: ShapedArray) -> list[ShapedArray]:
    check_inexact("geqrf", x)
    check_rank("geqrf", x)
    *batch, m, n = x.shape
    return [ShapedArray(x.shape, x.dtype), ShapedArray((*batch, min(m, n)), x.dtype)]


def geqrf(a: Any) -> tuple[Any, Any]:
    """The factorisation behind `qr` as LAPACK leaves it behind.

    Args:
      a: matrices of shape `[..., m, n]`.

    Returns:
      matrices of the shape of `a` with `r` on and above the diagonal and elementary reflections below it, and
      the factors of these, `[..., min(m, n)]`, as `householder_product` takes them.
    """
    packed, taus = geqrf_p.bind(a)
    return packed, taus


def _geqrf_loops(b: Builder, x: Any) -> list[Any]:
    dtype = x.dtype
    x = working(b, x)
    *batch, m, n = x.shape
    k = min(m, n)
    work_size = max(1, n * BLOCK)

    def body(nest: Any, outs: Sequence[Any], ins: Sequence[Any]) -> None:
        factors, taus = outs
        with each_matrix(nest, batch) as at:
            if by_blocks.pays(batch, m, n):
                by_blocks.qr(b, nest, factors, taus, at)
            elif k:
                work, info = nest.scratch((work_size,), x.dtype), nest.scratch((1,), INT32)
                Routine(b, nest, "geqrf", x.dtype)(m, n, place_of(b, factors, at), m, place_of(b, taus, at), work,
                                                   work_size, info, writes=[factors, taus, work, info])

    transposed = by_columns(b, x)
    factors, taus = b.nest([(transposed.shape, x.dtype, transposed), ((*batch, k), x.dtype)], body)
    return [in_dtype(b, by_columns(b, factors), dtype), in_dtype(b, taus, dtype)]


rules.loops[geqrf_p] = _geqrf_loops


def _narrow_qr_jvp(q: Any, r: Any, tangent: Any) -> tuple[Any, Any]:
    """dq and dr where `r` is square."""
    dtype = get_aval(r).dtype
    inner = triangular_solve(r, tangent)  # dx r⁻¹
    rotated = matmul(adjoint(q), inner)
    lower = band(rotated, True, -1)
    skew = sub(lower, adjoint(lower))
    if is_complex(dtype):
        eye = np.broadcast_to(identity(shape_of(r)[-1], dtype), shape_of(r))
        skew = add(skew, mul(eye, sub(rotated, convert_element_type(real(rotated), dtype))))
    return add(matmul(q, sub(skew, rotated)), inner), matmul(sub(rotated, skew), r)


def _complement_jvp(q: Any, narrow: Any) -> Any:
    """The derivative of the columns of a full `q` after the first, n, whose derivative is `narrow`.

    q = 1 - V·T·Vᴴ is a product of n reflections, so the others follow from the first: with q₁₁ = 1 + M they are
    M·X and 1 + q₂₁·X, where Mᴴ·X = q₂₁ᴴ. Not defined where a reflection is the identity.
    """
    rank, n = len(shape_of(q)), shape_of(narrow)[-1]

    def halves(x: Any) -> tuple[Any, Any]:
        return (slice_in_dim(x, 0, n, axis=rank - 2), slice_in_dim(x, n, shape_of(x)[-2], axis=rank - 2))

    top, low = halves(slice_in_dim(q, 0, n, axis=rank - 1))
    d_top, d_low = halves(narrow)
    top = sub(top, np.broadcast_to(identity(n, get_aval(q).dtype), shape_of(top)))
    factor, triangle, *_ = qr_p.bind(top, pivoting=False, full_matrices=False, use_magma=None)

    def solved(rhs: Any) -> Any:
        return matmul(factor, triangular_solve(triangle, rhs, left_side=True, transpose_a=True, conjugate_a=True))

    x = solved(adjoint(low))
    dx = solved(sub(adjoint(d_low), matmul(adjoint(d_top), x)))
    return concatenate([add(matmul(d_top, x), matmul(top, dx)), add(matmul(d_low, x), matmul(low, dx))], rank - 2)


def _qr_jvp(primals: Sequence[Any], tangents: Sequence[Any], *, pivoting: bool, full_matrices: bool,
            use_magma: Any = None) -> tuple[list[Any], list[Any]]:
    (x,), (tangent,) = primals, tangents
    q, r, *order = qr_p.bind(x, pivoting=pivoting, full_matrices=full_matrices, use_magma=use_magma)
    zeros = [ad.Zero.from_primal_value(v) for v in order]
    if type(tangent) is ad.Zero:
        return [q, r, *order], [ad.Zero.from_primal_value(q), ad.Zero.from_primal_value(r), *zeros]
    *batch, m, n = shape_of(x)
    rank = len(batch) + 2
    if order:
        places = broadcast_in_dim(order[0], (*batch, m, n), (*range(rank - 2), rank - 1))
        tangent = take_along(tangent, places, rank - 1)
    if full_matrices and m > n:
        dq, dr = _narrow_qr_jvp(slice_in_dim(q, 0, n, axis=rank - 1), slice_in_dim(r, 0, n, axis=rank - 2), tangent)
        dq = concatenate([dq, _complement_jvp(q, dq)], rank - 1)
        dr = concatenate([dr, np.zeros((*batch, m - n, n), get_aval(r).dtype)], rank - 2)
    elif m >= n:
        dq, dr = _narrow_qr_jvp(q, r, tangent)
    else:
        # The first columns alone determine q.
        dq, dr_left = _narrow_qr_jvp(q, slice_in_dim(r, 0, m, axis=rank - 1),
                                     slice_in_dim(tangent, 0, m, axis=rank - 1))
        right = slice_in_dim(r, m, n, axis=rank - 1)
        dr_right = add(matmul(matmul(adjoint(dq), q), right),
                       matmul(adjoint(q), slice_in_dim(tangent, m, n, axis=rank - 1)))
        dr = concatenate([dr_left, dr_right], rank - 1)
    return [q, r, *order], [dq, dr, *zeros]


rules.jvps[qr_p] = _qr_jvp

# --- reflections

householder_product_p = Primitive("householder_product")
batch_in_front(householder_product_p, 2, 1)


@result_types(householder_product_p)
def _householder_product_abstract(a: ShapedArray, taus: ShapedArray) -> ShapedArray:
    check_inexact("householder_product", a, taus)
    check_rank("householder_product", a)
    check_batch_ranks("householder_product", len(a.shape) - 2, len(taus.shape) - 1)
    *batch, m, n = a.shape
    if m < n:
        raise ValueError(f"The first argument to householder_product must have at least as many rows as columns, got "
                         f"shape {a.shape}")
    if tuple(taus.shape[:-1]) != tuple(batch) or taus.shape[-1] > n:
        raise ValueError("The second argument to householder_product must not have more elements than the first has "
                         f"columns: got shapes {a.shape} and {taus.shape}")
    return ShapedArray(a.shape, a.dtype)


def householder_product(a: ArrayLike, taus: ArrayLike) -> Array:
    """The first columns of a product of elementary reflections, as `qr` leaves them behind.

    Args:
      a: matrices `[..., m, n]` whose columns hold the reflections below the diagonal.
      taus: their factors, `[..., k]` with `k <= n`.

    Returns:
      matrices of the shape of `a` with orthonormal columns.
    """
    return householder_product_p.bind(a, taus)


def _householder_product_loops(b: Builder, a: Any, taus: Any) -> Any:
    dtype = a.dtype
    a, taus = working(b, a), working(b, taus)
    *batch, m, n = a.shape
    k = taus.shape[-1]
    work_size = max(1, n * BLOCK)

    def body(nest: Any, outs: Sequence[Any], ins: Sequence[Any]) -> None:
        with each_matrix(nest, batch) as at:
            if n:
                work, info = nest.scratch((work_size,), a.dtype), nest.scratch((1,), INT32)
                Routine(b, nest, _unitary("gqr", a.dtype), a.dtype)(
                    m, n, k, place_of(b, outs[0], at), m, place_of(b, ins[0], at), work, work_size, info,
                    reads=[ins[0]], writes=[outs[0], work, info])

    transposed = by_columns(b, a)
    out = b.nest([(transposed.shape, a.dtype, transposed)], body, inputs=[taus])[0]
    return in_dtype(b, by_columns(b, out), dtype)


rules.loops[householder_product_p] = _householder_product_loops

ormqr_p = Primitive("ormqr")
batch_in_front(ormqr_p, 2, 1)


@result_types(ormqr_p)
def _ormqr_abstract(a: ShapedArray, taus: ShapedArray, c: ShapedArray, *, left: bool, transpose: bool) -> ShapedArray:
    check_inexact("ormqr", a, taus, c)
    check_rank("ormqr", a)
    side = c.shape[-2] if left else c.shape[-1]
    if a.shape[-2] != side:
        raise ValueError(f"ormqr: reflections of {a.shape[-2]} rows do not fit matrices of shape {c.shape}")
    return ShapedArray(c.shape, c.dtype)


def ormqr(a: ArrayLike, taus: ArrayLike, c: ArrayLike, *, left: bool = True, transpose: bool = False) -> Array:
    """The product of matrices with the orthogonal matrix of elementary reflections, without forming that.

    Args:
      a, taus: reflections, as for `householder_product`.
      c: matrices to multiply.
      left: whether the orthogonal matrix stands on the left of `c`.
      transpose: whether to multiply with its (conjugate) transpose.

    Returns:
      matrices of the shape of `c`.
    """
    return ormqr_p.bind(a, taus, c, left=left, transpose=transpose)


def _ormqr_loops(b: Builder, a: Any, taus: Any, c: Any, *, left: bool, transpose: bool) -> Any:
    dtype = c.dtype
    a, taus, c = working(b, a), working(b, taus), working(b, c)
    *batch, m, n = c.shape
    k, rows = taus.shape[-1], a.shape[-2]
    work_size = max(1, max(m, n) * BLOCK + BLOCK * (BLOCK + 1))
    flag = "N" if not transpose else "C" if is_complex(c.dtype) else "T"

    def body(nest: Any, outs: Sequence[Any], ins: Sequence[Any]) -> None:
        reflections, factors = ins
        with each_matrix(nest, batch) as at:
            if m and n and k:
                work, info = nest.scratch((work_size,), c.dtype), nest.scratch((1,), INT32)
                Routine(b, nest, _unitary("mqr", c.dtype), c.dtype)(
                    "L" if left else "R", flag, m, n, k, place_of(b, reflections, at), rows, place_of(b, factors, at),
                    place_of(b, outs[0], at), m, work, work_size, info, reads=ins, writes=[outs[0], work, info])

    transposed = by_columns(b, c)
    out = b.nest([(transposed.shape, c.dtype, transposed)], body, inputs=[by_columns(b, a), taus])[0]
    return in_dtype(b, by_columns(b, out), dtype)


rules.loops[ormqr_p] = _ormqr_loops
