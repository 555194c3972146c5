"""Loop-invariant code motion: what each turn of a loop would compute alike is computed before it.

    scan[jaxpr={ lambda ; a:f32[4,4] c:f32[4]. let      w:f32[4,4] = dot_general a a
        w:f32[4,4] = dot_general a a                →   scan[jaxpr={ lambda ; w:f32[4,4] c:f32[4]. let
        d:f32[4] = dot_general c w                            d:f32[4] = dot_general c w
      in (d,) }] a c                                        in (d,) }] w c

Carries that no turn changes become constants first. What costs less to compute than to read stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.programs.jaxpr import Atom, ClosedJaxpr, JaxprEqn, Literal
from ...core.programs.traits import Control
from ...core.types.avals import ShapedArray
from ..costs import WORTH_KEEPING
from ..lowering.element_cost import ElementCosts
from .loop_form import JaxprLoop
from .rewriting import Rewriting, is_pure, map_programs, programs_of

CACHED = 1 << 18  # bytes of an elementwise result that stays in a cache until the next turn


def move_invariants(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program with what is invariant moved out of its loops, the innermost first."""
    return _Motion().run(closed) if any(True for e in closed.eqns for _ in programs_of(e)) else closed


class _Motion(Rewriting):
    def equation(self, eqn: JaxprEqn, ins: Sequence[Atom]) -> Sequence[Atom]:
        eqn = map_programs(eqn, move_invariants)
        control = eqn.primitive.traits.control
        if control is Control.SCAN:
            return self.scan(eqn, ins)
        if control is Control.WHILE:
            return self.while_(eqn, ins)
        return self.add(eqn, ins)

    def scan(self, eqn: JaxprEqn, ins: Sequence[Atom]) -> Sequence[Atom]:
        p = eqn.params
        loop = JaxprLoop(p["jaxpr"], ins, p["num_consts"], p["num_carry"])
        fixed = loop.fix_carries()
        if p["length"] != 0:
            self.take_out(loop)
        if loop.closed() is p["jaxpr"]:
            return self.add(eqn, ins)
        new = eqn.replace(outvars=[v for k, v in enumerate(eqn.outvars) if k not in fixed], params={
            **p, "jaxpr": loop.closed(), "num_consts": loop.num_consts, "num_carry": loop.num_carry})
        return _with_fixed(self.add(new, loop.ins), fixed, len(eqn.outvars))

    def while_(self, eqn: JaxprEqn, ins: Sequence[Atom]) -> Sequence[Atom]:
        p = eqn.params
        n = p["cond_nconsts"]
        loop = JaxprLoop(p["body_jaxpr"], ins[n:], p["body_nconsts"], len(ins) - n - p["body_nconsts"])
        fixed = loop.fix_carries()
        self.take_out(loop)
        if loop.closed() is p["body_jaxpr"]:
            return self.add(eqn, ins)
        cond, cond_ins = p["cond_jaxpr"], list(ins[:n])
        if fixed:
            carried = cond.jaxpr.invars[n:]
            invars = [*cond.jaxpr.invars[:n], *(carried[k] for k in fixed),
                      *(v for k, v in enumerate(carried) if k not in fixed)]
            cond, cond_ins = ClosedJaxpr(cond.jaxpr.replace(invars=invars), cond.consts), [*cond_ins, *fixed.values()]
        new = eqn.replace(outvars=[v for k, v in enumerate(eqn.outvars) if k not in fixed], params={
            **p, "cond_jaxpr": cond, "cond_nconsts": len(cond_ins), "body_jaxpr": loop.closed(),
            "body_nconsts": loop.num_consts})
        return _with_fixed(self.add(new, [*cond_ins, *loop.ins]), fixed, len(eqn.outvars))

    def take_out(self, loop: JaxprLoop) -> None:
        """Computes here what the loop would compute alike at each turn."""
        moved = _invariants(loop)
        if not moved:
            return
        with self.copies():
            env: dict[Any, Atom] = dict(zip(loop.constvars, self.constants(loop.body), strict=True))
            env.update(zip(loop.invars[:loop.num_consts], loop.ins, strict=False))
            for eqn in moved:
                ins = [v if type(v) is Literal else env[v] for v in eqn.invars]
                env.update(zip(eqn.outvars, self.add(eqn, ins), strict=True))
        loop.remove(moved, env)


def _with_fixed(outs: Sequence[Atom], fixed: dict[int, Atom], count: int) -> list[Atom]:
    rest = iter(outs)
    return [fixed[k] if k in fixed else next(rest) for k in range(count)]


def _invariants(loop: JaxprLoop) -> list[JaxprEqn]:
    """The equations that give the same at each turn, as far as keeping their results is worth it."""
    steady = {*loop.constvars, *loop.invars[:loop.num_consts]}
    candidates = []
    for eqn in loop.eqns:
        if is_pure(eqn) and all(type(v) is Literal or v in steady for v in eqn.invars):
            steady.update(eqn.outvars)
            candidates.append(eqn)
    if not candidates:
        return []
    costs, totals = ElementCosts(), dict[Any, int]()
    for eqn in candidates:
        total = sum(totals.get(v, 0) for v in eqn.invars if type(v) is not Literal)
        if eqn.primitive.traits.elementwise:
            total += costs.cost(eqn)
        totals.update(dict.fromkeys(eqn.outvars, min(total, WORTH_KEEPING)))
    needed: set[Any] = set()
    multiplied = _multiplied(loop, candidates)
    moved = []
    for eqn in reversed(candidates):
        if _worth_keeping(eqn, totals, multiplied) or any(v in needed for v in eqn.outvars):
            needed.update(v for v in eqn.invars if type(v) is not Literal)
            moved.append(eqn)
    return moved[::-1]


def _multiplied(loop: JaxprLoop, invariants: Sequence[JaxprEqn]) -> set[Any]:
    """The operands of products that change from turn to turn, and what these are only moved from."""
    known = {id(eqn) for eqn in invariants}
    found: set[Any] = set()
    for eqn in reversed(loop.eqns):
        traits = eqn.primitive.traits
        if traits.contraction and id(eqn) not in known or traits.movement and any(v in found for v in eqn.outvars):
            found.update(v for v in eqn.invars if type(v) is not Literal)
    return found


def _worth_keeping(eqn: JaxprEqn, totals: dict[Any, int], multiplied: set[Any]) -> bool:
    """Whether a loop gains when it reads an equation's results instead of computing them, of invariants alone. What is
    multiplied is read in any case, and may be laid out for that."""
    traits = eqn.primitive.traits
    if traits.elementwise:
        if is_no_larger(eqn) and any(v in multiplied for v in eqn.outvars):
            return True
        return _nbytes(eqn.outvars) <= CACHED and totals[eqn.outvars[0]] >= WORTH_KEEPING
    return not traits.movement and traits.control is not Control.WHILE  # which may never end, in a loop of no turns


def is_no_larger(eqn: JaxprEqn) -> bool:
    """Whether reading the results of elementwise work takes no more memory than reading what it is computed of."""
    return _nbytes(eqn.outvars) <= _nbytes(eqn.invars)


def _nbytes(atoms: Sequence[Atom]) -> int:
    return sum(v.aval.size * v.aval.dtype.itemsize for v in atoms if isinstance(v.aval, ShapedArray))
