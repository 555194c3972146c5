"""Styrax: JAX's programming model, compiled to native code.

`import styrax as jax` is the native spelling; `python -m styrax script.py` runs programs written for JAX unchanged.
Names are found where they are defined when they are first used, so that importing the package stays cheap.
"""

from __future__ import annotations

from .lazy import names as _names
from .version import __version__, __version_info__

_HOMES = {
    "compat": "_src:internals",
    "core.array": "Array",
    "core.avals": "ShapeDtypeStruct",
    "core.config": (
        "config allow_f16_reductions array_garbage_collection_guard auto_pcast check_tracer_leaks debug_infs "
        "debug_key_reuse debug_nans default_device default_matmul_precision default_prng_impl disable_jit "
        "enable_checks enable_custom_prng enable_x64 explain_cache_misses jax2tf_associative_scan_reductions "
        "legacy_prng_key log_compiles make_user_context no_execution no_tracing numpy_dtype_promotion "
        "numpy_rank_promotion remove_size_one_mesh_axis_from_type softmax_custom_jvp thread_guard "
        "threefry_partitionable transfer_guard transfer_guard_device_to_device transfer_guard_device_to_host "
        "transfer_guard_host_to_device"),
    "core.devices": "Device Shard",
    "core.dtypes": "float0",
    "core.mesh": "make_mesh set_mesh",
    "core.shardings": "NamedSharding P:PartitionSpec",
    "core.trace": "ensure_compile_time_eval typeof",
    "lax.placing": "device_put reshard",
    "parallel.mapping": "pmap shard_map",
    "placement": (
        "block_until_ready copy_to_host_async default_backend device_count device_get devices effects_barrier "
        "host_count host_id host_ids live_arrays local_device_count local_devices make_array_from_callback "
        "make_array_from_process_local_data make_array_from_single_device_arrays print_environment_info process_count "
        "process_index process_indices"),
    "transforms.api": (
        "eval_shape fwd_and_bwd grad hessian jacfwd jacrev jvp linear_transpose linearize make_jaxpr value_and_grad "
        "vjp vmap"),
    "transforms.callbacks": "pure_callback",
    "transforms.checkpoint": "checkpoint checkpoint_policies",
    "transforms.custom": "closure_convert custom_gradient custom_jvp custom_vjp",
    "transforms.jit": "clear_caches jit",
    "transforms.ref_indexing": "ds",
    "transforms.refs": "Ref empty_ref free_ref freeze new_ref",
    "transforms.scopes": "named_call named_scope",
    # names that JAX has removed
    "core.tree": "tree_flatten tree_leaves tree_map tree_structure tree_transpose tree_unflatten",
}
_ALIASES = {"checking_leaks": "check_tracer_leaks", "jacobian": "jacrev", "remat": "checkpoint"}
_MODULES = (
    "ad_checkpoint api_util compat core custom_batching custom_derivatives debug distributed dlpack dtypes errors "
    "example_libraries experimental export extend ffi flatten_util image inspect interpreters lax lib memory "
    "monitoring nn numpy ops placement profiler random ref scipy sharding stages test_util tree tree_util typing "
    "version").split()

__getattr__, __dir__, __all__ = _names(__name__, _HOMES, _ALIASES, _MODULES)
