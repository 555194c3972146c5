"""Elements in other orders and shapes: reshape, transpose, reverse, tile.

On the CPU they are index arithmetic, never copies of their own.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from styrax.core.arrays.array import Array
from styrax.core.arrays.explicit import with_mapped_axis
from styrax.core.arrays.out_shardings import result_sharding
from styrax.core.programs import rules
from styrax.core.tracing.trace import get_aval
from styrax.core.types.avals import ShapedArray
from styrax.core.types.dims import surely_differ
from styrax.core.types.physical import physicals
from styrax.core.types.typing import ArrayLike, Shape, ShardingLike
from styrax.transforms import ad, batching

from .. import factor_rules, sharding_rules
from ..casting import as_array
from ..elementwise.families import first_dtype, shape_of, standard_primitive
from .broadcasting import left_to_sum, reduce_sum_over, trailing
from .shapes import canonical_shape, check_shape, extent, is_one, size_of

if TYPE_CHECKING:
    from styrax.core.programs.lowering import Builder, Value

# -- reshape ---------------------------------------------------------------------------------------


def _reshape_shape(x: Any, *, new_sizes: tuple, dimensions: Any, sharding: Any) -> tuple:
    if any(d < 0 for d in new_sizes):
        raise TypeError(f"reshape new_sizes must all be positive, got {new_sizes}.")
    if surely_differ(size_of(x.shape), size_of(new_sizes)):
        raise TypeError(
            f"reshape total size must be unchanged, got new_sizes {new_sizes} (of total size "
            f"{size_of(new_sizes)}) for shape {x.shape} (of total size {size_of(x.shape)})."
        )
    if dimensions is not None and sorted(dimensions) != list(range(x.ndim)):
        raise TypeError(
            "reshape dimensions must be a permutation of operand dimensions, got dimensions "
            f"{dimensions} for shape {x.shape}."
        )
    return new_sizes


def _reshape_groups(old: Sequence[Any], new: Sequence[Any]) -> list[tuple[range, range]]:
    """Runs of dimensions of both shapes that hold the same elements, as short as can be told."""
    groups, i, j = [], 0, 0
    while i < len(old) or j < len(new):
        i0, j0 = i, j
        left, right = 1, 1
        if i < len(old):
            left, i = old[i], i + 1
        if j < len(new):
            right, j = new[j], j + 1
        while left != right:
            concrete = type(left) is int and type(right) is int
            if i < len(old) and (j >= len(new) or not concrete or left < right):
                left, i = left * old[i], i + 1
            elif j < len(new):
                right, j = right * new[j], j + 1
            else:
                return [(range(len(old)), range(len(new)))]
        groups.append((range(i0, i), range(j0, j)))
    return groups


def reshaped_reader(b: Builder, x: Any, shape: Sequence[Any]) -> Any:
    """How an array is read at an index of its reshaped form: flatten runs of dimensions, cut them anew."""
    if 0 in x.shape:
        return lambda index: x.at([b.index(0)] * len(x.shape))
    groups = _reshape_groups(x.shape, shape)

    def at(index: Any) -> Any:
        where: list[Any] = [None] * len(x.shape)
        for old_dims, new_dims in groups:
            for d in old_dims:
                if is_one(x.shape[d]):
                    where[d] = b.index(0)
            olds = [d for d in old_dims if not is_one(x.shape[d])]
            news = [d for d in new_dims if not is_one(shape[d])]
            if not olds:
                continue
            if len(olds) == len(news) == 1:
                where[olds[0]] = index[news[0]]
                continue
            flat = index[news[0]]
            for d in news[1:]:
                flat = b.add(b.mul(flat, extent(b, shape[d])), index[d])
            for d in reversed(olds[1:]):
                size = extent(b, x.shape[d])
                where[d] = b.rem(flat, size)
                flat = b.div(flat, size)
            where[olds[0]] = flat
        return x.at(where)

    return at


def _reshape_loops(b: Builder, x: Any, *, new_sizes: tuple, dimensions: Any, sharding: Any) -> Any:
    if dimensions is not None:
        source, order = x, dimensions
        x = b.value(
            tuple(source.shape[d] for d in order), x.dtype, lambda i: source.at(_unpermuted(i, order))
        )
    shape = b.avals_out[0].shape
    condition = getattr(x, "condition", None)
    if condition is not None:
        return b.factors(b.value(shape, condition.dtype, reshaped_reader(b, condition, shape)), x.dtype)
    return b.value(shape, x.dtype, reshaped_reader(b, x, shape), flat=x)


def _unpermuted(index: Sequence[Any], permutation: Sequence[int]) -> list[Any]:
    where: list[Any] = [None] * len(permutation)
    for i, d in zip(index, permutation, strict=True):
        where[d] = i
    return where


def _reshape_hlo(m: Any, x: Any, *, new_sizes: tuple, dimensions: Any, sharding: Any) -> Any:
    if dimensions is not None:
        x = _transpose_hlo_op(m, x, dimensions)
    return m.reshape(x, new_sizes)


reshape_p = standard_primitive(
    "reshape", _reshape_shape, first_dtype, loops=_reshape_loops, hlo=_reshape_hlo
)
reshape_p.declare(movement=True, ordered=lambda params: params["dimensions"] is None,
                  sizes=frozenset(("new_sizes",)),
                  sharding=sharding_rules.given("sharding", sharding_rules.reshape), factors=factor_rules.reshape)


def _reshape_transpose(ct: Any, x: Any, *, new_sizes: tuple, dimensions: Any, sharding: Any) -> list[Any]:
    shape = x.aval.shape
    if dimensions is None:
        return [reshape(ct, shape, out_sharding=x.aval.cotangent_sharding)]
    back = reshape(ct, [shape[d] for d in dimensions])
    return [transpose(back, np.argsort(dimensions).tolist())]


def _reshape_batch(args: Any, dims: Any, *, new_sizes: tuple, dimensions: Any, sharding: Any) -> Any:
    (x,), (dim,) = args, dims
    x = batching.moveaxis(x, dim, 0)
    if dimensions is not None:
        dimensions = (0, *(d + 1 for d in dimensions))
    told = with_mapped_axis(sharding, 0, get_aval(x), 0)
    return reshape(x, (shape_of(x)[0], *new_sizes), dimensions, out_sharding=told), 0


ad.deflinear2(reshape_p, _reshape_transpose)
rules.batchers[reshape_p] = _reshape_batch


def reshape(operand: ArrayLike, new_sizes: Shape, dimensions: Sequence[int] | None = None, *,
            out_sharding: ShardingLike | None = None) -> Array:
    """The same elements, in row-major order, in another shape.

    Args:
      operand: an array.
      new_sizes: the new shape, of the same total size.
      dimensions: order in which to read the dimensions of `operand`; by default as they are.
      out_sharding: sharding of the result.

    Returns:
      an array of shape `new_sizes`.

    Raises:
      TypeError: for a shape of another size.

    Example:
      >>> import styrax as jax
      >>> import styrax.numpy as jnp
      >>> jax.lax.reshape(jnp.arange(4), (2, 2))
      Array([[0, 1],
             [2, 3]], dtype=int32)
    """
    new_sizes = canonical_shape(new_sizes)
    shape = shape_of(operand)
    if dimensions is not None:
        dimensions = tuple(map(operator.index, dimensions))
    same_order = dimensions is None or dimensions == tuple(range(len(shape)))
    if shape and shape == new_sizes and same_order and out_sharding is None:
        return as_array(operand)
    sharding = None if out_sharding is None else result_sharding(out_sharding)
    if sharding is not None:
        _check_sums(get_aval(operand), sharding)
    return reshape_p.bind(
        operand, new_sizes=new_sizes, dimensions=None if same_order else dimensions, sharding=sharding)


def _check_sums(operand: Any, sharding: Any) -> None:
    """Raises ValueError for a sharding with sums along other mesh axes than the operand's."""
    given, wanted = (getattr(s, "spec", s) for s in (operand.given_sharding, sharding))
    for kind in ("unreduced", "reduced"):
        own: frozenset[Any] = frozenset() if given is None else getattr(given, kind)
        asked = getattr(wanted, kind, own)
        if asked != own:
            raise ValueError(
                f"out_sharding passed to reshape must be {kind} over the same mesh axes as operand. Got out_sharding: "
                f"{wanted} and operand type: {operand.str_short(True)}" if own else
                f"out_sharding passed to `reshape` cannot contain {kind} axes. Got {sharding}")


def collapse(operand: Array, start_dimension: int, stop_dimension: int | None = None) -> Array:
    """The array with a range of dimensions made one.

    Args:
      operand: an array.
      start_dimension: the first of them; negative ones count from the end.
      stop_dimension: the one after the last; None for the end.

    Returns:
      an array of the elements of `operand`; an empty range adds a dimension of size 1.

    Raises:
      ValueError: for a range that ends before it starts.
    """
    shape = operand.shape
    start, stop, _ = slice(start_dimension, stop_dimension).indices(len(shape))
    if stop < start:
        raise ValueError(
            f"Invalid dimension range passed to collapse: {shape}[{start_dimension}:{stop_dimension}]"
        )
    return reshape(operand, (*shape[:start], size_of(shape[start:stop]), *shape[stop:]))


# -- transpose, rev --------------------------------------------------------------------------------


def _transpose_shape(x: Any, *, permutation: tuple) -> tuple:
    if sorted(permutation) != list(range(x.ndim)):
        raise TypeError(
            "transpose permutation isn't a permutation of operand dimensions, got permutation "
            f"{permutation} for operand shape {x.shape}."
        )
    return tuple(x.shape[d] for d in permutation)


def _transpose_hlo_op(m: Any, x: Any, permutation: Sequence[int]) -> Any:
    from_shape = x.shape
    aval = ShapedArray(tuple(from_shape[d] for d in permutation), x.dtype)
    text = ", ".join(map(str, permutation))
    attribute = f"permutation = array<i64: {text}>" if permutation else "permutation = array<i64>"
    return m.op1("stablehlo.transpose", [x], aval, attribute)


def _transpose_loops(b: Builder, x: Value, *, permutation: tuple[int, ...]) -> Value:
    return b.value(b.avals_out[0].shape, x.dtype, lambda index: x.at(_unpermuted(index, permutation)))


transpose_p = standard_primitive(
    "transpose",
    _transpose_shape,
    first_dtype,
    loops=_transpose_loops,
    hlo=lambda m, x, *, permutation: _transpose_hlo_op(m, x, permutation),
)
transpose_p.declare(movement=True, permutation=lambda params: params["permutation"],
                    sharding=sharding_rules.transpose, factors=factor_rules.transpose)
ad.deflinear2(
    transpose_p, lambda ct, x, *, permutation: [transpose(ct, np.argsort(permutation).tolist())]
)


def _transpose_batch(args: Any, dims: Any, *, permutation: tuple) -> Any:
    (x,), (dim,) = args, dims
    return transpose(x, (dim, *(d + (d >= dim) for d in permutation))), 0


rules.batchers[transpose_p] = _transpose_batch


def transpose(operand: ArrayLike, permutation: Sequence[int]) -> Array:
    """The array with its dimensions in another order.

    Args:
      operand: an array.
      permutation: for each dimension of the result, the dimension of `operand` it is.

    Returns:
      an array with the dimensions permuted.

    Raises:
      TypeError: if `permutation` is none.

    Example:
      >>> import styrax as jax
      >>> import styrax.numpy as jnp
      >>> jax.lax.transpose(jnp.array([[1, 2], [3, 4]]), (1, 0))
      Array([[1, 3],
             [2, 4]], dtype=int32)
    """
    permutation = tuple(operator.index(d) for d in permutation)
    if permutation == tuple(range(len(shape_of(operand)))):
        return as_array(operand)
    return transpose_p.bind(operand, permutation=permutation)


def _rev_shape(x: Any, *, dimensions: tuple) -> tuple:
    if len(set(dimensions)) != len(dimensions):
        raise TypeError(f"rev dimensions must be unique, got {dimensions}.")
    if any(d < 0 for d in dimensions):
        raise TypeError(f"rev dimensions must have every element be nonnegative, got {dimensions}.")
    if any(d >= x.ndim for d in dimensions):
        raise TypeError(
            f"rev dimensions must all be less than operand ndim, got dimensions {dimensions} for operand "
            f"ndim {x.ndim}."
        )
    return x.shape


def _rev_loops(b: Builder, x: Any, *, dimensions: tuple) -> Any:
    def at(index: Any) -> Any:
        return x.at(
            [
                b.sub(extent(b, x.shape[d] - 1), i) if d in dimensions else i
                for d, i in enumerate(index)
            ]
        )

    return b.value(x.shape, x.dtype, at)


rev_p = standard_primitive(
    "rev",
    _rev_shape,
    first_dtype,
    loops=_rev_loops,
    hlo=lambda m, x, *, dimensions: m.op1(
        "stablehlo.reverse",
        [x],
        m.avals_out[0],
        f"dimensions = array<i64: {', '.join(map(str, dimensions))}>" if dimensions else "dimensions = array<i64>",
    ),
)
rev_p.declare(movement=True, sharding=sharding_rules.same, factors=factor_rules.along("dimensions"))
ad.deflinear2(rev_p, lambda ct, x, *, dimensions: [rev(ct, dimensions)])


def _rev_batch(args: Any, dims: Any, *, dimensions: tuple) -> Any:
    (x,), (dim,) = args, dims
    return rev(x, [d + (d >= dim) for d in dimensions]), dim


rules.batchers[rev_p] = _rev_batch


def rev(operand: ArrayLike, dimensions: Sequence[int]) -> Array:
    """The array with the elements along some dimensions in reverse order.

    Args:
      operand: an array.
      dimensions: the dimensions, counted from the front.

    Returns:
      an array of the shape and dtype of `operand`.

    Raises:
      TypeError: for dimensions that repeat or do not exist.
    """
    return rev_p.bind(operand, dimensions=tuple(map(operator.index, dimensions)))


def unbroadcast(aval: Any, x: Any) -> Any:
    """The cotangent of an operand of type `aval`, given that of an elementwise result it was spread over."""
    if type(x) is ad.Zero:
        return ad.Zero(aval)
    shape = shape_of(x)
    if aval.shape == shape:
        if aval.given_sharding is None:
            return x
        from ..collectives.placing import spread_as

        return spread_as(x, aval.cotangent_sharding)
    if not aval.shape:
        return reduce_sum_over(x, tuple(range(len(shape))))
    axes = tuple(d for d, (a, s) in enumerate(zip(aval.shape, shape, strict=True)) if a != s)
    return reshape(left_to_sum(x, axes, aval.cotangent_sharding), aval.shape, out_sharding=aval.cotangent_sharding)


# -- tile ------------------------------------------------------------------------------------------


def _tile_shape(x: Any, *, reps: tuple) -> tuple:
    if len(reps) != x.ndim:
        raise TypeError(f"reps length must be equal to the ndim of x, got {len(reps)=} and {x.ndim=}.")
    check_shape("tile", reps)
    return tuple(s * r for s, r in zip(x.shape, reps, strict=True))


def _tile_loops(b: Builder, x: Any, *, reps: tuple) -> Any:
    def at(index: Any) -> Any:
        return x.at(
            [
                i if is_one(r) else b.rem(i, extent(b, s))
                for i, s, r in zip(index, x.shape, reps, strict=True)
            ]
        )

    return b.value(b.avals_out[0].shape, x.dtype, at)


def _tile_hlo(m: Any, x: Any, *, reps: tuple) -> Any:
    spread = tuple(n for s, r in zip(x.shape, reps, strict=True) for n in (r, s))
    wide = m.broadcast_in_dim(x, ShapedArray(spread, x.dtype), range(1, 2 * len(reps), 2))
    return m.reshape(wide, m.avals_out[0].shape)


tile_p = standard_primitive("tile", _tile_shape, first_dtype, loops=_tile_loops, hlo=_tile_hlo)
tile_p.declare(movement=True, sharding=sharding_rules.tile, factors=factor_rules.tile)


def _tile_transpose(ct: Any, x: Any, *, reps: tuple) -> list[Any]:
    spread = tuple(n for s, r in zip(x.aval.shape, reps, strict=True) for n in (r, s))
    return [reduce_sum_over(reshape(ct, spread), tuple(range(0, 2 * len(reps), 2)))]


def _tile_batch(args: Any, dims: Any, *, reps: tuple) -> Any:
    (x,), (dim,) = args, dims
    return tile(x, (*reps[:dim], 1, *reps[dim:])), dim


ad.deflinear2(tile_p, _tile_transpose)
rules.batchers[tile_p] = _tile_batch


def tile(operand: ArrayLike, reps: Sequence[int]) -> Array:
    """The array repeated whole, a number of times along each dimension.

    Args:
      operand: an array.
      reps: the numbers, one for each dimension.

    Returns:
      an array whose sizes are those of `operand` times `reps`.

    Raises:
      TypeError: unless there is one number for each dimension.
    """
    return tile_p.bind(operand, reps=canonical_shape(tuple(reps)))


def _reshape_keys(c: Any, x: Any, *, new_sizes: tuple, dimensions: Any, sharding: Any) -> Any:
    if dimensions is not None:
        dimensions = (*dimensions, *trailing(len(dimensions), c.element_ndim()))
    return reshape(x, (*new_sizes, *c.element_shape()), dimensions)


def _transpose_keys(c: Any, x: Any, *, permutation: tuple) -> Any:
    return transpose(x, (*permutation, *trailing(len(permutation), c.element_ndim())))


physicals[reshape_p] = _reshape_keys
physicals[transpose_p] = _transpose_keys
physicals[rev_p] = lambda c, x, *, dimensions: rev(x, dimensions)
physicals[tile_p] = lambda c, x, *, reps: tile(x, (*reps, *(1,) * c.element_ndim()))
