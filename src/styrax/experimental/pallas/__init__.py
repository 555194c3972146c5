"""Kernels on grids of blocks."""

from __future__ import annotations

from ...lazy import names

_HOMES = {
    "experimental.pallas.specs": "ANY BlockDim BlockSpec Blocked BoundedSlice Buffered CompilerParams CostEstimate "
                                 "DeviceIdType Element GridSpec HOST Indirect MemoryRef MemorySpace RevisitMode "
                                 "Squeezed no_block_spec squeezed",
    "experimental.pallas.control": "cdiv loop when",
    "experimental.pallas.calls": "pallas_call pallas_call_p",
    "experimental.pallas.indices": "num_programs program_id",
}

__getattr__, __dir__, __all__ = names(__name__, _HOMES)
