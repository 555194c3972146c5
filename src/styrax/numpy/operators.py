"""Arithmetic and comparisons as operators of arrays and tracers.

They give `NotImplemented` for operands that are no arrays or numbers, so that Python asks the other side.
`core.hooks.METHODS` names those that are defined here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from styrax.core.arrays.array import Array
from styrax.core.settings import config
from styrax.core.tracing.source import hide_frames
from styrax.core.tracing.trace import Tracer
from styrax.core.types import dtypes
from styrax.core.types.typing import ArrayLike

from . import binary, division, dot_products
from .promotion import literal

_CONTAINERS = (list, tuple, set, dict)
_ORDERINGS = ("<", "<=", ">", ">=")
_OPERANDS = (int, float, complex, np.ndarray, np.generic)


def _accepts(other: Any) -> bool:
    return isinstance(other, (Tracer, *_OPERANDS, Array)) or hasattr(other, "__jax_array__")


# A Python number beside a strongly typed array takes on the array's dtype when its kind is not above it.
_NUMBERS = {bool: "biufc", int: "iufc", float: "fc", complex: "c"}
_FITTING = frozenset((np.dtype(d), kind) for kind, kinds in _NUMBERS.items() for d in (
    "bool", "int8", "int16", "int32", "uint8", "uint16", "uint32", "float16", "float32", "complex64")
    if np.dtype(d).kind in kinds) | {(np.dtype(dtypes.bfloat16), kind) for kind in (bool, int, float)}
# Arrays of 64 bits may outlive x64; then they meet numbers in 32 bits.
_FITTING_X64 = frozenset((np.dtype(d), kind) for kind, kinds in _NUMBERS.items()
                         for d in ("int64", "uint64", "float64", "complex128") if np.dtype(d).kind in kinds)


def _fits(dtype: Any, kind: type) -> bool:
    return (dtype, kind) in _FITTING or ((dtype, kind) in _FITTING_X64 and config.enable_x64.value)


def _unknown(sign: str, left: Any, right: Any) -> Any:
    """What an operator gives for an operand that is no array. TypeError for containers, which repeat, join and compare
    otherwise; Python's own of what cannot be ordered says enough."""
    if sign in _ORDERINGS or {type(left), type(right)}.isdisjoint(_CONTAINERS):
        return NotImplemented
    left, right = ("ArrayImpl" if type(x) is Array else type(x).__name__ for x in (left, right))
    raise TypeError(f"unsupported operand type(s) for {sign}: {left!r} and {right!r}")


def _operator(function: Callable[..., Any], sign: str) -> Callable[..., Any]:
    """An operator: `function(self, other)`, with the decisions that need no promotion made here."""
    primitive, fast = binary.direct.get(function, (function, frozenset()))

    def method(self: Array, other: ArrayLike) -> Array:
        try:
            kind = type(other)
            if kind is Array:
                a, b = self.aval, other.aval  # type: ignore[union-attr]
                if a.dtype is b.dtype and a.weak_type is b.weak_type and a.shape == b.shape and a.dtype in fast:
                    return primitive(self, other)
            elif kind is float or kind is int:
                a = self.aval
                if not a.weak_type and a.dtype in fast and _fits(a.dtype, kind):
                    return primitive(self, literal(other, a.dtype))
            elif not _accepts(other):
                return _unknown(sign, self, other)
            return function(self, other)
        except Exception as error:
            hide_frames(error)
            raise

    return method


def _reflected(function: Callable[..., Any], sign: str) -> Callable[..., Any]:
    primitive, fast = binary.direct.get(function, (function, frozenset()))
    def method(self: Array, other: ArrayLike) -> Array:
        try:
            kind = type(other)
            if kind is float or kind is int:
                a = self.aval
                if not a.weak_type and a.dtype in fast and _fits(a.dtype, kind):
                    return primitive(literal(other, a.dtype), self)
            elif kind is not Array and not _accepts(other):
                return _unknown(sign, other, self)
            return function(other, self)
        except Exception as error:
            hide_frames(error)
            raise

    return method


def __pow__(self: Array, other: ArrayLike) -> Array:
    try:
        if type(other) is Array or _accepts(other):
            return binary.power(self, other)
        return _unknown("** or pow()", self, other)
    except Exception as error:
        hide_frames(error)
        raise


def __eq__(self: Array, other: ArrayLike) -> Array:
    try:
        if type(other) is Array or _accepts(other):
            return binary.equal(self, other)
        return _unknown("==", self, other)
    except Exception as error:
        hide_frames(error)
        raise


__add__, __radd__ = _operator(binary.add, "+"), _reflected(binary.add, "+")
__sub__, __rsub__ = _operator(binary.subtract, "-"), _reflected(binary.subtract, "-")
__mul__, __rmul__ = _operator(binary.multiply, "*"), _reflected(binary.multiply, "*")
__truediv__, __rtruediv__ = _operator(binary.true_divide, "/"), _reflected(binary.true_divide, "/")
__floordiv__, __rfloordiv__ = _operator(division.floor_divide, "//"), _reflected(division.floor_divide, "//")
__mod__, __rmod__ = _operator(division.remainder, "%"), _reflected(division.remainder, "%")
__divmod__, __rdivmod__ = _operator(division.divmod, "divmod()"), _reflected(division.divmod, "divmod()")
__matmul__, __rmatmul__ = _operator(dot_products.matmul, "@"), _reflected(dot_products.matmul, "@")
__and__, __rand__ = _operator(binary.bitwise_and, "&"), _reflected(binary.bitwise_and, "&")
__or__, __ror__ = _operator(binary.bitwise_or, "|"), _reflected(binary.bitwise_or, "|")
__xor__, __rxor__ = _operator(binary.bitwise_xor, "^"), _reflected(binary.bitwise_xor, "^")
__lshift__, __rlshift__ = _operator(binary.left_shift, "<<"), _reflected(binary.left_shift, "<<")
__rshift__, __rrshift__ = _operator(binary.right_shift, ">>"), _reflected(binary.right_shift, ">>")
__rpow__ = _reflected(binary.power, "** or pow()")
__ne__ = _operator(binary.not_equal, "!=")
__lt__ = _operator(binary.less, "<")
__le__ = _operator(binary.less_equal, "<=")
__gt__ = _operator(binary.greater, ">")
__ge__ = _operator(binary.greater_equal, ">=")
