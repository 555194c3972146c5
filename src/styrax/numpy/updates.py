"""`x.at[idx]`: changed copies of arrays."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.settings import config
from styrax.core.tracing.source import api_boundary, warn
from styrax.core.types import dtypes
from styrax.core.types.typing import ArrayLike, Index, Scalar, ShardingLike

from .broadcasting import spread
from .conversion import asarray, with_result
from .indexing import Plan, gather_elements, gather_mode, is_cut_apart, parse
from .promotion import convert, dtype_of, is_array, promote_dtypes, result_typed, shape_of, typed

_SCATTERS = {"set": lax.scatter, "add": lax.scatter_add, "sub": lax.scatter_sub, "mul": lax.scatter_mul,
             "min": lax.scatter_min, "max": lax.scatter_max}


def scatter(x: Any, idx: Any, y: Any, kind: str, *, indices_are_sorted: bool = False, unique_indices: bool = False,
            mode: Any = None, fill_value: Any = None, wrap_negative_indices: bool = True, func: Any = None) -> Any:
    """A copy of `x` changed at an index by values `y`, which broadcast to what is indexed.

    Args:
      kind: "set", "add", "sub", "mul", "min", "max", or "apply" with a function of one scalar.
      mode: what becomes of indices out of bounds: dropped ("drop", "fill" and the default), moved to
        the nearest element ("clip"), or anything ("promise_in_bounds").

    Raises ValueError for values of a shape that does not fit.
    """
    if fill_value is not None:
        raise TypeError(f"fill_value is not supported in updates; got {fill_value}")
    x = x if is_array(x) else asarray(x)
    index = parse(x.shape, idx)
    original = x.shape
    y = y if is_array(y) or isinstance(y, (int, float, complex, np.generic)) or func is not None else asarray(y)
    plan = Plan(index, wrap_negative_indices)
    if any(type(d) is int and d == 0 for d in plan.result):
        return x
    if index.inserted:
        x = lax.expand_dims(x, index.inserted)
    dtype, weak = typed(x)
    options = {
        "indices_are_sorted": indices_are_sorted or plan.scalars_only,
        "unique_indices": unique_indices or plan.scalars_only,
        "mode": gather_mode(mode),
    }
    numbers = lax.ScatterDimensionNumbers(update_window_dims=plan.offset_dims, inserted_window_dims=plan.collapsed,
                                          scatter_dims_to_operand_dims=plan.index_axes)
    if func is not None:
        out = lax.scatter_apply(x, plan.indices, func, numbers, update_shape=plan.result, **options)
    else:
        if type(y) is int and dtypes.issubdtype(dtype, np.unsignedinteger) and 0 <= y <= dtypes.iinfo(dtype).max:
            y = asarray(y, dtype)  # it may lie beyond the default integers
        check_promotion(x, y)
        x, y = promote_dtypes(x, y)
        y = _updates(y, plan)
        out = _SCATTERS[kind](x, plan.indices, y, numbers, **options)
    out = convert(out, dtype, weak)
    return out if out.shape == original else lax.reshape(out, original)


def check_promotion(x: Any, y: Any) -> None:
    """Warns where values that are written do not fit the array's dtype."""
    dtype, weak = typed(x)
    if weak or dtypes.issubdtype(dtype, dtypes.extended):
        return
    result, _ = result_typed(x, y)
    if result != dtype:
        warn(
            "scatter inputs have incompatible types: cannot safely cast value from "
            f"dtype={dtype_of(y)} to dtype={dtype} with "
            f"jax_numpy_dtype_promotion={config.numpy_dtype_promotion.value}. In future JAX releases "
            "this will result in an error.", FutureWarning)


def _updates(y: Any, plan: Plan) -> Any:
    shape = list(plan.result)
    for at in plan.new_axes:
        shape.insert(at, 1)
    if len(shape_of(y)) > len(shape):
        raise ValueError(f"Cannot broadcast to shape with fewer dimensions: arr_shape={shape_of(y)} "
                         f"shape={tuple(shape)}")
    y = spread(y, tuple(shape))
    if plan.new_axes:
        y = lax.squeeze(y, plan.new_axes)
    return lax.rev(y, plan.reversed) if plan.reversed else y


Mode: TypeAlias = str | lax.GatherScatterMode | None


class IndexHelper:
    """`x.at`: takes an index in square brackets."""

    __slots__ = ("array",)

    def __init__(self, array: Array):
        self.array = array

    def __getitem__(self, index: Index) -> IndexedElements:
        return IndexedElements(self.array, index)

    def __repr__(self) -> str:
        return f"_IndexUpdateHelper({self.array!r})"


class IndexedElements:
    """`x.at[idx]`: reads, and gives changed copies of, the elements of an array at an index.

    All methods take `indices_are_sorted` and `unique_indices` (promises that make them faster; results
    are undefined when they are broken), `mode` ("drop"/"fill", "clip" or "promise_in_bounds": what
    becomes of indices out of bounds) and `wrap_negative_indices` (whether they count from the end).
    """

    __slots__ = ("array", "index")

    def __init__(self, array: Array, index: Index):
        self.array, self.index = array, index

    def __repr__(self) -> str:
        return f"_IndexUpdateRef({self.array!r}, {self.index!r})"

    @api_boundary
    def get(self, *, indices_are_sorted: bool = False, unique_indices: bool = False, mode: Mode = None,
            fill_value: Scalar | None = None, out_sharding: ShardingLike | None = None,
            wrap_negative_indices: bool = True) -> Array:
        """`x[idx]`, with control over indices out of bounds: `mode` "fill" reads `fill_value` there."""
        def taken(x: Any, index: Any) -> Array:
            return gather_elements(x, index, indices_are_sorted=indices_are_sorted,
                                   unique_indices=unique_indices, mode=mode, fill_value=fill_value,
                                   wrap_negative_indices=wrap_negative_indices)

        stays = _is_one_place(self.index) and not is_cut_apart(self.array, self.index)
        return with_result(taken, None if stays else out_sharding)(self.array, self.index)

    @api_boundary
    def set(self, values: ArrayLike, *, indices_are_sorted: bool = False, unique_indices: bool = False,
            mode: Mode = None, out_sharding: ShardingLike | None = None, wrap_negative_indices: bool = True) -> Array:
        """A copy with `x[idx] = values`."""
        return with_result(partial(scatter, kind="set", indices_are_sorted=indices_are_sorted,
                                   unique_indices=unique_indices, mode=mode,
                                   wrap_negative_indices=wrap_negative_indices),
                           out_sharding)(self.array, self.index, values)

    @api_boundary
    def apply(self, func: Callable[[Array], ArrayLike], *, indices_are_sorted: bool = False,
              unique_indices: bool = False, mode: Mode = None, out_sharding: ShardingLike | None = None,
              wrap_negative_indices: bool = True) -> Array:
        """A copy with `func` applied to the elements at the index, as often as each is indexed."""
        return with_result(partial(scatter, kind="apply", indices_are_sorted=indices_are_sorted,
                                   unique_indices=unique_indices, mode=mode,
                                   wrap_negative_indices=wrap_negative_indices, func=func),
                           out_sharding)(self.array, self.index, 0)


# What Python's messages about them say, as where `x.at[0] = 1` is tried.
IndexHelper.__name__, IndexedElements.__name__ = "_IndexUpdateHelper", "_IndexUpdateRef"


def _is_one_place(index: Any) -> bool:
    """Whether an index takes slices at one place, which keep how the array is spread."""
    return all(i is None or i is Ellipsis or isinstance(i, (int, slice)) or getattr(i, "shape", None) == ()
               for i in (index if isinstance(index, tuple) else (index,)))


def _update_method(name: str, kind: str, text: str) -> Callable[..., Any]:
    @api_boundary
    def method(self: IndexedElements, values: ArrayLike, *, indices_are_sorted: bool = False,
               unique_indices: bool = False, mode: Mode = None, out_sharding: ShardingLike | None = None,
               wrap_negative_indices: bool = True) -> Array:
        return with_result(partial(scatter, kind=kind, indices_are_sorted=indices_are_sorted,
                                   unique_indices=unique_indices, mode=mode,
                                   wrap_negative_indices=wrap_negative_indices),
                           out_sharding)(self.array, self.index, values)

    method.__name__, method.__qualname__ = name, f"IndexedElements.{name}"
    method.__doc__ = f"A copy with `x[idx] {text} values`; elements that are indexed twice are changed twice."
    return method


for _name, _kind, _text in (("add", "add", "+="), ("subtract", "sub", "-="), ("mul", "mul", "*="),
                            ("multiply", "mul", "*="), ("min", "min", "min="), ("max", "max", "max=")):
    setattr(IndexedElements, _name, _update_method(_name, _kind, _text))


def _by_ones(name: str, combine: str, text: str) -> Callable[..., Any]:
    """Updates that have no scatter of their own: the values are multiplied into ones, then combined."""

    @api_boundary
    def method(self: IndexedElements, values: ArrayLike, *, indices_are_sorted: bool = False,
               unique_indices: bool = False, mode: Mode = None, out_sharding: ShardingLike | None = None,
               wrap_negative_indices: bool = True) -> Array:
        from . import binary

        ones = lax.full_like(self.array, 1)
        factors = scatter(ones, self.index, values, "mul", indices_are_sorted=indices_are_sorted,
                          unique_indices=unique_indices, mode=mode, wrap_negative_indices=wrap_negative_indices)
        return with_result(getattr(binary, combine), out_sharding)(self.array, factors)

    method.__name__, method.__qualname__ = name, f"IndexedElements.{name}"
    method.__doc__ = f"A copy with `x[idx] {text} values`; elements that are indexed twice are changed twice."
    return method


IndexedElements.divide = _by_ones("divide", "divide", "/=")  # type: ignore[attr-defined]
IndexedElements.power = _by_ones("power", "power", "**=")  # type: ignore[attr-defined]


def at(x: Array) -> IndexHelper:
    """`x.at`: see `IndexedElements`."""
    return IndexHelper(x)
