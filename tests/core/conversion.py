"""JAX's jaxprs as ours: the same equations and parameters, for tests of what is done with programs."""

from __future__ import annotations

import re
from contextlib import suppress

import jax
import numpy as np

import styrax.lax  # noqa: F401  (makes the primitives known)
from styrax.core.programs.jaxpr import ClosedJaxpr, DebugInfo, DropVar, Jaxpr, JaxprEqn, Literal, Var
from styrax.core.programs.primitive import Primitive
from styrax.core.programs.serial import known_primitive
from styrax.core.programs.text import eqn_rules
from styrax.core.types import dtypes
from styrax.core.types.avals import AbstractRef, AbstractToken, ShapedArray

jax_core = jax._src.core
primitives: dict[str, Primitive] = {}


class Key(dtypes.ExtendedDType):
    """Stands for the dtype of typed PRNG keys."""

    itemsize = 8
    type = dtypes.prng_key

    def __init__(self, name):
        self._name = name

    @property
    def name(self):
        return self._name


def _aval(aval):
    if isinstance(aval, jax_core.ShapedArray):
        is_key = jax.dtypes.issubdtype(aval.dtype, jax.dtypes.extended)
        dtype = Key(str(aval.dtype)) if is_key else aval.dtype
        return ShapedArray(aval.shape, dtype, aval.weak_type)
    if isinstance(aval, jax_core.AbstractToken):
        return AbstractToken()
    return AbstractRef(_aval(aval.inner_aval))


class _Named:
    def __init__(self, name):
        self.__name__ = name


class Converter:
    def __init__(self):
        self.variables = {}
        self.programs = {}

    def atom(self, v):
        if isinstance(v, jax_core.Literal):
            value = v.val if type(v.val) in (bool, int, float, complex) else np.asarray(v.val)[()]
            return Literal(value, _aval(v.aval))
        if v not in self.variables:
            cls = DropVar if isinstance(v, jax_core.DropVar) else Var
            self.variables[v] = cls(_aval(v.aval))
        return self.variables[v]

    def closed(self, closed):
        return ClosedJaxpr(self.jaxpr(closed.jaxpr), [np.asarray(c) for c in closed.consts])

    def jaxpr(self, jaxpr):
        if jaxpr not in self.programs:
            info = jaxpr.debug_info
            self.programs[jaxpr] = Jaxpr(
                [self.atom(v) for v in jaxpr.constvars],
                [self.atom(v) for v in jaxpr.invars],
                [self.atom(v) for v in jaxpr.outvars],
                [self.eqn(e) for e in jaxpr.eqns],
                frozenset(),
                DebugInfo(info.traced_for, info.func_src_info),
            )
        return self.programs[jaxpr]

    def value(self, value):
        if isinstance(value, jax_core.ClosedJaxpr):
            return self.closed(value)
        if isinstance(value, jax_core.Jaxpr):
            return self.jaxpr(value)
        if type(value) is tuple:
            return tuple(map(self.value, value))
        if type(value).__name__ == "UnspecifiedValue":
            return UnspecifiedValue()
        return value

    def eqn(self, eqn):
        params = {k: self.value(v) for k, v in eqn.params.items()}
        for field, param in (("jvp", "jvp_jaxpr_fun"), ("fwd", "fwd_jaxpr_thunk"), ("bwd", "bwd")):
            if param in params and eqn.primitive.name.startswith("custom_"):
                params[param] = _Named(re.search(rf"\b{field}=(\S+)", str(eqn))[1])
        name = eqn.primitive.name
        primitive = primitives.get(name)
        if primitive is None:
            primitive = primitives[name] = Primitive(name, multiple_results=eqn.primitive.multiple_results)
            with suppress(KeyError):  # what is printed of it
                own = known_primitive(name)
                primitive.traits = own.traits
                eqn_rules[primitive] = eqn_rules[own]
        return JaxprEqn(
            [self.atom(v) for v in eqn.invars], [self.atom(v) for v in eqn.outvars], primitive, params
        )


class UnspecifiedValue:
    def __repr__(self):
        return "UnspecifiedValue"


def convert(closed) -> ClosedJaxpr:
    """Our program equal to JAX's ``closed``."""
    return Converter().closed(closed)
