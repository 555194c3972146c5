"""Masked accesses to elements for which the processor has no such instructions. LLVM would branch for each lane, in
code that is long, and long in the making: here one loop goes through the lanes that are not masked."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..compile.registers import is_avx512
from .instructions import vector
from .writer import Writer

AVX2_BYTES = 4  # of the least elements that AVX2 masks


def has_instructions(size: int, mask: str, vector_bytes: int) -> bool:
    """Whether accesses to elements of `size` bytes need no loop: those under a mask that is a constant do not."""
    return is_avx512(vector_bytes) or vector_bytes >= 32 and size >= AVX2_BYTES or mask.startswith("<")


def scatters(mask: str, vector_bytes: int) -> bool:
    """The same of accesses to elements apart, whatever their size."""
    return is_avx512(vector_bytes) or mask.startswith("<")


def load(f: Writer, address: str, t: str, align: int, lanes: int, mask: str, inside: str) -> str:
    """The elements that begin at an address, zero where they are masked. Where a vector of them lies `inside` the
    buffer, it is read as one."""
    v = vector(t, lanes)
    whole, some, end = (f.label(stem) for stem in ("whole", "some", "loaded"))
    all_read, kept, last, result = (f.fresh() for _ in range(4))
    f.line(f"br i1 {inside}, label %{whole}, label %{some}")
    f.start(whole)
    f.line(f"{all_read} = load {v}, ptr {address}, align {align}")
    f.line(f"{kept} = select <{lanes} x i1> {mask}, {v} {all_read}, {v} zeroinitializer")
    f.line(f"br label %{end}")

    def read(lane: str, so_far: str) -> None:
        one = _element(f, address, t, lane)
        value = f.fresh()
        f.line(f"{value} = load {t}, ptr {one}, align {align}")
        f.line(f"{last} = insertelement {v} {so_far}, {t} {value}, {lane}")

    found, after = _each_lane(f, some, mask, lanes, read, (v, last))
    f.line(f"br label %{end}")
    f.start(end)
    f.line(f"{result} = phi {v} [ {kept}, %{whole} ], [ {found}, %{after} ]")
    return result


def store(f: Writer, name: str, address: str, t: str, align: int, lanes: int, mask: str) -> None:
    """Stores the elements that are not masked side by side."""
    def write(lane: str, _: str) -> None:
        value = f.fresh()
        f.line(f"{value} = extractelement {vector(t, lanes)} {name}, {lane}")
        f.line(f"store {t} {value}, ptr {_element(f, address, t, lane)}, align {align}")

    _from_here(f, mask, lanes, write)


def leading(mask: str) -> int | None:
    """How many lanes a mask leaves that is a constant, if they are the first ones."""
    if not mask.startswith("<"):
        return None
    lanes = mask[1:-1].split(", ")
    count = lanes.count("i1 true")
    return count if "i1 true" not in lanes[count:] else None


def store_leading(f: Writer, name: str, address: str, t: str, align: int, lanes: int, count: int) -> None:
    """Stores the first `count` lanes, in vectors of powers of two. AVX2's stores under a mask are microcode on AMD's
    processors, and what reads their memory next waits until they are done."""
    v, start = vector(t, lanes), 0
    while start < count:
        width = 1 << (count - start).bit_length() - 1
        piece, at = f.fresh(), _element(f, address, t, f"i32 {start}") if start else address
        if width == 1:
            f.line(f"{piece} = extractelement {v} {name}, i32 {start}")
        else:
            order = ", ".join(f"i32 {k}" for k in range(start, start + width))
            f.line(f"{piece} = shufflevector {v} {name}, {v} poison, <{width} x i32> <{order}>")
        f.line(f"store {vector(t, width)} {piece}, ptr {at}, align {align}")
        start += width


def reordered(f: Writer, mask: str, lanes: int, order: Sequence[int]) -> str:
    """A mask of which lane k is lane `order[k]` of another: of a constant, a constant."""
    if mask.startswith("<"):
        old = mask[1:-1].split(", ")
        return "<" + ", ".join(old[k] for k in order) + ">"
    found = f.fresh()
    f.line(f"{found} = shufflevector <{lanes} x i1> {mask}, <{lanes} x i1> poison, "
           f"<{len(order)} x i32> <{', '.join(f'i32 {k}' for k in order)}>")
    return found


def scatter(f: Writer, name: str, addresses: str, t: str, align: int, lanes: int, mask: str) -> None:
    """Stores the elements that are not masked, each at an address of its own, one after the other."""
    def write(lane: str, _: str) -> None:
        value, address = f.fresh(), f.fresh()
        f.line(f"{value} = extractelement {vector(t, lanes)} {name}, {lane}")
        f.line(f"{address} = extractelement <{lanes} x ptr> {addresses}, {lane}")
        f.line(f"store {t} {value}, ptr {address}, align {align}")

    _from_here(f, mask, lanes, write)


def _element(f: Writer, address: str, t: str, lane: str) -> str:
    one = f.fresh()
    f.line(f"{one} = getelementptr {t}, ptr {address}, {lane}")
    return one


def _from_here(f: Writer, mask: str, lanes: int, body: Callable[[str, str], None]) -> None:
    begin = f.label("lanes")
    f.line(f"br label %{begin}")
    _each_lane(f, begin, mask, lanes, body)


def _each_lane(f: Writer, begin: str, mask: str, lanes: int, body: Callable[[str, str], None],
               carried: tuple[str, str] | None = None) -> tuple[str, str]:
    """From a label on, runs what `body` writes for each lane that is not masked: for the lowest bit of the mask that is
    left. It may carry a vector, zero at first, of a type, under a name that the body gives it. Gives what was carried,
    and the label where that is known."""
    bits = max(lanes, 32)
    symbol, word = f"@llvm.cttz.i{bits}", f"i{bits}"
    f.declare(f"declare {word} {symbol}({word}, i1)")
    loop, end = f.label("lane"), f.label("end")
    raw, every, some, left, lane, less, rest, more, so_far, found = (f.fresh() for _ in range(10))
    f.start(begin)
    f.line(f"{raw} = bitcast <{lanes} x i1> {mask} to i{lanes}")
    if lanes < bits:
        f.line(f"{every} = zext i{lanes} {raw} to {word}")
    else:
        every = raw
    f.line(f"{some} = icmp ne {word} {every}, 0")
    f.line(f"br i1 {some}, label %{loop}, label %{end}")
    f.start(loop)
    f.line(f"{left} = phi {word} [ {every}, %{begin} ], [ {rest}, %{loop} ]")
    if carried:
        f.line(f"{so_far} = phi {carried[0]} [ zeroinitializer, %{begin} ], [ {carried[1]}, %{loop} ]")
    f.line(f"{lane} = call {word} {symbol}({word} {left}, i1 true)")
    body(f"{word} {lane}", so_far)
    f.line(f"{less} = add {word} {left}, -1")
    f.line(f"{rest} = and {word} {left}, {less}")
    f.line(f"{more} = icmp ne {word} {rest}, 0")
    f.line(f"br i1 {more}, label %{loop}, label %{end}")
    f.start(end)
    if carried:
        f.line(f"{found} = phi {carried[0]} [ zeroinitializer, %{begin} ], [ {carried[1]}, %{loop} ]")
    return found, end
