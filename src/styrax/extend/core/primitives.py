"""The primitives, by the names `add_p`, `scan_p`, …"""

from __future__ import annotations

import importlib
from typing import Any

_HOMES = ("lax", "lax.linalg")

# primitives that are not among the names of `styrax.lax`, and what makes more of them
_ELSEWHERE = {
    "add_jaxvals_p": ("transforms.zeros", "add_any_p"),
    "call_p": ("transforms.plain_calls", "call_p"),
    "closed_call_p": ("transforms.plain_calls", "closed_call_p"),
    "custom_jvp_call_p": ("transforms.custom_calls", "custom_jvp_call_p"),
    "custom_lin_p": ("transforms.jvp", "custom_lin_p"),
    "custom_vjp_call_p": ("transforms.custom_calls", "custom_vjp_call_p"),
    "create_call_primitive": ("transforms.marked_calls", "marked_call"),
    "empty2_p": ("lax.shaping.filling", "empty2_p"),
    "eval_jaxpr_transpose": ("transforms.marked_calls", "eval_jaxpr_transpose"),
    "get_p": ("transforms.refs", "get_p"),
    "jit_p": ("transforms.jit_rules", "jit_p"),
    "name_p": ("transforms.checkpoint_names", "name_p"),
    "random_gamma_p": ("random.gammas", "random_gamma_p"),
    "register_call_primitive_rules": ("transforms.marked_calls", "register_call_primitive_rules"),
    "remat_p": ("transforms.checkpoint", "remat_p"),
    "swap_p": ("transforms.refs", "swap_p"),
}


def __getattr__(name: str) -> Any:
    if not name.endswith("_p") and name not in _ELSEWHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, there = _ELSEWHERE.get(name, ("", name))
    for home in (module,) if module else _HOMES:
        value = getattr(importlib.import_module(f"styrax.{home}"), there, None)
        if value is not None:
            globals()[name] = value
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    modules = [importlib.import_module(f"styrax.{home}") for home in _HOMES]
    return sorted({*_ELSEWHERE, *(name for module in modules for name in dir(module) if name.endswith("_p"))})
