"""Writing a function's text: names, labels, scopes.

A function is a stack of scopes (loop bodies, branches). Instructions go to one of them, and a scope's lines
are appended to the enclosing one at its end, after whatever was hoisted there in the meantime.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..compile.ir.expr import Arena, Expr
from ..compile.ir.loopir import Buffer, Loop
from ..compile.ir.placement import Placement
from .instructions import vector
from .math import FUNCTIONS, TEXTS, module_text
from .touched import Touched

UNIT = 12_000  # characters of IR from which functions are a module of their own
USED = re.compile(r"@([\w.]+)")
ELEMENTARY = re.compile(r"@styrax\.(\w+)\.([fiu]\d+)\.(\d+)")
IMPURE = ("load", "call")  # instructions whose results depend on more than their operands


class Scope:
    """A stretch of code: its lines, the expressions and the instructions already computed in it. That of one statement
    is run whenever what is around it is: only what the statement itself assigns belongs to it alone."""

    __slots__ = ("lines", "memo", "readers", "known", "writes", "loop", "statement")

    def __init__(self, writes: frozenset[Buffer] = frozenset(), loop: bool = False, statement: bool = False):
        self.lines: list[str] = []
        self.memo: dict[Any, Any] = {}  # names, and tuples of such
        self.readers: dict[Buffer, list[Any]] = {}  # a buffer that has its own memory -> what of `memo` reads it
        self.known: dict[str, str] = {}
        self.writes = writes
        self.loop = loop
        self.statement = statement

    def keep(self, key: Any, name: Any, reads: frozenset[Buffer]) -> None:
        self.memo[key] = name
        for buffer in reads:
            self.readers.setdefault(buffer, []).append(key)

    def forget(self, buffer: Buffer) -> None:
        for key in self.readers.pop(buffer, ()):
            self.memo.pop(key, None)


class Lanes:
    """The vector loop around: its variable, the scalar name of its first lane's index, width and mask."""

    __slots__ = ("var", "base", "width", "mask")

    def __init__(self, var: Expr, base: str, width: int, mask: str | None):
        self.var = var
        self.base = base
        self.width = width
        self.mask = mask


class Module:
    """The text of one LLVM module: functions, declarations, elementary functions in use."""

    def __init__(self, arena: Arena, vector_bytes: int, numerics: int, placement: Placement, bounds: bool = False,
                 long: bool = False, fuel_at: int = 0, outlined: frozenset[Loop] = frozenset(),
                 apart: Callable[[str], object] | None = None):
        self.arena = arena
        self.numerics = numerics  # what rounding may differ: see `compile.lowering.rewrites`
        self.vector_bytes = vector_bytes
        self.bounds = bounds
        self.placement = placement
        self.touched = Touched(placement.root)
        self._roots: dict[frozenset[Buffer], frozenset[Buffer]] = {}
        self.long = long  # its program may have to be stopped
        self.fuel_at = fuel_at  # the program's argument that is its fuel, if it asks for it
        self.outlined = outlined  # the nests that become functions of their own
        self.homes: dict[Buffer, tuple[str, int]] = {}  # where pointers come from: a slot, or a place in the workspace
        self.apart = None if bounds else apart  # takes modules that are compiled apart (one word tells of all bounds)
        self.gathered: list[str] = []  # the parts that are to be the next of these
        self.functions: dict[str, str] = {}
        self.segments: list[str] = []  # the program's own function, where it is long
        self.forms: dict[Any, tuple[str, list[tuple[str, str | int]]]] = {}  # of nests -> the part, what it is given
        self.parts: dict[str, str] = {}  # what parts of the program do -> the name of the one that does it
        self.declarations: dict[str, None] = {}
        self.math: dict[tuple[str, str, int], None] = {}
        self.counter = 0

    def roots(self, buffers: frozenset[Buffer]) -> frozenset[Buffer]:
        """Those that have the memory of these buffers."""
        found = self._roots.get(buffers)
        if found is None:
            found = self._roots[buffers] = frozenset(map(self.placement.root, buffers))
        return found

    def part(self, name: str, text: str) -> str:
        """Adds a function of a nest, and gives its name. Layers of a network are alike: of functions with the same
        text the first one serves all (identical code folding)."""
        known = self.parts.setdefault(text.replace(f"@{name}(", "@(", 1), name)
        if known == name:
            self.functions[name] = text
            self.gathered.append(name)
            self._hand_over(UNIT)
        return known

    def _hand_over(self, least: int) -> None:
        """Has what was gathered compiled, if that is work for a thread."""
        if self.apart is not None and sum(len(self.functions[n]) for n in self.gathered) >= least:
            self.apart(self._unit(self.gathered))
            self.gathered = []

    def text(self) -> str:
        functions = "\n".join(self.functions.values())
        return "\n".join([*self.declarations, module_text(*self.math, calls=functions), functions])

    def last_unit(self) -> str:
        """The module that refers to those that are compiled apart: it has the program, and parts that are in none."""
        if len(self.functions["run"]) >= UNIT // 2:
            self._hand_over(UNIT // 2)
        return self.text() if len(self.gathered) == len(self.parts) else self._unit([*self.gathered, "run"])

    def _unit(self, names: Sequence[str]) -> str:
        pieces = {*self.parts.values(), "run"}
        text = "\n".join(self.functions[n] for n in names)
        others = {n for n in USED.findall(text) if n in self.functions and n not in names}
        text = "\n".join([*(self.functions[n] for n in sorted(others - pieces)), text])
        declared = [_declaration(self.functions[n]) for n in sorted(others & pieces)]
        used = {match.groups() for match in ELEMENTARY.finditer(text)}
        math = [key for key in self.math if (key[0], key[1], str(key[2])) in used]
        return "\n".join([*self.declarations, *declared, module_text(*math, calls=text), text])


def _declaration(definition: str) -> str:
    return "declare" + re.sub(r" %\w+", "", definition[: definition.index(")") + 1].removeprefix("define"))


class Writer:
    """The text of one function."""

    def __init__(self, module: Module, name: str, parameters: str | None, result: str):
        self.module = module
        self.arena = module.arena
        self.contract = False  # products are rounded with the sums that take them in
        self.folding = False  # inside the step of a reduction
        self.name = name
        self.parameters = parameters  # None: what it captures
        self.result = result
        self.entry: list[str] = []
        self.scopes = [Scope()]
        self.at = 0  # the scope that instructions go to
        self.count = 0
        # (type, name in the parent, what it is there: None of where a segment finds pointers)
        self.captured: list[tuple[str, str, Expr | Buffer | str | None]] = []

    # -- text --------------------------------------------------------------------------------------
    def fresh(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def op(self, text: str) -> str:
        """Writes an instruction, unless this stretch of code has it already."""
        scope = self.scopes[self.at]
        name = scope.known.get(text)
        if name is None:
            name = self.fresh()
            scope.lines.append(f"  {name} = {text}")
            if not text.startswith(IMPURE) or "@styrax." in text:  # elementary functions are pure
                scope.known[text] = name
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
        if name not in FUNCTIONS and name not in TEXTS:
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
        self.module.functions[symbol[1:]] = text
        return symbol

    def finish(self, ending: str) -> str:
        assert len(self.scopes) == 1
        body = "\n".join(["entry:", *self.entry, *self.scopes[0].lines, f"  {ending}"])
        parameters = self.parameters
        if parameters is None:
            parameters = ", ".join(f"{t} %e{k}" for k, (t, *_) in enumerate(self.captured))
        return f"define {self.result} @{self.name}({parameters}) nounwind {{\n{body}\n}}"

    @contextmanager
    def scope(self, writes: frozenset[Buffer] = frozenset(), loop: bool = False, hold: bool = False,
              statement: bool = False) -> Iterator[Scope]:
        """A nested stretch of code. Its lines are appended to the enclosing scope at its end, after whatever
        was hoisted there in the meantime; with `hold` the caller does that."""
        scope = Scope(writes, loop, statement)
        self.scopes.append(scope)
        before, self.at = self.at, len(self.scopes) - 1
        try:
            yield scope
        finally:
            self.scopes.pop()
            self.at = before
            if not hold:
                self.scopes[before].lines.extend(scope.lines)
