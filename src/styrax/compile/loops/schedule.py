"""From nests to loops: which loop the threads share, how many vectors a step takes, in what order passes run.

Before, and after:

    nest[i0; r0] r0 vector(16):
      inner 0: reduce[i0; r0] a0 add= arg0[(30*i0 + r0)] from 0.0:float32
      inner 0:   t0[i0] = a0
      inner 2: point[i0, r0] out0[(30*i0 + r0)] = div(arg0[(30*i0 + r0)], a0)

    for i0 < 20 cost(1000):
      open a0 = 0.0:float32 x 16
      for r0 < 30 vector(16):
        a0 add= arg0[(30*i0 + r0)]
      close a0
      for r0 < 30 vector(16):
        out0[(30*i0 + r0)] = div(arg0[(30*i0 + r0)], a0)

`cost` estimates the instructions of a nest whose outermost iterations are independent (see `parallelize`), in vectors.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..costs import CHAIN, EVEN_SHARES, THREADED
from ..ir.expr import COSTS, INDEX, LOADS, Expr, unwrap
from ..ir.loopir import Accumulator, Close, Fold, Let, Loop, LoopKind, Open, Statement, Store
from ..ir.values import Define, Opaque, Point, Reduce
from ..program import Program
from ..registers import is_avx512
from .fuse import Branching, Member, Unit
from .nest import Nest
from .peeling import COMPARISONS
from .transposition import by_functions

UNROLL = 8  # vectors that one step of a reduction takes, at most
REGISTERS = 24  # estimated instructions of a step, times vectors, that registers can hold
BLOCK = 128  # numbers that a sum adds up one after the other, at most
SHORTEST = 16  # the same, at least, of blocks side by side
CHAINS = 8  # additions at once that keep the processor busy: what it can begin in the time that one takes
# Vectors side by side, the estimated instructions of a function up to which their numbers stay in registers, and those
# of a whole nest from which that pays: with 16 registers, and with 32, which look further ahead
SIDE_BY_SIDE = ((4, CHAIN, 1 << 23), (2, 30, 1 << 15)), ((2, 30, 1 << 18),)


def run(program: Program) -> Program:
    """units → statements: loops, and which of them are vectors."""
    return program.replace(statements=_statements(program.units or ()))


def _statements(units: Sequence[Unit]) -> list[Statement]:
    out: list[Statement] = []
    for unit in units:
        if isinstance(unit, Nest):
            out += Scheduler(unit).run()
        elif isinstance(unit, Branching):
            out += unit.region.build([_statements(block) for block in unit.blocks])
        elif isinstance(unit, Define):
            out += [Let(t, v) for t, v in zip(unit.targets, unit.values, strict=True)]
        else:
            assert isinstance(unit, Opaque)
            out += unit.statements
    return out


class Scheduler:
    """Turns one nest into statements."""

    def __init__(self, nest: Nest):
        self.nest = nest
        self.b = nest.b
        self.abreast = 1  # blocks of a sum that are added up side by side

    def run(self) -> list[Statement]:
        nest = self.nest
        turned = by_functions(nest)
        if turned is not None:
            return self._divisible(turned)
        vector, width, rows = nest.vector, nest.width, nest.rows
        outer, in_inner = list(nest.outer), vector in nest.inner
        if vector is not None and nest.inner and rows is None:
            times = self._unrolling(vector, width, nest.inner_work(), 4 if in_inner else 1)
            width *= times
            if not in_inner:
                self.abreast = self._blocks_abreast(times, nest.inner_work())
        if vector is not None and not nest.inner and rows is None:
            width *= self._side_by_side(vector, width)
        if not (in_inner and rows is not None):
            outer = self._shared_first(outer, vector, width, rows, nest.abreast)
        nest = self.nest
        vector, rows = nest.vector, nest.rows
        body = self._passes(nest.outer, nest.inner, vector if in_inner else None, width if in_inner else 1)
        for v in reversed(outer):
            if v is vector:
                body = [self._loop(v, body, LoopKind.VECTOR, width)]
            elif v is rows:
                body = [self._loop(v, body, LoopKind.JAM, nest.abreast)]
            elif v is nest.columns:
                body = [self._loop(v, body, LoopKind.JAM, nest.size(v))]
            else:
                body = [self._loop(v, body)]
        return self._divisible(body)

    def _unrolling(self, vector: Expr, width: int, work: int, steps: int) -> int:
        """How many vectors a step of a reduction takes: enough that their chains of additions overlap, in registers.
        Along the vector, so that several `steps` remain, whose sums are folded in the end."""
        size = self.nest.size(vector)
        times, most = 1, self._most_chains()
        if not is_avx512(self.b.vector_bytes) and any(
                isinstance(m.op, Reduce) and m.op.name == "fold" for m in self.nest.members):
            return 1  # what chooses does so by masks, which have no registers: those of one vector are vectors
        while times < most and times * work < REGISTERS and size >= (steps * times + (steps == 1)) * width:
            step = 2 * times * width
            if (-size % step - (-size % width) * (steps == 1)) * 8 > size:  # too many idle lanes at the end
                break
            times *= 2
        return times

    def _most_chains(self) -> int:
        """How many vectors of a step leave registers for what they are folded with: extrema of floats compare and
        choose, too, so that NaNs stay."""
        extrema = any(isinstance(m.op, Reduce) and m.op.name in ("max", "min") and any(
            t.dtype.kind == "f" for t in m.op.targets) for m in self.nest.members)
        return UNROLL // 2 if extrema and not is_avx512(self.b.vector_bytes) else UNROLL

    def _side_by_side(self, vector: Expr, width: int) -> int:
        """How many vectors a loop computes side by side, where each is a long chain of instructions that wait for one
        another: processors look less far ahead than to the next vector's chain, or only to where it begins. What has
        few vectors would gain less than the longer code costs."""
        chain = max([COSTS.get(n.op, 1) for n in self.nest.nodes()], default=0)
        if chain < CHAIN:
            return 1
        size, total = self.nest.size(vector), self.nest.elements
        ways = SIDE_BY_SIDE[is_avx512(self.b.vector_bytes)]
        return next((times for times, longest, least in ways if chain <= longest and total >= least
                     and (-size % (times * width) - -size % width) * 8 <= size), 1)

    def _blocks_abreast(self, times: int, work: int) -> int:
        """How many blocks of a sum are added up side by side, where a step takes so few vectors that each addition
        would wait for the one before."""
        size = self.nest.size(self.nest.inner[-1])
        count = CHAINS // times
        while count > 1 and (size % count or size < count * SHORTEST or count * times * work > 2 * REGISTERS):
            count //= 2
        return max(count, 1)

    def _loop(self, v: Expr, body: list[Statement], kind: LoopKind = LoopKind.SERIAL, width: int = 1) -> Loop:
        return Loop(v, unwrap(self.b.extents[v]), body, kind, width)

    def _divisible(self, body: list[Statement]) -> list[Statement]:
        """A nest whose outermost loop says what its iterations cost."""
        if len(body) != 1 or not isinstance(body[0], Loop):
            return body
        nest, loop = self.nest, body[0]
        turns = nest.size(loop.var)
        lanes = loop.width if loop.kind is LoopKind.VECTOR else 1
        work = max(1, nest.elements // max(turns, 1) * lanes // nest.width)
        return [loop.replace(work=work, divisible=self._divided(turns))]

    def _divided(self, turns: int) -> int:
        """The estimated instructions of so many turns, which threads may share."""
        nest = self.nest
        total = (nest.elements + nest.overhead()) // max(turns, 1) * turns
        return total * (2 if nest.width > 1 else 1) // nest.width

    def _shared_first(self, outer: list[Expr], vector: Expr | None, width: int, rows: Expr | None,
                      count: int) -> list[Expr]:
        """The outer loops with one outermost that has enough steps for threads to share evenly, if there is one: the
        first two coalesced, the first with strips of the second, or another one moved."""
        def steps(v: Expr) -> int:
            return self.nest.size(v) // (width if v is vector else count if v is rows else 1)

        if len(outer) < 2 or steps(outer[0]) >= EVEN_SHARES or self._divided(1) < THREADED:
            return outer
        first, second, *others = outer
        if {first, second}.isdisjoint((vector, rows, self.nest.columns)) and (
                steps(first) * steps(second) >= EVEN_SHARES) and not self._asked({first, second}):
            b, size = self.b, self.nest.size(second)
            both = b.loop_var(self.nest.size(first) * size)
            parts = {first: b.floordiv(both, size), second: b.floormod(both, size)}
            outer = [both, *others]
            self.nest = self.nest.rewritten(parts).replace(outer=outer)
            return outer
        if not self._asked({first, second}) and first not in (vector, rows, self.nest.columns):
            grain = self.nest.size(second) // max(steps(second), 1)
            strips = self._strips(steps(first), self.nest.size(second), grain)
            if strips:
                b, length = self.b, self.nest.size(second) // strips
                both, inside = b.loop_var(self.nest.size(first) * strips), b.loop_var(length)
                start = b.imul(b.floormod(both, strips), length)
                parts = {first: b.floordiv(both, strips), second: b.iadd(start, inside)}
                chosen = {role: inside for role in ("vector", "rows", "columns") if getattr(self.nest, role) is second}
                outer = [both, inside, *others]
                self.nest = self.nest.rewritten(parts).replace(outer=outer, **chosen)
                return outer
        # The outermost of those that have: to move an inner one would be to turn the order in which memory is walked.
        best = next((v for v in outer if v is not vector and steps(v) >= EVEN_SHARES), outer[0])
        return [best, *(v for v in outer if v is not best)]

    def _strips(self, steps: int, size: int, grain: int) -> int:
        """Into how many strips of equal length, with whole steps of `grain`, a loop is cut for so many of another to
        have enough together; 0 if there are no such."""
        counts = range(-(-EVEN_SHARES // max(steps, 1)), EVEN_SHARES + 1)
        return next((n for n in counts if size % (n * grain) == 0 and size > n * grain), 0)

    def _asked(self, loops: set[Expr]) -> bool:
        """Whether conditions on indices, after which later passes cut loops, or lengths ask for some variables."""
        nest = self.nest
        lengths = [unwrap(self.b.extents[v]) for v in (*nest.outer, *nest.inner)]
        if any(not isinstance(unwrap(self.b.extents[v]), int) for v in loops):
            return True
        conditions = [n for n in nest.nodes() if n.op in COMPARISONS and n.args[0].dtype is INDEX]
        return any(_counted(n, loops) for n in conditions) or any(
            loops & n.deps for n in lengths if isinstance(n, Expr))

    def _passes(self, outer: Sequence[Expr], inner: Sequence[Expr], vector: Expr | None,
                width: int) -> list[Statement]:
        """The body of the outer loops: passes over the inner ones, and what comes between."""
        if not inner:
            return [s for m in self.nest.members for s in self._stores(m)]
        inner, vector, outside = self._in_blocks(inner, vector, width)
        out: list[Statement] = []
        for phase in sorted({m.phase for m in self.nest.members}):
            members = [m for m in self.nest.members if m.phase == phase]
            if not members[0].inner:
                out += [s for m in members for s in self._stores(m)]
                continue
            accumulators: list[Open] = []
            blocks: list[tuple[Accumulator, Accumulator]] = []  # sums, and the sums of blocks that they add up
            body: list[Statement] = []
            for m in members:
                if isinstance(m.op, Reduce):
                    acc = Accumulator(m.op.targets, m.op.initial, m.op.combine, m.op.name)
                    block = self._block_of(acc) if outside and _rounds(m.op) else acc
                    accumulators.append(Open(acc, width if block is acc else 1))
                    if block is not acc:
                        blocks.append((acc, block))
                    body.append(Fold(block, m.op.values))
                else:
                    body += self._stores(m)
            for position, v in reversed(list(enumerate(inner))):
                if v is vector:
                    body = [self._loop(v, body, LoopKind.VECTOR, width)]
                elif self.abreast > 1 and position == outside - 1:
                    body = [self._loop(v, body, LoopKind.JAM, self.abreast)]
                else:
                    body = [self._loop(v, body)]
                if position == outside:
                    body = [*(Open(block, width) for _, block in blocks), *body, *(Close(block) for _, block in blocks),
                            *(Fold(acc, block.targets) for acc, block in blocks)]
            out += accumulators
            out += body
            out += [Close(opened.accumulator) for opened in accumulators]
            for m in members:
                if isinstance(m.op, Reduce):
                    out += [Store(buf, place, value) for buf, place, value in m.op.stores if buf not in self.nest.dead]
        return out

    def _in_blocks(self, inner: Sequence[Expr], vector: Expr | None,
                   width: int) -> tuple[list[Expr], Expr | None, int]:
        """The inner loops with one cut in two where a sum would add up more than `BLOCK` numbers one after the other:
        errors grow with the length of such a chain. Also the vector loop, and how many loops run over whole blocks."""
        loops = list(inner)
        if not any(isinstance(m.op, Reduce) and _rounds(m.op) for m in self.nest.members):
            self.abreast = 1
            return loops, vector, 0
        room = BLOCK
        if self.abreast > 1:
            room = min(room, self.nest.size(loops[-1]) // self.abreast)
        for at, v in reversed(list(enumerate(loops))):
            steps = -(-self.nest.size(v) // width) if v is vector else self.nest.size(v)
            if steps <= room:
                room //= max(steps, 1)
                continue
            if room <= 1:  # the loops inside are a block
                return loops, vector, at + 1
            extent = self.b.index(self.b.extents[v])
            unit = width if v is vector else 1
            whole = (n for n in range(room, room // 2, -1)
                     if extent.op == "const" and extent.attr % (n * unit * self.abreast) == 0)
            found = next(whole, None)
            if found is None:
                self.abreast = 1  # (blocks of several lengths do not stand side by side)
            size = (found or room) * unit
            block = self.b.loop_var(unwrap(self.b.floordiv(self.b.iadd(extent, size - 1), size)), "r")
            start = self.b.imul(block, size)
            divides = extent.op == "const" and extent.attr % size == 0
            low = self.b.loop_var(size if divides else self.b.min(self.b.int(size), self.b.isub(extent, start)), "r")
            self.nest = self.nest.rewritten({v: self.b.iadd(start, low)})
            loops[at:at + 1] = [block, low]
            return loops, low if v is vector else vector, at + 1
        return loops, vector, 0

    def _block_of(self, acc: Accumulator) -> Accumulator:
        """An accumulator for the sum of a block."""
        targets = [self.b.mutable(t.dtype, "a") for t in acc.targets]
        return Accumulator(targets, [self.b.const(-0.0, t.dtype) for t in targets], acc.combine, acc.name)

    def _stores(self, m: Member) -> list[Statement]:
        assert isinstance(m.op, Point)
        return [Store(m.op.buffer, m.op.place, m.op.value)]


def _rounds(op: Reduce) -> bool:
    """Whether a reduction is a sum with rounding errors."""
    return op.name == "add" and all(t.dtype.kind not in "iub" for t in op.targets)


def _counted(e: Expr, loops: set[Expr]) -> bool:
    """Whether an expression is made of the variables of some loops, and not only of what lies in memory there."""
    return not loops.isdisjoint(e.deps) and (
        e in loops or e.op not in LOADS and any(_counted(a, loops) for a in e.args))
