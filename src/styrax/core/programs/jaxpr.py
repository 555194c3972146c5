"""Jaxprs: programs as data. Typed, immutable by convention, with effects and source locations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, ForwardRef

import numpy as np

from .. import hooks
from ..tracing import source
from ..tracing.trace import get_aval, state
from ..types import avals
from ..types.avals import AbstractValue, typed_scalar
from ..types.effects import Effects, RefEffect, no_effects
from ..types.typing import PyTree
from .equation_mesh import in_its_mesh

if TYPE_CHECKING:
    from .primitive import Primitive
else:  # which stands above this module
    Primitive = ForwardRef("Primitive", module="styrax.core.programs.primitive")


class Var:
    """A variable; identity is its name."""

    __slots__ = ("aval", "__weakref__")

    def __init__(self, aval: AbstractValue):
        self.aval = aval

    def __repr__(self) -> str:
        return f"Var(id={id(self)}):{self.aval.str_short(short_dtypes=False)}"


class DropVar(Var):
    """A result that nothing uses; prints as `_`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "_"


class Literal:
    """A scalar constant inside an equation."""

    __slots__ = ("val", "aval")

    def __init__(self, val: Any, aval: AbstractValue | None = None):
        self.val = val
        self.aval: Any = get_aval(val) if aval is None else aval

    @property
    def value(self) -> Any:
        """What stands for the constant when the program is evaluated: weakly typed ones stay so."""
        val = self.val
        if isinstance(val, np.generic) and self.aval.weak_type and val.dtype.kind in "iufc":
            return typed_scalar(val, self.aval.dtype)
        return val

    def __repr__(self) -> str:
        val = self.val
        # Whole and complex numbers that are weakly typed tell their dtype, real ones do not.
        if self.aval.weak_type and isinstance(val, (int, np.integer, complex, np.complexfloating)):
            return f"Literal({typed_scalar(val, self.aval.dtype)!r})"
        return f"Literal({val})"


Atom = Var | Literal


class DebugInfo:
    """Who was traced, for messages: the function's name and place, its arguments' and results' paths."""

    __slots__ = ("traced_for", "func_src_info", "arg_names", "result_paths")

    def __init__(
        self,
        traced_for: str = "",
        func_src_info: str = "<unknown>",
        arg_names: Sequence[str] = (),
        result_paths: Sequence[str] = (),
    ):
        self.traced_for = traced_for
        self.func_src_info = func_src_info
        self.arg_names = tuple(arg_names)
        self.result_paths = tuple(result_paths)

    @property
    def func_name(self) -> str:
        return self.func_src_info.split(" ")[0]

    def replace(self, **changes: Any) -> DebugInfo:
        return DebugInfo(*(changes.get(name, getattr(self, name)) for name in DebugInfo.__slots__))


no_debug_info = DebugInfo()


class JaxprEqn:
    """One application of a primitive: `outvars = primitive[params] invars`."""

    __slots__ = ("invars", "outvars", "primitive", "params", "effects", "source_info", "ctx")

    def __init__(
        self,
        invars: Sequence[Any],
        outvars: Sequence[Var],
        primitive: Primitive,
        params: dict[str, Any],
        effects: Effects = no_effects,
        source_info: Any = None,
        ctx: Any = None,
    ):
        self.invars = list(invars)
        self.outvars = list(outvars)
        self.primitive = primitive
        self.params = params
        self.effects = effects
        self.source_info = source_info
        self.ctx = ctx

    def replace(self, **changes: Any) -> JaxprEqn:
        return JaxprEqn(*(changes.get(name, getattr(self, name)) for name in self.__slots__))

    def __repr__(self) -> str:
        return hooks.equation_text(self)


def new_jaxpr_eqn(
    invars: Sequence[Any],
    outvars: Sequence[Var],
    primitive: Primitive,
    params: dict[str, Any],
    effects: Effects = no_effects,
    source_info: source.SourceInfo | None = None,
    ctx: PyTree = None,
) -> JaxprEqn:
    """An equation; `ctx` is what its primitive is bound under."""
    return JaxprEqn(invars, outvars, primitive, params, effects, source_info, ctx)


class Jaxpr:
    """A program with open constants: `lambda constvars; invars. let eqns in outvars`."""

    __slots__ = (
        "constvars", "invars", "outvars", "eqns", "effects", "debug_info", "cache", "__weakref__",
    )

    def __init__(
        self,
        constvars: Sequence[Var],
        invars: Sequence[Var],
        outvars: Sequence[Any],
        eqns: Sequence[JaxprEqn],
        effects: Effects | None = None,
        debug_info: DebugInfo | None = None,
        is_high: bool = False,
    ):
        self.constvars = list(constvars)
        self.invars = list(invars)
        self.outvars = list(outvars)
        self.eqns = list(eqns)
        self.effects = (
            join_effects(self.constvars + self.invars, self.eqns) if effects is None else frozenset(effects)
        )
        self.debug_info = debug_info or no_debug_info
        self.cache: dict[Any, Any] = {}  # results of analyses and transformations of this very program
        if is_high:
            self.cache["is_high"] = True

    def replace(self, **changes: Any) -> Jaxpr:  # (`is_high` follows from the rest)
        names = ("constvars", "invars", "outvars", "eqns", "effects", "debug_info")
        return Jaxpr(*[changes.get(name, getattr(self, name)) for name in names])

    @property
    def is_high(self) -> bool:
        """Whether values of a program are no arrays but consist of some, or primitives in it stand for others."""
        found = self.cache.get("is_high")
        if found is None:
            found = self.cache["is_high"] = any(
                v.aval.is_high for v in (*self.constvars, *self.invars, *self.outvars)) or any(
                e.primitive.composed or any(v.aval.is_high for v in e.outvars) or any(
                    inner.is_high for inner in jaxprs_in_params(e.params)) for e in self.eqns)
        return found

    @property
    def in_avals(self) -> list[Any]:
        return [v.aval for v in self.invars]

    @property
    def out_avals(self) -> list[Any]:
        return [v.aval for v in self.outvars]

    def pretty_print(self, **settings: Any) -> str:
        return hooks.program_text(self, **settings)

    def to_text(self) -> str:
        return hooks.serialized(self)

    def __str__(self) -> str:
        return self.pretty_print()

    __repr__ = __str__


class ClosedJaxpr:
    """A program with its constants."""

    __slots__ = ("jaxpr", "_consts", "__weakref__")

    def __init__(self, jaxpr: Jaxpr, consts: Sequence[Any] = ()):
        assert len(consts) == len(jaxpr.constvars), (len(consts), len(jaxpr.constvars))
        self.jaxpr = jaxpr
        self._consts = list(consts)

    @property
    def consts(self) -> list[Any]:
        return self._consts

    literals = consts

    @property
    def constvars(self) -> list[Var]:
        return self.jaxpr.constvars

    @property
    def invars(self) -> list[Var]:
        return self.jaxpr.invars

    @property
    def outvars(self) -> list[Any]:  # variables and literals
        return self.jaxpr.outvars

    @property
    def in_avals(self) -> list[Any]:
        return [v.aval for v in self.jaxpr.invars]

    @property
    def out_avals(self) -> list[Any]:
        return [v.aval for v in self.jaxpr.outvars]

    @property
    def eqns(self) -> list[JaxprEqn]:
        return self.jaxpr.eqns

    @property
    def effects(self) -> Effects:
        return self.jaxpr.effects

    @property
    def debug_info(self) -> DebugInfo:
        return self.jaxpr.debug_info

    @property
    def is_high(self) -> bool:
        return self.jaxpr.is_high

    def replace(self, *, jaxpr: Jaxpr | None = None, consts: Sequence[Any] | None = None) -> ClosedJaxpr:
        return ClosedJaxpr(
            self.jaxpr if jaxpr is None else jaxpr, self._consts if consts is None else consts
        )

    def map_jaxpr(self, f: Callable[[Jaxpr], Jaxpr]) -> ClosedJaxpr:
        return ClosedJaxpr(f(self.jaxpr), self._consts)

    def pretty_print(self, **settings: Any) -> str:
        return hooks.program_text(self.jaxpr, **settings)

    def to_text(self) -> str:
        return hooks.serialized(self)

    def __str__(self) -> str:
        return str(self.jaxpr)

    __repr__ = __str__


def join_effects(invars: Sequence[Var], eqns: Iterable[JaxprEqn]) -> Effects:
    """The effects of equations as their jaxpr's own: reference effects renumbered to its inputs."""
    joined: set[Any] = set()
    index: dict[Var, int] | None = None
    for eqn in eqns:
        for effect in eqn.effects:
            if isinstance(effect, RefEffect):
                if index is None:
                    index = {v: i for i, v in enumerate(invars)}
                ref = eqn.invars[effect.input_index]
                if ref in index:  # references made inside the program are its own affair
                    joined.add(effect.replace(index[ref]))
            else:
                joined.add(effect)
    return frozenset(joined)


def call_effects(closed: ClosedJaxpr) -> Effects:
    """The effects of calling a program, with references numbered by argument."""
    offset = len(closed.jaxpr.constvars)
    effects = closed.effects
    if not offset or not any(isinstance(e, RefEffect) for e in effects):
        return effects
    return frozenset(
        e.replace(e.input_index - offset) if isinstance(e, RefEffect) else e
        for e in effects if getattr(e, "input_index", offset) >= offset)


def jaxprs_in_params(params: dict[str, Any]) -> Iterator[Jaxpr]:
    """The programs that stand in an equation's parameters."""
    for value in params.values():
        for item in value if isinstance(value, (tuple, list)) else (value,):
            if isinstance(item, Jaxpr):
                yield item
            elif isinstance(item, ClosedJaxpr):
                yield item.jaxpr


def subjaxprs(jaxpr: Jaxpr) -> Iterator[Jaxpr]:
    """The programs directly inside a program."""
    for eqn in jaxpr.eqns:
        yield from jaxprs_in_params(eqn.params)


def eval_jaxpr(jaxpr: Jaxpr, consts: Sequence[Any], *args: PyTree, propagate_source_info: bool = True) -> list[Any]:
    """Runs a program equation by equation in the current trace."""
    env: dict[Var, Any] = {}
    env.update(zip(jaxpr.constvars, consts, strict=True))
    env.update(zip(jaxpr.invars, args, strict=True))
    last = last_used(jaxpr)
    inherited = source.inherited
    outer = inherited.info
    scopes = source.scopes
    around = scopes.stack
    propagate = propagate_source_info and not state.trace.is_eval
    try:
        for eqn in jaxpr.eqns:
            if propagate:
                info = eqn.source_info
                inherited.info = info or outer
                scopes.stack = around if info is None else around + info.name_stack
            ins = [v.value if type(v) is Literal else env[v] for v in eqn.invars]
            params = eqn.primitive.get_bind_params(eqn.params)
            if (eqn.ctx is None or not propagate) and not avals.explicit:
                out = eqn.primitive.bind(*ins, **params)
            else:
                with in_its_mesh(eqn), nullcontext() if eqn.ctx is None or not propagate else eqn.ctx.manager():
                    out = eqn.primitive.bind(*ins, **params)
            if eqn.primitive.multiple_results:
                env.update(zip(eqn.outvars, out, strict=True))
            else:
                env[eqn.outvars[0]] = out
            for v in last.get(eqn, ()):
                env.pop(v, None)
    finally:
        inherited.info = outer
        scopes.stack = around
    return [v.value if type(v) is Literal else env[v] for v in jaxpr.outvars]


def last_used(jaxpr: Jaxpr) -> dict[JaxprEqn, list[Var]]:
    """Which variables each equation is the last to read, so that memory can go early."""
    cached = jaxpr.cache.get("last_used")
    if cached is not None:
        return cached
    seen = {v for v in jaxpr.outvars if type(v) is not Literal}
    last: dict[JaxprEqn, list[Var]] = {}
    for eqn in reversed(jaxpr.eqns):
        dying = []
        for v in eqn.invars:
            if type(v) is not Literal and v not in seen:
                seen.add(v)
                dying.append(v)
        for v in eqn.outvars:
            if v not in seen:
                dying.append(v)
        if dying:
            last[eqn] = dying
    jaxpr.cache["last_used"] = last
    return last


def jaxpr_as_fun(closed_jaxpr: ClosedJaxpr) -> Callable[..., list[Any]]:
    """A program as a function of its inputs, one after another; it gives the list of the results."""
    return lambda *args: eval_jaxpr(closed_jaxpr.jaxpr, closed_jaxpr.consts, *args)


def close_jaxpr(jaxpr: Jaxpr) -> ClosedJaxpr:
    """A program without constants as a closed one; the same object for the same program."""
    closed = jaxpr.cache.get("closed")
    if closed is None:
        closed = jaxpr.cache["closed"] = ClosedJaxpr(jaxpr, ())
    return closed
