"""The primitives, by the names `add_p`, `scan_p`, …"""

from __future__ import annotations

import importlib
from typing import Any

# primitives that are not among the names of `styrax.lax`
_ELSEWHERE = {
    "add_jaxvals_p": ("transforms.zeros", "add_any_p"),
    "custom_jvp_call_p": ("transforms.custom_calls", "custom_jvp_call_p"),
    "custom_lin_p": ("transforms.jvp", "custom_lin_p"),
    "custom_vjp_call_p": ("transforms.custom_calls", "custom_vjp_call_p"),
    "get_p": ("transforms.refs", "get_p"),
    "jit_p": ("transforms.jit_rules", "jit_p"),
    "name_p": ("transforms.checkpoint", "name_p"),
    "remat_p": ("transforms.checkpoint", "remat_p"),
    "swap_p": ("transforms.refs", "swap_p"),
}


def __getattr__(name: str) -> Any:
    if not name.endswith("_p"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, there = _ELSEWHERE.get(name, ("lax", name))
    try:
        value = getattr(importlib.import_module(f"styrax.{module}"), there)
    except AttributeError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    lax = importlib.import_module("styrax.lax")
    return sorted({*_ELSEWHERE, *(name for name in vars(lax) if name.endswith("_p"))})
