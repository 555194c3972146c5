"""A loop's body and operands, taken apart to be put together anew."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.programs.jaxpr import Atom, ClosedJaxpr, Jaxpr, JaxprEqn, Literal, no_debug_info


class JaxprLoop:
    """A loop's body and operands: constants, then carries, then what each turn has of its own."""

    def __init__(self, body: ClosedJaxpr, ins: Sequence[Atom], num_consts: int, num_carry: int):
        self.body = body
        self.constvars = body.jaxpr.constvars
        self.invars = list(body.jaxpr.invars)
        self.outvars = list(body.jaxpr.outvars)
        self.eqns = body.jaxpr.eqns
        self.ins = list(ins)
        self.num_consts = num_consts
        self.num_carry = num_carry

    def closed(self) -> ClosedJaxpr:
        old = self.body.jaxpr
        if self.eqns is old.eqns and self.invars == old.invars and len(self.outvars) == len(old.outvars):
            return self.body
        return ClosedJaxpr(Jaxpr(self.constvars, self.invars, self.outvars, self.eqns, None,
                                 no_debug_info), self.body.consts)

    def fix_carries(self) -> dict[int, Atom]:
        """Makes constants of carries that never change: their numbers, and their values."""
        n, carried = self.num_consts, self.invars[self.num_consts:self.num_consts + self.num_carry]
        fixed = {k: self.ins[n + k] for k, v in enumerate(carried) if self.outvars[k] is v}
        if fixed:
            order = [*range(n), *(n + k for k in fixed), *(k for k in range(n, len(self.invars)) if k - n not in fixed)]
            self.invars = [self.invars[k] for k in order]
            self.ins = [self.ins[k] for k in order]
            self.outvars = [v for k, v in enumerate(self.outvars) if k not in fixed]
            self.num_consts += len(fixed)
            self.num_carry -= len(fixed)
        return fixed

    def feed(self, eqn: JaxprEqn, rows: Atom) -> None:
        """Leaves an equation out: its results come from outside, a row for each turn."""
        self.eqns = [e for e in self.eqns if e is not eqn]
        self.invars.append(eqn.outvars[0])
        self.ins.append(rows)

    def remove(self, moved: Sequence[JaxprEqn], values: dict[Any, Atom]) -> None:
        """Leaves out equations whose results, as far as the rest reads them, come from outside."""
        gone = set(map(id, moved))
        self.eqns = [eqn for eqn in self.eqns if id(eqn) not in gone]
        read = {v for eqn in self.eqns for v in eqn.invars if type(v) is not Literal}
        read.update(v for v in self.outvars if type(v) is not Literal)
        new = [v for eqn in moved for v in eqn.outvars if v in read]
        n = self.num_consts
        self.invars[n:n] = new
        self.ins[n:n] = [values[v] for v in new]
        self.num_consts += len(new)

