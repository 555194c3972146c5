"""The flags: JAX's and Styrax's own, by row, and `config`, through which they are read and set."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from ..tracing import source
from ..tracing.source import api_boundary
from . import logs
from .flags import (
    UNSET,
    ExplicitX64Mode,
    LegacyPrngKeyState,
    NumpyDtypePromotion,
    RuntimeTracebackMode,
    Setting,
    State,
    UserContext,
    device_or_platform,
    flag,
    make_user_context,
    optional_choice,
    trace_context,
)

__all__ = ["UNSET", "Config", "UserContext", "cache_directory", "config", "disable_jit", "make_user_context",
           "states", "trace_context", "transfer_guard"]  # fmt: skip

_PRECISIONS = (
    "default", "high", "highest", "bfloat16", "tensorfloat32", "float32", "ANY_F8_ANY_F8_F32",
    "ANY_F8_ANY_F8_F32_FAST_ACCUM", "ANY_F8_ANY_F8_ANY", "ANY_F8_ANY_F8_ANY_FAST_ACCUM", "F16_F16_F16",
    "F16_F16_F32", "BF16_BF16_BF16", "BF16_BF16_F32", "BF16_BF16_F32_X3", "BF16_BF16_F32_X6",
    "BF16_BF16_F32_X9", "TF32_TF32_F32", "TF32_TF32_F32_X3", "F32_F32_F32", "F64_F64_F64",
)  # fmt: skip
_PRNGS = ("threefry2x32", "threefry4x32", "rbg", "unsafe_rbg", "philox2x32", "philox4x32")
_GUARDS = ("allow", "log", "disallow", "log_explicit", "disallow_explicit")
_LOG_LEVEL = optional_choice("NOTSET", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
_LEVELS = ("UNKNOWN", "O0", "O1", "O2", "O3")
_ONOFF = ("ignore", "raise")

# name, kind, default, traced. A kind is bool, int, float, str, a tuple of allowed strings, an
# enum class or a parser. A default of None means that None is allowed.
TRACED, PLAIN = True, False
_ROWS: tuple[tuple[str, Any, Any, bool], ...] = (
    ("check_vma", bool, False, TRACED),
    ("eager_constant_folding", bool, False, TRACED),
    ("jax2tf_associative_scan_reductions", bool, False, PLAIN),
    ("jax2tf_default_native_serialization", bool, True, PLAIN),
    ("jax_allow_f16_reductions", bool, True, TRACED),
    ("jax_array_garbage_collection_guard", ("allow", "log", "fatal"), None, PLAIN),
    ("jax_auto_pcast", bool, True, TRACED),
    ("jax_backend_target", str, "", PLAIN),
    ("jax_bcoo_cusparse_lowering", bool, False, PLAIN),
    ("jax_captured_constants_report_frames", int, 0, PLAIN),
    ("jax_captured_constants_warn_bytes", int, 2_000_000_000, PLAIN),
    ("jax_check_proxy_envs", bool, True, PLAIN),
    ("jax_check_static_indices", bool, False, TRACED),
    ("jax_check_tracer_leaks", bool, False, PLAIN),
    ("jax_compilation_cache_check_contents", bool, False, PLAIN),
    ("jax_compilation_cache_dir", str, None, PLAIN),
    ("jax_compilation_cache_expect_pgle", bool, False, PLAIN),
    ("jax_compilation_cache_include_metadata_in_key", bool, False, PLAIN),
    ("jax_compilation_cache_max_size", int, -1, PLAIN),
    ("jax_compiler_detailed_logging_min_ops", int, 10, PLAIN),
    ("jax_compiler_enable_remat_pass", bool, True, PLAIN),
    ("jax_cpu_collectives_implementation", ("gloo", "mpi", "megascale"), "gloo", PLAIN),
    ("jax_cpu_enable_async_dispatch", bool, True, PLAIN),
    ("jax_cpu_get_global_topology_timeout_minutes", int, 5, PLAIN),
    ("jax_cpu_get_local_topology_timeout_minutes", int, 2, PLAIN),
    ("jax_cross_host_transfer_socket_address", str, "", PLAIN),
    ("jax_cross_host_transfer_timeout_seconds", int, None, PLAIN),
    ("jax_cross_host_transfer_transfer_size", int, None, PLAIN),
    ("jax_cross_host_transport_addresses", str, "", PLAIN),
    ("jax_cuda_visible_devices", str, "all", PLAIN),
    ("jax_custom_vjp3", bool, False, TRACED),
    ("jax_debug_infs", bool, False, TRACED),
    ("jax_debug_key_reuse", bool, False, TRACED),
    ("jax_debug_leaked_clients_on_clear_backends", bool, False, PLAIN),
    ("jax_debug_log_modules", str, "", PLAIN),
    ("jax_debug_nans", bool, False, TRACED),
    ("jax_default_device", device_or_platform, None, TRACED),
    ("jax_default_matmul_precision", _PRECISIONS, None, TRACED),
    ("jax_default_prng_impl", _PRNGS, "threefry2x32", TRACED),
    ("jax_disable_bwd_checks", bool, False, PLAIN),
    ("jax_disable_jit", bool, False, TRACED),
    ("jax_disable_most_optimizations", bool, False, PLAIN),
    ("jax_disable_vmap_shmap_error", bool, False, PLAIN),
    ("jax_disallow_mesh_context_manager", bool, False, PLAIN),
    ("jax_distributed_debug", bool, False, PLAIN),
    ("jax_dump_ir_modes", str, "stablehlo", PLAIN),
    ("jax_dump_ir_to", str, "", PLAIN),
    ("jax_embedded_constants_max_bytes", int, 32, TRACED),
    ("jax_enable_checks", bool, False, PLAIN),
    ("jax_enable_compilation_cache", bool, True, PLAIN),
    ("jax_enable_custom_prng", bool, False, TRACED),
    ("jax_enable_pgle", bool, False, TRACED),
    ("jax_enable_preemption_service", bool, True, PLAIN),
    ("jax_enable_recoverability", bool, False, PLAIN),
    ("jax_enable_x64", bool, False, TRACED),
    ("jax_error_checking_behavior_divide", _ONOFF, "ignore", TRACED),
    ("jax_error_checking_behavior_nan", _ONOFF, "ignore", TRACED),
    ("jax_error_checking_behavior_oob", _ONOFF, "ignore", TRACED),
    ("jax_exec_time_optimization_effort", float, 0.0, PLAIN),
    ("jax_experimental_unsafe_xla_runtime_errors", bool, False, PLAIN),
    ("jax_explain_cache_misses", bool, False, PLAIN),
    ("jax_explicit_x64_dtypes", ExplicitX64Mode, ExplicitX64Mode.WARN, TRACED),
    ("jax_export_calling_convention_version", int, 10, PLAIN),
    ("jax_export_ignore_forward_compatibility", bool, False, PLAIN),
    ("jax_force_dcn_cross_host_transfers", bool, False, PLAIN),
    ("jax_high_dynamic_range_gumbel", bool, False, TRACED),
    ("jax_hlo_source_file_canonicalization_regex", str, None, TRACED),
    ("jax_include_debug_info_in_dumps", bool, True, PLAIN),
    ("jax_include_full_tracebacks_in_locations", bool, True, PLAIN),
    ("jax_legacy_prng_key", LegacyPrngKeyState, LegacyPrngKeyState.ALLOW, PLAIN),
    ("jax_log_checkpoint_residuals", bool, False, PLAIN),
    ("jax_log_compiles", bool, False, PLAIN),
    ("jax_logging_level", _LOG_LEVEL, "NOTSET", PLAIN),
    ("jax_memory_fitting_effort", float, 0.0, PLAIN),
    ("jax_memory_fitting_level", _LEVELS, "O2", PLAIN),
    ("jax_mock_gpu_topology", str, "", PLAIN),
    ("jax_mosaic_allow_hlo", bool, False, PLAIN),
    ("jax_mutable_array_checks", bool, True, TRACED),
    ("jax_no_execution", bool, False, TRACED),
    ("jax_no_tracing", bool, False, PLAIN),
    ("jax_num_cpu_devices", int, -1, PLAIN),
    ("jax_numpy_dtype_promotion", NumpyDtypePromotion, NumpyDtypePromotion.STANDARD, TRACED),
    ("jax_numpy_rank_promotion", ("allow", "warn", "raise"), "allow", TRACED),
    ("jax_oneapi_visible_devices", str, "all", PLAIN),
    ("jax_optimization_level", _LEVELS, "UNKNOWN", PLAIN),
    ("jax_pallas_enable_debug_checks", bool, False, TRACED),
    ("jax_pallas_poison_buffers", bool, False, PLAIN),
    ("jax_pallas_use_mosaic_gpu", bool, True, TRACED),
    ("jax_pallas_verbose_errors", bool, False, PLAIN),
    ("jax_persistent_cache_enable_xla_caches", str, "xla_gpu_per_fusion_autotune_cache_dir", PLAIN),
    ("jax_persistent_cache_min_compile_time_secs", float, 1.0, PLAIN),
    ("jax_persistent_cache_min_entry_size_bytes", int, 0, PLAIN),
    ("jax_pgle_aggregation_percentile", int, 90, PLAIN),
    ("jax_pgle_profiling_runs", int, 3, TRACED),
    ("jax_pjrt_client_create_options", None, None, PLAIN),
    ("jax_platform_name", str, "", PLAIN),
    ("jax_platforms", str, None, PLAIN),
    ("jax_pprint_use_color", bool, True, PLAIN),
    ("jax_ragged_dot_use_gpu_pallas_triton_lowering", bool, False, TRACED),
    ("jax_ragged_dot_use_ragged_dot_instruction", bool, True, PLAIN),
    ("jax_raise_persistent_cache_errors", bool, False, PLAIN),
    ("jax_random_seed_offset", int, 0, TRACED),
    ("jax_refs_to_pins", bool, False, PLAIN),
    ("jax_remat3", bool, False, TRACED),
    ("jax_remove_custom_partitioning_ptr_from_cache_key", bool, False, PLAIN),
    ("jax_remove_size_one_mesh_axis_from_type", bool, False, TRACED),
    ("jax_rocm_visible_devices", str, "all", PLAIN),
    ("jax_scan3", bool, False, TRACED),
    ("jax_send_traceback_to_runtime", RuntimeTracebackMode, RuntimeTracebackMode.OFF, PLAIN),
    ("jax_serialization_version", int, 0, PLAIN),
    ("jax_share_binary_between_hosts", bool, False, PLAIN),
    ("jax_share_binary_between_hosts_timeout_ms", int, 1_200_000, PLAIN),
    ("jax_softmax_custom_jvp", bool, False, TRACED),
    ("jax_sort_devices_by_process_index", bool, True, PLAIN),
    ("jax_source_url_schema", str, None, PLAIN),
    ("jax_thread_guard", bool, False, PLAIN),
    ("jax_threefry_gpu_kernel_lowering", bool, False, TRACED),
    ("jax_threefry_partitionable", bool, True, TRACED),
    ("jax_traceback_filtering", ("off", "tracebackhide", "remove_frames", "quiet_remove_frames", "auto"),
     "auto", PLAIN),
    ("jax_traceback_in_locations_limit", int, 100, PLAIN),
    ("jax_tracer_error_num_traceback_frames", int, 5, PLAIN),
    ("jax_transfer_guard", _GUARDS, None, PLAIN),
    ("jax_transfer_guard_device_to_device", _GUARDS, None, PLAIN),
    ("jax_transfer_guard_device_to_host", _GUARDS, None, PLAIN),
    ("jax_transfer_guard_host_to_device", _GUARDS, None, PLAIN),
    ("jax_use_direct_linearize", bool, True, TRACED),
    ("jax_use_emit_pipeline_primitive", bool, False, TRACED),
    ("jax_use_magma", ("off", "on", "auto"), "auto", PLAIN),
    ("jax_use_shardy_partitioner", bool, True, TRACED),
    ("jax_use_simplified_jaxpr_constants", bool, False, TRACED),
    ("jax_xla_backend", str, "", PLAIN),
    ("jax_xla_profile_version", int, 0, TRACED),
    ("mock_num_gpu_processes", int, 0, PLAIN),
    # Styrax's own.
    ("styrax_debug", str, "", TRACED),
    ("styrax_no_collectives", bool, False, TRACED),
    ("styrax_num_threads", int, 0, PLAIN),
    ("styrax_numerics", ("strict", "default", "fast"), "default", TRACED),
    ("styrax_cache_dir", str, None, PLAIN),
    ("styrax_cache_max_bytes", int, 1 << 30, PLAIN),
)  # fmt: skip


states: dict[str, State] = {row[0]: flag(*row) for row in _ROWS}


class Config:
    """``config.jax_enable_x64`` reads a flag, ``config.update("jax_enable_x64", True)`` sets it."""

    use_absl = False
    trace_context = staticmethod(trace_context)

    @property
    def values(self) -> dict[str, Any]:
        """All flags by name, as seen by the current thread."""
        return {name: state.value for name, state in states.items()}

    @property
    def meta(self) -> dict[str, tuple]:
        """The kind of each flag, by name."""
        return {name: (state.kind, (), {"help": state.help}) for name, state in states.items()}

    @property
    def x64_enabled(self) -> bool:
        return enable_x64.value

    @property
    def debug(self) -> frozenset[str]:
        """The words of ``STYRAX_DEBUG``."""
        return frozenset(word.strip() for word in states["styrax_debug"].value.split(",") if word.strip())

    @property
    def num_threads(self) -> int:
        """The number of threads that programs on the CPU use; 0 asks for all of the machine's."""
        return states["styrax_num_threads"].value

    @api_boundary
    def update(self, name: str, value: Any) -> None:
        """Sets the flag ``name`` for all threads. Raises ``AttributeError`` for an unknown name."""
        state = states.get(name)
        if state is None:
            raise AttributeError(f"Unrecognized config option: {name}{_suggest(name)}")
        state.set_global(value)

    def read(self, name: str) -> Any:
        """The value of the flag ``name`` for the current thread."""
        state = states.get(name)
        if state is None:
            raise AttributeError(f"Unrecognized config option: {name}{_suggest(name)}")
        return state.value

    def add_option(
        self, name: str, holder: State, opt_type: Any = None, meta_args: Any = (), meta_kwargs: Any = None
    ) -> None:
        """Makes a flag of a library's known by ``name``."""
        if name in states:
            raise Exception(f"Config option {name} already defined")
        states[name] = holder
        _add_attribute(name, holder)

    def config_with_absl(self) -> None:
        """Sets flags from ``--jax_name=value`` arguments of the command line and removes these."""
        kept = sys.argv[:1]
        for i, argument in enumerate(sys.argv[1:]):
            if argument == "--":
                kept += sys.argv[1 + i:]
                break
            name, equals, value = argument.lstrip("-").partition("=")
            state = states.get(name.replace("-", "_")) if argument.startswith("--") else None
            negated = states.get(name.removeprefix("no")) if argument.startswith("--no") else None
            if state is not None and (equals or state.kind is bool):
                state.set_global(value if equals else True)
            elif negated is not None and negated.kind is bool and not equals:
                negated.set_global(False)
            else:
                kept.append(argument)
        sys.argv[:] = kept

    complete_absl_config = config_with_absl

    def parse_flags_with_absl(self) -> None:
        """`config_with_absl`, after which the flags of others that absl knows can be read: they have their defaults."""
        self.config_with_absl()
        with suppress(ImportError):
            from absl import flags

            if not flags.FLAGS.is_parsed():
                flags.FLAGS(sys.argv[:1])

    @api_boundary
    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"'Config' object has no attribute '{name}'{_suggest(name)}")


def _suggest(name: str) -> str:
    import difflib

    close = difflib.get_close_matches(name, states, n=1)
    return f"; did you mean {close[0]}?" if close else ""


def _add_attribute(name: str, state: State) -> None:
    setattr(Config, name, property(lambda self: state.value))


for _name, _state in states.items():
    _add_attribute(_name, _state)

config = Config()

allow_f16_reductions = states["jax_allow_f16_reductions"]
array_garbage_collection_guard = states["jax_array_garbage_collection_guard"]
auto_pcast = states["jax_auto_pcast"]
check_tracer_leaks = states["jax_check_tracer_leaks"]
debug_infs = states["jax_debug_infs"]
debug_key_reuse = states["jax_debug_key_reuse"]
debug_nans = states["jax_debug_nans"]
default_device = states["jax_default_device"]
default_matmul_precision = states["jax_default_matmul_precision"]
default_prng_impl = states["jax_default_prng_impl"]
enable_checks = states["jax_enable_checks"]
enable_custom_prng = states["jax_enable_custom_prng"]
enable_x64 = states["jax_enable_x64"]
explain_cache_misses = states["jax_explain_cache_misses"]
explicit_x64_dtypes = states["jax_explicit_x64_dtypes"]
jax2tf_associative_scan_reductions = states["jax2tf_associative_scan_reductions"]
legacy_prng_key = states["jax_legacy_prng_key"]
log_compiles = states["jax_log_compiles"]
no_execution = states["jax_no_execution"]
no_tracing = states["jax_no_tracing"]
numerics = states["styrax_numerics"]
num_threads = states["styrax_num_threads"]
numpy_dtype_promotion = states["jax_numpy_dtype_promotion"]
numpy_rank_promotion = states["jax_numpy_rank_promotion"]
check_static_indices = states["jax_check_static_indices"]
remove_size_one_mesh_axis_from_type = states["jax_remove_size_one_mesh_axis_from_type"]
softmax_custom_jvp = states["jax_softmax_custom_jvp"]
thread_guard = states["jax_thread_guard"]
threefry_partitionable = states["jax_threefry_partitionable"]
traceback_filtering = states["jax_traceback_filtering"]
source.filter_flag = traceback_filtering
transfer_guard_device_to_device = states["jax_transfer_guard_device_to_device"]
transfer_guard_device_to_host = states["jax_transfer_guard_device_to_host"]
transfer_guard_host_to_device = states["jax_transfer_guard_host_to_device"]

_TRANSFERS = (
    states["jax_transfer_guard"],
    transfer_guard_host_to_device,
    transfer_guard_device_to_device,
    transfer_guard_device_to_host,
)


class _Settings:
    """Several settings that hold together."""

    __slots__ = ("_settings",)

    def __init__(self, settings: list[Setting]):
        self._settings = settings

    def __enter__(self) -> None:
        for setting in self._settings:
            setting.__enter__()

    def __exit__(self, *exc: object) -> None:
        for setting in reversed(self._settings):
            setting.__exit__(*exc)

    def __call__(self, fun: Callable) -> Callable:
        for setting in self._settings:
            fun = setting(fun)
        return fun


def transfer_guard(new_val: str) -> _Settings:
    """Guards transfers in all three directions: ``with transfer_guard("disallow"):``."""
    return _Settings([state(new_val) for state in _TRANSFERS])


def disable_jit(disable: bool = True) -> Setting:
    """Inside ``with disable_jit():`` functions run op by op, without being traced or compiled.

    Example:
      >>> import styrax as jax
      >>> with jax.disable_jit():
      ...     print(jax.jit(lambda x: x + 1)(1))
      2
    """
    return states["jax_disable_jit"](disable)


def _spread_transfer_guard(value: Any) -> None:
    if value is not None and states["jax_transfer_guard"].get_local() is UNSET:
        for state in _TRANSFERS[1:]:
            state.set_global(value)


states["jax_transfer_guard"].add_hook(_spread_transfer_guard)
states["jax_debug_log_modules"].add_hook(logs.show_modules)
states["jax_logging_level"].add_hook(logs.show_level)


def cache_directory() -> str | None:
    """Where compiled code is kept, or None where the cache is turned off.

    ``styrax_cache_dir`` comes first, then ``jax_compilation_cache_dir``, then the user's cache folder.
    """
    if not states["jax_enable_compilation_cache"].value:
        return None
    given = states["styrax_cache_dir"].value
    if given is None:
        given = states["jax_compilation_cache_dir"].value
    if given is not None:
        return os.path.expanduser(given) or None
    home = os.path.expanduser("~")
    base = os.environ.get("XDG_CACHE_HOME") or (None if home == "~" else os.path.join(home, ".cache"))
    return base and os.path.join(base, "styrax")
