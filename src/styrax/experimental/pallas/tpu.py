"""Names of JAX's TPU kernels: data, copies and arithmetic work on CPUs, the rest says that it needs a TPU."""

from __future__ import annotations

from ...lazy import names

_HOMES = {
    "experimental.pallas.tpu_specs": "ARBITRARY BufferType BufferedRef BufferedRefBase CMEM CORE_PARALLEL ChipVersion "
                                     "CompilerParams CoreType GridDimensionSemantics HBM InterpretParams "
                                     "LoweringException MemorySpace PARALLEL PrefetchScalarGridSpec SEMAPHORE SMEM "
                                     "SUBCORE_PARALLEL SemaphoreType SideEffectType Tiling TpuInfo VMEM VMEM_SHARED "
                                     "create_tensorcore_mesh dma_semaphore force_tpu_interpret_mode get_tpu_info "
                                     "get_tpu_info_for_chip is_tpu_device reset_tpu_interpret_mode_state "
                                     "set_tpu_interpret_mode",
    "experimental.pallas.copies": "async_copy async_remote_copy make_async_copy make_async_remote_copy sync_copy",
    "experimental.pallas.access": "store",
    "experimental.pallas.tpu_operations": "bitcast core_barrier einshape emit_pipeline emit_pipeline_with_allocations "
                                          "get_barrier_semaphore load matmul_acc_lhs matmul_pop matmul_push_rhs "
                                          "pack_elementwise prng_random_bits prng_seed roll run_on_first_core "
                                          "sample_block stateful_bernoulli stateful_bits stateful_normal "
                                          "stateful_uniform stochastic_round to_pallas_key touch trace_value "
                                          "unpack_elementwise with_memory_space_constraint",
    "experimental.pallas": "core:tpu_specs",
}

__getattr__, __dir__, __all__ = names(__name__, _HOMES)
