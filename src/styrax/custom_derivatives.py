"""Derivatives that users give."""

from __future__ import annotations

from .transforms.custom import (
    CustomVJPPrimal,
    closure_convert,
    custom_gradient,
    custom_jvp,
    custom_vjp,
    custom_vjp_primal_tree_values,
    zero_from_primal,
)
from .transforms.custom_calls import custom_jvp_call_p, custom_vjp_call_p
from .transforms.linear_call import linear_call
from .transforms.zeros import SymbolicZero

__all__ = [
    "CustomVJPPrimal", "SymbolicZero", "closure_convert", "custom_gradient", "custom_jvp", "custom_jvp_call_p",
    "custom_vjp", "custom_vjp_call_p", "custom_vjp_primal_tree_values", "linear_call", "zero_from_primal",
]
