"""Tridiagonal systems, symmetric products, and updates of factorisations."""

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

from ..elementwise.arithmetic import add, mul, neg
from ..elementwise.families import scalar_like
from ..indexing.static_slicing import slice_in_dim
from ..shaping.broadcasting import broadcast_in_dim
from ..shaping.filling import pad
from .matrices import (
    INT32,
    Routine,
    batch_in_front,
    by_columns,
    check_batch_ranks,
    check_inexact,
    check_rank,
    check_same_dtypes,
    check_square,
    each_matrix,
    in_dtype,
    is_complex,
    matmul,
    nan_of,
    place_of,
    result_types,
    shape_of,
    swapped,
    working,
)

if TYPE_CHECKING:
    from styrax.core.programs.lowering import Builder

tridiagonal_solve_p = Primitive("tridiagonal_solve")
batch_in_front(tridiagonal_solve_p, 1, 1, 1)


@result_types(tridiagonal_solve_p)
def _tridiagonal_solve_abstract(dl: ShapedArray, d: ShapedArray, du: ShapedArray, b: ShapedArray, *,
                                perturb_singular: bool = False) -> ShapedArray:
    check_inexact("tridiagonal_solve", dl, d, du, b)
    check_same_dtypes("tridiagonal_solve", dl, d, du, b)
    if len(b.shape) < 2:
        raise TypeError(f"Input 3 to tridiagonal_solve must have rank at least 2, but got shape={b.shape}")
    if not dl.shape == d.shape == du.shape == b.shape[:-1]:
        raise TypeError("tridiagonal_solve: the diagonals must have the shape of b without its last dimension, got "
                        f"{dl.shape}, {d.shape}, {du.shape} and {b.shape}")
    return ShapedArray(b.shape, b.dtype)


def tridiagonal_solve(dl: ArrayLike, d: ArrayLike, du: ArrayLike, b: ArrayLike, *,
                      perturb_singular: bool = False) -> Array:
    """Solves systems with tridiagonal matrices, with row exchanges.

    Args:
      dl: the lower diagonals, `[..., n]`; the first element is not used.
      d: the diagonals, `[..., n]`.
      du: the upper diagonals, `[..., n]`; the last element is not used.
      b: right-hand sides, `[..., n, k]`.
      perturb_singular: for platforms that eliminate without exchanges.

    Returns:
      solutions, of the shape of `b`.
    """
    return tridiagonal_solve_p.bind(dl, d, du, b, perturb_singular=bool(perturb_singular))


def _tridiagonal_solve_loops(b: Builder, dl: Any, d: Any, du: Any, rhs: Any, *, perturb_singular: bool) -> Any:
    dtype = rhs.dtype
    dl, d, du, rhs = (working(b, v) for v in (dl, d, du, rhs))
    *batch, n, k = rhs.shape

    def body(nest: Any, outs: Sequence[Any], ins: Sequence[Any]) -> None:
        with each_matrix(nest, batch) as at:
            if not (n and k):
                return
            low, mid, up = (nest.scratch((n,), rhs.dtype) for _ in range(3))
            with nest.loop(n) as i:
                nest.store(mid, [i], d.at([*at, i]))
            with nest.loop(n - 1) as i:
                nest.store(low, [i], dl.at([*at, b.add(i, b.index(1))]))
                nest.store(up, [i], du.at([*at, i]))
            info = nest.scratch((1,), INT32)
            Routine(b, nest, "gtsv", rhs.dtype)(n, k, low, mid, up, place_of(b, outs[0], at), n, info,
                                                writes=[outs[0], low, mid, up, info])
            failed = nest.let(b.ne(nest.load(info, [b.index(0)]), b.const(0, INT32)))
            with nest.loop(k) as j, nest.loop(n) as i:
                x = nest.load(outs[0], [*at, j, i])
                nest.store(outs[0], [*at, j, i], b.select(failed, nan_of(b, rhs.dtype), x))

    transposed = by_columns(b, rhs)
    out = b.nest([(transposed.shape, rhs.dtype, transposed)], body)[0]
    return in_dtype(b, by_columns(b, out), dtype)


rules.loops[tridiagonal_solve_p] = _tridiagonal_solve_loops


def _beside(x: Any, by: int) -> Any:
    """Rows moved up (`by` = 1) or down (-1), with zeros moving in."""
    shape = shape_of(x)
    axis = len(shape) - 2
    kept = slice_in_dim(x, 1, None, axis=axis) if by > 0 else slice_in_dim(x, 0, shape[axis] - 1, axis=axis)
    config = [(0, 0, 0)] * len(shape)
    config[axis] = (0, 1, 0) if by > 0 else (1, 0, 0)
    return pad(kept, np.zeros((), get_aval(x).dtype), config)


def _each_row(diagonal: Any, x: Any) -> Any:
    shape = shape_of(x)
    return mul(broadcast_in_dim(diagonal, shape, tuple(range(len(shape) - 1))), x)


def _tridiagonal_solve_jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
    *diagonals, _ = primals
    out = tridiagonal_solve_p.bind(*primals, **params)
    total: Any = tangents[3]
    for tangent, moved in zip(tangents, (-1, 0, 1), strict=False):
        if type(tangent) is not ad.Zero:
            neighbour = out if moved == 0 else _beside(out, moved)
            total = ad.add_tangents(total, neg(_each_row(tangent, neighbour)))
    if type(total) is ad.Zero:
        return out, ad.Zero.from_primal_value(out)
    return out, tridiagonal_solve_p.bind(*diagonals, total, **params)


rules.jvps[tridiagonal_solve_p] = _tridiagonal_solve_jvp


def _tridiagonal_solve_transpose(ct: Any, dl: Any, d: Any, du: Any, b: Any, **params: Any) -> list[Any]:
    assert ad.is_undefined_primal(b)
    if type(ct) is ad.Zero:
        return [None, None, None, ad.Zero(b.aval)]

    def shifted(x: Any, by: int) -> Any:
        axis = len(shape_of(x)) - 1
        n = shape_of(x)[axis]
        kept = slice_in_dim(x, 1, None, axis=axis) if by > 0 else slice_in_dim(x, 0, n - 1, axis=axis)
        config = [(0, 0, 0)] * (axis + 1)
        config[axis] = (0, 1, 0) if by > 0 else (1, 0, 0)
        return pad(kept, np.zeros((), get_aval(x).dtype), config)

    return [None, None, None, tridiagonal_solve_p.bind(shifted(du, -1), d, shifted(dl, 1), ct, **params)]


rules.transposes[tridiagonal_solve_p] = _tridiagonal_solve_transpose

# --- symmetric products

symmetric_product_p = Primitive("symmetric_product")
batch_in_front(symmetric_product_p)


@result_types(symmetric_product_p)
def _symmetric_product_abstract(a: ShapedArray, c: ShapedArray, *, alpha: float, beta: float) -> ShapedArray:
    check_inexact("symmetric_product", a, c)
    check_rank("symmetric_product", a)
    check_square("symmetric_product", c)
    check_batch_ranks("symmetric_product", len(a.shape) - 2, len(c.shape) - 2)
    if a.shape[:-1] != c.shape[:-1]:
        raise ValueError(f"symmetric_product: shapes {a.shape} and {c.shape} do not fit")
    return ShapedArray(c.shape, c.dtype)


def symmetric_product(a_matrix: ArrayLike, c_matrix: ArrayLike, *, alpha: float = 1.0, beta: float = 0.0,
                      symmetrize_output: bool = False) -> Array:
    """`alpha * a @ a.T + beta * c`.

    Args:
      a_matrix: matrices `[..., n, k]`.
      c_matrix: symmetric matrices `[..., n, n]`.
      alpha, beta: factors.
      symmetrize_output: whether the upper triangle is made equal to the lower one, which alone counts
        otherwise.

    Returns:
      matrices of the shape of `c_matrix`.
    """
    out = symmetric_product_p.bind(a_matrix, c_matrix, alpha=alpha, beta=beta)
    if not symmetrize_output:
        return out
    from .matrices import band

    return add(band(out, True), swapped(band(out, True, -1)))


def _symmetric_product_loops(b: Builder, a: Any, c: Any, *, alpha: float, beta: float) -> Any:
    dtype = c.dtype

    def body(index: Sequence[Any], r: Sequence[Any]) -> tuple[Any]:
        *at, i, j = index
        return (b.mul(a.at([*at, i, r[0]]), a.at([*at, j, r[0]])),)

    (product,) = b.reduce(c.shape, [a.shape[-1]], [dtype], "add", (b.const(0, dtype),), body)
    return b.value(c.shape, dtype, lambda index: b.add(b.mul(b.const(alpha, dtype), product.at(index)),
                                                       b.mul(b.const(beta, dtype), c.at(index))))


rules.loops[symmetric_product_p] = _symmetric_product_loops


def _symmetric_product_hlo(m: Any, a: Any, c: Any, *, alpha: float, beta: float) -> Any:
    def product(a: Any, c: Any) -> Any:
        return add(mul(matmul(a, swapped(a)), scalar_like(a, alpha)), mul(c, scalar_like(c, beta)))

    return m.call_traced(product, a, c)[0]


rules.stablehlos[symmetric_product_p] = _symmetric_product_hlo

# --- updates

cholesky_update_p = Primitive("cholesky_update")
batch_in_front(cholesky_update_p, 2, 1)


@result_types(cholesky_update_p)
def _cholesky_update_abstract(r: ShapedArray, w: ShapedArray) -> ShapedArray:
    check_inexact("cholesky_update", r, w)
    check_square("cholesky_update", r)
    check_batch_ranks("cholesky_update", len(r.shape) - 2, len(w.shape) - 1)
    if is_complex(r.dtype):
        raise NotImplementedError("cholesky_update does not take complex matrices")
    if r.shape[:-1] != w.shape:
        raise ValueError(f"cholesky_update: shapes {r.shape} and {w.shape} do not fit")
    return ShapedArray(r.shape, r.dtype)


def cholesky_update(r_matrix: ArrayLike, w_vector: ArrayLike) -> Array:
    """The upper triangular factor of `r.T @ r + w wᵀ`, from `r`.

    Args:
      r_matrix: upper triangular matrices `[..., n, n]`.
      w_vector: vectors `[..., n]`.

    Returns:
      upper triangular matrices of the shape of `r_matrix`.
    """
    return cholesky_update_p.bind(r_matrix, w_vector)


def _cholesky_update_loops(b: Builder, r: Any, w: Any) -> Any:
    dtype = r.dtype
    r, w = working(b, r), working(b, w)
    *batch, n, _ = r.shape
    zero = b.const(0, r.dtype)

    def body(nest: Any, outs: Sequence[Any], ins: Sequence[Any]) -> None:
        (out,) = outs
        with each_matrix(nest, batch) as at:
            rest = nest.scratch((n,), r.dtype)
            with nest.loop(n) as i:
                nest.store(rest, [i], w.at([*at, i]))
                with nest.loop(n) as j:
                    nest.store(out, [*at, i, j], b.select(b.ge(j, i), r.at([*at, i, j]), zero))
            with nest.loop(n) as k:
                # one rotation brings component k of the vector into the factor
                x, y = nest.load(out, [*at, k, k]), nest.load(rest, [k])
                length = nest.let(b.sqrt(b.add(b.mul(x, x), b.mul(y, y))))
                still = b.eq(length, zero)
                c = nest.let(b.select(still, b.const(1, r.dtype), b.div(x, length)))
                s = nest.let(b.select(still, zero, b.div(y, length)))
                with nest.loop(n) as j:
                    with nest.if_(b.ge(j, k)):
                        upper, lower = nest.load(out, [*at, k, j]), nest.load(rest, [j])
                        nest.store(out, [*at, k, j], b.add(b.mul(c, upper), b.mul(s, lower)))
                        nest.store(rest, [j], b.sub(b.mul(c, lower), b.mul(s, upper)))

    return in_dtype(b, b.nest([(r.shape, r.dtype)], body)[0], dtype)


rules.loops[cholesky_update_p] = _cholesky_update_loops
