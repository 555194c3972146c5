"""Staging: running a function on abstract values and writing down what it does as a jaxpr."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..programs import metadata, rules
from ..programs.jaxpr import ClosedJaxpr, DebugInfo, Jaxpr, JaxprEqn, Literal, Var, no_debug_info
from ..programs.primitive import Primitive
from ..settings import config
from ..types.avals import AbstractRef, AbstractValue, ShapedArray
from ..types.dims import is_symbolic
from . import source
from .leak_check import refuse_leaks
from .trace import FoldingTrace, Trace, Tracer, aval_rules, eval_trace, get_aval, raise_leak, set_current_trace, state


class DynamicJaxprTracer(Tracer):
    """A value of a program being written: a variable, or a literal, and its abstract value."""

    __module__ = "styrax.interpreters.partial_eval"  # where programs find the class, and what they print
    __slots__ = ("atom", "eqn")
    _trace: StagingTrace

    def __init__(self, trace: StagingTrace, aval: AbstractValue, atom: Any, eqn: JaxprEqn | None = None):
        self._trace = trace
        self._aval = aval
        self.atom = atom
        self.eqn = eqn

    def __repr__(self) -> str:
        # the text that JAX's documentation prints for a value inside `jit`
        return f"JitTracer({_repr_aval(self._aval)})"

    def shown_as(self, aval: Any) -> str:
        return f"JitTracer({_repr_aval(aval)})"

    def origin(self) -> str:
        info = self._trace.debug_info
        text = f"The error occurred while tracing the function {info.func_src_info} for {info.traced_for}."
        names = self._trace.arguments_behind(self.atom)
        if names:
            arguments = f"argument {names[0]}" if len(names) == 1 else (
                f"arguments {', '.join(names[:-1])} and {names[-1]}")
            text += (" This concrete value was not available in Python because it depends on the "
                     f"value{'s' if len(names) > 1 else ''} of the {arguments}.")
        if self.eqn is not None:
            line = source.summarize(self.eqn.source_info)
            text += ("\nThis value became a tracer due to JAX operations on these lines:\n"
                     f"  operation {self.eqn.primitive.name}\n    from line {line}")
        return text

    def birth(self) -> str:
        info = self._trace.debug_info
        traced = ("\nThe function being traced when the value leaked was "
                  f"{info.func_src_info} traced for {info.traced_for}.")
        if self.eqn is None:
            invars = self._trace.invars
            index = invars.index(self.atom) if self.atom in invars else len(info.arg_names)
            return traced + (f"\nThe leaked value is the argument {info.arg_names[index]}."
                             if index < len(info.arg_names) else "")
        return (f"{traced}\nThe leaked intermediate value was created on line "
                f"{source.summarize(self.eqn.source_info)}.\n"
                f"It is a result of the operation {self.eqn.primitive.name}.")


def _repr_aval(aval: Any) -> str:
    if isinstance(aval, ShapedArray):
        weak = "~" if aval.weak_type else ""
        return weak + aval.str_short(short_dtypes=False)
    return aval.str_short(short_dtypes=False)


class StagingTrace(Trace):
    """Writes primitives down as equations."""

    __slots__ = ("eqns", "invars", "constants", "debug_info", "parent", "_invalidated", "is_high")

    def __init__(self, debug_info: DebugInfo = no_debug_info, parent: Trace | None = None):
        self.eqns: list[JaxprEqn] = []
        self.invars: list[Var] = []
        self.constants: dict[int, tuple[DynamicJaxprTracer, Any]] = {}  # id of a captured value -> its tracer
        self.debug_info = debug_info
        self.parent = parent
        self._invalidated = False

    def new_arg(self, aval: AbstractValue) -> DynamicJaxprTracer:
        var = Var(aval)
        self.invars.append(var)
        return DynamicJaxprTracer(self, aval, var)

    def literal(self, value: Any, aval: AbstractValue) -> DynamicJaxprTracer:
        """The tracer of a number that is written into the equations."""
        return DynamicJaxprTracer(self, aval, Literal(value, aval))

    def to_tracer(self, x: Any) -> DynamicJaxprTracer:
        """The tracer of an argument; values from outside become literals or constants."""
        if isinstance(x, Tracer):
            if x._trace is self:
                return x  # type: ignore[return-value]
            if not x._trace.is_valid():
                raise_leak(x)
        known = self.constants.get(id(x))
        if known is not None:
            return known[0]
        if is_symbolic(x) and hasattr(x, "__jax_array__"):
            return self.to_tracer(x.__jax_array__())
        aval = get_aval(x)
        if not isinstance(x, Tracer) and getattr(aval, "shape", None) == () and inlines(x):
            return self.literal(_scalar(x, aval), aval)
        tracer = DynamicJaxprTracer(self, aval, Var(aval))
        self.constants[id(x)] = (tracer, x)
        return tracer

    def process_primitive(self, primitive: Primitive, args: tuple, params: dict[str, Any]) -> Any:
        tracers = [x if type(x) is DynamicJaxprTracer and x._trace is self else self.to_tracer(x) for x in args]
        rule = rules.stagings.get(primitive)
        if rule is not None:
            outs = rule(self, tracers, params)
            if outs is not NotImplemented:
                return outs
        out_avals, effects = primitive.abstract_eval(*[t._aval for t in tracers], **params)
        return self.emit(primitive, tracers, out_avals, params, effects)

    def emit(self, primitive: Primitive, tracers: Sequence[DynamicJaxprTracer], out_avals: Any,
             params: dict[str, Any], effects: Any) -> Any:
        """Appends an equation and gives the tracers of its results."""
        many = primitive.multiple_results
        if isinstance(out_avals, (list, tuple)) is not many:
            raise ValueError(f"{primitive}.abstract_eval() method should return a tuple or a list iff "
                             f"{primitive}.multiple_results.")
        outvars = [Var(a) for a in out_avals] if many else [Var(out_avals)]
        eqn = JaxprEqn([t.atom for t in tracers], outvars, primitive, params, effects, source.current(),
                       metadata.current())
        self.eqns.append(eqn)
        outs = [DynamicJaxprTracer(self, v.aval, v, eqn) for v in outvars]
        return outs if many else outs[0]

    def process_custom_jvp_call(self, primitive: Primitive, fun: Callable, jvp: Callable, args: tuple,
                                *, symbolic_zeros: bool) -> Any:
        tracers = [self.to_tracer(x) for x in args]
        avals = [t.aval for t in tracers]
        call_jaxpr = trace_to_jaxpr(fun, avals, getattr(fun, "debug_info", no_debug_info))
        closed, captured = hoist_tracers(call_jaxpr, everything=True)
        params = dict(
            name=getattr(fun, "__name__", "<unnamed function>"),
            call_jaxpr=closed,
            jvp_jaxpr_fun=jvp,
            num_consts=len(captured),
            symbolic_zeros=symbolic_zeros,
        )
        tracers = [*map(self.to_tracer, captured), *tracers]
        return self.emit(primitive, tracers, closed.out_avals, params, closed.effects)

    def process_custom_vjp_call(self, primitive: Primitive, fun: Callable, fwd: Callable, bwd: Callable,
                                args: tuple, *, out_trees: Any, symbolic_zeros: bool) -> Any:
        tracers = [self.to_tracer(x) for x in args]
        avals = [t.aval for t in tracers]
        call_jaxpr = trace_to_jaxpr(fun, avals, getattr(fun, "debug_info", no_debug_info))
        closed, captured = hoist_tracers(call_jaxpr, everything=True)
        params = dict(
            name=getattr(fun, "__name__", "<unnamed function>"),
            call_jaxpr=closed,
            fwd_jaxpr_thunk=fwd,
            bwd=bwd,
            num_consts=len(captured),
            out_trees=out_trees,
            symbolic_zeros=symbolic_zeros,
        )
        tracers = [*map(self.to_tracer, captured), *tracers]
        return self.emit(primitive, tracers, closed.out_avals, params, closed.effects)

    def to_jaxpr(self, outs: Sequence[Any]) -> ClosedJaxpr:
        """Closes the program: what was captured stands as its constants."""
        out_atoms = [self.to_tracer(x).atom for x in outs]
        constvars = [tracer.atom for tracer, _ in self.constants.values()]
        consts = [value for _, value in self.constants.values()]
        jaxpr = Jaxpr(constvars, self.invars, out_atoms, self.eqns, None, self.debug_info)
        return ClosedJaxpr(jaxpr, consts)

    def invalidate(self) -> None:
        super().invalidate()
        self.constants.clear()  # the tracers of captured values hold the trace: without them the values go early

    def arguments_behind(self, atom: Any) -> list[str]:
        """The names of the arguments that a variable of this program depends on, in their order."""
        needed = {atom}
        for eqn in reversed(self.eqns):
            if any(v in needed for v in eqn.outvars):
                needed.update(v for v in eqn.invars if type(v) is Var)
        return [name for v, name in zip(self.invars, self.debug_info.arg_names) if v in needed]

    def __repr__(self) -> str:
        return f"StagingTrace<{self.debug_info.func_name}>"


def inlines(x: Any) -> bool:
    """Whether a captured scalar is written into the equation instead of becoming a constant."""
    return isinstance(x, (bool, int, float, complex, np.generic, np.ndarray))


def owner_of_constants(trace: Trace) -> Trace:
    """The trace that constants of a trace belong to: a transformation leaves them to what runs outside of it."""
    while not trace.is_eval and not isinstance(trace, StagingTrace) and hasattr(trace, "parent"):
        trace = eval_trace if type(trace) is FoldingTrace else trace.parent
    return trace


def _scalar(x: Any, aval: Any) -> Any:
    """The constant as a NumPy scalar of the aval's dtype, or the Python scalar that it is."""
    if isinstance(x, (float, complex)) and not isinstance(x, np.generic):
        return x
    if isinstance(x, (bool, int)):
        return np.dtype(aval.dtype).type(x)  # with an OverflowError where it does not fit
    return np.asarray(x, aval.dtype)[()]


def trace_to_jaxpr(fun: Callable[..., Sequence[Any]], in_avals: Sequence[AbstractValue],
                   debug_info: DebugInfo | None = None, kind: type[StagingTrace] = StagingTrace) -> ClosedJaxpr:
    """Traces `fun`, which takes and gives flat sequences, on values known only by `in_avals`.

    Values that `fun` closes over become the constants of the result; among them can be tracers of
    traces that run outside (see `hoist_tracers`).
    """
    # User functions nest as deep as Python's stack allows: few frames stand between one and the next.
    trace = kind(debug_info or no_debug_info, state.trace)
    scopes = source.scopes
    around = scopes.stack
    scopes.stack = source.no_scopes  # the equation that the program becomes a part of stands in them
    try:
        with set_current_trace(trace):
            closed = trace.to_jaxpr(fun(*map(trace.new_arg, in_avals)))
    finally:
        scopes.stack = around
        trace.invalidate()
    if config.check_tracer_leaks.value:
        ref = weakref.ref(trace)
        del trace
        refuse_leaks(ref, "DynamicJaxprTrace")
    return closed


def hoist_tracers(closed: ClosedJaxpr, everything: bool = False) -> tuple[ClosedJaxpr, list[Any]]:
    """Turns constants that are tracers (or all, or references) into leading arguments.

    Returns the new program and the values to pass for its new leading arguments.
    """
    jaxpr = closed.jaxpr
    hoisted = [everything or isinstance(c, Tracer) or isinstance(v.aval, AbstractRef)
               for v, c in zip(jaxpr.constvars, closed.consts, strict=True)]
    if not any(hoisted):
        return closed, []
    moved = [v for v, h in zip(jaxpr.constvars, hoisted, strict=True) if h]
    kept = [v for v, h in zip(jaxpr.constvars, hoisted, strict=True) if not h]
    new = Jaxpr(kept, moved + jaxpr.invars, jaxpr.outvars, jaxpr.eqns, None, jaxpr.debug_info)
    consts = [c for c, h in zip(closed.consts, hoisted, strict=True) if not h]
    captured = [c for c, h in zip(closed.consts, hoisted, strict=True) if h]
    return ClosedJaxpr(new, consts), captured


__all__ = ["DynamicJaxprTracer", "StagingTrace", "aval_rules", "hoist_tracers", "inlines", "owner_of_constants",
           "trace_to_jaxpr"]
