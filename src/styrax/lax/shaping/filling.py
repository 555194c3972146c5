"""Arrays made of little: padding, counting numbers, constants."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from styrax.core.arrays.array import Array
from styrax.core.arrays.devices import Sharding
from styrax.core.arrays.out_shardings import result_sharding
from styrax.core.arrays.shardings import NamedSharding, PartitionSpec
from styrax.core.hooks import lax
from styrax.core.programs import rules
from styrax.core.programs.attributes import i64_array
from styrax.core.programs.primitive import Primitive
from styrax.core.tracing.trace import Tracer, get_aval
from styrax.core.types import avals, dtypes
from styrax.core.types.avals import AbstractValue, ShapedArray
from styrax.core.types.dims import canonical_dim
from styrax.core.types.typing import ArrayLike, DTypeLike, Shape, ShardingLike, SupportsShape
from styrax.transforms import ad, batching

from .. import factor_rules, sharding_rules
from ..casting import _convert_element_type, as_array
from ..collectives.casts import varying
from ..elementwise.families import NUMERIC, check_dtype, shape_of, standard_primitive
from .broadcasting import broadcast, broadcast_in_dim, reduce_sum_over
from .shapes import canonical_shape, check_shape, extent

if TYPE_CHECKING:
    from styrax.core.programs.lowering import Builder, Value

# -- pad -------------------------------------------------------------------------------------------


def _pad_shape(x: Any, value: Any, *, padding_config: tuple) -> tuple:
    if value.shape:
        raise ValueError(f"padding_value must be a scalar; got np.shape(padding_value)={value.shape}")
    if len(padding_config) != x.ndim:
        raise ValueError(
            "length of padding_config must equal the number of axes of operand, got padding_config "
            f"{padding_config} for operand shape {x.shape}"
        )
    if any(interior < 0 for _, _, interior in padding_config):
        raise ValueError(
            f"interior padding in padding_config must be nonnegative, got padding_config {padding_config}"
        )
    shape = tuple(
        low + high + (d if not i else d + (d - 1) * i if d != 0 else 0)
        for d, (low, high, i) in zip(x.shape, padding_config, strict=True)
    )
    if any(d < 0 for d in shape):
        raise ValueError(
            f"Dimension size after padding is not at least 0, got result shape {shape}, for padding_config "
            f"{padding_config} and operand shape {x.shape}"
        )
    return shape


def _pad_dtype(x: Any, value: Any, *, padding_config: tuple) -> Any:
    if x.dtype != value.dtype:
        raise TypeError(
            f"pad operand and padding_value must be same dtype: got {x.dtype.name} and {value.dtype.name}."
        )
    return x.dtype


def _pad_loops(b: Builder, x: Any, value: Any, *, padding_config: tuple) -> Any:
    def at(index: Any) -> Any:
        inside, where = None, []
        for i, d, (low, high, interior) in zip(index, x.shape, padding_config, strict=True):
            tests = []
            if isinstance(low, int) and isinstance(interior, int):  # which of a step's elements, after so many steps
                before, member = divmod(low, interior + 1)
            else:
                before = member = 0
                i = b.sub(i, extent(b, low))
                tests.append(b.ge(i, b.index(0)))
            if interior:
                step = b.index(interior + 1)
                tests.append(b.eq(b.rem(i, step), b.index(member)))
                i = b.div(i, step)
            if before:
                i = b.sub(i, b.index(before))
            if before > 0:
                tests.append(b.ge(i, b.index(0)))
            if not isinstance(high, int) or high > 0:
                tests.append(b.lt(i, extent(b, d)))
            for test in tests:
                inside = test if inside is None else b.and_(inside, test)
            where.append(i)
        if inside is None:
            return x.at(where)
        return b.load_if(inside, x, where, value.at(()))

    return b.value(b.avals_out[0].shape, x.dtype, at)


def _pad_hlo(m: Any, x: Any, value: Any, *, padding_config: tuple) -> Any:
    low, high, interior = zip(*padding_config, strict=True) if padding_config else ((), (), ())
    return m.op1(
        "stablehlo.pad",
        [x, value],
        m.avals_out[0],
        f"edge_padding_low = {i64_array(low)}, edge_padding_high = {i64_array(high)}, "
        f"interior_padding = {i64_array(interior)}",
    )


def _is_little(avals: Sequence[ShapedArray], params: dict[str, Any]) -> bool:
    """Whether most elements of a result are elements of the operand, which loops are cut to."""
    x, config = avals[0], params["padding_config"]
    if not all(isinstance(n, int) for part in (x.shape, *config) for n in part) or any(c[2] for c in config):
        return False
    return math.prod([d + max(low, 0) + max(high, 0) for d, (low, high, _) in zip(x.shape, config, strict=True)]
                     ) <= 2 * x.size


pad_p = standard_primitive("pad", _pad_shape, _pad_dtype, loops=_pad_loops, hlo=_pad_hlo)  # fmt: skip
pad_p.declare(movement=True, nan=True, sizes=frozenset(("padding_config",)), once=_is_little,
              sharding=sharding_rules.cut, factors=factor_rules.moved)


def _pad_transpose(ct: Any, x: Any, value: Any, *, padding_config: tuple) -> list[Any]:
    if type(ct) is ad.Zero:
        return [
            ad.Zero(v.aval) if ad.is_undefined_primal(v) else None for v in (x, value)
        ]
    low, high, interior = zip(*padding_config, strict=True) if padding_config else ((), (), ())

    def of_operand() -> Any:
        trimmed = pad(
            ct, np.zeros((), get_aval(ct).dtype), [(-lo, -hi, 0) for lo, hi in zip(low, high, strict=True)]
        )
        shape = shape_of(trimmed)
        return lax.slice(trimmed, [0] * len(shape), shape, [i + 1 for i in interior])

    ct_x = of_operand() if ad.is_undefined_primal(x) else None
    if not ad.is_undefined_primal(value):
        return [ct_x, None]
    axes = tuple(range(len(low)))
    inside = of_operand() if ct_x is None else ct_x
    return [ct_x, lax.sub(reduce_sum_over(ct, axes), reduce_sum_over(inside, axes))]


def _pad_batch(args: Any, dims: Any, *, padding_config: tuple) -> Any:
    x, value = args
    x_dim, value_dim = dims
    if value_dim is None:
        config = (*padding_config[:x_dim], (0, 0, 0), *padding_config[x_dim:])
        return pad(x, value, config), x_dim
    size = shape_of(value)[value_dim]
    x = batching.bdim_at_front(x, x_dim, size)
    config = ((0, 0, 0), *padding_config)
    padded = pad(x, lax.full_like(x, 0, shape=()), config)
    mask = pad(full(shape_of(x), True, np.bool_), np.zeros((), np.bool_), config)
    fill = broadcast_in_dim(value, shape_of(padded), (0,))
    return lax.select(mask, padded, fill), 0


ad.deflinear2(pad_p, _pad_transpose)
rules.batchers[pad_p] = _pad_batch


def pad(operand: ArrayLike, padding_value: ArrayLike, padding_config: Sequence[tuple[int, int, int]]) -> Array:
    """The array with elements added around or between its own, or cut off.

    Args:
      operand: an array.
      padding_value: the scalar to fill with, of the same dtype.
      padding_config: for each dimension how many elements to add before, after, and between any two;
        the first two may be negative to cut elements off.

    Returns:
      the padded array.

    Raises:
      ValueError: for configurations that do not fit.
      TypeError: for dtypes that differ.

    Example:
      >>> import styrax as jax
      >>> import styrax.numpy as jnp
      >>> jax.lax.pad(jnp.array([1, 2]), 0, [(1, 2, 1)])
      Array([0, 1, 0, 2, 0, 0], dtype=int32)
    """
    config = tuple(
        (canonical_dim(low), canonical_dim(high), canonical_dim(interior))
        for low, high, interior in padding_config
    )
    return pad_p.bind(operand, padding_value, padding_config=config)


# -- iota and constants ----------------------------------------------------------------------------


def _iota_shape(*, dtype: Any, shape: tuple, dimension: int, sharding: Any) -> tuple:
    check_shape("iota", shape)
    if not 0 <= dimension < len(shape):
        raise ValueError(
            f"iota dimension must be between 0 and len(shape), got dimension={dimension} for shape={shape}"
        )
    return shape


def _iota_dtype(*, dtype: Any, **_: Any) -> Any:
    check_dtype("iota", ShapedArray((), dtype), NUMERIC)
    return dtype


def _iota_hlo(m: Any, *, dtype: Any, shape: tuple, dimension: int, sharding: Any) -> Any:
    return m.op1("stablehlo.iota", [], m.avals_out[0], f"iota_dimension = {dimension} : i64")


def _iota_loops(b: Builder, *, dtype: Any, dimension: int, **_: Any) -> Value:
    return b.value(b.avals_out[0].shape, dtype, lambda index: b.cast(index[dimension], dtype))


iota_p = standard_primitive(
    "iota",
    _iota_shape,
    _iota_dtype,
    lambda **_: False,
    loops=_iota_loops,
    hlo=_iota_hlo,
)
iota_p.declare(movement=True, sizes=frozenset(("shape",)),
               sharding=sharding_rules.given("sharding", sharding_rules.nowhere))


def broadcasted_iota(dtype: DTypeLike, shape: Shape, dimension: int, *,
                     out_sharding: ShardingLike | None = None) -> Array:
    """An array whose elements count up from 0 along one dimension.

    Args:
      dtype: integer, floating or complex dtype.
      shape: shape of the result.
      dimension: the dimension, counted from the front.
      out_sharding: sharding of the result.

    Returns:
      an array of shape `shape` and dtype `dtype`.

    Raises:
      TypeError: for a dtype or shape that is none.
      ValueError: for a dimension that does not exist.
    """
    dtype = dtypes.check_and_canonicalize_user_dtype(dtype, "iota")
    return iota_p.bind(
        dtype=dtype, shape=canonical_shape(shape), dimension=operator.index(dimension),
        sharding=None if out_sharding is None else result_sharding(out_sharding)
    )


def iota(dtype: DTypeLike, size: int) -> Array:
    """The vector `[0, 1, …, size - 1]`.

    Args:
      dtype: integer, floating or complex dtype.
      size: the number of elements.

    Returns:
      a vector of dtype `dtype`.

    Raises:
      TypeError: for a dtype or size that is none.

    Example:
      >>> import styrax as jax
      >>> import styrax.numpy as jnp
      >>> jax.lax.iota(jnp.int32, 4)
      Array([0, 1, 2, 3], dtype=int32)
    """
    return broadcasted_iota(dtype, (size,), 0)


def _empty_loops(b: Builder, *, dtype: Any, **_: Any) -> Value:
    return b.value(b.avals_out[0].shape, dtype, lambda index: b.const(0, dtype))


empty_p = standard_primitive(
    "empty",
    lambda *, shape, dtype, out_sharding: shape,
    lambda *, shape, dtype, out_sharding: dtype,
    lambda **_: False,
    loops=_empty_loops,
    hlo=lambda m, *, shape, dtype, out_sharding: m.full(0, m.avals_out[0]),
)
empty_p.declare(distinct=True, sizes=frozenset(("shape",)),
                sharding=sharding_rules.given("out_sharding", sharding_rules.nowhere))


empty2_p = Primitive("empty2")  # an element that nothing is known of, as accelerators' kernels start from
empty2_p.def_abstract_eval(lambda *, dtype, memory_space: ShapedArray((), dtype))


def _empty2_loops(b: Builder, *, dtype: Any, memory_space: Any) -> Any:
    return _empty_loops(b, shape=(), dtype=dtype, out_sharding=None)


rules.loops[empty2_p] = _empty2_loops
rules.stablehlos[empty2_p] = lambda m, **_: m.full(0, m.avals_out[0])


def empty(shape: Shape, dtype: DTypeLike, *, out_sharding: ShardingLike | None = None) -> Array:
    """An array of which only shape and dtype matter; its elements are zeros.

    Args:
      shape: its shape.
      dtype: its dtype.
      out_sharding: its sharding.

    Returns:
      an array of shape `shape` and dtype `dtype`.
    """
    dtype = dtypes.check_and_canonicalize_user_dtype(dtype, "empty")
    return empty_p.bind(shape=canonical_shape(shape), dtype=dtype, out_sharding=out_sharding)


def full(shape: Shape, fill_value: ArrayLike, dtype: DTypeLike | None = None, *,
         sharding: Sharding | ShardingLike | None = None) -> Array:
    """An array of which every element is the same.

    Args:
      shape: its shape.
      fill_value: a scalar.
      dtype: its dtype; by default that of `fill_value`, weakly typed if that is.
      sharding: its sharding.

    Returns:
      an array of shape `shape`.

    Raises:
      TypeError: if `fill_value` is no scalar, or `shape` no shape.

    Example:
      >>> import styrax as jax
      >>> jax.lax.full((2, 2), 7)
      Array([[7, 7],
             [7, 7]], dtype=int32, weak_type=True)
    """
    shape = canonical_shape(shape)
    if shape_of(fill_value):
        raise TypeError(
            f"full must be called with scalar fill_value, got fill_value.shape {shape_of(fill_value)}."
        )
    aval = get_aval(fill_value)
    weak = dtype is None and aval.weak_type
    dtype = aval.dtype if dtype is None else dtypes.check_and_canonicalize_user_dtype(dtype, "full")
    if isinstance(dtype, dtypes.ExtendedDType):
        scalar = fill_value if aval.dtype == dtype else dtype.full(fill_value)  # type: ignore[attr-defined]
    elif dtype == dtypes.float0:
        scalar = np.zeros((), dtypes.float0)
    else:
        scalar = _convert_element_type(fill_value, dtype, weak)
    return broadcast(scalar, shape, out_sharding=_told(sharding))


def _told(sharding: Any) -> Any:
    """Of shardings of arrays those that types can tell."""
    return sharding if isinstance(sharding, (NamedSharding, PartitionSpec)) else None


def full_like(x: ArrayLike | SupportsShape, fill_value: ArrayLike, dtype: DTypeLike | None = None,
              shape: Shape | None = None, sharding: Sharding | ShardingLike | None = None) -> Array:
    """An array of the shape and dtype of `x`, of which every element is the same.

    Args:
      x: an array, or something that has a shape and dtype.
      fill_value: a scalar.
      dtype, shape: used in place of those of `x` when given.
      sharding: its sharding.

    Returns:
      an array, weakly typed if `x` is and no `dtype` is given.

    Raises:
      TypeError: if `fill_value` is no scalar.
    """
    aval = x if hasattr(x, "shape") and hasattr(x, "dtype") and not isinstance(x, Tracer) else get_aval(x)
    weak = dtype is None and getattr(aval, "weak_type", False)
    if avals.explicit and sharding is None and shape is None and aval.shape:
        sharding = getattr(getattr(aval, "aval", aval), "given_sharding", None)
    shape = aval.shape if shape is None else canonical_shape(shape)
    if shape_of(fill_value):
        raise TypeError(f"full_like must be called with scalar fill_value, got one of shape {shape_of(fill_value)}.")
    if dtype is None:
        dtype = dtypes.canonicalize_dtype(aval.dtype) if isinstance(x, (np.ndarray, np.generic)) else aval.dtype
    else:
        dtype = dtypes.check_and_canonicalize_user_dtype(dtype, "full_like")
    if isinstance(dtype, dtypes.ExtendedDType) or dtype == dtypes.float0:
        return full(shape, fill_value, dtype, sharding=sharding)
    return vary_like(broadcast(_convert_element_type(fill_value, dtype, weak), shape, out_sharding=_told(sharding)),
                     aval)


def vary_like(x: Array, aval: AbstractValue | SupportsShape) -> Array:
    """An array that varies along the mesh axes along which one of type `aval` does."""
    axes = getattr(aval, "vma", None) if avals.manual else None
    return varying(x, tuple(axes), spread=True) if axes else x


def shape_as_value(shape: Shape) -> Array:
    """A shape as a vector.

    Args:
      shape: the shape.

    Returns:
      a vector of the default integer dtype.
    """
    shape = canonical_shape(shape)
    if not shape:
        return full((0,), 0, np.int32)
    return as_array(np.asarray(shape, dtypes.default_int_dtype()))
