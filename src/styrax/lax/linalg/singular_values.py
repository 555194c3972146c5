"""Singular value decomposition."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from styrax.core.arrays.array import Array
from styrax.core.programs import rules
from styrax.core.programs.primitive import multiple_results
from styrax.core.tracing.trace import get_aval
from styrax.core.types.avals import ShapedArray
from styrax.core.types.dims import smaller
from styrax.core.types.typing import ArrayLike
from styrax.transforms import ad

from ..casting import convert_element_type
from ..elementwise.arithmetic import add, div, mul, sub
from ..elementwise.comparisons import eq
from ..elementwise.functions import real
from .eigen import columns_of, diagonal, rows_of
from .matrices import (
    INT32,
    Routine,
    adjoint,
    batch_in_front,
    by_columns,
    check_inexact,
    check_rank,
    each_matrix,
    identity,
    in_dtype,
    is_complex,
    matmul,
    not_finite,
    place_of,
    real_dtype,
    result_types,
    shape_of,
    unless,
    working,
    zeros_for,
)
from .qr_factors import BLOCK

if TYPE_CHECKING:
    from styrax.core.programs.lowering import Builder


class SvdAlgorithm(enum.Enum):
    """How `svd` is computed, on platforms that have a choice."""

    DEFAULT = "default"
    QR = "QR"
    JACOBI = "Jacobi"
    POLAR = "polar"
    DIVIDE_AND_CONQUER = "divide_and_conquer"


svd_p = multiple_results("svd")
batch_in_front(svd_p)


@result_types(svd_p)
def _svd_abstract(x: ShapedArray, *, full_matrices: bool, compute_uv: bool, subset_by_index: Any, algorithm: Any
                  ) -> list[ShapedArray]:
    check_inexact("svd", x)
    check_rank("svd", x)
    *batch, m, n = x.shape
    k = smaller(m, n)
    if subset_by_index is not None:
        if full_matrices and tuple(subset_by_index) != (0, k):
            raise ValueError("full_matrices and subset_by_index cannot both be set")
        if tuple(subset_by_index) != (0, k):
            raise NotImplementedError("subset_by_index not supported on CPU and GPU")
    s = ShapedArray((*batch, k), real_dtype(x.dtype))
    if not compute_uv:
        return [s]
    return [s, ShapedArray((*batch, m, m if full_matrices else k), x.dtype),
            ShapedArray((*batch, n if full_matrices else k, n), x.dtype)]


@overload
def svd(x: ArrayLike, *, full_matrices: bool = True, compute_uv: Literal[True] = True,
        subset_by_index: tuple[int, int] | None = None,
        algorithm: SvdAlgorithm | None = None) -> tuple[Array, Array, Array]: ...


@overload
def svd(x: ArrayLike, *, full_matrices: bool = True, compute_uv: Literal[False],
        subset_by_index: tuple[int, int] | None = None, algorithm: SvdAlgorithm | None = None) -> Array: ...


@overload
def svd(x: ArrayLike, *, full_matrices: bool = True, compute_uv: bool = True,
        subset_by_index: tuple[int, int] | None = None,
        algorithm: SvdAlgorithm | None = None) -> Array | tuple[Array, Array, Array]: ...


def svd(x: ArrayLike, *, full_matrices: bool = True, compute_uv: bool = True,
        subset_by_index: tuple[int, int] | None = None,
        algorithm: SvdAlgorithm | None = None) -> Array | tuple[Array, Array, Array]:
    """The singular value decomposition `x == (u * s) @ vh` of matrices.

    Args:
      x: matrices of shape `[..., m, n]`.
      full_matrices: whether `u` and `vh` are square; they have `min(m, n)` columns and rows otherwise.
      compute_uv: whether to return them.
      subset_by_index: a range of singular values, where the platform can compute a part.
      algorithm: how to compute them, where there is a choice.

    Returns:
      `(u, s, vh)`, or `s` alone; singular values descend.
    """
    outs = svd_p.bind(x, full_matrices=full_matrices, compute_uv=compute_uv, subset_by_index=subset_by_index,
                      algorithm=algorithm)
    if not compute_uv:
        return outs[0]
    s, u, vh = outs
    return u, s, vh


def _svd_loops(b: Builder, x: Any, *, full_matrices: bool, compute_uv: bool, **_: Any) -> list[Any]:
    dtype = x.dtype
    x = working(b, x)
    *batch, m, n = x.shape
    k, longest = min(m, n), max(m, n)
    part = real_dtype(x.dtype)
    complex_input = is_complex(x.dtype)
    compute_uv = compute_uv and not {1, 2} <= b.unused
    columns, rows = (m, n) if full_matrices else (k, k)
    mode = "N" if not compute_uv else "A" if full_matrices else "S"
    # what the routine needs at least, and room for its blocked parts
    work_size = max(1, 4 * k * k + 7 * k + longest + BLOCK * (m + n))
    real_size = max(1, 5 * k * k + 7 * k, 2 * longest * k + 2 * k * k + k)
    vectors = [((*batch, columns, m), x.dtype), ((*batch, n, rows), x.dtype)] if compute_uv else []

    def trivial(nest: Any, at: list[Any], outs: Sequence[Any]) -> None:
        for out in outs:
            with nest.loop(out.shape[-2]) as j, nest.loop(out.shape[-1]) as i:
                nest.store(out, [*at, j, i], b.select(b.eq(i, j), b.const(1, x.dtype), b.const(0, x.dtype)))

    def body(nest: Any, outs: Sequence[Any], ins: Sequence[Any]) -> None:
        factors, s, failed, *uv = outs
        with each_matrix(nest, batch) as at:
            if not k:
                nest.store(failed, at, b.const(0, INT32))
                trivial(nest, at, uv)
                return
            work, info = nest.scratch((work_size,), x.dtype), nest.scratch((1,), INT32)
            ints = nest.scratch((8 * k,), INT32)
            unused = nest.scratch((1,), x.dtype)
            places = [place_of(b, uv[0], at), m, place_of(b, uv[1], at), rows] if uv else [unused, 1, unused, 1]
            more = [nest.scratch((real_size,), part)] if complex_input else []
            Routine(b, nest, "gesdd", x.dtype)(
                mode, m, n, place_of(b, factors, at), m, place_of(b, s, at), *places, work, work_size, *more, ints,
                info,
                info, writes=[factors, s, *uv, work, info, ints, unused, *more])
            nest.store(failed, at, nest.load(info, [b.index(0)]))

    flawed = not_finite(b, x)
    transposed = by_columns(b, zeros_for(b, flawed, x))
    made = [(transposed.shape, x.dtype, transposed), ((*batch, k), part), (tuple(batch), INT32), *vectors]
    factored, s, failed, *uv = b.nest(made, body)
    s, *uv = (unless(b, flawed, unless(b, failed, v)) for v in (s, *(by_columns(b, v) for v in uv)))
    values = in_dtype(b, s, real_dtype(dtype))
    return [values, *(in_dtype(b, v, dtype) for v in uv)] if compute_uv else [values] * len(b.avals_out)


rules.loops[svd_p] = _svd_loops


def _svd_jvp(primals: Sequence[Any], tangents: Sequence[Any], *, full_matrices: bool, compute_uv: bool,
             subset_by_index: Any, algorithm: Any) -> tuple[list[Any], list[Any]]:
    (x,), (tangent,) = primals, tangents
    *_, m, n = shape_of(x)
    if type(tangent) is ad.Zero:
        outs = svd_p.bind(x, full_matrices=full_matrices, compute_uv=compute_uv, subset_by_index=subset_by_index,
                          algorithm=algorithm)
        return outs, [ad.Zero.from_primal_value(v) for v in outs]
    if compute_uv and full_matrices and m != n:
        raise NotImplementedError("Singular value decomposition JVP not implemented for full matrices")
    s, u, vh = svd_p.bind(x, full_matrices=False, compute_uv=True, subset_by_index=subset_by_index,
                          algorithm=algorithm)
    uh, v = adjoint(u), adjoint(vh)
    inner = matmul(matmul(uh, tangent), v)
    dtype = get_aval(x).dtype
    ds = diagonal(inner)
    ds = real(ds) if is_complex(dtype) else ds
    if not compute_uv:
        return [s], [ds]
    k = shape_of(s)[-1]
    part = get_aval(s).dtype
    eye = np.broadcast_to(identity(k, part), (*shape_of(s), k))
    across, down = columns_of(s, k), rows_of(s, k)
    gaps = add(mul(add(across, down), sub(across, down)), eye)
    inverse = convert_element_type(sub(div(np.ones((), part), gaps), eye), dtype)
    zero = convert_element_type(eq(s, np.zeros((), part)), part)
    s_inverse = sub(div(np.ones((), part), add(s, zero)), zero)
    phases = mul(mul(sub(inner, adjoint(inner)), np.asarray(0.5).astype(dtype)),
                 convert_element_type(mul(columns_of(s_inverse, k), eye), dtype))
    right = mul(convert_element_type(across, dtype), inner)
    left = mul(convert_element_type(down, dtype), inner)
    du = matmul(u, add(mul(inverse, add(right, adjoint(right))), phases))
    dv = matmul(v, mul(inverse, add(left, adjoint(left))))
    if m > n:
        moved = matmul(tangent, v)
        rest = sub(moved, matmul(u, matmul(uh, moved)))
        du = add(du, div(rest, convert_element_type(columns_of(s, m), dtype)))
    if n > m:
        moved = matmul(adjoint(tangent), u)
        rest = sub(moved, matmul(v, matmul(vh, moved)))
        dv = add(dv, div(rest, convert_element_type(columns_of(s, n), dtype)))
    return [s, u, vh], [ds, du, adjoint(dv)]


rules.jvps[svd_p] = _svd_jvp
