"""The primitives, by the names `add_p`, `scan_p`, …"""

from __future__ import annotations

import importlib
from typing import Any

_HOMES = ("lax", "lax.linalg")

# primitives that are not among the names of `styrax.lax`
_ELSEWHERE = {
    "add_jaxvals_p": ("transforms.zeros", "add_any_p"),
    "call_p": ("transforms.plain_calls", "call_p"),
    "closed_call_p": ("transforms.plain_calls", "closed_call_p"),
    "custom_jvp_call_p": ("transforms.custom_calls", "custom_jvp_call_p"),
    "custom_lin_p": ("transforms.jvp", "custom_lin_p"),
    "custom_vjp_call_p": ("transforms.custom_calls", "custom_vjp_call_p"),
    "empty2_p": ("lax.shaping.filling", "empty2_p"),
    "get_p": ("transforms.refs", "get_p"),
    "jit_p": ("transforms.jit_rules", "jit_p"),
    "name_p": ("transforms.checkpoint_names", "name_p"),
    "random_gamma_p": ("random.gammas", "random_gamma_p"),
    "remat_p": ("transforms.checkpoint", "remat_p"),
    "swap_p": ("transforms.refs", "swap_p"),
}


def __getattr__(name: str) -> Any:
    if not name.endswith("_p"):
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
    return sorted({*_ELSEWHERE, *(name for module in modules for name in vars(module) if name.endswith("_p"))})
