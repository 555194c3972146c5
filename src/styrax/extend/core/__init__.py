"""Programs as data: jaxprs, primitives, and the state of tracing."""

from __future__ import annotations

from ...lazy import names

_HOMES = {
    "core": (
        "AbstractToken ClosedJaxpr DebugInfo DropVar Effect Effects InconclusiveDimensionOperation Jaxpr JaxprEqn "
        "JaxprTypeError Literal Primitive Token TraceTag Var call_impl check_jaxpr concrete_or_error find_top_trace "
        "gensym get_opaque_trace_state jaxpr_as_fun jaxprs_in_params mapped_aval new_jaxpr_eqn no_effects "
        "nonempty_axis_env_DO_NOT_USE primal_dtype_to_tangent_dtype set_current_trace subjaxprs take_current_trace "
        "unmapped_aval unsafe_am_i_under_a_jit_DO_NOT_USE unsafe_am_i_under_a_vmap_DO_NOT_USE "
        "unsafe_get_axis_names_DO_NOT_USE valid_jaxtype"),
    "core.arrays.array": "array_types",
    "core.arrays.tokens": "Token",
    "transforms.marked_calls": (
        "create_call_primitive:marked_call eval_jaxpr_transpose register_call_primitive_rules"),
    "transforms.plain_calls": "CallPrimitive",
}

__getattr__, __dir__, __all__ = names(__name__, _HOMES, modules=("primitives",))
