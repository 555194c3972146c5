"""Loop IR to LLVM IR text: statements, control flow and threads.

Invariants leave loops by construction (`expressions`); iterations of parallel loops become a function of their own that
gets what it needs from around through an environment.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ..compile import costs
from ..compile.ir import loopir
from ..compile.ir.expr import Expr
from ..compile.ir.loopir import Buffer, LoopKind, Statement, statements
from . import code_size, copies_and_fills, divergence, instructions, ramps
from .exchanges import Exchanges
from .expressions import Values
from .frames import Frame
from .instructions import element_type, memory_type, vector
from .prefetching import AHEAD, Turning
from .writer import Lanes, Module, Writer

BEFORE = (-(1 << 62), -1)  # what a loop's turn is to the one after the last
CHUNK_WORK = 12_000  # estimated instructions that one claim of a thread should cost
REGISTER = 16  # bytes of the shortest vectors


class Function:
    """Writes one function, of the parts that know its text, its values and accesses, and its frame."""

    def __init__(self, module: Module, name: str, parameters: str | None, result: str,
                 parent: Function | None = None):
        self.writer = writer = Writer(module, name, parameters, result)
        outer = None if parent is None else parent.values
        self.values: Values = Values(writer, outer)
        values = self.values
        self.accesses = values.accesses
        self.frame: Frame = Frame(writer, values, None if parent is None else parent.frame)
        self.nested = parent is not None
        self.uniform: frozenset[Expr] = frozenset()  # scalars of the loop over lanes that have none
        self.exchanges = Exchanges(writer, values)
        self.blocks = copies_and_fills.Blocks(writer, values)
        self.arena, self.module, self.op, self.line, self.value = (
            writer.arena, writer.module, writer.op, writer.line, values.value)

    # -- statements ----------------------------------------------------------------------------------------
    def run(self, body: Sequence[Statement]) -> None:
        for s in body:
            if isinstance(s, loopir.Open):
                self.values.note_compared(s.accumulator, body)
            _WRITERS[type(s)](self, s)

    def _pack(self, s: loopir.Pack) -> None:
        """The same function of several scalars: in lanes, then taken apart. Each stays in the outermost scope where it
        can be computed, as what uses it may stand there, too."""
        by_depth: dict[int, list[Expr]] = {}
        for n in s.nodes:
            if self.values.find(n) is None:
                by_depth.setdefault(self.values.depth(n), []).append(n)
        before = self.writer.at
        for self.writer.at, alike in by_depth.items():
            if len(alike) > 1:
                self._pack_here(alike)
        self.writer.at = before

    def _pack_here(self, nodes: Sequence[Expr]) -> None:
        lanes = 1 << (len(nodes) - 1).bit_length()
        dtype = nodes[0].dtype
        t = element_type(dtype)
        v = vector(t, lanes)
        operands = []
        for arguments in zip(*[n.args for n in nodes], strict=True):
            names = [self.value(a) for a in arguments]
            packed = self.values.splat(names[0], t, lanes)
            for k, name in enumerate(names[1:], 1):
                packed = self.op(f"insertelement {v} {packed}, {t} {name}, i32 {k}")
            operands.append(packed)
        result = instructions.rows[nodes[0].op](self.writer, dtype, lanes, tuple(operands))
        for k, n in enumerate(nodes):
            self.writer.scopes[self.writer.at].keep(
                n, self.op(f"extractelement {v} {result}, i32 {k}"), self.values.buffers(n))

    def _scratch(self, s: loopir.Scratch) -> None:
        self.frame.scratch(s)

    def _store(self, s: loopir.Store) -> None:
        with self.writer.scope(statement=True):
            self.accesses.store(s.buffer, s.offset, s.value)

    def _together(self, s: loopir.Together) -> None:
        stores = [x for x in s.body if isinstance(x, loopir.Store)]
        if len(stores) < len(s.body):  # one after the other: operands of all would not fit into registers
            self.run(s.body)
            return
        with self.writer.scope(statement=True):
            if not self.accesses.store_records(stores):
                self.accesses.store_all(stores)

    def _let(self, s: loopir.Let) -> None:
        e = s.value
        with self.writer.scope(statement=True):
            lanes = self.values.width(e)
            if self.values.buffers(e):
                for scope in self.writer.scopes:  # read memory as it is now
                    scope.memo.pop(e, None)
                before, self.writer.at = self.writer.at, len(self.writer.scopes) - 1
                name = self.values.build(e) if e.op in ("load",) else self.value(e, lanes)
                self.writer.at = before
            else:
                name = self.value(e, lanes)
            if e.op == "const" and lanes == 1:
                t = element_type(e.dtype)
                name = self.op(f"select i1 true, {t} {name}, {t} {name}")
        self._define(s.target, name, lanes)

    def _define(self, target: Expr, name: str, lanes: int) -> None:
        self.values.names[target] = name
        self.values.depths[target] = len(self.writer.scopes) - 1
        if lanes > 1:
            self.values.vectors.add(target)

    def _slot(self, target: Expr, lanes: int) -> str:
        name = self.writer.fresh()
        if self.values.lanes is not None:
            self.values.own.add(name)
        self.writer.entry.append(f"  {name} = alloca {self.values.slot_type(target, lanes)}")
        self.values.mutables[target] = (name, lanes)
        if lanes > 1:
            self.values.vectors.add(target)
        return name

    def _declare(self, s: loopir.Declare) -> None:
        lanes = self.values.lanes.width if self.values.lanes is not None and s.target not in self.uniform else 1
        with self.writer.scope(statement=True):
            name = self.values.for_slot(s.target, s.value, lanes) if s.value is not None else None
            slot = self._slot(s.target, lanes)
            if name is not None:
                self.line(f"store {self.values.slot_type(s.target, lanes)} {name}, ptr {slot}")

    def _set(self, s: loopir.Set) -> None:
        with self.writer.scope(statement=True):
            self._assign(s.targets, s.values)

    def _assign(self, targets: Sequence[Expr], values: Sequence[Expr]) -> None:
        kept = []
        mask = self.values.lanes.mask if self.values.lanes is not None else None
        for t, v in zip(targets, values, strict=True):
            slot, lanes = self._mutable(t)
            name = self.values.for_slot(t, v, lanes)
            if lanes > 1 and mask is not None and slot not in self.values.own:
                vt = self.values.slot_type(t, lanes)
                name = self.op(f"select <{lanes} x i1> {mask}, {vt} {name}, {vt} {self.values.in_slot(t)}")
            kept.append(f"store {self.values.slot_type(t, lanes)} {name}, ptr {slot}")
        for line in kept:
            self.line(line)

    def _mutable(self, t: Expr) -> tuple[str, int]:
        slot = self.values.mutables.get(t)
        if slot is None:
            raise ValueError(f"{t} cannot be assigned here")
        return slot

    def _open(self, s: loopir.Open) -> None:
        lanes = self.values.lanes.width if self.values.lanes is not None else s.width
        with self.writer.scope(statement=True):
            for t, e in zip(s.accumulator.targets, s.accumulator.initial, strict=True):
                self.values.vectors.discard(t)
                self.values.names.pop(t, None)
                self.values.depths.pop(t, None)
                name = self.values.for_slot(t, e, lanes)
                self.line(f"store {self.values.slot_type(t, lanes)} {name}, ptr {self._slot(t, lanes)}")

    def _fold(self, s: loopir.Fold) -> None:
        with self.writer.scope(statement=True):
            self._combine(s)

    def _combine(self, s: loopir.Fold) -> None:
        acc = s.accumulator
        for v in s.values:
            for a in v.args if v.op == "mul" and acc.name == "add" else (v,):
                self.value(a, self.values.width(a))
        if acc.name == "add":  # products are folded with one rounding
            self.writer.contract, before = True, self.writer.contract
        self.writer.folding = True
        self._assign(acc.targets, acc.combine(acc.targets, s.values))
        self.writer.folding = False
        if acc.name == "add":
            self.writer.contract = before

    def _close(self, s: loopir.Close) -> None:
        """Folds the lanes of an accumulator, halving them, and names the results."""
        acc = s.accumulator
        lanes = self.values.mutables[acc.targets[0]][1]
        inside = self.values.lanes is not None
        with self.writer.scope(statement=True):
            results = [self.values.from_slot(t) for t in acc.targets]
            if not inside and lanes > 1:
                results = self._fold_lanes(acc, results, lanes)
        for t, name in zip(acc.targets, results, strict=True):
            del self.values.mutables[t]
            self.values.vectors.discard(t)
            self._define(t, name, lanes if inside else 1)

    def _fold_lanes(self, acc: Any, names: list[str], lanes: int) -> list[str]:
        """Combines the lower half of the lanes with the upper one until one is left. Each step's vectors are half as
        long as those before, as short ones cost less, but no shorter than a register: LLVM would widen those, and
        branch on conditions that it has of single numbers."""
        around, self.writer.folding = self.values.lanes, True
        types = [element_type(t.dtype) for t in acc.targets]
        least = min(lanes, max(REGISTER // t.dtype.itemsize for t in acc.targets))
        while lanes > 1:
            before, lanes = max(lanes, least), lanes // 2
            now = max(lanes, least)
            with self.writer.scope():
                halves = [[self.arena.unique("get", t.dtype, f"{t.attr}.{side}") for t in acc.targets]
                          for side in ("low", "high")]
                self.values.lanes = Lanes(halves[0][0], "0", now, None)
                for half, first in zip(halves, (0, lanes), strict=True):
                    for node, name, t in zip(half, names, types, strict=True):
                        self._define(node, self._turned(name, t, before, first, now), now)
                names = [self.value(e, now) for e in acc.combine(*halves)]
            for node in (*halves[0], *halves[1]):
                self.values.vectors.discard(node)
        self.values.lanes, self.writer.folding = around, False
        return [self.op(f"extractelement <{least} x {t}> {name}, i32 0")
                for name, t in zip(names, types, strict=True)]

    def _turned(self, name: str, t: str, lanes: int, first: int, count: int) -> str:
        """So many lanes of a vector from the first, and then those before it."""
        if not first and count == lanes:
            return name
        v, order = f"<{lanes} x {t}>", ", ".join(f"i32 {(first + i) % lanes}" for i in range(count))
        return self.op(f"shufflevector {v} {name}, {v} poison, <{count} x i32> <{order}>")

    def _copy(self, s: loopir.Copy) -> None:
        self.blocks.copy(s)
        self.accesses.forget(s.target)

    def _exchange(self, s: loopir.Exchange) -> None:
        self.exchanges.exchange(s)

    def _transpose(self, s: loopir.Transpose) -> None:
        with self.writer.scope(statement=True):
            self.accesses.turn(s)
        self.accesses.forget(s.target)

    def _call(self, s: loopir.Call) -> None:
        types, texts = [], []
        with self.writer.scope(statement=True):
            for a in s.arguments:
                if isinstance(a, Expr):
                    t, text = element_type(a.dtype), self.value(a)
                elif isinstance(a[0], Buffer):
                    t = "ptr"
                    m = memory_type(a[0].dtype)
                    text = self.op(f"getelementptr {m}, ptr {self.values.pointer(a[0])}, i64 {self.value(a[1])}")
                else:
                    t, e = "ptr", a[1]
                    text = self.writer.fresh()
                    parts = (e.args if e.op == "complex" else (e,))
                    element = element_type(parts[0].dtype)
                    self.writer.entry.append(f"  {text} = alloca [{len(parts)} x {element}]")
                    for k, p in enumerate(parts):
                        at = self.op(f"getelementptr {element}, ptr {text}, i64 {k}")
                        self.line(f"store {element} {self.value(p)}, ptr {at}")
                types.append(t)
                texts.append(f"{t} {text}")
            result = "void" if s.result is None else element_type(s.result.dtype)
            self.writer.declare(f"declare {result} @{s.symbol}({', '.join(types)})")
            call = f"call {result} @{s.symbol}({', '.join(texts)})"
            name = ""
            if s.result is None:
                self.line(call)
            else:
                name = self.op(call)
        if s.result is not None:
            self._define(s.result, name, 1)
        for b in s.writes:
            self.accesses.forget(b)

    # -- control flow ----------------------------------------------------------------------------------------
    def _if(self, s: loopir.If) -> None:
        with self.writer.scope(statement=True):
            condition = self.value(s.condition)
            then, other, end = self.writer.label("then"), self.writer.label("else"), self.writer.label("end")
            blocks = self._block(then, s.then, end)
            if s.otherwise:
                blocks += self._block(other, s.otherwise, end)
            self.line(f"br i1 {condition}, label %{then}, label %{other if s.otherwise else end}")
            self.writer.scopes[self.writer.at].lines.extend(blocks)
            self.writer.start(end)
        for b in self.frame.writes(s.then, s.otherwise):
            self.accesses.forget(b)

    def _block(self, label: str, body: Sequence[Statement], end: str) -> list[str]:
        with self.writer.scope(self.frame.writes(body), hold=True) as scope:
            self.writer.start(label)
            self.run(body)
            self.line(f"br label %{end}")
        return scope.lines

    def _switch(self, s: loopir.Switch) -> None:
        with self.writer.scope(statement=True):
            index = self.value(s.index)
            t = element_type(s.index.dtype)
            labels = [self.writer.label("case") for _ in s.branches]
            end = self.writer.label("end")
            cases = " ".join(f"{t} {i}, label %{name}" for i, name in enumerate(labels[:-1]))
            blocks = [line for name, branch in zip(labels, s.branches, strict=True)
                      for line in self._block(name, branch, end)]
            self.line(f"switch {t} {index}, label %{labels[-1]} [{cases}]")
            self.writer.scopes[self.writer.at].lines.extend(blocks)
            self.writer.start(end)
        for b in self.frame.writes(*s.branches):
            self.accesses.forget(b)

    def _while(self, s: loopir.While) -> None:
        with self.exchanges.around(s.body) as exchanged:
            self._while_turns(s, exchanged)

    def _while_turns(self, s: loopir.While, exchanged: Sequence[Buffer]) -> None:
        writes = self.frame.writes(s.head, s.body)
        head, body, end = self.writer.label("head"), self.writer.label("body"), self.writer.label("end")
        with self.writer.scope(writes, loop=True):
            self.line(f"br label %{head}")
            self.writer.start(head)
            self.exchanges.turn(exchanged)
            self.run(s.head)
            condition = self._any(s.condition)
            if s.open_ended:
                condition = self.op(f"and i1 {self._goes_on(condition)}, {self.frame.burn(s)}")
            with self.writer.scope(writes, hold=True) as inside:
                self.writer.start(body)
                self.run(s.body)
                self.line(f"br label %{head}")
            self.line(f"br i1 {condition}, label %{body}, label %{end}")
            self.writer.scopes[self.writer.at].lines.extend(inside.lines)
            self.writer.start(end)
        for b in writes:
            self.accesses.forget(b)

    def _any(self, condition: Expr) -> str:
        """Whether a condition holds, in some lane."""
        lanes = self.values.width(condition)
        name = self.value(condition, lanes)
        if lanes == 1 or self.values.lanes is None:
            return name
        if self.values.lanes.mask is not None:
            name = self.op(f"and <{lanes} x i1> {name}, {self.values.lanes.mask}")
        symbol = f"@llvm.vector.reduce.or.v{lanes}i1"
        self.writer.declare(f"declare i1 {symbol}(<{lanes} x i1>)")
        return self.op(f"call i1 {symbol}(<{lanes} x i1> {name})")

    def _loop(self, s: loopir.Loop) -> None:
        if s.parallel and self.values.lanes is None and not self.nested:
            self._parallel(s)
        else:
            extent = self.value(self.arena.index(s.extent))
            with self.exchanges.around(s.body):
                self.loop(s, "0", extent)
        for b in self.frame.writes(s.body):
            self.accesses.forget(b)

    def loop(self, s: loopir.Loop, low: str, high: str) -> None:
        """Turns of a loop: all of them, or some that begin and end where steps do, or where it ends."""
        if s.kind is LoopKind.VECTOR and s.width != 1 and self.values.lanes is None:
            self._vector_loop(s, low, high)
        elif s.rest is not None:
            self._jammed_loop(s, s.rest, low, high)
        else:
            self._counted(s, low, high, "1", None)

    def _counted(self, s: loopir.Loop, low: str, high: str, step: str, lanes: Lanes | None) -> None:
        """for (i = low; i < high; i += step), entered only if low < high."""
        head, end = self.writer.label("loop"), self.writer.label("end")
        static = low.isdigit() and high.isdigit()
        if static and int(low) >= int(high):
            return
        turns = range(int(low), int(high), int(step)) if static else ()
        if len(turns) == 1 or turns and lanes is not None and code_size.written_out(s.body, len(turns)):
            for turn in turns:
                with self.writer.scope(self.frame.writes(s.body)):
                    self._body(s, str(turn), lanes)
            return
        entry = self.writer.label("enter")
        with self.writer.scope(self.frame.writes(s.body), loop=True):
            if static:
                self.line(f"br label %{entry}")
            else:  # (here, so that what is hoisted stands before the branch)
                ready = self.op(f"icmp slt i64 {low}, {high}")
                self.line(f"br i1 {ready}, label %{entry}, label %{end}")
            self.writer.start(entry)
            self.line(f"br label %{head}")
            self.writer.start(head)
            i, following = self.writer.fresh(), self.writer.fresh()
            latch = self.writer.label("latch")
            self.line(f"{i} = phi i64 [ {low}, %{entry} ], [ {following}, %{latch} ]")
            around, self.values.turning = self.values.turning, (
                Turning(s.var, int(step), high) if _turns(s, int(step)) else None)
            self._body(s, i, lanes)
            self.values.turning = around
            self.line(f"br label %{latch}")
            self.writer.start(latch)
            self.line(f"{following} = add nsw i64 {i}, {step}")
            again = self.op(f"icmp slt i64 {following}, {high}")
            if lanes is None and self.frame.looks(s):
                again = self._goes_on(again)
            self.line(f"br i1 {again}, label %{head}, label %{end}")
        self.writer.start(end)

    def _goes_on(self, condition: str) -> str:
        return self.op(f"select i1 {self.frame.stopping()}, i1 false, i1 {condition}")

    def _body(self, s: loopir.Loop, i: str, lanes: Lanes | None) -> None:
        if lanes is not None:
            lanes.base = i
            previous, self.values.lanes = self.values.lanes, lanes
            self.values.vectors.add(lanes.var)
            self.uniform = divergence.uniform(s.body, s.var, self.frame.writes, self.values.buffers)
        self.values.depths[s.var] = len(self.writer.scopes) - 1
        self.values.names[s.var] = i
        self.exchanges.turn(self.exchanges.buffers(s.body))
        if lanes is None and not i.isdigit():
            self.accesses.ask_ahead(s)
        self.run(s.body)
        if lanes is not None:
            self.values.lanes = previous
            self.values.vectors.discard(lanes.var)
        for scope in self.writer.scopes:
            scope.memo.pop(s.var, None)

    def _jammed_loop(self, s: loopir.Loop, rest: list[Statement], low: str, high: str) -> None:
        """Whole steps, then the iterations that are left one by one."""
        full = self._covered(low, high, s.width) if rest else high
        self._counted(s, low, full, str(s.width), None)
        if full != high:
            self._counted(loopir.Loop(s.var, s.extent, rest), full, high, "1", None)

    def _covered(self, low: str, high: str, width: int) -> str:
        """Where the whole steps of a loop end."""
        if low.isdigit() and high.isdigit():
            return str(int(low) + (int(high) - int(low)) // width * width)
        count = self.op(f"sub i64 {high}, {low}")
        covered = self.op(f"mul i64 {self.op(f'sdiv i64 {count}, {width}')}, {width}")
        return self.op(f"add i64 {low}, {covered}")

    def _vector_loop(self, s: loopir.Loop, low: str, high: str) -> None:
        byte = None if self.module.bounds else copies_and_fills.fills(self.arena, s)
        if byte is not None:
            self.blocks.fill(s, low, high, byte)
            return
        if self.blocks.copied(s, low, high):
            return
        width = s.width or max(self.module.vector_bytes // 4, 1)
        static = low.isdigit() and high.isdigit()
        if isinstance(s.extent, int) and s.extent % width == 0:
            self._counted(s, low, high, str(width), Lanes(s.var, "", width, None))
            return
        nested = any(s.bodies()) and any(
            isinstance(x, (loopir.Loop, loopir.While, loopir.If)) for x in statements(s.body))
        if static:
            if not s.width and not nested:
                self._remainder_loops(s, int(low), int(high), width)
                return
            if int(high) - int(low) < width:
                self._masked_loop(s, low, high, width)
                return
        if nested and not code_size.written_twice(s.body, static, self.module.vector_bytes):
            self._masked_loop(s, low, high, width)
            return
        full = self._covered(low, high, width)
        self._counted(s, low, full, str(width), Lanes(s.var, "", width, None))
        last = max(self.module.vector_bytes // 4, 1)  # one vector for what is left, however many a step takes
        if last < width and code_size.has_own_sums(s.body):
            low, width = full, last
            if static:
                full = self._covered(low, high, width)
                self._counted(s, low, full, str(width), Lanes(s.var, "", width, None))
        if full != high:
            self._masked_loop(s, full, high, width)

    def _remainder_loops(self, s: loopir.Loop, low: int, high: int, width: int) -> None:
        """Whole vectors, and for what is left a half of one, a quarter, and so on. Nothing is stored under a mask: the
        next update of a scatter may read it, and would have to wait."""
        while low < high:
            full = low + (high - low) // width * width
            lanes = Lanes(s.var, "", width, None) if width > 1 else None
            self._counted(s, str(low), str(full), str(width), lanes)
            low, width = full, width // 2

    def _masked_loop(self, s: loopir.Loop, low: str, high: str, width: int) -> None:
        if low.isdigit() and high.isdigit() and int(high) - int(low) <= width:
            with self.writer.scope(self.frame.writes(s.body)):
                count = int(high) - int(low)
                while width // 2 >= count and code_size.has_own_sums(s.body):
                    width //= 2
                if count == width:
                    self._body(s, low, Lanes(s.var, low, width, None) if width > 1 else None)
                    return
                mask = "<" + ", ".join(f"i1 {'true' if k < count else 'false'}" for k in range(width)) + ">"
                self._body(s, low, Lanes(s.var, low, width, mask))
            return
        head, end, entry, latch = (self.writer.label(x) for x in ("loop", "end", "enter", "latch"))
        with self.writer.scope(self.frame.writes(s.body), loop=True):
            ready = self.op(f"icmp slt i64 {low}, {high}")
            self.line(f"br i1 {ready}, label %{entry}, label %{end}")
            self.writer.start(entry)
            self.line(f"br label %{head}")
            self.writer.start(head)
            i, following = self.writer.fresh(), self.writer.fresh()
            self.line(f"{i} = phi i64 [ {low}, %{entry} ], [ {following}, %{latch} ]")
            over = self.op(f"sub i64 {i}, {high}")
            mask = ramps.compared(self.writer, self.values.splat, "lt", over, BEFORE, 1, width,
                                  self.module.vector_bytes)
            self._body(s, i, Lanes(s.var, i, width, mask))
            self.line(f"br label %{latch}")
            self.writer.start(latch)
            self.line(f"{following} = add nsw i64 {i}, {width}")
            again = self.op(f"icmp slt i64 {following}, {high}")
            self.line(f"br i1 {again}, label %{head}, label %{end}")
        self.writer.start(end)

    # -- threads -----------------------------------------------------------------------------------------------
    def _parallel(self, s: loopir.Loop) -> None:
        """Hands chunks of a loop to the thread pool; the body becomes a function of its own."""
        steps = s.kind in (LoopKind.VECTOR, LoopKind.JAMMED)
        width = (s.width or self.module.vector_bytes // 4) if steps else 1
        grain = width  # elements in one iteration of the pool
        rows = s.width if s.kind is LoopKind.JAMMED else 1  # each as much work as a turn; lanes are one
        work = rows * max(s.work or costs.instructions(s.body), 1)
        count = max(1, int(CHUNK_WORK // work))
        per_claim = str(count)
        each = costs.at_run_time(self.arena, s.body) if costs.instructions(s.body) == math.inf else None
        if each is not None:  # little work is not handed out, however long loops might be
            per_claim = self.op(f"sdiv i64 {CHUNK_WORK}, {self.value(self.arena.iadd(each, 1))}")
        elif steps:
            grain = width * count
            per_claim = "1"
        part, given = self._piece(s, grain)
        total = self.value(self.arena.index(s.extent))
        if grain != 1:
            up = self.op(f"add i64 {total}, {grain - 1}")
            total = self.op(f"sdiv i64 {up}, {grain}")
        env = self.writer.fresh()
        self.writer.entry.append(f"  {env} = alloca [{max(len(given), 1) * 64} x i8], align 64")
        for k, word in enumerate(given):
            at = self.op(f"getelementptr i8, ptr {env}, i64 {k * 64}")
            self.line(f"store {word}, ptr {at}")
        self.writer.declare("declare void @styrax_parallel_for(ptr, ptr, i64, i64)")
        self.line(
            f"call void @styrax_parallel_for(ptr @{part}, ptr {env}, i64 {total}, i64 {per_claim})")

    def _piece(self, s: loopir.Loop, grain: int) -> tuple[str, list[str]]:
        """The function of some turns of a loop, of so many elements each, and what its environment holds."""
        child = self._turns_of(s, grain)
        return (self.module.part(child.writer.name, child.frame.end()),
                [f"{t} {name}" for t, name, _ in child.writer.captured])

    def _turns_of(self, s: loopir.Loop, grain: int) -> Function:
        self.module.counter += 1
        child = Function(self.module, f"part{self.module.counter}", "ptr %env, i64 %begin, i64 %end", "void", self)
        child.frame.reserve(s.body)
        if self.module.long:
            child.frame.leave_if_stopping()
        if grain == 1:
            child.loop(s, "%begin", "%end")
            return child
        low = child.op(f"mul i64 %begin, {grain}")
        top = child.op(f"mul i64 %end, {grain}")
        limit = child.value(self.arena.index(s.extent))
        inside = child.op(f"icmp slt i64 {top}, {limit}")
        child.loop(s, low, child.op(f"select i1 {inside}, i64 {top}, i64 {limit}"))
        return child


def _turns(s: loopir.Loop, step: int) -> bool:
    """Whether a loop turns more often than prefetching looks ahead."""
    return not isinstance(s.extent, int) or s.extent // step >= 2 * AHEAD


_WRITERS: dict[type[Statement], Callable[[Function, Any], None]] = {
    kind: getattr(Function, f"_{kind.__name__.lower()}") for kind in loopir.STATEMENTS}

__all__ = ["Function", "Module"]
