"""Batching rules and their helpers, under the names of JAX's `interpreters.batching`."""

from __future__ import annotations

from ..core.programs.rules import batchers as primitive_batchers
from ..core.programs.rules import fancy_batchers as fancy_primitive_batchers
from ..core.programs.rules import not_mapped
from .batch import (
    AxisData,
    BatchTrace,
    BatchTracer,
    all_at_front,
    axis_names_of,
    batch_flat,
    batch_jaxpr,
    batch_jaxpr2,
    batch_jaxpr_axes,
    bdim_at_front,
    broadcast,
    mapped_aval,
    matchaxis,
    moveaxis,
    unmapped_aval,
)
from .batch import axis_batchers as axis_primitive_batchers
from .batch_rules import broadcast_batcher, defbroadcasting, defreducer, defvectorized

__all__ = [
    "AxisData",
    "BatchTrace",
    "BatchTracer",
    "axis_names_of",
    "axis_primitive_batchers",
    "batch_flat",
    "batch_jaxpr",
    "batch_jaxpr2",
    "batch_jaxpr_axes",
    "all_at_front",
    "bdim_at_front",
    "broadcast",
    "broadcast_batcher",
    "defbroadcasting",
    "defreducer",
    "defvectorized",
    "fancy_primitive_batchers",
    "mapped_aval",
    "matchaxis",
    "moveaxis",
    "not_mapped",
    "primitive_batchers",
    "unmapped_aval",
]
