"""Rules of batching: a view of the tables that `vmap` uses."""

from __future__ import annotations

from ..transforms.batch import batch_jaxpr_axes
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

__all__ = [
    "AxisData", "BatchTrace", "BatchTracer", "axis_primitive_batchers", "batch_jaxpr_axes", "bdim_at_front",
    "broadcast", "broadcast_batcher",
    "defbroadcasting", "defreducer", "defvectorized", "fancy_primitive_batchers", "matchaxis", "moveaxis", "not_mapped",
    "primitive_batchers", "register_vmappable", "unregister_vmappable",
]
