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

from collections.abc import Sequence

from ..ir.expr import BOOL, INDEX, Expr, coefficient, const_value, walk
from ..ir.loopir import Loop, LoopKind, Statement, Store, rewrite
from ..lowering.builder import Builder
from ..program import Program

CUTS = 3  # at most: each adds a copy of the loop


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
    """Splits the vector loops of stores."""
    b = program.builder
    return program.with_statements(rewrite(program.statements, lambda s: split(b, s)))


def split(b: Builder, loop: Statement) -> list[Statement]:
    """A vector loop of stores as the loops between its cuts, where one of them is most of it and has at least four
    vectors."""
    if not isinstance(loop, Loop) or loop.kind is not LoopKind.VECTOR or not loop.width:
        return [loop]
    extent, v = loop.extent, loop.var
    if not isinstance(extent, int) or not all(isinstance(s, Store) for s in loop.body):
        return [loop]
    between = cuts(b, v, extent, [e for s in loop.body for e in s.exprs()])
    ends = [0, *between, extent]
    longest = max(high - low for low, high in zip(ends, ends[1:], strict=False))
    if not 0 < len(between) <= CUTS or longest < max(4 * loop.width, extent // 2):
        return [loop]
    out: list[Statement] = []
    for low, high in zip(ends, ends[1:], strict=False):
        i = b.loop_var(high - low) if high - low > 1 else b.int(0)
        memo: dict[Expr, Expr] = {}
        mapping = {v: b.iadd(i, low)}

        def at(e: Expr, mapping: dict[Expr, Expr] = mapping, memo: dict[Expr, Expr] = memo) -> Expr:
            return b.arena.substitute(e, mapping, memo, lambda node, args: decided(b, node, args))

        body: list[Statement] = [Store(s.buffer, at(s.offset), at(s.value)) for s in loop.body if isinstance(s, Store)]
        out += body if high - low == 1 else [Loop(
            i, high - low, body, loop.kind, loop.width, loop.work, loop.divisible * (high - low) // extent)]
    return out
