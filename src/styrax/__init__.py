"""Styrax: JAX's programming model, compiled to native code.

`import styrax as jax` is the native spelling; `python -m styrax script.py` runs programs written for JAX unchanged.
Names are found where they are defined when they are first used, so that importing the package stays cheap.
"""

from __future__ import annotations

from .lazy import names as _names
from .version import __version__, __version_info__

_HOMES = {
    "compat": "_src:internals",
    "core.arrays.array": "Array",
    "core.arrays.shape_struct": "ShapeDtypeStruct",
    "core.settings.config": (
        "config allow_f16_reductions array_garbage_collection_guard auto_pcast check_tracer_leaks debug_infs "
        "debug_key_reuse debug_nans default_device default_matmul_precision default_prng_impl disable_jit "
        "enable_checks enable_custom_prng enable_x64 explain_cache_misses jax2tf_associative_scan_reductions "
        "legacy_prng_key log_compiles make_user_context no_execution no_tracing numpy_dtype_promotion "
        "numpy_rank_promotion remove_size_one_mesh_axis_from_type softmax_custom_jvp thread_guard "
        "threefry_partitionable transfer_guard transfer_guard_device_to_device transfer_guard_device_to_host "
        "transfer_guard_host_to_device"),
    "core.arrays.devices": "Device Shard",
    "core.settings.flags": "CompilerEffortLevel Inline",
    "core.types.dtypes": "float0",
    "core.arrays.mesh": "get_abstract_mesh get_mesh make_mesh set_mesh use_abstract_mesh",
    "core.arrays.shardings": "NamedSharding P:PartitionSpec",
    "core.tracing.trace": "ensure_compile_time_eval typeof",
    "lax.collectives.placing": "device_put reshard",
    "parallel.pmapping": "pmap",
    "parallel.shard_mapping": "shard_map",
    "parallel.axes": "smap",
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
    "transforms.pullbacks": "ad",
    "transforms.refs": "Ref empty_ref free_ref freeze new_ref",
    "transforms.scopes": "named_call named_scope",
}
_ALIASES = {"checking_leaks": "check_tracer_leaks", "jacobian": "jacrev", "remat": "checkpoint"}
_MODULES = (
    "ad_checkpoint api_util compat core custom_batching custom_derivatives debug distributed dlpack dtypes errors "
    "example_libraries experimental export extend ffi flatten_util image inspect interpreters lax lib memory "
    "monitoring nn numpy ops placement profiler random ref scipy sharding stages test_util tree tree_util typing "
    "version").split()

TYPE_CHECKING = False
if TYPE_CHECKING:  # the same names for type checkers and editors
    from . import (
        ad_checkpoint,
        api_util,
        compat,
        core,
        custom_batching,
        custom_derivatives,
        debug,
        distributed,
        dlpack,
        dtypes,
        errors,
        example_libraries,
        experimental,
        export,
        extend,
        ffi,
        flatten_util,
        image,
        interpreters,
        lax,
        lib,
        memory,
        monitoring,
        nn,
        numpy,
        ops,
        placement,
        profiler,
        random,
        ref,
        scipy,
        sharding,
        stages,
        test_util,
        tree,
        tree_util,
        typing,
        version,
    )
    from .core.arrays.array import Array
    from .core.arrays.devices import Device, Shard
    from .core.arrays.mesh import get_abstract_mesh, get_mesh, make_mesh, set_mesh, use_abstract_mesh
    from .core.arrays.shape_struct import ShapeDtypeStruct
    from .core.arrays.shardings import NamedSharding
    from .core.arrays.shardings import PartitionSpec as P
    from .core.settings.config import (
        allow_f16_reductions,
        array_garbage_collection_guard,
        auto_pcast,
        check_tracer_leaks,
        config,
        debug_infs,
        debug_key_reuse,
        debug_nans,
        default_device,
        default_matmul_precision,
        default_prng_impl,
        disable_jit,
        enable_checks,
        enable_custom_prng,
        enable_x64,
        explain_cache_misses,
        jax2tf_associative_scan_reductions,
        legacy_prng_key,
        log_compiles,
        make_user_context,
        no_execution,
        no_tracing,
        numpy_dtype_promotion,
        numpy_rank_promotion,
        remove_size_one_mesh_axis_from_type,
        softmax_custom_jvp,
        thread_guard,
        threefry_partitionable,
        transfer_guard,
        transfer_guard_device_to_device,
        transfer_guard_device_to_host,
        transfer_guard_host_to_device,
    )
    from .core.settings.config import check_tracer_leaks as checking_leaks
    from .core.settings.flags import CompilerEffortLevel, Inline
    from .core.tracing.trace import ensure_compile_time_eval, typeof
    from .core.types.dtypes import float0
    from .lax.collectives.placing import device_put, reshard
    from .parallel.axes import smap
    from .parallel.pmapping import pmap
    from .parallel.shard_mapping import shard_map
    from .placement import (
        block_until_ready,
        copy_to_host_async,
        default_backend,
        device_count,
        device_get,
        devices,
        effects_barrier,
        host_count,
        host_id,
        host_ids,
        live_arrays,
        local_device_count,
        local_devices,
        make_array_from_callback,
        make_array_from_process_local_data,
        make_array_from_single_device_arrays,
        print_environment_info,
        process_count,
        process_index,
        process_indices,
    )
    from .transforms.api import (
        eval_shape,
        fwd_and_bwd,
        grad,
        hessian,
        jacfwd,
        jacrev,
        jvp,
        linear_transpose,
        linearize,
        make_jaxpr,
        value_and_grad,
        vjp,
        vmap,
    )
    from .transforms.api import jacrev as jacobian
    from .transforms.callbacks import pure_callback
    from .transforms.checkpoint import checkpoint, checkpoint_policies
    from .transforms.checkpoint import checkpoint as remat
    from .transforms.custom import closure_convert, custom_gradient, custom_jvp, custom_vjp
    from .transforms.jit import clear_caches, jit
    from .transforms.pullbacks import ad
    from .transforms.ref_indexing import ds
    from .transforms.refs import Ref, empty_ref, free_ref, freeze, new_ref
    from .transforms.scopes import named_call, named_scope

    __all__ = [
        "Array", "CompilerEffortLevel", "Device", "Inline", "NamedSharding", "P", "Ref", "ShapeDtypeStruct", "Shard",
        "ad", "ad_checkpoint",
        "allow_f16_reductions", "api_util", "array_garbage_collection_guard", "auto_pcast", "block_until_ready",
        "check_tracer_leaks", "checking_leaks", "checkpoint", "checkpoint_policies", "clear_caches",
        "closure_convert", "compat", "config", "copy_to_host_async", "core", "custom_batching", "custom_derivatives",
        "custom_gradient", "custom_jvp", "custom_vjp", "debug", "debug_infs", "debug_key_reuse", "debug_nans",
        "default_backend", "default_device", "default_matmul_precision", "default_prng_impl", "device_count",
        "device_get", "device_put", "devices", "disable_jit", "distributed", "dlpack", "ds", "dtypes",
        "effects_barrier", "empty_ref", "enable_checks", "enable_custom_prng", "enable_x64",
        "ensure_compile_time_eval", "errors", "eval_shape", "example_libraries", "experimental",
        "explain_cache_misses", "export", "extend",
        "ffi", "flatten_util", "float0", "free_ref", "freeze", "fwd_and_bwd", "get_abstract_mesh", "get_mesh", "grad",
        "hessian", "host_count", "host_id",
        "host_ids", "image", "interpreters", "jacfwd", "jacobian", "jacrev", "jax2tf_associative_scan_reductions",
        "jit", "jvp", "lax", "legacy_prng_key", "lib", "linear_transpose", "linearize", "live_arrays",
        "local_device_count", "local_devices", "log_compiles", "make_array_from_callback",
        "make_array_from_process_local_data",
        "make_array_from_single_device_arrays", "make_jaxpr", "make_mesh", "make_user_context", "memory",
        "monitoring", "named_call", "named_scope", "new_ref", "nn", "no_execution", "no_tracing", "numpy",
        "numpy_dtype_promotion", "numpy_rank_promotion", "ops", "placement", "pmap", "print_environment_info",
        "process_count", "process_index", "process_indices", "profiler", "pure_callback", "random", "ref", "remat",
        "remove_size_one_mesh_axis_from_type", "reshard", "scipy", "set_mesh", "shard_map", "sharding",
        "smap", "softmax_custom_jvp", "stages", "test_util", "thread_guard", "threefry_partitionable", "transfer_guard",
        "transfer_guard_device_to_device", "transfer_guard_device_to_host", "transfer_guard_host_to_device", "tree",
        "tree_util",
        "typeof", "typing", "use_abstract_mesh", "value_and_grad", "version", "vjp", "vmap",
    ]
else:
    __getattr__, __dir__, __all__ = _names(__name__, _HOMES, _ALIASES, _MODULES)
