"""Rules of batching: a view of the tables that `vmap` uses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core.programs.jaxpr import ClosedJaxpr
from ..core.tracing.trace import set_current_trace, state
from ..extend.linear_util import Store, WrappedFun, transformation_with_aux2
from ..transforms import batch
from ..transforms.batching import (
    AxisData,
    BatchTrace,
    BatchTracer,
    axis_primitive_batchers,
    bdim_at_front,
    broadcast,
    broadcast_batcher,
    defbroadcasting,
    defreducer,
    defvectorized,
    fancy_primitive_batchers,
    matchaxis,
    moveaxis,
    not_mapped,
    primitive_batchers,
)
from ..transforms.vmappable import register_vmappable, unregister_vmappable


class ZeroIfMapped:
    """The type of `zero_if_mapped`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "zero_if_mapped"


zero_if_mapped = ZeroIfMapped()  # of a result: the axis is in front if it has it at all


def batch_jaxpr_axes(closed_jaxpr: ClosedJaxpr, axis_data: AxisData, in_axes: Sequence[int | None],
                     out_axes_dest: Sequence[int | ZeroIfMapped | None]) -> tuple[ClosedJaxpr, list[bool]]:
    """A program on many examples.

    Args:
      closed_jaxpr: the program.
      axis_data: the mapped axis.
      in_axes: where its inputs are to have the axis, None for those without.
      out_axes_dest: where its results are to have it; `zero_if_mapped` for in front, if they have it at all.

    Returns:
      The new program, and which of its results have the axis.

    Raises:
      ValueError: a result that is to be without the axis has it.
    """
    dims = batch.batch_jaxpr2(closed_jaxpr, axis_data, in_axes)[1]
    for dim, wanted in zip(dims, out_axes_dest, strict=True):
        if dim is not None and wanted is None:
            raise ValueError(f"vmap has mapped output (axis_name={axis_data.name}) but out_axes is None")
    wanted_dims = [None if isinstance(w, ZeroIfMapped) else w for w in out_axes_dest]
    made, found = batch.batch_jaxpr_axes(closed_jaxpr, axis_data, in_axes, wanted_dims)
    return made, [d is not None for d in found]


def _in_batch(f: Callable[..., Sequence[Any]], store: Store, tag: object, axis_data: AxisData,
              in_dims: Sequence[int | None] | Callable[[], Sequence[int | None]], *in_vals: Any) -> list[Any]:
    trace = BatchTrace(state.trace, axis_data, tag)
    dims = in_dims() if callable(in_dims) else in_dims
    with set_current_trace(trace):
        outs = f(*(trace.new_arg(x, d) for x, d in zip(in_vals, dims, strict=True)))
    pairs = [trace.to_pair(x) for x in outs]
    store.store([d for _, d in pairs])
    return [x for x, _ in pairs]


def batch_subtrace(f: WrappedFun, tag: object, axis_data: AxisData,
                   in_dims: Sequence[int | None] | Callable[[], Sequence[int | None]]
                   ) -> tuple[WrappedFun, Callable[[], list[int | None]]]:
    """A function of flat arguments on many examples, inside of a batching that is under way.

    Args:
      f: the function, a `linear_util.WrappedFun`.
      tag: what the traces of the batching have in common: a function that closes over values of theirs has them mapped.
      axis_data: the mapped axis.
      in_dims: where the arguments have the axis, None for those without, or a function that says it when called.

    Returns:
      The function of arrays that have the axis, and a function that says after the call where its results have it.
    """
    return transformation_with_aux2(_in_batch, f, tag, axis_data, in_dims)


__all__ = [
    "AxisData", "BatchTrace", "BatchTracer", "axis_primitive_batchers", "batch_jaxpr_axes", "batch_subtrace",
    "bdim_at_front", "broadcast", "broadcast_batcher",
    "defbroadcasting", "defreducer", "defvectorized", "fancy_primitive_batchers", "matchaxis", "moveaxis", "not_mapped",
    "primitive_batchers", "register_vmappable", "unregister_vmappable",
    "zero_if_mapped",
]
