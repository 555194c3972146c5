"""How often a program reads the elements of its values: what is read again is stored, the rest inlined."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ...core.programs.jaxpr import Jaxpr, JaxprEqn, Literal, Var
from ...core.programs.traits import Part
from ..costs import MEMBERS
from .folds import UNROLLED

NOWHERE: frozenset[int] = frozenset()


class Uses(NamedTuple):
    """How often a value is read, how often each of its elements is, at most, a dimension of few elements along which
    nobody reads more than one at a time, and whether somebody reads elements again and again."""

    value: int = 0
    element: int = 0
    members: int | None = None
    often: bool = False


UNUSED = Uses()


def count_uses(jaxpr: Jaxpr) -> dict[Var, Uses]:
    """The uses of the values of a program. What is elementwise asks for the same element of equal operands, which is
    one use; so are parts of a value that have no element in common, if they are read element by element."""
    whole: dict[Var, int] = {}  # what cuts them left out
    cuts: dict[Var, int] = {}
    parts: dict[Var, list[Part]] = {}
    inlined = _inlined(jaxpr)
    for eqn in jaxpr.eqns:
        traits, read = eqn.primitive.traits, _variables(eqn.invars)
        cut = _cuts(eqn, inlined)
        counts = cuts if cut else whole
        for v in dict.fromkeys(read) if traits.elementwise else read:
            counts[v] = counts.get(v, 0) + 1
            if cut:
                parts.setdefault(v, []).extend(cut)
    for v in _variables(jaxpr.outvars):
        whole[v] = whole.get(v, 0) + 1
    often = _read_often(jaxpr)
    uses = {v: Uses(count, count, often=v in often) for v, count in whole.items()}
    members = _members(jaxpr, inlined)
    for v in {**cuts, **members}:
        count = whole.get(v, 0)
        uses[v] = Uses(count + cuts.get(v, 0), count + _overlaps(parts.get(v, ())),
                       min(members.get(v, NOWHERE), default=None), v in often)
    return uses


def _variables(atoms: Iterable[Var | Literal]) -> list[Var]:
    return [a for a in atoms if type(a) is not Literal]  # type: ignore[misc]


def _inlined(jaxpr: Jaxpr) -> set[Var]:
    """The values that are read element by element: where results are made, or moved to such places."""
    others: set[Var] = set()
    for eqn in reversed(jaxpr.eqns):
        traits = eqn.primitive.traits
        if not (traits.elementwise or _written_out(eqn) or traits.movement and others.isdisjoint(eqn.outvars)):
            others.update(_variables(eqn.invars))
    return {v for eqn in jaxpr.eqns for v in eqn.outvars if v not in others}


def _written_out(eqn: JaxprEqn) -> bool:
    """Whether an equation folds so few elements that it is written out."""
    if not eqn.primitive.traits.reduction:
        return False
    sizes = [eqn.invars[0].aval.shape[a] for a in eqn.params["axes"]]  # type: ignore[attr-defined]
    return all(type(d) is int for d in sizes) and math.prod(sizes) <= UNROLLED


def _cuts(eqn: JaxprEqn, inlined: set[Var]) -> Sequence[Part]:
    """The parts of its operand that an equation gives to those who read element by element. None of other equations."""
    traits = eqn.primitive.traits
    operands = _variables(eqn.invars)
    if traits.parts is None or not operands or not inlined.issuperset(eqn.outvars):
        return ()
    return traits.parts(eqn.params, operands[0].aval)  # type: ignore[arg-type]


def _read_often(jaxpr: Jaxpr) -> set[Var]:
    """The values of which an element may be read many times, by an equation or by who is given its results element by
    element."""
    found: set[Var] = set()
    for eqn in reversed(jaxpr.eqns):
        passed_on = not eqn.primitive.traits.reduction and not found.isdisjoint(eqn.outvars)
        found.update(_variables(eqn.invars if passed_on else _often(eqn)))
    return found


def _often(eqn: JaxprEqn) -> Sequence[Var | Literal]:
    """The operands of which an equation itself reads elements again and again, as far as that is known."""
    traits = eqn.primitive.traits
    if traits.reduction:
        return ()
    sizes = [_size(v) for v in eqn.invars]
    if traits.contraction and None not in sizes:
        shared = [math.prod([v.aval.shape[d] for d in (*contracted, *batch)])  # type: ignore[attr-defined]
                  for v, contracted, batch in zip(eqn.invars, *eqn.params["dimension_numbers"], strict=True)]
        alone = [size <= part for size, part in zip(sizes, shared, strict=True)]  # type: ignore[operator]
        return [v for v, other_alone in zip(eqn.invars, reversed(alone), strict=True) if not other_alone]
    if not (traits.elementwise or traits.movement):
        return eqn.invars
    if traits.once is True or callable(traits.once) and traits.once([v.aval for v in eqn.invars], eqn.params):
        return ()
    made = sum([_size(v) or 0 for v in eqn.outvars])  # (elements of dimensions of one are read for all others)
    return [v for v, size in zip(eqn.invars, sizes, strict=True) if size is None or size < made]


def _size(atom: Var | Literal) -> int | None:
    """How many elements a value has, where that is known."""
    shape = getattr(atom.aval, "shape", ())
    return math.prod(shape) if all([type(d) is int for d in shape]) else None


def _overlaps(parts: Sequence[Part]) -> int:
    """In how many of the parts an element lies, at most: along the dimension that says the least."""
    if not parts or not all(type(n) is int for part in parts for numbers in part[:2] for n in numbers):
        return len(parts)
    return min((_along(parts, axis) for axis in range(len(parts[0].starts))), default=len(parts))


def _along(parts: Sequence[Part], axis: int) -> int:
    steps = {1 if part.strides is None else part.strides[axis] for part in parts}
    step = steps.pop() if len(steps) == 1 else 1  # of equal ones, those that begin elsewhere do not meet
    found = 0
    for phase in {part.starts[axis] % step for part in parts}:
        bounds = sorted(bound for part in parts if part.starts[axis] % step == phase
                        for bound in ((part.starts[axis], 1), (part.limits[axis], -1)))  # one ends where another begins
        together = 0
        for _, change in bounds:
            together += change
            found = max(found, together)
    return found


def _members(jaxpr: Jaxpr, inlined: set[Var]) -> dict[Var, frozenset[int]]:
    """The dimensions of few elements along which values are read one element at a time, by equations whose results
    are, if need be."""
    found: dict[Var, frozenset[int]] = {v: NOWHERE for v in _variables(jaxpr.outvars)}
    for eqn in reversed(jaxpr.eqns):
        for v in _variables(eqn.invars):
            known, shape = found.get(v), getattr(v.aval, "shape", ())
            if known is None:
                known = NOWHERE if len(shape) < 2 else frozenset(  # (what has one dimension is a vector itself)
                    [a for a, d in enumerate(shape) if type(d) is int and 1 < d <= MEMBERS])
            found[v] = known & _read_apart(eqn, known, len(shape), found, inlined) if known else NOWHERE
    return found


def _read_apart(eqn: JaxprEqn, axes: frozenset[int], rank: int, found: dict[Var, frozenset[int]], inlined: set[Var]
                ) -> frozenset[int]:
    """Those of some axes of an operand along which an equation reads it one element at a time."""
    traits = eqn.primitive.traits
    if parts := _cuts(eqn, inlined):
        return frozenset([a for a in axes if all(p.limits[a] - p.starts[a] == 1 for p in parts)])
    if traits.elementwise and all(len(v.aval.shape) == rank for v in eqn.outvars):  # type: ignore[attr-defined]
        return frozenset.intersection(*(found.get(v, NOWHERE) for v in eqn.outvars))
    if _written_out(eqn):
        return frozenset(eqn.params["axes"])
    if traits.permutation is not None:
        permutation = traits.permutation(eqn.params)
        return frozenset([permutation[a] for a in found.get(eqn.outvars[0], NOWHERE)])
    return NOWHERE


__all__ = ["UNUSED", "Uses", "count_uses"]
