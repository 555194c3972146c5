"""Address selection: a choice between two reads of one buffer, which is the same for a whole vector, becomes one read
at a place that is chosen. So rolls and periodic edges along an outer dimension read as plain rows do.

Before, and after:

    for i0 < 32:
      for i1 < 100 vector(16):
        out0[(100*i0 + i1)] = select(lt(i0, 7), arg0[(100*i0 + i1)], arg0[(3200 + 100*i0 + i1)])

    for i0 < 32:
      for i1 < 100 vector(16):
        out0[(100*i0 + i1)] = arg0[(100*i0 + i1 + select(lt(i0, 7), 0, 3200))]

A read that one of two opposite conditions guards is guarded by the choice.
"""

from __future__ import annotations

from ..ir.expr import BOOL, INDEX, Arena, Expr, poly_terms, walk
from ..ir.loopir import Fold, Loop, LoopKind, Statement, Store, Together
from ..program import Program

OPPOSITES = {"lt": "ge", "ge": "lt", "le": "gt", "gt": "le", "eq": "ne", "ne": "eq"}


def run(program: Program) -> Program:
    """Rewrites the values of stores and of what is folded, which may have much in common."""
    new = _rewritten(program.builder.arena, program.statements, frozenset())
    return program if new is program.statements else program.with_statements(new)


def _rewritten(arena: Arena, body: list[Statement], lanes: frozenset[Expr]) -> list[Statement]:
    """The statements inside loops over `lanes`; the same list if nothing changes."""
    out: list[Statement] = []
    for s in body:
        if isinstance(s, Store):
            value = merged(arena, s.value, lanes)
            out.append(s if value is s.value else Store(s.buffer, s.offset, value))
            continue
        if isinstance(s, Fold):
            values = [merged(arena, v, lanes) for v in s.values]
            same = all(x is y for x, y in zip(values, s.values, strict=True))
            out.append(s if same else Fold(s.accumulator, values))
            continue
        if isinstance(s, Together):  # as it was grouped: its stores share what they compute
            out.append(s)
            continue
        inside = lanes | {s.var} if isinstance(s, Loop) and s.kind is LoopKind.VECTOR else lanes
        old = s.bodies()
        new = [_rewritten(arena, inner, inside) for inner in old]
        out.append(s if all(x is y for x, y in zip(old, new, strict=True)) else s.with_bodies(new))
    return body if all(x is y for x, y in zip(body, out, strict=True)) else out


def merged(arena: Arena, value: Expr, lanes: frozenset[Expr]) -> Expr:
    """A value inside loops over `lanes` with one read for each two of which one is chosen; the same if there are none.
    """
    nodes = list(walk([value]))
    if not any(n.op == "select" and lanes.isdisjoint(n.args[0].deps) for n in nodes):
        return value
    new: dict[Expr, Expr] = {}
    for n in nodes:
        args = tuple([new[a] for a in n.args])
        if n.op == "select" and lanes.isdisjoint(args[0].deps):
            found = _one_read(arena, *args)
            if found is not None:
                new[n] = found
                continue
        new[n] = n if n.op == "poly" or args == n.args else arena.node(n.op, args, n.dtype, n.attr, n.bounds)
    return new[value]


def _one_read(arena: Arena, condition: Expr, x: Expr, y: Expr) -> Expr | None:
    """`select(condition, x, y)` as one read, where both are reads of one buffer; None otherwise."""
    inverse = None
    if y.op == "select" and _opposite(y.args[0], condition):  # what follows is never chosen
        inverse, y = y.args[0], y.args[1]
    if x.op != "load" or y.op != "load" or x.attr != y.attr or x.dtype != y.dtype:
        return None
    if condition.reads:
        return None
    place = y.args[0]
    if inverse is not None:
        place = _under(arena, place, inverse, arena.node("not", (condition,), BOOL))
    here, there = poly_terms(x.args[0]), poly_terms(place)
    common = {m: c for m, c in here.items() if there.get(m) == c}
    first, second = ({m: c for m, c in terms.items() if m not in common} for terms in (here, there))
    chosen = arena.node("select", (condition, arena.poly(first), arena.poly(second)), INDEX)
    place = arena.iadd(arena.poly(common), chosen)
    return arena.node("load", (place,), x.dtype, x.attr, x.bounds)


def _opposite(a: Expr, b: Expr) -> bool:
    """Whether one condition holds exactly where the other does not; comparisons of numbers without NaN."""
    if a.op == "not" or b.op == "not":
        return a.op == "not" and a.args[0] is b or b.op == "not" and b.args[0] is a
    return OPPOSITES.get(a.op) == b.op and a.args == b.args and a.args[0].dtype is INDEX


def _under(arena: Arena, place: Expr, condition: Expr, name: Expr) -> Expr:
    """A place whose guards by a condition call it by another name."""
    terms = arena.int(0)
    for m, c in poly_terms(place).items():
        term = arena.int(c)
        for a in m:
            if a.op == "guard" and a.args[0] is condition:
                a = arena.node("guard", (name, *a.args[1:]), INDEX, a.attr, a.bounds)
            term = arena.imul(term, a)
        terms = arena.iadd(terms, term)
    return terms


__all__ = ["merged", "run"]
