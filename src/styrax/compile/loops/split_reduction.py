"""Split reduction: a long reduction with few results is folded in parts, and these then.

Parts are independent, so that threads may share them, and errors grow with the length of a part. How many there are
depends on shapes alone, never on threads. Before, and after (values of few parts are written out):

    reduce[; r0] a0 add= arg0[r0] from 0.0:float32

    reduce[i0; r1] a1 add= arg0[(65536*i0 + r1)] from 0.0:float32
      t0[i0] = a1
    reduce[; r2] a0 add= t0[r2] from 0.0:float32
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..ir.expr import Expr, Index
from ..ir.values import Define, Operation, Point, Reduce, rewrite_operations
from ..lowering.builder import Builder
from ..lowering.folds import UNROLLED
from ..program import Program
from .fuse import STEP

LONG = 1 << 15  # elements of a reduction that is cut, at least; estimated instructions of one that threads may share
LARGE = 1 << 20  # elements of all reductions together that are more than near caches hold
NEAR = 1 << 16  # elements that they hold
NARROW = 128  # results whose rows are so short that parts of many rows are read as if at once
SHORTEST = 128  # elements of a part of many, at least
MAX_PARTS = 64
GRAIN = 64  # elements: parts of one range begin at whole vectors


def run(program: Program) -> Program:
    """operations → operations."""
    b, old = program.builder, program.operations or ()
    loops: Loops = {}

    def parts(op: Operation) -> Sequence[Operation]:
        cut = _cut(b, op) if isinstance(op, Reduce) else None
        return [op] if cut is None else _split(b, op, *cut, loops)  # type: ignore[arg-type]

    new = rewrite_operations(old, parts)
    return program if new is old else program.replace(operations=new)


# extent, size of a part -> the loop over parts and that within one: reductions that are cut alike may share loops
Loops = dict[tuple[Index, int], tuple[Expr, Expr]]


def _cut(b: Builder, op: Reduce) -> tuple[int, int] | None:
    """Which range to cut, and the size of a part, where a reduction is long and has few results."""
    results = b.product([b.extents[v] for v in op.outer])
    sizes = [size for v in op.ranges if isinstance(size := b.extents[v], int)]
    if not isinstance(results, int) or len(sizes) < len(op.ranges):
        return None
    count = math.prod(sizes)
    tall = results <= NARROW and count * results >= LARGE and count >= 8 * SHORTEST
    if results * STEP >= LONG or count < LONG and not tall:
        return None
    axis = 0 if sizes[0] >= 8 else max(range(len(sizes)), key=lambda d: sizes[d])
    parts = count // LONG if count >= LONG else min(count * results // NEAR, count // SHORTEST)
    size = -(-sizes[axis] // min(MAX_PARTS, max(2, parts)))
    if count == sizes[axis]:
        size = -(-size // GRAIN) * GRAIN
    return (axis, size) if size < sizes[axis] else None


def _split(b: Builder, op: Reduce, axis: int, size: int, loops: Loops) -> list[Operation]:
    whole = b.extents[op.ranges[axis]]
    parts = -(-whole // size)  # type: ignore[operator]
    if (whole, size) not in loops:
        part, within = loops[whole, size] = b.loop_var(parts), b.loop_var(size, "r")
        b.extents[within] = b.min(b.int(size), b.isub(whole, b.imul(part, size)))
    part, within = loops[whole, size]
    mapping = {op.ranges[axis]: b.iadd(b.imul(part, size), within)}
    memo: dict[Expr, Expr] = {}
    values = [b.arena.substitute(e, mapping, memo) for e in op.values]
    ranges = [within if v is op.ranges[axis] else v for v in op.ranges]
    targets = [b.mutable(t.dtype, "a") for t in op.targets]
    kept = [b.buffer(t.dtype, b.product([parts, *(b.extents[v] for v in op.outer)])) for t in op.targets]

    def place(first: Expr) -> Expr:
        """Where the parts' results lie: row-major, the part first."""
        out = first
        for v in op.outer:
            out = b.iadd(b.imul(out, b.extents[v]), v)
        return out

    stores = [(buffer, place(part), t) for buffer, t in zip(kept, targets, strict=True)]
    first = Reduce([part, *op.outer], ranges, targets, op.initial, op.combine, op.name, values, stores)

    def folded(p: Expr) -> list[Expr]:
        return [b.load(buffer, place(p)) for buffer in kept]

    if parts > UNROLLED:
        turn = b.loop_var(parts, "r")
        return [first, Reduce(op.outer, [turn], op.targets, op.initial, op.combine, op.name, folded(turn), op.stores)]
    results: Sequence[Expr] = op.initial
    for p in range(parts):
        results = op.combine(results, folded(b.int(p)))
    if not op.stores:
        return [first, Define(op.targets, results)]
    final = dict(zip(op.targets, results, strict=True))
    return [first, *(Point(op.outer, buffer, where, b.arena.substitute(value, final, {}))
                     for buffer, where, value in op.stores)]
