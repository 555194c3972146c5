"""The text of loops as loops: what tests of passes begin with, and bug reports.

Declarations come first, then statements as `Statement.lines` prints them (`Program.show(declared=True)` gives both);
`#` and `;` begin comments:

    buffer arg0: float32 x 64 arg
    buffer out0: float32 x 64 out
    size n0
    for i0 < 64 vector(16):
      out0[i0] = add(arg0[i0], 1.0:float32)

What an accumulator does that is no operation of two scalars (`fold=`) and what an iteration is estimated to cost are
not in the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

import ml_dtypes
import numpy as np

from ...core.types.index_type import INDEX
from . import loopir
from .expr import BOOL, UNBOUNDED, Expr, Index, unwrap
from .loopir import Accumulator, Buffer, BufferKind, LoopKind, Statement

if TYPE_CHECKING:
    from ..lowering.builder import Builder

_COMPARISONS = frozenset("lt le gt ge eq ne".split())
_TOKEN = re.compile(r"""\s*(?:
    (?P<typed>-?(?:inf|nan|True|False|\d[\d.]*(?:e[+-]?\d+)?):[a-z]\w*) | (?P<int>-?\d+) |
    (?P<name>\$\d+|[A-Za-z_][\w.]*) | (?P<sign>//|<-|:=|[-+*%()<>\[\],&=]))""", re.X)


def parse(text: str, b: Builder) -> tuple[list[Statement], dict[str, Buffer]]:
    """The statements of a text and its buffers by name; expressions are made by a `Builder`.

    Raises:
      ValueError: the text is not well formed; the message shows the line.
    """
    reader = _Reader(text, b)
    return reader.block(0), reader.buffers


class _Reader:
    def __init__(self, text: str, b: Builder):
        self.b = b
        self.buffers: dict[str, Buffer] = {}
        self.names: dict[str, Expr] = {}
        self.accumulators: dict[str, Accumulator] = {}
        self.lines: list[tuple[int, str]] = []
        for line in text.split("\n"):
            line = re.split(r"\s*(?:[#;]|$)", line, maxsplit=1)[0]
            if line.strip():
                self.lines.append((len(line) - len(line.lstrip()), line.strip()))
        self.at = 0
        self.tokens: list[str] = []

    def fail(self, why: str) -> NoReturn:
        line = self.lines[min(self.at, len(self.lines)) - 1][1] if self.lines else ""
        raise ValueError(f"{why} in {line!r}")

    # -- statements ----------------------------------------------------------------------------------
    def block(self, indent: int) -> list[Statement]:
        out: list[Statement] = []
        while self.at < len(self.lines) and self.lines[self.at][0] >= indent:
            _, line = self.lines[self.at]
            if self.lines[self.at][0] > indent:
                self.fail("unexpected indentation")
            if line.startswith(("rest:", "else:", "case ", "do:", "holds ")):
                break
            self.at += 1
            s = self.read(line, indent)
            if s is not None:
                out.append(s)
        return out

    def inner(self, indent: int) -> list[Statement]:
        deeper = self.lines[self.at][0] if self.at < len(self.lines) else indent
        return self.block(deeper) if deeper > indent else []

    def follows(self, indent: int, start: str) -> str | None:
        """What stands after `start` on the next line, which is passed."""
        if self.at < len(self.lines) and self.lines[self.at][0] == indent and self.lines[self.at][1].startswith(start):
            self.at += 1
            return self.lines[self.at - 1][1][len(start):]
        return None

    def read(self, line: str, indent: int) -> Statement | None:
        try:
            return self.statement(line, indent)
        except KeyError as e:
            self.fail(f"{e.args[0]!r} is not known")
        except IndexError:
            self.fail("something is missing at the end")
        except TypeError as e:
            self.fail(str(e))

    def statement(self, line: str, indent: int) -> Statement | None:
        word = line.split(" ", 1)[0].rstrip(":")
        rest = line[len(word):].strip()
        read: Callable[..., Any] | None = getattr(self, f"_{word}", None)
        if read is not None and (line.endswith(":") or " " in line):
            return read(rest.rstrip(":"), indent)
        if re.match(r"[\w.]+ := ", line):
            name, value = line.split(" := ", 1)
            e = self.expr(value)
            return loopir.Let(self.target(name, e.dtype, e.bounds), e)
        if match := re.match(r"([\w., ]+) (\w+)= (.*)", line):
            accumulator = self.accumulators[match[1].split(", ")[0]]
            accumulator.combine, accumulator.name = _combine(self.b, match[2]), match[2]
            return loopir.Fold(accumulator, self.exprs(match[3]))
        left, _, right = line.partition(" = ")
        if left.endswith("]") and left.split("[")[0] in self.buffers:
            name, _, place = left.partition("[")
            return loopir.Store(self.buffers[name], self.expr(place[:-1]), self.expr(right))
        if right:
            return loopir.Set([self.names[n] for n in left.split(", ")], self.exprs(right))
        self.fail("no such statement")

    def _buffer(self, text: str, indent: int) -> None:
        match = re.fullmatch(r"([\w.]+): (\w+) x (.+?)((?: (?:arg|out|const|temp|donated|once))*)", text)
        if match is None:
            self.fail("no such buffer")
        name, dtype, size, words = match[1], match[2], match[3], match[4].split()
        kind = next((BufferKind(w) for w in words if w in tuple(BufferKind)), BufferKind.TEMP)
        self.taken(name)
        buffer = Buffer(name, _dtype(dtype), unwrap(self.expr(size)), kind, donated="donated" in words,
                        once="once" in words)
        self.b.buffers.append(buffer)
        self.buffers[name] = buffer

    def _where(self, text: str, indent: int) -> None:
        name, _, value = text.partition(" = ")
        self.names[name] = self.expr(value)

    def _size(self, name: str, indent: int) -> None:
        self.names[name] = self.b.arena.param(name)

    def _for(self, text: str, indent: int) -> Statement:
        match = re.fullmatch(r"(\w+) < (.+?)(?: (vector|jam|jammed)\((\d+)\))?(?: cost\((\d+)\))?( parallel)?", text)
        if match is None:
            self.fail("no such loop")
        extent = unwrap(self.expr(match[2]))
        self.taken(match[1])
        var = self.names.get(match[1])
        if var is None or self.b.extents.get(var) != extent:  # loops of one nest may have a variable in common
            var = self.names[match[1]] = self.b.arena.var(match[1], extent)
            self.b.extents[var] = extent
        body = self.inner(indent)
        kind = LoopKind(match[3] or "serial")
        rest: list[Statement] | None = None
        if kind is LoopKind.JAMMED:
            rest = self.inner(indent) if self.follows(indent, "rest:") is not None else []
        return loopir.Loop(var, extent, body, kind, int(match[4] or 1), 0, int(match[5] or 0), bool(match[6]), rest)

    def _if(self, text: str, indent: int) -> Statement:
        condition, then = self.expr(text), self.inner(indent)
        return loopir.If(condition, then, self.inner(indent) if self.follows(indent, "else:") is not None else [])

    def _switch(self, text: str, indent: int) -> Statement:
        index = self.expr(text)
        branches: list[list[Statement]] = []
        while self.follows(indent, f"case {len(branches)}:") is not None:
            branches.append(self.inner(indent))
        return loopir.Switch(index, branches)

    def _while(self, text: str, indent: int) -> Statement:
        head = self.inner(indent)
        condition = self.follows(indent + 2, "holds ")
        if condition is None or (holds := self.expr(condition)) is None or self.follows(indent, "do:") is None:
            self.fail("a loop without condition or body")
        return loopir.While(head, holds, self.inner(indent), text == "open ended")

    def _open(self, text: str, indent: int) -> Statement:
        names, _, values = text.partition(" = ")
        width = re.search(r" x (\d+)$", values)
        initial = self.exprs(values[:width.start()] if width else values)
        targets = [self.target(n, e.dtype) for n, e in zip(names.split(", "), initial, strict=True)]
        accumulator = Accumulator(targets, initial, _unknown, "fold")
        for t in targets:
            self.accumulators[str(t.attr)] = accumulator
        return loopir.Open(accumulator, int(width[1]) if width else 1)

    def _close(self, text: str, indent: int) -> Statement:
        return loopir.Close(self.accumulators[text.split(", ")[0]])

    def _var(self, text: str, indent: int) -> Statement:
        name, _, value = text.partition(" = ")
        if value:
            e = self.expr(value)
            return loopir.Declare(self.target(name, e.dtype), e)
        name, _, dtype = name.partition(": ")
        return loopir.Declare(self.target(name, _dtype(dtype)), None)

    def _copy(self, text: str, indent: int) -> Statement:
        match = re.fullmatch(r"(\w+)\[(.*)\] <- (\w+)\[(.*)\] x (.*)", text)
        if match is None:
            self.fail("no such copy")
        return loopir.Copy(self.buffers[match[1]], self.expr(match[2]), self.buffers[match[3]], self.expr(match[4]),
                    unwrap(self.expr(match[5])))

    def _exchange(self, text: str, indent: int) -> Statement:
        pairs = [re.fullmatch(r"(\w+) with (\w+)", pair) for pair in text.split(", ")]
        return loopir.Exchange([(self.buffers[m[1]], self.buffers[m[2]]) if m else self.fail("no such exchange")
                                for m in pairs])

    def _transpose(self, text: str, indent: int) -> Statement:
        match = re.fullmatch(r"(\w+)\[(.*)\] by (\d+) <- (\w+)\[(.*)\] by (\d+), (\d+) x (\d+)", text)
        if match is None:
            self.fail("no such transposition")
        return loopir.Transpose(self.buffers[match[1]], self.expr(match[2]), int(match[3]), self.buffers[match[4]],
                                self.expr(match[5]), *map(int, match.group(6, 7, 8)))

    def _call(self, text: str, indent: int) -> Statement:
        match = re.fullmatch(r"(\w+)\((.*?)\)(?: gives ([\w.]+): (\w+))?(?: reads ([\w, ]+?))?(?: writes ([\w, ]+))?",
                             text)
        if match is None:
            self.fail("no such call")
        reads, writes = ([self.buffers[n] for n in names.split(", ")] if names else [] for names in match.group(5, 6))
        result = None if match[3] is None else self.target(match[3], _dtype(match[4]))
        return loopir.Call(match[1], list(map(self.argument, _arguments(match[2]))), reads, writes, result)

    def argument(self, text: str) -> Any:
        """An argument of a native function: a scalar, `&scalar`, or `&buffer[place]`."""
        if not text.startswith("&"):
            return self.expr(text)
        name, bracket, place = text[1:].partition("[")
        if bracket and name in self.buffers:
            return self.buffers[name], self.expr(place[:-1])
        return "&", self.expr(text[1:])

    def _scratch(self, text: str, indent: int) -> Statement:
        name, dtype, size = re.split(r": |\[", text.rstrip("]"))
        buffer = self.buffers[name] = Buffer(name, _dtype(dtype), unwrap(self.expr(size)), BufferKind.SCRATCH)
        return loopir.Scratch(buffer)

    def _pack(self, text: str, indent: int) -> Statement:
        return loopir.Pack(self.exprs(text))

    def _together(self, text: str, indent: int) -> Statement:
        return loopir.Together(self.inner(indent))

    def target(self, name: str, dtype: Any, bounds: tuple[int, int] = UNBOUNDED) -> Expr:
        self.taken(name)
        e = self.names[name] = self.b.arena.unique("get", dtype, name, bounds)
        return e

    def taken(self, name: str) -> None:
        """What passes name is named otherwise."""
        if match := re.fullmatch(r"([A-Za-z_]+)(\d+)", name):
            self.b.declarations.names[match[1]] = max(self.b.declarations.names.get(match[1], -1), int(match[2]))

    # -- expressions -----------------------------------------------------------------------------------
    def expr(self, text: str) -> Expr:
        found = self.exprs(text)
        if len(found) != 1:
            self.fail(f"one expression, not {text!r}")
        return found[0]

    def exprs(self, text: str) -> list[Expr]:
        self.tokens = _tokens(text) or self.fail(f"{text!r} cannot be read")
        out = [self.sum()]
        while self.tokens and self.take(","):
            out.append(self.sum())
        if self.tokens:
            self.fail(f"{' '.join(self.tokens)!r} is left")
        return out

    def take(self, wanted: str) -> bool:
        if self.tokens and self.tokens[0] == wanted:
            del self.tokens[0]
            return True
        return False

    def expect(self, wanted: str) -> None:
        if not self.take(wanted):
            self.fail(f"{wanted!r} is missing before {' '.join(self.tokens)!r}")

    def sum(self) -> Expr:
        out = self.product()
        while self.take("+"):
            out = self.b.iadd(out, self.product())
        return out

    def product(self) -> Expr:
        out = self.atom()
        while self.tokens and self.tokens[0] in ("*", "//", "%"):
            apply = {"*": self.b.imul, "//": self.b.floordiv, "%": self.b.floormod}[self.tokens.pop(0)]
            out = apply(out, self.atom())
        return out

    def atom(self) -> Expr:
        token = self.tokens.pop(0)
        if token == "(":
            out = self.sum()
            self.expect(")")
            return out
        if ":" in token:
            value, _, dtype = token.partition(":")
            return self.b.const({"True": True, "False": False}.get(value, value), _dtype(dtype))
        if re.fullmatch(r"-?\d+", token):
            return self.b.int(int(token))
        if self.take("["):
            return self.load(token)
        if token in self.names:
            return self.names[token]
        return self.call(token)

    def load(self, name: str) -> Expr:
        place = self.sum()
        self.expect("]")
        loaded = self.b.load(self.buffers[name], place)
        for part, what in ((".re", 0), (".im", 1)):
            if self.take(part):
                return loaded.args[what]
        return loaded

    def call(self, op: str) -> Expr:
        attr = None
        dtype = None
        if self.take("<"):
            attr = []
            while not self.take(">"):
                attr.append(self.tokens.pop(0))
        self.expect("(")
        args = [self.sum()]
        while self.take(","):
            args.append(self.sum())
        self.expect(")")
        if attr and op == "transposed":
            _, name, _, _, _, row, _, count, _ = attr
            buffer = self.buffers[name]
            return self.b.arena.node(op, tuple(args), buffer.dtype, (buffer, None, int(row), int(count)))
        if attr:
            dtype = _dtype(attr[0])
        if op == "guard":
            return self.b.arena.node(op, tuple(args), INDEX, None, (0, max(args[2].bounds[1] - 1, 0)))
        if op == "complex":
            return self.b.complex(*args)
        if args[-1].dtype is INDEX and op in ("min", "max", "select") or dtype is INDEX and op == "cast":
            return self.b.cast(args[0], INDEX) if op == "cast" else getattr(self.b, op)(*args)  # with its bounds
        if dtype is None:
            dtype = BOOL if op in _COMPARISONS else args[1].dtype if op == "select" else args[0].dtype
        return self.b.arena.node(op, tuple(args), dtype)


def _tokens(text: str) -> list[str]:
    out, at = [], 0
    while at < len(text.rstrip()):
        match = _TOKEN.match(text, at)
        if match is None:
            return []
        token = match[match.lastgroup or 0]
        # the part of a complex element stands behind a bracket
        if match.lastgroup is None:
            return []
        out.append(token)
        at = match.end()
        part = re.match(r"\.(?:re|im)\b", text[at:])
        if token == "]" and part:
            out.append(part[0])
            at += part.end()
    return out


def _dtype(name: str) -> Any:
    if name == "index":
        return INDEX
    return np.dtype(getattr(ml_dtypes, name) if hasattr(ml_dtypes, name) else name)


def _arguments(text: str) -> list[str]:
    """A list split at the commas outside of brackets."""
    out, depth = [""], 0
    for c in text:
        depth += (c in "([") - (c in ")]")
        if c == "," and not depth:
            out.append("")
        else:
            out[-1] += c
    return [a.strip() for a in out if a.strip()]


def _combine(b: Any, name: str) -> Callable[..., Any]:
    method = getattr(b, {"and": "and_", "or": "or_"}.get(name, name), None)
    if method is None:
        return _unknown
    return lambda accs, values: [method(x, y) for x, y in zip(accs, values, strict=True)]


def _unknown(accs: Any, values: Any) -> NoReturn:
    raise ValueError("an accumulator whose text does not say what it does")


__all__ = ["Index", "parse"]
