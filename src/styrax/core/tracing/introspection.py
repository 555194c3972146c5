"""What libraries ask about the state of tracing, and small conversions between abstract values."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Protocol

import numpy as np

from .. import hooks
from ..programs.jaxpr import Literal, Var
from ..types.avals import AbstractRef, AbstractToken, AbstractValue, ShapedArray, stacked, tangent_dtype, unstacked
from ..types.dims import larger, smaller
from ..types.typing import Dim, DType, PyTree
from .trace import Trace, current_trace, eval_trace, set_current_trace, state

Atom = Var | Literal
Value = Any
ParamDict = dict[str, Any]


def eval_context() -> set_current_trace:
    """A context in which operations run at once."""
    return set_current_trace(eval_trace)


class TraceTag:
    """Tells the traces of one use of a transformation from those of another."""

    __slots__ = ("__weakref__",)


class OpaqueTraceState:
    """What is being traced: equal as long as nothing begins or ends. `convention` names who asked."""

    __slots__ = ("_trace", "convention")

    def __init__(self, trace: Trace, convention: Hashable):
        self._trace = trace
        self.convention = convention

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OpaqueTraceState) and self._trace is other._trace

    def __hash__(self) -> int:
        return id(self._trace)

    def __repr__(self) -> str:
        return f"OpaqueTraceState({type(self._trace).__name__})"


def get_opaque_trace_state(convention: Hashable = None) -> OpaqueTraceState:
    """A value to compare later ones with, to see whether a transformation has begun or ended meanwhile."""
    return OpaqueTraceState(current_trace(), convention)


def trace_state_clean() -> bool:
    """Whether no transformation is running."""
    return state.trace is eval_trace


def find_top_trace(_: PyTree = ()) -> Trace:
    """The current trace."""
    return current_trace()


def nonempty_axis_env_DO_NOT_USE() -> bool:
    """Whether a mapped axis with a name is in scope."""
    return bool(state.axis_sizes)


def unsafe_get_axis_names_DO_NOT_USE() -> list[Any]:
    """The names of the mapped axes in scope."""
    return list(state.axis_sizes)


def _running(kind: type[Trace]) -> bool:
    trace: Trace | None = state.trace
    while trace is not None and not isinstance(trace, kind):
        trace = getattr(trace, "parent", None)
    return trace is not None


def unsafe_am_i_under_a_jit_DO_NOT_USE() -> bool:
    """Whether a function is being traced into a program."""
    from .staging import StagingTrace

    return _running(StagingTrace)


def unsafe_am_i_under_a_vmap_DO_NOT_USE() -> bool:
    """Whether a function is being mapped."""
    return _running(hooks.BatchTrace)


def gensym() -> Callable[[AbstractValue], Var]:
    """A function that makes variables."""
    return Var


def mapped_aval(size: Dim, axis: int | None, aval: AbstractValue) -> AbstractValue:
    """The abstract value of one element along an axis of `size`."""
    if axis is None or isinstance(aval, AbstractToken):
        return aval
    if isinstance(aval, AbstractRef):
        return aval.update(mapped_aval(size, axis, aval.inner_aval))
    assert isinstance(aval, ShapedArray)
    if aval.shape[axis] != size:
        raise ValueError(f"axis {axis} of {aval.str_short()} has size {aval.shape[axis]}, not {size}")
    return unstacked(aval, axis)


def unmapped_aval(size: Dim, axis: int | None, aval: AbstractValue,
                  explicit_mesh_axis: Hashable = None) -> AbstractValue:
    """The abstract value of `size` values stacked along an axis."""
    if axis is None or isinstance(aval, AbstractToken):
        return aval
    if isinstance(aval, AbstractRef):
        return aval.update(unmapped_aval(size, axis, aval.inner_aval))
    assert isinstance(aval, ShapedArray)
    return stacked(aval, size, axis, explicit_mesh_axis)


def primal_dtype_to_tangent_dtype(primal_dtype: DType) -> DType:
    """The dtype of tangents: the dtype itself for inexact ones, `float0` for others."""
    return tangent_dtype(primal_dtype)


class Wrapped(Protocol):
    """A function under transformations: `linear_util.WrappedFun`."""

    def call_wrapped(self, *args: Any) -> Any: ...


def call_impl(f: Wrapped, *args: PyTree, **params: PyTree) -> PyTree:
    """Calls a wrapped function (`linear_util.WrappedFun`) with flat arguments."""
    return f.call_wrapped(*args)


def is_constant_dim(d: Any) -> bool:
    """Whether a size is a number, not an expression of variables."""
    return isinstance(d, (int, np.integer))


def is_constant_shape(s: Sequence[Any]) -> bool:
    """Whether all sizes of a shape are numbers."""
    return all(map(is_constant_dim, s))


def max_dim(d1: int, d2: int) -> int:
    """The larger of two sizes, symbolic ones included."""
    return larger(d1, d2)


def min_dim(d1: int, d2: int) -> int:
    """The smaller of two sizes, symbolic ones included."""
    return smaller(d1, d2)


__all__ = [
    "Atom", "OpaqueTraceState", "ParamDict", "TraceTag", "Value", "call_impl", "eval_context", "find_top_trace",
    "gensym", "get_opaque_trace_state", "is_constant_dim", "is_constant_shape", "mapped_aval", "max_dim",
     "min_dim", "nonempty_axis_env_DO_NOT_USE",
    "primal_dtype_to_tangent_dtype", "trace_state_clean", "unmapped_aval", "unsafe_am_i_under_a_jit_DO_NOT_USE",
    "unsafe_am_i_under_a_vmap_DO_NOT_USE", "unsafe_get_axis_names_DO_NOT_USE",
]
