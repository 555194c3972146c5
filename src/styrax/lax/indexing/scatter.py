"""`scatter` and its kin: an array with windows of it replaced or combined with updates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from styrax.core.arrays.array import Array
from styrax.core.programs import rules
from styrax.core.programs.jaxpr import Jaxpr
from styrax.core.programs.named import named
from styrax.core.programs.primitive import Primitive
from styrax.core.programs.traits import Windows
from styrax.core.tracing.source import api_boundary
from styrax.core.tracing.staging import trace_to_jaxpr
from styrax.core.tracing.trace import get_aval
from styrax.core.trees import tree
from styrax.core.types import dtypes
from styrax.core.types.avals import ShapedArray
from styrax.core.types.physical import Context, physicals
from styrax.core.types.typing import ArrayLike
from styrax.transforms import ad, batching

from .. import factor_rules, sharding_rules
from ..elementwise import arithmetic
from ..elementwise.arithmetic import add, div, mul, neg, sub
from ..elementwise.comparisons import eq, select
from ..elementwise.scalar_programs import traced
from ..shaping.filling import full, iota
from ..shaping.reshaping import reshape
from .dimension_numbers import (
    GatherScatterMode,
    ScatterDimensionNumbers,
    check_batching,
    check_disjoint,
    check_distinct,
    check_index_dtype,
    check_index_map,
    check_sorted,
    check_within,
    shape_of,
)
from .gather import GatherDimensionNumbers, gather
from .scatter_lowering import scatter_loops, scatter_stablehlo, window_sizes

if TYPE_CHECKING:
    from styrax.core.programs.lowering import Builder


# --- checks
def _check_scatter(operand: Any, indices: Any, updates: Any, dnums: ScatterDimensionNumbers) -> None:
    rank = len(operand.shape)
    check_index_dtype("scatter", indices)
    window, inserted = dnums.update_window_dims, dnums.inserted_window_dims
    batched = dnums.operand_batching_dims
    if len(updates.shape) != len(indices.shape) - 1 + len(window):
        raise TypeError(f"Updates tensor must be of rank {len(indices.shape) - 1 + len(window)}; got "
                        f"{len(updates.shape)}.")
    check_sorted("scatter", "update_window_dims", window)
    check_distinct("scatter", "update_window_dims", window)
    check_within("scatter", "update_window_dims", window, len(updates.shape))
    check_sorted("scatter", "inserted_window_dims", inserted)
    check_distinct("scatter", "inserted_window_dims", inserted)
    check_within("scatter", "inserted_window_dims", inserted, rank)
    check_batching("scatter", "scatter_indices_batching_dims", operand, indices, batched,
                   dnums.scatter_indices_batching_dims)
    check_disjoint("scatter", "inserted_window_dims", inserted, "operand_batching_dims", batched)
    check_disjoint("scatter", "scatter_dims_to_operand_dims", dnums.scatter_dims_to_operand_dims,
                   "operand_batching_dims", batched)
    if len(window) + len(inserted) + len(batched) != rank:
        raise TypeError(f"Scatter op has window of size {len(window) + len(inserted) + len(batched)}; doesn't match "
                        f"operand of rank {rank}.")
    check_index_map("scatter", "scatter_dims_to_operand_dims", dnums.scatter_dims_to_operand_dims, operand, indices)
    window_operand_dims = [d for d in range(rank) if d not in {*inserted, *batched}]
    for d, u in zip(window_operand_dims, window, strict=True):
        if updates.shape[u] > operand.shape[d]:
            raise TypeError(
                "Bounds of the window dimensions of updates must not exceed the bounds of the corresponding "
                f"dimensions of operand. For dimension {u}, updates bound is {updates.shape[u]}, operand bound is "
                f"{operand.shape[d]}.")
    scatter_dims = [u for u in range(len(updates.shape)) if u not in window]
    for i, u in enumerate(scatter_dims):
        if updates.shape[u] != indices.shape[i]:
            raise TypeError(
                "Bounds of the scatter dimensions of updates must be the same as the bounds of the corresponding "
                f"dimensions of scatter indices. For scatter dimension {u}, updates bound is {updates.shape[u]}, "
                f"indices bound is {indices.shape[i]}.")


def _abstract(name: str) -> Callable[..., ShapedArray]:
    def rule(operand: ShapedArray, indices: ShapedArray, updates: ShapedArray, *,
             dimension_numbers: ScatterDimensionNumbers, **params: Any) -> ShapedArray:
        _check_scatter(operand, indices, updates, dimension_numbers)
        if operand.dtype != updates.dtype:
            raise TypeError(f"lax.{name} requires arguments to have the same dtypes, got "
                            f"{dtypes.dtype_name(operand.dtype)}, {dtypes.dtype_name(updates.dtype)}.")
        return ShapedArray(operand.shape, operand.dtype, operand.weak_type)

    return rule


def _windows(avals: Sequence[ShapedArray], params: dict[str, Any]) -> Windows:
    operand, _, updates = avals
    numbers = params["dimension_numbers"]
    dims, sizes = numbers.scatter_dims_to_operand_dims, window_sizes(operand.shape, updates.shape, numbers)
    return Windows(slice(1, 2), dims, [sizes[d] for d in dims])


def _is_one_window(avals: Sequence[ShapedArray], params: dict[str, Any]) -> bool:
    return avals[2].ndim == len(params["dimension_numbers"].update_window_dims)


def _scatter_primitive(name: str, public: str) -> Primitive:
    primitive = Primitive(name)
    primitive.declare(once=_is_one_window, windows=_windows, sharding=sharding_rules.scatter,
                      factors=factor_rules.scatter)
    primitive.def_abstract_eval(_abstract(public))
    rules.batchers[primitive] = lambda args, dims, **params: _scatter_batch(primitive, args, dims, **params)

    def loops(b: Builder, *xs: Any, **params: Any) -> Any:
        return scatter_loops(b, primitive.name, *xs, **params)

    rules.loops[primitive] = loops
    rules.stablehlos[primitive] = lambda m, *xs, **params: scatter_stablehlo(m, *xs, **params)
    physicals[primitive] = lambda context, *xs, **params: _scatter_physical(primitive, context, *xs, **params)
    return primitive


scatter_p = _scatter_primitive("scatter", "scatter")
scatter_add_p = _scatter_primitive("scatter-add", "scatter_add")


def _added(total: Any, zeros: Any, indices: Any, updates: Any, **params: Any) -> Any:
    jaxpr = params["update_jaxpr"]
    if not (params["unique_indices"] or _is_one_window([get_aval(x) for x in (zeros, indices, updates)], params)):
        return None  # several that meet are added up before
    if jaxpr is None:
        combiner: Callable[..., Any] = add
        jaxpr = _combiner_jaxpr(combiner, get_aval(total).dtype)
    return scatter_add_p.bind(total, indices, updates, **{**params, "update_jaxpr": jaxpr})


def _put(total: Any, zeros: Any, indices: Any, updates: Any, **params: Any) -> Any:
    return None if params["update_jaxpr"] is not None else _added(total, zeros, indices, updates, **params)


scatter_p.declare(added=_put)  # (but where a function is applied)
scatter_add_p.declare(added=_added)
scatter_sub_p = _scatter_primitive("scatter-sub", "scatter_sub")
scatter_mul_p = _scatter_primitive("scatter-mul", "scatter_mul")
scatter_min_p = _scatter_primitive("scatter-min", "scatter_min")
scatter_max_p = _scatter_primitive("scatter-max", "scatter_max")


@lru_cache(maxsize=256)
def _combiner_jaxpr(function: Callable[..., Any], dtype: Any) -> Jaxpr:
    """The program of a combiner on scalars, as `update_jaxpr` carries it."""
    aval = ShapedArray((), dtype)
    return trace_to_jaxpr(lambda x, y: [function(x, y)], [aval, aval]).jaxpr


def _bind(primitive: Primitive, combiner: Callable[..., Any] | None, operand: Any, indices: Any, updates: Any,
          dimension_numbers: ScatterDimensionNumbers, indices_are_sorted: bool, unique_indices: bool,
          mode: Any) -> Any:
    dnums = ScatterDimensionNumbers(*(tuple(map(int, field)) for field in dimension_numbers))
    aval = get_aval(operand)
    jaxpr = None
    if combiner is not None and aval.dtype == get_aval(updates).dtype:
        jaxpr = _combiner_jaxpr(combiner, aval.dtype)
    return primitive.bind(
        operand, indices, updates, dimension_numbers=dnums, indices_are_sorted=bool(indices_are_sorted),
        unique_indices=bool(unique_indices), mode=GatherScatterMode.from_any(mode), update_jaxpr=jaxpr,
        update_consts=())


_DOC = """{summary}

    Updates that meet at one place are {together}.

    Args:
      operand: the array to change.
      scatter_indices: integers; the last dimension holds index vectors, where windows start.
      updates: the new windows, of the operand's dtype.
      dimension_numbers: how the dimensions of operand, indices and updates correspond.
      indices_are_sorted: asserts that the index vectors ascend.
      unique_indices: asserts that no two windows overlap.
      mode: what happens to windows out of bounds, see `GatherScatterMode`; by default they are dropped.

    Returns:
      an array of the operand's shape and dtype.

    Raises:
      TypeError: for dimension numbers, shapes or dtypes that do not fit together.
      ValueError: for indices that are not integers, or an unknown mode.
    """


def _public(name: str, primitive: Primitive, combiner: Callable[..., Any] | None, summary: str, together: str
            ) -> Callable[..., Any]:
    @api_boundary
    def function(operand: ArrayLike, scatter_indices: ArrayLike, updates: ArrayLike,
                 dimension_numbers: ScatterDimensionNumbers, *, indices_are_sorted: bool = False,
                 unique_indices: bool = False, mode: str | GatherScatterMode | None = None) -> Array:
        return _bind(primitive, combiner, operand, scatter_indices, updates, dimension_numbers, indices_are_sorted,
                     unique_indices, mode)

    return named(function, name, _DOC.format(summary=summary, together=together), "styrax.lax")


_ANY_ORDER = "combined one after the other, in no promised order"
scatter = _public("scatter", scatter_p, None, "An array with windows of it replaced.",
                  "written one after the other, in no promised order")
scatter_add = _public("scatter_add", scatter_add_p, add, "An array with updates added to windows of it.", _ANY_ORDER)
scatter_sub = _public("scatter_sub", scatter_sub_p, sub, "An array with updates taken from windows of it.", _ANY_ORDER)
scatter_mul = _public("scatter_mul", scatter_mul_p, mul, "An array with windows of it multiplied by updates.",
                      _ANY_ORDER)
scatter_min = _public("scatter_min", scatter_min_p, arithmetic.min,
                      "An array with the minimum of its windows and updates.", _ANY_ORDER)
scatter_max = _public("scatter_max", scatter_max_p, arithmetic.max,
                      "An array with the maximum of its windows and updates.", _ANY_ORDER)


_ONE = tree.tree_structure((0,))  # argument


def scatter_apply(operand: ArrayLike, scatter_indices: ArrayLike, func: Callable[[Any], Any],
                  dimension_numbers: ScatterDimensionNumbers, *, update_shape: Sequence[int] = (),
                  indices_are_sorted: bool = False, unique_indices: bool = False,
                  mode: str | GatherScatterMode | None = None) -> Array:
    """An array with a function of one element applied to windows of it.

    An element that several windows cover is changed several times.

    Args:
      operand: the array to change.
      scatter_indices: integers; the last dimension holds index vectors.
      func: function from a scalar to a scalar of the same dtype.
      dimension_numbers: as for `scatter`.
      update_shape: the shape that updates would have.
      indices_are_sorted, unique_indices, mode: as for `scatter`.

    Returns:
      an array of the shape and dtype of `operand`.

    Raises:
      NotImplementedError: for a function that gives another dtype or shape.
    """
    aval = get_aval(operand)
    scalar = ShapedArray((), aval.dtype)
    closed, _ = traced(func, _ONE, [scalar, scalar])
    if closed.out_avals[0].update(weak_type=False) != scalar:
        raise NotImplementedError(f"scatter_apply requires a function of {scalar.str_short()} that gives the same "
                                  f"type; got {closed.out_avals[0].str_short()}.")
    dnums = ScatterDimensionNumbers(*(tuple(map(int, field)) for field in dimension_numbers))
    updates = full(tuple(update_shape), 0, aval.dtype)
    return scatter_p.bind(
        operand, scatter_indices, updates, dimension_numbers=dnums, indices_are_sorted=bool(indices_are_sorted),
        unique_indices=bool(unique_indices), mode=GatherScatterMode.from_any(mode), update_jaxpr=closed.jaxpr,
        update_consts=tuple(closed.consts))


# --- derivatives
def _gather_numbers(dnums: ScatterDimensionNumbers) -> GatherDimensionNumbers:
    return GatherDimensionNumbers(*map(tuple, dnums))


def _read_back(array: Any, indices: Any, dnums: ScatterDimensionNumbers, updates_shape: Sequence[int],
               mode: Any = None, fill_value: Any = None) -> Any:
    """What stands where the updates go, with the updates' shape."""
    sizes = window_sizes(shape_of(array), updates_shape, dnums)
    return gather(array, indices, _gather_numbers(dnums), sizes, mode=mode, fill_value=fill_value)


def _additive_jvp(primitive: Primitive) -> Callable[..., Any]:
    def rule(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
        operand, indices, updates = primals
        t_operand, _, t_updates = tangents
        out = primitive.bind(operand, indices, updates, **params)
        if type(t_operand) is ad.Zero and type(t_updates) is ad.Zero:
            return out, ad.Zero.from_primal_value(out)
        t_operand, t_updates = ad.instantiate_zeros(t_operand), ad.instantiate_zeros(t_updates)
        return out, primitive.bind(t_operand, indices, t_updates, **params)

    return rule


def _additive_transpose(negate: bool) -> Callable[..., Any]:
    def rule(ct: Any, operand: Any, indices: Any, updates: Any, *, dimension_numbers: ScatterDimensionNumbers,
             mode: Any, **params: Any) -> list[Any]:
        operand_aval = operand.aval if ad.is_undefined_primal(operand) else None
        updates_aval = updates.aval if ad.is_undefined_primal(updates) else None
        if type(ct) is ad.Zero:
            return [operand_aval and ad.Zero(operand_aval), None, updates_aval and ad.Zero(updates_aval)]
        ct_updates = None
        if updates_aval is not None:
            fill = 0 if mode == GatherScatterMode.FILL_OR_DROP else None
            ct_updates = _read_back(ct, indices, dimension_numbers, updates_aval.shape, mode, fill)
            if negate:
                ct_updates = neg(ct_updates)
        return [ct if operand_aval is not None else None, None, ct_updates]

    return rule


for _primitive, _negate in ((scatter_add_p, False), (scatter_sub_p, True)):
    rules.jvps[_primitive] = _additive_jvp(_primitive)
    rules.transposes[_primitive] = _additive_transpose(_negate)


def _check_unique(unique_indices: bool) -> None:
    if not unique_indices:
        raise NotImplementedError("scatter_mul gradients are only implemented if `unique_indices=True`")


def _mul_jvp(primals: Sequence[Any], tangents: Sequence[Any], *, dimension_numbers: Any, indices_are_sorted: bool,
             unique_indices: bool, mode: Any, **params: Any) -> tuple[Any, Any]:
    operand, indices, updates = primals
    t_operand, _, t_updates = tangents
    kinds = dict(indices_are_sorted=indices_are_sorted, unique_indices=unique_indices, mode=mode)
    out = scatter_mul(operand, indices, updates, dimension_numbers, **kinds)
    total = ad.Zero.from_primal_value(out)
    if type(t_operand) is not ad.Zero:
        total = scatter_mul(t_operand, indices, updates, dimension_numbers, **kinds)
    if type(t_updates) is not ad.Zero:
        _check_unique(unique_indices)
        change = scatter_add(ad.zeros_like_aval(get_aval(operand).to_tangent_aval()), indices, t_updates,
                             dimension_numbers, **kinds)
        total = ad.add_tangents(total, mul(operand, change))
    return out, total


rules.jvps[scatter_mul_p] = _mul_jvp


def _mul_transpose(ct: Any, operand: Any, indices: Any, updates: Any, *, dimension_numbers: Any,
                   indices_are_sorted: bool, unique_indices: bool, mode: Any, **params: Any) -> list[Any]:
    kinds = dict(indices_are_sorted=indices_are_sorted, unique_indices=unique_indices, mode=mode)
    if ad.is_undefined_primal(operand):
        if type(ct) is ad.Zero:
            return [ad.Zero(operand.aval), None, None]
        ones = full(operand.aval.shape, 1, operand.aval.dtype)
        return [mul(ct, scatter_mul(ones, indices, updates, dimension_numbers, **kinds)), None, None]
    _check_unique(unique_indices)
    if type(ct) is ad.Zero:
        return [None, None, ad.Zero(updates.aval)]
    return [None, None, _read_back(mul(ct, operand), indices, dimension_numbers, updates.aval.shape, mode, 0)]


rules.transposes[scatter_mul_p] = _mul_transpose


def _extremal_jvp(primitive: Primitive, function: Callable[..., Any]) -> Callable[..., Any]:
    """The derivative of scatter_min and scatter_max: it is shared evenly where values tie."""

    def rule(primals: Sequence[Any], tangents: Sequence[Any], *, dimension_numbers: Any, indices_are_sorted: bool,
             unique_indices: bool, mode: Any, update_jaxpr: Any, update_consts: Any) -> tuple[Any, Any]:
        operand, indices, updates = primals
        t_operand, _, t_updates = tangents
        kinds = dict(indices_are_sorted=indices_are_sorted, unique_indices=unique_indices, mode=mode)
        out = function(operand, indices, updates, dimension_numbers, **kinds)
        if type(t_operand) is ad.Zero and type(t_updates) is ad.Zero:
            return out, ad.Zero.from_primal_value(out)
        t_operand, t_updates = ad.instantiate_zeros(t_operand), ad.instantiate_zeros(t_updates)
        shape, dtype = shape_of(updates), get_aval(updates).dtype

        def read(array: Any) -> Any:
            return _read_back(array, indices, dimension_numbers, shape,
                              mode if mode == GatherScatterMode.CLIP else None)

        def count(what: Any) -> Any:
            zeros = full(shape_of(operand), 0, get_aval(operand).dtype)
            return read(scatter_add(zeros, indices, what, dimension_numbers, **kinds))

        def number(value: float) -> Any:
            return np.asarray(value, dtype)

        chosen = read(out)
        updated = eq(updates, chosen)
        kept = eq(read(operand), chosen)
        zeros, ones = full(shape, 0, dtype), full(shape, 1, dtype)
        winners = count(select(updated, ones, zeros))
        visits = count(ones)
        with_operand = div(number(1), add(winners, number(1)))
        share = select(kept, with_operand, div(number(1), winners))
        update_coefficient = select(updated, share, zeros)
        operand_share = select(kept, with_operand, zeros)
        # Each of the updates that meet at a place takes away its part of the operand's tangent.
        operand_coefficient = div(add(number(-1), operand_share), visits)
        change = add(mul(read(t_operand), operand_coefficient), mul(t_updates, update_coefficient))
        return out, scatter_add(t_operand, indices, change, dimension_numbers, **kinds)

    return rule


rules.jvps[scatter_min_p] = _extremal_jvp(scatter_min_p, scatter_min)
rules.jvps[scatter_max_p] = _extremal_jvp(scatter_max_p, scatter_max)


def _scatter_jvp(primals: Sequence[Any], tangents: Sequence[Any], *, dimension_numbers: ScatterDimensionNumbers,
                 indices_are_sorted: bool, unique_indices: bool, mode: Any, update_jaxpr: Any,
                 update_consts: Any) -> tuple[Any, Any]:
    operand, indices, updates = primals
    t_operand, _, t_updates = tangents
    params = dict(dimension_numbers=dimension_numbers, indices_are_sorted=indices_are_sorted,
                  unique_indices=unique_indices, mode=mode, update_jaxpr=update_jaxpr, update_consts=update_consts)
    kinds = dict(indices_are_sorted=indices_are_sorted, unique_indices=unique_indices, mode=mode)
    if type(t_operand) is ad.Zero and type(t_updates) is ad.Zero:
        out = scatter_p.bind(operand, indices, updates, **params)
        return out, ad.Zero.from_primal_value(out)
    if update_jaxpr is not None:
        raise NotImplementedError("scatter_apply JVP not implemented")
    t_operand, t_updates = ad.instantiate_zeros(t_operand), ad.instantiate_zeros(t_updates)
    out = scatter_p.bind(operand, indices, updates, **params)
    if unique_indices:
        return out, scatter_p.bind(t_operand, indices, t_updates, **params)
    # Which of several updates to one place wins is unknown. Scattering their numbers tells, and the
    # derivative is that of a sum of what was not overwritten.
    dn = dimension_numbers
    updates_shape = shape_of(updates)
    window = set(dn.update_window_dims)
    count = int(np.prod([n for d, n in enumerate(updates_shape) if d not in window], dtype=np.int64))
    id_dtype = np.dtype(np.uint32 if count < 2**32 - 1 else np.uint64)
    ids = reshape(iota(id_dtype, count), tuple(1 if d in window else n for d, n in enumerate(updates_shape)))
    ids = add(ids, full(updates_shape, 1, id_dtype))
    marks = scatter(full(shape_of(operand), 0, id_dtype), indices, ids, dn, **kinds)
    seen = _read_back(marks, indices, dn, updates_shape)
    untouched = eq(marks, full(shape_of(operand), 0, id_dtype))
    won = eq(ids, seen)
    kept = select(untouched, t_operand, full(shape_of(t_operand), 0, get_aval(t_operand).dtype))
    written = select(won, t_updates, full(updates_shape, 0, get_aval(t_updates).dtype))
    return out, scatter_add(kept, indices, written, dn, **kinds)


rules.jvps[scatter_p] = _scatter_jvp


def _scatter_transpose(ct: Any, operand: Any, indices: Any, updates: Any, *,
                       dimension_numbers: ScatterDimensionNumbers, indices_are_sorted: bool, unique_indices: bool,
                       mode: Any, **params: Any) -> list[Any]:
    if not unique_indices:
        raise NotImplementedError("scatter transpose is only implemented where unique_indices=True")
    operand_aval = operand.aval if ad.is_undefined_primal(operand) else None
    updates_aval = updates.aval if ad.is_undefined_primal(updates) else None
    if type(ct) is ad.Zero:
        return [operand_aval and ad.Zero(operand_aval), None, updates_aval and ad.Zero(updates_aval)]
    ct_operand = ct_updates = None
    if operand_aval is not None:
        shape = shape_of(updates) if updates_aval is None else updates_aval.shape
        zeros = full(shape, 0, get_aval(ct).dtype)
        ct_operand = scatter(ct, indices, zeros, dimension_numbers, indices_are_sorted=indices_are_sorted,
                             unique_indices=True, mode=mode)
    if updates_aval is not None:
        fill = 0 if mode == GatherScatterMode.FILL_OR_DROP else None
        ct_updates = _read_back(ct, indices, dimension_numbers, updates_aval.shape, mode, fill)
    return [ct_operand, None, ct_updates]


rules.transposes[scatter_p] = _scatter_transpose


# --- batching
def _shift(dims: Sequence[int]) -> tuple[int, ...]:
    return tuple(d + 1 for d in dims)


def _scatter_batch(primitive: Primitive, args: Sequence[Any], dims: Sequence[Any], *,
                   dimension_numbers: ScatterDimensionNumbers, **params: Any) -> tuple[Any, int]:
    operand, indices, updates = args
    size = next(shape_of(x)[d] for x, d in zip(args, dims, strict=True) if d is not None)
    operand, updates = batching.all_at_front((operand, updates), (dims[0], dims[2]), size)
    dn = dimension_numbers
    operand_map = dict(
        inserted_window_dims=_shift(dn.inserted_window_dims),
        scatter_dims_to_operand_dims=_shift(dn.scatter_dims_to_operand_dims),
        operand_batching_dims=_shift(dn.operand_batching_dims),
    )
    if dims[1] is None:
        # The whole batch lies in every window.
        new = ScatterDimensionNumbers(update_window_dims=(0, *_shift(dn.update_window_dims)),
                                      scatter_indices_batching_dims=tuple(dn.scatter_indices_batching_dims),
                                      **operand_map)
    else:
        indices = batching.moveaxis(indices, dims[1], 0)
        operand_map["operand_batching_dims"] = (0, *operand_map["operand_batching_dims"])
        new = ScatterDimensionNumbers(
            update_window_dims=_shift(dn.update_window_dims),
            scatter_indices_batching_dims=(0, *_shift(dn.scatter_indices_batching_dims)), **operand_map)
    return primitive.bind(operand, indices, updates, dimension_numbers=new, **params), 0


def _scatter_physical(primitive: Primitive, context: Context, operand: Any, indices: Any, updates: Any, *,
                      dimension_numbers: ScatterDimensionNumbers, **params: Any) -> Any:
    rank = context.avals_in[2].ndim
    new = dimension_numbers._replace(update_window_dims=(
        *dimension_numbers.update_window_dims, *range(rank, rank + context.element_ndim())))
    return primitive.bind(operand, indices, updates, dimension_numbers=new, **params)
