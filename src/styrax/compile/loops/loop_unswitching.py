"""Loop unswitching: loops that choose by a condition that is the same in all their turns become two, of which the
condition chooses one: what its other answer asks for is not computed.

Before, and after:

    s0 := lt(arg1[0], 1.0:float32)
    for i0 < 1000 vector(8) cost(2000):
      out0[i0] = select(s0, exp(arg0[i0]), arg0[i0])

    s0 := lt(arg1[0], 1.0:float32)
    if s0:
      for i0 < 1000 vector(8) cost(1750):
        out0[i0] = exp(arg0[i0])
    else:
      for i0 < 1000 vector(8) cost(250):
        out0[i0] = arg0[i0]
"""

from __future__ import annotations

from collections.abc import Iterator

from ..costs import instructions, size
from ..ir.expr import BOOL, Expr, walk
from ..ir.loopir import Buffer, If, Loop, LoopKind, Statement, Store, rewrite, statements
from ..lowering.builder import Builder
from ..program import Program
from .index_set_splitting import decided

LEAST = 1 << 10  # estimated instructions of loops that are worth a branch
LONGEST = 1 << 9  # estimated instructions of code that is written twice, at most
SAVED = 2  # the part of the work that is saved if a condition has one of its answers is a half at least
CANDIDATES = 4  # conditions of a nest that are tried


def run(program: Program) -> Program:
    """Unswitches nests of stores, but for those in lanes or rows side by side, which have answers of their own."""
    b = program.builder
    return program.with_statements(rewrite(
        program.statements, lambda s: _unswitched(b, s),
        inside=lambda s: not _stores_alone(s) and not (isinstance(s, Loop) and s.kind is not LoopKind.SERIAL)))


def _stores_alone(s: Statement) -> bool:
    """Whether a loop holds nothing but loops and stores."""
    return isinstance(s, Loop) and s.rest is None and all(
        isinstance(inner, Store) or isinstance(inner, Loop) and inner.rest is None for inner in statements(s.body))


def _unswitched(b: Builder, s: Statement) -> list[Statement]:
    if not isinstance(s, Loop) or not _stores_alone(s):
        return [s]
    conditions = list(dict.fromkeys(_conditions(s)))[:CANDIDATES]
    if not conditions:
        return [s]
    work = instructions([s])
    if work < LEAST or size([s]) > LONGEST:
        return [s]
    found: list[tuple[float, Statement]] = []
    for condition in conditions:
        answers = [_under(b, s, condition, answer) for answer in (True, False)]
        costs = [instructions([a]) for a in answers]
        if SAVED * min(costs) <= work:
            then, otherwise = (_scaled(a, cost / work) for a, cost in zip(answers, costs, strict=True))
            found.append((sum(costs), If(condition, [then], [otherwise])))
    return [min(found, key=lambda choice: choice[0])[1]] if found else [s]


def _conditions(s: Loop) -> Iterator[Expr]:
    """What choices in a nest hang on that is the same in all turns."""
    inside = {x.var for x in statements([s]) if isinstance(x, Loop)}
    stores = [x for x in statements(s.body) if isinstance(x, Store)]
    written = {x.buffer for x in stores}
    for n in walk([e for x in stores for e in (x.offset, x.value)]):
        if n.op == "select":
            yield from _invariant(n.args[0], inside, written)


def _invariant(e: Expr, inside: set[Expr], written: set[Buffer]) -> Iterator[Expr]:
    if e.op != "const" and (e.deps or e.reads) and e.deps.isdisjoint(inside) and e.reads.isdisjoint(written):
        yield e
    elif e.op in ("and", "or", "not") and e.dtype == BOOL:
        for a in e.args:
            yield from _invariant(a, inside, written)


def _under(b: Builder, s: Statement, condition: Expr, answer: bool) -> Statement:
    """A nest where it is known whether a condition holds."""
    known = {condition: b.const(answer, BOOL)}
    same = {v: v for v in condition.deps}  # (names the expressions that the condition may be part of)

    def at(e: Expr) -> Expr:
        return b.arena.substitute(e, same, known, lambda node, args: decided(b, node, args), condition.reads)

    def change(x: Statement) -> list[Statement]:
        return [Store(x.buffer, at(x.offset), at(x.value))] if isinstance(x, Store) else [x]

    (new,) = rewrite([s], change)
    return new


def _scaled(s: Statement, share: float) -> Statement:
    """A nest that does a share of the work."""
    assert isinstance(s, Loop)
    return s.replace(work=max(1, int(s.work * share)) if s.work else 0, divisible=int(s.divisible * share))
