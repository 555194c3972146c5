"""What a function needs besides its statements: scratch memory, which may be refused, a look at whether to stop, and
fuel for loops that may never end.

Memory is asked for once, at the function's start. Where it is refused, or the program is cancelled, loops end early,
what has been computed is garbage, and the program's status says so. So it is where fuel runs out: a program with loops
of unknown length is given in the last word of its arguments how many instructions these may take, by estimate.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..compile.costs import instructions
from ..compile.ir.loopir import (
    Buffer,
    BufferKind,
    Loop,
    LoopKind,
    Scratch,
    Statement,
    While,
    statements,
)
from . import native_queue
from .expressions import Values
from .writer import Writer

STACK_BYTES = 1 << 14  # scratch memory up to this size stands on the stack
LONG = 1e8  # estimated instructions from which a loop looks at each turn whether to stop


def _own(body: Sequence[Statement], parts: bool) -> Iterator[Statement]:
    """The statements of a function; without those of parallel loops where they become `parts` of their own."""
    for s in body:
        yield s
        if not (parts and isinstance(s, Loop) and s.parallel):
            for inner in s.bodies():
                yield from _own(inner, parts)


def _on_stack(buffer: Buffer) -> bool:
    return isinstance(buffer.size, int) and buffer.nbytes <= STACK_BYTES


class Frame:
    """A function's scratch memory and status. `parent` is the frame of the function around."""

    def __init__(self, writer: Writer, values: Values, parent: Frame | None = None):
        self.writer, self.arena, self.module = writer, writer.arena, writer.module
        self.op, self.line = writer.op, writer.line
        self.values, self.value = values, values.value
        self.root = writer.module.placement.root
        self.parent = parent
        self.blocks: list[str] = []  # what `styrax_alloc` gave
        self.status_slot = ""  # where the program's status stands
        self.stop_word = ""  # points to the word that is set to cancel the program
        self.fuel_word = ""  # points to the program's fuel
        self.fuel, self.fuel_given = "", ""  # what this function has of it (a slot, which becomes a register), had
        self.leaves_early = False

    # -- memory ----------------------------------------------------------------------------------------------
    def reserve(self, body: Sequence[Statement], temporaries: bool = False) -> None:
        """Asks for the memory of large scratch buffers, and of `temporaries` whose sizes are known only now."""
        wanted = {self.root(s.buffer) for s in _own(body, self.parent is None)
                  if isinstance(s, Scratch) and not _on_stack(s.buffer)}
        if temporaries:
            read = {b for s in statements(body) for e in s.exprs() for b in self.values.buffers(e)}
            touched = read | self.writes(body)
            wanted |= {b for b in touched if b.kind is BufferKind.TEMP and b not in self.values.pointers}
        for buffer in sorted(wanted, key=lambda b: b.name):  # the same text in each process, which caches ask for
            size = self.value(self.arena.imul(self.arena.index(buffer.size), buffer.dtype.itemsize))
            self.blocks.append(self.op(f"call ptr @styrax_alloc(i64 {size})"))
            self.values.pointers[buffer] = self.blocks[-1]
        if not self.blocks:
            return
        self.writer.declare("declare ptr @styrax_alloc(i64)")
        self.writer.declare("declare void @styrax_free(ptr)")
        refused = [self.op(f"icmp eq ptr {name}, null") for name in self.blocks]
        failed = refused[0]
        for other in refused[1:]:
            failed = self.op(f"or i1 {failed}, {other}")
        none, enough = self.writer.label("none"), self.writer.label("enough")
        self.line(f"br i1 {failed}, label %{none}, label %{enough}")
        self.writer.start(none)
        self.line(f"store atomic i32 {native_queue.OUT_OF_MEMORY}, ptr {self._status()} monotonic, align 4")
        self.leaves_early = True
        self.line("br label %leave")
        self.writer.start(enough)

    def make_workspace(self, name: str, size: int) -> None:
        """Memory for a program's intermediate results, so many bytes; `reserve` looks whether it was refused."""
        if size <= STACK_BYTES:
            self.writer.entry.append(f"  {name} = alloca [{size} x i8], align 64")
        else:
            self.writer.entry.append(f"  {name} = call ptr @styrax_alloc(i64 {size})")
            self.blocks.append(name)

    def writes(self, *bodies: Sequence[Statement]) -> frozenset[Buffer]:
        first, *others = (self.module.touched.writes(body) for body in bodies)
        return first.union(*others) if others else first

    def scratch(self, s: Scratch) -> None:
        if _on_stack(s.buffer):
            name = self.values.pointers[self.root(s.buffer)] = self.writer.fresh()
            self.writer.entry.append(f"  {name} = alloca [{max(s.buffer.nbytes, 1)} x i8], align 64")

    def word(self, name: str) -> str:
        """Where the program's status stands, its fuel, or the word that stops it."""
        return {"stop": self._stop_word, "fuel": self._fuel_word, "status": self._status}[name]()

    # -- stopping --------------------------------------------------------------------------------------------
    def stopping(self) -> str:
        """Whether the program was asked to stop, now."""
        word = self.op(f"load atomic i32, ptr {self._stop_word()} monotonic, align 4")
        return self.op(f"icmp ne i32 {word}, 0")

    def _stop_word(self) -> str:
        if not self.stop_word:
            self.stop_word = ("%cancel" if self.parent is None else
                              self.values.capture("ptr", self.parent._stop_word(), "stop"))
        return self.stop_word

    def looks(self, s: Loop) -> bool:
        """Whether a loop is long enough to look at each turn whether to stop."""
        return self.module.long and s.kind is LoopKind.SERIAL and instructions([s]) >= LONG

    def leave_if_stopping(self) -> None:
        """At the start of a part: what remains of a cancelled loop's parts does nothing."""
        on = self.writer.label("on")
        self.leaves_early = True
        self.line(f"br i1 {self.stopping()}, label %leave, label %{on}")
        self.writer.start(on)

    # -- fuel ------------------------------------------------------------------------------------------------
    def burn(self, s: While) -> str:
        """At a turn of an open-ended loop: whether there is fuel for it."""
        if not self.fuel:
            self.fuel, self.fuel_given = "%fuel_left", "%fuel_given"
            word = self._fuel_word()
            self.writer.entry += ["  %fuel_left = alloca i64",
                                  f"  %fuel_given = load atomic i64, ptr {word} monotonic, align 8",
                                  "  store i64 %fuel_given, ptr %fuel_left"]
        turn = instructions([*s.head, *s.body], endless=0.0)  # (loops inside burn their own)
        left = self.op(f"sub i64 {self.op(f'load i64, ptr {self.fuel}')}, {int(min(max(turn, 1), LONG))}")
        self.line(f"store i64 {left}, ptr {self.fuel}")
        return self.op(f"icmp sge i64 {left}, 0")

    def _fuel_word(self) -> str:
        if not self.fuel_word:
            if self.parent is None:
                self.fuel_word = "%fuel"
                self.writer.entry.append(f"  %fuel = getelementptr i64, ptr %slots, i64 {self.module.fuel_at}")
            else:
                self.fuel_word = self.values.capture("ptr", self.parent._fuel_word(), "fuel")
        return self.fuel_word

    def _return_fuel(self) -> None:
        """At the end of a part: what it has burnt is taken from the program's."""
        used = self.op(f"sub i64 {self.fuel_given}, {self.op(f'load i64, ptr {self.fuel}')}")
        self.op(f"atomicrmw sub ptr {self.fuel_word}, i64 {used} monotonic")

    def _fuel_status(self) -> str:
        left = self.op(f"load atomic i64, ptr {self.fuel_word} monotonic, align 8")
        out = self.op(f"icmp slt i64 {left}, 0")
        if self.fuel:
            own = self.op(f"load i64, ptr {self.fuel}")
            out = self.op(f"or i1 {out}, {self.op(f'icmp slt i64 {own}, 0')}")
        return self.op(f"select i1 {out}, i32 {native_queue.OUT_OF_FUEL}, i32 0")

    def _status(self) -> str:
        if not self.status_slot:
            if self.parent is None:
                self.status_slot = "%status"
                self.writer.entry += ["  %status = alloca i32", "  store i32 0, ptr %status"]
            else:
                self.status_slot = self.values.capture("ptr", self.parent._status(), "status")
        return self.status_slot

    def end(self) -> str:
        """Gives memory back; of the program's function, the status. The text of the whole function."""
        if self.leaves_early:
            self.line("br label %leave")
            self.writer.start("leave")
        for name in self.blocks:
            self.line(f"call void @styrax_free(ptr {name})")
        if self.parent is not None:
            if self.fuel:
                self._return_fuel()
            return self.writer.finish("ret void")
        status = self._fuel_status() if self.fuel_word else "0"
        if self.stop_word:
            status = self.op(f"select i1 {self.stopping()}, i32 {native_queue.CANCELLED}, i32 {status}")
        if self.status_slot:
            status = self._unless_zero(self.op(f"load i32, ptr {self.status_slot}"), status)
        if self.module.bounds and "@outside = internal global i32 0" in self.module.declarations:
            flag = self.op("load i32, ptr @outside")
            self.line("store i32 0, ptr @outside")
            status = self._unless_zero(self.op(f"mul i32 {flag}, {native_queue.OUTSIDE}"), status)
        return self.writer.finish(f"ret i32 {status}")

    def _unless_zero(self, status: str, other: str) -> str:
        return self.op(f"select i1 {self.op(f'icmp ne i32 {status}, 0')}, i32 {status}, i32 {other}")
