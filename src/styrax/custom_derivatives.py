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
from .transforms.remat_rules import remat_opt_p
from .transforms.zeros import SymbolicZero

__all__ = [
    "CustomVJPPrimal", "SymbolicZero", "closure_convert", "custom_gradient", "custom_jvp", "custom_jvp_call_p",
    "custom_vjp", "custom_vjp_call_p", "custom_vjp_primal_tree_values", "linear_call", "remat_opt_p",
    "zero_from_primal",
]
