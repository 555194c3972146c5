"""Solving with triangular matrices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from styrax.core.arrays.array import Array
from styrax.core.programs import rules
from styrax.core.programs.primitive import Primitive
from styrax.core.tracing.trace import get_aval
from styrax.core.types.avals import ShapedArray
from styrax.core.types.typing import ArrayLike
from styrax.transforms import ad, batching

from .. import factor_rules, sharding_rules
from ..elementwise.arithmetic import neg
from ..elementwise.functions import conj
from ..shaping.broadcasting import expand_dims, squeeze
from ..shaping.reshaping import reshape, transpose
from . import by_blocks, in_lanes
from .matrices import (
    Routine,
    band,
    check_inexact,
    check_same_dtypes,
    each_matrix,
    in_dtype,
    is_complex,
    matmul,
    place_of,
    result_types,
    shape_of,
    swapped,
    working,
)

if TYPE_CHECKING:
    from styrax.core.programs.lowering import Builder, Nest

triangular_solve_p = Primitive("triangular_solve")
triangular_solve_p.declare(sharding=sharding_rules.behind_batch(), factors=factor_rules.behind_batch())

UNROLLED = 8  # triangles up to this size are solved without loops over them
SHORTEST = 64  # right-hand sides that are worth two calls


@result_types(triangular_solve_p)
def _triangular_solve_abstract(a: ShapedArray, b: ShapedArray, *, left_side: bool, **_: Any) -> ShapedArray:
    check_inexact("triangular_solve", a, b)
    check_same_dtypes("triangular_solve", a, b)
    if len(a.shape) < 2:
        raise TypeError(f"triangular_solve requires a.ndim to be at least 2, got {len(a.shape)}.")
    if len(b.shape) < 2:
        raise TypeError(f"triangular_solve requires b.ndim to be at least 2, got {len(b.shape)}.")
    if a.shape[-1] != a.shape[-2]:
        raise ValueError(f"The first input to triangular_solve must be a square matrix. Got shape {a.shape}.")
    common = b.shape[-2] if left_side else b.shape[-1]
    if a.shape[:-2] != b.shape[:-2] or a.shape[-1] != common:
        raise ValueError(f"Incompatible shapes for arguments to triangular_solve: {a.shape} and {b.shape}.")
    return ShapedArray(b.shape, b.dtype)


def triangular_solve(a: ArrayLike, b: ArrayLike, *, left_side: bool = False, lower: bool = False,
                     transpose_a: bool = False, conjugate_a: bool = False, unit_diagonal: bool = False) -> Array:
    """Solves `op(a) @ x == b`, or `x @ op(a) == b`, for triangular matrices `a`.

    Args:
      a: matrices of shape `[..., n, n]`, of which one triangle counts.
      b: right-hand sides: `[..., n, k]` for `left_side`, else `[..., k, n]`. A vector `[..., n]` is
        taken for one column or row.
      left_side: whether `op(a)` stands on the left of `x`.
      lower: which triangle counts.
      transpose_a, conjugate_a: whether `op` transposes, conjugates.
      unit_diagonal: whether the diagonal is taken for ones.

    Returns:
      `x`, of the shape of `b`.

    Raises:
      TypeError: for dtypes that are not inexact or differ.
      ValueError: for shapes that do not fit.
    """
    conjugate_a = conjugate_a and is_complex(get_aval(a).dtype)
    vector = len(shape_of(b)) == len(shape_of(a)) - 1
    axis = len(shape_of(b)) if left_side else len(shape_of(b)) - 1
    if vector:
        b = expand_dims(b, (axis,))
    out = triangular_solve_p.bind(a, b, left_side=left_side, lower=lower, transpose_a=transpose_a,
                                  conjugate_a=conjugate_a, unit_diagonal=unit_diagonal)
    return squeeze(out, (axis,)) if vector else out


# --- derivatives


def _jvp_of_a(tangent: Any, out: Any, a: Any, b: Any, *, left_side: bool, lower: bool, transpose_a: bool,
              conjugate_a: bool, unit_diagonal: bool) -> Any:
    """op(a) x = b gives op(a) dx = -op(da) x."""
    rows, columns = shape_of(b)[-2:]
    off = 1 if unit_diagonal else 0
    tangent = neg(band(tangent, lower, -off if lower else off))
    if transpose_a:
        tangent = swapped(tangent)
    if conjugate_a:
        tangent = conj(tangent)

    def solve(rhs: Any) -> Any:
        return triangular_solve(a, rhs, left_side=left_side, lower=lower, transpose_a=transpose_a,
                                conjugate_a=conjugate_a, unit_diagonal=unit_diagonal)

    # whichever order has the smaller solve
    if left_side:
        return solve(matmul(tangent, out)) if rows > columns else matmul(solve(tangent), out)
    return solve(matmul(out, tangent)) if rows < columns else matmul(out, solve(tangent))


def _jvp_of_b(tangent: Any, out: Any, a: Any, b: Any, **flags: Any) -> Any:
    return triangular_solve_p.bind(a, tangent, **flags)


ad.defjvp2(triangular_solve_p, _jvp_of_a, _jvp_of_b)


def _triangular_solve_transpose(ct: Any, a: Any, b: Any, *, transpose_a: bool, **flags: Any) -> list[Any]:
    assert not ad.is_undefined_primal(a) and ad.is_undefined_primal(b)
    if type(ct) is ad.Zero:
        return [None, ad.Zero(b.aval)]
    return [None, triangular_solve_p.bind(a, ct, transpose_a=not transpose_a, **flags)]


rules.transposes[triangular_solve_p] = _triangular_solve_transpose


def _triangular_solve_batch(args: Sequence[Any], dims: Sequence[Any], *, left_side: bool, **flags: Any
                            ) -> tuple[Any, int]:
    a, b = args
    a_dim, b_dim = dims
    if a_dim is None and len(shape_of(a)) == 2:
        # One matrix for all: the batch becomes more right-hand sides of one solve.
        size = shape_of(b)[b_dim]
        front = 2 if left_side else 1
        b = batching.moveaxis(b, b_dim, front)
        rows = shape_of(b)
        flat = (rows[0], rows[1] * size) if left_side else (rows[0] * size, rows[2])
        out = triangular_solve_p.bind(a, reshape(b, flat), left_side=left_side, **flags)
        return transpose(reshape(out, rows), (2, 0, 1) if left_side else (1, 0, 2)), 0
    size = next(shape_of(x)[d] for x, d in zip(args, dims, strict=True) if d is not None)
    a, b = batching.all_at_front((a, b), (a_dim, b_dim), size)
    return triangular_solve_p.bind(a, b, left_side=left_side, **flags), 0


rules.batchers[triangular_solve_p] = _triangular_solve_batch


# --- lowerings


def _triangular_solve_loops(b: Builder, a: Any, rhs: Any, *, left_side: bool, lower: bool, transpose_a: bool,
                            conjugate_a: bool, unit_diagonal: bool) -> Any:
    flags = {"left_side": left_side, "lower": lower, "transpose_a": transpose_a, "conjugate_a": conjugate_a,
             "unit_diagonal": unit_diagonal}
    *batch, _, size = a.shape
    longer = [d for d, n in enumerate(batch) if not (isinstance(n, int) and n == 1)]
    repeated = [d for d in longer if b.repeats(a, [d])]
    if repeated and (len(repeated) < len(longer) or not (isinstance(size, int) and size <= UNROLLED)):
        return _with_fewer_matrices(b, a, rhs, repeated, left_side, flags)
    dtype = rhs.dtype
    a, rhs = working(b, a), working(b, rhs)
    width = in_lanes.width_for(b, a) if isinstance(rhs.shape[-1], int) and isinstance(rhs.shape[-2], int) else 0
    if width and math.prod(rhs.shape[-2:]) <= in_lanes.LARGEST ** 2:
        out = _by_lanes(b, a, rhs, width, left_side, lower != (transpose_a == left_side), transpose_a == left_side,
                        unit_diagonal)
    elif isinstance(size, int) and size <= UNROLLED:
        out = _by_substitution(b, a, rhs, size, left_side, lower, transpose_a, conjugate_a, unit_diagonal)
    else:
        out = _by_blas(b, a, rhs, left_side, lower, transpose_a, conjugate_a, unit_diagonal)
    return in_dtype(b, out, dtype)


def _with_fewer_matrices(b: Builder, a: Any, rhs: Any, repeated: Sequence[int], left_side: bool,
                         flags: dict[str, bool]) -> Any:
    """A batch with the same matrices along some dimensions: their right-hand sides are those of one."""
    *batch, rows, columns = rhs.shape
    rank, count = len(batch), b.product([batch[d] for d in repeated])
    kept = [d for d in range(rank) if d not in repeated]

    def matrix(place: Sequence[Any]) -> Any:
        among = iter(place)
        return a.at([b.int(0) if d in repeated else next(among) for d in range(rank + 2)])

    fewer = b.value([a.shape[d] for d in (*kept, rank, rank + 1)], a.dtype, matrix)
    # what repeats comes in front of the columns, or of the rows
    order = [*kept, rank, *repeated, rank + 1] if left_side else [*kept, *repeated, rank, rank + 1]
    sides = b.value([rhs.shape[d] for d in order], rhs.dtype,
                    lambda place: rhs.at([place[order.index(d)] for d in range(rank + 2)]))
    flat = (rows, b.product((count, columns))) if left_side else (b.product((count, rows)), columns)
    solved = _triangular_solve_loops(b, fewer, b.reshaped(sides, (*[batch[d] for d in kept], *flat)), **flags)
    apart = b.reshaped(solved, sides.shape)
    return b.value(rhs.shape, rhs.dtype, lambda place: apart.at([place[d] for d in order]))


def _by_lanes(b: Builder, a: Any, rhs: Any, width: int, left_side: bool, ascending: bool, flipped: bool,
              unit_diagonal: bool) -> Any:
    """x op(a) = rhs is op(a)ᵀ xᵀ = rhsᵀ: `flipped` says whether a is turned."""
    matrices, sides = in_lanes.flat(b, a), in_lanes.flat(b, rhs)
    count = matrices.shape[0]
    size, others = in_lanes.known((a.shape[-1], rhs.shape[-1] if left_side else rhs.shape[-2]))

    def body(n: Nest, outs: Sequence[Any], ins: Sequence[Any]) -> None:
        with in_lanes.each_block(b, n, count, width, rhs.dtype) as block:
            triangle = "" if unit_diagonal else "lower" if ascending != flipped else "upper"
            factor, x = block.load(matrices, triangle), block.load(sides)
            in_lanes.substitution(
                block, lambda i, j: in_lanes.Entry(factor, *((j, i) if flipped else (i, j))),
                lambda i, c: (i, c) if left_side else (c, i), x, size, others, ascending, unit_diagonal)
            block.keep(b.reshaped(outs[0], sides.shape), x)

    return b.nest([(rhs.shape, rhs.dtype)], body)[0]


def _by_substitution(b: Builder, a: Any, rhs: Any, size: int, left_side: bool, lower: bool, transpose_a: bool,
                     conjugate_a: bool, unit_diagonal: bool) -> Any:
    *batch, rows, columns = rhs.shape
    others = columns if left_side else rows
    # x op(a) = rhs is op(a)ᵀ xᵀ = rhsᵀ
    flipped = transpose_a == left_side
    ascending = lower != flipped

    def body(n: Nest, outs: Sequence[Any], ins: Sequence[Any]) -> None:
        (out,) = outs
        with each_matrix(n, batch) as at:
            def entry(i: int, j: int) -> Any:
                index = (j, i) if flipped else (i, j)
                e = a.at([*at, *map(b.index, index)])
                return b.conj(e) if conjugate_a else e

            with n.loop(others) as other:
                solved: dict[int, Any] = {}
                for i in range(size) if ascending else reversed(range(size)):
                    place = [*at, b.index(i), other] if left_side else [*at, other, b.index(i)]
                    total = rhs.at(place)
                    for k, x in solved.items():
                        total = b.sub(total, b.mul(entry(i, k), x))
                    if not unit_diagonal:
                        total = b.div(total, entry(i, i))
                    solved[i] = n.let(total)
                    n.store(out, place, solved[i])

    return b.nest([(rhs.shape, rhs.dtype)], body)[0]


def _by_blas(b: Builder, a: Any, rhs: Any, left_side: bool, lower: bool, transpose_a: bool, conjugate_a: bool,
             unit_diagonal: bool) -> Any:
    if conjugate_a and not transpose_a:
        plain = a
        a = b.value(plain.shape, plain.dtype, lambda index: b.conj(plain.at(index)))
    *batch, rows, columns = rhs.shape
    size = a.shape[-1]
    others = columns if left_side else rows
    # BLAS sees transposes: sides and triangles change places
    side, triangle = ("R" if left_side else "L"), ("U" if lower else "L")
    operation = "N" if not transpose_a else "C" if conjugate_a else "T"
    diagonal = "U" if unit_diagonal else "N"
    whole = math.prod(batch) != 1 or not isinstance(others, int) or others < SHORTEST
    panel = 0 if whole else by_blocks.panel(others)

    def body(n: Nest, outs: Sequence[Any], ins: Sequence[Any]) -> None:
        (out,), (matrix,) = outs, ins
        trsm = Routine(b, n, "trsm", rhs.dtype, library="blas")
        one = ("&", b.const(1, rhs.dtype))
        # BLAS refuses rows without elements
        width_of = [("&", b.cast(b.max(b.index(k), b.index(1)), np.dtype(np.int32))) for k in (size, columns)]

        def solve(at: list[Any], start: Any, count: Any) -> None:
            pointer, offset = place_of(b, out, at)
            offset = b.add(offset, start if left_side else b.mul(start, b.index(size)))
            width = ("&", b.cast(b.index(count), np.dtype(np.int32)))
            dims = (width, size) if left_side else (size, width)
            trsm(side, triangle, operation, diagonal, *dims, one, place_of(b, matrix, at), width_of[0],
                 (pointer, offset), width_of[1], reads=[matrix], writes=[out])

        with each_matrix(n, batch) as at:
            if whole:
                solve(at, b.index(0), others)
            else:
                with n.loop(-(-others // panel), parallel=True) as p:
                    start = b.mul(p, b.index(panel))
                    solve(at, start, b.min(b.index(panel), b.sub(b.index(others), start)))

    return b.nest([(rhs.shape, rhs.dtype, rhs)], body, inputs=[a])[0]


rules.loops[triangular_solve_p] = _triangular_solve_loops


def _triangular_solve_stablehlo(m: Any, a: Any, rhs: Any, *, left_side: bool, lower: bool, transpose_a: bool,
                                conjugate_a: bool, unit_diagonal: bool) -> Any:
    if conjugate_a and not transpose_a:
        a = m.call_traced(conj, a)[0]
    operation = "NO_TRANSPOSE" if not transpose_a else "ADJOINT" if conjugate_a else "TRANSPOSE"
    flags = (("left_side", left_side), ("lower", lower), ("unit_diagonal", unit_diagonal))
    attributes = ", ".join(f"{name} = {str(bool(flag)).lower()}" for name, flag in flags)
    return m.op("stablehlo.triangular_solve", [a, rhs], [m.avals_out[0]],
                attributes=f"{attributes}, transpose_a = #stablehlo<transpose {operation}>")


rules.stablehlos[triangular_solve_p] = _triangular_solve_stablehlo
