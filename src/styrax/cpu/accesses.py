"""Loads and stores: contiguous, strided, turned, gathered; guarded and masked; checked on demand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ..compile.ir.expr import BOOL, Expr, coefficient, poly_terms
from ..compile.ir.loopir import Buffer, Loop, Store, Transpose
from ..compile.lowering.number_types import NARROW_INTS, is_complex, part_dtype
from ..compile.registers import is_avx512
from . import masked, prefetching, ramps
from .guards import Guards
from .instructions import element_type, memory_type, rows, splat, suffix, vector
from .prefetching import AHEAD, LINE, LINES, WORTH, Turning
from .turning import at_once, called, goes_in, tile
from .writer import Lanes, Writer

PAGE_STEP = 1 << 11  # bytes from turn to turn from which processors see no stream: they look for it within pages
NARROWEST = 4  # bytes of the elements that a processor gathers
WIDEST_STEP = 8  # elements from lane to lane up to which all between are loaded
# Members of a record up to which processors pick one out of vectors as fast as they unshuffle them: with instructions
# that take lanes from one vector, and from any two
FEW = 2, 4


class Values(Protocol):
    """What accesses need of the function's values: see `expressions.Values`."""

    lanes: Lanes | None
    turning: Turning | None
    names: dict[Expr, str]
    vectors: set[Expr]

    def value(self, e: Expr, lanes: int = 1) -> str: ...

    def first(self, place: Expr) -> str: ...

    def width(self, e: Expr) -> int: ...

    def splat(self, name: str, t: str, lanes: int) -> str: ...

    def pointer(self, buffer: Buffer) -> str: ...

    def buffers(self, e: Expr) -> frozenset[Buffer]: ...


class Accesses:
    """Writes loads and stores."""

    def __init__(self, writer: Writer, values: Values):
        self.writer, self.arena, self.module = writer, writer.arena, writer.module
        self.op, self.line = writer.op, writer.line
        self.values, self.value = values, values.value
        self.root = writer.module.placement.root
        self.guards = Guards(writer.arena)

    # -- memory ------------------------------------------------------------------------------------------
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
        pointer = self.values.pointer(buffer)
        return self.op(f"getelementptr {t}, ptr {pointer}, {vector('i64', lanes)} {index}")

    def step(self, place: Expr) -> int | None:
        """By how many elements a place moves from lane to lane; None where it does so in no fixed steps."""
        if self.values.width(place) == 1:
            return 0
        lanes = self.values.lanes
        assert lanes is not None
        if place.deps & self.values.vectors != {lanes.var}:
            return None
        step = coefficient(self.arena, place, lanes.var)
        return step.attr if step is not None and step.op == "const" else None

    def load(self, e: Expr, lanes: int) -> str:
        buffer, part = e.attr
        dtype = e.dtype
        t = element_type(dtype) if part is not None else memory_type(buffer.dtype)
        place, conditions = self.guards.split(e.args[0])
        if lanes == 1:
            index = self._if_held(conditions, self.value(place))
            index = self._checked(buffer, index)
            address = self._address(buffer, index, part)
            self._prefetch(buffer, place, address, 1)
            return self._to_register(self.op(f"load {t}, ptr {address}"), buffer, part, 1)
        assert self.values.lanes is not None
        mask = self.values.lanes.mask
        step = self.step(place)
        row = step == 1
        uniform: tuple[Expr, ...] = ()
        if row and isinstance(buffer.size, int) and buffer.size >= lanes and not self.module.bounds:
            uniform = tuple(c for c in conditions if self.values.width(c) == 1)
            conditions = tuple(c for c in conditions if self.values.width(c) != 1)
        if conditions:
            holds = self.value(self.guards.all(conditions), lanes)
            mask = holds if mask is None else self.op(f"and <{lanes} x i1> {mask}, {holds}")
        mask = self._checked_lanes(buffer, place, lanes, mask)
        if row:
            index = self._if_held(uniform, self.values.first(place))
            if conditions and masked.has_instructions(align_of(t), mask or "", self.module.vector_bytes):
                index = self._near(buffer, index, lanes)
            if part is not None:
                return self._load_pairs(buffer, index, t, part, lanes, mask, place)
            address = self._address(buffer, index, None)
            self._prefetch(buffer, place, address, lanes)
            loaded = self._load_masked(buffer, index, address, t, lanes, mask)
        elif step == -1 and mask is None:
            loaded = self._reversed(buffer, place, part, t, lanes)
        elif step is not None and mask is None and 2 <= step * _parts(buffer) <= WIDEST_STEP:
            loaded = self._strided(buffer, place, step, part, t, lanes)
        else:
            loaded = self._gather(buffer, self.value(e.args[0], lanes), part, t, lanes, mask)
            if buffer.dtype == BOOL:  # LLVM would truncate them one by one
                return self.op(f"icmp ne <{lanes} x i8> {loaded}, zeroinitializer")
        return self._to_register(loaded, buffer, part, lanes)

    def _prefetch(self, buffer: Buffer, place: Expr, address: str, lanes: int) -> None:
        """Asks for what a later turn of the loop around reads, where it strides through far memory (T. Mowry, M. Lam
        and A. Gupta, Design and evaluation of a compiler algorithm for prefetching, 1992). The last turns ask for what
        they read: behind a buffer there may be no page, and some hosts take microseconds to see that."""
        turning, size = self.values.turning, buffer.dtype.itemsize
        if turning is None or not prefetching.is_far(buffer):
            return
        step = coefficient(self.arena, place, turning.var)
        if step is None or step.op != "const" or abs(step.attr * turning.step * size) < PAGE_STEP:
            return
        later = self.op(f"add nsw i64 {self.values.names[turning.var]}, {AHEAD * turning.step}")
        turns = self.op(f"icmp slt i64 {later}, {turning.end}")
        distance = self.op(f"select i1 {turns}, i64 {AHEAD * step.attr * turning.step * size}, i64 0")
        self._ask(self.op(f"getelementptr i8, ptr {address}, i64 {distance}"), range(0, lanes * size, LINE))

    def _ask(self, address: str, offsets: range) -> None:
        self.writer.declare("declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
        for offset in offsets:
            there = self.op(f"getelementptr i8, ptr {address}, i64 {offset}") if offset else address
            self.line(f"call void @llvm.prefetch.p0(ptr {there}, i32 0, i32 3, i32 1)")

    def ask_ahead(self, s: Loop) -> None:
        """In a turn of a loop: asks for what a later one reaches by numbers that it reads."""
        if not self.writer.module.touched.scattered(s.body):
            return
        with self.writer.scope(statement=True):
            for (buffer, place), count in prefetching.reached(s.body, s.var, self.guards).items():
                lanes = self.values.width(place)
                row = count * lanes * buffer.dtype.itemsize
                if row >= WORTH and (lanes == 1 or self.step(place) == 1):
                    index = self.value(place) if lanes == 1 else self.values.first(place)
                    part = 0 if is_complex(buffer.dtype) else None
                    self._ask(self._address(buffer, index, part), range(0, min(row, LINES * LINE), LINE))

    def _if_held(self, conditions: Sequence[Expr], index: str) -> str:
        """An index where conditions hold, else 0: what is read there is not used."""
        if not conditions:
            return index
        return self.op(f"select i1 {self.value(self.guards.all(conditions))}, i64 {index}, i64 0")

    def _near(self, buffer: Buffer, index: str, lanes: int) -> str:
        """The first lane's index, not further outside the buffer than masked lanes may be: an access to memory that
        is not there is slow, though its lanes are all masked."""
        last = self.value(self.arena.iadd(self.arena.index(buffer.size), -1))
        for bound, which in ((str(1 - lanes), "sgt"), (last, "slt")):
            inside = self.op(f"icmp {which} i64 {index}, {bound}")
            index = self.op(f"select i1 {inside}, i64 {index}, i64 {bound}")
        return index

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
        self.writer.declare(f"declare i1 {symbol}(<{lanes} x i1>)")
        self._note(self.op(f"call i1 {symbol}(<{lanes} x i1> {outside})"))
        inside = self.op(f"xor <{lanes} x i1> {outside}, {splat('true', 'i1', lanes)}")
        return inside if mask is None else self.op(f"and <{lanes} x i1> {inside}, {mask}")

    def _note(self, outside: str) -> None:
        self.writer.declare("@outside = internal global i32 0")
        old = self.op("load i32, ptr @outside")
        new = self.op(f"select i1 {outside}, i32 1, i32 {old}")
        self.line(f"store i32 {new}, ptr @outside")

    def load_transposed(self, e: Expr, lanes: int) -> str:
        """A row of a square tile that is contiguous down its columns: all of it is loaded, and turned in registers.
        Where lanes are masked, other than the last ones always, the row alone is gathered."""
        buffer, part, row, count = e.attr
        (place,) = e.args
        height = count if part is None else count // 2  # (rows of complex numbers are two each)
        rows = [self.arena.node("load", (self.arena.iadd(place, r),), e.dtype, (buffer, part)) for r in range(height)]
        there = lanes  # columns
        if self.values.lanes is not None and self.values.lanes.mask is not None:
            there = masked.leading(self.values.lanes.mask) or 0
        if self.values.lanes is None or not there or self.module.bounds or lanes != count:
            return self.load(rows[row], lanes)
        t = memory_type(buffer.dtype) if part is None else element_type(part_dtype(buffer.dtype))
        lane, columns = self.values.lanes.var, []
        for column in range(there):
            step = self.arena.substitute(place, {lane: self.arena.iadd(lane, column)}, {})
            columns.append(self._load_lanes(self._address(buffer, self.values.first(step), part and 0), t, count))
        columns += ["zeroinitializer"] * (lanes - there)
        names = [self._to_register(name, buffer, part, lanes)
                 for name in tile(columns, vector(t, count), align_of(t), self.op)]
        scope = self.writer.scopes[self.writer.at]
        parts = (None,) if part is None else (0, 1)
        for k, name in enumerate(names):
            r, p = divmod(k, len(parts))
            each = self.arena.node("transposed", e.args, e.dtype, (buffer, parts[p], r, count))
            scope.keep(each, name, self.values.buffers(each))
        return names[row * len(parts) + (part or 0)]

    def turn(self, s: Transpose) -> None:
        """Columns of a matrix from rows, or rows from a tile in scratch memory, by a function of its own."""
        symbol, into, width = called(s, self.module.vector_bytes), goes_in(s), at_once(s, self.module.vector_bytes)
        reached = s.reaches()
        target = self._block(s.target, s.target_offset, *reached[0])
        source = self._block(s.source, s.source_offset, *reached[1])
        self.writer.declare(f"declare void @{symbol}(ptr, i64, ptr, i64, i64)")
        t, lanes, length = memory_type(s.source.dtype), *((s.rows, s.columns) if into else (s.columns, s.rows))
        for first in range(0, lanes, width):
            to, at = (first, s.source_stride * first) if into else (s.target_stride * first, first)
            far = [self.op(f"getelementptr {t}, ptr {p}, i64 {k}") if k else p for p, k in ((target, to), (source, at))]
            self.line(f"call void @{symbol}(ptr {far[0]}, i64 {s.target_stride}, ptr {far[1]}, i64 {s.source_stride}, "
                      f"i64 {length})")

    def _block(self, buffer: Buffer, start: Expr, low: int, high: int) -> str:
        """The address of an element, where those from `low` to `high` after it are accessed."""
        index = self.value(start)
        if self.module.bounds:
            for reached in filter(None, (low, high)):
                self._checked(buffer, self.op(f"add i64 {index}, {reached}"))
        return self._address(buffer, self._checked(buffer, index), None)

    def _load_lanes(self, address: str, t: str, lanes: int) -> str:
        return self.op(f"load {vector(t, lanes)}, ptr {address}, align {align_of(t)}")

    def _load_masked(self, buffer: Buffer, index: str, address: str, t: str, lanes: int, mask: str | None) -> str:
        """Numbers side by side from one of an index on (of complex ones, both parts): zero in masked lanes."""
        if mask is None:
            return self._load_lanes(address, t, lanes)
        v = vector(t, lanes)
        if not masked.has_instructions(align_of(t), mask, self.module.vector_bytes):
            elements = lanes // 2 if is_complex(buffer.dtype) else lanes
            last = self.value(self.arena.iadd(self.arena.index(buffer.size), -elements))
            begins, ends = self.op(f"icmp sge i64 {index}, 0"), self.op(f"icmp sle i64 {index}, {last}")
            inside = self.op(f"and i1 {begins}, {ends}")
            return masked.load(self.writer, address, t, align_of(t), lanes, mask, inside)
        symbol = f"@llvm.masked.load.{suffix(t, lanes)}.p0"
        self.writer.declare(f"declare {v} {symbol}(ptr, i32, <{lanes} x i1>, {v})")
        return self.op(f"call {v} {symbol}(ptr {address}, i32 {align_of(t)}, <{lanes} x i1> {mask}, {v} "
                       "zeroinitializer)")

    def _reversed(self, buffer: Buffer, place: Expr, part: int | None, t: str, lanes: int) -> str:
        """Neighbours, the last one first. Of complex ones, both parts are loaded at once."""
        each, scope = _parts(buffer), self.writer.scopes[self.writer.at]
        v, key = vector(t, lanes * each), ("reversed", self.root(buffer), place)
        loaded = scope.memo.get(key)
        if loaded is None:
            first = self.op(f"add i64 {self.values.first(place)}, {1 - lanes}")
            loaded = self._load_lanes(self._address(buffer, first, part and 0), t, lanes * each)
            scope.keep(key, loaded, self.values.buffers(place) | {self.root(buffer)})
        order = ", ".join(f"i32 {each * i + (part or 0)}" for i in reversed(range(lanes)))
        return self.op(f"shufflevector {v} {loaded}, {v} poison, <{lanes} x i32> <{order}>")

    def _strided(self, buffer: Buffer, place: Expr, step: int, part: int | None, t: str, lanes: int) -> str:
        """Every so-manyth element (an interleaved access): all from the first to the last are loaded, and those that
        are not asked for left out. Accesses to other elements of the same records, or to the other parts of complex
        ones, share what is loaded, where records are known to lie inside the buffer as a whole."""
        each = _parts(buffer)
        place, step = self.arena.iadd(self.arena.imul(place, each), part or 0), step * each
        member = poly_terms(place).get((), 0) % step
        low, high = place.bounds
        whole = isinstance(buffer.size, int) and low >= member and high - member + step <= buffer.size * each
        if whole:
            base, starts = self.arena.iadd(place, -member), [k * lanes for k in range(step)]
        else:
            base, member = place, 0
            last = (lanes - 1) * (step - 1)
            starts = [*range(0, last, lanes), last]
        v, scope = vector(t, lanes), self.writer.scopes[self.writer.at]

        def piece(start: int) -> str:
            """A vector of what lies there."""
            key = ("records", self.root(buffer), base, start)
            name = scope.memo.get(key)
            if name is None:
                index = self.op(f"add i64 {self.values.first(base)}, {start}")
                address = self.op(f"getelementptr {t}, ptr {self.values.pointer(buffer)}, i64 {index}")
                name = self._load_lanes(address, t, lanes)
                scope.keep(key, name, self.values.buffers(base) | {self.root(buffer)})
            return name

        if whole and step > FEW[is_avx512(self.module.vector_bytes)] and step & (step - 1) == 0:
            return self._member([piece(start) for start in starts], member, v, lanes)
        out, loaded = "", 0
        for start in starts:
            places = [member + step * i - start for i in range(lanes)]
            if loaded == lanes or places[loaded] >= lanes:  # nothing here is asked for
                continue
            order = ", ".join(f"i32 {i if i < loaded else lanes + p if p < lanes else 'poison'}"
                              for i, p in enumerate(places))
            out = self.op(f"shufflevector {v} {out or 'poison'}, {v} {piece(start)}, <{lanes} x i32> <{order}>")
            loaded = sum(p < lanes for p in places)
        return out

    def _member(self, parts: list[str], member: int, v: str, lanes: int) -> str:
        """The same member of all records in as many vectors as a record has members: of neighbours every other
        element, again and again (perfect unshuffles, some of which other members share)."""
        while len(parts) > 1:
            order = ", ".join(f"i32 {2 * i + member % 2}" for i in range(lanes))
            parts = [self.op(f"shufflevector {v} {a}, {v} {b}, <{lanes} x i32> <{order}>")
                     for a, b in zip(parts[::2], parts[1::2], strict=True)]
            member //= 2
        return parts[0]

    def _load_pairs(self, buffer: Buffer, index: str, t: str, part: int, lanes: int, mask: str | None,
                    place: Expr) -> str:
        """Complex numbers side by side: both parts are loaded at once, then taken apart."""
        scope = self.writer.scopes[self.writer.at]
        key = ("pairs", self.root(buffer), place, mask)
        wide = scope.memo.get(key)
        v = vector(t, 2 * lanes)
        if wide is None:
            wide_mask = mask and self._double(mask, lanes)
            wide = self._load_masked(buffer, index, self._address(buffer, index, 0), t, 2 * lanes, wide_mask)
            scope.keep(key, wide, self.values.buffers(place) | {self.root(buffer)})
        order = ", ".join(f"i32 {2 * i + part}" for i in range(lanes))
        return self.op(f"shufflevector {v} {wide}, {v} poison, <{lanes} x i32> <{order}>")

    def _double(self, mask: str, lanes: int) -> str:
        return masked.reordered(self.writer, mask, lanes, [i // 2 for i in range(2 * lanes)])

    def _gather(self, buffer: Buffer, index: str, part: int | None, t: str, lanes: int, mask: str | None) -> str:
        v, narrow = vector(t, lanes), align_of(t) < NARROWEST
        masks = is_avx512(self.module.vector_bytes) and not narrow
        if mask is not None and (masks or not isinstance(buffer.size, int) or not buffer.size):
            return self._gathered(self._address(buffer, index, part, lanes), t, lanes, mask)
        short = isinstance(buffer.size, int) and buffer.size <= ramps.INT32[1]
        bits = 32 if short and (narrow or mask is not None) else 64
        own, wide = vector(f"i{bits}", lanes), vector("i64", lanes)
        if bits < 64:
            index = self.op(f"trunc {wide} {index} to {own}")
        if mask is not None:  # without such instructions there would be a branch for each lane: others read the first
            index = self.op(f"select <{lanes} x i1> {mask}, {own} {index}, {own} zeroinitializer")
        if narrow:
            loaded = self._one_by_one(buffer, index, part, t, lanes, bits)
        else:
            if bits < 64:
                index = self.op(f"sext {own} {index} to {wide}")
            loaded = self._gathered(self._address(buffer, index, part, lanes), t, lanes, splat("true", "i1", lanes))
        return loaded if mask is None else self.op(f"select <{lanes} x i1> {mask}, {v} {loaded}, {v} zeroinitializer")

    def _gathered(self, addresses: str, t: str, lanes: int, mask: str) -> str:
        v = vector(t, lanes)
        symbol = f"@llvm.masked.gather.{suffix(t, lanes)}.v{lanes}p0"
        self.writer.declare(f"declare {v} {symbol}(<{lanes} x ptr>, i32, <{lanes} x i1>, {v})")
        return self.op(f"call {v} {symbol}(<{lanes} x ptr> {addresses}, i32 {align_of(t)}, <{lanes} x i1> {mask}, "
                       f"{v} zeroinitializer)")

    def _one_by_one(self, buffer: Buffer, index: str, part: int | None, t: str, lanes: int, bits: int) -> str:
        """Elements that no processor gathers. LLVM would take addresses out of vectors, at two shuffles each: places
        go through memory instead (by volatile loads, or LLVM would see through that)."""
        places, v, name = self.writer.fresh(), vector(f"i{bits}", lanes), "poison"
        self.writer.entry.append(f"  {places} = alloca {v}, align 64")
        self.line(f"store {v} {index}, ptr {places}, align 64")
        for lane in range(lanes):
            at = self.op(f"getelementptr i{bits}, ptr {places}, i64 {lane}") if lane else places
            place = self.op(f"load volatile i{bits}, ptr {at}")
            if bits < 64:
                place = self.op(f"sext i{bits} {place} to i64")
            element = self.op(f"load {t}, ptr {self._address(buffer, place, part)}, align {align_of(t)}")
            name = self.op(f"insertelement {vector(t, lanes)} {name}, {t} {element}, i32 {lane}")
        return name

    def _to_register(self, name: str, buffer: Buffer, part: int | None, lanes: int) -> str:
        if buffer.dtype == BOOL:
            return self.op(f"trunc {vector('i8', lanes)} {name} to {vector('i1', lanes)}")
        if buffer.dtype in NARROW_INTS:  # in memory the bits above a narrow integer are of no account
            return rows["wrap"](self.writer, buffer.dtype, lanes, (name,))
        return name

    def store(self, buffer: Buffer, place: Expr, value: Expr) -> None:
        self.store_all([Store(buffer, place, value)])

    def store_all(self, stores: Sequence[Store]) -> None:
        """Stores of which none sees what another has written: all values are there before the first is stored."""
        lanes = self.values.lanes.width if self.values.lanes is not None else 1
        names = [[self.value(part, lanes) for part in (s.value.args if is_complex(s.value.dtype) else (s.value,))]
                 for s in stores]
        for s, parts in zip(stores, names, strict=True):
            if len(parts) == 2:
                self._store_pair(s.buffer, s.offset, s.value, *parts)
            else:
                self._store_part(s.buffer, s.offset, s.value, None, parts[0])
        for s in stores:
            self.forget(s.buffer)

    def _store_pair(self, buffer: Buffer, place: Expr, value: Expr, re_name: str, im_name: str) -> None:
        lanes = self.values.lanes.width if self.values.lanes is not None else 1
        re, im = value.args
        if lanes > 1 and self.step(place) == 1 and self.values.lanes is not None:
            t = element_type(re.dtype)
            v = vector(t, lanes)
            order = ", ".join(f"i32 {i // 2 + lanes * (i % 2)}" for i in range(2 * lanes))
            both = self.op(f"shufflevector {v} {re_name}, {v} {im_name}, <{2 * lanes} x i32> <{order}>")
            index = self.values.first(place)
            mask = self.values.lanes.mask and self._double(self.values.lanes.mask, lanes)
            self._store_lanes(both, self._address(buffer, index, 0), t, 2 * lanes, mask)
            return
        self._store_part(buffer, place, re, 0, re_name)
        self._store_part(buffer, place, im, 1, im_name)

    def _store_part(self, buffer: Buffer, place: Expr, value: Expr, part: int | None, name: str) -> None:
        t = element_type(value.dtype) if part is not None else memory_type(buffer.dtype)
        lanes = self.values.lanes.width if self.values.lanes is not None else 1
        name = self._to_memory(name, buffer, lanes)
        if lanes == 1:
            address = self._address(buffer, self._checked(buffer, self.value(place)), part)
            self.line(f"store {t} {name}, ptr {address}")
            return
        assert self.values.lanes is not None
        mask = self._checked_lanes(buffer, place, lanes, self.values.lanes.mask)
        if part is None and self.step(place) == 1:
            self._store_lanes(name, self._address(buffer, self.values.first(place), None), t, lanes, mask)
            return
        addresses = self._address(buffer, self.value(place, lanes), part, lanes)
        if mask and not masked.scatters(mask, self.module.vector_bytes):
            masked.scatter(self.writer, name, addresses, t, align_of(t), lanes, mask)
            return
        v = vector(t, lanes)
        symbol = f"@llvm.masked.scatter.{suffix(t, lanes)}.v{lanes}p0"
        self.writer.declare(f"declare void {symbol}({v}, <{lanes} x ptr>, i32, <{lanes} x i1>)")
        mask = mask or splat("true", "i1", lanes)
        self.line(f"call void {symbol}({v} {name}, <{lanes} x ptr> {addresses}, i32 {align_of(t)}, <{lanes} x i1> "
                  f"{mask})")

    def _to_memory(self, name: str, buffer: Buffer, lanes: int) -> str:
        if buffer.dtype == BOOL:
            return self.op(f"zext {vector('i1', lanes)} {name} to {vector('i8', lanes)}")
        if buffer.dtype in NARROW_INTS:  # as ml_dtypes does, so that equal arrays are equal bytes
            low = splat(str(2 ** NARROW_INTS[buffer.dtype][0] - 1), "i8", lanes)
            return self.op(f"and {vector('i8', lanes)} {name}, {low}")
        return name

    def store_records(self, stores: Sequence[Store]) -> bool:
        """Stores all members of records, one a lane, interleaved; False if the stores are no such."""
        first, count = stores[0], len(stores)
        buffer = first.buffer
        each = _parts(buffer)
        if self.values.lanes is None or not 2 <= count <= WIDEST_STEP // each or self.module.bounds:
            return False
        if self.step(first.offset) != count or any(
                s.buffer is not buffer or s.offset is not self.arena.iadd(first.offset, k)
                for k, s in enumerate(stores)):
            return False
        lanes, mask = self.values.lanes.width, self.values.lanes.mask
        numbers = [e for s in stores for e in (s.value.args if each == 2 else (s.value,))]
        t = memory_type(buffer.dtype) if each == 1 else element_type(part_dtype(buffer.dtype))
        members = [self._to_memory(self.value(e, lanes), buffer, lanes) for e in numbers]
        v, to = vector(t, lanes), self._address(buffer, self.values.first(first.offset), 0 if each == 2 else None)
        for number, out in enumerate(self._records(members, v, lanes)):
            start = number * lanes
            held = mask and masked.reordered(
                self.writer, mask, lanes, [p // len(members) for p in range(start, start + lanes)])
            here = self.op(f"getelementptr {t}, ptr {to}, i64 {start}")
            self._store_lanes(out, here, t, lanes, held)
        self.forget(buffer)
        return True

    def _records(self, members: list[str], v: str, lanes: int) -> list[str]:
        """Members of records, one a lane, as the records one after the other, in as many vectors."""
        count = len(members)
        if count == 1:
            return members
        if count % 2 == 0:  # perfect shuffles of what the members in even places and those in odd ones make
            halves = [self._records(members[k::2], v, lanes) for k in (0, 1)]
            return [self.op(f"shufflevector {v} {a}, {v} {b}, <{lanes} x i32> <"
                            + ", ".join(f"i32 {first + i // 2 + lanes * (i % 2)}" for i in range(lanes)) + ">")
                    for a, b in zip(*halves, strict=True) for first in (0, lanes // 2)]
        vectors = []
        for start in range(0, count * lanes, lanes):
            places = [divmod(p, count) for p in range(start, start + lanes)]  # (record, member)
            out = "poison"
            for k, name in enumerate(members):
                order = ", ".join(f"i32 {i if m < k else lanes + record if m == k else 'poison'}"
                                  for i, (record, m) in enumerate(places))
                out = self.op(f"shufflevector {v} {out}, {v} {name}, <{lanes} x i32> <{order}>")
            vectors.append(out)
        return vectors

    def _store_lanes(self, name: str, address: str, t: str, lanes: int, mask: str | None) -> None:
        v = vector(t, lanes)
        if mask is None:
            self.line(f"store {v} {name}, ptr {address}, align {align_of(t)}")
            return
        if not masked.has_instructions(align_of(t), mask, self.module.vector_bytes):
            masked.store(self.writer, name, address, t, align_of(t), lanes, mask)
            return
        count = None if is_avx512(self.module.vector_bytes) else masked.leading(mask)
        if count is not None:
            masked.store_leading(self.writer, name, address, t, align_of(t), lanes, count)
            return
        symbol = f"@llvm.masked.store.{suffix(t, lanes)}.p0"
        self.writer.declare(f"declare void {symbol}({v}, ptr, i32, <{lanes} x i1>)")
        self.line(f"call void {symbol}({v} {name}, ptr {address}, i32 {align_of(t)}, <{lanes} x i1> {mask})")

    def forget(self, buffer: Buffer) -> None:
        """After a write: what was computed from the buffer is out of date."""
        root = self.root(buffer)
        for scope in self.writer.scopes:
            scope.forget(root)


def _parts(buffer: Buffer) -> int:
    """Of how many numbers an element consists."""
    return 2 if is_complex(buffer.dtype) else 1


def align_of(t: str) -> int:
    return {"float": 4, "double": 8, "i8": 1, "i16": 2, "i32": 4, "i64": 8, "i1": 1}[t]
