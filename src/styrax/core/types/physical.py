"""Programs on extended dtypes as programs on the plain arrays that hold their elements.

An array of an extended dtype (a PRNG key) of shape `s` is kept as an array of shape
`(*s, *element.shape)` of `element.dtype`, where `element` is `dtype._rules.physical_element_aval(dtype)`.
Backends know plain arrays alone: `lower` rewrites a jaxpr before they compile it. Each primitive that accepts
extended dtypes has a rule here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..programs.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var, jaxprs_in_params
from ..tracing.staging import trace_to_jaxpr
from . import dtypes
from .avals import ShapedArray

# primitive -> rule(context, *physical_args, **params) -> physical result(s)
physicals: dict[Any, Callable[..., Any]] = {}


class Context:
    """What a rule sees of its equation: the logical abstract values."""

    __slots__ = ("avals_in", "avals_out")

    def __init__(self, avals_in: Sequence[Any], avals_out: Sequence[Any]):
        self.avals_in = avals_in
        self.avals_out = avals_out

    def element_ndim(self) -> int:
        """How many dimensions an element has, of the equation's first extended value."""
        return len(self.element_shape())

    def element_shape(self) -> tuple[int, ...]:
        for aval in (*self.avals_out, *self.avals_in):
            if is_extended(aval):
                return aval.dtype._rules.physical_element_aval(aval.dtype).shape
        return ()


def is_extended(aval: Any) -> bool:
    return isinstance(getattr(aval, "dtype", None), dtypes.ExtendedDType)


def physical_aval(aval: Any) -> Any:
    """The plain array behind an abstract value; others are given back as they are."""
    if not is_extended(aval) or not isinstance(aval, ShapedArray):
        return aval
    element = aval.dtype._rules.physical_element_aval(aval.dtype)
    return ShapedArray((*aval.shape, *element.shape), element.dtype)


def uses_extended(jaxpr: Jaxpr) -> bool:
    """Whether any value of a program, or of a program inside it, has an extended dtype."""
    known = jaxpr.cache.get("uses_extended")
    if known is None:
        variables = [*jaxpr.constvars, *jaxpr.invars, *(v for e in jaxpr.eqns for v in e.outvars)]
        known = any(is_extended(v.aval) for v in variables) or any(
            uses_extended(inner) for e in jaxpr.eqns for inner in jaxprs_in_params(e.params))
        jaxpr.cache["uses_extended"] = known
    return known


def lower(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The same program on plain arrays; the very same object where it has no extended dtype."""
    if not uses_extended(closed.jaxpr):
        return closed
    consts = [
        c.physical if is_extended(v.aval) else c
        for v, c in zip(closed.jaxpr.constvars, closed.consts, strict=True)
    ]
    return ClosedJaxpr(lower_jaxpr(closed.jaxpr), consts) if not _adds_constants(closed.jaxpr) else _close(
        closed.jaxpr, consts)


def lower_jaxpr(jaxpr: Jaxpr) -> Jaxpr:
    """An open program on plain arrays. Rules may not capture constants in it."""
    if not uses_extended(jaxpr):
        return jaxpr
    known = jaxpr.cache.get("physical")
    if known is None:
        known = jaxpr.cache["physical"] = _Rewriter(jaxpr).run()
    new, consts = known
    assert not consts
    return new


def _adds_constants(jaxpr: Jaxpr) -> bool:
    if "physical" not in jaxpr.cache:
        jaxpr.cache["physical"] = _Rewriter(jaxpr).run()
    return bool(jaxpr.cache["physical"][1])


def _close(jaxpr: Jaxpr, consts: list[Any]) -> ClosedJaxpr:
    new, extra = jaxpr.cache["physical"]
    return ClosedJaxpr(new, [*consts, *extra])


class _Rewriter:
    """Rewrites one program: its plain equations stay, the others are replaced by their rules'."""

    def __init__(self, jaxpr: Jaxpr):
        self.jaxpr = jaxpr
        self.env: dict[Var, Any] = {}
        self.eqns: list[JaxprEqn] = []
        self.constvars: list[Var] = []
        self.consts: list[Any] = []

    def run(self) -> tuple[Jaxpr, list[Any]]:
        jaxpr = self.jaxpr
        constvars = [self.bind_new(v) for v in jaxpr.constvars]
        invars = [self.bind_new(v) for v in jaxpr.invars]
        self.rewrite(jaxpr)
        new = Jaxpr([*constvars, *self.constvars], invars, [self.read(v) for v in jaxpr.outvars], self.eqns,
                    jaxpr.effects, jaxpr.debug_info)
        return new, self.consts

    def bind_new(self, var: Var) -> Var:
        if not is_extended(var.aval):
            return var
        new = self.env[var] = Var(physical_aval(var.aval))
        return new

    def read(self, atom: Any) -> Any:
        return atom if type(atom) is Literal else self.env.get(atom, atom)

    def rewrite(self, jaxpr: Jaxpr) -> None:
        for eqn in jaxpr.eqns:
            inner = [j for j in jaxprs_in_params(eqn.params) if uses_extended(j)]
            ins = [self.read(v) for v in eqn.invars]
            touched = any(is_extended(v.aval) for v in (*eqn.invars, *eqn.outvars))
            if eqn.primitive in physicals and touched:
                self.inline_rule(eqn, ins)
            elif inner or touched:
                params = {name: _lower_param(value) for name, value in eqn.params.items()}
                self.eqns.append(eqn.replace(
                    invars=ins, outvars=[self.bind_new(v) for v in eqn.outvars], params=params))
            else:
                self.eqns.append(eqn.replace(invars=ins) if ins != eqn.invars else eqn)

    def inline_rule(self, eqn: JaxprEqn, ins: list[Any]) -> None:
        context = Context([v.aval for v in eqn.invars], [v.aval for v in eqn.outvars])
        rule = physicals[eqn.primitive]

        def body(*args: Any) -> Sequence[Any]:
            out = rule(context, *args, **eqn.params)
            return out if eqn.primitive.multiple_results else [out]

        traced = lower(trace_to_jaxpr(body, [v.aval for v in ins]))
        self.constvars += traced.jaxpr.constvars
        self.consts += traced.consts
        local = dict(zip(traced.jaxpr.invars, ins, strict=True))

        def substitute(atom: Any) -> Any:
            return atom if type(atom) is Literal else local.get(atom, atom)

        for inner in traced.jaxpr.eqns:
            self.eqns.append(inner.replace(invars=[substitute(v) for v in inner.invars],
                                           source_info=eqn.source_info))
        for old, new in zip(eqn.outvars, traced.jaxpr.outvars, strict=True):
            self.env[old] = substitute(new)


def _lower_param(value: Any) -> Any:
    if isinstance(value, ClosedJaxpr):
        return lower(value)
    if isinstance(value, Jaxpr):
        return lower_jaxpr(value)
    if isinstance(value, (tuple, list)) and any(isinstance(v, (ClosedJaxpr, Jaxpr)) for v in value):
        return type(value)(_lower_param(v) for v in value)
    return value
