"""Styrax: JAX's programming model, compiled to native code.

`import styrax as jax` is the native spelling; `python -m styrax script.py` runs programs written for JAX unchanged.
Names are found where they are defined when they are first used, so that importing the package stays cheap.
"""

from __future__ import annotations

import importlib as _importlib
from typing import Any as _Any

__version__ = "0.1.0"

# where the names of this package are defined: module -> names
_HOMES = {
    "core.array": "Array",
    "core.avals": "ShapeDtypeStruct",
    "core.config": (
        "config allow_f16_reductions array_garbage_collection_guard auto_pcast check_tracer_leaks debug_infs "
        "debug_key_reuse debug_nans default_device default_matmul_precision default_prng_impl disable_jit enable_checks "
        "enable_custom_prng enable_x64 explain_cache_misses jax2tf_associative_scan_reductions legacy_prng_key "
        "log_compiles make_user_context no_execution no_tracing numpy_dtype_promotion numpy_rank_promotion "
        "remove_size_one_mesh_axis_from_type softmax_custom_jvp thread_guard threefry_partitionable transfer_guard "
        "transfer_guard_device_to_device transfer_guard_device_to_host transfer_guard_host_to_device"),
    "core.devices": "Device Shard",
    "core.dtypes": "float0",
    "core.trace": "ensure_compile_time_eval typeof",
    "placement": (
        "block_until_ready copy_to_host_async default_backend device_count device_get device_put devices effects_barrier "
        "host_count host_id host_ids live_arrays local_device_count local_devices print_environment_info process_count "
        "process_index process_indices"),
    "transforms.api": (
        "eval_shape fwd_and_bwd grad hessian jacfwd jacrev jvp linear_transpose linearize make_jaxpr value_and_grad vjp vmap"),
    "transforms.checkpoint": "checkpoint checkpoint_policies",
    "transforms.custom": "closure_convert custom_gradient custom_jvp custom_vjp",
    "transforms.jit": "clear_caches jit",
    "transforms.refs": "Ref empty_ref free_ref freeze new_ref",
    "transforms.ref_indexing": "ds",
    "transforms.scopes": "named_call named_scope",
    "transforms.callbacks": "pure_callback",
}
_ALIASES = {"jacobian": "jacrev", "remat": "checkpoint"}
_WHERE = {name: module for module, names in _HOMES.items() for name in names.split()}
_MODULES = frozenset((
    "ad_checkpoint api_util callbacks compat core custom_batching custom_derivatives debug distributed dlpack dtypes errors "
    "example_libraries experimental export extend ffi flatten_util image inspect interpreters lax lib monitoring nn numpy ops "
    "placement profiler random ref scipy sharding stages test_util tree tree_util typing version").split())

__all__ = sorted((*_WHERE, *_ALIASES))


def __getattr__(name: str) -> _Any:
    if name in _MODULES:
        return _importlib.import_module(f"styrax.{name}")
    if name == "__version_info__":
        return tuple(int(part) for part in __version__.split("."))
    home = _WHERE.get(_ALIASES.get(name, name))
    if home is None:
        raise AttributeError(f"module 'styrax' has no attribute {name!r}")
    value = globals()[name] = getattr(_importlib.import_module(f"styrax.{home}"), _ALIASES.get(name, name))
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
