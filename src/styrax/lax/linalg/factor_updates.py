"""Symmetric products, and updates of factorisations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from styrax.core.arrays.array import Array
from styrax.core.programs import rules
from styrax.core.programs.primitive import Primitive
from styrax.core.types.avals import ShapedArray
from styrax.core.types.typing import ArrayLike

from ..elementwise.arithmetic import add, mul
from ..elementwise.families import scalar_like
from .matrices import (
    batch_in_front,
    check_batch_ranks,
    check_inexact,
    check_rank,
    check_square,
    each_matrix,
    in_dtype,
    is_complex,
    matmul,
    result_types,
    swapped,
    working,
)

if TYPE_CHECKING:
    from styrax.core.programs.lowering import Builder

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
