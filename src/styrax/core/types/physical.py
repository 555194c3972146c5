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
    return _Extended.lowered(closed)


class Rewriter:
    """Rewrites programs on values that are kept in another form: other equations stay, those on such values are
    replaced by what their rules do.

    Subclasses say which values and which rules. Their name is that of the result in a program's cache.
    """

    def __init__(self, jaxpr: Jaxpr):
        self.jaxpr = jaxpr
        self.env: dict[Var, Any] = {}
        self.eqns: list[JaxprEqn] = []
        self.constvars: list[Var] = []
        self.consts: list[Any] = []

    @staticmethod
    def concerns(jaxpr: Jaxpr) -> bool:
        """Whether there is anything to rewrite in a program, or in one inside it."""
        raise NotImplementedError

    def form(self, aval: Any) -> Any:
        """The type of what stands for a value; the same object where that is the value itself."""
        raise NotImplementedError

    def form_of_constant(self, value: Any) -> Any:
        """What stands for a constant."""
        raise NotImplementedError

    def rule(self, eqn: JaxprEqn) -> Callable[..., Any] | None:
        """What an equation does on what stands for its operands; None for one that stays, with other programs."""
        raise NotImplementedError

    @classmethod
    def lowered(cls, closed: ClosedJaxpr) -> ClosedJaxpr:
        """The same program on what stands for its values; the very same object where there is nothing to do."""
        if not cls.concerns(closed.jaxpr):
            return closed
        new, extra = cls._known(closed.jaxpr)
        rewriter = cls(closed.jaxpr)
        consts = [c if rewriter.form(v.aval) is v.aval else rewriter.form_of_constant(c)
                  for v, c in zip(closed.jaxpr.constvars, closed.consts, strict=True)]
        return ClosedJaxpr(new, [*consts, *extra])

    @classmethod
    def lowered_open(cls, jaxpr: Jaxpr) -> Jaxpr:
        """An open program, rewritten. Rules may not capture constants in it."""
        if not cls.concerns(jaxpr):
            return jaxpr
        new, consts = cls._known(jaxpr)
        if consts:
            raise NotImplementedError(f"{cls.__name__}: an open program would get constants")
        return new

    @classmethod
    def _known(cls, jaxpr: Jaxpr) -> tuple[Jaxpr, list[Any]]:
        known = jaxpr.cache.get(cls.__name__)
        if known is None:
            known = jaxpr.cache[cls.__name__] = cls(jaxpr).run()
        return known

    def run(self) -> tuple[Jaxpr, list[Any]]:
        jaxpr = self.jaxpr
        constvars = [self.bind_new(v) for v in jaxpr.constvars]
        invars = [self.bind_new(v) for v in jaxpr.invars]
        self.rewrite(jaxpr)
        new = Jaxpr([*constvars, *self.constvars], invars, [self.read(v) for v in jaxpr.outvars], self.eqns,
                    jaxpr.effects, jaxpr.debug_info)
        return new, self.consts

    def bind_new(self, var: Var) -> Var:
        form = self.form(var.aval)
        if form is var.aval:
            return var
        new = self.env[var] = Var(form)
        return new

    def read(self, atom: Any) -> Any:
        return atom if type(atom) is Literal else self.env.get(atom, atom)

    def rewrite(self, jaxpr: Jaxpr) -> None:
        for eqn in jaxpr.eqns:
            inner = any(self.concerns(j) for j in jaxprs_in_params(eqn.params))
            ins = [self.read(v) for v in eqn.invars]
            touched = any(self.form(v.aval) is not v.aval for v in (*eqn.invars, *eqn.outvars))
            rule = self.rule(eqn) if touched or inner else None
            if rule is not None:
                self.inline_rule(eqn, ins, rule)
            elif inner or touched:
                params = {name: self.lowered_param(value) for name, value in eqn.params.items()}
                self.eqns.append(eqn.replace(
                    invars=ins, outvars=[self.bind_new(v) for v in eqn.outvars], params=params))
            else:
                self.eqns.append(eqn.replace(invars=ins) if ins != eqn.invars else eqn)

    def inline_rule(self, eqn: JaxprEqn, ins: list[Any], rule: Callable[..., Any]) -> None:
        def body(*args: Any) -> Sequence[Any]:
            out = rule(*args)
            return out if eqn.primitive.multiple_results else [out]

        traced = self.lowered(trace_to_jaxpr(body, [v.aval for v in ins]))
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

    def lowered_param(self, value: Any) -> Any:
        """A parameter, with the programs in it rewritten."""
        if isinstance(value, ClosedJaxpr):
            return self.lowered(value)
        if isinstance(value, Jaxpr):
            return self.lowered_open(value)
        if isinstance(value, (tuple, list)) and any(isinstance(v, (ClosedJaxpr, Jaxpr)) for v in value):
            return type(value)(self.lowered_param(v) for v in value)
        return value


class _Extended(Rewriter):
    """On plain arrays in place of those of extended dtypes."""

    concerns = staticmethod(uses_extended)

    def form(self, aval: Any) -> Any:
        return physical_aval(aval)

    def form_of_constant(self, value: Any) -> Any:
        return value.physical

    def rule(self, eqn: JaxprEqn) -> Callable[..., Any] | None:
        found = physicals.get(eqn.primitive)
        if found is None or not any(is_extended(v.aval) for v in (*eqn.invars, *eqn.outvars)):
            return None
        context = Context([v.aval for v in eqn.invars], [v.aval for v in eqn.outvars])
        return lambda *args: found(context, *args, **eqn.params)
