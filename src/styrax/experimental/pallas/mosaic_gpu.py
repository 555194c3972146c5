"""Names of JAX's Mosaic kernels for GPUs."""

from __future__ import annotations

from ...lazy import names

_HOMES = {
    "experimental.pallas.gpu_specs": "ACC Barrier BlockSpec ClusterBarrier CompilerParams CopyPartition GMEM Layout "
                                     "LoweringSemantics MemorySpace Mesh NDLoopInfo OOBFillMode PeerMemRef "
                                     "PipelinePipeline REGS RefType RefUnion Replicated SMEM SemaphoreSignal "
                                     "SemaphoreType ShapeDtypeStruct SwizzleTransform TMEM TMEMLayout Tiling "
                                     "TilingTransform TraceScope Transform TryClusterCancelResult "
                                     "WGMMAAccumulatorRef:ACC WarpMesh",
    "experimental.pallas.gpu_operations": "as_torch_kernel async_copy_scales_to_tmem async_copy_smem_to_tmem "
                                          "async_copy_sparse_metadata_to_tmem async_load_tmem async_prefetch "
                                          "async_store_smem async_store_tmem atomic_add atomic_and atomic_max "
                                          "atomic_min atomic_or atomic_xor barrier_arrive barrier_test barrier_wait "
                                          "broadcasted_iota cluster_ref commit_smem commit_smem_to_gmem_group "
                                          "commit_tmem copy_gmem_to_smem copy_smem_to_gmem dynamic_scheduling_loop "
                                          "emit_pipeline emit_pipeline_warp_specialized find_swizzle "
                                          "format_tcgen05_sparse_metadata griddepcontrol_launch_dependents "
                                          "griddepcontrol_wait inline_mgpu kernel layout_cast load multicast_ref "
                                          "multimem_load_reduce multimem_store nd_loop planar_snake print_layout "
                                          "query_cluster_cancel remote_ref semaphore_signal "
                                          "semaphore_signal_multicast semaphore_signal_parallel semaphore_wait "
                                          "set_max_registers tcgen05_commit_arrive tcgen05_mma transform_ref "
                                          "transpose_ref try_cluster_cancel wait_load_tmem wait_smem_to_gmem warp_map "
                                          "wgmma wgmma_accumulator_load wgmma_wait",
}

__getattr__, __dir__, __all__ = names(__name__, _HOMES)
