"""Inlining: equations that are nothing but a call of a program become that program's equations.

    { lambda ; a:f32[]. let                    { lambda ; a:f32[]. let
        b:f32[] = jit[jaxpr={ … sin … }] a  →      b:f32[] = sin a
      in (b,) }                                  in (b,) }

What only transformations tell from its operand, as they do `stop_gradient` and names for `checkpoint`, becomes that.
A `checkpoint` that computes again on purpose stays a call, so that later passes keep what is inside apart.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...core.programs import rules
from ...core.programs.jaxpr import Atom, ClosedJaxpr, JaxprEqn
from .rewriting import Rewriting, called, is_pure, kept_apart, map_programs


def inline(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program without calls, those in loops and branches included."""
    return _Inlining().run(closed)


class _Inlining(Rewriting):
    def equation(self, eqn: JaxprEqn, ins: Sequence[Atom]) -> Sequence[Atom]:
        if _is_identity(eqn):
            return ins
        program = called(eqn)
        if program is not None and not kept_apart(eqn):
            return self.copy(program, ins)
        return self.add(map_programs(eqn, inline), ins)


def _is_identity(eqn: JaxprEqn) -> bool:
    """Whether the result is lowered to the operand, and has its type."""
    return (rules.loops.get(eqn.primitive) is rules.same_value and is_pure(eqn)
            and eqn.invars[0].aval == eqn.outvars[0].aval)
