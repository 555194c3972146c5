"""Primitives that are defined by what they do with other primitives, and types of one's own.

`HiPrimitive` works eagerly, in programs (where it is one equation, expanded when the program is compiled) and under
differentiation, by the methods that a subclass gives. Values of immutable types registered with `register_hitype` are
arguments, results, carries and residuals of programs, which are compiled on the arrays that the values consist of
(`transforms.high_types`). Functions that take values of mutable types work eagerly.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Protocol

from ..core.arrays import array  # noqa: F401  # gives tracers their methods, among which those of types stand
from ..core.programs import rules
from ..core.programs.primitive import Primitive
from ..core.tracing.staging import trace_to_jaxpr
from ..core.tracing.trace import add_attributes_of_types
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


def _to_define(name: str) -> Callable[..., Any]:
    def method(self: AbstractValue, *_: Any, **__: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} must define `{name}` for what is done with its values")

    return method


class _HighType(AbstractValue):
    """The types of values of classes of one's own: what they say about traced values holds for tracers."""

    __slots__ = ()
    is_high = True

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        add_attributes_of_types(
            name for name, value in vars(cls).items() if isinstance(value, (aval_method, aval_property)))


class HiType(_HighType):
    """The type of immutable values of a class of one's own, equal to and hashed like types of equal values.

    A subclass defines, as far as its values are used so:

    - in programs: `lo_ty()`, the types of the arrays that a value consists of, `lower_val(value)`, these arrays, and
      `raise_val(*arrays)`, the value
    - under differentiation: `to_tangent_aval()`, `vspace_zero()` and `vspace_add(x, y)`, and `to_ct_aval()` where
      cotangents have another type than tangents
    - under `vmap` and in what `scan` goes over: `dec_rank(size, spec)`, the type of one example where `spec`, a
      `MappingSpec`, stands for its axes, `inc_rank(size, spec)`, the inverse, and `leading_axis_spec()`
    - in references, with indices: `ref_get_abstract_eval(ref, *idx, tree)`, `ref_get_to_lojax(ref, idx)`, and the same
      for `swap`
    """

    __slots__ = ()
    lo_ty, lower_val, raise_val = map(_to_define, ("lo_ty", "lower_val", "raise_val"))
    to_tangent_aval, vspace_zero, vspace_add = map(_to_define, ("to_tangent_aval", "vspace_zero", "vspace_add"))
    dec_rank, inc_rank, leading_axis_spec = map(_to_define, ("dec_rank", "inc_rank", "leading_axis_spec"))


class MutableHiType(_HighType):
    """The type of mutable values of a class of one's own."""

    __slots__ = ()
    has_qdd = True
    lo_ty, lower_val, raise_val = map(_to_define, ("lo_ty", "lower_val", "raise_val"))


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
