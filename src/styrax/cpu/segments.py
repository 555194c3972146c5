"""The program's own function: it calls those of its nests, and where these are many, it does so in segments.

LLVM's time for a function that holds the pointers to all buffers of a long program grows with its square. A segment
finds those that it needs from the program's arguments and workspace.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby

from ..compile.ir.expr import Expr
from ..compile.ir.loopir import Buffer, Call, Copy, Loop, Statement
from .buffer_windows import windowed
from .emit import Function
from .outlining import Form
from .writer import Module

SEGMENT = 64  # statements in a segment


class Main(Function):
    """Writes the program's function, or with a `parent` a segment of it."""

    def __init__(self, module: Module, name: str, parameters: str | None, result: str, parent: Main | None = None):
        super().__init__(module, name, parameters, result, parent)
        self.nested = False

    def program(self, body: Sequence[Statement]) -> None:
        """Writes the statements of a whole program."""
        for together, group in groupby(body, self._names_nothing):
            statements = list(group)
            if not together or len(statements) <= SEGMENT:
                self.run(statements)
                continue
            for start in range(0, len(statements), SEGMENT):
                self._segment(statements[start : start + SEGMENT])

    def _names_nothing(self, s: Statement) -> bool:
        """Whether later statements see of one only what it writes to memory."""
        if isinstance(s, Loop):
            return s.parallel or s in self.module.outlined
        return isinstance(s, Copy) or isinstance(s, Call) and s.result is None

    def _segment(self, body: Sequence[Statement]) -> None:
        module = self.module
        child = Main(module, f"segment{len(module.segments)}", None, "void", self)
        for base, name in self.values.bases.items():
            child.values.bases[base] = child.values.capture("ptr", name)
        child.run(body)
        module.segments.append(child.frame.end())
        self._call_part(child.writer.name, [f"{t} {name}" for t, name, _ in child.writer.captured], body)

    def run(self, body: Sequence[Statement]) -> None:
        for s in body:
            if s in self.module.outlined:
                assert isinstance(s, Loop)
                self._outlined(s)
            else:
                super().run((s,))

    def _outlined(self, s: Loop) -> None:
        """A nest as a function of its own, which nests of the same form share."""
        nest = self._windowed(s)
        form = Form(nest, self.module.placement.root)
        self._call_part(*self._shared(form, 0, lambda: self._nest(nest)), [s])

    def _windowed(self, s: Loop) -> Loop:
        """A nest that counts from the first elements that it reaches, where these are known here."""
        if self.module.bounds:
            return s
        nest, windows = windowed(s, self.arena, self.module.placement.root)
        for b, (window, first) in windows.items():
            self.values.pointers[window] = self.op(
                f"getelementptr i8, ptr {self.values.pointer(b)}, i64 {first * b.dtype.itemsize}")
        return nest

    def _nest(self, s: Loop) -> Function:
        self.module.counter += 1
        child = Function(self.module, f"part{self.module.counter}", None, "void", self)
        child.run((s,))
        return child

    def _piece(self, s: Loop, grain: int) -> tuple[str, list[str]]:
        nest = self._windowed(s)
        return self._shared(Form(nest, self.module.placement.root), grain, lambda: self._turns_of(nest, grain))

    def _shared(self, form: Form, grain: int, write: Callable[[], Function]) -> tuple[str, list[str]]:
        """The function that nests of a form share (of which threads take `grain` elements at a time), and what it is
        given."""
        known = self.module.forms.get((grain, form.key))
        if known is None:
            child = write()
            text = child.frame.end()
            needs: list[tuple[str, str | int]] = [
                (t, source if isinstance(source, str) else form.numbers[source])
                for t, _, source in child.writer.captured]
            known = self.module.part(child.writer.name, text), needs
            self.module.forms[grain, form.key] = known
        part, needs = known
        return part, [f"{t} {self.frame.word(need) if isinstance(need, str) else self._known(form.sources[need])}"
                      for t, need in needs]

    def _known(self, source: Expr | Buffer) -> str:
        return self.values.pointer(source) if isinstance(source, Buffer) else self.value(source)

    def _call_part(self, part: str, given: Sequence[str], body: Sequence[Statement]) -> None:
        self.line(f"call void @{part}({', '.join(given)})")
        for b in self.frame.writes(body):
            self.accesses.forget(b)
