"""Taylor-mode differentiation: functions of truncated power series, term by term.

A *jet* of order n is a value with n more coefficients of the power series of a curve that starts there, its *terms*:
the k-th derivative divided by k!. A primitive's rule gives the jet of its result:
`rules.jets[primitive](primals, series, **params) -> (result, its terms)`, with coefficient k in `series[i][k - 1]`.
A primitive without a rule is pushed by its JVP rule: where `y = f(x)`, `y' = jvp(x, x')` along the curve, and the jet
of that, one order lower, gives the terms of `y` (Bettencourt, Johnson and Duvenaud, Taylor-Mode Automatic
Differentiation for Higher-Order Derivatives in JAX, 2019, for the whole).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core.hooks import lax
from ..core.programs.dead_code import dce_closed
from ..core.programs.jaxpr import ClosedJaxpr, eval_jaxpr
from ..core.programs.primitive import Primitive
from ..core.programs.rules import jets, jvps
from ..core.tracing.staging import hoist_tracers, trace_to_jaxpr
from ..core.tracing.trace import Trace, Tracer, get_aval, set_current_trace, state, to_concrete_value
from ..core.trees import tree
from ..core.types import dtypes
from ..core.types.avals import ShapedArray
from .jit_rules import jit_p, jit_params
from .jvp import custom_lin_p
from .memo import per_jaxpr
from .zeros import Zero, instantiate_zeros, zeros_like_aval


class ZeroTerm:
    """A coefficient that is zero."""


class ZeroSeries:
    """The terms of a value that does not change."""


zero_term = ZeroTerm()
zero_series = ZeroSeries()
tree.register_pytree_node(ZeroTerm, lambda _: ((), None), lambda *_: zero_term)
tree.register_pytree_node(ZeroSeries, lambda _: ((), None), lambda *_: zero_series)


class JetTracer(Tracer):
    """A value and its terms."""

    __slots__ = ("primal", "terms")

    def __init__(self, trace: Trace, primal: Any, terms: Any):
        self._trace = trace
        self.primal = primal
        self.terms = terms

    @property
    def aval(self) -> Any:
        return get_aval(self.primal)

    def to_concrete_value(self) -> Any:
        return to_concrete_value(self.primal)

    def full_lower(self) -> Any:
        return self.primal if self.terms is zero_series else self

    def __repr__(self) -> str:
        return f"JetTracer(primal={self.primal}, terms={self.terms})"


class JetTrace(Trace):
    """Runs primitives on the trace outside along with their power series up to `order`."""

    __slots__ = ("order", "parent_trace", "tag", "_invalidated")

    def __init__(self, tag: object, parent_trace: Trace, order: int):
        self.tag = tag
        self.parent_trace = parent_trace
        self.order = order
        self._invalidated = False

    def to_primal_terms_pair(self, x: Any) -> tuple[Any, Any]:
        """The value and its terms; values from outside do not change."""
        if isinstance(x, JetTracer) and x._trace is self:
            return x.primal, x.terms
        return x, zero_series

    def new_arg(self, primal: Any, terms: Any) -> Any:
        return primal if terms is zero_series else JetTracer(self, primal, terms)

    def process_primitive(self, primitive: Primitive, args: tuple, params: dict[str, Any]) -> Any:
        primals, series = zip(*map(self.to_primal_terms_pair, args)) if args else ((), ())
        with set_current_trace(self.parent_trace):
            if all(s is zero_series for s in series):
                return primitive.bind_with_trace(self.parent_trace, primals, None, params) \
                    if primitive.ref_primitive else self.parent_trace.process_primitive(primitive, primals, params)
            rule = jets.get(primitive)
            if rule is None:
                out, terms = derived_jet(primitive, primals, series, params)
            else:
                if not getattr(rule, "symbolic_zeros", False):
                    series = tuple(instantiate(s, x, self.order) for s, x in zip(series, primals, strict=True))
                out, terms = rule(primals, series, **params)
        if primitive.multiple_results:
            return list(map(self.new_arg, out, terms))
        return self.new_arg(out, terms)

    def process_custom_jvp_call(self, primitive: Primitive, fun: Callable, jvp: Callable, args: tuple,
                                *, symbolic_zeros: bool) -> Any:
        primals, series = zip(*map(self.to_primal_terms_pair, args))
        with set_current_trace(self.parent_trace):
            if all(s is zero_series for s in series):
                return self.parent_trace.process_custom_jvp_call(
                    primitive, fun, jvp, primals, symbolic_zeros=symbolic_zeros)
            outs, *terms = along_curve(lambda *xs: fun(*xs), lambda xs, ts: _second_half(jvp(
                *xs, *map(instantiate_zeros, ts))), primals, series)
        return list(map(self.new_arg, outs, *terms))

    def process_custom_vjp_call(self, primitive: Primitive, fun: Callable, fwd: Callable, bwd: Callable,
                                args: tuple, *, out_trees: Any, symbolic_zeros: bool) -> Any:
        with set_current_trace(self):  # a backward rule says nothing of how derivatives are pushed
            return fun(*args)

    def __repr__(self) -> str:
        return "JetTrace"


def _second_half(values: Sequence[Any]) -> Sequence[Any]:
    return values[len(values) // 2:]


def instantiate(series: Any, primal: Any, order: int) -> list[Any]:
    """Terms as arrays, with zeros for those that are known to be zero."""
    if series is not zero_series and not any(t is zero_term for t in series):
        return list(series)
    aval = get_aval(primal)
    if dtypes.issubdtype(aval.dtype, np.inexact):
        zero = zeros_like_aval(aval.to_tangent_aval())
    else:
        zero = lax.full(aval.shape, 0.0)
    return [zero] * order if series is zero_series else [zero if t is zero_term else t for t in series]


def jet_flat(fun: Callable[..., Sequence[Any]], primals: Sequence[Any], series: Sequence[Any], order: int
             ) -> tuple[list[Any], list[Any]]:
    """Runs a flat function on values and their terms: its results and theirs.

    Series, given or returned, may be `zero_series`.
    """
    trace = JetTrace(None, state.trace, order)
    try:
        with set_current_trace(trace):
            outs = fun(*map(trace.new_arg, primals, series))
        pairs = [trace.to_primal_terms_pair(x) for x in outs]
    finally:
        trace.invalidate()
    return [p for p, _ in pairs], [t for _, t in pairs]


def jet_jaxpr(closed: ClosedJaxpr, moving: Sequence[bool], order: int) -> tuple[ClosedJaxpr, list[bool]]:
    """The program of values and terms: it takes those that `moving` marks after the values, one array's after
    the other's, and gives the results likewise; returned with which results move.
    """
    new, moving_out = _jet_jaxpr(closed, tuple(moving), order)
    return new, list(moving_out)


@per_jaxpr
def _jet_jaxpr(closed: ClosedJaxpr, moving: tuple[bool, ...], order: int) -> tuple[ClosedJaxpr, tuple[bool, ...]]:
    avals = closed.in_avals
    moving_out: list[bool] = []

    def pushed(*args: Any) -> list[Any]:
        primals = args[:len(avals)]
        series = grouped(args[len(avals):], moving, order)
        outs, terms = jet_flat(lambda *xs: eval_jaxpr(closed.jaxpr, closed.consts, *xs), primals, series, order)
        moving_out[:] = [s is not zero_series for s in terms]
        return [*outs, *flattened(terms, outs, order)]

    term_avals = [term_aval(a) for a, m in zip(avals, moving, strict=True) if m for _ in range(order)]
    new = trace_to_jaxpr(pushed, [*avals, *term_avals], closed.debug_info)
    return new, tuple(moving_out)


def grouped(terms: Sequence[Any], moving: Sequence[bool], order: int) -> list[Any]:
    """Series of consecutive terms, `zero_series` where nothing moves."""
    rest = iter(terms)
    return [[next(rest) for _ in range(order)] if m else zero_series for m in moving]


def flattened(series: Sequence[Any], primals: Sequence[Any], order: int) -> list[Any]:
    """The terms of all series that move, one after the other."""
    return [_as_term(t, get_aval(x)) for s, x in zip(series, primals, strict=True) if s is not zero_series
            for t in instantiate(s, x, order)]


def _as_term(term: Any, aval: Any) -> Any:
    return term if dtypes.issubdtype(aval.dtype, np.inexact) else lax.convert_element_type(term, term_aval(aval).dtype)


def term_aval(aval: Any) -> Any:
    """The type of the terms of a value; those of integers are floats."""
    if dtypes.issubdtype(aval.dtype, np.inexact):
        return aval.to_tangent_aval()
    return ShapedArray(aval.shape, dtypes.canonicalize_dtype(np.float64))


# -- rules for the common shapes of primitives ------------------------------------------------------------


def along_curve(fun: Callable[..., Any], push: Callable[[Sequence[Any], Sequence[Any]], Sequence[Any]],
                primals: Sequence[Any], series: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """The jet of `fun` by `push(primals, tangents)`, the tangents of its results: the jet of `push` along the curve
    is that of the result's derivative.
    """
    moving = [s is not zero_series for s in series]
    order = max(len(s) for s in series if s is not zero_series)
    outs = list(fun(*primals))
    avals = [get_aval(x) for x in primals]
    for aval, m in zip(avals, moving, strict=True):
        if m and not dtypes.issubdtype(aval.dtype, np.inexact):
            if any(get_aval(x).dtype != np.bool_ for x in outs):
                raise TypeError(f"jet: a value of dtype {aval.dtype.name} has no derivatives; convert it first")
            return outs, [zero_series] * len(outs)
    if not order:
        return outs, [zero_series] * len(outs)
    still: list[bool] = []

    def velocity(*args: Any) -> list[Any]:
        given = iter(args[len(avals):])
        xs = args[:len(avals)]
        tangents = push(xs, [next(given) if m else Zero.from_primal_value(x) for x, m in zip(xs, moving, strict=True)])
        still[:] = [type(t) is Zero or getattr(t, "dtype", None) == dtypes.float0 for t in tangents]
        return [t for t, s in zip(tangents, still, strict=True) if not s]

    closed = trace_to_jaxpr(velocity, [*avals, *(a.to_tangent_aval() for a, m in zip(avals, moving, strict=True) if m)])
    closed, captured = hoist_tracers(closed)
    closed, used = dce_closed(closed, [True] * len(closed.jaxpr.outvars), [True] * len(captured) + [False] * (
        len(closed.jaxpr.invars) - len(captured)))
    series = [instantiate(s, x, order) if s is not zero_series else s for s, x in zip(series, primals, strict=True)]
    speeds = [[_times(k, t) for k, t in enumerate(s, 1)] for s in series if s is not zero_series]
    values = [*captured, *primals, *(s[0] for s in speeds)]
    rates = [zero_series] * len(captured) + [s if s is zero_series else s[:-1] for s in series] + [
        s[1:] for s in speeds]
    values, rates = ([v for v, u in zip(vs, used, strict=True) if u] for vs in (values, rates))
    first, more = jet_flat(lambda *xs: eval_jaxpr(closed.jaxpr, closed.consts, *xs), values, rates, order - 1)
    found = iter([_integral([v, *instantiate(s, v, order - 1)]) for v, s in zip(first, more, strict=True)])
    return outs, [zero_series if s else next(found) for s in still]


def _integral(series: Sequence[Any]) -> list[Any]:
    """The terms of a function, from the coefficients of its derivative."""
    return [x if k == 1 else lax.div(x, lax.full_like(x, k)) for k, x in enumerate(series, 1)]


def _times(n: int, x: Any) -> Any:
    return x if n == 1 else lax.mul(x, lax.full_like(x, n))


def derived_jet(primitive: Primitive, primals: Sequence[Any], series: Sequence[Any], params: dict[str, Any]) -> Any:
    """The jet of a primitive by what it declares: the program that it calls, linearity, or its JVP rule."""
    program = primitive.traits.program
    if program is not None and primitive is not custom_lin_p:
        closed = program(params)
        order = max(len(s) for s in series if s is not zero_series)
        jaxpr, consts = (closed.jaxpr, closed.consts) if isinstance(closed, ClosedJaxpr) else (closed, ())
        return jet_flat(lambda *xs: eval_jaxpr(jaxpr, consts, *xs), primals, series, order)
    if primitive.traits.linear or primitive.traits.bilinear:
        order = max(len(s) for s in series if s is not zero_series)
        if primitive.traits.bilinear:
            return bilinear_jet(primitive, primals, series, **params)
        return linear_jet(primitive, primals, [instantiate(s, x, order) for s, x in zip(series, primals, strict=True)],
                          **params)
    rule = jvps.get(primitive)
    if rule is None:
        raise NotImplementedError(f"Differentiation rule for '{primitive}' not implemented")
    several = primitive.multiple_results

    def push(xs: Sequence[Any], ts: Sequence[Any]) -> Sequence[Any]:
        tangents = rule(tuple(xs), tuple(ts), **params)[1]
        return tangents if several else [tangents]

    def run(*xs: Any) -> Sequence[Any]:
        out = primitive.bind(*xs, **params)
        return out if several else [out]

    outs, terms = along_curve(run, push, primals, series)
    return (outs, terms) if several else (outs[0], terms[0])


def symbolic_zeros(rule: Callable) -> Callable:
    """Marks a rule that takes `zero_series` for operands that do not change."""
    rule.symbolic_zeros = True  # type: ignore[attr-defined]
    return rule


def linear_jet(primitive: Primitive, primals: Sequence[Any], series: Sequence[Any], **params: Any) -> tuple[Any, Any]:
    """The jet of a primitive that is linear in all its operands together."""
    out = primitive.bind(*primals, **params)
    terms = [primitive.bind(*ts, **params) for ts in zip(*series, strict=True)]
    return out, [list(s) for s in zip(*terms, strict=True)] if primitive.multiple_results else terms


def bilinear_jet(primitive: Primitive, primals: Sequence[Any], series: Sequence[Any], **params: Any
                 ) -> tuple[Any, list[Any]]:
    """The jet of a primitive that is linear in each of its two operands: its series is the product of theirs."""
    x, y = ([p] if s is zero_series else [p, *s] for p, s in zip(primals, series, strict=True))
    order = max(len(x), len(y)) - 1
    out, *terms = (total([primitive.bind(x[k], y[n - k], **params)
                          for k in range(n + 1) if k < len(x) and n - k < len(y)]) for n in range(order + 1))
    return out, terms


def zero_jet(primitive: Primitive, primals: Sequence[Any], series: Sequence[Any], **params: Any) -> tuple[Any, Any]:
    """The jet of a primitive whose derivatives are zero wherever it has them."""
    out = primitive.bind(*primals, **params)
    return out, [zero_series] * len(out) if primitive.multiple_results else zero_series


def composed_jet(derivative: Callable[..., Any], x: Any, series: Sequence[Any]) -> list[Any]:
    """The terms of a function of one operand at `x`, from the function that is its derivative."""
    _, (terms,) = along_curve(lambda x: [x], lambda xs, ts: [lax.mul(derivative(*xs), ts[0])], [x], [series])
    return terms


def total(terms: Sequence[Any]) -> Any:
    """The sum of arrays."""
    result = terms[0]
    for t in terms[1:]:
        result = lax.add(result, t)
    return result


@symbolic_zeros
def _jit_jet(primals: Sequence[Any], series: Sequence[Any], *, jaxpr: ClosedJaxpr, **params: Any) -> Any:
    order = max(len(s) for s in series if s is not zero_series)
    moving = [s is not zero_series for s in series]
    new, moving_out = jet_jaxpr(jaxpr, moving, order)
    new, captured = hoist_tracers(new)
    results = jit_p.bind(*captured, *primals, *flattened(series, primals, order), **jit_params(
        new, params["name"], keep_unused=params["keep_unused"], inline=params["inline"], ctx_mesh=params["ctx_mesh"],
        compiler_options_kvs=params["compiler_options_kvs"]))
    count = len(moving_out)
    return results[:count], grouped(results[count:], moving_out, order)


jets[jit_p] = _jit_jet
