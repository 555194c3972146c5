"""Broadcasting, and the choice between arrays that follows a condition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.arrays.shardings import NamedSharding, PartitionSpec
from styrax.core.tracing.errors import origin
from styrax.core.tracing.source import api_boundary
from styrax.core.tracing.trace import Tracer, get_aval
from styrax.core.types import avals
from styrax.core.types.dims import is_symbolic
from styrax.core.types.typing import ArrayLike, ShapeLike, ShardingLike
from styrax.lax.collectives.placing import spread_as
from styrax.transforms.jit import jit_for_all_shapes as jit

from .conversion import asarray, place
from .promotion import arrays, dtype_of, number_like, promote_dtypes, shape_of


def canonical_shape(shape: Any) -> tuple:
    """A shape as a tuple of ints. Raises TypeError for sizes that are not integers."""
    sizes: tuple | None = None
    try:
        sizes = tuple(shape) if isinstance(shape, (tuple, list)) or np.ndim(shape) else (shape,)
        return tuple(d if type(d) is int else _size(d) for d in sizes)
    except TypeError:
        message = "Shapes must be 1D sequences of concrete values of integer type, got "
        message += f"{shape if sizes is None or isinstance(shape, list) else sizes}."
        traced = [d for d in sizes or () if isinstance(d, Tracer)]
        if traced:
            message += "\nIf using `jit`, try using `static_argnums` or applying `jit` to smaller subfunctions."
            message += "".join(map(origin, traced))
        raise TypeError(message) from None


def _size(d: Any) -> Any:
    if is_symbolic(d):
        return d
    index = getattr(type(d), "__index__", None)
    if index is None:
        raise TypeError("not an integer")
    return index(d)


@api_boundary
def broadcast_shapes(*shapes: ShapeLike) -> tuple[int, ...]:
    """The shape that arrays of the given shapes broadcast to.

    Args:
      *shapes: ints, or sequences of ints.

    Returns:
      a tuple of ints; () without arguments.

    Raises:
      ValueError: for shapes that do not broadcast together.
      TypeError: for sizes that are no integers.
    """
    if not shapes:
        return ()
    return lax.broadcast_shapes(*(canonical_shape(s) for s in shapes))


def spread(x: Any, shape: tuple) -> Array:
    """An operand broadcast to a shape. Raises ValueError where it does not fit."""
    have = shape_of(x)
    if have == shape:
        return x
    lead = len(shape) - len(have)
    if lead < 0:
        raise ValueError(f"Cannot broadcast to shape with fewer dimensions: arr_shape={have} {shape=}")
    if any(a != b and a != 1 for a, b in zip(have, shape[lead:])):
        name = dtype_of(x).name
        raise ValueError(f"Incompatible types for broadcasting: input type={name}[{','.join(map(str, have))}] and "
                         f"requested type={name}[{','.join(map(str, shape))}]")
    return lax.broadcast_in_dim(x, shape, tuple(range(lead, len(shape))))


@api_boundary
def broadcast_to(array: ArrayLike, shape: ShapeLike, *, out_sharding: ShardingLike | None = None) -> Array:
    """`array` repeated along new leading dimensions and those of size 1.

    Args:
      array: an array or number.
      shape: an int or a sequence of ints, to which the shape of `array` broadcasts.
      out_sharding: the sharding of the result.

    Returns:
      an array of shape `shape` and of the dtype of `array`.

    Raises:
      ValueError: where the shapes do not fit.
      TypeError: for sizes that are no integers.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.broadcast_to(jnp.arange(2), (3, 2))
      Array([[0, 1],
             [0, 1],
             [0, 1]], dtype=int32)
    """
    (array,) = arrays("broadcast_to", array)
    return place(asarray(spread(array, canonical_shape(shape))), out_sharding)


@api_boundary
def broadcast_arrays(*args: ArrayLike) -> list[Array]:
    """The arguments, each broadcast to their common shape.

    Args:
      *args: arrays or numbers.

    Returns:
      a list of arrays of one shape, each of the dtype that it had.

    Raises:
      ValueError: where there is no common shape.
    """
    return [asarray(x) for x in spread_all(arrays("broadcast_arrays", *args))]


def spread_all(args: Sequence[Any]) -> list[Array]:
    """Operands broadcast to their common shape."""
    shapes = [shape_of(x) for x in args]
    if not shapes or all(s == shapes[0] for s in shapes):
        return list(args)
    shape = lax.broadcast_shapes(*shapes)
    if avals.explicit:
        told = _common_sharding(args, shape)
        if told is not None:
            return [x if shape_of(x) == shape else lax.broadcast_in_dim(
                x, shape, tuple(range(len(shape) - len(shape_of(x)), len(shape))), out_sharding=told) for x in args]
    return [spread(x, shape) for x in args]


def sharding_of(x: Any) -> NamedSharding | None:
    """How the type of an array tells that it is spread."""
    return get_aval(x).given_sharding


def _common_sharding(args: Sequence[Any], shape: tuple) -> NamedSharding | None:
    """How operands are spread once they have their common shape; None where their types do not tell."""
    told = [t for t in (get_aval(x).given_sharding for x in args) if t is not None]
    if not told:
        return None
    found: list[Any] = [None] * len(shape)
    for sharding in told:
        for d, entry in enumerate(sharding.spec, len(shape) - len(sharding.spec)):
            found[d] = found[d] or entry
    return NamedSharding(told[0].mesh, PartitionSpec(*found))


def truth(x: Any) -> Array:
    """`x != 0` as booleans; booleans as they are."""
    if dtype_of(x) == np.bool_:
        return x
    return lax.ne(x, number_like(0, x))


def _where(condition: Any, x: Any, y: Any) -> Array:
    condition = truth(condition)
    x, y = promote_dtypes(x, y)
    if shape_of(condition) == ():
        x, y = spread_all((x, y))
    else:
        condition, x, y = spread_all((condition, x, y))
        if avals.explicit:
            condition = spread_as(condition, get_aval(x).given_sharding)
    return x if 0 in shape_of(x) else lax.select(condition, x, y)


choose_elements = jit(_where)
