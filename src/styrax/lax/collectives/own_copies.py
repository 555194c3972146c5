"""From a device's own copy of an array to those of all devices, and back (`core.arrays.differing`).

Programs on such arrays are mapped over an axis of the devices, which is in scope by the name `DevicesAxis`. Where it is
not mapped over, as in a program's text, all copies are alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from styrax.core.arrays.differing import Devices
from styrax.core.hooks import lax
from styrax.core.programs import rules
from styrax.core.tracing.trace import get_aval
from styrax.core.types.effects import Effects
from styrax.transforms import ad, batching
from styrax.transforms.batching import AxisData

from .named_axes import _collective, _effects

if TYPE_CHECKING:
    from styrax.core.programs.lowering import Builder


class DevicesAxis:
    """The name of the axis of the copies that devices have."""

    __slots__ = ("devices",)

    def __init__(self, devices: Devices):
        self.devices = devices

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DevicesAxis) and self.devices == other.devices

    def __hash__(self) -> int:
        return hash((DevicesAxis, self.devices))

    def __repr__(self) -> str:
        return f"DevicesAxis({len(self.devices)})"


# A device's copy as those of all, `[devices, *shape]`. The cotangents of all are each device's, added up.
every_copy_p = _collective("every_copy", lambda params: (params["axis"],))


@every_copy_p.def_effectful_abstract_eval
def _every_aval(x: Any, *, axis: DevicesAxis) -> tuple[Any, Effects]:
    return x.update(shape=(len(axis.devices), *x.shape)), _effects((axis,))


def _every(x: Any, axis: DevicesAxis) -> Any:
    return lax.broadcast(x, (len(axis.devices),))


def _every_batch(axis_data: AxisData, args: Any, dims: Any, *, axis: DevicesAxis) -> Any:
    (x,), (d,) = args, dims
    if axis_data.name == axis:
        return (_every(x, axis) if d is None else batching.moveaxis(x, d, 0)), None
    return every_copy_p.bind(x, axis=axis), d + 1


def _every_transpose(ct: Any, x: Any, *, axis: DevicesAxis) -> list[Any]:
    return [ad.Zero(x.aval.to_ct_aval()) if type(ct) is ad.Zero else lax.reduce_sum(ct, (0,))]


def _every_loops(b: Builder, x: Any, *, axis: DevicesAxis) -> Any:
    return b.value(b.avals_out[0].shape, x.dtype, lambda index: x.at(index[1:]))


every_copy_p.def_impl(lambda x, *, axis: _every(x, axis))
rules.fancy_batchers[every_copy_p] = _every_batch
rules.loops[every_copy_p] = _every_loops
rules.stablehlos[every_copy_p] = lambda m, x, *, axis: m.call_traced(lambda x: [_every(x, axis)], x)[0]
ad.deflinear2(every_copy_p, _every_transpose)

# Of the copies of all devices a device's own. Each has a share of the cotangent, as if all were alike.
own_copy_p = _collective("own_copy", lambda params: (params["axis"],))


@own_copy_p.def_effectful_abstract_eval
def _own_aval(rows: Any, *, axis: DevicesAxis) -> tuple[Any, Effects]:
    return rows.update(shape=rows.shape[1:]), _effects((axis,))


def _first(rows: Any) -> Any:
    return lax.index_in_dim(rows, 0, 0, keepdims=False)


def _own_batch(axis_data: AxisData, args: Any, dims: Sequence[Any], *, axis: DevicesAxis) -> Any:
    (rows,), (d,) = args, dims
    if axis_data.name != axis:
        return own_copy_p.bind(batching.moveaxis(rows, d, 1) if d == 0 else rows, axis=axis), max(d - 1, 0)
    if d is None:
        return rows, 0
    size = len(axis.devices)  # of each device's rows its own
    rows = batching.moveaxis(rows, d, 0)
    shape = get_aval(rows).shape
    flat = lax.reshape(rows, (size * size, *shape[2:]))
    return lax.slice(flat, (0,) * (len(shape) - 1), get_aval(flat).shape, (size + 1, *(1,) * (len(shape) - 2))), 0


def _own_transpose(ct: Any, rows: Any, *, axis: DevicesAxis) -> list[Any]:
    if type(ct) is ad.Zero:
        return [ad.Zero(rows.aval.to_ct_aval())]
    every = every_copy_p.bind(ct, axis=axis)
    return [lax.div(every, lax.full_like(every, len(axis.devices)))]


def _own_loops(b: Builder, rows: Any, *, axis: DevicesAxis) -> Any:
    return b.value(rows.shape[1:], rows.dtype, lambda index: rows.at([b.index(0), *index]))


own_copy_p.def_impl(lambda rows, *, axis: _first(rows))
rules.fancy_batchers[own_copy_p] = _own_batch
rules.loops[own_copy_p] = _own_loops
rules.stablehlos[own_copy_p] = lambda m, rows, *, axis: m.call_traced(lambda rows: [_first(rows)], rows)[0]
ad.deflinear2(own_copy_p, _own_transpose)

__all__ = ["DevicesAxis", "every_copy_p", "own_copy_p"]
