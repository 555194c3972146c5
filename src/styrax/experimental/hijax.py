"""Primitives that are defined by what they do with other primitives, and types of one's own.

`HiPrimitive` works on arrays: eagerly, in programs (where it is one equation, expanded when the program is
compiled) and under differentiation, by the methods that a subclass gives. Values of types registered with
`register_hitype` have their abstract values; functions that take them eagerly work, and programs are not traced
over them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Protocol

from ..core.programs import rules
from ..core.programs.primitive import Primitive
from ..core.tracing.staging import trace_to_jaxpr
from ..core.types.avals import (
    AbstractRef,
    AbstractValue,
    MappingSpec,
    ShapedArray,
    aval_method,
    aval_property,
    aval_rules,
)
from ..core.types.effects import control_flow_allowed_effects
from ..transforms.ad import Zero, instantiate_zeros, is_undefined_primal
from .vjp_primitives import VJPHiPrimitive


class HiType(AbstractValue):
    """The type of immutable values of a class of one's own."""

    __slots__ = ()
    is_high = True


class MutableHiType(AbstractValue):
    """The type of mutable values of a class of one's own."""

    __slots__ = ()
    is_high = True
    has_qdd = True


class AvalQDD:
    """A type together with the part of it that can change as a program runs."""

    __slots__ = ("aval", "qdd")

    def __init__(self, aval: AbstractValue, qdd: Any):
        self.aval = aval
        self.qdd = qdd


class AvalMutableQDD:
    """A type together with a mutable place for the part of it that can change."""

    __slots__ = ("aval", "mutable_qdd")

    def __init__(self, aval: AbstractValue, mutable_qdd: Any):
        self.aval = aval
        self.mutable_qdd = mutable_qdd


class Changing(Protocol):
    """A value whose type has a part that changes."""

    def cur_qdd(self) -> Hashable: ...


def cur_qdd(x: Changing) -> Hashable:
    """The part of a value's type that can change, as it is now: the value's own answer.

    Raises AttributeError for values that have none.
    """
    return x.cur_qdd()


def register_hitype(val_cls: type, typeof_fn: Callable[[Any], AbstractValue]) -> None:
    """Makes values of a class known, by a function that gives their type."""
    aval_rules[val_cls] = typeof_fn


class HiPrimitive(Primitive):
    """A primitive by methods: `abstract_eval(*avals, **params) -> (avals, effects)`, `to_lojax(*args, **params)`, and
    for derivatives `jvp(primals, tangents, **params)` and `transpose(cts, *args, **params)`.
    """

    composed = True

    def __init__(self, name: str):
        method = self.abstract_eval
        super().__init__(name, multiple_results=type(self).multiple_results)
        self.abstract_eval = method  # type: ignore[method-assign]
        self.impl = self.to_lojax  # type: ignore[method-assign]
        rules.expansions[self] = self.to_lojax
        rules.loops[self] = rules.stablehlos[self] = self._lower
        rules.jvps[self] = self.jvp
        rules.transposes[self] = self.transpose

    def abstract_eval(self, *arg_avals: Any, **params: Any) -> Any:  # type: ignore[override]
        raise NotImplementedError(f"{type(self).__name__} must define abstract_eval")

    def to_lojax(self, *args: Any, **params: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} must define to_lojax")

    def jvp(self, primals: Any, tangents: Any, **params: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} must define jvp to be differentiated")

    def transpose(self, *args: Any, **params: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} must define transpose to be differentiated in reverse mode")

    def is_high(self, *avals: Any, **params: Any) -> bool:
        return True

    def _lower(self, ctx: Any, *args: Any, **params: Any) -> Any:
        def flat(*xs: Any) -> list[Any]:
            out = self.to_lojax(*xs, **params)
            return list(out) if self.multiple_results else [out]

        outs = ctx.inline(trace_to_jaxpr(flat, ctx.avals_in), *args)
        return outs if self.multiple_results else outs[0]


__all__ = [
    "AbstractRef", "AbstractValue", "AvalMutableQDD", "AvalQDD", "HiPrimitive", "HiType", "MappingSpec",
    "MutableHiType", "ShapedArray", "VJPHiPrimitive", "Zero", "aval_method", "aval_property",
    "control_flow_allowed_effects", "cur_qdd", "instantiate_zeros", "is_undefined_primal", "register_hitype",
]
