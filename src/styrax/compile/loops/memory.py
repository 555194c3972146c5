"""The memory plan: which buffers are one, and where the others lie in the workspace.

A copy between two buffers is no copy if they can share memory. They can if, from the first write of the one to the
copy, nobody needs what the other holds: that is what makes updates in loops, donated arguments, scan outputs and
loop carries happen in place. What remains gets places in one workspace; buffers whose lives do not overlap share.
Results' memory holds such buffers, too, until results are written.
The statements stay as they are: a buffer that became another is written as that one. Before, and after:

    copy c0[0] <- arg0[0] x 64
    for t1 < 9:
      for i0 < 64 vector(16):
        t0[i0] = sin(c0[i0])
      copy c0[0] <- t0[0] x 64
    copy out0[0] <- c0[0] x 64

    copy out0[0] <- arg0[0] x 64
    for t1 < 9:
      for i0 < 64 vector(16):
        out0[i0] = sin(out0[i0])
      copy out0[0] <- out0[0] x 64
    copy out0[0] <- out0[0] x 64

What is copied to itself is no copy. Where a turn reads what it carries after it has begun to make the next value, as
stencils do, the two stay apart, and in place of the copy they exchange their memories (double buffering).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import takewhile
from typing import Any

import numpy as np

from ..costs import SEARCH, instructions
from ..ir.expr import Expr
from ..ir.loads import known_loads
from ..ir.loopir import (
    Buffer,
    BufferKind,
    Call,
    Copy,
    Exchange,
    Loop,
    LoopKind,
    Statement,
    Store,
    Together,
    Transpose,
    While,
    rewrite,
    statements,
)
from ..ir.placement import Aliases, Placement, root
from ..program import Program

ALIGNMENT = 64  # bytes: a cache line, and a vector
WORTH_EXCHANGE = 1 << 12  # bytes of a carried buffer from which two memories in turns are better than a copy


class Events:
    """When buffers are read and written, as positions in program order, and the loops around each position. `aliases`
    are those known so far, and grow."""

    def __init__(self, body: Sequence[Statement], aliases: Aliases):
        self.aliases = dict(aliases)
        self.position = 0
        self.reads: dict[Buffer, list[tuple[int, Any]]] = {}
        self.writes: dict[Buffer, list[tuple[int, Any]]] = {}
        self.copies: list[tuple[int, Copy, tuple[int, ...]]] = []
        self.loops: list[list[int]] = []  # [start, end] of each loop
        self.loop_statements: list[Loop | While] = []
        self.path: list[int] = []  # loops around the current position
        self.loops_of: dict[int, tuple[int, ...]] = {}
        self._expr_memo: dict[Expr, list[tuple[Buffer, Expr | None]]] = {}
        self.visit(body)

    def root(self, buffer: Buffer) -> Buffer:
        return root(self.aliases, buffer)

    def loads(self, e: Expr) -> list[tuple[Buffer, Expr | None]]:
        found = self._expr_memo.get(e)
        if found is None:
            found = self._expr_memo[e] = [self.access(n.attr[0], n.args[0]) for n in known_loads(e)]
        return found

    def access(self, buffer: Buffer, place: Expr) -> tuple[Buffer, Expr | None]:
        """The memory, and which element of it, if it counts its elements as the buffer does."""
        memory = self.root(buffer)
        return memory, place if buffer.dtype.itemsize == memory.dtype.itemsize else None

    def merge(self, gone: Buffer, keep: Buffer) -> None:
        """Makes two buffers one memory."""
        self.aliases[gone] = keep
        same = gone.dtype.itemsize == keep.dtype.itemsize
        for table in (self.reads, self.writes):
            moved = table.pop(gone, [])
            table.setdefault(keep, []).extend(moved if same else [(now, (s, None)) for now, (s, _) in moved])

    def visit(self, body: Sequence[Statement]) -> None:
        for s in body:
            self.position += 1
            now = self.position
            self.loops_of[now] = tuple(self.path)
            for e in s.exprs():
                for buffer, place in self.loads(e):
                    self.reads.setdefault(buffer, []).append((now, (s, place)))
            if isinstance(s, Store):
                memory, written = self.access(s.buffer, s.offset)
                self.writes.setdefault(memory, []).append((now, (s, written)))
            elif isinstance(s, Copy):
                self.reads.setdefault(self.root(s.source), []).append((now, (s, None)))
                self.writes.setdefault(self.root(s.target), []).append((now, (s, None)))
                self.copies.append((now, s, tuple(self.path)))
            elif isinstance(s, Exchange):
                for a, b in s.pairs:
                    for buffer in (self.root(a), self.root(b)):
                        self.reads.setdefault(buffer, []).append((now, (s, None)))
                        self.writes.setdefault(buffer, []).append((now, (s, None)))
            elif isinstance(s, Transpose):
                self.reads.setdefault(self.root(s.source), []).append((now, (s, None)))
                self.writes.setdefault(self.root(s.target), []).append((now, (s, None)))
            elif isinstance(s, Call):
                for b in s.reads:
                    self.reads.setdefault(self.root(b), []).append((now, (s, None)))
                for b in s.writes:
                    self.writes.setdefault(self.root(b), []).append((now, (s, None)))
            looping = isinstance(s, (Loop, While))
            if isinstance(s, (Loop, While)):
                number = len(self.loops)
                self.loops.append([now, now])
                self.loop_statements.append(s)
                self.path.append(number)
            for inner in s.bodies():
                self.visit(inner[:1] if isinstance(s, Together) and _one_for_all(inner) else inner)
            if looping:
                self.position += 1
                self.loops[number][1] = self.position
                self.path.pop()


def _one_for_all(body: Sequence[Statement]) -> bool:
    """Whether of statements side by side the first stands for all, as of iterations that have made no choices."""
    first, *others = [frozenset().union(*[e.reads for e in s.exprs()]) for s in body]
    return all(reads <= first for reads in others)


def run(program: Program) -> Program:
    """Places the program's buffers. Its statements stay: copies between buffers that became one are none."""
    events = Events(program.statements, program.placement.aliases)
    coalesce(events)
    reuse_donated(events, program.inputs, program.outputs)
    exchanges = double_buffered(events)
    compute_in_place(events, {b for pairs in exchanges.values() for pair in pairs.values() for b in pair})
    pairs = {copy: pair for found in exchanges.values() for copy, pair in found.items()}
    body = program.statements
    if pairs:
        body = rewrite(body, lambda s: [_exchanging(s, pairs)])
    turning = any(isinstance(s, While) and s.open_ended for s in statements(body))
    return program.replace(statements=body, work=instructions(body, ending=SEARCH),
                           least_work=instructions(body, endless=1.0, ending=SEARCH) if turning else None,
                           placement=place(events, program.builder.buffers, exchanges, program.outputs))


def coalesce(events: Events) -> None:
    """Makes the two sides of copies one buffer where that is sound."""
    for now, copy, path in events.copies:
        a, b = events.root(copy.target), events.root(copy.source)
        if a is b or not _is_whole(copy, a, b):
            continue
        if a.kind not in (BufferKind.TEMP, BufferKind.OUT):
            continue
        if b.kind is BufferKind.TEMP and _compatible(events, a, b, now, path):
            gone, keep = b, a
        elif b.kind is BufferKind.ARG and b.donated and _compatible(events, a, b, now, path):
            gone, keep = a, b
        else:
            continue
        events.merge(gone, keep)


def _is_zero(e: Expr) -> bool:
    return e.op == "const" and e.attr == 0


def _compatible(events: Events, a: Buffer, b: Buffer, now: int, path: tuple[int, ...]) -> bool:
    """Whether `a <- copy of b` (at `now`, inside the loops `path`) may be one memory.

    Sound if at no point both hold different values that are still needed. All accesses are intervals: `a`'s value
    is needed from the copy to its last read, and, when the copy closes a loop's iteration, from the loop's start to
    the last read in it; `b` may only be written when `a` is not needed, and `a` only when `b` is not.
    """
    reads_a = [x for x in events.reads.get(a, ())]
    writes_a = [x for x in events.writes.get(a, ()) if x[0] != now]
    reads_b = [x for x in events.reads.get(b, ()) if x[0] != now]
    writes_b = [x for x in events.writes.get(b, ())]
    if path and _carried(events, a, path):
        if a.dtype.itemsize != b.dtype.itemsize:
            return False  # which elements are the same is not known
        # closing an iteration: a is read from the loop's head on; b must be written after a's last read in the body
        start, end = events.loops[path[-1]]
        inside_b = all(start <= t <= end for t, _ in reads_b + writes_b)
        if not inside_b or not writes_b:
            return False
        first_write_b = min(t for t, _ in writes_b)
        for t, (s, place_) in reads_a:
            if isinstance(s, Copy) and events.root(s.target) is b and events.root(s.source) is a:
                continue  # will be no copy either
            if start <= t < now and not all(
                    _read_before(events, t, s, place_, w, other, where, len(path)) for w, (other, where) in writes_b):
                return False
        # between b's first write and the copy nobody else writes a
        return not any(start <= t <= end and t >= first_write_b for t, _ in writes_a)
    # straight line: b's life ends here, a's begins here
    if any(t > now for t, _ in reads_b + writes_b):
        return False
    if any(t < now for t, _ in reads_a + writes_a):
        return False
    if path:
        # in a loop, b's life must be within one iteration, or be over for good
        start, end = events.loops[path[-1]]
        if not all(start <= t <= end for t, _ in reads_b + writes_b):
            return False
    # if a is used outside the loop in which it is made a copy of b, only the last iteration counts
    return all(set(path) <= set(events.loops_of[t]) for t, _ in reads_a + writes_a)


def _carried(events: Events, a: Buffer, path: tuple[int, ...]) -> bool:
    start, end = events.loops[path[-1]]
    return any(t < start for t, _ in events.writes.get(a, ())) or any(t < start for t, _ in events.reads.get(a, ()))


def _read_before(events: Events, t: int, s: Statement, read: Expr | None, w: int, other: Statement,
                 written: Expr | None, depth: int) -> bool:
    """Whether an element is read before the write would overwrite it.

    Inside a loop that contains both (below the first `depth` ones), that holds if they touch the same element in the
    same iteration, the read first.
    """
    if isinstance(other, Copy) and read is None and other is s:
        return True
    shared = set(events.loops_of[t][depth:]) & set(events.loops_of[w][depth:])
    if shared or s is other:
        return read is not None and read is written and t <= w
    return t < w


Pairs = dict[Statement, tuple[Buffer, Buffer]]  # by the copies between them
Exchanges = dict[Statement, Pairs]  # by loop


def double_buffered(events: Events) -> Exchanges:
    """Which loops' turns end with copies of next values over carried ones whose memories may be exchanged instead: each
    next value is made in the turn, has its memory for itself while the loop lasts, and is no other's; or is what
    another carried buffer holds, which is given such a one. (Then three memories change their roles in turn. Of four,
    every second turn makes two cycles, which would take more than the one free memory to undo.)"""
    found: Exchanges = {}
    at = {copy: now for now, copy, _ in events.copies}
    for (start, end), loop in zip(events.loops, events.loop_statements, strict=True):
        if isinstance(loop, Loop) and (loop.kind is not LoopKind.SERIAL or loop.parallel or loop.rest is not None):
            continue
        tail = [s for s in takewhile(lambda s: isinstance(s, Copy), reversed(loop.body)) if isinstance(s, Copy)]
        sides = {copy: (events.root(copy.target), events.root(copy.source)) for copy in tail}
        none = {at[copy] for copy, (a, b) in sides.items() if a is b}
        sides = {copy: (a, b) for copy, (a, b) in sides.items() if a is not b}
        targets = [a for a, _ in sides.values()]
        renewed: set[Buffer] = set()  # what is given values that the turn has made
        taken: set[Buffer] = set()  # whose memory is exchanged for another's
        later: set[Buffer] = set()  # what copies further back read
        pairs: Pairs = {}
        for copy, (a, b) in sides.items():  # the last one first
            reads, writes = ([t for t, _ in table.get(b, ()) if t not in none]
                             for table in (events.reads, events.writes))
            made = b.kind is BufferKind.TEMP and b not in targets and bool(writes) and (
                start < min(writes) < min(reads) and max(*reads, *writes) < end)
            overwritten = [t for t, _ in events.writes.get(a, ()) if start <= t <= end and t not in none]
            if (_is_whole(copy, a, b) and a.dtype == b.dtype and isinstance(a.size, int)
                    and a.kind in (BufferKind.TEMP, BufferKind.OUT) and a.nbytes >= WORTH_EXCHANGE
                    and (made or b in renewed) and b not in taken and a not in later and overwritten == [at[copy]]):
                if made:
                    renewed.add(a)
                taken.add(b)
                pairs[copy] = a, b
            later.add(b)
        if pairs:
            found[loop] = pairs
    return found


def _is_whole(copy: Copy, a: Buffer, b: Buffer) -> bool:
    """Whether all of a memory is copied to all of another, as elements of whatever type."""
    if not (_is_zero(copy.target_offset) and _is_zero(copy.source_offset)):
        return False
    if not (isinstance(a.size, int) and isinstance(b.size, int) and isinstance(copy.count, int)):
        return a.size == b.size == copy.count and a.dtype == b.dtype
    return a.nbytes == b.nbytes == copy.count * copy.target.dtype.itemsize


def _exchanging(s: Statement, pairs: Pairs) -> Statement:
    """A loop whose turns end with an exchange in place of copies; others as they are."""
    *others, body = s.bodies() or ([],)
    gone = [x for x in body if x in pairs]
    return s.with_bodies([*others, [*(x for x in body if x not in pairs), Exchange([pairs[x] for x in gone])]]
                         ) if gone else s


def reuse_donated(events: Events, inputs: Sequence[Buffer | None], outputs: Sequence[Buffer | None]) -> None:
    """Lets results take the memory of donated arguments whose last reads are where the results are written."""
    free = [b for b in inputs if b is not None and b.donated and not any(
        o is not None and events.root(o) is b for o in outputs)]
    for a in outputs:
        if a is None or a in events.aliases:
            continue
        for b in free:
            if _in_place(events, a, b):
                events.aliases[a] = b
                free.remove(b)
                break


def compute_in_place(events: Events, exchanged: set[Buffer]) -> None:
    """Lets what is computed element by element from a temporary, where this is read last, take its memory: rows between
    two passes of a softmax go to a core's cache once."""
    for b in list(events.writes):
        reads = events.reads.get(b)
        if b.kind is not BufferKind.TEMP or b in events.aliases or b in exchanged or not reads:
            continue
        _, (last, _) = max(reads, key=lambda x: x[0])
        if isinstance(last, Store) and _in_place(events, events.root(last.buffer), b):
            events.merge(b, events.root(last.buffer))


def _in_place(events: Events, a: Buffer, b: Buffer) -> bool:
    """Whether `a`, a result or temporary, may have the memory of `b`, which nobody needs later: each element of `b` is
    read for the last time where that of `a` is written for the first time, in every loop around them.

    Either a loop's iterations have elements of their own, or each makes both values anew before it reads them.
    """
    if a is b or a.kind not in (BufferKind.TEMP, BufferKind.OUT) or (
            a.size != b.size or a.dtype != b.dtype or not isinstance(a.size, int)):
        return False
    writes_a, writes_b = (events.writes.get(x, ()) for x in (a, b))
    reads_a, reads_b = (events.reads.get(x, ()) for x in (a, b))
    if not all(_read_before(events, t, s, place_, w, other, where, 0)
               for t, (s, place_) in (*reads_b, *writes_b) for w, (other, where) in writes_a):
        return False
    times = {name: [t for t, _ in found] for name, found in (
        ("read", reads_a), ("made", writes_a), ("needed", reads_b), ("begun", writes_b))}
    if any(t <= min(times["made"], default=t) for t in times["read"]):
        return False
    for number in set().union(*[events.loops_of[t] for t in (*times["begun"], *times["needed"])]):
        start, end = events.loops[number]
        inside = {name: [t for t in found if start <= t <= end] for name, found in times.items()}
        if not inside["made"]:
            continue
        if any(t <= min(inside["made"]) for t in inside["read"]):
            return False
        loop = events.loop_statements[number]
        if isinstance(loop, Loop) and all(where is not None and loop.var in where.deps
                                          for t, (_, where) in (*writes_a, *writes_b) if start <= t <= end):
            continue
        anew = inside["begun"] and all(inside[name] == times[name] for name in ("needed", "begun")) and (
            min(inside["begun"]) < min(inside["needed"], default=end))
        if not anew or isinstance(loop, Loop) and (loop.parallel or loop.kind is not LoopKind.SERIAL):
            return False
    return True


class Hosts:
    """The results whose memory is free for others until they are written, and what has been put there."""

    def __init__(self, events: Events, exchanges: Exchanges, outputs: Sequence[Buffer | None]):
        exchanged = {b for pairs in exchanges.values() for pair in pairs.values() for b in pair}
        self.found: dict[Buffer, Buffer] = {}
        self.lives: dict[Buffer, list[tuple[int, int]]] = {}
        self.begins: dict[Buffer, int] = {}
        for b in outputs:
            if b is None or b in events.aliases or b in exchanged or not isinstance(b.size, int):
                continue
            times = [t for table in (events.reads, events.writes) for t, _ in table.get(b, ())]
            # What is written in a loop is so from the loop's first turn on.
            self.begins[b] = min([min((events.loops[i][0] for i in events.loops_of[t]), default=t) for t in times],
                                 default=0)
        self.by_size = sorted(self.begins, key=_bytes)
        self.sizes = [_bytes(b) for b in self.by_size]

    def take(self, buffer: Buffer, start: int, end: int) -> bool:
        """Puts a buffer into the smallest result that has room for it while it lives, if there is one."""
        for host in self.by_size[bisect_left(self.sizes, _bytes(buffer)) :]:
            lives = self.lives.setdefault(host, [])
            if end < self.begins[host] and not any(s <= end and e >= start for s, e in lives):
                lives.append((start, end))
                self.found[buffer] = host
                return True
        return False


def place(events: Events, buffers: Sequence[Buffer], exchanges: Exchanges,
          outputs: Sequence[Buffer | None]) -> Placement:
    """Offsets in the workspace: greedy by size, first gap that is free for a buffer's whole life. What finds no gap
    goes where a result will be, if that is free."""
    around = {b: events.loops[i] for i, loop in enumerate(events.loop_statements)
              for _, b in exchanges.get(loop, {}).values()}
    lives: dict[Buffer, tuple[int, int]] = {}
    for buffer in buffers:
        if buffer.kind is not BufferKind.TEMP or buffer in events.aliases or not isinstance(buffer.size, int):
            continue  # (memory of a size known only at run time is asked for then)
        times = [t for t, _ in events.reads.get(buffer, ())] + [t for t, _ in events.writes.get(buffer, ())]
        if not times:
            continue
        # what is made outside a loop and used in it lives as long as the loop
        paths = [events.loops_of[t] for t in times]
        common = set(paths[0]).intersection(*map(set, paths[1:])) if len(paths) > 1 else set(paths[0])
        start, end = min(times), max(times)
        for p in paths:
            for number in p:
                if number not in common:
                    start = min(start, events.loops[number][0])
                    end = max(end, events.loops[number][1])
        # A value that survives an iteration (read before written in it) lives through the whole loop. So does one of a
        # loop whose iterations run at the same time: what one is done with another still needs.
        for number in common:
            loop = events.loop_statements[number]
            reads = [t for t, _ in events.reads.get(buffer, ())]
            writes = [t for t, _ in events.writes.get(buffer, ())]
            if reads and writes and min(reads) < min(writes) or isinstance(loop, Loop) and loop.parallel:
                start = min(start, events.loops[number][0])
                end = max(end, events.loops[number][1])
        if buffer in around:  # it holds what is carried every other turn
            start, end = min(start, around[buffer][0]), max(end, around[buffer][1])
        lives[buffer] = (start, end)
    offsets: dict[Buffer, int] = {}
    total = 0
    # what has been placed, in the order of offsets: (start, end, offset, offset of what follows)
    placed, count = np.zeros((4, len(lives)), np.int64), 0
    hosts = Hosts(events, exchanges, outputs)
    for buffer, (start, end) in sorted(lives.items(), key=lambda item: -_bytes(item[0])):
        size = max(-(-_bytes(buffer) // ALIGNMENT), 1) * ALIGNMENT  # an empty buffer has an address, too
        _, _, at, following = placed[:, :count].compress(
            (placed[0, :count] <= end) & (placed[1, :count] >= start), axis=1)
        free = np.maximum.accumulate(np.concatenate(([0], following)))  # after each of them, and those before it
        gaps = (free[:-1] + size <= at).nonzero()[0]
        offset = int(free[gaps[0] if len(gaps) else -1])
        if offset + size > total and hosts.take(buffer, start, end):
            continue
        offsets[buffer] = offset
        position = int(placed[2, :count].searchsorted(offset))
        placed[:, position + 1 : count + 1] = placed[:, position:count]
        placed[:, position] = start, end, offset, offset + size
        total, count = max(total, offset + size), count + 1
    return Placement(events.aliases, offsets, total, hosts.found)


def _bytes(buffer: Buffer) -> int:
    return buffer.size * buffer.dtype.itemsize if isinstance(buffer.size, int) else 0
