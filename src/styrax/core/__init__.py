"""What a program is. The names here are those of JAX's `core`; see README.md for the modules."""

from __future__ import annotations

from ..lazy import names

_HOMES = {
    "core.types.avals": (
        "AbstractRef AbstractToken AbstractValue ShapedArray abstract_token pytype_aval_mappings:aval_rules"),
    "core.arrays.tokens": "Token",
    "core.types.effects": "Effect Effects no_effects",
    "core.tracing.introspection": (
        "Atom ParamDict TraceTag Value call_impl eval_context find_top_trace gensym get_opaque_trace_state "
        "is_constant_dim is_constant_shape mapped_aval "
        "max_dim min_dim nonempty_axis_env_DO_NOT_USE primal_dtype_to_tangent_dtype trace_state_clean unmapped_aval "
        "unsafe_am_i_under_a_jit_DO_NOT_USE unsafe_am_i_under_a_vmap_DO_NOT_USE unsafe_get_axis_names_DO_NOT_USE"),
    "core.programs.jaxpr": (
        "ClosedJaxpr DebugInfo DropVar Jaxpr JaxprEqn Literal Var eval_jaxpr jaxpr_as_fun jaxprs_in_params "
        "new_jaxpr_eqn subjaxprs"),
    "core.programs.check": "check_jaxpr",
    "core.tracing.errors": "InconclusiveDimensionOperation JaxprTypeError ShardingTypeError",
    "core.types.physical": "physical_aval",
    "core.programs.primitive": "Primitive",
    "core.settings": "config",
    "transforms.tracing": "shaped_abstractify:abstractify",
    "core.tracing.trace": (
        "Trace Tracer axis_size concrete_or_error ensure_compile_time_eval full_lower get_aval is_concrete "
        "set_current_trace take_current_trace to_concrete_value trace_ctx:state typeof "
        "valid_jaxtype"),
}

__getattr__, __dir__, __all__ = names(__name__, _HOMES)
