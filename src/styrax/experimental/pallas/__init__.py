"""Kernels on grids of blocks: `from styrax.experimental import pallas as pl`."""

from __future__ import annotations

from ...lazy import names

_HOMES = {
    "experimental.pallas.specs": "ANY BlockDim BlockSpec Blocked BoundedSlice Buffered CompilerParams CostEstimate "
                                 "DeviceIdType Element GridSpec HOST Indirect MemoryRef MemorySpace RevisitMode "
                                 "Squeezed no_block_spec squeezed",
    "experimental.pallas.kernels": "pallas_call pallas_call_p",
    "experimental.pallas.indices": "num_programs program_id",
    "experimental.pallas.control": "loop run_state when",
    "experimental.pallas.arithmetic": "align_to broadcast_to cdiv max_contiguous multiple_of next_power_of_2 "
                                      "dot reciprocal strides_from_shape",
    "experimental.pallas.scopes": "empty empty_like empty_ref_like run_scoped with_scoped",
    "experimental.pallas.semaphores": "semaphore semaphore_read semaphore_signal semaphore_wait",
    "experimental.pallas.debugging": "debug_check debug_checks_enabled debug_print "
                                      "enable_debug_checks enable_poison_buffers",
    "experimental.pallas.costs": "estimate_cost",
    "experimental.pallas.accelerators": "core_map delay get_global kernel lower_as_mlir pallas_export_experimental "
                                        "select_ref",
    "transforms.ref_indexing": "Slice ds dslice:ds",
}

__getattr__, __dir__, __all__ = names(__name__, _HOMES, modules=(
    "fuser", "mosaic_gpu", "ops", "tpu", "tpu_sc", "triton"))
