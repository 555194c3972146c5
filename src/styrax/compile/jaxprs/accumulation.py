"""Accumulation: where an array is added to one that is zero but for a part, the part is added where it belongs.

    z:f32[9] = broadcast_in_dim 0.0                 e:f32[2] = dynamic_slice[slice_sizes=(2,)] x i
    u:f32[9] = dynamic_update_slice z p i      →    q:f32[2] = add e p
    y:f32[9] = add_any x u                          y:f32[9] = dynamic_update_slice x q i

Derivatives of what reads a part of an array are such. In a loop that reads another part in each turn, all of the array
would be walked in each; the part alone is updated where it lies.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.programs.jaxpr import Atom, ClosedJaxpr, Jaxpr, JaxprEqn, Literal
from ...core.tracing.staging import trace_to_jaxpr
from ...core.types import dtypes
from .rewriting import Rewriting, called, is_pure, map_programs, programs_of


def add_in_place(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program with parts added where they belong; what made arrays of them is left to dead-code elimination."""
    return _Accumulating().run(closed) if _writes_parts(closed) else closed


def _writes_parts(closed: ClosedJaxpr) -> bool:
    """Whether there may be something to do: most programs are not to be written anew for nothing."""
    return any(eqn.primitive.traits.added is not None or any(map(_writes_parts, programs_of(eqn)))
               or (inner := called(eqn)) is not None and _writes_parts(inner) for eqn in closed.jaxpr.eqns)


class _Accumulating(Rewriting):
    def __init__(self) -> None:
        super().__init__()
        self.zeros: set[Atom] = set()
        self.parts: dict[Atom, tuple[JaxprEqn, Sequence[Atom]]] = {}  # what is zero but for what was written into it
        self.reads: Counter[Atom] = Counter()

    def write(self, jaxpr: Jaxpr, args: Sequence[Atom]) -> list[Atom]:
        before, self.reads = self.reads, Counter(
            v for vs in (*(eqn.invars for eqn in jaxpr.eqns), jaxpr.outvars) for v in vs if type(v) is not Literal)
        outs = super().write(jaxpr, args)
        self.reads = before
        return outs

    def equation(self, eqn: JaxprEqn, ins: Sequence[Atom]) -> Sequence[Atom]:
        traits = eqn.primitive.traits
        if traits.addition and is_pure(eqn):
            for part, total in (ins[::-1], ins):
                if part in self.parts and type(total) is not Literal:
                    outs = self._added(total, *self.parts[part])
                    if outs:
                        return outs
        outs = self.add(map_programs(eqn, add_in_place), ins)
        if traits.movement and ins and all(map(self._is_zero, ins)):
            self.zeros.update(outs)
        elif traits.added is not None and is_pure(eqn) and self._is_zero(ins[0]) and self.reads[eqn.outvars[0]] == 1:
            self.parts[outs[0]] = eqn, ins
        return outs

    def _is_zero(self, v: Atom) -> bool:
        if type(v) is not Literal:
            return v in self.zeros
        return dtypes.issubdtype(v.aval.dtype, np.number) and bool(v.val == 0)  # type: ignore[attr-defined]

    def _added(self, total: Atom, made: JaxprEqn, operands: Sequence[Atom]) -> Sequence[Atom]:
        """What gives the sum of a total and what an equation would have made of zeros, if that is the same number."""
        added = made.primitive.traits.added
        assert added is not None

        def found(*xs: Any) -> list[Any]:
            out = added(*xs, **made.params)
            return [] if out is None else [out]

        return self.copy(trace_to_jaxpr(found, [v.aval for v in (total, *operands)]), [total, *operands])
