"""Arrays joined and cut: concatenate, stack, unstack, split."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from styrax.core.arrays.array import Array
from styrax.core.programs import rules
from styrax.core.programs.attributes import i64_array
from styrax.core.programs.primitive import Primitive
from styrax.core.programs.traits import Part
from styrax.core.tracing.trace import get_aval
from styrax.core.types.avals import ShapedArray
from styrax.core.types.dims import larger
from styrax.core.types.physical import physicals
from styrax.core.types.typing import ArrayLike
from styrax.transforms import ad, batching

from .. import factor_rules, sharding_rules
from ..casting import as_array
from ..elementwise.families import check_same_dtypes, joined_vma, shape_of, standard_primitive
from .shapes import canonical_axis, canonical_shape, extent

if TYPE_CHECKING:
    from styrax.core.programs.lowering import Builder

# -- concatenate, stack, split, unstack ------------------------------------------------------------


def _concatenate_shape(*operands: Any, dimension: int) -> tuple:
    shapes = ", ".join(str(o.shape) for o in operands)
    first = operands[0]
    if any(o.ndim != first.ndim for o in operands):
        raise TypeError(f"Cannot concatenate arrays with different numbers of dimensions: got {shapes}.")
    if not 0 <= dimension < first.ndim:
        raise TypeError(f"concatenate dimension out of bounds: dimension {dimension} for shapes {shapes}.")
    for o in operands[1:]:
        if o.shape[:dimension] + o.shape[dimension + 1 :] != (
            first.shape[:dimension] + first.shape[dimension + 1 :]
        ):
            raise TypeError(
                "Cannot concatenate arrays with shapes that differ in dimensions other than the one being "
                f"concatenated: concatenating along dimension {dimension} for shapes {shapes}."
            )
    total = sum((o.shape[dimension] for o in operands[1:]), first.shape[dimension])
    return (*first.shape[:dimension], total, *first.shape[dimension + 1 :])


def _concatenate_dtype(*operands: Any, dimension: int) -> Any:
    check_same_dtypes("concatenate", operands, "concatenate")
    return operands[0].dtype


MANY = 8  # pieces, more of which are put into memory before they are read


def _concatenate_loops(b: Builder, *xs: Any, dimension: int) -> Any:
    starts, start = [], 0
    for x in xs:
        starts.append(start)
        start = start + x.shape[dimension]
    filled = [x.shape[dimension] != 0 or type(x.shape[dimension]) is not int for x in xs]
    pieces = [(x, s) for x, s, f in zip(xs, starts, filled, strict=True) if f] or [(xs[0], 0)]
    if len(pieces) > MANY:  # to find the piece of an element would take longer than to write all
        return b.joined(b.avals_out[0].shape, pieces, dimension)

    def at(index: Any) -> Any:
        return _guarded(b, pieces, index, dimension)

    return b.value(b.avals_out[0].shape, xs[0].dtype, at)


def _guarded(b: Builder, pieces: Sequence[tuple[Any, Any]], index: Sequence[Any], dimension: int) -> Any:
    """The element of the piece that an index falls in; every piece is read inside its bounds only."""
    i = index[dimension]
    value = None
    for k, (x, start) in enumerate(pieces):
        where = list(index)
        where[dimension] = b.sub(i, extent(b, start)) if k else i
        if len(pieces) == 1:
            return x.at(where)
        inside: Any = b.ge(i, extent(b, start)) if k else None
        if k + 1 < len(pieces):
            before = b.lt(i, extent(b, pieces[k + 1][1]))
            inside = before if inside is None else b.and_(inside, before)
        value = b.load_if(inside, x, where, b.const(0, x.dtype) if value is None else value)
    return value


def _makes_records(params: dict[str, Any], out: Any) -> bool:
    """Whether results are records, whose members are computed side by side, each once."""
    return (params["axis"] if "axis" in params else params["dimension"]) == len(out.shape) - 1


FEW, STRETCH = 4, 16  # loops that one is cut into at most, and elements that are worth one


def _are_long(avals: Sequence[ShapedArray], params: dict[str, Any]) -> bool:
    """Whether each of a few pieces fills vectors."""
    return len(avals) <= FEW and all(math.prod(x.shape[params["dimension"]:]) >= STRETCH for x in avals)


def _concatenate_hlo(m: Any, *xs: Any, dimension: int) -> Any:
    return m.op1("stablehlo.concatenate", xs, m.avals_out[0], f"dimension = {dimension} : i64")


concatenate_p = standard_primitive(
    "concatenate", _concatenate_shape, _concatenate_dtype, loops=_concatenate_loops, hlo=_concatenate_hlo
)
concatenate_p.declare(movement=True, pieces=_are_long, records=_makes_records, sharding=sharding_rules.concatenation,
                      factors=factor_rules.concatenation)


def _concatenate_transpose(ct: Any, *operands: Any, dimension: int) -> list[Any]:
    linear = [ad.is_undefined_primal(x) for x in operands]
    sizes = [(x.aval.shape if u else shape_of(x))[dimension] for x, u in zip(operands, linear, strict=True)]
    pieces = split(ct, sizes, dimension)
    return [piece if u else None for piece, u in zip(pieces, linear, strict=True)]


def _concatenate_batch(args: Any, dims: Any, *, dimension: int) -> Any:
    size = next(shape_of(x)[d] for x, d in zip(args, dims, strict=True) if d is not None)
    args = batching.all_at_front(args, dims, size)
    return concatenate(args, dimension + 1), 0


ad.deflinear2(concatenate_p, _concatenate_transpose)
rules.batchers[concatenate_p] = _concatenate_batch


def concatenate(operands: Array | Sequence[ArrayLike], dimension: int) -> Array:
    """Arrays joined along a dimension.

    Args:
      operands: arrays of one dtype, whose shapes differ in `dimension` at most.
      dimension: the dimension along which to join them, counted from the front.

    Returns:
      an array that holds all elements.

    Raises:
      ValueError: without arrays.
      TypeError: for shapes or dtypes that do not fit.

    Example:
      >>> import styrax as jax
      >>> import styrax.numpy as jnp
      >>> jax.lax.concatenate([jnp.zeros(2), jnp.ones(1)], 0)
      Array([0., 0., 1.], dtype=float32)
    """
    if len(operands) == 0:
        raise ValueError("concatenate requires a non-empty sequences of arrays")
    if len(operands) == 1:
        (only,) = operands
        if isinstance(get_aval(only), ShapedArray) and 0 <= dimension < len(shape_of(only)):
            return as_array(only)
    return concatenate_p.bind(*operands, dimension=operator.index(dimension))


def _stack_shape(*operands: Any, axis: int) -> tuple:
    first = operands[0].shape
    if any(o.shape != first for o in operands):
        raise ValueError(f"stack requires arrays of one shape, got {', '.join(str(o.shape) for o in operands)}.")
    return (*first[:axis], len(operands), *first[axis:])


def _stack_dtype(*operands: Any, axis: int) -> Any:
    check_same_dtypes("stack", operands, "stack")
    return operands[0].dtype


def _stack_loops(b: Builder, *xs: Any, axis: int) -> Any:
    if len(xs) > (MANY if axis == 0 else 2 * MANY):  # (across rows memory is written in small pieces)
        return b.joined(b.avals_out[0].shape, [(x, k) for k, x in enumerate(xs)], axis)
    return b.stacked(xs, axis)


def _stack_hlo(m: Any, *xs: Any, axis: int) -> Any:
    rows = [m.reshape(x, (*x.shape[:axis], 1, *x.shape[axis:])) for x in xs]
    return m.op1("stablehlo.concatenate", rows, m.avals_out[0], f"dimension = {axis} : i64")


stack_p = standard_primitive("stack", _stack_shape, _stack_dtype, loops=_stack_loops, hlo=_stack_hlo)
stack_p.declare(movement=True, records=_makes_records, sharding=sharding_rules.stack, factors=factor_rules.stack)


def _stack_transpose(ct: Any, *operands: Any, axis: int) -> list[Any]:
    rows = unstack(ct, axis)
    return [row if ad.is_undefined_primal(x) else None for x, row in zip(operands, rows, strict=True)]


def _stack_batch(args: Any, dims: Any, *, axis: int) -> Any:
    size = next(shape_of(x)[d] for x, d in zip(args, dims, strict=True) if d is not None)
    args = batching.all_at_front(args, dims, size)
    return stack(args, axis + 1), 0


ad.deflinear2(stack_p, _stack_transpose)
rules.batchers[stack_p] = _stack_batch


def stack(operands: Sequence[ArrayLike], axis: int = 0) -> Array:
    """Arrays of one shape and dtype joined along a new dimension.

    Args:
      operands: the arrays.
      axis: position of the new dimension in the result.

    Returns:
      an array of one more dimension.

    Raises:
      ValueError: without arrays, or for shapes that differ.
      TypeError: for dtypes that differ.
    """
    if not len(operands):
        raise ValueError("stack requires a non-empty sequence of arrays")
    axis = canonical_axis(axis, len(shape_of(operands[0])) + 1)
    return stack_p.bind(*operands, axis=axis)


def _cut(shape: Sequence[int], sizes: Sequence[int], axis: int) -> list[Part]:
    """The pieces of so many elements each that an array is cut into along a dimension."""
    ends = list(itertools.accumulate(sizes))
    return [Part([end - size if a == axis else 0 for a in range(len(shape))],
                 [end if a == axis else d for a, d in enumerate(shape)], None)
            for size, end in zip(sizes, ends, strict=True)]


unstack_p = Primitive("unstack", multiple_results=True)
unstack_p.declare(movement=True, sharding=sharding_rules.unstack, factors=factor_rules.unstack,
                  parts=lambda params, x: _cut(x.shape, [1] * x.shape[params["axis"]], params["axis"]))


@unstack_p.def_abstract_eval
def _unstack_avals(x: Any, *, axis: int) -> list[Any]:
    shape = (*x.shape[:axis], *x.shape[axis + 1 :])
    return [ShapedArray(shape, x.dtype, x.weak_type, vma=joined_vma((x,))) for _ in range(x.shape[axis])]


def _unstack_loops(b: Builder, x: Any, *, axis: int) -> list[Any]:
    return [b.member(x, axis, k) for k in range(len(b.avals_out))]


def _unstack_hlo(m: Any, x: Any, *, axis: int) -> list[Any]:
    rows = []
    for k, aval in enumerate(m.avals_out):
        start, limit = [0] * len(x.shape), list(x.shape)
        start[axis], limit[axis] = k, k + 1
        rows.append(m.reshape(slice_hlo(m, x, start, limit, [1] * len(start)), aval.shape))
    return rows


def slice_hlo(m: Any, x: Any, start: Sequence[int], limit: Sequence[int], strides: Sequence[int]) -> Any:
    shape = tuple(larger(0, (e - s + t - 1) // t) for s, e, t in zip(start, limit, strides, strict=True))
    if shape == tuple(x.shape) and all(t == 1 for t in strides):
        return x
    return m.op1(
        "stablehlo.slice",
        [x],
        ShapedArray(shape, x.dtype),
        f"start_indices = {i64_array(start)}, limit_indices = {i64_array(limit)}, strides = {i64_array(strides)}",
    )


rules.loops[unstack_p] = _unstack_loops
rules.stablehlos[unstack_p] = _unstack_hlo


def _unstack_transpose(cts: Any, x: Any, *, axis: int) -> list[Any]:
    if all(type(ct) is ad.Zero for ct in cts):
        return [ad.Zero(x.aval)]
    return [stack([ad.instantiate_zeros(ct) for ct in cts], axis)]


def _unstack_batch(args: Any, dims: Any, *, axis: int) -> Any:
    (x,), (dim,) = args, dims
    x = batching.moveaxis(x, dim, 0)
    rows = unstack_p.bind(x, axis=axis + 1)
    return rows, [0] * len(rows)


rules.jvps[unstack_p] = lambda primals, tangents, **params: ad.linear_jvp(
    unstack_p, primals, tangents, **params
)
rules.transposes[unstack_p] = _unstack_transpose
rules.batchers[unstack_p] = _unstack_batch


def unstack(x: ArrayLike, axis: int = 0) -> tuple[Array, ...]:
    """The slices of an array along a dimension, without that dimension.

    Args:
      x: an array.
      axis: the dimension.

    Returns:
      a tuple of as many arrays as the dimension is long.

    Raises:
      ValueError: for a dimension that does not exist.
    """
    axis = canonical_axis(axis, len(shape_of(x)))
    return tuple(unstack_p.bind(x, axis=axis))


split_p = Primitive("split", multiple_results=True)
split_p.declare(movement=True, sizes=frozenset(("sizes",)), sharding=sharding_rules.cut, factors=factor_rules.moved,
                parts=lambda params, x: _cut(x.shape, params["sizes"], params["axis"]))


@split_p.def_abstract_eval
def _split_avals(x: Any, *, sizes: tuple, axis: int) -> list[Any]:
    if any(s < 0 for s in sizes):
        raise ValueError(f"Sizes passed to split must be nonnegative, got {list(sizes)}")
    if sum(sizes) != x.shape[axis]:
        raise ValueError(
            f"Sum of sizes {sum(sizes)} must be equal to dimension {axis} of the operand shape {list(x.shape)}"
        )
    vma = joined_vma((x,))
    return [
        ShapedArray((*x.shape[:axis], s, *x.shape[axis + 1 :]), x.dtype, x.weak_type, vma=vma)
        for s in sizes
    ]


def _split_loops(b: Builder, x: Any, *, sizes: tuple, axis: int) -> list[Any]:
    out, start = [], 0
    for aval in b.avals_out:
        offset = extent(b, start)

        def at(index: Any, offset: Any = offset) -> Any:
            return x.at([b.add(i, offset) if d == axis else i for d, i in enumerate(index)])

        out.append(b.value(aval.shape, x.dtype, at))
        start = start + aval.shape[axis]
    return out


def _split_hlo(m: Any, x: Any, *, sizes: tuple, axis: int) -> list[Any]:
    out, at = [], 0
    for size in sizes:
        start, limit = [0] * len(x.shape), list(x.shape)
        start[axis], limit[axis] = at, at + size
        out.append(slice_hlo(m, x, start, limit, [1] * len(start)))
        at += size
    return out


def _split_transpose(cts: Any, x: Any, *, sizes: tuple, axis: int) -> list[Any]:
    if all(type(ct) is ad.Zero for ct in cts):
        return [ad.Zero(x.aval)]
    return [concatenate([ad.instantiate_zeros(ct) for ct in cts], axis)]


def _split_batch(args: Any, dims: Any, *, sizes: tuple, axis: int) -> Any:
    (x,), (dim,) = args, dims
    out = split_p.bind(x, sizes=sizes, axis=axis + (axis >= dim))
    return out, [dim] * len(out)


rules.loops[split_p] = _split_loops
rules.stablehlos[split_p] = _split_hlo
rules.jvps[split_p] = lambda primals, tangents, **params: ad.linear_jvp(
    split_p, primals, tangents, **params
)
rules.transposes[split_p] = _split_transpose
rules.batchers[split_p] = _split_batch


def split(operand: ArrayLike, sizes: Sequence[int], axis: int = 0) -> list[Array]:
    """An array cut into pieces along a dimension.

    Args:
      operand: an array.
      sizes: lengths of the pieces; their sum is the length of the dimension.
      axis: the dimension.

    Returns:
      a list of arrays.

    Raises:
      ValueError: for lengths that do not fit.
    """
    sizes = tuple(sizes)
    axis = canonical_axis(axis, len(shape_of(operand)))
    return split_p.bind(operand, sizes=canonical_shape(sizes), axis=axis)


physicals[concatenate_p] = lambda c, *xs, dimension: concatenate(xs, dimension)
physicals[stack_p] = lambda c, *xs, axis: stack(xs, axis)
physicals[unstack_p] = lambda c, x, *, axis: unstack_p.bind(x, axis=axis)
physicals[split_p] = lambda c, x, *, sizes, axis: split(x, sizes, axis)
