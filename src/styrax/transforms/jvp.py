"""Forward-mode differentiation: values with tangents, computed as the program runs.

A `JVPTrace` gives every primitive's JVP rule the primal and tangent values and runs the rule on the
trace outside. Primal values stay what they are there, so Python control flow on concrete values
works. With a *tape* (see `partial`) the tangent part is recorded instead of computed: that is
linearization.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from ..core.programs.dead_code import without_dead_code
from ..core.programs.jaxpr import ClosedJaxpr, eval_jaxpr
from ..core.programs.primitive import Primitive
from ..core.programs.rules import fancy_batchers, jvps, linearizations, loops, stablehlos
from ..core.programs.spreading import as_told
from ..core.tracing.staging import trace_to_jaxpr
from ..core.tracing.trace import Trace, Tracer, get_aval, set_current_trace, state, to_concrete_value
from ..core.types import dtypes
from ..core.types.avals import as_bound
from ..core.types.typing import Function
from .memo import per_jaxpr
from .zeros import SymbolicZero, Zero, add_tangents, instantiate_zeros

if TYPE_CHECKING:
    from ..core.programs.lowering import Builder


class JVPTracer(Tracer):
    """A value and its tangent, which is never a symbolic zero."""

    __slots__ = ("primal", "tangent")

    def __init__(self, trace: Trace, primal: Any, tangent: Any):
        self._trace = trace
        self.primal = primal
        self.tangent = tangent

    @property
    def aval(self) -> Any:
        return get_aval(self.primal)

    def to_concrete_value(self) -> Any:
        return to_concrete_value(self.primal)

    def origin(self) -> str:
        return self.primal.origin() if isinstance(self.primal, Tracer) else ""

    def __repr__(self) -> str:
        return f"JVPTracer(primal={self.primal}, tangent={self.tangent})"


class GradTracer(JVPTracer):
    """A value whose tangent is recorded for later."""

    __slots__ = ()

    def __repr__(self) -> str:
        tangent = get_aval(self.tangent).str_short(short_dtypes=True)
        return f"GradTracer(primal={self.primal}, typeof(tangent)={tangent})"

    def shown_as(self, aval: Any) -> str:
        told = aval.str_short(short_dtypes=True)
        return f"GradTracer(primal=ShardMapTracer<{aval.str_short(short_dtypes=False)}>, typeof(tangent)={told})"


class JVPTrace(Trace):
    """Runs primitives on the `parent` trace along with their derivatives.

    With a `tape`, tangents are the tape's tracers and JVP rules run on it: what they compute from
    primal values alone still runs on the parent, the rest is recorded.
    """

    __slots__ = ("parent", "tape", "rule_trace", "tracer_type", "_invalidated")

    def __init__(self, parent: Trace, tape: Any = None):
        self.parent = parent
        self.tape = tape
        self.rule_trace = parent if tape is None else tape
        self.tracer_type = JVPTracer if tape is None else GradTracer
        self._invalidated = False

    def new_arg(self, primal: Any, tangent: Any) -> Any:
        return primal if type(tangent) is Zero else self.tracer_type(self, primal, tangent)

    def to_pair(self, x: Any) -> tuple[Any, Any]:
        """The primal and tangent of a value; values from outside have zero tangents."""
        if isinstance(x, JVPTracer) and x._trace is self:
            return x.primal, x.tangent
        return x, Zero.from_primal_value(x)

    def process_primitive(self, primitive: Primitive, args: tuple, params: dict[str, Any]) -> Any:
        primals: list[Any] = []
        tangents: list[Any] = []
        perturbed = False
        for x in args:
            if isinstance(x, JVPTracer) and x._trace is self:
                primals.append(x.primal)
                tangents.append(x.tangent)
                perturbed = True
            else:
                primals.append(x)
                tangents.append(None)
        previous = state.trace
        state.trace = self.parent
        try:
            if not perturbed and not primitive.ref_primitive:
                return self.parent.process_primitive(primitive, tuple(primals), params)
            for i, t in enumerate(tangents):
                if t is None:
                    tangents[i] = Zero.from_primal_value(primals[i])
            if self.tape is not None and primitive in linearizations:
                nonzero = [type(t) is not Zero for t in tangents]
                out, _, residuals, linear = linearizations[primitive](nonzero, *primals, **params)
                state.trace = self.tape
                tangent_out = linear(residuals, *tangents)
            else:
                rule = jvps.get(primitive)
                if rule is None:
                    raise NotImplementedError(f"Differentiation rule for '{primitive}' not implemented")
                state.trace = self.rule_trace
                out, tangent_out = rule(tuple(primals), tuple(tangents), **params)
        finally:
            state.trace = previous
        tracer = self.tracer_type
        if primitive.multiple_results:
            return [p if type(t) is Zero else tracer(self, p, t) for p, t in zip(out, tangent_out, strict=True)]
        return out if type(tangent_out) is Zero else tracer(self, out, tangent_out)

    def process_custom_jvp_call(self, primitive: Primitive, fun: Callable, jvp: Callable, args: tuple,
                                *, symbolic_zeros: bool) -> Any:
        primals, tangents = _unzip(map(self.to_pair, args))
        if all(type(t) is Zero for t in tangents):
            with set_current_trace(self.parent):
                return self.parent.process_custom_jvp_call(
                    primitive, fun, jvp, tuple(primals), symbolic_zeros=symbolic_zeros)
        if any(type(t) is not Zero for t in tangents[:getattr(jvp, "num_consts", 0)]):
            jvp.reject_constants()  # type: ignore[attr-defined]
        with set_current_trace(self.rule_trace):
            shown = [_show_zero(t) if symbolic_zeros else instantiate_zeros(t) for t in tangents]
            outs = jvp(*primals, *shown)
        half = len(outs) // 2
        # on a tape, what does not depend on its tangents is no part of a linear function: it counts as zero
        return [p if self.tape is not None and not self.tape.depends(t) else self._rewrap(p, t)
                for p, t in zip(outs[:half], outs[half:], strict=True)]

    def process_custom_vjp_call(self, primitive: Primitive, fun: Callable, fwd: Callable, bwd: Callable,
                                args: tuple, *, out_trees: Any, symbolic_zeros: bool) -> Any:
        primals, tangents = _unzip(map(self.to_pair, args))
        nonzero = [type(t) is not Zero for t in tangents]
        if not any(nonzero):
            with set_current_trace(self.parent):
                return self.parent.process_custom_vjp_call(
                    primitive, fun, fwd, bwd, tuple(primals), out_trees=out_trees,
                    symbolic_zeros=symbolic_zeros)
        with set_current_trace(self.parent):
            outs, residuals, pull_back = fwd(tuple(nonzero), *map(as_bound, primals))
        with set_current_trace(self.rule_trace):
            tangents_out = custom_lin_p.bind(
                *residuals, *(t for t in tangents if type(t) is not Zero), num_res=len(residuals),
                nonzero=tuple(nonzero), bwd=pull_back, symbolic_zeros=symbolic_zeros,
                out_avals=tuple(get_aval(x).to_tangent_aval() for x in outs))
        return [self._rewrap(p, t) for p, t in zip(outs, tangents_out, strict=True)]

    def _rewrap(self, primal: Any, tangent: Any) -> Any:
        if type(tangent) in (Zero, SymbolicZero) or getattr(tangent, "dtype", None) == dtypes.float0:
            return primal
        return self.tracer_type(self, primal, tangent)

    def __repr__(self) -> str:
        return "JVPTrace" if self.tape is None else "LinearizeTrace"


def _unzip(pairs: Any) -> tuple[list, list]:
    firsts, seconds = [], []
    for a, b in pairs:
        firsts.append(a)
        seconds.append(b)
    return firsts, seconds


def _show_zero(tangent: Any) -> Any:
    return SymbolicZero(tangent.aval) if type(tangent) is Zero else tangent


def jvp_flat(fun: Callable[..., Sequence[Any]], primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list, list]:
    """Runs a flat function on primals and tangents: its results and their tangents.

    Tangents, given or returned, may be symbolic zeros.
    """
    trace = JVPTrace(state.trace)
    try:
        with set_current_trace(trace):
            outs = fun(*(
                p if type(t) is Zero or getattr(t, "dtype", None) == dtypes.float0 else JVPTracer(trace, p, t)
                for p, t in zip(primals, tangents, strict=True)
            ))
        return _unzip(map(trace.to_pair, outs))
    finally:
        trace.invalidate()


def jvp_jaxpr(closed: ClosedJaxpr, nonzeros: Sequence[bool],
              instantiate: bool | Sequence[bool]) -> tuple[ClosedJaxpr, list[bool]]:
    """The program that computes `closed` and its derivative.

    Its inputs are the inputs of `closed` and then the tangents of those that `nonzeros` marks; its
    results are those of `closed` and then the tangents that are not zero or that `instantiate`
    asks for. Returns it with a list that tells which tangents are among the results.
    """
    if isinstance(instantiate, bool):
        instantiate = [instantiate] * len(closed.jaxpr.outvars)
    new, nonzeros_out = _jvp_jaxpr(closed, tuple(map(bool, nonzeros)), tuple(map(bool, instantiate)))
    return new, list(nonzeros_out)


@per_jaxpr
def _jvp_jaxpr(closed: ClosedJaxpr, nonzeros: tuple[bool, ...],
               instantiate: tuple[bool, ...]) -> tuple[ClosedJaxpr, tuple[bool, ...]]:
    closed = without_dead_code(closed)
    avals = closed.in_avals
    nonzeros_out: list[bool] = []

    def differentiated(*args: Any) -> list[Any]:
        primals = args[:len(avals)]
        given = iter(args[len(avals):])
        tangents = [next(given) if nz else Zero.from_primal_value(p)
                    for p, nz in zip(primals, nonzeros, strict=True)]
        outs, tangents_out = jvp_flat(lambda *xs: eval_jaxpr(closed.jaxpr, closed.consts, *xs), primals, tangents)
        nonzeros_out[:] = [inst or type(t) is not Zero for t, inst in zip(tangents_out, instantiate, strict=True)]
        return [*outs, *(instantiate_zeros(t) for t, nz in zip(tangents_out, nonzeros_out, strict=True) if nz)]

    tangent_avals = [a.to_tangent_aval() for a, nz in zip(avals, nonzeros, strict=True) if nz]
    new = trace_to_jaxpr(differentiated, [*avals, *tangent_avals], closed.debug_info)
    return new, tuple(nonzeros_out)


# Rules for the common shapes of primitives


def defjvp(primitive: Primitive, *rules: Function | None) -> None:
    """Gives a primitive its JVP by argument: `rule(tangent, *primals, **params)`, None where it is zero."""
    jvps[primitive] = lambda primals, tangents, **params: _jvp_by_argument(
        primitive, rules, primals, tangents, params, False)


def defjvp2(primitive: Primitive, *rules: Function | None) -> None:
    """As `defjvp`, for rules that want the result: `rule(tangent, result, *primals, **params)`."""
    jvps[primitive] = lambda primals, tangents, **params: _jvp_by_argument(
        primitive, rules, primals, tangents, params, True)


def _jvp_by_argument(primitive: Primitive, rules: Sequence[Callable | None], primals: Sequence[Any],
                     tangents: Sequence[Any], params: dict[str, Any], with_result: bool) -> tuple[Any, Any]:
    result = primitive.bind(*primals, **params)
    terms = [
        rule(t, result, *primals, **params) if with_result else rule(t, *primals, **params)
        for rule, t in zip(rules, tangents, strict=True)
        if rule is not None and type(t) is not Zero
    ]
    total: Any = None
    for term in terms:
        total = term if total is None else add_tangents(total, term)
    return result, Zero.from_primal_value(result) if total is None else total


def zero_jvp(primitive: Primitive, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
    """The JVP of a primitive whose derivative is zero wherever it has one."""
    result = primitive.bind(*primals, **params)
    if primitive.multiple_results:
        return result, [Zero.from_primal_value(x) for x in result]
    return result, Zero.from_primal_value(result)


def defjvp_zero(primitive: Primitive) -> None:
    jvps[primitive] = lambda primals, tangents, **params: zero_jvp(primitive, primals, tangents, **params)


def linear_jvp(primitive: Primitive, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
    """The JVP of a primitive that is linear in all its arguments together."""
    result = primitive.bind(*primals, **params)
    if all(type(t) is Zero for t in tangents):
        if primitive.multiple_results:
            return result, [Zero.from_primal_value(x) for x in result]
        return result, Zero.from_primal_value(result)
    return result, primitive.bind(*map(instantiate_zeros, tangents), **params)


# The linear map behind a custom VJP: known only by its transpose

custom_lin_p = Primitive("custom_lin", multiple_results=True)
custom_lin_p.declare(sharding=as_told)


@custom_lin_p.def_abstract_eval
def _custom_lin_avals(*_: Any, out_avals: tuple, **params: Any) -> list[Any]:
    return list(out_avals)


def _custom_lin_forward(*_: Any, **params: Any) -> NoReturn:
    raise TypeError(
        "can't apply forward-mode autodiff (jvp) to a custom_vjp function.\nIts rule says how cotangents are "
        "pulled back, not how tangents are pushed forward. Use custom_jvp for both.")


def _custom_lin_loops(b: Builder, *_: Any, **params: Any) -> NoReturn:
    _custom_lin_forward()


custom_lin_p.def_impl(_custom_lin_forward)
fancy_batchers[custom_lin_p] = _custom_lin_forward
loops[custom_lin_p] = _custom_lin_loops
stablehlos[custom_lin_p] = _custom_lin_forward
