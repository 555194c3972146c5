"""LU factorisation with row exchanges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from styrax.core.arrays.array import Array
from styrax.core.programs import rules
from styrax.core.programs.primitive import Primitive, multiple_results
from styrax.core.tracing.trace import get_aval
from styrax.core.types.avals import ShapedArray
from styrax.core.types.index_type import INDEX
from styrax.core.types.typing import ArrayLike
from styrax.transforms import ad

from ..elementwise.arithmetic import add
from ..indexing.gather import take_along
from ..indexing.static_slicing import slice_in_dim
from ..shaping.broadcasting import broadcast_in_dim
from ..shaping.filling import pad
from . import by_blocks, in_lanes
from .matrices import (
    INT32,
    Routine,
    band,
    batch_in_front,
    by_columns,
    check_inexact,
    check_rank,
    each_matrix,
    identity,
    in_dtype,
    matmul,
    place_of,
    result_types,
    shape_of,
    working,
)
from .triangular import triangular_solve

if TYPE_CHECKING:
    from styrax.core.programs.lowering import Builder, Nest

lu_p = multiple_results("lu")
batch_in_front(lu_p)


@result_types(lu_p)
def _lu_abstract(x: ShapedArray) -> list[ShapedArray]:
    check_inexact("lu", x)
    check_rank("lu", x)
    *batch, m, n = x.shape
    return [ShapedArray(x.shape, x.dtype), ShapedArray((*batch, min(m, n)), INT32), ShapedArray((*batch, m), INT32)]


def lu(x: ArrayLike) -> tuple[Array, Array, Array]:
    """The factorisation `p @ l @ u` of matrices, with rows exchanged for stability.

    Args:
      x: matrices of shape `[..., m, n]`.

    Returns:
      `(lu, pivots, permutation)`: both triangular factors in one array of the shape of `x` (the diagonal
      of ones of `l` is left out); for each step the row exchanged with; and the rows of `x` in the order
      in which the factors give them.
    """
    return tuple(lu_p.bind(x))


def _exchanges(b: Builder, n: Any, pivots: Any, permutation: Any, at: list[Any], steps: int, size: int) -> None:
    """Fills in the permutation that a sequence of exchanges makes."""
    with n.loop(size) as i:
        n.store(permutation, [*at, i], b.cast(i, INT32))
    with n.loop(steps) as i:
        j = b.cast(n.load(pivots, [*at, i]), INDEX)
        here, there = n.load(permutation, [*at, i]), n.load(permutation, [*at, j])
        n.store(permutation, [*at, i], there)
        n.store(permutation, [*at, j], here)


def _lu_loops(b: Builder, x: Any) -> list[Any]:
    dtype = x.dtype
    x = working(b, x)
    *batch, rows, columns = x.shape
    steps = min(rows, columns)
    width = in_lanes.width_for(b, x)
    if width:
        factors, pivots, permutation = _by_lanes(b, x, steps, width)
        return [in_dtype(b, factors, dtype), pivots, permutation]

    def body(n: Nest, outs: Sequence[Any], ins: Sequence[Any]) -> None:
        factors, pivots, permutation = outs
        with each_matrix(n, batch) as at:
            if by_blocks.pays(batch, rows, columns):
                by_blocks.lu(b, n, factors, pivots, at)
            elif steps:
                info = n.scratch((1,), INT32)
                Routine(b, n, "getrf", x.dtype)(rows, columns, place_of(b, factors, at), rows,
                                                place_of(b, pivots, at), info, writes=[factors, pivots, info])
            with n.loop(steps) as i:
                n.store(pivots, [*at, i], b.sub(n.load(pivots, [*at, i]), b.const(1, INT32)))
            _exchanges(b, n, pivots, permutation, at, steps, rows)

    transposed = by_columns(b, x)
    factors, pivots, permutation = b.nest(
        [(transposed.shape, x.dtype, transposed), ((*batch, steps), INT32), ((*batch, rows), INT32)], body)
    return [in_dtype(b, by_columns(b, factors), dtype), pivots, permutation]


def _by_lanes(b: Builder, x: Any, steps: int, width: int) -> list[Any]:
    *batch, rows, columns = x.shape
    matrices = in_lanes.flat(b, x)
    count = matrices.shape[0]

    def body(n: Nest, outs: Sequence[Any], ins: Sequence[Any]) -> None:
        with in_lanes.each_block(b, n, count, width, x.dtype) as block:
            work = block.load(matrices)
            pivots, order = in_lanes.lu(block, work, rows, columns)
            for out, found in zip(outs, (work, pivots, order), strict=True):
                block.keep(b.reshaped(out, (count, *found.shape[:-1])), found)

    return b.nest([(x.shape, x.dtype), ((*batch, steps), INT32), ((*batch, rows), INT32)], body)


rules.loops[lu_p] = _lu_loops


def _square(x: Any, size: int) -> Any:
    """Zeros below and to the right, up to a square matrix."""
    shape = shape_of(x)
    config = [(0, 0, 0)] * (len(shape) - 2) + [(0, size - shape[-2], 0), (0, size - shape[-1], 0)]
    return pad(x, np.zeros((), get_aval(x).dtype), config)


def _lu_jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    (x,), (tangent,) = primals, tangents
    factors, pivots, permutation = lu_p.bind(x)
    zeros = [ad.Zero.from_primal_value(v) for v in (pivots, permutation)]
    if type(tangent) is ad.Zero:
        return [factors, pivots, permutation], [ad.Zero.from_primal_value(factors), *zeros]
    *batch, m, n = shape_of(x)
    k = min(m, n)
    rank = len(batch) + 2
    dtype = get_aval(x).dtype
    order = broadcast_in_dim(permutation, (*batch, m, n), tuple(range(rank - 1)))
    moved = take_along(tangent, order, rank - 2)
    ones = np.broadcast_to(identity(m, dtype), (*batch, m, m))
    lower = add(_square(band(slice_in_dim(factors, 0, k, axis=rank - 1), True, -1), m), ones)
    rest = np.zeros((n, n), dtype)
    rest[range(k, n), range(k, n)] = 1
    upper = add(_square(band(slice_in_dim(factors, 0, k, axis=rank - 2), False), n),
                np.broadcast_to(rest, (*batch, n, n)))
    # l⁻¹ dx u⁻¹: its strict lower part is l⁻¹ dl, the rest du u⁻¹
    inner = triangular_solve(lower, moved, left_side=True, lower=True, unit_diagonal=True)
    inner = triangular_solve(upper, inner, left_side=False, lower=False)
    slope = add(matmul(lower, band(inner, True, -1)), matmul(band(inner, False), upper))
    return [factors, pivots, permutation], [slope, *zeros]


rules.jvps[lu_p] = _lu_jvp

# --- pivots

lu_pivots_to_permutation_p = Primitive("lu_pivots_to_permutation")
batch_in_front(lu_pivots_to_permutation_p, 1)
ad.defjvp_zero(lu_pivots_to_permutation_p)


@result_types(lu_pivots_to_permutation_p)
def _pivots_abstract(pivots: ShapedArray, *, permutation_size: int) -> ShapedArray:
    if pivots.dtype != INT32:
        raise TypeError(f"lu_pivots_to_permutation does not accept dtype {pivots.dtype} at position 0. Accepted dtypes "
                        "at position 0 are subtypes of int32.")
    if not pivots.shape:
        raise TypeError(f"Input 0 to lu_pivots_to_permutation must have rank at least 1, but got shape={pivots.shape}")
    if permutation_size < pivots.shape[-1]:
        raise ValueError(f"Output permutation size {permutation_size} has to exceed the trailing dimension of the "
                         f"pivots. Got pivots size {pivots.shape[-1]}")
    return ShapedArray((*pivots.shape[:-1], permutation_size), INT32)


def lu_pivots_to_permutation(pivots: ArrayLike, permutation_size: int) -> Array:
    """The permutation that exchanges of rows make, as `lu` gives it.

    Args:
      pivots: int32 array of shape `[..., k]`: row `i` is exchanged with row `pivots[i]`, in order.
      permutation_size: number of rows.

    Returns:
      an int32 array of shape `[..., permutation_size]`.
    """
    return lu_pivots_to_permutation_p.bind(pivots, permutation_size=int(permutation_size))


def _pivots_loops(b: Builder, pivots: Any, *, permutation_size: int) -> Any:
    *batch, steps = pivots.shape

    def body(n: Nest, outs: Sequence[Any], ins: Sequence[Any]) -> None:
        with each_matrix(n, batch) as at:
            _exchanges(b, n, ins[0], outs[0], at, steps, permutation_size)

    return b.nest([((*batch, permutation_size), INT32)], body, inputs=[pivots])[0]


rules.loops[lu_pivots_to_permutation_p] = _pivots_loops
