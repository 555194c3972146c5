"""Arrays spread over larger shapes, and dimensions of size 1 added and taken away."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from styrax.core.arrays.array import Array
from styrax.core.arrays.devices import Sharding
from styrax.core.arrays.explicit import with_mapped_axis
from styrax.core.arrays.out_shardings import result_sharding
from styrax.core.arrays.shardings import NamedSharding, axes_of
from styrax.core.hooks import lax
from styrax.core.programs import rules
from styrax.core.tracing.trace import get_aval
from styrax.core.types.avals import ShapedArray
from styrax.core.types.physical import physicals
from styrax.core.types.typing import ArrayLike, Shape, ShardingLike
from styrax.transforms import ad, batching

from .. import factor_rules, sharding_rules
from ..casting import as_array
from ..elementwise.families import first_dtype, shape_of, standard_primitive
from .shapes import canonical_axis, canonical_shape, check_shape

if TYPE_CHECKING:
    from styrax.core.programs.lowering import Builder

# -- broadcast_in_dim ------------------------------------------------------------------------------


def _broadcast_shape_rule(x: Any, *, shape: tuple, broadcast_dimensions: tuple, sharding: Any) -> tuple:
    check_shape("broadcast_in_dim", shape)
    if len(broadcast_dimensions) != x.ndim:
        raise TypeError(
            "broadcast_in_dim broadcast_dimensions must have length equal to operand ndim; got "
            f"broadcast_dimensions {broadcast_dimensions} for operand ndim {x.ndim}."
        )
    if len(shape) < x.ndim:
        raise TypeError(
            "broadcast_in_dim target broadcast shape must have equal or higher rank to the operand shape; got "
            f"operand ndim {x.ndim} and target broadcast ndim {len(shape)}."
        )
    if any(not 0 <= d < len(shape) for d in broadcast_dimensions):
        raise TypeError(
            "broadcast_in_dim broadcast_dimensions must be a subset of output dimensions, got "
            f"{broadcast_dimensions} for operand ndim {x.ndim} and shape {shape}."
        )
    if len(set(broadcast_dimensions)) != len(broadcast_dimensions):
        raise TypeError(
            "broadcast_in_dim broadcast_dimensions must not contain duplicates, got broadcast_dimensions "
            f"{broadcast_dimensions}"
        )
    if any(
        not (type(s) is int and s == 1) and s != shape[d]
        for s, d in zip(x.shape, broadcast_dimensions, strict=True)
    ):
        raise TypeError(
            "broadcast_in_dim operand dimension sizes must either be 1, or be equal to their corresponding "
            f"dimensions in the target broadcast shape; got operand of shape {x.shape}, target broadcast shape "
            f"{shape}, broadcast_dimensions {broadcast_dimensions}"
        )
    return shape


def _broadcast_loops(b: Builder, x: Any, *, shape: tuple, broadcast_dimensions: tuple, sharding: Any) -> Any:
    shape = b.avals_out[0].shape
    stretched = [
        type(s) is int and s == 1 and not (type(shape[d]) is int and shape[d] == 1)
        for s, d in zip(x.shape, broadcast_dimensions, strict=True)
    ]
    condition = getattr(x, "condition", None)
    repeats = any(not (type(s) is int and s == 1) for d, s in enumerate(shape) if d not in broadcast_dimensions)
    source = x if condition is None or repeats or any(stretched) else condition

    def at(index: Any) -> Any:
        zero = b.index(0)
        return source.at([zero if s else index[d] for s, d in zip(stretched, broadcast_dimensions, strict=True)])

    spread = b.value(shape, source.dtype, at)
    return spread if source is x else b.factors(spread, x.dtype)


def _broadcast_hlo(m: Any, x: Any, *, shape: tuple, broadcast_dimensions: tuple, sharding: Any) -> Any:
    return m.broadcast_in_dim(x, m.avals_out[0], broadcast_dimensions)


broadcast_in_dim_p = standard_primitive(
    "broadcast_in_dim", _broadcast_shape_rule, first_dtype, loops=_broadcast_loops, hlo=_broadcast_hlo
)


def _is_sorted(dims: Sequence[int]) -> bool:
    return list(dims) == sorted(dims)


def _printed(params: dict[str, Any]) -> dict[str, Any]:
    from styrax.core.programs.text import is_nowhere

    unsaid = {"broadcast_dimensions": not params["broadcast_dimensions"], "sharding": is_nowhere(params["sharding"])}
    return {k: params[k] for k in unsaid if not unsaid[k]}


broadcast_in_dim_p.declare(movement=True, sizes=frozenset(("shape",)), printed=_printed,
                           ordered=lambda params: _is_sorted(params["broadcast_dimensions"]),
                           sharding=sharding_rules.given("sharding", sharding_rules.broadcast),
                           factors=factor_rules.broadcast)


def _broadcast_transpose(
    ct: Any, x: Any, *, shape: tuple, broadcast_dimensions: tuple, sharding: Any
) -> list[Any]:
    if type(ct) is ad.Zero:
        return [ad.Zero(x.aval)]
    operand_shape = x.aval.shape
    ones = [i for i, s in enumerate(operand_shape) if type(s) is int and s == 1]
    kept = [d for i, d in enumerate(broadcast_dimensions) if i not in ones]
    summed = left_to_sum(ct, tuple(d for d in range(len(shape)) if d not in kept), x.aval.cotangent_sharding)
    order = tuple(sorted(kept).index(d) for d in kept)
    if x.aval.given_sharding is not None:
        return [lax.reshape(lax.transpose(summed, order), operand_shape, out_sharding=x.aval.cotangent_sharding)]
    return [expand_dims(lax.transpose(summed, order), ones)]


def left_to_sum(ct: Any, axes: Sequence[int], told: NamedSharding | None) -> Any:
    """The sum over some axes, made along mesh axes as far as a type wants that."""
    if told is None or not (told.spec.unreduced or told.spec.reduced):
        return reduce_sum_over(ct, axes)
    from ..collectives.placing import spread_as

    aval = get_aval(ct)
    own = told.spec.update(partitions=(None,) * aval.ndim) if aval.given_sharding is None else aval.given_sharding.spec
    wanted = told.update(spec=told.spec.update(partitions=tuple(e for d, e in enumerate(own) if d not in axes)))
    over = own.unreduced.union(*(axes_of(own[d]) for d in axes))
    if axes and told.spec.unreduced <= over:
        return lax.reduce_sum(ct, tuple(axes), out_sharding=wanted)
    return spread_as(reduce_sum_over(ct, axes), wanted)


def reduce_sum_over(x: Any, axes: Sequence[int]) -> Any:
    """The sum over some axes, or the array itself where there are none."""
    return lax.reduce_sum(x, tuple(axes)) if axes else x


def _broadcast_batch(
    args: Any, dims: Any, *, shape: tuple, broadcast_dimensions: tuple, sharding: Any
) -> Any:
    (x,), (dim,) = args, dims
    x = batching.moveaxis(x, dim, 0)
    new_shape = (shape_of(x)[0], *shape)
    new_dims = (0, *(d + 1 for d in broadcast_dimensions))
    return broadcast_in_dim(x, new_shape, new_dims, out_sharding=with_mapped_axis(sharding, 0, get_aval(x), 0)), 0


ad.deflinear2(broadcast_in_dim_p, _broadcast_transpose)
rules.batchers[broadcast_in_dim_p] = _broadcast_batch


def broadcast_in_dim(operand: ArrayLike, shape: Shape, broadcast_dimensions: Sequence[int], *,
                     out_sharding: ShardingLike | Sharding | None = None) -> Array:
    """Spread an array over a larger shape.

    Args:
      operand: an array.
      shape: shape of the result.
      broadcast_dimensions: for each dimension of `operand`, in increasing order, the dimension of the
        result it becomes; its size is that one's or 1.
      out_sharding: sharding of the result.

    Returns:
      an array of the given shape, repeated along the dimensions that `operand` lacks.

    Raises:
      TypeError: for shapes and dimensions that do not fit.

    Example:
      >>> import styrax as jax
      >>> import styrax.numpy as jnp
      >>> jax.lax.broadcast_in_dim(jnp.array([1, 2]), (2, 3), (0,))
      Array([[1, 1, 1],
             [2, 2, 2]], dtype=int32)
    """
    shape = canonical_shape(shape)
    dims = tuple(map(operator.index, broadcast_dimensions))
    if not isinstance(operand, np.ndarray) and out_sharding is None and shape_of(operand) == shape and (
        len(dims) == len(shape) and dims == tuple(range(len(shape)))
    ):
        return as_array(operand)
    return broadcast_in_dim_p.bind(operand, shape=shape, broadcast_dimensions=dims,
                                   sharding=None if out_sharding is None else result_sharding(out_sharding))


def broadcast(operand: ArrayLike, sizes: Sequence[int], *,
              out_sharding: ShardingLike | Sharding | None = None) -> Array:
    """Repeat an array along new leading dimensions.

    Args:
      operand: an array.
      sizes: sizes of the new dimensions.
      out_sharding: sharding of the result.

    Returns:
      an array of shape `(*sizes, *operand.shape)`.
    """
    if not len(sizes) and out_sharding is None:
        return as_array(operand)
    n = len(sizes)
    shape = shape_of(operand)
    return broadcast_in_dim(
        operand, (*sizes, *shape), range(n, n + len(shape)), out_sharding=out_sharding
    )


def broadcast_shapes(*shapes: Shape) -> tuple[int, ...]:
    """The shape of arrays of the given shapes broadcast together, by NumPy's rules.

    Args:
      *shapes: any number of shapes.

    Returns:
      the shape; `()` for none.

    Raises:
      ValueError: for shapes that do not fit.
    """
    tuples = [canonical_shape(s) for s in shapes]
    if not tuples:
        return ()
    rank = max(map(len, tuples))
    out = []
    for sizes in zip(*[(1,) * (rank - len(s)) + s for s in tuples], strict=True):
        size: Any = 1
        for s in sizes:
            if not (type(s) is int and s == 1) and s != size:
                if not (type(size) is int and size == 1):
                    raise ValueError(f"Incompatible shapes for broadcasting: shapes={list(shapes)}")
                size = s
        out.append(size)
    return tuple(out)


def broadcast_to_rank(x: ArrayLike, rank: int) -> Array:
    """The array with leading dimensions of size 1 added up to a rank.

    Args:
      x: an array or number.
      rank: the number of dimensions of the result.

    Returns:
      an array of that rank, or `x` where it has more.
    """
    shape = shape_of(x)
    if len(shape) >= rank:
        return as_array(x)
    return broadcast_in_dim(x, (1,) * (rank - len(shape)) + shape, range(rank - len(shape), rank))


def broadcast_like(arr: ArrayLike, like_arr: ArrayLike) -> Array:
    """An array broadcast, by NumPy's rules, to the shape of another.

    Args:
      arr: an array or number.
      like_arr: an array of which only the shape counts.

    Returns:
      an array of that shape and the dtype of `arr`.

    Raises:
      ValueError: where the shape of `arr` does not fit.
    """
    shape, target = shape_of(arr), shape_of(like_arr)
    if shape == target:
        return as_array(arr)
    if broadcast_shapes(shape, target) != target:
        raise ValueError(f"Cannot broadcast array of shape {shape} to shape {target}")
    return broadcast_in_dim(arr, target, range(len(target) - len(shape), len(target)))


def expand_dims(array: ArrayLike, dimensions: Sequence[int]) -> Array:
    """The array with dimensions of size 1 added.

    Args:
      array: an array or number.
      dimensions: their positions in the result; negative ones count from its end.

    Returns:
      an array of the elements of `array`.

    Raises:
      ValueError: for positions that repeat or do not exist.
    """
    dimensions = tuple(dimensions)
    if not dimensions:
        return as_array(array)
    shape = shape_of(array)
    ndim = len(shape) + len(dimensions)
    places = [canonical_axis(d, ndim) for d in dimensions]
    if len(set(places)) != len(places):
        raise ValueError(f"repeated axis in lax.expand_dims: {dimensions}")
    kept = [d for d in range(ndim) if d not in places]
    sizes = iter(shape)
    return broadcast_in_dim(array, [1 if d in places else next(sizes) for d in range(ndim)], kept)


# -- squeeze ---------------------------------------------------------------------------------------


def squeeze_axes(dimensions: Sequence[int], shape: tuple) -> tuple[int, ...]:
    """The axes to squeeze out, counted from the front. Raises ValueError for impossible ones."""
    axes = tuple(canonical_axis(d, len(shape)) for d in dimensions)
    if len(set(axes)) != len(axes):
        raise ValueError(f"dimensions are not unique: {axes}")
    if any(shape[a] != 1 for a in axes):
        raise ValueError(
            f"cannot select an axis to squeeze out which has size not equal to one, got {shape=} and "
            f"dimensions={tuple(dimensions)}"
        )
    return axes


def _squeeze_shape(x: Any, *, dimensions: tuple) -> tuple:
    axes = squeeze_axes(dimensions, x.shape)
    return tuple(s for d, s in enumerate(x.shape) if d not in axes)


def _squeeze_loops(b: Builder, x: Any, *, dimensions: tuple) -> Any:
    def at(index: Any) -> Any:
        rest = iter(index)
        return x.at([b.index(0) if d in dimensions else next(rest) for d in range(len(x.shape))])

    return b.value(b.avals_out[0].shape, x.dtype, at)


squeeze_p = standard_primitive(
    "squeeze",
    _squeeze_shape,
    first_dtype,
    loops=_squeeze_loops,
    hlo=lambda m, x, *, dimensions: m.reshape(x, m.avals_out[0].shape),
)
squeeze_p.declare(movement=True, ordered=True, sharding=sharding_rules.squeeze, factors=factor_rules.squeeze)
ad.deflinear2(squeeze_p, lambda ct, x, *, dimensions: [expand_dims(ct, dimensions)])


def _squeeze_batch(args: Any, dims: Any, *, dimensions: tuple) -> Any:
    (x,), (dim,) = args, dims
    moved = [d + (d >= dim) for d in dimensions]
    return squeeze(x, moved), dim - sum(d < dim for d in moved)


rules.batchers[squeeze_p] = _squeeze_batch


def squeeze(array: ArrayLike, dimensions: Sequence[int]) -> Array:
    """The array without some dimensions of size 1.

    Args:
      array: an array or number.
      dimensions: the dimensions to drop; negative ones count from the end.

    Returns:
      an array of the elements of `array`.

    Raises:
      ValueError: for dimensions that do not exist, repeat, or have another size.
    """
    axes = squeeze_axes(tuple(dimensions), shape_of(array))
    if not axes and isinstance(get_aval(array), ShapedArray):
        return as_array(array)
    return squeeze_p.bind(array, dimensions=axes)


def trailing(rank: int, count: int) -> tuple[int, ...]:
    """The dimensions of an element, which come behind those of an array of an extended dtype."""
    return tuple(range(rank, rank + count))


def _broadcast_keys(c: Any, x: Any, *, shape: tuple, broadcast_dimensions: tuple, sharding: Any) -> Any:
    n = c.element_ndim()
    return broadcast_in_dim(
        x, (*shape, *c.element_shape()), (*broadcast_dimensions, *trailing(len(shape), n))
    )


physicals[broadcast_in_dim_p] = _broadcast_keys
physicals[squeeze_p] = lambda c, x, *, dimensions: squeeze(x, dimensions)
