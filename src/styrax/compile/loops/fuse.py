"""Grouping operations into nests that share their loops.

A group runs over outer loops P and, inside, loops I. Its members are *inner* (they run over P×I: stores and the
folding of reductions) or *outer* (they run over P only: what is computed from finished reductions). Members have a
phase: even phases are passes over I, odd ones the epilogue of the pass before and prologue of the next. A row that is
normalised by its maximum and its sum is one group with three passes. Before, and after:

    reduce[i0; r0] a0 add= arg0[(30*i0 + r0)] from 0.0:float32
      t0[i0] = a0
    point[i2, i3] out0[(30*i2 + i3)] = div(arg0[(30*i2 + i3)], t0[i2])

    group[i0; r0]:
      inner 0: reduce[i0; r0] a0 add= arg0[(30*i0 + r0)] from 0.0:float32
      inner 0:   t0[i0] = a0
      inner 2: point[i0, r0] out0[(30*i0 + r0)] = div(arg0[(30*i0 + r0)], a0)

The place of the sum, `t0`, is not read any more: the scheduler leaves its store out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

from ..costs import HORIZONTAL, WORTH_REPEATING, computing
from ..ir.expr import INDEX, Expr, coefficient, poly_terms, show
from ..ir.loads import copied, loads_of
from ..ir.loopir import Buffer, BufferKind, Call, Copy, statements
from ..ir.placement import Aliases, root
from ..ir.values import Define, Opaque, Operation, Point, Reduce, Region, row_major
from ..lowering.builder import Builder
from ..program import Program
from .uses import loaded_buffers, loads, operation_exprs, uses

if TYPE_CHECKING:
    from .nest import Nest

PRIVATE = BufferKind.TEMP, BufferKind.SCRATCH
LANES = 8  # of results that are worth a vector
STEP = 64  # elements that a step of a vectorised reduction takes: several vectors
COMPARED = 4  # reads of a buffer that another's is compared with, to walk it together
LARGE = 2048  # estimated instructions of a group: LLVM's time grows faster than the length of a loop's body
WORTH_TURNING = 1 << 14  # elements that are computed in one nest and turned in another rather than scattered
LOOKBACK = 12  # groups back to where an operation may join one that merely reads the same memory; results may farther


def run(program: Program) -> Program:
    """operations → units: groups, and what is left alone. What nobody reads is left out."""
    aliases = dict(program.placement.aliases)
    units = _fuse_block(program.builder, drop_dead(program.operations or (), set(), aliases), aliases)
    return program.replace(units=units, placement=program.placement._replace(aliases=aliases))


class Member:
    """An operation in a group, expressed in the group's loop variables."""

    __slots__ = ("op", "phase", "inner")

    def __init__(self, op: Point | Reduce, phase: int, inner: bool):
        self.op = op
        self.phase = phase
        self.inner = inner


class Group:
    """Operations over common loops: `outer` P and `inner` I. What is read and written is said by buffers that have
    their own memory, as everywhere in this pass."""

    __slots__ = ("outer", "inner", "members", "reads", "writes", "stored", "unshared", "finished", "scalars", "places",
                 "size")

    def __init__(self, op: Point | Reduce, aliases: Aliases):
        self.members: list[Member] = []
        self.size = computing(operation_exprs(op))  # estimated instructions for each element, of what has joined
        self.reads: set[Buffer] = set()
        self.writes: set[Buffer] = set()
        self.stored: dict[Buffer, Member] = {}  # buffer -> the Point that stores it
        self.unshared: set[Buffer] = set()  # stored by Points in parts, or that update what stands there
        self.finished: dict[Buffer, tuple[Member, Expr, Expr]] = {}  # buffer of a reduction -> (member, place, value)
        self.scalars: set[Expr] = set()
        self.places: dict[Buffer, list[Expr]] = {}  # where a buffer is read, of the first few
        if isinstance(op, Point):
            self.outer: tuple[Expr, ...] = op.vars
            self.inner: tuple[Expr, ...] = ()
        else:
            self.outer = op.outer
            self.inner = op.ranges
        self.add(Member(op, -1 if isinstance(op, Point) else 0, isinstance(op, Reduce)), aliases)

    def add(self, member: Member, aliases: Aliases) -> None:
        self.members.append(member)
        op = member.op
        for e in operation_exprs(op):
            self.reads |= loaded_buffers(e, aliases)
        for n in loads(op):
            places = self.places.setdefault(root(aliases, n.attr[0]), [])
            if len(places) < COMPARED:
                places.append(n.args[0])
        if isinstance(op, Point):
            self.writes.add(op.buffer)
            self.stored[op.buffer] = member
            if op.whole is not None or op.buffer in loaded_buffers(op.value, aliases):
                self.unshared.add(op.buffer)
        else:
            for buffer, place, value in op.stores:
                self.writes.add(buffer)
                self.finished[buffer] = (member, place, value)
            self.scalars.update(op.targets)

    def lines(self) -> list[str]:
        loops = f"[{', '.join(map(show, self.outer))}; {', '.join(map(show, self.inner))}]"
        return [f"group{loops}:", *(
            f"  {'inner' if m.inner else 'outer'} {m.phase}: {line}" for m in self.members for line in m.op.lines())]


class Branching:
    """A region, with the units of its blocks."""

    __slots__ = ("region", "blocks")

    def __init__(self, region: Region, blocks: list[list[Unit]]):
        self.region = region
        self.blocks = blocks

    def lines(self) -> list[str]:
        out = ["region:"]
        for block in self.blocks:
            out += ["  block:", *("    " + line for unit in block for line in unit.lines())]
        return out


Unit: TypeAlias = "Group | Nest | Branching | Define | Opaque"


def leaves(units: Sequence[Unit]) -> Iterator[Unit]:
    """The units, and of regions those of their blocks."""
    for unit in units:
        if isinstance(unit, Branching):
            for block in unit.blocks:
                yield from leaves(block)
        else:
            yield unit


def _fuse_block(b: Builder, ops: Sequence[Operation], aliases: dict[Buffer, Buffer]) -> list[Unit]:
    """Groups the operations of a block, and of the blocks inside it. Notes in `aliases` what is stored already."""
    out: list[Unit] = []
    for unit in Fuser(b, aliases).run(hoisted(ops, aliases)):
        if isinstance(unit, Region):
            out.append(Branching(unit, [_fuse_block(b, block, aliases) for block in unit.blocks]))
        else:
            out.append(unit)  # type: ignore[arg-type]
    return out


def hoisted(ops: Sequence[Operation], aliases: Aliases) -> Sequence[Operation]:
    """The operations of a block with each scalar as early as it can be had, so that none stands between operations that
    might share loops."""
    if not any(isinstance(op, Define) for op in ops):
        return ops
    behind: list[list[Operation]] = [[] for _ in range(len(ops) + 1)]  # behind each place, the first before all
    written: dict[Buffer | Expr, int] = {}
    for place, op in enumerate(ops, 1):
        reads, writes = uses(op, aliases)
        if isinstance(op, Define) and op.fresh:
            place = max([written.get(r, 0) for r in reads], default=0)
        behind[place].append(op)
        for w in writes:
            written[w] = place
    return [op for block in behind for op in block]


def _another_part(group: Group, op: Point | Reduce) -> bool:
    """Whether an operation stores a part of what members of the group store other parts of."""
    if not isinstance(op, Point) or op.whole is None or op.buffer not in group.stored:
        return False
    return group.stored[op.buffer].op.whole is op.whole  # type: ignore[union-attr]


def drop_dead(ops: Sequence[Operation], used: set[Buffer | Expr], aliases: Aliases) -> list[Operation]:
    """Leaves out operations whose temporary results nobody reads, but for calls, which may do more than that."""
    out = []
    for op in reversed(ops):
        reads, writes = uses(op, aliases)
        if isinstance(op, Region) or isinstance(op, Opaque) and any(
                isinstance(s, Call) for s in statements(op.statements)):
            used |= {w for w in writes if isinstance(w, Expr)}  # which are declared before
        elif not any(w in used or isinstance(w, Buffer) and w.kind not in PRIVATE for w in writes):
            continue
        used |= reads
        out.append(op)
    return out[::-1]


def buffers_read(units: Sequence[Unit], aliases: Aliases) -> set[Buffer | Expr]:
    """Everything that is still read from memory after fusion."""
    read: set[Buffer | Expr] = set()
    for unit in units:
        if isinstance(unit, Group):
            for m in unit.members:
                read |= uses(m.op, aliases)[0]
        elif isinstance(unit, Branching):
            for block in unit.blocks:
                read |= buffers_read(block, aliases)
            for e in unit.region.exprs:
                read |= loaded_buffers(e, aliases)
        else:
            assert isinstance(unit, Operation)
            read |= uses(unit, aliases)[0]
    return read


class Fuser:
    """Schedules a block's operations into groups, keeping their dependences."""

    def __init__(self, b: Builder, aliases: dict[Buffer, Buffer]):
        self.b = b
        self.aliases = aliases
        self.results: set[Buffer] = set()  # what lives to the end in any case
        self.order: Sequence[Expr] = ()  # in which a group walks an operation's loops that stores its results turned
        self.waiting: set[Buffer] = set()  # results that are yet to be turned

    def run(self, ops: Sequence[Operation]) -> list[Group | Operation]:
        """The block as groups and the operations left alone, in an order that respects all dependences."""
        out: list[Group | Operation] = []
        position: dict[Buffer | Expr, int] = {}  # who wrote a buffer or scalar last
        readers: dict[Buffer | Expr, int] = {}  # who reads it last
        self.results = {s.source for op in ops if isinstance(op, Opaque) for s in op.statements
                        if isinstance(s, Copy) and s.target.kind is BufferKind.OUT}
        pending = list(reversed(ops))
        while pending:
            op = pending.pop()
            if isinstance(op, (Point, Reduce)):
                found = self._place(op, out, position, readers)
                if found is None:
                    assert isinstance(op, Point)
                    first, copy = computed_first(self.b, op, self.order, op.vars)
                    self.waiting.add(first.buffer)
                    pending += [copy, first]
                    continue
                index, moved = found
                unit = out[index]
                assert isinstance(unit, Group)
                reads: set[Buffer | Expr] = set(unit.reads)
                for e in operation_exprs(moved):
                    reads |= {d for d in e.deps if d.op == "get"}
                writes: set[Buffer | Expr] = set(unit.writes) | set(unit.scalars)
            else:
                index = len(out)
                out.append(op)
                reads, writes = uses(op, self.aliases)
            for r in reads:
                readers[r] = max(readers.get(r, -1), index)
            for w in writes:
                position[w] = max(position.get(w, -1), index)
        return out

    def _place(self, op: Point | Reduce, out: list[Group | Operation], position: dict,
               readers: dict) -> tuple[int, Point | Reduce] | None:
        """The unit that an operation becomes part of, and the operation in that unit's variables; None where a unit is
        to compute it, but in its own `order`."""
        reads: set = set()
        self.order = ()
        its_loads, size = loads(op), computing(operation_exprs(op))
        for e in operation_exprs(op):
            reads |= loaded_buffers(e, self.aliases)
            reads |= {d for d in e.deps if d.op == "get"}
        writes = {op.buffer} if isinstance(op, Point) else {s[0] for s in op.stores}
        earliest = -1
        for r in reads:
            earliest = max(earliest, position.get(r, -1))
        for w in writes:  # memory written before (a destination shared by views) or still read
            earliest = max(earliest, position.get(w, -1), readers.get(w, -1))
        if earliest >= 0:
            group = out[earliest]
            if isinstance(group, Group) and (moved := self._join(group, op, its_loads, size)) is not None:
                return earliest, moved
        near = range(len(out) - 1, max(earliest, len(out) - 1 - LOOKBACK, -1), -1)
        far: list[int] = []
        if all(buffer.kind is BufferKind.OUT or buffer in self.results for buffer in writes):
            before = min(near, default=len(out))
            far = sorted({k for r in reads if earliest < (k := readers.get(r, -1)) < before}, reverse=True)
        for index in (*near, *far):
            group = out[index]
            if isinstance(group, Group) and group.reads & {r for r in reads if isinstance(r, Buffer)}:
                if (moved := self._join(group, op, its_loads, size)) is not None:
                    return index, moved
        if self.order and writes.isdisjoint(self.waiting):
            return None
        out.append(Group(op, self.aliases))
        return len(out) - 1, op

    # -- joining ---------------------------------------------------------------------------------
    def _join(self, group: Group, op: Point | Reduce, its_loads: Sequence[Expr], size: float) -> Point | Reduce | None:
        """Adds `op`, of so many instructions, to the group if its loops match and each value it needs is there when it
        needs it; the operation in the group's variables."""
        own = op.vars if isinstance(op, Point) else op.outer + op.ranges
        if group.size + size > LARGE or isinstance(op, Point) and not own:
            return None
        if any(d in group.scalars for e in operation_exprs(op) for d in e.deps):
            return None  # needs a finished scalar: another nest
        writes = {op.buffer} if isinstance(op, Point) else {s[0] for s in op.stores}
        if writes & group.reads or writes & group.writes and not _another_part(group, op):
            return None
        mapping: dict[Expr, Expr] = {}
        needed: list[tuple[Expr, Member, Expr | None]] = []  # load, who makes it, its value
        shared: list[tuple[Expr, Expr]] = []
        for n in its_loads:
            buffer = root(self.aliases, n.attr[0])
            if buffer in group.unshared or buffer in group.writes and n.attr[0].dtype != buffer.dtype:
                return None  # (or is read in elements of another size)
            if buffer in group.stored:
                member = group.stored[buffer]
                assert isinstance(member.op, Point)
                if not self._match(n.args[0], member.op.place, mapping, group):
                    return None
                needed.append((n, member, member.op.value))
            elif buffer in group.finished:
                member, place, value = group.finished[buffer]
                if not self._match(n.args[0], place, mapping, group):
                    return None
                needed.append((n, member, value))
            elif buffer in group.reads:
                shared.append((n.args[0], n))
        if not needed:
            for place, load in shared:  # the same memory, read in the same way: prefer to walk it together
                for other in group.places.get(root(self.aliases, load.attr[0]), ()):
                    trial = dict(mapping)
                    if self._match(place, other, trial, group):
                        mapping = trial
                        break
        if not self._complete(own, mapping, group):
            return None
        moved = self._admit(group, op, mapping, needed)
        if moved is not None:
            group.size += size
        return moved

    def _match(self, place: Expr, target: Expr, mapping: dict[Expr, Expr], group: Group) -> bool:
        """Extends `mapping` (own variables -> the group's) so that `place` becomes `target`."""
        mine, theirs = poly_terms(place), poly_terms(target)
        if len(mine) != len(theirs):
            return False
        free: list[tuple[Expr, tuple, int]] = []
        for mono, c in mine.items():
            vars_ = [a for a in mono if a.op == "var" and a in self.b.extents]
            if len(vars_) != 1:
                if theirs.get(mono) != c or any(a.deps for a in mono):
                    return False
                continue
            free.append((vars_[0], tuple(a for a in mono if a is not vars_[0]), c))
        for v, rest, c in free:
            candidates = []
            for mono, d in theirs.items():
                others = [a for a in mono if a.op == "var"]
                if len(others) == 1 and d == c and tuple(a for a in mono if a is not others[0]) == rest:
                    candidates.append(others[0])
            candidates = [g for g in candidates if self.b.extents[g] == self.b.extents[v]]
            if len(candidates) != 1:
                return False
            g = candidates[0]
            if mapping.get(v, g) is not g or any(o is not v and t is g for o, t in mapping.items()):
                return False
            mapping[v] = g
        return True

    def _complete(self, own: Sequence[Expr], mapping: dict[Expr, Expr], group: Group) -> bool:
        """Maps the variables that no shared memory has decided, by equal extents in order. Where none is decided, the
        order is that of the group: what walks the other way round is better off on its own."""
        free = not mapping
        taken = set(mapping.values())
        available = [g for g in group.outer + group.inner if g not in taken]
        for v in own:
            if v in mapping:
                continue
            g = next((g for g in available if self.b.extents[g] == self.b.extents[v]), None)
            if g is None:
                return False
            mapping[v] = g
            if free:
                del available[: available.index(g) + 1]
            else:
                available.remove(g)
        return True

    def _admit(self, group: Group, op: Point | Reduce, mapping: dict[Expr, Expr],
               needed: Sequence[tuple[Expr, Member, Expr | None]]) -> Point | Reduce | None:
        outer, inner = group.outer, group.inner
        if isinstance(op, Point):
            if not needed and self._copies_otherwise(op, group, mapping):
                return None
            used = {mapping[v] for v in op.vars}
            if used == set(outer + inner):
                is_inner = bool(inner)
            elif inner and used == set(outer):
                is_inner = False
            else:
                return None
        elif any(self._turns(member.op) for _, member, _ in needed):
            return None
        else:
            mapped_outer = tuple(mapping[v] for v in op.outer)
            mapped_ranges = tuple(mapping[v] for v in op.ranges)
            if inner:
                if set(mapped_outer) != set(outer) or set(mapped_ranges) != set(inner):
                    return None
            else:
                if set(mapped_outer + mapped_ranges) != set(outer):
                    return None
                # a group of stores becomes one of passes over the reduced loops
                group.outer, group.inner = (
                    tuple(v for v in outer if v in mapped_outer), tuple(v for v in outer if v in mapped_ranges))
                for m in group.members:
                    m.inner, m.phase = True, 0
            is_inner = True
        if not is_inner and (self._outweighs_row(op, group) or self._lies_across(op, group, mapping, needed)):
            return None
        lanes = self._turned_from(op, group, mapping) if is_inner == bool(inner) and isinstance(op, Point) else None
        if lanes is not None:
            assert isinstance(op, Point)
            own = {g: v for v, g in mapping.items()}
            walked = [g for g in (*outer, *inner) if g is not lanes]
            self.order = () if copied(op.value) is not None else [own[g] for g in (*walked, lanes)]
            return None
        phase = 0 if is_inner else -1
        for _, member, _ in needed:
            if isinstance(member.op, Reduce):
                ready = member.phase + 1
            else:
                ready = member.phase
                if member.inner and not is_inner:
                    return None
            if is_inner:
                ready += ready % 2
            elif ready % 2 == 0:
                ready += 1
            phase = max(phase, ready)
        memo: dict[Expr, Expr] = dict(mapping)
        replaced: dict[Expr, Expr] = {}
        for load, member, value in needed:
            if value is None:
                continue
            if isinstance(member.op, Reduce) or member.phase == phase or value.cost <= WORTH_REPEATING:
                part = load.attr[1]
                replaced[load] = value if part is None else value.args[part]
        op = self._moved(op, mapping, {**memo, **replaced})
        if isinstance(op, Point) and op.buffer.once and op.whole is None:
            for m in group.members:  # what is stored already is not stored again
                twin = m.op
                if isinstance(twin, Point) and twin.value is op.value and twin.place is op.place and (
                        twin.whole is None and twin.buffer.once and twin.buffer.dtype == op.buffer.dtype
                        and twin.buffer.size == op.buffer.size and m.phase == phase):
                    self.aliases[op.buffer] = twin.buffer
                    return op
        group.add(Member(op, phase, is_inner), self.aliases)
        return op

    def _outweighs_row(self, op: Point | Reduce, group: Group) -> bool:
        """Whether a value that is computed once a row costs more than the row, whose elements are computed in lanes:
        in a nest of its own it has lanes, too."""
        count = self.b.product([self.b.extents[v] for v in group.inner])
        if not isinstance(op, Point) or not isinstance(count, int):
            return False
        exprs = [e for m in group.members if m.inner for e in operation_exprs(m.op)]
        steps = [coefficient(self.b.arena, n.args[0], v) for n in loads_of(exprs) if n.op == "load"
                 for v in group.inner]
        if not any(c is not None and c.op == "const" and c.attr == 1 for c in steps):
            return False  # the lanes are rows
        row = computing(exprs) * -(-count // STEP)
        folded = sum(isinstance(m.op, Reduce) for m in group.members)
        return computing([op.value]) > 2 * (row + HORIZONTAL * folded)

    def _lies_across(self, op: Point | Reduce, group: Group, mapping: dict[Expr, Expr],
                     needed: Sequence[tuple[Expr, Member, Expr | None]]) -> bool:
        """Whether results whose lanes lie side by side would be scattered: a nest of its own transposes them in
        registers."""
        made = [group.finished[root(self.aliases, load.attr[0])][1] for load, member, _ in needed
                if isinstance(member.op, Reduce)]
        if not made or not isinstance(op, Point):
            return False
        place = self.b.arena.substitute(op.place, mapping, dict(mapping))
        exprs = [e for m in group.members if m.inner for e in operation_exprs(m.op)]
        loads = [n.args[0] for n in loads_of(exprs) if n.op == "load"]

        def walks(e: Expr, loops: Sequence[Expr]) -> bool:
            """Whether the steps of loops, the innermost first, together walk along what lies side by side."""
            run = 1
            for v in loops:
                step = coefficient(self.b.arena, e, v)
                if step is None or step.op != "const" or step.attr != run:
                    return False
                run *= _extent(self.b, v)
            return True

        def lanes(e: Expr) -> list[Expr]:
            """Loops that do so, as many as fill lanes; none if they are too few."""
            found: list[Expr] = []
            while math.prod(_extent(self.b, v) for v in found) < LANES:
                more = next((v for v in group.outer if v not in found and walks(e, [*found, v])), None)
                if more is None:
                    return []
                found.append(more)
            return found

        return any(not walks(place, loops) and any(walks(n, loops) for n in loads) for loops in map(lanes, made))

    def _turned_from(self, op: Point, group: Group, mapping: dict[Expr, Expr]) -> Expr | None:
        """The loop that the group's reads walk along, if an operation stores along another one: what lies side by side
        would be scattered, where a nest of its own transposes it in registers."""
        if op.whole is not None:
            return None
        place = self.b.arena.substitute(op.place, mapping, dict(mapping))
        loops = *group.inner, *group.outer
        long = [v for v in loops if _extent(self.b, v) >= LANES]
        count = self.b.product([self.b.extents[v] for v in loops])
        if isinstance(count, int) and count < WORTH_TURNING:
            return None

        def along(e: Expr) -> Expr | None:
            steps = ((coefficient(self.b.arena, e, v), v) for v in long)
            return next((v for c, v in steps if c is not None and c.op == "const" and c.attr == 1), None)

        stored = along(place)
        if stored is None:
            return None
        loads = (n.args[0] for m in group.members for n in loads_of(operation_exprs(m.op)) if n.op == "load")
        read = [v for e in loads if stored in e.deps and (v := along(e)) is not None]  # (others are the same in lanes)
        return read[0] if read and stored not in read else None

    def _turns(self, op: Point | Reduce) -> bool:
        """Whether an operation is a transposition: whoever folds its results would gather what it copies in tiles."""
        load = copied(op.value) if isinstance(op, Point) else None
        if load is None or not isinstance(op, Point):
            return False
        runs = []
        for e in (op.place, load.args[0]):
            steps = [(coefficient(self.b.arena, e, v), v) for v in op.vars if _extent(self.b, v) >= LANES]
            runs.append(next((v for c, v in steps if c is not None and c.op == "const" and c.attr == 1), None))
        return None not in runs and runs[0] is not runs[1]

    def _copies_otherwise(self, op: Point, group: Group, mapping: dict[Expr, Expr]) -> bool:
        """Whether the group and the operation only copy the same memory, into different orders: whatever the loops, one
        of them would scatter or gather, where by itself it is a transposition."""
        if copied(op.value) is None:
            return False
        place = self.b.arena.substitute(op.place, mapping, dict(mapping))
        return any(isinstance(m.op, Point) and copied(m.op.value) is not None and any(
            coefficient(self.b.arena, m.op.place, v) is not coefficient(self.b.arena, place, v) for v in group.outer)
            for m in group.members)

    def _moved(self, op: Point | Reduce, mapping: dict[Expr, Expr], memo: dict[Expr, Expr]) -> Point | Reduce:
        """An operation in the group's variables; `memo` has the values that are at hand instead of loads."""
        def sub(e: Expr) -> Expr:
            return self.b.arena.substitute(e, mapping, memo, make)

        def make(e: Expr, args: tuple[Expr, ...]) -> Expr:
            if e.dtype is INDEX and e.op in ("cast", "min", "max"):  # (a load may give way to a loop's variable)
                return self.b.cast(args[0], INDEX) if e.op == "cast" else getattr(self.b, e.op)(*args)
            return self.b.arena.node(e.op, args, e.dtype, e.attr, e.bounds)

        if isinstance(op, Point):
            return Point([mapping[v] for v in op.vars], op.buffer, sub(op.place), sub(op.value), op.whole)
        return Reduce([mapping[v] for v in op.outer], [mapping[v] for v in op.ranges], op.targets, op.initial,
                      op.combine, op.name, list(map(sub, op.values)),
                      [(buf, sub(place), sub(value)) for buf, place, value in op.stores])


def computed_first(b: Builder, op: Point, order: Sequence[Expr], loops: Sequence[Expr]) -> tuple[Point, Point]:
    """An operation as one that stores its results in the `order` of loops in which they are computed, and one that puts
    them into their places, in the order of `loops`."""
    extents = tuple(b.extents[v] for v in order)
    waiting = b.buffer(op.buffer.dtype, b.product(extents), once=True)
    place = b.arena.affine(0, list(order), row_major(b, extents))
    mapping = {v: b.loop_var(e) for v, e in zip(order, extents, strict=True)}
    there, here = (b.arena.substitute(e, mapping, dict(mapping)) for e in (op.place, place))
    copy = Point([mapping[v] for v in loops], op.buffer, there, b.load(waiting, here))
    return Point(list(order), waiting, place, op.value), copy


def _extent(b: Builder, v: Expr) -> int:
    size = b.extents[v]
    return size if isinstance(size, int) else LANES
