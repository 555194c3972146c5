"""Zeros and what derivatives of primitives need."""

from __future__ import annotations

from ...lax import stop_gradient_p
from ...transforms.ad import (
    SymbolicZero,
    Zero,
    add_jaxvals,
    add_jaxvals_p,
    aval_zeros_likers,
    instantiate_zeros,
    zeros_like_aval,
)

__all__ = [
    "SymbolicZero", "Zero", "add_jaxvals", "add_jaxvals_p", "aval_zeros_likers", "instantiate_zeros", "stop_gradient_p",
    "zeros_like_aval",
]
