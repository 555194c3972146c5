"""Estimates of a program's work, read off its loops."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ..core.types.index_type import INDEX
from .ir.expr import COSTS, LOADS, MAX_SIZE, TRANSCENDENTAL, Arena, Expr, walk
from .ir.loopir import Buffer, BufferKind, Call, Copy, Fold, If, Loop, Statement, Store, Transpose, While, statements

if TYPE_CHECKING:
    from .ir.placement import Placement
    from .program import Program

# Keep or compute again: estimated instructions of a value
WORTH_KEEPING = 3  # a value of this cost that is read twice, or again and again, is stored
WORTH_STORING = 7  # the same of one whose elements are read twice: vectors compute that before memory gives it back
WORTH_REPEATING = 6  # of one that is stored anyway, up to which a later pass over the same loops computes it again

CHAIN = 12  # of an elementary function, whose instructions wait for one another

SHORT = 64  # written out, expressions of more instructions may say much the same again and again
MEMBERS = 8  # of a record, at most
RECORD = 64  # estimated instructions of all members of a record, up to which they are computed side by side
TURNED = 4  # elements of a matrix that an instruction turns, estimated
MOVED = 8  # elements that an instruction copies, estimated
ENDING = 8  # turns of a loop that nobody knows, where programs for all sizes are estimated
LANES = 8  # of a loop that takes as many as a vector has, estimated
THREADED = 60_000  # estimated instructions below which a nest is not worth waking a thread for
EVEN_SHARES = 12  # steps of a loop that threads can share evenly
SEARCH = 32  # turns, about, of a library's loops that end by themselves: searches, insertions, series
HORIZONTAL = 10  # estimated instructions that fold the lanes of a reduction


def analyse(program: Program) -> dict[str, float]:
    """Counts of arithmetic operations, transcendental ones, and bytes read and written."""
    totals = {"flops": 0.0, "transcendentals": 0.0, "bytes accessed": 0.0}
    for times, s in executions(program.statements):
        for n in _nodes(s):
            if n.op in LOADS:
                totals["bytes accessed"] += times * n.dtype.itemsize
            elif _computes(n):
                totals["transcendentals" if n.op in TRANSCENDENTAL else "flops"] += times
        totals["flops"] += times * _own_flops(s)
        if isinstance(s, Store):
            totals["bytes accessed"] += times * s.buffer.dtype.itemsize
        elif isinstance(s, Copy) and program.placement.root(s.target) is not program.placement.root(s.source):
            totals["bytes accessed"] += times * 2 * _count(s) * s.target.dtype.itemsize
        elif isinstance(s, Transpose):
            totals["bytes accessed"] += times * 2 * s.rows * s.columns * s.target.dtype.itemsize
    return totals


def operations(statement: Statement) -> dict[str, float]:
    """Arithmetic operations of one execution by the dtypes of their results; a transcendental one counts as its
    instructions."""
    found: dict[str, float] = {}
    for times, s in executions([statement]):
        for n in _nodes(s):
            if _computes(n):
                cost = COSTS[n.op] if n.op in TRANSCENDENTAL else 1
                found[n.dtype.name] = found.get(n.dtype.name, 0.0) + times * cost
        own = times * _own_flops(s)
        if own:
            dtype = (s.writes[0].dtype if isinstance(s, Call) else s.values[0].dtype).name  # type: ignore[attr-defined]
            found[dtype] = found.get(dtype, 0.0) + own
    return found


def traffic(statement: Statement, placement: Placement) -> float:
    """Bytes that one execution moves at least, if what it reads or writes of a buffer is moved once."""
    reads: dict[Buffer, float] = {}
    writes: dict[Buffer, float] = {}

    def add(table: dict[Buffer, float], buffer: Buffer, count: float) -> None:
        if buffer.kind is not BufferKind.SCRATCH:
            base = placement.root(buffer)
            table[base] = table.get(base, 0.0) + count * buffer.dtype.itemsize

    for times, s in executions([statement]):
        for n in _nodes(s):
            if n.op in LOADS:
                add(reads, n.attr[0], times)
        if isinstance(s, Store):
            add(writes, s.buffer, times)
        elif isinstance(s, Copy):
            add(reads, s.source, times * _count(s))
            add(writes, s.target, times * _count(s))
        elif isinstance(s, Transpose):
            add(reads, s.source, times * s.rows * s.columns)
            add(writes, s.target, times * s.rows * s.columns)
        elif isinstance(s, Call):
            for table, buffers in ((reads, s.reads), (writes, s.writes)):
                for buffer in buffers:
                    add(table, buffer, math.inf)
    return sum(min(count, buffer.nbytes if isinstance(buffer.size, int) else count)
               for table in (reads, writes) for buffer, count in table.items())


def executions(body: Sequence[Statement], times: float = 1.0) -> Iterator[tuple[float, Statement]]:
    """Every statement, with how often a call executes it, loops of unknown length once."""
    for s in body:
        yield times, s
        for inner, trips in zip(s.bodies(), turns(s, 1.0, lanes=False), strict=True):
            yield from executions(inner, times * trips)


def _nodes(s: Statement) -> Iterator[Expr]:
    return walk([e for e in s.exprs() if isinstance(e, Expr)])


def _computes(n: Expr) -> bool:
    return n.op not in LOADS and n.dtype is not INDEX and n.dtype.kind in "fiu" and bool(
        COSTS.get(n.op, 1)) and n.op != "select"


def _own_flops(s: Statement) -> float:
    """Operations of a statement besides those of its expressions."""
    if isinstance(s, Call):
        return s.flops
    # sums of blocks are put together as the order of sums has it
    return float(isinstance(s, Fold) and any(e.op != "get" for e in s.values))


def _count(s: Copy) -> int:
    return s.count if isinstance(s.count, int) else 1


def computing(exprs: Sequence[Expr]) -> float:
    """Roughly how many instructions compute these expressions, a part that they share once."""
    total = sum([e.cost for e in exprs])
    if total < SHORT:
        return total
    return sum([COSTS.get(n.op, 1) for n in walk(exprs)])


def size(body: Sequence[Statement]) -> float:
    """Roughly how many instructions stand in the code, whose loops' bodies stand there once."""
    return sum(1 + computing(s.exprs()) for s in statements(body))


def instructions(body: Sequence[Statement], times: float = 1.0, endless: float = math.inf,
                 called: str | None = "", ending: float = math.inf) -> float:
    """Roughly how many instructions a call executes, if loops that may never end by themselves turn `endless` times,
    and others whose turns nobody knows `ending` times; infinity where the length of others is not known. Those of the
    functions that it calls count whose names begin with `called`; with None, no others' do."""
    total = 0.0
    for s in body:
        if isinstance(s, While):
            trips = endless if s.open_ended else ending
            if trips == math.inf:
                return math.inf
            total += times * trips * (1 + computing(s.exprs()))
            if trips:
                total += sum(instructions(inner, times * trips, endless, called, ending) for inner in s.bodies())
            continue
        if called is not None and isinstance(s, Call) and s.symbol.startswith(called):
            total += times * s.work
        total += times * (1 + computing(s.exprs()))
        if isinstance(s, Transpose):
            total += times * s.rows * s.columns / TURNED
        if isinstance(s, Copy):
            total += times * (1 + s.count / 32) if isinstance(s.count, int) else math.inf
        for inner, often in zip(s.bodies(), turns(s, math.inf), strict=True):
            if often:  # (for ever of nothing is nothing)
                total += instructions(inner, times * often, endless, called, ending)
    return total


def at_run_time(arena: Arena, body: Sequence[Statement]) -> Expr | None:
    """`instructions` as an index of sizes that are known when a program runs; None where a loop's length depends on
    more than these."""
    total = arena.int(0)
    for s in body:
        own = 1 + computing(s.exprs()) + (s.work if isinstance(s, Call) else 0)
        total = arena.iadd(total, int(own))
        moved = s.count if isinstance(s, Copy) else arena.imul(s.rows, s.columns) if isinstance(s, Transpose) else 0
        total = arena.iadd(total, arena.floordiv(arena.index(moved), arena.int(MOVED)))
        if isinstance(s, If) and not s.condition.deps and not s.condition.reads:  # sizes decide
            branches = [at_run_time(arena, inner) for inner in s.bodies()]
            if None in branches:
                return None
            total = arena.iadd(total, arena.node("select", (s.condition, *branches), INDEX))  # type: ignore[arg-type]
            continue
        for inner in s.bodies():
            each = at_run_time(arena, inner)
            times = arena.index(s.extent if isinstance(s, Loop) else ENDING if isinstance(s, While) else 1)
            if each is None or times.deps or times.reads:
                return None
            width = s.width or LANES if isinstance(s, Loop) else 1
            total = arena.iadd(total, arena.floordiv(arena.imul(times, each), arena.int(width)))
    return total


def turns(s: Statement, unknown: float, lanes: bool = True) -> Sequence[float]:
    """How often each of a statement's bodies is run; of vectors, or without `lanes` of their elements. `unknown` stands
    for an extent that only a call knows."""
    if not isinstance(s, Loop):
        return [1.0] * len(s.bodies())
    most = s.extent if isinstance(s.extent, int) else s.extent.bounds[1]
    if most >= MAX_SIZE:
        return [unknown] * len(s.bodies())
    if s.rest is not None:
        return most // s.width, most % s.width
    return (-(-most // (s.width or LANES)) if lanes else most,)
