"""Effects: what a program does besides computing its results.

A jaxpr carries the set of its equations' effects. Dead-code elimination keeps effectful equations,
ordered effects keep their program order, reference effects say which input is read or written.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable


class Effect:
    """Base of all effects; subclasses are hashable values."""

    __slots__ = ()


class EffectTypeSet:
    """A set of effect classes, open to registration by libraries."""

    def __init__(self) -> None:
        self._types: set[type[Effect]] = set()

    def add_type(self, effect_type: type[Effect]) -> None:
        self._types.add(effect_type)

    def contains(self, effect: Effect) -> bool:
        return isinstance(effect, tuple(self._types))

    def filter_in(self, effects: Iterable[Effect]) -> list[Effect]:
        return [e for e in effects if self.contains(e)]

    def filter_not_in(self, effects: Iterable[Effect]) -> list[Effect]:
        return [e for e in effects if not self.contains(e)]


class RefEffect(Effect):
    """An effect on the reference that is input number `input_index` of a jaxpr or equation."""

    __slots__ = ("input_index",)
    name = "Ref"

    def __init__(self, input_index: int):
        self.input_index = input_index

    def replace(self, input_index: int) -> RefEffect:
        return type(self)(input_index)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.input_index == other.input_index  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash((type(self), self.input_index))

    def __repr__(self) -> str:
        return f"{self.name}<{self.input_index}>"


class ReadEffect(RefEffect):
    __slots__ = ()
    name = "Read"


class WriteEffect(RefEffect):
    __slots__ = ()
    name = "Write"


class AccumEffect(RefEffect):
    __slots__ = ()
    name = "Accum"


class NamedAxisEffect(Effect):
    """The program names a mapped axis (a collective stands in it)."""

    __slots__ = ("name",)

    def __init__(self, name: Hashable):
        self.name = name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NamedAxisEffect) and self.name == other.name

    def __hash__(self) -> int:
        return hash((NamedAxisEffect, self.name))

    def __repr__(self) -> str:
        return f"NamedAxis({self.name})"


Effects = frozenset[Effect]
no_effects: Effects = frozenset()

ordered_effects = EffectTypeSet()
lowerable_effects = EffectTypeSet()
control_flow_allowed_effects = EffectTypeSet()
custom_derivatives_allowed_effects = EffectTypeSet()
remat_allowed_effects = EffectTypeSet()
counted_effects = EffectTypeSet()  # they happen exactly as often as the program says
per_device_effects = EffectTypeSet()  # each device has them, whatever its values depend on

for _set in (control_flow_allowed_effects, custom_derivatives_allowed_effects, remat_allowed_effects):
    _set.add_type(RefEffect)
    _set.add_type(NamedAxisEffect)
