"""What must hold for an index to be one: the conditions of the guards that it is computed from.

A guard `guard(c, i, n)` promises 0 <= i < n where `c` holds, and the compiler simplifies by that promise; where `c`
does not hold, `i` is anything, and so is what is computed from it, other guards' conditions included. A load is thus
masked by the conditions of all guards under its place, but for those whose value is not chosen: the branch that a
select does not take, the operand of a conjunction whose other operand is false.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..compile.ir.expr import BOOL, LOADS, Arena, Expr, poly_terms

NOTHING: tuple[Expr, ...] = ()


class Guards:
    """The conditions under expressions, computed once for each."""

    def __init__(self, arena: Arena):
        self.arena = arena
        self.known: dict[Expr, tuple[Expr, ...]] = {}

    def split(self, place: Expr) -> tuple[Expr, tuple[Expr, ...]]:
        """A place with the guards of its terms left out, so that it shows its strides, and all conditions under it, one
        by one: some of a conjunction may be the same for all lanes."""
        conditions = tuple(dict.fromkeys(c for whole in self.under(place) for c in _conjuncts(whole) if c.op != "and"))
        return (self._bare(place) if conditions else place), conditions

    def under(self, e: Expr) -> tuple[Expr, ...]:
        """What must hold for `e` to mean something. What is loaded does: a masked load is zero."""
        known, stack = self.known, [e]
        while stack:
            n = stack[-1]
            missing = [a for a in n.args if a not in known] if n.op not in LOADS and n not in known else None
            if missing:
                stack.extend(missing)
                continue
            stack.pop()
            if n not in known:
                known[n] = self._own(n) if n.args and n.op not in LOADS else NOTHING
        return known[e]

    def _own(self, e: Expr) -> tuple[Expr, ...]:
        if not any(self.known[a] for a in e.args) and e.op != "guard":
            return NOTHING
        if e.op == "select":
            return self._chosen(*e.args)
        if e.op in ("and", "or") and e.dtype == BOOL:
            return self._decided(e.op, *e.args)
        own = e.args[:1] if e.op == "guard" else ()
        return tuple(dict.fromkeys((*own, *(c for a in e.args for c in self.known[a]))))

    def _chosen(self, predicate: Expr, x: Expr, y: Expr) -> tuple[Expr, ...]:
        """Of a select: what its predicate needs, and what the branch needs that is taken."""
        conditions = list(self.known[predicate])
        given = set(_conjuncts(predicate))
        for needed, other in ((self.known[x], self._not(predicate)), (self.known[y], predicate)):
            rest = [c for c in needed if c not in given]
            if rest:
                conditions.append(self._node("or", other, self.all(rest)))
            given = {self._not(predicate)}
        return tuple(dict.fromkeys(conditions))

    def _decided(self, op: str, x: Expr, y: Expr) -> tuple[Expr, ...]:
        """Of a conjunction or disjunction: one operand may decide it, or both mean something."""
        decides = self._not if op == "and" else lambda a: a
        left, right = self.known[x], self.known[y]
        ways = [[*left, *right], [*left, decides(x)], [*right, decides(y)]]
        first, *others = (self.all(way) for way in ways)
        for way in others:
            first = self._node("or", first, way)
        return (first,)

    def all(self, conditions: Iterable[Expr]) -> Expr:
        """The conjunction of at least one condition."""
        first, *others = dict.fromkeys(conditions)
        for c in others:
            first = self._node("and", first, c)
        return first

    def _node(self, op: str, x: Expr, y: Expr) -> Expr:
        return self.arena.node(op, (x, y), BOOL)

    def _not(self, x: Expr) -> Expr:
        return x.args[0] if x.op == "not" else self.arena.node("not", (x,), BOOL)

    def _bare(self, place: Expr) -> Expr:
        """Guards inside quotients, remainders and whatever else is no polynomial stay."""
        while place.op == "guard":
            place = place.args[1]
        if not any(a.op == "guard" for a in (place, *place.args)):
            return place
        out = self.arena.int(0)
        for m, c in poly_terms(place).items():
            term = self.arena.int(c)
            for a in m:
                term = self.arena.imul(term, self._bare(a) if a.op == "guard" else a)
            out = self.arena.iadd(out, term)
        return out


def _conjuncts(e: Expr) -> list[Expr]:
    """A condition, and what it is the conjunction of."""
    found = [e]
    for n in found:
        found += n.args if n.op == "and" else ()
    return found
