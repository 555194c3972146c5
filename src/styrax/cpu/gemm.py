"""Register-tiled matrix products as LLVM IR text: see `definition`.

A tile of C, some rows by some vectors of columns, stays in registers while the contracted dimension runs:
each step loads the vectors of a row of B, and one number of A for each row of the tile, which multiplies
them. Every element of C is one chain of fma in the order of the contracted dimension: its bits depend
neither on the tiles nor on extents, strides and the host's vectors.

Where an extent is known the edges get tiles of their own sizes. Otherwise rows beyond the last repeat the
last one, and lanes beyond the last column are masked off. B is copied, panel by panel, to where the vectors
lie one after the other, if its columns are not adjacent, if its numbers must be converted, or if many rows
of A use it; A is copied, tile by tile, if it must be converted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache

from .llvm import host
from .math.block import Block, Kind, Value, kind

# Elements as they lie in memory, and as they are multiplied and added
TYPES = {
    "f32": ("float", "float"),
    "f64": ("double", "double"),
    "bf16": ("bfloat", "float"),
    "f16": ("half", "float"),
    "i8": ("i8", "i32"),
    "u8": ("i8", "i32"),
}
BYTES = {"float": 4, "double": 8, "bfloat": 2, "half": 2, "i8": 1, "i32": 4}
DEPTH = 256  # steps of the contracted dimension for which panels are copied at once
UNROLLED = 16  # up to so many steps are written out
BLOCK = 8  # rows and columns that are transposed at once while copying
SIZE = kind("i64", 1)

Size = int | Value


class Loop:
    """An open loop: its index, and the values that go from one iteration to the next."""

    __slots__ = ("following", "index", "state")

    def __init__(self, index: Size, state: list[Value]):
        self.index = index
        # While the loop is open, the values of this iteration; then those after the last one.
        self.state = state
        # To be set by the body: the values of the next iteration.
        self.following = state


class Program(Block):
    """Instructions with memory and loops. Sizes are Python integers or i64 values."""

    def __init__(self):
        super().__init__("f32", 1)

    def minimum(self, x: Size, y: Size) -> Size:
        if isinstance(x, int) and isinstance(y, int):
            return min(x, y)
        return self.intrinsic("smin", x, y)

    def address(self, pointer: str, offset: Size, element: str) -> str:
        """`offset` elements behind a pointer."""
        if isinstance(offset, int) and offset == 0:
            return pointer
        return self.emit(SIZE, f"getelementptr {element}, ptr {pointer}, i64 {self.operand(offset, SIZE)}").name

    def load(self, kind: Kind, pointer: str, mask: Value | None = None) -> Value:
        """Lanes from adjacent memory, 0 where masked off."""
        align = BYTES[kind.element]
        if mask is None:
            return self.emit(kind, f"load {kind.text}, ptr {pointer}, align {align}")
        return self.emit(
            kind,
            f"call {kind.text} @llvm.masked.load.{kind.suffix}.p0(ptr align {align} {pointer}, "
            f"{mask.kind.text} {mask.name}, {kind.text} zeroinitializer)",
        )

    def store(self, value: Value, pointer: str, mask: Value | None = None) -> None:
        kind = value.kind
        align = BYTES[kind.element]
        if mask is None:
            self.lines.append(f"  store {kind.text} {value.name}, ptr {pointer}, align {align}")
            return
        self.lines.append(
            f"  call void @llvm.masked.store.{kind.suffix}.p0({kind.text} {value.name}, ptr align {align} {pointer}, "
            f"{mask.kind.text} {mask.name})"
        )

    def splat(self, x: Value, lanes: int) -> Value:
        if lanes == 1:
            return x
        wide = kind(x.kind.element, lanes)
        first = self.emit(wide, f"insertelement {wide.text} poison, {x.kind.text} {x.name}, i64 0")
        return self.shuffle(first, first, [0] * lanes)

    def shuffle(self, x: Value, y: Value, lanes: Sequence[int]) -> Value:
        t, count = x.kind.text, len(lanes)
        numbers = "zeroinitializer" if not any(lanes) else f"<{', '.join([f'i32 {i}' for i in lanes])}>"
        result = kind(x.kind.element, count)
        return self.emit(result, f"shufflevector {t} {x.name}, {t} {y.name}, <{count} x i32> {numbers}")

    def transpose(self, rows: list[Value]) -> list[Value]:
        """A square block, a power of two wide, by interleaving halves."""
        count = len(rows)
        low = [i // 2 + count * (i % 2) for i in range(count)]
        high = [i + count // 2 for i in low]
        width = 1
        while width < count:
            rows = [
                self.shuffle(rows[i], rows[i + count // 2], lanes) for i in range(count // 2) for lanes in (low, high)
            ]
            width *= 2
        return rows

    def lanes_below(self, count: Size, lanes: int) -> Value | None:
        """The mask of the lanes numbered below `count`; None where that is known to be all."""
        if isinstance(count, int) and count >= lanes:
            return None
        numbers = kind("i32", lanes)
        mask = kind("i1", lanes)
        if isinstance(count, int):
            bits = [f"i1 {'true' if i < count else 'false'}" for i in range(lanes)]
            return Value(self, f"<{', '.join(bits)}>" if lanes > 1 else bits[0][3:], mask)
        limit = self.cast("trunc", self.minimum(count, lanes), kind("i32", 1))
        iota = f"<{', '.join([f'i32 {i}' for i in range(lanes)])}>" if lanes > 1 else "0"
        return self.emit(mask, f"icmp slt {numbers.text} {iota}, {self.splat(limit, lanes).name}")

    @contextmanager
    def loop(self, start: Size, stop: Size, step: int, state: Sequence[Value] = ()) -> Iterator[Loop]:
        """index = start, start + step, … below stop. A loop that is known to run once is none."""
        if isinstance(start, int) and isinstance(stop, int) and start < stop <= start + step:
            once = Loop(start, list(state))
            yield once
            once.state = once.following
            return
        before, number = self.labels[-1], len(self.labels)
        head, body, done = f"head{number}", f"body{number}", f"done{number}"
        self.lines += [f"  br label %{head}", f"{head}:"]
        self.labels.append(head)
        place = len(self.lines)
        index = Value(self, f"%i{number}", SIZE)
        state = list(state)
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
        first = [Value(self, self.operand(start, SIZE), SIZE), *state]
        self.lines[place:place] = [
            f"  {phi.name} = phi {phi.kind.text} [ {x.name}, %{before} ], [ {y.name}, %{latch} ]"
            for phi, x, y in zip([index, *phis], first, following)
        ]
        here.state = phis


class Matrix:
    """Where element (i, j) lies: `row`·i + `column`·j elements behind a pointer."""

    __slots__ = ("column", "element", "pointer", "row")

    def __init__(self, pointer: str, row: Size, column: Size, element: str):
        self.pointer = pointer
        self.row = row
        self.column = column
        self.element = element

    def at(self, p: Program, i: Size, j: Size) -> str:
        return p.address(self.pointer, i * self.row + j * self.column, self.element)


class Product(Program):
    """One matrix product."""

    def __init__(self, dtype: str, a: Matrix, b: Matrix, c: Matrix, m: Size, n: Size, k: Size, accumulate: bool):
        super().__init__()
        self.a, self.b, self.c = a, b, c
        self.m, self.n, self.k = m, n, k
        self.accumulate = accumulate
        self.dtype_name = dtype
        stored, self.element = TYPES[dtype]
        self.converts = stored != self.element
        size = BYTES[self.element]
        widest = host().vector_bytes // size
        registers = 32 if host().vector_bytes == 64 else 16
        self.lanes = min(widest, 1 << (n - 1).bit_length()) if isinstance(n, int) else widest
        most = 8 if registers == 32 else 6
        self.rows = -(-m // -(-m // most)) if isinstance(m, int) else most
        self.vectors = max(1, (registers // 2 if registers == 32 else 12) // self.rows)
        if isinstance(n, int):
            self.vectors = min(self.vectors, -(-n // self.lanes))
        self.width = self.lanes * self.vectors
        self.copies_b = self.must_copy_b()
        depth = min(k, DEPTH) if isinstance(k, int) else DEPTH
        self.depth = -(-depth // BLOCK) * BLOCK
        panels = []
        if self.copies_b:
            panels.append(("%panel", self.depth * self.width))
        if self.converts:
            panels.append(("%tile", self.rows * self.depth))
        for name, count in panels:
            self.lines.append(f"  {name} = alloca [{count} x {self.element}], align 64")

    def must_copy_b(self) -> bool:
        if self.converts or not (isinstance(self.b.column, int) and self.b.column == 1):
            return True
        tall = not isinstance(self.m, int) or self.m >= 4 * self.rows
        wide = not isinstance(self.n, int) or self.n > self.width
        return tall and wide

    def number(self, x: Value) -> Value:
        """A stored number, or lanes of them, as what is multiplied and added."""
        if not self.converts:
            return x
        to = kind(self.element, x.kind.lanes)
        op = "fpext" if to.floating else "zext" if self.dtype_name == "u8" else "sext"
        return self.cast(op, x, to)

    def build(self) -> None:
        with self.loop(0, self.k, self.depth) as steps:
            start = steps.index
            if isinstance(start, int):
                self.all_columns(start, self.k, fresh=not self.accumulate)
                continue_ = None
            else:
                depth = self.minimum(self.k - start, self.depth)
                self.all_columns(start, depth, fresh=False if self.accumulate else self.eq(start, 0))

    def all_columns(self, start: Size, depth: Size, fresh: bool | Value) -> None:
        """C, for the steps of the contracted dimension from `start`. `fresh`: C holds nothing yet."""
        for first, stop, width in pieces(self.n, self.width):
            with self.loop(first, stop, self.width) as columns:
                j = columns.index
                count = width if isinstance(self.n, int) else self.n - j
                if self.copies_b:
                    self.copy_panel(start, depth, j, count)
                for first_row, last_row, rows in pieces(self.m, self.rows):
                    with self.loop(first_row, last_row, self.rows) as tile:
                        self.tile(tile.index, rows, j, count, start, depth, fresh)

    def tile(self, i: Size, rows: int, j: Size, count: Size, start: Size, depth: Size, fresh: bool | Value):
        """`rows` rows from `i` on by `count` columns from `j` on (at most a panel's width)."""
        vectors = min(self.vectors, -(-count // self.lanes)) if isinstance(count, int) else self.vectors
        vector = kind(self.element, self.lanes)
        masks = [self.lanes_below(count - v * self.lanes, self.lanes) for v in range(vectors)]
        known = isinstance(self.m, int)
        numbers = [i + r if known or r == 0 else self.minimum(i + r, self.m - 1) for r in range(rows)]
        if self.converts:
            self.copy_tile(numbers, start, depth)
            a_rows = [self.address("%tile", r * self.depth, self.element) for r in range(rows)]
            a_step: Size = 1
        else:
            a_rows = [self.a.at(self, number, start) for number in numbers]
            a_step = self.a.column
        zero = self.constant(0, vector)
        places = [
            [self.c.at(self, number, j + v * self.lanes) for v in range(vectors)] for number in numbers
        ]
        sums = [zero] * (rows * vectors)
        if fresh is not True:
            sums = [self.load_c(vector, place, mask) for row in places for place, mask in zip(row, masks)]
            if fresh is not False:
                sums = [self.select(fresh, zero, s) for s in sums]

        def step(s: Size, sums: list[Value]) -> list[Value]:
            if self.copies_b:
                at = self.address("%panel", s * self.width, self.element)
                b = [self.load(vector, self.address(at, v * self.lanes, self.element)) for v in range(vectors)]
            else:
                b = [
                    self.load(vector, self.b.at(self, start + s, j + v * self.lanes), masks[v])
                    for v in range(vectors)
                ]
            result = []
            for r in range(rows):
                number = self.load(kind(self.element, 1), self.address(a_rows[r], s * a_step, self.element))
                factor = self.splat(number, self.lanes)
                for v in range(vectors):
                    old = sums[r * vectors + v]
                    result.append(self.fma(factor, b[v], old) if vector.floating else old + factor * b[v])
            return result

        if isinstance(depth, int) and depth <= UNROLLED:
            for s in range(depth):
                sums = step(s, sums)
        else:
            with self.loop(0, depth, 1, sums) as steps:
                steps.following = step(steps.index, steps.state)
            sums = steps.state
        for value, place, mask in zip(sums, [p for row in places for p in row], masks * rows):
            self.store_c(value, place, mask)

    def c_is_adjacent(self) -> bool:
        return isinstance(self.c.column, int) and self.c.column == 1

    def lanes_of_c(self, kind_of_lanes: Kind, place: str) -> Value:
        """The addresses of lanes that are not adjacent."""
        offsets = kind("i64", kind_of_lanes.lanes)
        numbers = f"<{', '.join([f'i64 {i}' for i in range(offsets.lanes)])}>"
        stride = Value(self, self.operand(self.c.column, SIZE), SIZE)
        steps = self.emit(offsets, f"mul {offsets.text} {numbers}, {self.splat(stride, offsets.lanes).name}")
        pointers = f"<{offsets.lanes} x ptr>"
        return self.emit(offsets, f"getelementptr {self.element}, ptr {place}, {offsets.text} {steps.name}"), pointers
