"""Collectives in programs for XLA: operations between the devices of the mesh that a module is printed for."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from styrax.core.hooks import lax
from styrax.core.programs import rules
from styrax.core.programs.primitive import Primitive
from styrax.core.types.avals import ShapedArray, abstract_token

from .axis_reductions import pmax_p, pmin_p, psum_invariant_p, psum_p
from .communication import (
    all_gather_invariant_p,
    all_gather_p,
    all_to_all_p,
    pbroadcast_p,
    ppermute_p,
    reduce_scatter_p,
)
from .named_axes import axis_index_p, refuse_names
from .ragged_exchange import ragged_all_to_all_p
from .sends import precv_p, psend_p

UINT32 = np.dtype(np.uint32)


def _groups(m: Any, names: Sequence[Hashable], parts: Sequence[Sequence[int]] | None = None) -> list[list[int]]:
    """The devices that differ in their positions along these axes alone, in the order of those; `parts` divides each
    group further."""
    axes: dict[Hashable, int] = m.module.axes
    refuse_names(m.primitive.name, [name for name in names if name not in axes])
    order = list(axes)
    devices = np.arange(math.prod(axes.values())).reshape(list(axes.values()))
    last = [order.index(name) for name in names]
    devices = devices.transpose([*(i for i in range(len(order)) if i not in last), *last])
    groups = devices.reshape(-1, math.prod(axes[name] for name in names)).tolist()
    return groups if parts is None else [[group[i] for i in part] for group in groups for part in parts]


def _matrix(rows: Sequence[Sequence[int]]) -> str:
    inside = [list(row) for row in rows] or ""
    return f"dense<{inside}> : tensor<{len(rows)}x{len(rows[0]) if rows else 2}xi64>"


def _channel(m: Any) -> str:
    m.module.channels += 1
    return f"channel_handle = #stablehlo.channel_handle<handle = {m.module.channels}, type = 1>"


def _between(m: Any, groups: Sequence[Sequence[int]]) -> str:
    """Who takes part, for operations that name devices by their numbers in the whole mesh."""
    return f"{_channel(m)}, replica_groups = {_matrix(groups)}, use_global_device_ids"


def _combine(m: Any, operation: str, dtype: Any) -> str:
    """How two elements become one: by a function of `lax`."""
    scalar = ShapedArray((), dtype)
    return m.region([scalar, scalar], lambda m2, x, y: m2.call_traced(getattr(lax, operation), x, y))


def _reduction(primitive: Primitive, plain: str, operation: str) -> None:
    def stablehlo(m: Any, x: Any, *, axes: tuple[Hashable, ...], axis_index_groups: Any) -> Any:
        positions = tuple(a for a in axes if isinstance(a, int))
        names = [a for a in axes if not isinstance(a, int)]
        groups = _groups(m, names, axis_index_groups)
        if positions:
            x = rules.stablehlos[getattr(lax, f"{plain}_p")](m, x, axes=positions, out_sharding=None)
        if not names:
            return x
        return m.op("stablehlo.all_reduce", [x], m.avals_out, _between(m, groups), [_combine(m, operation, x.dtype)])

    rules.stablehlos[primitive] = stablehlo


_reduction(psum_p, "reduce_sum", "add")
_reduction(psum_invariant_p, "reduce_sum", "add")
_reduction(pmax_p, "reduce_max", "max")
_reduction(pmin_p, "reduce_min", "min")


def _axis_index(m: Any, *, axis_name: Hashable) -> Any:
    _groups(m, [axis_name])
    names = list(m.module.axes)
    sizes = list(m.module.axes.values())
    at = names.index(axis_name)
    scalar = ShapedArray((), UINT32)
    device = m.op1("stablehlo.partition_id", [], scalar)
    row = m.op1("stablehlo.divide", [device, m.full(math.prod(sizes[at + 1:]), scalar)], scalar)
    return m.convert(m.op1("stablehlo.remainder", [row, m.full(sizes[at], scalar)], scalar), np.dtype(np.int32))


rules.stablehlos[axis_index_p] = _axis_index


def _ppermute(m: Any, x: Any, *, axis_name: Sequence[Hashable], perm: Sequence[tuple[int, int]]) -> Any:
    pairs = [(group[source], group[target]) for group in _groups(m, axis_name) for source, target in perm]
    attributes = f"{_channel(m)}, source_target_pairs = {_matrix(pairs)}"
    return m.op1("stablehlo.collective_permute", [x], m.avals_out[0], attributes)


rules.stablehlos[ppermute_p] = _ppermute


def _pbroadcast(m: Any, x: Any, *, axis_name: Any, source: int) -> Any:
    names = axis_name if isinstance(axis_name, tuple) else (axis_name,)
    # the first of a group sends
    groups = [[group[source], *group[:source], *group[source + 1:]] for group in _groups(m, names)]
    attributes = f"{_channel(m)}, replica_groups = {_matrix(groups)}"
    return m.op1("stablehlo.collective_broadcast", [x], m.avals_out[0], attributes)


rules.stablehlos[pbroadcast_p] = _pbroadcast


def _all_gather(m: Any, x: Any, *, all_gather_dimension: int, axis_name: Sequence[Hashable], axis_index_groups: Any,
                tiled: bool, **_: Any) -> Any:
    groups = _groups(m, axis_name, axis_index_groups)
    if not tiled:
        shape = list(x.shape)
        shape.insert(all_gather_dimension, 1)
        x = m.reshape(x, shape)
    return m.op1("stablehlo.all_gather", [x], m.avals_out[0],
                 f"all_gather_dim = {all_gather_dimension} : i64, {_between(m, groups)}")


rules.stablehlos[all_gather_p] = rules.stablehlos[all_gather_invariant_p] = _all_gather


def _reduce_scatter(m: Any, x: Any, *, scatter_dimension: int, axis_name: Sequence[Hashable], axis_index_groups: Any,
                    axis_size: int, tiled: bool) -> Any:
    groups = _groups(m, axis_name, axis_index_groups)
    (aval,) = m.avals_out
    shape = list(x.shape)
    shape[scatter_dimension] //= axis_size
    attributes = f"scatter_dimension = {scatter_dimension} : i64, {_between(m, groups)}"
    (out,) = m.op("stablehlo.reduce_scatter", [x], [ShapedArray(tuple(shape), x.dtype)], attributes,
                  [_combine(m, "add", x.dtype)])
    return m.reshape(out, aval.shape)


rules.stablehlos[reduce_scatter_p] = _reduce_scatter


def _all_to_all(m: Any, x: Any, *, axis_name: Any, split_axis: int, concat_axis: int, axis_index_groups: Any,
                **_: Any) -> Any:
    groups = _groups(m, axis_name if isinstance(axis_name, tuple) else (axis_name,), axis_index_groups)
    return m.op1("stablehlo.all_to_all", [x], m.avals_out[0],
                 f"split_dimension = {split_axis} : i64, concat_dimension = {concat_axis} : i64, "
                 f"split_count = {len(groups[0])} : i64, {_channel(m)}, replica_groups = {_matrix(groups)}")


rules.stablehlos[all_to_all_p] = _all_to_all


def _transfer(m: Any, pairs: Sequence[tuple[int, int]], names: Sequence[Hashable]) -> str:
    between = [(group[source], group[target]) for group in _groups(m, names) for source, target in pairs]
    return f"{_channel(m)}, is_host_transfer = false, source_target_pairs = {_matrix(between)}"


def _psend(m: Any, *xs: Any, axis_name: Sequence[Hashable], perm: Sequence[tuple[int, int]]) -> Any:
    token = m.op1("stablehlo.create_token", [], abstract_token)
    return m.op1("stablehlo.send", [*xs, token], abstract_token, _transfer(m, perm, axis_name))


def _precv(m: Any, token: Any, *, out_shape: ShapedArray, axis_name: Sequence[Hashable],
           perm: Sequence[tuple[int, int]]) -> Any:
    out, _ = m.op("stablehlo.recv", [token], [out_shape, abstract_token], _transfer(m, perm, axis_name))
    return out


rules.stablehlos[psend_p] = _psend
rules.stablehlos[precv_p] = _precv


def _ragged_all_to_all(m: Any, *xs: Any, axis_name: Sequence[Hashable], axis_index_groups: Any) -> Any:
    groups = _matrix(_groups(m, axis_name, axis_index_groups))
    m.module.channels += 1
    config = f"{{channel_id = {m.module.channels} : i64, replica_groups = {groups}}}"
    return m.op1("stablehlo.custom_call", list(xs), m.avals_out[0],
                 f'call_target_name = "ragged_all_to_all", api_version = 4 : i32, backend_config = {config}')


rules.stablehlos[ragged_all_to_all_p] = _ragged_all_to_all


def rule_between_devices(primitive: Primitive) -> Callable[..., Any] | None:
    """The StableHLO rule of a primitive, if it is one of these."""
    return rules.stablehlos.get(primitive)
