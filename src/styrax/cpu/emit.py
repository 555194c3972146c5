"""Loop IR to LLVM IR text.

A `Function` writes one LLVM function. It keeps a stack of scopes (loop bodies, branches); every expression is
emitted in the outermost scope where all it depends on is known, so invariants leave loops by construction. Inside
a vector loop, what depends on its variable has `width` lanes, and everything else stays scalar until it is needed
in lanes. Iterations of parallel loops go to a function of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..compile.expr import INDEX, Expr, Index, coefficient, const_value, poly_terms
from ..compile.loopir import (
    Buffer,
    Call,
    Close,
    Copy,
    Declare,
    Fold,
    If,
    Let,
    Loop,
    Open,
    Scratch,
    Set,
    Statement,
    Store,
    Switch,
    While,
    statements,
)
from ..compile.scalars import is_complex, part_dtype
from . import instructions
from .instructions import BOOL, cast, element_type, literal, memory_type, splat, suffix, vector
from .math import module_text
from .math import FUNCTIONS as OWN_FUNCTIONS

TWICE = 8  # estimated instructions up to which a nest is written twice, with and without a mask
CHUNK_WORK = 30_000  # estimated instructions that one claim of a thread should cost
STACK_BYTES = 1 << 14  # scratch memory up to this size stands on the stack


class Scope:
    """A stretch of code: its lines, and the expressions already computed in it."""

    __slots__ = ("lines", "memo", "writes", "loop")

    def __init__(self, writes: frozenset[Buffer] = frozenset(), loop: bool = False):
        self.lines: list[str] = []
        self.memo: dict[Any, str] = {}
        self.writes = writes
        self.loop = loop


class Rows:
    """The loop around a vector loop whose iterations stand side by side in registers: a tile of rows × columns."""

    __slots__ = ("var", "base", "count")

    def __init__(self, var: Expr, base: str, count: int):
        self.var = var
        self.base = base
        self.count = count


class Lanes:
    """The vector loop around: its variable, the scalar name of its first lane's index, width and mask.

    With `rows`, the lanes are a tile: lane r·columns + c is column c of row r. `column_mask` masks one row.
    """

    __slots__ = ("var", "base", "columns", "mask", "column_mask", "rows")

    def __init__(self, var: Expr, base: str, columns: int, mask: str | None, rows: Rows | None = None):
        self.var = var
        self.base = base
        self.columns = columns
        self.mask = mask
        self.column_mask = mask
        self.rows = rows

    @property
    def width(self) -> int:
        return self.columns * self.rows.count if self.rows is not None else self.columns

    @property
    def vars(self) -> set[Expr]:
        return {self.var, self.rows.var} if self.rows is not None else {self.var}


class Module:
    """The text of one LLVM module: functions, declarations, elementary functions in use."""

    def __init__(self, arena: Any, vector_bytes: int, contract: bool = False, bounds: bool = False):
        self.arena = arena
        self.vector_bytes = vector_bytes
        self.contract = contract
        self.bounds = bounds
        self.functions: list[str] = []
        self.declarations: dict[str, None] = {}
        self.math: dict[tuple[str, str, int], None] = {}
        self.counter = 0

    def text(self) -> str:
        return "\n".join([*self.declarations, module_text(*self.math), *self.functions])


class Function:
    """Writes one function."""

    def __init__(self, module: Module, name: str, parameters: str, result: str, parent: Function | None = None):
        self.module = module
        self.arena = module.arena
        self.contract = module.contract
        self.folding = False  # inside the step of a reduction
        self.name = name
        self.parameters = parameters
        self.result = result
        self.parent = parent
        self.entry: list[str] = []
        self.scopes = [Scope()]
        self.at = 0  # the scope that instructions go to
        self.count = 0
        self.depths: dict[Expr, int] = {}  # loop variables and lets -> scope
        self.names: dict[Expr, str] = {}
        self.mutables: dict[Expr, tuple[str, int]] = {}  # mutable scalars -> (stack slot, lanes)
        self.vectors: set[Expr] = set()  # leaves that have lanes
        self.lanes: Lanes | None = None
        self.rows: Rows | None = None
        self.pointers: dict[Buffer, str] = {}
        self.captured: list[tuple[str, str]] = []  # (type, name in the parent)
        self.loads: dict[Expr, frozenset[Buffer]] = {}

    # -- text --------------------------------------------------------------------------------------
    def fresh(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def op(self, text: str) -> str:
        name = self.fresh()
        self.scopes[self.at].lines.append(f"  {name} = {text}")
        return name

    def line(self, text: str) -> None:
        self.scopes[self.at].lines.append("  " + text)

    def label(self, stem: str) -> str:
        self.count += 1
        return f"{stem}{self.count}"

    def start(self, label: str) -> None:
        self.scopes[self.at].lines.append(f"{label}:")

    def declare(self, text: str) -> None:
        self.module.declarations[text] = None

    def function(self, name: str, dtype: str, lanes: int) -> str:
        if name not in OWN_FUNCTIONS:
            return self._lane_by_lane(name, dtype, lanes)
        self.module.math[name, dtype, lanes] = None
        return f"@styrax.{name}.{dtype}.{lanes}"

    def _lane_by_lane(self, name: str, dtype: str, lanes: int) -> str:
        """A function of the C library, for lanes one after the other."""
        t = "float" if dtype == "f32" else "double"
        c_name = name + ("f" if dtype == "f32" else "")
        self.declare(f"declare {t} @{c_name}({t}, {t})")
        if lanes == 1:
            return f"@{c_name}"
        symbol = f"@{c_name}.{lanes}"
        v = vector(t, lanes)
        lines = [f"define internal {v} {symbol}({v} %x, {v} %y) {{"]
        previous = "poison"
        for i in range(lanes):
            lines += [f"  %x{i} = extractelement {v} %x, i32 {i}", f"  %y{i} = extractelement {v} %y, i32 {i}",
                      f"  %r{i} = call {t} @{c_name}({t} %x{i}, {t} %y{i})",
                      f"  %o{i} = insertelement {v} {previous}, {t} %r{i}, i32 {i}"]
            previous = f"%o{i}"
        text = "\n".join([*lines, f"  ret {v} {previous}", "}"])
        if text not in self.module.functions:
            self.module.functions.append(text)
        return symbol

    def finish(self, ending: str) -> str:
        assert len(self.scopes) == 1
        body = "\n".join(["entry:", *self.entry, *self.scopes[0].lines, f"  {ending}"])
        return f"define {self.result} @{self.name}({self.parameters}) nounwind {{\n{body}\n}}"

    @contextmanager
    def scope(self, writes: frozenset[Buffer] = frozenset(), loop: bool = False, hold: bool = False) -> Iterator[Scope]:
        """A nested stretch of code. Its lines are appended to the enclosing scope at its end, after whatever was hoisted
        there in the meantime; with `hold` the caller does that."""
        scope = Scope(writes, loop)
        self.scopes.append(scope)
        before, self.at = self.at, len(self.scopes) - 1
        try:
            yield scope
        finally:
            self.scopes.pop()
            self.at = before
            if not hold:
                self.scopes[before].lines.extend(scope.lines)

    # -- leaves --------------------------------------------------------------------------------------
    def pointer(self, buffer: Buffer) -> str:
        root = buffer.root
        name = self.pointers.get(root)
        if name is None:
            if self.parent is None:
                raise KeyError(f"buffer {root} has no memory")
            name = self.pointers[root] = self._capture("ptr", self.parent.pointer(root))
        return name

    def _capture(self, t: str, name: str) -> str:
        """A value of the parent function, passed through the environment."""
        index = len(self.captured)
        self.captured.append((t, name))
        self.entry.append(f"  %e{index}p = getelementptr i8, ptr %env, i64 {index * 64}")
        self.entry.append(f"  %e{index} = load {t}, ptr %e{index}p")
        return f"%e{index}"

    def known(self, leaf: Expr) -> bool:
        return leaf in self.depths or leaf in self.mutables

    def _leaf_depth(self, leaf: Expr) -> int:
        if leaf in self.mutables:
            return len(self.scopes) - 1
        depth = self.depths.get(leaf)
        if depth is None:
            if self.parent is None:
                raise KeyError(f"{leaf} is not defined here")
            if leaf in self.parent.vectors:
                raise ValueError("a parallel loop stands inside a vector loop")
            self.depths[leaf] = depth = 0
            self.names[leaf] = self._capture(element_type(leaf.dtype), self.parent.value(leaf))
        return depth

    def buffers(self, e: Expr) -> frozenset[Buffer]:
        found = self.loads.get(e)
        if found is None:
            stack = [e]
            while stack:  # iterative: expressions can be deep
                n = stack[-1]
                missing = [a for a in n.args if a not in self.loads]
                if missing:
                    stack.extend(missing)
                    continue
                stack.pop()
                if n in self.loads:
                    continue
                parts = [self.loads[a] for a in n.args if self.loads[a]]
                if n.op == "load":
                    parts.append(frozenset((n.attr[0].root,)))
                self.loads[n] = frozenset().union(*parts) if parts else frozenset()
            found = self.loads[e]
        return found

    def depth(self, e: Expr) -> int:
        """The outermost scope where `e` can be computed."""
        depth = 0
        for leaf in e.deps:
            depth = max(depth, self._leaf_depth(leaf))
        top = len(self.scopes) - 1
        if depth < top:
            loads = self.buffers(e)
            if loads:
                # a load stays inside branches, and inside loops that write what it reads
                for d in range(top, depth, -1):
                    scope = self.scopes[d]
                    if not scope.loop or loads & scope.writes:
                        return d
        return depth

    def width(self, e: Expr) -> int:
        return self.lanes.width if self.lanes is not None and not e.deps.isdisjoint(self.vectors) else 1

    # -- expressions -----------------------------------------------------------------------------------
    def value(self, e: Expr, lanes: int = 1) -> str:
        """The name of an expression's value, spread over lanes where it is uniform and lanes are asked for."""
        own = self.width(e)
        name = self._emit(e)
        if own == lanes:
            return name
        if own != 1:
            raise ValueError(f"{e} has {own} lanes where {lanes} are wanted")
        return self._spread(e, name, lanes)

    def _spread(self, e: Expr, name: str, lanes: int) -> str:
        t = element_type(e.dtype)
        if e.op == "const":
            return splat(name, t, lanes)
        depth = self.depth(e)
        memo = self.scopes[depth].memo
        key = (e, lanes)
        found = memo.get(key)
        if found is None:
            before, self.at = self.at, depth
            first = self.op(f"insertelement <{lanes} x {t}> poison, {t} {name}, i32 0")
            found = self.op(f"shufflevector <{lanes} x {t}> {first}, <{lanes} x {t}> poison, <{lanes} x i32> zeroinitializer")
            self.at = before
            memo[key] = found
        return found

    def _find(self, e: Expr) -> str | None:
        for scope in reversed(self.scopes):
            name = scope.memo.get(e)
            if name is not None:
                return name
        return None

    def _emit(self, e: Expr) -> str:
        if e.op == "const":
            value = const_value(e)
            return str(_signed64(value)) if e.dtype == INDEX else literal(value, e.dtype)
        found = self._find(e)
        if found is not None:
            return found
        stack = [e]
        while stack:
            n = stack[-1]
            if n.op != "const" and self._find(n) is None:
                if n.op not in ("load", "poly", "guard"):
                    missing = [a for a in n.args if a.op != "const" and self._find(a) is None]
                    if missing:
                        stack.extend(missing)
                        continue
                depth = self.depth(n)
                before, self.at = self.at, depth
                name = self._build(n)
                self.at = before
                self.scopes[depth].memo[n] = name
            stack.pop()
        found = self._find(e)
        assert found is not None
        return found

    def _build(self, e: Expr) -> str:
        op = e.op
        lanes = self.width(e)
        if op == "var":
            if self.lanes is not None and e in self.lanes.vars:
                return self._iota(self.lanes, e)
            return self.names[e]
        if op == "get":
            slot = self.mutables.get(e)
            if slot is not None:
                return self.op(f"load {vector(element_type(e.dtype), slot[1])}, ptr {slot[0]}")
            return self.names[e]
        if op == "param":
            return self.names[e] if e in self.names else self._param(e)
        if op == "poly":
            return self._poly(e, lanes)
        if op == "load":
            return self._load(e, lanes)
        if op == "guard":
            return self.value(e.args[1], lanes)
        a = tuple(self.value(x, lanes) for x in e.args)
        if op == "cast":
            return cast(self, a[0], e.args[0].dtype, e.dtype, lanes)
        if op == "select":
            t = vector(element_type(e.dtype), lanes)
            return self.op(f"select {vector('i1', lanes)} {a[0]}, {t} {a[1]}, {t} {a[2]}")
        if op == "widen":
            return instructions.widen(self, a[0], e.args[0].dtype, lanes)
        if op == "narrow":
            return instructions.narrow(self, a[0], e.args[0].dtype, e.dtype, lanes)
        if op == "bitcast":
            return instructions.bitcast(self, a[0], e.args[0].dtype, e.dtype, lanes)
        return instructions.rows[op](self, e.args[0].dtype, lanes, a)

    def _param(self, e: Expr) -> str:
        if self.parent is None:
            raise KeyError(f"the size {e} is not a parameter")
        self.names[e] = self._capture("i64", self.parent.value(e))
        return self.names[e]

    def _iota(self, lanes: Lanes, e: Expr) -> str:
        w = lanes.width
        if e is lanes.var:
            base, steps = lanes.base, [i % lanes.columns for i in range(w)]
        else:
            assert lanes.rows is not None
            base, steps = lanes.rows.base, [i // lanes.columns for i in range(w)]
        first = self.op(f"insertelement <{w} x i64> poison, i64 {base}, i32 0")
        every = self.op(f"shufflevector <{w} x i64> {first}, <{w} x i64> poison, <{w} x i32> zeroinitializer")
        return self.op(f"add <{w} x i64> {every}, <{', '.join(f'i64 {i}' for i in steps)}>")

    def _poly(self, e: Expr, lanes: int) -> str:
        uniform: dict[tuple[Expr, ...], int] = {}
        varying: dict[tuple[Expr, ...], int] = {}
        for m, c in poly_terms(e).items():
            (uniform if all(self.width(a) == 1 for a in m) else varying)[m] = c
        if not varying:
            return self._sum(uniform, 1) or "0"
        total = ""
        if uniform:
            rest = self.arena.poly(uniform)
            total = splat(self._emit(rest), "i64", lanes) if rest.op == "const" else self.value(rest, lanes)
        return self._sum(varying, lanes, total)

    def _sum(self, terms: dict[tuple[Expr, ...], int], lanes: int, total: str = "") -> str:
        """Adds terms up, each as far outside as it can be computed."""
        t = vector("i64", lanes)
        top = self.at
        ordered = sorted(terms.items(), key=lambda item: self._depth_of_all(item[0])) if lanes == 1 else terms.items()
        for m, c in ordered:
            if lanes == 1:
                self.at = min(self._depth_of_all(m), top)
            if not m:
                term = splat(str(_signed64(c)), "i64", lanes)
            else:
                factors = [self.value(a, lanes) for a in m]
                term = factors[0]
                for x in factors[1:]:
                    term = self.op(f"mul {t} {term}, {x}")
                if c != 1:
                    term = self.op(f"mul {t} {term}, {splat(str(_signed64(c)), 'i64', lanes)}")
            total = self.op(f"add {t} {total}, {term}") if total else term
        self.at = top
        return total

    def _depth_of_all(self, m: tuple[Expr, ...]) -> int:
        return max((self.depth(a) for a in m), default=0)

    def _first(self, place: Expr, row: int = 0, column: int = 0) -> str:
        """The index of a place at the first lane (of a row, a column): lane variables stand for their first value."""
        lanes = self.lanes
        assert lanes is not None
        rest: dict[tuple[Expr, ...], int] = {}
        total = ""
        for m, c in poly_terms(place).items():
            if not any(a in lanes.vars for a in m):
                rest[m] = c
        total = self.value(self.arena.poly(rest))
        for m, c in poly_terms(place).items():
            mine = [a for a in m if a in lanes.vars]
            if not mine:
                continue
            (a,) = mine
            name = lanes.base
            if a is lanes.var and column:
                name = self.op(f"add i64 {name}, {column}")
            if lanes.rows is not None and a is lanes.rows.var:
                name = lanes.rows.base
                if row:
                    name = self.op(f"add i64 {name}, {row}")
            for x in m:
                if x is not a:
                    name = self.op(f"mul i64 {name}, {self.value(x)}")
            if c != 1:
                name = self.op(f"mul i64 {name}, {_signed64(c)}")
            total = name if total == "0" else self.op(f"add i64 {total}, {name}")
        return total

    # -- memory ------------------------------------------------------------------------------------------
    def _guards(self, place: Expr) -> tuple[Expr, list[Expr]]:
        """A place without its guards, and their conditions."""
        if not any(a.op == "guard" for a in place.args) and place.op != "guard":
            return place, []
        conditions: list[Expr] = []
        out = self.arena.int(0)
        for m, c in poly_terms(place).items():
            term = self.arena.int(c)
            for a in m:
                while a.op == "guard":
                    conditions.append(a.args[0])
                    a, more = self._guards(a.args[1])
                    conditions += more
                term = self.arena.imul(term, a)
            out = self.arena.iadd(out, term)
        inner, more = self._guards(out)
        return inner, list(dict.fromkeys(conditions + more))

    def _address(self, buffer: Buffer, index: str, part: int | None, lanes: int = 1) -> str:
        """The address of an element (of its real or imaginary part)."""
        if part is None:
            t = memory_type(buffer.dtype)
        else:
            t = element_type(part_dtype(buffer.dtype))
            two = splat("2", "i64", lanes)
            index = self.op(f"mul {vector('i64', lanes)} {index}, {two}") if index != "0" else index
            if part:
                one = splat("1", "i64", lanes)
                index = self.op(f"add {vector('i64', lanes)} {index}, {one}")
        pointer = self.pointer(buffer)
        return self.op(f"getelementptr {t}, ptr {pointer}, {vector('i64', lanes)} {index}")

    def _access(self, place: Expr) -> str:
        """How a place moves with the lanes: "uniform", "row" (contiguous), "rows" (contiguous in each row of a tile),
        "column" (one place for each row), "turned" (contiguous in each column of a square tile), or "gather"."""
        if self.width(place) == 1:
            return "uniform"
        lanes = self.lanes
        assert lanes is not None
        if not (place.deps & self.vectors) <= lanes.vars:
            return "gather"
        steps = {}
        for v in lanes.vars:
            c = coefficient(self.arena, place, v)
            if c is None or not c.deps.isdisjoint(self.vectors):
                return "gather"
            steps[v] = c.attr if c.op == "const" else c
        down = steps.get(lanes.rows.var, 0) if lanes.rows is not None else 0
        if steps[lanes.var] == 1:
            return "row" if down == 0 else "rows"
        if down == 1 and lanes.column_mask is None and lanes.rows.count == lanes.columns:  # type: ignore[union-attr]
            return "turned"
        return "column" if steps[lanes.var] == 0 and lanes.rows is not None else "gather"

    def _load(self, e: Expr, lanes: int) -> str:
        buffer, part = e.attr
        dtype = e.dtype
        t = element_type(dtype) if part is not None else memory_type(buffer.dtype)
        place, conditions = self._guards(e.args[0])
        condition: Expr | None = None
        for c in conditions:
            condition = c if condition is None else self.arena.node("and", (condition, c), BOOL)
        if lanes == 1:
            index = self.value(place)
            if condition is not None:
                holds = self.value(condition)
                index = self.op(f"select i1 {holds}, i64 {index}, i64 0")
            index = self._checked(buffer, index)
            return self._to_register(self.op(f"load {t}, ptr {self._address(buffer, index, part)}"), buffer, part, 1)
        assert self.lanes is not None
        mask = self.lanes.mask
        if condition is not None:
            holds = self.value(condition, lanes)
            mask = holds if mask is None else self.op(f"and <{lanes} x i1> {mask}, {holds}")
        mask = self._checked_lanes(buffer, place, lanes, mask)
        kind = self._access(place)
        if self.lanes.rows is not None and condition is None and part is None and kind != "gather":
            return self._load_tile(buffer, place, t, kind)
        if kind == "row" and self.lanes.rows is None:
            index = self._first(place)
            if part is not None:
                return self._load_pairs(buffer, index, t, part, lanes, mask, place)
            loaded = self._load_lanes(self._address(buffer, index, None), t, lanes, mask)
        else:
            index = self.value(place, lanes)
            loaded = self._gather(self._address(buffer, index, part, lanes), t, lanes, mask)
        return self._to_register(loaded, buffer, part, lanes)

    def _checked(self, buffer: Buffer, index: str) -> str:
        """In checked programs: the index, or 0 after a note of the violation where it lies outside the buffer."""
        if not self.module.bounds:
            return index
        size = self.value(self.arena.index(buffer.size))
        outside = self.op(f"icmp uge i64 {index}, {size}")
        self._note(outside)
        return self.op(f"select i1 {outside}, i64 0, i64 {index}")

    def _checked_lanes(self, buffer: Buffer, place: Expr, lanes: int, mask: str | None) -> str | None:
        """In checked programs: the mask without the lanes that lie outside the buffer."""
        if not self.module.bounds:
            return mask
        size = self.value(self.arena.index(buffer.size), lanes)
        index = self.value(place, lanes)
        outside = self.op(f"icmp uge <{lanes} x i64> {index}, {size}")
        if mask is not None:
            outside = self.op(f"and <{lanes} x i1> {outside}, {mask}")
        symbol = f"@llvm.vector.reduce.or.v{lanes}i1"
        self.declare(f"declare i1 {symbol}(<{lanes} x i1>)")
        self._note(self.op(f"call i1 {symbol}(<{lanes} x i1> {outside})"))
        inside = self.op(f"xor <{lanes} x i1> {outside}, {splat('true', 'i1', lanes)}")
        return inside if mask is None else self.op(f"and <{lanes} x i1> {inside}, {mask}")

    def _note(self, outside: str) -> None:
        self.declare("@outside = internal global i32 0")
        old = self.op("load i32, ptr @outside")
        new = self.op(f"select i1 {outside}, i32 1, i32 {old}")
        self.line(f"store i32 {new}, ptr @outside")

    def _load_tile(self, buffer: Buffer, place: Expr, t: str, kind: str) -> str:
        """A tile of rows × columns: a row repeated, a column spread, or all of it row by row."""
        lanes = self.lanes
        assert lanes is not None and lanes.rows is not None
        columns, count = lanes.columns, lanes.rows.count
        parts = []
        if kind == "turned":
            for column in range(columns):
                address = self._address(buffer, self._first(place, column=column), None)
                parts.append(self._to_register(self._load_lanes(address, t, count, None), buffer, None, count))
            return self._stack(self._transpose(parts, element_type(buffer.dtype), columns), element_type(buffer.dtype), columns)
        for row in range(1 if kind == "row" else count):
            address = self._address(buffer, self._first(place, row), None)
            if kind == "column":
                name = self._to_register(self.op(f"load {t}, ptr {address}"), buffer, None, 1)
                element = element_type(buffer.dtype)
                first = self.op(f"insertelement <{columns} x {element}> poison, {element} {name}, i32 0")
                parts.append(self.op(f"shufflevector <{columns} x {element}> {first}, <{columns} x {element}> poison, "
                                     f"<{columns} x i32> zeroinitializer"))
            else:
                loaded = self._load_lanes(address, t, columns, lanes.column_mask)
                parts.append(self._to_register(loaded, buffer, None, columns))
        return self._stack(parts if len(parts) > 1 else parts * count, element_type(buffer.dtype), columns)

    def _transpose(self, parts: list[str], t: str, n: int) -> list[str]:
        """n vectors of n lanes as the columns of what they were the rows of: log2(n) rounds of exchanges."""
        distance = 1
        v = f"<{n} x {t}>"
        while distance < n:
            out = list(parts)
            for i in range(n):
                if i & distance:
                    continue
                a, b = parts[i], parts[i + distance]
                low = ", ".join(f"i32 {p if not p & distance else n + p - distance}" for p in range(n))
                high = ", ".join(f"i32 {p + distance if not p & distance else n + p}" for p in range(n))
                out[i] = self.op(f"shufflevector {v} {a}, {v} {b}, <{n} x i32> <{low}>")
                out[i + distance] = self.op(f"shufflevector {v} {a}, {v} {b}, <{n} x i32> <{high}>")
            parts = out
            distance *= 2
        return parts

    def _stack(self, parts: list[str], t: str, columns: int) -> str:
        """Vectors side by side in one, joined pairwise so that the code generator sees whole registers."""
        widths = [columns] * len(parts)
        while len(parts) > 1:
            joined, sizes = [], []
            for k in range(0, len(parts) - 1, 2):
                a, n = parts[k], widths[k]
                b, m = parts[k + 1], widths[k + 1]
                if m < n:  # the shorter one is padded first
                    order = ", ".join(f"i32 {i if i < m else 'poison'}" if i < m else "i32 poison" for i in range(n))
                    b = self.op(f"shufflevector <{m} x {t}> {b}, <{m} x {t}> poison, <{n} x i32> <{order}>")
                order = ", ".join(f"i32 {i}" for i in range(n + m))
                joined.append(self.op(f"shufflevector <{n} x {t}> {a}, <{n} x {t}> {b}, <{n + m} x i32> <{order}>"))
                sizes.append(n + m)
            if len(parts) % 2:
                joined.append(parts[-1])
                sizes.append(widths[-1])
            parts, widths = joined, sizes
        return parts[0]

    def _load_lanes(self, address: str, t: str, lanes: int, mask: str | None) -> str:
        v = vector(t, lanes)
        if mask is None:
            return self.op(f"load {v}, ptr {address}, align {_align(t)}")
        symbol = f"@llvm.masked.load.{suffix(t, lanes)}.p0"
        self.declare(f"declare {v} {symbol}(ptr, i32, <{lanes} x i1>, {v})")
        return self.op(f"call {v} {symbol}(ptr {address}, i32 {_align(t)}, <{lanes} x i1> {mask}, {v} zeroinitializer)")

    def _load_pairs(self, buffer: Buffer, index: str, t: str, part: int, lanes: int, mask: str | None,
                    place: Expr) -> str:
        """Complex numbers side by side: both parts are loaded at once, then taken apart."""
        memo = self.scopes[self.at].memo
        key = ("pairs", buffer.root, place, mask)
        wide = memo.get(key)
        v = vector(t, 2 * lanes)
        if wide is None:
            wide_mask = mask and self._double(mask, lanes)
            wide = memo[key] = self._load_lanes(self._address(buffer, index, 0), t, 2 * lanes, wide_mask)
        order = ", ".join(f"i32 {2 * i + part}" for i in range(lanes))
        return self.op(f"shufflevector {v} {wide}, {v} poison, <{lanes} x i32> <{order}>")

    def _double(self, mask: str, lanes: int) -> str:
        order = ", ".join(f"i32 {i // 2}" for i in range(2 * lanes))
        return self.op(f"shufflevector <{lanes} x i1> {mask}, <{lanes} x i1> poison, <{2 * lanes} x i32> <{order}>")

    def _gather(self, addresses: str, t: str, lanes: int, mask: str | None) -> str:
        v = vector(t, lanes)
        symbol = f"@llvm.masked.gather.{suffix(t, lanes)}.v{lanes}p0"
        self.declare(f"declare {v} {symbol}(<{lanes} x ptr>, i32, <{lanes} x i1>, {v})")
        mask = mask or splat("true", "i1", lanes)
        return self.op(f"call {v} {symbol}(<{lanes} x ptr> {addresses}, i32 {_align(t)}, <{lanes} x i1> {mask}, "
                       f"{v} zeroinitializer)")

    def _to_register(self, name: str, buffer: Buffer, part: int | None, lanes: int) -> str:
        if buffer.dtype == BOOL:
            return self.op(f"trunc {vector('i8', lanes)} {name} to {vector('i1', lanes)}")
        return name

    def store(self, buffer: Buffer, place: Expr, value: Expr) -> None:
        if is_complex(value.dtype):
            self._store_pair(buffer, place, value)
        else:
            self._store_part(buffer, place, value, None)
        self.forget(buffer)

    def _store_pair(self, buffer: Buffer, place: Expr, value: Expr) -> None:
        lanes = self.lanes.width if self.lanes is not None else 1
        re, im = value.args
        if lanes > 1 and self._access(place) == "row" and self.lanes is not None and self.lanes.rows is None:
            t = element_type(re.dtype)
            v = vector(t, lanes)
            order = ", ".join(f"i32 {i // 2 + lanes * (i % 2)}" for i in range(2 * lanes))
            both = self.op(f"shufflevector {v} {self.value(re, lanes)}, {v} {self.value(im, lanes)}, "
                           f"<{2 * lanes} x i32> <{order}>")
            index = self._first(place)
            mask = self.lanes.mask and self._double(self.lanes.mask, lanes)
            self._store_lanes(both, self._address(buffer, index, 0), t, 2 * lanes, mask)
            return
        re_name, im_name = self.value(re, self._store_width(place)), self.value(im, self._store_width(place))
        self._store_part(buffer, place, re, 0, re_name)
        self._store_part(buffer, place, im, 1, im_name)

    def _store_width(self, place: Expr) -> int:
        return self.lanes.width if self.lanes is not None else 1

    def _store_part(self, buffer: Buffer, place: Expr, value: Expr, part: int | None, name: str | None = None) -> None:
        t = element_type(value.dtype) if part is not None else memory_type(buffer.dtype)
        lanes = self._store_width(place)
        name = name or self.value(value, lanes)
        if buffer.dtype == BOOL:
            name = self.op(f"zext {vector('i1', lanes)} {name} to {vector('i8', lanes)}")
        if lanes == 1:
            address = self._address(buffer, self._checked(buffer, self.value(place)), part)
            self.line(f"store {t} {name}, ptr {address}")
            return
        assert self.lanes is not None
        kind = self._access(place)
        mask = self._checked_lanes(buffer, place, lanes, self.lanes.mask)
        if kind == "row" and part is None and self.lanes.rows is None:
            self._store_lanes(name, self._address(buffer, self._first(place), None), t, lanes, mask)
            return
        if kind == "rows" and part is None:
            columns = self.lanes.columns
            for row in range(self.lanes.rows.count):  # type: ignore[union-attr]
                order = ", ".join(f"i32 {row * columns + i}" for i in range(columns))
                one = self.op(f"shufflevector <{lanes} x {t}> {name}, <{lanes} x {t}> poison, <{columns} x i32> <{order}>")
                address = self._address(buffer, self._first(place, row), None)
                self._store_lanes(one, address, t, columns, self.lanes.column_mask)
            return
        addresses = self._address(buffer, self.value(place, lanes), part, lanes)
        v = vector(t, lanes)
        symbol = f"@llvm.masked.scatter.{suffix(t, lanes)}.v{lanes}p0"
        self.declare(f"declare void {symbol}({v}, <{lanes} x ptr>, i32, <{lanes} x i1>)")
        mask = mask or splat("true", "i1", lanes)
        self.line(f"call void {symbol}({v} {name}, <{lanes} x ptr> {addresses}, i32 {_align(t)}, <{lanes} x i1> {mask})")

    def _store_lanes(self, name: str, address: str, t: str, lanes: int, mask: str | None) -> None:
        v = vector(t, lanes)
        if mask is None:
            self.line(f"store {v} {name}, ptr {address}, align {_align(t)}")
            return
        symbol = f"@llvm.masked.store.{suffix(t, lanes)}.p0"
        self.declare(f"declare void {symbol}({v}, ptr, i32, <{lanes} x i1>)")
        self.line(f"call void {symbol}({v} {name}, ptr {address}, i32 {_align(t)}, <{lanes} x i1> {mask})")

    def forget(self, buffer: Buffer) -> None:
        """After a write: what was loaded from the buffer is out of date."""
        root = buffer.root
        for scope in self.scopes:
            stale = [k for k in scope.memo if self._reads(k, root)]
            for k in stale:
                del scope.memo[k]

    def _reads(self, key: Any, root: Buffer) -> bool:
        e = key if isinstance(key, Expr) else key[0] if isinstance(key[0], Expr) else None
        if e is None:
            return key[1] is root
        return root in self.buffers(e)

    # -- statements ----------------------------------------------------------------------------------------
    def run(self, body: Sequence[Statement]) -> None:
        for s in body:
            getattr(self, "_" + type(s).__name__.lower())(s)

    def _store(self, s: Store) -> None:
        with self.scope():
            self.store(s.buffer, s.offset, s.value)

    def _let(self, s: Let) -> None:
        e = s.value
        with self.scope():
            lanes = self.width(e)
            if self.buffers(e):
                for scope in self.scopes:  # read memory as it is now
                    scope.memo.pop(e, None)
                before, self.at = self.at, len(self.scopes) - 1
                name = self._build(e) if e.op in ("load",) else self.value(e, lanes)
                self.at = before
            else:
                name = self.value(e, lanes)
            if e.op == "const" and lanes == 1:
                t = element_type(e.dtype)
                name = self.op(f"select i1 true, {t} {name}, {t} {name}")
        self._define(s.target, name, lanes)

    def _define(self, target: Expr, name: str, lanes: int) -> None:
        self.names[target] = name
        self.depths[target] = len(self.scopes) - 1
        if lanes > 1:
            self.vectors.add(target)

    def _slot(self, target: Expr, lanes: int) -> str:
        name = self.fresh()
        self.entry.append(f"  {name} = alloca {vector(element_type(target.dtype), lanes)}")
        self.mutables[target] = (name, lanes)
        if lanes > 1:
            self.vectors.add(target)
        return name

    def _declare(self, s: Declare) -> None:
        lanes = self.lanes.width if self.lanes is not None else 1
        with self.scope():
            name = self.value(s.value, lanes) if s.value is not None else None
            slot = self._slot(s.target, lanes)
            if name is not None:
                self.line(f"store {vector(element_type(s.target.dtype), lanes)} {name}, ptr {slot}")

    def _set(self, s: Set) -> None:
        with self.scope():
            self._assign(s.targets, s.values)

    def _assign(self, targets: Sequence[Expr], values: Sequence[Expr]) -> None:
        names = []
        for t, v in zip(targets, values, strict=True):
            slot, lanes = self._mutable(t)
            name = self.value(v, lanes)
            if lanes > 1 and self.lanes is not None and self.lanes.mask is not None:
                vt = vector(element_type(t.dtype), lanes)
                old = self.value(t, lanes)
                name = self.op(f"select <{lanes} x i1> {self.lanes.mask}, {vt} {name}, {vt} {old}")
            names.append((slot, lanes, name))
        for t, (slot, lanes, name) in zip(targets, names, strict=True):
            self.line(f"store {vector(element_type(t.dtype), lanes)} {name}, ptr {slot}")

    def _mutable(self, t: Expr) -> tuple[str, int]:
        slot = self.mutables.get(t)
        if slot is None:
            raise ValueError(f"{t} cannot be assigned here")
        return slot

    def _open(self, s: Open) -> None:
        lanes = self.lanes.width if self.lanes is not None else s.width
        with self.scope():
            for t, e in zip(s.accumulator.targets, s.accumulator.initial, strict=True):
                self.vectors.discard(t)
                self.names.pop(t, None)
                self.depths.pop(t, None)
                name = self.value(e, lanes)
                slot = self._slot(t, lanes)
                self.line(f"store {vector(element_type(t.dtype), lanes)} {name}, ptr {slot}")

    def _fold(self, s: Fold) -> None:
        acc = s.accumulator
        with self.scope():
            if acc.name == "add":  # products are folded with one rounding
                for v in s.values:
                    for a in v.args if v.op == "mul" else (v,):
                        self.value(a, self.width(a))
                self.contract, before = True, self.contract
            self.folding = True
            self._assign(acc.targets, acc.combine(acc.targets, s.values))
            self.folding = False
            if acc.name == "add":
                self.contract = before

    def _close(self, s: Close) -> None:
        """Folds the lanes of an accumulator, halving them, and names the results."""
        acc = s.accumulator
        lanes = self.mutables[acc.targets[0]][1]
        inside = self.lanes is not None
        results = []
        if not inside and lanes > 1:
            self._halve(acc, lanes)
        with self.scope():
            for t in acc.targets:
                slot, n = self.mutables[t]
                element = element_type(t.dtype)
                name = self.op(f"load {vector(element, n)}, ptr {slot}")
                if not inside and n > 1:
                    name = self.op(f"extractelement <{n} x {element}> {name}, i32 0")
                results.append(name)
        for t, name in zip(acc.targets, results, strict=True):
            del self.mutables[t]
            self.vectors.discard(t)
            self._define(t, name, lanes if inside else 1)

    def _halve(self, acc: Any, lanes: int) -> None:
        others = [self.arena.unique("get", t.dtype, f"{t.attr}.other") for t in acc.targets]
        previous, self.lanes = self.lanes, Lanes(others[0], "0", lanes, None)
        step = lanes // 2
        self.folding = True
        while step:
            with self.scope():
                for t, o in zip(acc.targets, others, strict=True):
                    v = f"<{lanes} x {element_type(t.dtype)}>"
                    order = ", ".join(f"i32 {(i + step) % lanes}" for i in range(lanes))
                    name = self.op(f"shufflevector {v} {self.value(t, lanes)}, {v} poison, <{lanes} x i32> <{order}>")
                    self._define(o, name, lanes)
                self._assign(acc.targets, acc.combine(acc.targets, others))
            step //= 2
        self.folding = False
        for o in others:
            self.vectors.discard(o)
        self.lanes = previous

    def _scratch(self, s: Scratch) -> None:
        b = s.buffer
        if isinstance(b.size, int) and b.size * b.dtype.itemsize <= STACK_BYTES:
            name = self.fresh()
            self.entry.append(f"  {name} = alloca [{max(b.size * b.dtype.itemsize, 1)} x i8], align 64")
        else:
            self.declare("declare ptr @styrax_alloc(i64)")
            before, self.at = self.at, 0  # once for the function, whatever loops stand around
            size = self.value(self.arena.imul(self.arena.index(b.size), b.dtype.itemsize))
            name = self.op(f"call ptr @styrax_alloc(i64 {size})")
            self.at = before
            self.freed.append(name)
        self.pointers[b.root] = name

    def allocate(self, body: Sequence[Statement]) -> None:
        """Asks for the memory of temporary buffers whose sizes are known only now."""
        needed: dict[Buffer, None] = {}
        for s in statements(body):
            for e in s.exprs():
                needed.update(dict.fromkeys(self.buffers(e)))
        needed.update(dict.fromkeys(self._writes(body)))
        for buffer in needed:
            if buffer.kind == "temp" and buffer not in self.pointers:
                self.declare("declare ptr @styrax_alloc(i64)")
                size = self.value(self.arena.imul(self.arena.index(buffer.size), buffer.dtype.itemsize))
                name = self.op(f"call ptr @styrax_alloc(i64 {size})")
                self.freed.append(name)
                self.pointers[buffer] = name

    @property
    def freed(self) -> list[str]:
        try:
            return self._freed
        except AttributeError:
            self._freed: list[str] = []
            return self._freed

    def _copy(self, s: Copy) -> None:
        if s.target.root is s.source.root and s.target_offset is s.source_offset:
            return
        with self.scope():
            if is_complex(s.target.dtype):
                t = "{ %s, %s }" % ((element_type(part_dtype(s.target.dtype)),) * 2)
            else:
                t = memory_type(s.target.dtype)
            to = self.op(f"getelementptr {t}, ptr {self.pointer(s.target)}, i64 {self.value(s.target_offset)}")
            source = self.op(f"getelementptr {t}, ptr {self.pointer(s.source)}, i64 {self.value(s.source_offset)}")
            size = self.value(self.arena.imul(self.arena.index(s.count), s.target.dtype.itemsize))
            self.declare("declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)")
            self.line(f"call void @llvm.memmove.p0.p0.i64(ptr {to}, ptr {source}, i64 {size}, i1 false)")
        self.forget(s.target)

    def _call(self, s: Call) -> None:
        types, texts = [], []
        with self.scope():
            for a in s.arguments:
                if isinstance(a, Expr):
                    t, text = element_type(a.dtype), self.value(a)
                elif isinstance(a[0], Buffer):
                    t = "ptr"
                    m = "i8" if is_complex(a[0].dtype) else memory_type(a[0].dtype)
                    index = a[1] if not is_complex(a[0].dtype) else self.arena.imul(a[1], a[0].dtype.itemsize)
                    text = self.op(f"getelementptr {m}, ptr {self.pointer(a[0])}, i64 {self.value(index)}")
                else:
                    t, e = "ptr", a[1]
                    text = self.fresh()
                    parts = (e.args if e.op == "complex" else (e,))
                    element = element_type(parts[0].dtype)
                    self.entry.append(f"  {text} = alloca [{len(parts)} x {element}]")
                    for k, p in enumerate(parts):
                        at = self.op(f"getelementptr {element}, ptr {text}, i64 {k}")
                        self.line(f"store {element} {self.value(p)}, ptr {at}")
                types.append(t)
                texts.append(f"{t} {text}")
            result = "void" if s.result is None else element_type(s.result.dtype)
            self.declare(f"declare {result} @{s.symbol}({', '.join(types)})")
            call = f"call {result} @{s.symbol}({', '.join(texts)})"
            name = self.line(call) if s.result is None else self.op(call)
        if s.result is not None:
            self._define(s.result, name, 1)  # type: ignore[arg-type]
        for b in s.writes:
            self.forget(b)

    # -- control flow ----------------------------------------------------------------------------------------
    def _writes(self, *bodies: Sequence[Statement]) -> frozenset[Buffer]:
        out: set[Buffer] = set()
        for body in bodies:
            for s in statements(body):
                if isinstance(s, Store):
                    out.add(s.buffer.root)
                elif isinstance(s, Copy):
                    out.add(s.target.root)
                elif isinstance(s, Call):
                    out.update(b.root for b in s.writes)
        return frozenset(out)

    def _if(self, s: If) -> None:
        with self.scope():
            condition = self.value(s.condition)
            then, other, end = self.label("then"), self.label("else"), self.label("end")
            blocks = self._block(then, s.then, end)
            if s.otherwise:
                blocks += self._block(other, s.otherwise, end)
            self.line(f"br i1 {condition}, label %{then}, label %{other if s.otherwise else end}")
            self.scopes[self.at].lines.extend(blocks)
            self.start(end)
        for b in self._writes(s.then, s.otherwise):
            self.forget(b)

    def _block(self, label: str, body: Sequence[Statement], end: str) -> list[str]:
        with self.scope(self._writes(body), hold=True) as scope:
            self.start(label)
            self.run(body)
            self.line(f"br label %{end}")
        return scope.lines

    def _switch(self, s: Switch) -> None:
        with self.scope():
            index = self.value(s.index)
            t = element_type(s.index.dtype)
            labels = [self.label("case") for _ in s.branches]
            end = self.label("end")
            cases = " ".join(f"{t} {i}, label %{name}" for i, name in enumerate(labels[:-1]))
            blocks = [line for name, branch in zip(labels, s.branches, strict=True)
                      for line in self._block(name, branch, end)]
            self.line(f"switch {t} {index}, label %{labels[-1]} [{cases}]")
            self.scopes[self.at].lines.extend(blocks)
            self.start(end)
        for b in self._writes(*s.branches):
            self.forget(b)

    def _while(self, s: While) -> None:
        writes = self._writes(s.head, s.body)
        head, body, end = self.label("head"), self.label("body"), self.label("end")
        with self.scope(writes, loop=True):
            self.line(f"br label %{head}")
            self.start(head)
            self.run(s.head)
            condition = self.value(s.condition)
            with self.scope(writes, hold=True) as inside:
                self.start(body)
                self.run(s.body)
                self.line(f"br label %{head}")
            self.line(f"br i1 {condition}, label %{body}, label %{end}")
            self.scopes[self.at].lines.extend(inside.lines)
            self.start(end)
        for b in writes:
            self.forget(b)

    def _loop(self, s: Loop) -> None:
        if s.parallel and self.lanes is None and self.parent is None:
            self._parallel(s)
        else:
            extent = self.value(self.arena.index(s.extent))
            self.loop(s, "0", extent)
        for b in self._writes(s.body):
            self.forget(b)

    def loop(self, s: Loop, low: str, high: str) -> None:
        if s.kind == "vector" and s.width != 1 and self.lanes is None:
            self._vector_loop(s, low, high)
        elif s.kind == "rows":
            self._rows_loop(s, low, high)
        else:
            self._counted(s, low, high, "1", None)

    def _counted(self, s: Loop, low: str, high: str, step: str, lanes: Lanes | None) -> None:
        """for (i = low; i < high; i += step), entered only if low < high."""
        head, end = self.label("loop"), self.label("end")
        static = low.isdigit() and high.isdigit()
        if static and int(low) >= int(high):
            return
        entry = self.label("enter")
        with self.scope(self._writes(s.body), loop=True):
            if static:
                self.line(f"br label %{entry}")
            else:  # (here, so that what is hoisted stands before the branch)
                ready = self.op(f"icmp slt i64 {low}, {high}")
                self.line(f"br i1 {ready}, label %{entry}, label %{end}")
            self.start(entry)
            self.line(f"br label %{head}")
            self.start(head)
            i, following = self.fresh(), self.fresh()
            latch = self.label("latch")
            self.line(f"{i} = phi i64 [ {low}, %{entry} ], [ {following}, %{latch} ]")
            self._body(s, i, lanes)
            self.line(f"br label %{latch}")
            self.start(latch)
            self.line(f"{following} = add nsw i64 {i}, {step}")
            again = self.op(f"icmp slt i64 {following}, {high}")
            self.line(f"br i1 {again}, label %{head}, label %{end}")
        self.start(end)

    def _body(self, s: Loop, i: str, lanes: Lanes | None) -> None:
        if self.rows is not None and s.var is self.rows.var:
            self.rows.base = i
        if lanes is not None:
            lanes.base = i
            previous, self.lanes = self.lanes, lanes
            if self.rows is not None:
                lanes.rows = self.rows
                if lanes.mask is not None:
                    w, n = lanes.columns, lanes.width
                    order = ", ".join(f"i32 {k % w}" for k in range(n))
                    lanes.mask = self.op(f"shufflevector <{w} x i1> {lanes.mask}, <{w} x i1> poison, <{n} x i32> <{order}>")
            self.vectors |= lanes.vars
        self.depths[s.var] = len(self.scopes) - 1
        self.names[s.var] = i
        self.run(s.body)
        if lanes is not None:
            self.lanes = previous
            self.vectors -= lanes.vars
            if lanes.rows is not None:  # what was spread over the tile outside the loop is a scalar again
                for scope in self.scopes:
                    for key in [k for k in scope.memo if isinstance(k, Expr) and lanes.rows.var in k.deps]:
                        del scope.memo[key]
        for scope in self.scopes:
            scope.memo.pop(s.var, None)

    def _rows_loop(self, s: Loop, low: str, high: str) -> None:
        """Whole tiles, then the rows that are left one by one."""
        if low.isdigit() and high.isdigit():
            full = str(int(low) + (int(high) - int(low)) // s.width * s.width)
        else:
            count = self.op(f"sub i64 {high}, {low}")
            tiles = self.op(f"sdiv i64 {count}, {s.width}")
            covered = self.op(f"mul i64 {tiles}, {s.width}")
            full = self.op(f"add i64 {low}, {covered}")
        self.rows = Rows(s.var, "", s.width)
        self._counted(s, low, full, str(s.width), None)
        self.rows = None
        if full != high:
            self._counted(s, full, high, "1", None)

    def _vector_loop(self, s: Loop, low: str, high: str) -> None:
        width = s.width or max(self.module.vector_bytes // 4, 1)
        static = low.isdigit() and high.isdigit()
        nested = any(s.bodies()) and any(isinstance(x, (Loop, While, If)) for x in statements(s.body))
        if static:
            n = int(high) - int(low)
            if n % width == 0:
                self._counted(s, low, high, str(width), Lanes(s.var, "", width, None))
                return
            if n < width:
                with self.scope():
                    mask = "<" + ", ".join(f"i1 {'true' if k < n else 'false'}" for k in range(width)) + ">"
                    self._body(s, low, Lanes(s.var, low, width, mask))
                return
        if nested and not (static and 0 < s.work <= TWICE):
            self._masked(s, low, high, width)
            return
        if static:
            full = str(int(low) + (int(high) - int(low)) // width * width)
        else:
            count = self.op(f"sub i64 {high}, {low}")
            blocks = self.op(f"sdiv i64 {count}, {width}")
            covered = self.op(f"mul i64 {blocks}, {width}")
            full = self.op(f"add i64 {low}, {covered}")
        self._counted(s, low, full, str(width), Lanes(s.var, "", width, None))
        self._masked(s, full, high, width)

    def _masked(self, s: Loop, low: str, high: str, width: int) -> None:
        head, end, entry, latch = (self.label(x) for x in ("loop", "end", "enter", "latch"))
        with self.scope(self._writes(s.body), loop=True):
            ready = self.op(f"icmp slt i64 {low}, {high}")
            self.line(f"br i1 {ready}, label %{entry}, label %{end}")
            self.start(entry)
            self.line(f"br label %{head}")
            self.start(head)
            i, following = self.fresh(), self.fresh()
            self.line(f"{i} = phi i64 [ {low}, %{entry} ], [ {following}, %{latch} ]")
            left = self.op(f"sub i64 {high}, {i}")
            first = self.op(f"insertelement <{width} x i64> poison, i64 {left}, i32 0")
            every = self.op(f"shufflevector <{width} x i64> {first}, <{width} x i64> poison, <{width} x i32> zeroinitializer")
            steps = ", ".join(f"i64 {k}" for k in range(width))
            mask = self.op(f"icmp sgt <{width} x i64> {every}, <{steps}>")
            self._body(s, i, Lanes(s.var, i, width, mask))
            self.line(f"br label %{latch}")
            self.start(latch)
            self.line(f"{following} = add nsw i64 {i}, {width}")
            again = self.op(f"icmp slt i64 {following}, {high}")
            self.line(f"br i1 {again}, label %{head}, label %{end}")
        self.start(end)

    # -- threads -----------------------------------------------------------------------------------------------
    def _parallel(self, s: Loop) -> None:
        """Hands chunks of a loop to the thread pool; the body becomes a function of its own."""
        width = (s.width or self.module.vector_bytes // 4) if s.kind != "serial" else 1
        grain = width  # elements in one iteration of the pool
        work = max(s.work, 1)
        per_claim = max(1, CHUNK_WORK // work)
        if s.kind != "serial":
            grain = width * per_claim
            per_claim = 1
        self.module.counter += 1
        child = Function(self.module, f"part{self.module.counter}", "ptr %env, i64 %begin, i64 %end", "internal void", self)
        extent = self.arena.index(s.extent)
        if grain == 1:
            child.loop(s, "%begin", "%end")
        else:
            low = child.op(f"mul i64 %begin, {grain}")
            top = child.op(f"mul i64 %end, {grain}")
            limit = child.value(extent)
            inside = child.op(f"icmp slt i64 {top}, {limit}")
            high = child.op(f"select i1 {inside}, i64 {top}, i64 {limit}")
            child.loop(s, low, high)
        child.release()
        self.module.functions.append(child.finish("ret void"))
        total = self.value(extent)
        if grain != 1:
            up = self.op(f"add i64 {total}, {grain - 1}")
            total = self.op(f"sdiv i64 {up}, {grain}")
        env = self.fresh()
        self.entry.append(f"  {env} = alloca [{max(len(child.captured), 1) * 64} x i8], align 64")
        for k, (t, name) in enumerate(child.captured):
            at = self.op(f"getelementptr i8, ptr {env}, i64 {k * 64}")
            self.line(f"store {t} {name}, ptr {at}")
        self.declare("declare void @styrax_parallel_for(ptr, ptr, i64, i64)")
        self.line(f"call void @styrax_parallel_for(ptr @{child.name}, ptr {env}, i64 {total}, i64 {per_claim})")

    def release(self) -> None:
        if self.freed:
            self.declare("declare void @styrax_free(ptr)")
        for name in self.freed:
            self.line(f"call void @styrax_free(ptr {name})")


def _signed64(value: int) -> int:
    value &= (1 << 64) - 1
    return value - (1 << 64) if value >> 63 else value


def _align(t: str) -> int:
    return {"float": 4, "double": 8, "i8": 1, "i16": 2, "i32": 4, "i64": 8, "i1": 1}[t]


def index_text(i: Index) -> str:
    return str(i)


__all__ = ["Function", "Module", "np"]
