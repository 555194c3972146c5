"""Index-set splitting: loops cut where conditions on their variable change, which frees rolls, paddings and
concatenations of masks. Between two cuts each condition is constant, and a guarded access is a plain one.

Before, and after:

    for i0 < 1000 vector(16):
      out0[i0] = select(lt(i0, 999), arg0[guard(lt(i0, 999), (1 + i0), 1000)], 0.0:float32)

    for i1 < 999 vector(16):
      out0[i1] = arg0[(1 + i1)]
    out0[999] = 0.0:float32
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

from ..costs import THREADED, instructions, size
from ..ir.expr import BOOL, INDEX, Expr, coefficient, const_value, walk
from ..ir.loopir import Close, Fold, Loop, LoopKind, Open, Statement, Store, rewrite, statements
from ..lowering.builder import Builder
from ..program import Program
from . import address_selection

CUTS = 3  # at most: each adds a copy of the loop;
MOST_CUTS = 8  # where copies are no longer all together, as each makes fewer choices, or where a nest runs for long
STEPS = 3  # of the longest piece, from which cutting pays
LONGEST = 1 << 9  # estimated instructions of copies of a nest, at most
LITTLE = 1 << 15  # estimated instructions of a nest that takes no time,
SHARE = 16  # as one does that is less than such a part of a program
_PLAIN = Store, Fold, Open, Close, Loop


def cuts(b: Builder, v: Expr, extent: int, exprs: Sequence[Expr]) -> list[int]:
    """Where, inside [0, extent), a condition of a guard begins or ceases to hold; none where one depends on more."""
    found: set[int] = set()
    for guard in walk(exprs):
        if guard.op != "guard" or v not in guard.args[0].deps:
            continue
        for n in walk([guard.args[0]]):
            if v not in n.deps or n.op in ("var", "poly", "and", "or", "not"):
                continue
            at = _cut(b, n, v)
            if at is None:
                return []
            if 0 < at < extent:
                found.add(at)
    return sorted(found)


def _cut(b: Builder, comparison: Expr, v: Expr) -> int | None:
    """The first value of `v` (which may be negative) from which a comparison has its other answer."""
    if comparison.op not in ("lt", "le", "gt", "ge") or comparison.args[0].dtype is not INDEX:
        return None
    difference = b.isub(*comparison.args)
    factor = coefficient(b.arena, difference, v)
    if factor is None or factor.op != "const" or factor.attr not in (1, -1):
        return None
    rest = b.isub(difference, b.imul(factor, v))
    if rest.op != "const":
        return None
    strict = comparison.op in ("lt", "ge")  # v + rest < 0 changes at -rest, v + rest <= 0 one later
    return -rest.attr + (not strict) if factor.attr == 1 else rest.attr + strict


def decided(b: Builder, e: Expr, args: tuple[Expr, ...]) -> Expr:
    """A node with new operands, which may decide conditions: for `substitute`."""
    if e.op in ("lt", "le", "gt", "ge", "eq", "ne", "select"):
        return getattr(b, e.op)(*args)
    if e.op in ("and", "or", "not") and e.dtype == BOOL:
        return getattr(b, e.op + "_")(*args)
    if e.op == "guard" and args[0].op == "const":
        return args[1] if const_value(args[0]) else b.int(0)  # what is read there is not used
    return b.arena.node(e.op, args, e.dtype, e.attr, e.bounds)


def run(program: Program) -> Program:
    """Splits loops of stores and folds, and nests of such loops."""
    b = program.builder
    works = [instructions([statement]) for statement in program.statements]
    little = max(LITTLE, sum(works) / SHARE) if math.isfinite(sum(works)) else LITTLE
    out: list[Statement] = []
    for statement, work in zip(program.statements, works, strict=True):
        out += _split_all([statement], functools.partial(split, b, work, work < little))
    return program.with_statements(out)


def _split_all(body: list[Statement], cut: Callable[[Statement], list[Statement]]) -> list[Statement]:
    """Statements with their loops cut, outer ones first: pieces in which nothing is asked any more stay whole. An outer
    loop whose pieces are too long in the end is left as it is."""
    def inside(s: Statement) -> Statement:
        old = s.bodies()
        new = [_split_all(inner, cut) for inner in old]
        return s if all(x is y for x, y in zip(old, new, strict=True)) else s.with_bodies(new)

    out: list[Statement] = []
    for statement in body:
        pieces = [inside(piece) for piece in cut(statement)]
        if len(pieces) > 1 and any(isinstance(s, Loop) for s in statements(statement.bodies()[0])):
            whole = inside(statement)
            if size(pieces) > max(LONGEST, size([whole])):
                pieces = [whole]
        out += pieces
    return body if len(out) == len(body) and all(x is y for x, y in zip(out, body, strict=True)) else out


def split(b: Builder, work: float, little: bool, loop: Statement) -> list[Statement]:
    """A loop of a nest of so much work, which may be `little`, as the loops between its cuts, where one of them has a
    few steps."""
    if not isinstance(loop, Loop) or loop.kind not in (LoopKind.VECTOR, LoopKind.SERIAL) or not loop.width:
        return [loop]
    extent, v = loop.extent, loop.var
    inside = list(statements(loop.body))
    if not isinstance(extent, int) or not all(isinstance(s, _PLAIN) for s in inside):
        return [loop]
    between = cuts(b, v, extent, [e for s in inside for e in s.exprs()])
    ends = [0, *between, extent]
    longest = max(high - low for low, high in zip(ends, ends[1:], strict=False))
    if not 0 < len(between) <= MOST_CUTS or longest < STEPS * loop.width:
        return [loop]
    around = len(inside) > len(loop.body)
    if around and little and _ends_in_lanes(loop):
        return [loop]  # conditions cost little there, and each cut a copy of all loops inside
    if around and (
            len(between) <= CUTS and len(between) * size(loop.body) > LONGEST or _selects_addresses(b, inside)):
        return [loop]
    stores_alone = all(isinstance(s, Store) for s in inside)
    out: list[Statement] = []
    for low, high in zip(ends, ends[1:], strict=False):
        alone = high - low == 1 and stores_alone
        i = b.int(0) if alone else b.loop_var(high - low)
        body = _at(b, loop.body, {v: b.iadd(i, low)})
        out += body if alone else [loop.replace(
            var=i, extent=high - low, body=body, divisible=loop.divisible * (high - low) // extent)]
    if len(between) <= CUTS or size(out) <= (LONGEST if work >= THREADED else size([loop])):
        return out
    return [loop]


def _ends_in_lanes(loop: Loop) -> bool:
    """Whether a loop holds loops over lanes, and all its stores are in them."""
    return all(isinstance(s, Loop) and (s.kind is LoopKind.VECTOR or _ends_in_lanes(s)) for s in loop.body)


def _selects_addresses(b: Builder, inside: Sequence[Statement]) -> bool:
    """Whether a nest will do with choices between places (see `address_selection`): that is shorter than two nests."""
    lanes = frozenset(s.var for s in inside if isinstance(s, Loop) and s.kind is LoopKind.VECTOR)
    return any(address_selection.merged(b.arena, s.value, lanes) is not s.value for s in inside if isinstance(s, Store))


def _at(b: Builder, body: Sequence[Statement], mapping: dict[Expr, Expr]) -> list[Statement]:
    """The statements where a variable has another value, which decides conditions."""
    memo: dict[Expr, Expr] = {}

    def at(e: Expr) -> Expr:
        return b.arena.substitute(e, mapping, memo, lambda node, args: decided(b, node, args))

    def change(s: Statement) -> list[Statement]:
        if isinstance(s, Store):
            return [Store(s.buffer, at(s.offset), at(s.value))]
        return [Fold(s.accumulator, [at(e) for e in s.values])] if isinstance(s, Fold) else [s]

    return rewrite(list(body), change)
