"""Programs on symbolic sizes with other sizes put in: the program for the shapes of a call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..core.programs.jaxpr import Atom, ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from ..core.types.avals import AbstractRef, ShapedArray
from ..lax.shaping.sizes import size_value_p
from ..transforms.custom_calls import custom_jvp_call_p, custom_vjp_call_p
from .meshes import without_devices
from .symbolic import Size, SymbolicDim, evaluate

_RULED = (custom_jvp_call_p, custom_vjp_call_p)


def refine(closed: ClosedJaxpr, values: Mapping[str, Size]) -> ClosedJaxpr:
    """The program with values for the dimension variables: in types, in parameters, and where sizes are numbers.

    Functions with derivatives of their own become what they compute: the rules, which are Python functions, are gone.
    """
    return _Refinement(values).closed(closed)


class _Refinement:
    def __init__(self, values: Mapping[str, Size]):
        self.values = values
        self.known: dict[int, Jaxpr] = {}

    def closed(self, closed: ClosedJaxpr) -> ClosedJaxpr:
        return ClosedJaxpr(self.jaxpr(closed.jaxpr), closed.consts)

    def jaxpr(self, jaxpr: Jaxpr) -> Jaxpr:
        found = self.known.get(id(jaxpr))
        if found is None:
            constvars, invars = ([Var(self.aval(v.aval)) for v in vs] for vs in (jaxpr.constvars, jaxpr.invars))
            eqns: list[JaxprEqn] = []
            outvars = self.write(jaxpr, [*constvars, *invars], eqns, constvars)
            found = self.known[id(jaxpr)] = Jaxpr(constvars, invars, outvars, eqns, jaxpr.effects, jaxpr.debug_info)
        return found

    def write(self, jaxpr: Jaxpr, args: Sequence[Atom], eqns: list[JaxprEqn], constvars: list[Var]) -> list[Atom]:
        env: dict[Any, Atom] = dict(zip((*jaxpr.constvars, *jaxpr.invars), args, strict=True))
        read = lambda v: Literal(v.val, self.aval(v.aval)) if isinstance(v, Literal) else env[v]
        for eqn in jaxpr.eqns:
            ins = [read(v) for v in eqn.invars]
            if eqn.primitive in _RULED and not eqn.params["call_jaxpr"].consts:
                env.update(zip(eqn.outvars, self.write(eqn.params["call_jaxpr"].jaxpr, ins, eqns, constvars)))
                continue
            params = {name: self.value(x) for name, x in eqn.params.items()}
            if eqn.primitive is size_value_p and not isinstance(params["size"], SymbolicDim):
                aval = eqn.outvars[0].aval
                env[eqn.outvars[0]] = Literal(np.asarray(params["size"], params["dtype"])[()], aval)
                continue
            outs = [type(v)(self.aval(v.aval)) for v in eqn.outvars]
            env.update(zip(eqn.outvars, outs))
            eqns.append(eqn.replace(invars=ins, outvars=outs, params=params))
        return [read(v) for v in jaxpr.outvars]

    def size(self, d: Size) -> Size:
        return evaluate(d, self.values) if isinstance(d, SymbolicDim) else d

    def aval(self, aval: Any) -> Any:
        if isinstance(aval, ShapedArray) and any(type(d) is not int for d in aval.shape):
            return aval.update(shape=tuple(map(self.size, aval.shape)))
        if isinstance(aval, AbstractRef):
            return AbstractRef(self.aval(aval.inner_aval), aval.memory_space, aval.kind)
        return aval

    def value(self, x: Any) -> Any:
        """A parameter with the values put in, wherever sizes stand in it."""
        if isinstance(x, SymbolicDim):
            return self.size(x)
        if isinstance(x, ClosedJaxpr):
            return self.closed(x)
        if isinstance(x, Jaxpr):
            return self.jaxpr(x)
        if isinstance(x, tuple):
            parts = [self.value(v) for v in x]
            if all(a is b for a, b in zip(parts, x)):
                return x
            return type(x)(*parts) if hasattr(x, "_fields") else tuple(parts)
        if type(x) is list:
            return [self.value(v) for v in x]
        if type(x) is dict:
            return {k: self.value(v) for k, v in x.items()}
        return self.aval(without_devices(x))
