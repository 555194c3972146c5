"""Where the greatest and the smallest elements stand along a dimension."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from styrax.core.arrays.array import Array
from styrax.core.programs.named import named
from styrax.core.programs.primitive import Primitive
from styrax.core.types import dtypes
from styrax.core.types.avals import ShapedArray
from styrax.core.types.index_type import INDEX
from styrax.core.types.typing import ArrayLike, DTypeLike
from styrax.transforms import ad, batching

from .. import factor_rules, sharding_rules
from ..elementwise.families import check_dtype, standard_primitive
from .reduce import greatest, least, merged_index, without

if TYPE_CHECKING:
    from styrax.core.programs.lowering import Builder


def _arg_shape(x: Any, *, axes: tuple, index_dtype: Any) -> tuple:
    (axis,) = axes
    if not 0 <= axis < x.ndim:
        raise ValueError(f"Invalid axis {axis} for operand shape {x.shape}")
    if x.shape[axis] == 0 and type(x.shape[axis]) is int:
        raise ValueError(
            f"argmin and argmax require non-empty reduced dimension. operand.shape={x.shape} {axis=}"
        )
    return without(x.shape, axes)


def _arg_dtype(x: Any, *, axes: tuple, index_dtype: Any) -> Any:
    if not dtypes.issubdtype(index_dtype, np.integer):
        raise TypeError(f"index_dtype must be an integer type, but got {index_dtype.name}")
    if isinstance(x.dtype, dtypes.ExtendedDType):
        _check_order("max", x)
    return index_dtype


def _check_order(best: str, x: Any) -> None:
    """TypeError for elements none of which is the greatest: what is asked of them has a shape, and so can be traced,
    but no values."""
    check_dtype("gt" if best == "max" else "lt", x, (np.integer, np.floating, np.bool_), 0)


def _arg_loops(best: str) -> Callable[..., Any]:
    def rule(b: Builder, x: Any, *, axes: tuple, index_dtype: Any) -> Any:
        _check_order(best, x)
        (axis,) = axes
        ndim = len(x.shape)

        def pick(b2: Any, accs: Any, elems: Any) -> Any:
            (v, i), (w, j) = accs, elems
            worse_or_same, as_good = (b2.le, b2.ge) if best == "max" else (b2.ge, b2.le)
            better, as_good = b2.not_(worse_or_same(w, v)), as_good(w, v)  # (better than all numbers is NaN)
            if dtypes.issubdtype(x.dtype, np.floating):
                better, as_good = b2.and_(better, b2.eq(v, v)), b2.or_(as_good, b2.ne(w, w))
            take = b2.or_(better, b2.and_(as_good, b2.lt(j, i)))
            return b2.select(take, w, v), b2.select(take, j, i)

        worst = least(x.dtype) if best == "max" else greatest(x.dtype)
        size = x.shape[axis]
        known = isinstance(size, int) and size <= np.iinfo(np.int32).max
        number = np.dtype(np.int32) if known else INDEX  # (vectors of which are twice as long)
        init = (b.const(worst[()], x.dtype), b.const(np.iinfo(np.int32 if known else np.int64).max, number))

        def body(i: Any, r: Any) -> Any:
            return x.at(merged_index(ndim, axes, i, r)), b.cast(r[0], number)

        shape = without(x.shape, axes)
        _, where = b.reduce(shape, [size], [x.dtype, number], pick, init, body)
        return b.value(shape, index_dtype, lambda index: b.cast(where.at(index), index_dtype))

    return rule


def _arg_hlo(best: str) -> Callable[..., Any]:
    def rule(m: Any, x: Any, *, axes: tuple, index_dtype: Any) -> Any:
        _check_order(best, x)
        (axis,) = axes
        out = m.avals_out[0]
        numbers = m.op1(
            "stablehlo.iota", [], ShapedArray(x.shape, index_dtype), f"iota_dimension = {axis} : i64"
        )
        value, index = ShapedArray((), x.dtype), ShapedArray((), index_dtype)
        worst = m.const(least(x.dtype) if best == "max" else greatest(x.dtype), value)
        zero = m.const(0, index)

        def body(m2: Any, v: Any, i: Any, w: Any, j: Any) -> list[Any]:
            # `v` wins where it is better, or NaN; among equals the lower index does.
            wins = m2.compare("GT" if best == "max" else "LT", v, w)
            flag = wins.aval
            if dtypes.issubdtype(x.dtype, np.floating):
                wins = m2.op1("stablehlo.or", [wins, m2.compare("NE", v, v)], flag)
            same = m2.compare("EQ", v, w)
            lower = m2.op1("stablehlo.and", [same, m2.compare("LT", i, j)], flag)
            keep = m2.op1("stablehlo.or", [wins, lower], flag)
            return [m2.select(wins, v, w), m2.select(keep, i, j)]

        region = m.region([value, index, value, index], body)
        return m.op(
            "stablehlo.reduce",
            [x, numbers, worst, zero],
            [ShapedArray(out.shape, x.dtype), out],
            f"dimensions = array<i64: {axis}>",
            [region],
        )[1]

    return rule


def _arg_reduction(name: str, best: str, doc: str) -> tuple[Callable[..., Any], Primitive]:
    prim = standard_primitive(
        name, _arg_shape, _arg_dtype, lambda x, **_: False, loops=_arg_loops(best), hlo=_arg_hlo(best)
    )
    prim.declare(reduction=True, sharding=sharding_rules.reduction, factors=factor_rules.reduction)
    batching.defreducer(prim)
    ad.defjvp_zero(prim)

    def function(operand: ArrayLike, axis: int, index_dtype: DTypeLike) -> Array:
        index_dtype = dtypes.check_and_canonicalize_user_dtype(index_dtype, name)
        return prim.bind(operand, axes=(operator.index(axis),), index_dtype=index_dtype)

    named(
        function,
        name,
        f"{doc}\n\nArgs:\n  operand: an integer, floating or boolean array.\n  axis: the dimension, counted from "
        "the front; it must not be empty.\n  index_dtype: integer dtype of the result.\n\nReturns:\n  an array of "
        "indices without that dimension. The first of equal elements counts; NaN\n  counts as the best.\n\n"
        "Raises:\n  ValueError: for a dimension that does not exist or is empty.\n  TypeError: for other dtypes.",
        "styrax.lax",
    )
    return function, prim


argmax, argmax_p = _arg_reduction("argmax", "max", "Index of the greatest element along a dimension.")
argmin, argmin_p = _arg_reduction("argmin", "min", "Index of the smallest element along a dimension.")
