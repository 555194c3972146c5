"""Basic induction variables: integers that every turn of a loop adds the same to are known by the number of the turn.

What reads and writes by them knows its place then: no index is asked whether it is negative or outside, where they are
not. (A. Aho, M. Lam, R. Sethi and J. Ullman, Compilers: principles, techniques, and tools, 2006, section 9.1.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...core.programs.jaxpr import ClosedJaxpr, Literal
from ..ir.expr import Index, const_value
from ..ir.values import Scalar, Value

if TYPE_CHECKING:
    from .builder import Builder


class Variable(NamedTuple):
    """A carried integer, by the number of a turn."""

    first: int
    step: int
    dtype: np.dtype

    def at(self, b: Builder, turn: Index) -> Value:
        return Scalar(b.cast(b.index(b.iadd(b.imul(turn, self.step), self.first)), self.dtype))


def variables(closed: ClosedJaxpr, consts: int, initial: Sequence[Value], length: Index) -> dict[int, Variable]:
    """Those of a loop of known length, by the number of the carry, that do not wrap around."""
    jaxpr, found = closed.jaxpr, {}
    additions = {eqn.outvars[0]: eqn.invars for eqn in jaxpr.eqns if eqn.primitive.traits.addition}
    for k, value in enumerate(initial):
        old, new, dtype = jaxpr.invars[consts + k], jaxpr.outvars[k], value.dtype
        operands = [] if type(new) is Literal else additions.get(new, [])
        step = next((v.val for v in operands if type(v) is Literal), None)
        if not isinstance(length, int) or step is None or old not in operands or value.shape != ():
            continue
        first = value.at(())
        if not isinstance(dtype, np.dtype) or dtype.kind not in "iu" or first.op != "const":
            continue
        variable = Variable(int(const_value(first)), int(step), dtype)
        ends = variable.first, variable.first + variable.step * length
        if np.iinfo(dtype).min <= min(ends) and max(ends) <= np.iinfo(dtype).max:
            found[k] = variable
    return found
