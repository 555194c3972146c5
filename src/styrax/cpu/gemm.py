"""Register-tiled matrix products as LLVM IR text: see `definition`.

A tile of C, some rows by one or two vectors of columns, stays in registers while the contracted dimension
runs: each step loads the vectors of B's row, and one number of A for each row, which multiplies them. Every
element of C is one chain of fma in the order of the contracted dimension, whatever the tiles, the strides
and the extents: its bits do not depend on them.

Tiles at the lower edge begin earlier, so that they are whole: their first rows are computed twice. At the
right edge, lanes are masked off. B is copied, panel by panel, to where a step's vectors lie together when its
columns are not adjacent, when its numbers must be converted, or when it is tall enough to strain the cache.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache

from .llvm import host
from .math.block import Block, Kind, Value, int_kind, kind

# Elements as they lie in memory, and in what they are multiplied and added
TYPES = {
    "f32": ("float", "float"),
    "f64": ("double", "double"),
    "bf16": ("bfloat", "float"),
    "f16": ("half", "float"),
    "i8": ("i8", "i32"),
    "u8": ("i8", "i32"),
}
BYTES = {"float": 4, "double": 8, "bfloat": 2, "half": 2, "i8": 1, "i32": 4}
# Steps of the contracted dimension for which a panel of B is copied at once
DEPTH = 256
# Below this many steps the loop over them is written out
UNROLLED = 16

Size = int | Value


class Loop:
    """An open loop: its index, and the values that it carries from one iteration to the next."""

    __slots__ = ("following", "index", "results", "state")

    def __init__(self, index: Size, state: list[Value]):
        self.index = index
        self.state = state
        # What the body must set: the values for the next iteration.
        self.following: list[Value] = state
        # The values after the loop
        self.results: list[Value] = state


class Kernel(Block):
    """A function with loops over memory. Sizes are Python integers or i64 values."""

    def __init__(self, dtype: str, lanes: int):
        super().__init__("f32", lanes)
        self.stored, accumulator = TYPES[dtype]
        self.signed = dtype != "u8"
        self.converts = self.stored != accumulator
        self.accumulator = kind(accumulator, 1)
        self.vector = kind(accumulator, lanes)
        self.width = lanes

    def least(self, x: Size, y: Size) -> Size:
        if isinstance(x, int) and isinstance(y, int):
            return min(x, y)
        x = x if isinstance(x, Value) else self.constant(x, SIZE)
        return self.intrinsic("smin", x, y)

    def at(self, pointer: str, offset: Size, element: str) -> str:
        """The address `offset` elements behind a pointer."""
        if isinstance(offset, int) and offset == 0:
            return pointer
        offset = self.operand(offset, SIZE)
        return self.emit(POINTER, f"getelementptr {element}, ptr {pointer}, i64 {offset}").name

    def load(self, pointer: str, element: Kind, mask: Value | None = None) -> Value:
        if mask is None:
            align = BYTES[element.element]
            return self.emit(element, f"load {element.text}, ptr {pointer}, align {align}")
        return self.emit(
            element,
            f"call {element.text} @llvm.masked.load.{element.suffix}.p0(ptr align {BYTES[element.element]} "
            f"{pointer}, {mask.kind.text} {mask.name}, {element.text} zeroinitializer)",
        )

    def store(self, value: Value, pointer: str, mask: Value | None = None) -> None:
        t, align = value.kind, BYTES[value.kind.element]
        if mask is None:
            self.lines.append(f"  store {t.text} {value.name}, ptr {pointer}, align {align}")
        else:
            self.lines.append(
                f"  call void @llvm.masked.store.{t.suffix}.p0({t.text} {value.name}, ptr align {align} "
                f"{pointer}, {mask.kind.text} {mask.name})"
            )

    def splat(self, x: Value, lanes: int) -> Value:
        if lanes == 1:
            return x
        wide = kind(x.kind.element, lanes)
        one = self.emit(wide, f"insertelement {wide.text} poison, {x.kind.text} {x.name}, i64 0")
        zeros = f"<{lanes} x i32> zeroinitializer"
        return self.emit(wide, f"shufflevector {wide.text} {one.name}, {wide.text} poison, {zeros}")

    def convert(self, x: Value) -> Value:
        """Stored numbers as accumulators."""
        if not self.converts:
            return x
        to = kind(self.accumulator.element, x.kind.lanes)
        op = "fpext" if to.floating else "sext" if self.signed else "zext"
        return self.cast(op, x, to)

    def multiply_add(self, x: Value, y: Value, z: Value) -> Value:
        return self.fma(x, y, z) if z.kind.floating else z + x * y

    def lanes_below(self, count: Size) -> Value | None:
        """Mask of the lanes whose number is below `count`; None if that is known to be all."""
        if isinstance(count, int) and count >= self.width:
            return None
        numbers = kind("i32", self.width)
        limit = count if isinstance(count, Value) else self.constant(count, SIZE)
        limit = self.cast("trunc", self.intrinsic("smin", limit, self.width), kind("i32", 1))
        iota = self.constant(0, numbers)
        if self.width > 1:
            iota = Value(self, f"<{', '.join([f'i32 {i}' for i in range(self.width)])}>", numbers)
        return self.emit(
            int_kind(1, self.width),
            f"icmp slt {numbers.text} {iota.name}, {self.splat(limit, self.width).name}",
        )

    @contextmanager
    def loop(self, start: Size, stop: Size, step: int, state: Sequence[Value] = ()) -> Iterator[Loop]:
        """index = start, start + step, … below stop. A loop known to run once is no loop."""
        if isinstance(start, int) and isinstance(stop, int) and start < stop <= start + step:
            once = Loop(start, list(state))
            yield once
            once.results = once.following
            return
        before, number = self.labels[-1], len(self.labels)
        head, body, done = f"head{number}", f"body{number}", f"done{number}"
        self.lines += [f"  br label %{head}", f"{head}:"]
        self.labels += [head]
        place = len(self.lines)
        index = Value(self, f"%i{number}", SIZE)
        phis = [Value(self, f"%s{number}.{i}", v.kind) for i, v in enumerate(state)]
        more = index < stop
        self.lines += [f"  br i1 {more.name}, label %{body}, label %{done}", f"{body}:"]
        self.labels.append(body)
        here = Loop(index, phis)
        yield here
        following = [index + step, *here.following]
        latch = self.labels[-1]
        self.lines += [f"  br label %{head}", f"{done}:"]
        self.labels.append(done)
        firsts = [start if isinstance(start, Value) else self.constant(start, SIZE), *state]
        self.lines[place:place] = [
            f"  {phi.name} = phi {phi.kind.text} [ {first.name}, %{before} ], [ {then.name}, %{latch} ]"
            for phi, first, then in zip([index, *phis], firsts, following)
        ]
        here.results = phis


SIZE = kind("i64", 1)
POINTER = kind("i64", 1)


class Product:
    """The sizes and the plan of one kernel."""

    __slots__ = (
        "a", "a_strides", "accumulate", "b", "b_strides", "c", "c_strides", "copied", "k", "kernel", "m", "n",
        "rows", "scratch", "vectors",
    )  # fmt: skip

    def run(self) -> None:
        with self.kernel.loop(0, self.k, DEPTH) as steps:
            depth = self.kernel.least(self.k - steps.index if isinstance(self.k, Value) else self.rest(steps), DEPTH)
            self.columns(steps.index, depth)
