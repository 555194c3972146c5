"""From groups to loops: which loop is the vector, which one the threads share, in what order they run.

Before, and after:

    group[i0; r0]:
      inner 0: reduce[i0; r0] a0 add= arg0[(30*i0 + r0)] from 0.0:float32
      inner 0:   t0[i0] = a0
      inner 2: point[i0, r0] out0[(30*i0 + r0)] = div(arg0[(30*i0 + r0)], a0)

    for i0 < 20 cost(450):
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

from ..ir.expr import COSTS, INDEX, Expr, Index, coefficient, unwrap, walk
from ..ir.loopir import Accumulator, Buffer, BufferKind, Close, Fold, Let, Loop, LoopKind, Open, Statement, Store
from ..ir.values import Define, Point, Reduce
from ..lowering.builder import Builder
from ..program import Program
from .fuse import Branching, Group, Member, Unit, buffers_read, operation_exprs

UNROLL = 8  # vectors that one step of a reduction takes, at most
REGISTERS = 24  # estimated instructions of a step, times vectors, that registers can hold
ROWS_AT_ONCE = 4  # rows that a reduction along the vector folds side by side
CHEAP_ELEMENT = 6  # estimated instructions of one element up to which that pays
BLOCK = 128  # numbers that a sum adds up one after the other
EVEN_SHARES = 12  # steps of a loop that threads can share evenly


def run(program: Program) -> Program:
    """units → statements: loops, and which of them are vectors."""
    units = program.units or ()
    return program.replace(statements=_statements(program, units, buffers_read(units, program.placement.aliases)))


def _statements(program: Program, units: Sequence[Unit], read: set[Buffer | Expr]) -> list[Statement]:
    out: list[Statement] = []
    for unit in units:
        if isinstance(unit, Group):
            dead = {w for w in unit.writes if w.kind is BufferKind.TEMP and w not in read}
            out += Scheduler(program.builder, program.vector_bytes, dead).run(unit)
        elif isinstance(unit, Branching):
            out += unit.region.build([_statements(program, block, read) for block in unit.blocks])
        elif isinstance(unit, Define):
            out += [Let(t, v) for t, v in zip(unit.targets, unit.values, strict=True)]
        else:
            out += unit.statements
    return out


class Scheduler:
    """Turns one group into statements."""

    def __init__(self, b: Builder, vector_bytes: int, dead: set):
        self.b = b
        self.vector_bytes = vector_bytes
        self.dead = dead  # buffers that nobody reads: their stores are left out

    def run(self, group: Group) -> list[Statement]:
        members = [m for m in group.members if not self._is_dead(m)]
        if not members:
            return []
        self.members = members
        outer, inner = list(group.outer), list(group.inner)
        self._split_loops(outer, inner)
        self._collapse(outer)
        self._collapse(inner)
        return self._nest(outer, inner)

    def _is_dead(self, m: Member) -> bool:
        return isinstance(m.op, Point) and m.op.buffer in self.dead

    # -- rewriting loops ---------------------------------------------------------------------------
    def _rewrite(self, mapping: dict[Expr, Expr]) -> None:
        memo: dict[Expr, Expr] = {}
        sub = lambda e: self.b.arena.substitute(e, mapping, memo)

        def rewritten(op: Point | Reduce) -> Point | Reduce:
            if isinstance(op, Point):
                return Point(op.vars, op.buffer, sub(op.place), sub(op.value))
            return Reduce(op.outer, op.ranges, op.targets, op.initial, op.combine, op.name, list(map(sub, op.values)),
                          [(buf, sub(place), sub(value)) for buf, place, value in op.stores])

        self.members = [Member(rewritten(m.op), m.phase, m.inner) for m in self.members]

    def _exprs(self) -> list[Expr]:
        out: list[Expr] = []
        for m in self.members:
            out.extend(operation_exprs(m.op))
            if isinstance(m.op, Reduce):
                for _, place, value in m.op.stores:
                    out += [place, value]
        return out

    def _split_loops(self, *loops: list[Expr]) -> None:
        """A loop whose variable is divided by a divisor of its extent becomes two: x = high·d + low."""
        for _ in range(8):
            found = None
            every = {v for group in loops for v in group}
            for n in walk(self._exprs()):
                if n.op in ("floordiv", "floormod") and n.args[1].op == "const":
                    x, d = n.args[0], n.args[1].attr
                    if x in every and isinstance(self.b.extents[x], int) and self.b.extents[x] % d == 0:
                        found = (x, d)
                        break
            if found is None:
                return
            x, d = found
            high = self.b.loop_var(self.b.extents[x] // d)  # type: ignore[operator]
            low = self.b.loop_var(d)
            self._rewrite({x: self.b.iadd(self.b.imul(high, d), low)})
            for group in loops:
                if x in group:
                    at = group.index(x)
                    group[at:at + 1] = [high, low]

    def _collapse(self, loops: list[Expr]) -> None:
        """Adjacent loops that every access walks as one become one."""
        if len(loops) < 2:
            return
        indices, opaque = self._accesses()
        i = len(loops) - 2
        while i >= 0:
            a, c = loops[i], loops[i + 1]
            extent = self.b.extents[c]
            if a not in opaque and c not in opaque and all(
                    self._walks_as_one(e, a, c, extent) for e in indices if a in e.deps or c in e.deps):
                merged = self.b.loop_var(self.b.product((self.b.extents[a], extent)))
                self._rewrite({a: self.b.int(0), c: merged})
                loops[i:i + 2] = [merged]
                indices, opaque = self._accesses()
            i -= 1

    def _accesses(self) -> tuple[set[Expr], set[Expr]]:
        """All places of loads and stores, and the loop variables that are also used otherwise."""
        indices: set[Expr] = set()
        opaque: set[Expr] = set()
        roots: list[Expr] = []
        for m in self.members:
            if isinstance(m.op, Point):
                indices.add(m.op.place)
                roots.append(m.op.value)
            else:
                roots.extend(m.op.values)
                for _, place, value in m.op.stores:
                    indices.add(place)
                    roots.append(value)
        for n in walk(roots):
            if n.op == "load":
                indices.add(n.args[0])
            elif n.op != "poly":
                for a in n.args:
                    if a.op == "var":
                        opaque.add(a)
                    elif a.op == "poly":
                        opaque.update(t for t in a.args if t.op == "var")
        return indices, opaque

    def _walks_as_one(self, e: Expr, a: Expr, c: Expr, extent: Index) -> bool:
        ca, cc = coefficient(self.b.arena, e, a), coefficient(self.b.arena, e, c)
        return ca is not None and cc is not None and ca is self.b.imul(cc, extent)

    # -- choosing ----------------------------------------------------------------------------------
    def _choose_vector(self, outer: Sequence[Expr], inner: Sequence[Expr]) -> Expr | None:
        """The loop whose steps are contiguous in the most accesses."""
        indices, _ = self._accesses()
        best, best_score = None, -1.0
        for v in (*self._alike(outer, inner), *inner):
            size = self._size(v)
            score = 0.0
            for e in indices:
                if v not in e.deps:
                    score += 0.5
                    continue
                c = coefficient(self.b.arena, e, v)
                if c is not None and c.op == "const" and c.attr == 1:
                    score += 2
                elif c is None or c.op != "const" or c.attr != 0:
                    score -= 2
            if size < 8:
                score *= 0.5 if score > 0 else 1
                score -= 1
            if v in inner:
                score -= 0.1  # across-lane folding costs a little; P lanes are free
            if score >= best_score or best is None:
                best, best_score = v, score
        extent = None if best is None else self.b.extents[best]
        return None if isinstance(extent, int) and extent < 2 else best

    def _alike(self, outer: Sequence[Expr], inner: Sequence[Expr]) -> list[Expr]:
        """The outer loops whose iterations can be lanes or rows: the extents inside are the same in each."""
        extents = [unwrap(self.b.extents[v]) for v in inner]
        return [v for v in outer if not any(isinstance(e, Expr) and v in e.deps for e in extents)]

    def _width(self, vector: Expr) -> int:
        """The lanes of a vector: as many as a register has, or fewer where the loop is short. A mask would cost more:
        the processor does not hand what was stored under a mask straight to the loads that follow."""
        size = 4
        for n in walk(self._exprs()):
            if n.dtype.itemsize == 8 and n.dtype.kind == "f" or n.op in ("load",) and n.dtype.itemsize == 8:
                size = 8
        width = max(self.vector_bytes // size, 1)
        while width > 1 and width // 2 >= self._size(vector):
            width //= 2
        return width

    def _unrolling(self, vector: Expr, width: int, work: int, steps: int) -> int:
        """How many vectors a step of a reduction takes: enough that their chains of additions overlap, in registers.
        Along the vector, so that several `steps` remain, whose sums are folded in the end."""
        size = self._size(vector)
        times = 1
        while times < UNROLL and times * work < REGISTERS and size >= (steps * times + (steps == 1)) * width:
            step = 2 * times * width
            if (-size % step - (-size % width) * (steps == 1)) * 8 > size:  # too many idle lanes at the end
                break
            times *= 2
        return times

    def _work(self) -> int:
        """Estimated instructions of one innermost iteration."""
        seen: set[Expr] = set()
        cost = 1
        for n in walk(self._exprs()):
            if n not in seen:
                seen.add(n)
                cost += COSTS.get(n.op, 1)
        return cost

    # -- building ------------------------------------------------------------------------------------
    def _nest(self, outer: list[Expr], inner: list[Expr]) -> list[Statement]:
        vector = self._choose_vector(outer, inner)
        width = self._width(vector) if vector is not None else 1
        outer = self._ordered(outer, vector)
        inner = self._ordered(inner, vector)
        work = self._work()
        total = self._count(outer) * self._count(inner) * work
        in_inner = vector in inner
        rows, count = None, 1
        if vector is not None and not inner:
            rows, count = self._choose_transposed(outer, vector, width), width
            if rows is not None:
                outer = [v for v in outer if v is not rows and v is not vector] + [rows, vector]
        if vector is not None and inner:
            if not in_inner:
                rows, count = self._choose_blocked(self._alike(outer, inner), vector, width)
            else:
                several = self._choose_multi_row(self._alike(outer, inner), vector)
                if several is not None:
                    return self._multi_row_reduction(outer, inner, several, vector, width, total)
            if rows is not None:
                outer = [v for v in outer if v is not rows and v is not vector] + [rows, vector]
                width *= 2 if self._size(vector) % (2 * width) == 0 or self._size(vector) >= 8 * width else 1
            else:
                width *= self._unrolling(vector, width, work, 4 if in_inner else 1)
        outer = self._shared_first(outer, vector, width, rows, count)
        body = self._passes(outer, inner, vector if in_inner else None, width if in_inner else 1)
        for v in reversed(outer):
            if v is vector:
                body = [self._loop(v, body, LoopKind.VECTOR, width)]
            elif v is rows:
                body = [self._loop(v, body, LoopKind.JAM, count)]
            else:
                body = [self._loop(v, body)]
        return self._divisible(body, total, width)

    def _loop(self, v: Expr, body: list[Statement], kind: LoopKind = LoopKind.SERIAL, width: int = 1) -> Loop:
        return Loop(v, unwrap(self.b.extents[v]), body, kind, width)

    def _divisible(self, nest: list[Statement], total: int, width: int) -> list[Statement]:
        """A nest whose outermost loop says what its iterations cost. `total`: estimated instructions of all, without
        lanes, of which there are `width`."""
        if len(nest) != 1 or not isinstance(nest[0], Loop):
            return nest
        loop = nest[0]
        each = total // max(self._size(loop.var), 1)
        work = max(1, each // (1 if loop.kind is LoopKind.VECTOR else width))
        return [loop.replace(work=work, divisible=each * self._size(loop.var) * (2 if width > 1 else 1) // width)]

    def _choose_multi_row(self, outer: Sequence[Expr], vector: Expr) -> Expr | None:
        """For reductions along the vector: an outer loop several of whose iterations can be folded side by
        side, sharing what does not depend on it and keeping several streams of memory busy."""
        exprs = self._exprs()
        if any(not m.inner or m.phase or not isinstance(m.op, Reduce) for m in self.members):
            return None
        if any(n.op not in ("load", "poly") and any(a.dtype is INDEX for a in n.args) for n in walk(exprs)):
            return None
        loads = [n for n in walk(exprs) if n.op == "load"]
        if len(loads) < 2 or any(n.attr[1] is not None for n in loads) or self._work() > CHEAP_ELEMENT:
            return None
        for u in reversed(outer):
            if self._size(u) < 2 * ROWS_AT_ONCE:
                continue
            shared = 0
            for n in loads:
                cu, cv = coefficient(self.b.arena, n.args[0], u), coefficient(self.b.arena, n.args[0], vector)
                if cu is None or cv is None or cv.op != "const" or cv.attr not in (0, 1):
                    break
                shared += u not in n.args[0].deps
            else:
                if shared:
                    return u
        return None

    def _multi_row_reduction(self, outer: Sequence[Expr], inner: Sequence[Expr], rows: Expr, vector: Expr, width: int,
                 total: int) -> list[Statement]:
        """The nest of a reduction along the vector that folds several iterations of `rows` side by side."""
        width *= 2 if self._size(vector) >= 8 * width else 1
        whole = self._passes(outer, inner, vector, width)
        body: list[Statement] = [self._loop(rows, whole, LoopKind.JAM, ROWS_AT_ONCE)]
        for v in reversed([v for v in outer if v is not rows]):
            body = [self._loop(v, body)]
        return self._divisible(body, total, width)

    def _shared_first(self, outer: list[Expr], vector: Expr | None, width: int, rows: Expr | None,
                      count: int) -> list[Expr]:
        """The outer loops with one outermost that has enough steps for threads to share evenly, if there is one."""
        def steps(v: Expr) -> int:
            return self._size(v) // (width if v is vector else count if v is rows else 1)

        if len(outer) < 2 or steps(outer[0]) >= EVEN_SHARES:
            return outer
        best = max((v for v in outer if v is not vector), key=steps)
        return [best] + [v for v in outer if v is not best] if steps(best) >= EVEN_SHARES else outer

    def _choose_transposed(self, outer: Sequence[Expr], vector: Expr, width: int) -> Expr | None:
        """The loop that some load is contiguous in while the vector loop strides through it: square tiles of both are
        transposed in registers."""
        exprs = self._exprs()
        if any(COSTS.get(n.op, 1) > 1 or n.op in ("guard", "floordiv", "floormod") or n.op == "load"
               and n.attr[1] is not None
               for n in walk(exprs)) or self._size(vector) < width:
            return None
        indices, opaque = self._accesses()
        if vector in opaque:
            return None
        for u in outer:
            if u is vector or u in opaque or self._size(u) < width:
                continue
            turned = False
            for e in indices:
                cu, cv = coefficient(self.b.arena, e, u), coefficient(self.b.arena, e, vector)
                if cu is None or cv is None:
                    break
                along, across = cu.attr if cu.op == "const" else None, cv.attr if cv.op == "const" else None
                if along == 1 and across not in (0, 1):
                    turned = True
                elif across not in (0, 1):
                    break
            else:
                if turned:
                    return u
        return None

    def _choose_blocked(self, outer: Sequence[Expr], vector: Expr, width: int) -> tuple[Expr | None, int]:
        """A second outer loop to tile with the vector loop: one that lets what is read be used several times.

        Returns the loop and how many of its iterations to hold in registers at once.
        """
        if self._size(vector) < 4 or any(not isinstance(m.op, Reduce) and m.inner for m in self.members):
            return None, 1
        loads = [n for n in walk(self._exprs()) if n.op == "load"]
        if len(loads) < 2 or any(n.attr[1] is not None for n in loads):
            return None, 1
        for n in walk(self._exprs()):
            if n.op != "load" and n.op != "poly" and any(a.dtype is INDEX for a in n.args):
                return None, 1  # indices used as values, guards: not worth a tile
        best, best_score = None, (0, 0)
        for u in outer:
            if u is vector or self._size(u) < 2:
                continue
            reuse = reach = 0
            for n in loads:
                place = n.args[0]
                cu = coefficient(self.b.arena, place, u)
                cv = coefficient(self.b.arena, place, vector)
                if cu is None or cv is None or cv.op != "const" or cv.attr not in (0, 1):
                    break
                if u not in place.deps:
                    reuse += 1
                reach += abs(cu.attr) if cu.op == "const" else 1 << 20
            else:
                if reuse and (reuse, -reach) > best_score or best is None and reuse:
                    best, best_score = u, (reuse, -reach)
        if best is None:
            return None, 1
        size = self._size(best)
        count = size if size <= 8 else min((8, 6, 4), key=lambda t: (size % t, -t))
        return best, count

    def _size(self, v: Expr) -> int:
        extent = unwrap(self.b.extents[v])
        return extent if isinstance(extent, int) else min(extent.bounds[1], 1 << 20)

    def _count(self, loops: Sequence[Expr]) -> int:
        n = 1
        for v in loops:
            n *= self._size(v)
        return n

    def _ordered(self, loops: Sequence[Expr], vector: Expr | None) -> list[Expr]:
        """Loops by falling stride of what is stored and read; the vector loop innermost."""
        indices, _ = self._accesses()

        def stride(v: Expr) -> float:
            total = 0.0
            for e in indices:
                c = coefficient(self.b.arena, e, v)
                if c is None:
                    total += 8
                elif c.op == "const":
                    total += min(abs(c.attr), 1 << 20)
                else:
                    total += 1 << 10
            return total

        order = sorted((v for v in loops if v is not vector), key=stride, reverse=True)
        return order + ([vector] if vector in loops else [])  # type: ignore[list-item]

    def _passes(self, outer: Sequence[Expr], inner: Sequence[Expr], vector: Expr | None,
                width: int) -> list[Statement]:
        """The body of the outer loops: passes over the inner ones, and what comes between."""
        if not inner:
            return [s for m in self.members for s in self._stores(m)]
        inner, vector, outside = self._in_blocks(inner, vector, width)
        out: list[Statement] = []
        for phase in sorted({m.phase for m in self.members}):
            members = [m for m in self.members if m.phase == phase]
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
                body = [self._loop(v, body, LoopKind.VECTOR, width) if v is vector else self._loop(v, body)]
                if position == outside:
                    body = [*(Open(block, width) for _, block in blocks), *body, *(Close(block) for _, block in blocks),
                            *(Fold(acc, block.targets) for acc, block in blocks)]
            out += accumulators
            out += body
            out += [Close(opened.accumulator) for opened in accumulators]
            for m in members:
                if isinstance(m.op, Reduce):
                    out += [Store(buf, place, value) for buf, place, value in m.op.stores if buf not in self.dead]
        return out

    def _in_blocks(self, inner: Sequence[Expr], vector: Expr | None,
                   width: int) -> tuple[list[Expr], Expr | None, int]:
        """The inner loops with one cut in two where a sum would add up more than `BLOCK` numbers one after the other:
        errors grow with the length of such a chain. Also the vector loop, and how many loops run over whole blocks."""
        loops = list(inner)
        if not any(isinstance(m.op, Reduce) and _rounds(m.op) for m in self.members):
            return loops, vector, 0
        room = BLOCK
        for at, v in reversed(list(enumerate(loops))):
            steps = -(-self._size(v) // width) if v is vector else self._size(v)
            if steps <= room:
                room //= max(steps, 1)
                continue
            if room <= 1:  # the loops inside are a block
                return loops, vector, at + 1
            extent = self.b.index(self.b.extents[v])
            unit = width if v is vector else 1
            whole = (n for n in range(room, room // 2, -1) if extent.op == "const" and extent.attr % (n * unit) == 0)
            size = next(whole, room) * unit
            block = self.b.loop_var(unwrap(self.b.floordiv(self.b.iadd(extent, size - 1), size)), "r")
            start = self.b.imul(block, size)
            divides = extent.op == "const" and extent.attr % size == 0
            low = self.b.loop_var(size if divides else self.b.min(self.b.int(size), self.b.isub(extent, start)), "r")
            self._rewrite({v: self.b.iadd(start, low)})
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
