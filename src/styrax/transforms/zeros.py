"""Symbolic zeros, and sums of tangents.

Most tangents and cotangents in a program are zero because nothing was perturbed. They stay
symbolic, so that no array is made and no equation recorded for them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core import hooks
from ..core.arrays.constants import constant
from ..core.programs import rules
from ..core.programs.primitive import Primitive
from ..core.tracing.trace import get_aval, state
from ..core.types import dtypes
from ..core.types.avals import AbstractToken, AbstractValue, ShapedArray, abstract_token
from ..core.types.manual_axes import in_order
from ..core.types.typing import PyTree

if TYPE_CHECKING:
    from ..core.programs.lowering import Builder, Value


class Zero:
    """A tangent or cotangent that is zero: `Zero(aval)`, with `aval` the type of the tangent."""

    __slots__ = ("_aval", "_primal")
    _primal: Any

    def __init__(self, aval: AbstractValue):
        self._aval: Any = aval

    @property
    def aval(self) -> Any:
        if self._aval is None:
            self._aval = get_aval(self._primal).to_tangent_aval()
            self._primal = None
        return self._aval

    @classmethod
    def from_primal_value(cls, value: Any) -> Zero:
        """The zero tangent of a value. Its type is worked out when first asked for."""
        zero = cls.__new__(cls)
        zero._aval = None
        zero._primal = value
        return zero

    def instantiate(self) -> Any:
        return zeros_like_aval(self.aval)

    def __repr__(self) -> str:
        return f"Zero({self.aval})"


class SymbolicZero:
    """How a symbolic zero is shown to a user's custom derivative rule."""

    __slots__ = ("aval",)

    def __init__(self, aval: AbstractValue):
        self.aval = aval

    def __repr__(self) -> str:
        return "SymbolicZero"

    def __getattr__(self, name: str) -> Any:
        if name in ("shape", "dtype", "ndim", "size", "weak_type"):
            return getattr(self.aval, name)
        raise AttributeError(f"'SymbolicZero' object has no attribute '{name}'")

    @staticmethod
    def from_primal_value(value: Any) -> SymbolicZero:
        return SymbolicZero(get_aval(value).to_tangent_aval())


def _zeros_of_array(aval: Any) -> Any:
    if aval.vma:
        return hooks.varying(_zeros_of_array(aval.update(vma=frozenset())), in_order(aval.vma),
                             spread=True)
    if aval.dtype == dtypes.float0:
        eager = state.trace.is_eval
        return np.zeros(aval.shape, dtypes.float0) if eager else hooks.lax.full(aval.shape, 0, aval.dtype)
    if aval.dtype.__class__ is not np.dtype and hasattr(aval.dtype, "zeros"):
        return aval.dtype.zeros(aval)
    if aval.weak_type and aval.given_sharding is None and aval.dtype.kind in "iufc":
        zero = constant(0, aval.update(shape=()))
        return hooks.lax.broadcast(zero, aval.shape) if aval.shape else zero
    return hooks.lax.full(aval.shape, 0, aval.dtype, sharding=aval.given_sharding if aval.shape else None)


# Abstract value type -> function from the abstract value to its zero.
aval_zeros: dict[type, Callable[[Any], Any]] = {
    ShapedArray: _zeros_of_array,
    AbstractToken: lambda aval: aval,
}


def zeros_like_aval(aval: AbstractValue) -> PyTree:
    """An array of zeros of an abstract value's shape and dtype; of a type of a library's own its zero."""
    rule = aval_zeros.get(type(aval))
    return aval.vspace_zero() if rule is None else rule(aval)  # type: ignore[attr-defined]


def instantiate_zeros(tangent: PyTree) -> PyTree:
    """Turns a symbolic zero into an array of zeros and leaves everything else as it is."""
    return zeros_like_aval(tangent.aval) if type(tangent) is Zero else tangent


def zero_from_primal(value: Any) -> Zero:
    return Zero.from_primal_value(value)


add_any_p = Primitive("add_any")
add_any_p.declare(elementwise=True, addition=True)


@add_any_p.def_abstract_eval
def _add_any_aval(x: Any, y: Any) -> Any:
    return x


@add_any_p.def_impl
def _add_any(x: Any, y: Any) -> Any:
    """Of values at hand the sum is that of `add`: weakly typed only if both are, not as the first."""
    if get_aval(x).weak_type and not get_aval(y).weak_type:
        x, y = y, x
    return add_any_p._backend_impl(x, y)


def add_any(x: PyTree, y: PyTree) -> PyTree:
    """The sum of two tangents of one type."""
    return add_any_p.bind(x, y)


def is_float0(x: Any) -> bool:
    return getattr(x, "dtype", None) == dtypes.float0


def add_tangents(x: PyTree, y: PyTree) -> PyTree:
    """The sum of two tangents, either of which may be a symbolic zero."""
    if type(x) is Zero:
        return y
    if type(y) is Zero:
        return x
    if is_float0(x) or x is abstract_token:
        return x
    aval = get_aval(x)
    return aval.vspace_add(x, y) if aval.is_high else add_any_p.bind(x, y)


def _add_any_jvp(primals: Any, tangents: Any) -> Any:
    return add_any_p.bind(*primals), add_tangents(*tangents)


def _add_any_transpose(cotangent: Any, x: Any, y: Any) -> list[Any]:
    return [cotangent, cotangent]


def _add_any_loops(b: Builder, x: Value, y: Value) -> Value:
    return b.value(x.shape, x.dtype, lambda i: b.add(x.at(i), y.at(i)))


rules.jvps[add_any_p] = _add_any_jvp
rules.transposes[add_any_p] = _add_any_transpose
rules.loops[add_any_p] = _add_any_loops
rules.stablehlos[add_any_p] = lambda m, x, y: m.op("stablehlo.add", [x, y], [m.avals_out[0]])
