"""What one element of an elementwise equation costs, read off its lowering."""

from __future__ import annotations

from typing import Any

from ...core.programs import rules
from ...core.programs.jaxpr import JaxprEqn
from ..costs import WORTH_KEEPING
from ..ir.values import Value
from .builder import Builder
from .lower import physical_dtype


class ElementCosts:
    """What elements of the equations of one program cost."""

    def __init__(self) -> None:
        self.b = Builder()

    def cost(self, eqn: JaxprEqn) -> int:
        """Estimated instructions of computing an elementwise equation's results, an element of each."""
        rule = rules.loops.get(eqn.primitive)
        if rule is None:
            return WORTH_KEEPING
        b, before = self.b, len(self.b.ops)
        b.avals_in, b.avals_out = [v.aval for v in eqn.invars], [v.aval for v in eqn.outvars]
        outs = rule(b, *[_operand(b, a) for a in b.avals_in], **eqn.params)
        values = outs if eqn.primitive.multiple_results else [outs]
        found = max(v.at(b.loop_vars(v.shape)).cost for v in values)
        return found if len(b.ops) == before else max(found, WORTH_KEEPING)


def _operand(b: Builder, aval: Any) -> Value:
    """An operand whose elements are at hand."""
    element = b.mutable(physical_dtype(aval))
    return b.value(aval.shape, physical_dtype(aval), lambda _: element)
