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
UNROLLED = 4  # up to so many steps are written out
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

    def binary(self, op: str, x: Size, y: Size) -> Value:
        # Neutral operands of sizes, so that known strides and offsets cost no instructions.
        if op == "add" and known(x, 0) or op == "mul" and known(x, 1):
            return y
        if op in ("add", "sub") and known(y, 0) or op == "mul" and known(y, 1):
            return x
        return super().binary(op, x, y)

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
        """The mask of the lanes numbered below `count`, at least 1; None where that is known to be all."""
        if lanes == 1 or isinstance(count, int) and count >= lanes:
            return None
        numbers = kind("i32", lanes)
        mask = kind("i1", lanes)
        if isinstance(count, int):
            bits = [f"i1 {'true' if i < count else 'false'}" for i in range(lanes)]
            return Value(self, f"<{', '.join(bits)}>", mask)
        limit = self.cast("trunc", self.minimum(count, lanes), kind("i32", 1))
        iota = f"<{', '.join([f'i32 {i}' for i in range(lanes)])}>"
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
    """One matrix product. `m`, `n`, `k` and the strides are integers where they are known."""

    def __init__(self, dtype: str, a: Matrix, b: Matrix, c: Matrix, m: Size, n: Size, k: Size, accumulate: bool):
        super().__init__()
        self.a, self.b, self.c = a, b, c
        self.m, self.n, self.k = m, n, k
        self.accumulate = accumulate
        self.unsigned = dtype == "u8"
        stored, self.element = TYPES[dtype]
        self.converts = stored != self.element
        machine = host()
        wide = machine.vector_bytes == 64
        lanes = machine.vector_bytes // BYTES[self.element]
        self.lanes = min(lanes, 1 << (n - 1).bit_length()) if isinstance(n, int) else lanes
        most = 8 if wide else 4
        self.rows = ceil_div(m, ceil_div(m, most)) if isinstance(m, int) else most
        self.vectors = max(2, (16 if wide else 8) // self.rows)
        if isinstance(n, int):
            self.vectors = min(self.vectors, ceil_div(n, self.lanes))
        self.width = self.lanes * self.vectors
        self.copies_b = self.must_copy_b()
        self.depth = ceil_div(min(k, DEPTH) if isinstance(k, int) else DEPTH, BLOCK) * BLOCK
        if self.copies_b:
            self.scratch("%panel", self.depth * self.width)
        if self.converts:
            self.scratch("%tile", self.depth * self.rows)

    def scratch(self, name: str, count: int) -> None:
        self.lines.append(f"  {name} = alloca [{count} x {self.element}], align 64")

    def must_copy_b(self) -> bool:
        if self.converts or not known(self.b.column, 1):
            return True
        tall = not isinstance(self.m, int) or self.m >= 4 * self.rows
        wide = not isinstance(self.n, int) or self.n > self.width
        return tall and wide

    def number(self, x: Value) -> Value:
        """Stored numbers as they are multiplied and added."""
        if not self.converts:
            return x
        to = kind(self.element, x.kind.lanes)
        return self.cast("fpext" if to.floating else "zext" if self.unsigned else "sext", x, to)

    def build(self) -> None:
        if isinstance(self.k, int) and self.k <= self.depth:
            self.all_columns(0, self.k, fresh=not self.accumulate)
            return
        # At least once: an empty sum is zero.
        stop = max(self.k, 1) if isinstance(self.k, int) else self.intrinsic("smax", self.k, 1)
        with self.loop(0, stop, self.depth) as steps:
            depth = self.minimum(self.k - steps.index, self.depth)
            self.all_columns(steps.index, depth, False if self.accumulate else self.eq(steps.index, 0))

    def all_columns(self, start: Size, depth: Size, fresh: bool | Value) -> None:
        """C, for `depth` steps of the contracted dimension from `start`. `fresh`: C holds nothing yet."""
        for first, stop, width in pieces(self.n, self.width):
            with self.loop(first, stop, self.width) as columns:
                j = columns.index
                count = width if isinstance(self.n, int) else self.n - j
                if self.copies_b:
                    self.copy_panel(start, depth, j, count)
                for first_row, last_row, rows in pieces(self.m, self.rows):
                    with self.loop(first_row, last_row, self.rows) as tile:
                        self.tile(tile.index, rows, j, count, start, depth, fresh)

    def copy_panel(self, start: Size, depth: Size, j: Size, count: Size) -> None:
        """Rows of B from `start` on, columns from `j` on, one row of a panel's width after the other."""
        b, stored = self.b, self.b.element
        if known(b.column, 1):
            vector = kind(stored, self.lanes)
            with self.loop(0, depth, 1) as steps:
                s = steps.index
                for v in range(0, self.width, self.lanes):
                    mask = self.lanes_below(count - v, self.lanes)
                    x = self.load(vector, b.at(self, start + s, j + v), mask)
                    self.store(self.number(x), self.address("%panel", s * self.width + v, self.element))
            return
        used = self.minimum(count, self.width)
        if known(b.row, 1):
            block = min(BLOCK, self.lanes)
            vector = kind(stored, block)
            whole = isinstance(self.n, int) and self.n % block == 0
            with self.loop(0, depth, block) as steps, self.loop(0, used, block) as across:
                s, c = steps.index, across.index
                mask = self.lanes_below(depth - s, block)
                numbers = [j + (c + i) for i in range(block)]
                if not whole:
                    numbers = [self.minimum(number, self.n - 1) for number in numbers]
                columns = [self.number(self.load(vector, b.at(self, start + s, x), mask)) for x in numbers]
                for i, row in enumerate(self.transpose(columns)):
                    self.store(row, self.address("%panel", (s + i) * self.width + c, self.element))
            return
        with self.loop(0, depth, 1) as steps, self.loop(0, used, 1) as across:
            s, c = steps.index, across.index
            x = self.load(kind(stored, 1), b.at(self, start + s, j + c))
            self.store(self.number(x), self.address("%panel", s * self.width + c, self.element))

    def copy_tile(self, numbers: list[Size], start: Size, depth: Size) -> None:
        """The rows of A with these numbers, converted, one after the other."""
        lanes = BLOCK if known(self.a.column, 1) else 1
        with self.loop(0, depth, lanes) as steps:
            s = steps.index
            mask = self.lanes_below(depth - s, lanes)
            for r, number in enumerate(numbers):
                x = self.load(kind(self.a.element, lanes), self.a.at(self, number, start + s), mask)
                self.store(self.number(x), self.address("%tile", s + r * self.depth, self.element))

    def tile(
        self, i: Size, rows: int, j: Size, count: Size, start: Size, depth: Size, fresh: bool | Value
    ) -> None:
        """`rows` rows of C from `i` on by `count` columns from `j` on, at most a panel's width."""
        vectors = min(self.vectors, ceil_div(count, self.lanes)) if isinstance(count, int) else self.vectors
        vector, single = kind(self.element, self.lanes), kind(self.element, 1)
        starts = [v * self.lanes for v in range(vectors)]
        masks = [self.lanes_below(count - v, self.lanes) for v in starts]
        exact = isinstance(self.m, int)
        numbers = [i + r if exact or r == 0 else self.minimum(i + r, self.m - 1) for r in range(rows)]
        if self.converts:
            self.copy_tile(numbers, start, depth)
            pointers = [self.address("%tile", r * self.depth, self.element) for r in range(rows)]
            factors = [Matrix(pointer, 0, 1, self.element) for pointer in pointers]
        else:
            factors = [Matrix(self.a.at(self, x, start), 0, self.a.column, self.element) for x in numbers]
        places = [self.c.at(self, x, j + v) for x in numbers for v in starts]
        zero = self.constant(0, vector)
        sums = [zero] * len(places)
        if fresh is not True:
            sums = [self.load(vector, place, mask) for place, mask in zip(places, masks * rows)]
        if isinstance(fresh, Value):
            sums = [self.select(fresh, zero, s) for s in sums]

        def step(s: Size, sums: list[Value]) -> list[Value]:
            if self.copies_b:
                at = self.address("%panel", s * self.width, self.element)
                b = [self.load(vector, self.address(at, v, self.element)) for v in starts]
            else:
                at = self.b.at(self, start + s, j)
                b = [self.load(vector, self.address(at, v, self.element), m) for v, m in zip(starts, masks)]
            result = []
            for r, factor in enumerate(factors):
                x = self.splat(self.load(single, factor.at(self, 0, s)), self.lanes)
                for v in range(vectors):
                    old = sums[r * vectors + v]
                    result.append(self.fma(x, b[v], old) if vector.floating else old + x * b[v])
            return result

        if isinstance(depth, int) and depth <= UNROLLED:
            for s in range(depth):
                sums = step(s, sums)
        else:
            with self.loop(0, depth, 1, sums) as steps:
                steps.following = step(steps.index, steps.state)
            sums = steps.state
        for value, place, mask in zip(sums, places, masks * rows):
            self.store(value, place, mask)


def ceil_div(x: int, y: int) -> int:
    return -(-x // y)


def known(x: Size, number: int) -> bool:
    return isinstance(x, int) and x == number


def pieces(total: Size, size: int) -> list[tuple[Size, Size, int]]:
    """(start, stop, size of a piece): the whole pieces of an extent, then the rest of a known one."""
    if isinstance(total, Value):
        return [(0, total, size)]
    whole = total // size * size
    parts = [(0, whole, size), (whole, total, total - whole)]
    return [part for part in parts if part[0] < part[1]]


Strides = tuple[int | None, int | None]


@cache
def definition(
    dtype: str,
    m: int | None = None,
    n: int | None = None,
    k: int | None = None,
    a_strides: Strides = (None, None),
    b_strides: Strides = (None, None),
    c_strides: Strides = (None, 1),
    accumulate: bool = False,
) -> tuple[str, str]:
    """The LLVM definition of C = A·B, or C += A·B if `accumulate`: (symbol, text).

    A is m×k, B is k×n, both of `dtype`, a key of TYPES; C is m×n of the type in which they are added: f32 for
    bf16 and f16, i32 for i8 and u8. Strides are in elements, (from row to row, from column to column), any
    integers. One of C's must be 1 and known. What is None is known only at run time.

    The function is `void @symbol(ptr a, ptr b, ptr c, i64 m, i64 n, i64 k, i64 a_row, i64 a_column, i64 b_row,
    i64 b_column, i64 c_row, i64 c_column)`, internal; arguments whose values are known here are not looked at.
    C must not overlap A and B. Raises KeyError for an unknown dtype, ValueError if no stride of C is 1.
    """
    if 1 not in c_strides:
        raise ValueError(f"one of the strides of C must be 1, and known to be; they are {c_strides}")
    names = [("m", m), ("n", n), ("k", k)]
    for letter, strides in (("a", a_strides), ("b", b_strides), ("c", c_strides)):
        names += [(f"{letter}_row", strides[0]), (f"{letter}_column", strides[1])]
    numbers = ["x" if size is None else str(size).replace("-", "m") for _, size in names]
    symbol = f"styrax.gemm.{dtype}.{'_'.join(numbers)}{'.add' if accumulate else ''}"
    stored, element = TYPES[dtype]
    sizes: list[Size] = [Value(None, f"%{name}", SIZE) if size is None else size for name, size in names]
    m_, n_, k_, a_row, a_column, b_row, b_column, c_row, c_column = sizes
    if not known(c_column, 1):
        # Cᵀ = Bᵀ·Aᵀ
        m_, n_, c_row, c_column = n_, m_, c_column, c_row
        left = Matrix("%b", b_column, b_row, stored)
        right = Matrix("%a", a_column, a_row, stored)
    else:
        left, right = Matrix("%a", a_row, a_column, stored), Matrix("%b", b_row, b_column, stored)
    product = Product(dtype, left, right, Matrix("%c", c_row, c_column, element), m_, n_, k_, accumulate)
    for size in sizes:
        if isinstance(size, Value):
            size.block = product
    product.build()
    parameters = ", ".join([f"i64 %{name}" for name, _ in names])
    pointers = "ptr noalias readonly %a, ptr noalias readonly %b, ptr noalias %c"
    lines = [
        f"define internal void @{symbol}({pointers}, {parameters}) nounwind {{",
        "entry:",
        *product.lines,
        "  ret void",
        "}\n",
    ]
    return symbol, "\n".join(lines)
