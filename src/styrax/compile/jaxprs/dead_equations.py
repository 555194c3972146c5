"""Dead-code elimination: equations and carries that no result needs.

    b:f32[] = sin a             c:f32[] = cos a
    c:f32[] = cos a        →    in (c,)
    in (c,)

The same elimination that the transformations use: the rules of `core.programs.dead_code`.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...core.programs.dead_code import dce_jaxpr
from ...core.programs.jaxpr import Atom, ClosedJaxpr, JaxprEqn, no_debug_info
from .rewriting import Rewriting, map_programs


def drop_unused(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program without what its results do not need. Arguments stay, needed or not."""
    closed = _Inside().run(closed)
    info = closed.jaxpr.debug_info
    nameless = closed.jaxpr.replace(debug_info=no_debug_info)  # names of arguments cost something to work out
    jaxpr, _ = dce_jaxpr(nameless, [True] * len(nameless.outvars), True)
    same = len(jaxpr.eqns) == len(closed.eqns) and all(x is y for x, y in zip(jaxpr.eqns, closed.eqns, strict=True))
    return closed if same else ClosedJaxpr(jaxpr.replace(debug_info=info), closed.consts)


class _Inside(Rewriting):
    """Drops what is not used in loops and branches."""

    def equation(self, eqn: JaxprEqn, ins: Sequence[Atom]) -> Sequence[Atom]:
        return self.add(map_programs(eqn, drop_unused), ins)
