"""A straight-line LLVM function under construction, written as arithmetic on values.

`Block` collects instructions; `Register` is an SSA name with its type and has Python's operators, so that
an algorithm reads like the formula it implements:

    n, r = ...
    y = b.fma(r, b.poly(r, ROW), 1.0)

Python numbers are operands everywhere and become (splatted) constants of the other operand's type.
Nothing here is fast-math: each operator is one correctly rounded IEEE operation, so that vector bodies,
masked tails and scalar code give the same bits.
"""
from __future__ import annotations

import struct
from collections.abc import Sequence
from copy import copy
from functools import cache
from itertools import count

from ..llvm import host

__all__ = ["Block", "Kind", "Register", "float_kind", "float_text", "int_kind", "has_feature"]


# Float types: bits, and how intrinsics call them
FLOATS = {"float": (32, "f32"), "double": (64, "f64"), "half": (16, "f16"), "bfloat": (16, "bf16")}


class Kind:
    """An LLVM type: an element type (a float type of FLOATS, or `i1`, `i8`, `i32`, …) and a number of lanes."""

    __slots__ = ("bits", "element", "floating", "lanes", "suffix", "text")

    def __init__(self, element: str, lanes: int):
        self.element = element
        self.lanes = lanes
        self.floating = element in FLOATS
        self.bits, letters = FLOATS[element] if self.floating else (int(element[1:]), element)
        self.text = element if lanes == 1 else f"<{lanes} x {element}>"
        self.suffix = letters if lanes == 1 else f"v{lanes}{letters}"

    def with_element(self, element: str) -> Kind:
        return kind(element, self.lanes)


@cache
def kind(element: str, lanes: int) -> Kind:
    return Kind(element, lanes)


def float_kind(dtype: str, lanes: int) -> Kind:
    return kind({"f32": "float", "f64": "double"}[dtype], lanes)


def int_kind(bits: int, lanes: int) -> Kind:
    return kind(f"i{bits}", lanes)


@cache
def float_text(number: float, bits: int) -> str:
    """The LLVM spelling of a float constant: the bits of the double with the same value."""
    if bits == 32:
        number = struct.unpack("<f", struct.pack("<f", number))[0]
    return f"0x{struct.unpack('<Q', struct.pack('<d', number))[0]:016X}"


def has_feature(name: str) -> bool:
    """Whether the processor that code is generated for has an LLVM target feature such as `avx512vl`."""
    return name in host().available


class Register:
    """An SSA value. Comparisons give masks (`i1` lanes); comparisons with NaN are false."""

    __slots__ = ("block", "kind", "name")

    def __init__(self, block: Block, name: str, kind: Kind):
        self.block = block
        self.name = name
        self.kind = kind

    def __add__(self, other):
        return self.block.binary("add", self, other)

    __radd__ = __add__

    def __sub__(self, other):
        return self.block.binary("sub", self, other)

    def __rsub__(self, other):
        return self.block.binary("sub", other, self)

    def __mul__(self, other):
        return self.block.binary("mul", self, other)

    __rmul__ = __mul__

    def __truediv__(self, other):
        return self.block.binary("div", self, other)

    def __rtruediv__(self, other):
        return self.block.binary("div", other, self)

    def __neg__(self):
        block = self.block
        if self.kind.floating:
            return block.emit(self.kind, f"fneg {self.kind.text} {self.name}")
        return 0 - self

    def __and__(self, other):
        return self.block.bitwise("and", self, other)

    def __or__(self, other):
        return self.block.bitwise("or", self, other)

    def __xor__(self, other):
        return self.block.bitwise("xor", self, other)

    def __invert__(self):
        return self ^ (1 if self.kind.bits == 1 else -1)

    def __lshift__(self, other):
        return self.block.bitwise("shl", self, other)

    def __rshift__(self, other):
        return self.block.bitwise("ashr", self, other)

    def __lt__(self, other):
        return self.block.compare("lt", self, other)

    def __le__(self, other):
        return self.block.compare("le", self, other)

    def __gt__(self, other):
        return self.block.compare("gt", self, other)

    def __ge__(self, other):
        return self.block.compare("ge", self, other)


class Block:
    """Builds one function over `lanes` elements of `dtype` ("f32" or "f64")."""

    def __init__(self, dtype: str, lanes: int):
        self.lanes = lanes
        self.set_dtype(dtype)
        self.lines: list[str] = []
        self.dependencies: list[tuple[str, str, int]] = []
        self.numbers = count()
        # The labels of the basic blocks so far; the last one is being written.
        self.labels = ["entry"]

    def set_dtype(self, dtype: str):
        self.dtype = dtype
        self.single = dtype == "f32"
        self.float = float_kind(dtype, self.lanes)
        self.int = int_kind(self.float.bits, self.lanes)

    def in_double(self) -> Block:
        """The same function under construction, with f64 as the dtype of its constants."""
        block = copy(self)
        block.set_dtype("f64")
        return block

    # Constants and plain instructions

    def emit(self, kind: Kind, instruction: str) -> Register:
        name = f"%v{next(self.numbers)}"
        self.lines.append(f"  {name} = {instruction}")
        return Register(self, name, kind)

    def operand(self, value, kind: Kind) -> str:
        """The text of an operand without its type; numbers become constants of type `kind`."""
        if isinstance(value, Register):
            return value.name
        if kind.floating:
            text = float_text(value, kind.bits)
        else:
            text = str(int(value)) if kind.bits > 1 else ("true" if value else "false")
        return text if kind.lanes == 1 else f"splat ({kind.element} {text})"

    def constant(self, number, kind: Kind | None = None) -> Register:
        kind = kind or self.float
        return Register(self, self.operand(number, kind), kind)

    def sign_bit(self, kind: Kind) -> Register:
        return self.constant(-(1 << (kind.bits - 1)), kind)

    def pick(self, single, double):
        """A constant or row of coefficients by the block's dtype."""
        return single if self.single else double

    def binary(self, op: str, x, y) -> Register:
        kind = x.kind if isinstance(x, Register) else y.kind
        if kind.floating:
            op = "f" + op
        return self.emit(kind, f"{op} {kind.text} {self.operand(x, kind)}, {self.operand(y, kind)}")

    def bitwise(self, op: str, x: Register, y) -> Register:
        kind = x.kind
        return self.emit(kind, f"{op} {kind.text} {x.name}, {self.operand(y, kind)}")

    def compare(self, op: str, x: Register, y, ordered: bool = True) -> Register:
        kind = x.kind
        if kind.floating:
            text = f"fcmp {'o' if ordered else 'u'}{op}"
        else:
            text = f"icmp {op if op in ('eq', 'ne') else 's' + op}"
        mask = kind.with_element("i1")
        return self.emit(mask, f"{text} {kind.text} {x.name}, {self.operand(y, kind)}")

    def eq(self, x: Register, y) -> Register:
        return self.compare("eq", x, y)

    def ne(self, x: Register, y) -> Register:
        return self.compare("ne", x, y, ordered=False)

    def ne_int(self, x: Register, y) -> Register:
        return self.compare("ne", x, y)

    def is_nan(self, x: Register) -> Register:
        return self.emit(x.kind.with_element("i1"), f"fcmp uno {x.kind.text} {x.name}, {x.name}")

    def not_lt(self, x: Register, y) -> Register:
        """x >= y or either is NaN."""
        return self.compare("ge", x, y, ordered=False)

    def select(self, mask: Register, x, y) -> Register:
        kind = x.kind if isinstance(x, Register) else y.kind if isinstance(y, Register) else self.float
        t = kind.text
        x, y = self.operand(x, kind), self.operand(y, kind)
        return self.emit(kind, f"select {mask.kind.text} {mask.name}, {t} {x}, {t} {y}")

    def intrinsic(self, name: str, *args, kind: Kind | None = None) -> Register:
        """Call `llvm.<name>.<type>`; all arguments have the type of the result."""
        kind = kind or next(a.kind for a in args if isinstance(a, Register))
        operands = ", ".join([f"{kind.text} {self.operand(a, kind)}" for a in args])
        return self.emit(kind, f"call {kind.text} @llvm.{name}.{kind.suffix}({operands})")

    def fma(self, x, y, z) -> Register:
        """x*y + z, rounded once."""
        return self.intrinsic("fma", x, y, z)

    def sqrt(self, x: Register) -> Register:
        return self.intrinsic("sqrt", x)

    def abs(self, x: Register) -> Register:
        return self.intrinsic("fabs", x)

    def copysign(self, x, y: Register) -> Register:
        return self.intrinsic("copysign", x, y)

    def floor(self, x: Register) -> Register:
        return self.intrinsic("floor", x)

    def trunc(self, x: Register) -> Register:
        return self.intrinsic("trunc", x)

    def rint(self, x: Register) -> Register:
        return self.intrinsic("rint", x)

    def at_most(self, x: Register, limit) -> Register:
        """min(x, limit), NaN where x is NaN (one `min` instruction on x86)."""
        limit = limit if isinstance(limit, Register) else self.constant(limit, x.kind)
        return self.select(self.compare("lt", limit, x), limit, x)

    def at_least(self, x: Register, limit) -> Register:
        """max(x, limit), NaN where x is NaN."""
        limit = limit if isinstance(limit, Register) else self.constant(limit, x.kind)
        return self.select(self.compare("gt", limit, x), limit, x)

    def poly(self, x: Register, row) -> Register:
        """row[0] + row[1]*x + row[2]*x**2 + …, in two interleaved Horner chains where it is long."""
        if len(row) < 8:
            return self.horner(x, row)
        square = x * x
        return self.fma(x, self.horner(square, row[1::2]), self.horner(square, row[0::2]))

    def horner(self, x: Register, row) -> Register:
        y = row[-1] if isinstance(row[-1], Register) else self.constant(row[-1], x.kind)
        for c in reversed(row[:-1]):
            y = self.fma(y, x, c)
        return y

    # Bits and conversions

    def cast(self, op: str, x: Register, kind: Kind) -> Register:
        return self.emit(kind, f"{op} {x.kind.text} {x.name} to {kind.text}")

    def bits(self, x: Register) -> Register:
        return self.cast("bitcast", x, x.kind.with_element(f"i{x.kind.bits}"))

    def floats(self, x: Register) -> Register:
        return self.cast("bitcast", x, x.kind.with_element("float" if x.kind.bits == 32 else "double"))

    def widen(self, x: Register) -> Register:
        """f32 lanes as f64 lanes."""
        return self.cast("fpext", x, x.kind.with_element("double"))

    def narrow(self, x: Register) -> Register:
        return self.cast("fptrunc", x, x.kind.with_element("float"))

    # Exact sums and products: pairs (high, low) with high + low the exact result

    def two_sum(self, x: Register, y) -> tuple[Register, Register]:
        s = x + y
        t = s - x
        return s, (x - (s - t)) + (y - t)

    def fast_two_sum(self, x: Register, y: Register) -> tuple[Register, Register]:
        """As `two_sum`, for |x| >= |y|."""
        s = x + y
        return s, y - (s - x)

    def two_product(self, x: Register, y: Register) -> tuple[Register, Register]:
        p = x * y
        return p, self.fma(x, y, -p)

    # Exponents

    def nearest(self, x: Register, factor: float, offset: float = 0.0) -> tuple[Register, Register]:
        """round(x*factor + offset) as a float, and integer bits whose low part is that number.

        Adding 1.5*2**p pushes the fraction out of the mantissa, good for |n| < 2**(p-1).
        """
        magic = 1.5 * 2.0 ** (23 if x.kind.bits == 32 else 52)
        if offset:
            t = self.fma(x, factor, offset) + magic
        else:
            t = self.fma(x, factor, magic)
        return t - magic, self.bits(t)

    def power_of_two(self, n_bits: Register) -> Register:
        """2**n from the second result of `nearest`, for n within the exponents of normal numbers."""
        mantissa, bias = (23, 127) if n_bits.kind.bits == 32 else (52, 1023)
        return self.floats((n_bits << mantissa) + (bias << mantissa))

    def scale(self, x: Register, n: Register, n_bits: Register) -> Register:
        """x * 2**n, rounded once, with n and n_bits from `nearest` and |n| < 2**11 (2**8 in f32).

        Two factors, so that the results may be subnormal or overflow; one instruction with AVX-512.
        """
        kind = x.kind
        if self.has_avx512(kind):
            return self.avx512("scalef", x, n)
        half = n_bits >> 1  # (whose low bits are those of n / 2, as n_bits' are those of n: the others are shifted out)
        first, second = self.power_of_two(half), self.power_of_two(n_bits - half)
        return (x * first) * second

    def split(self, x: Register) -> tuple[Register, Register]:
        """(m, e) with x = m * 2**e and m in [0.75, 1.5), subnormals included.

        e is -inf for zero and +inf for infinity, m is NaN for negative numbers, either for NaN: so a
        logarithm e*log(2) + log(m) needs no special cases.
        """
        kind = x.kind
        if self.has_avx512(kind):
            # Interval [0.75, 1.5) is 3; 8 makes NaN of negative numbers.
            m = self.avx512("getmant", x, control=11)
            return m, self.avx512("getexp", x) - self.avx512("getexp", m)
        if kind.bits == 32:
            mantissa, smallest, lift, three_quarters, magic = 23, 2.0**-126, 24, 0x3F400000, 0x4B400000
        else:
            mantissa, smallest, lift = 52, 2.0**-1022, 54
            three_quarters, magic = 0x3FE8000000000000, 0x4338000000000000
        tiny = x < smallest
        normal = self.bits(self.select(tiny, x * 2.0**lift, x))
        e_bits = (normal - three_quarters) >> mantissa
        m = self.floats(normal - (e_bits << mantissa))
        bias = self.select(tiny, self.constant(1.5 * 2.0**mantissa + lift, kind), 1.5 * 2.0**mantissa)
        e = self.floats(e_bits + magic) - bias
        inf = float("inf")
        usual = (x > 0.0) & (x < inf)
        m = self.select(usual, m, self.select(self.not_lt(x, 0.0), 1.0, self.constant(float("nan"), kind)))
        e = self.select(usual, e, self.select(self.eq(x, 0.0), self.constant(-inf, kind), x))
        return m, e

    def has_avx512(self, kind: Kind) -> bool:
        return kind.lanes * kind.bits in (128, 256, 512, 1024) and has_feature("avx512vl")

    def avx512(self, name: str, *arguments: Register, control: int | None = None) -> Register:
        """An instruction of AVX-512 on full vectors, no lane masked off, rounding to nearest."""
        kind = arguments[0].kind
        width = kind.lanes * kind.bits
        if width > 512:
            halves = zip(*[self.halves(a) for a in arguments])
            return self.joined(*[self.avx512(name, *half, control=control) for half in halves])
        symbol = f"llvm.x86.avx512.mask.{name}.p{'s' if kind.bits == 32 else 'd'}.{width}"
        operands = [f"{kind.text} {a.name}" for a in arguments]
        if control is not None:
            operands.append(f"i32 {control}")
        operands += [f"{kind.text} poison", f"i{max(kind.lanes, 8)} -1"]
        if width == 512:
            operands.append("i32 4")
        return self.emit(kind, f"call {kind.text} @{symbol}({', '.join(operands)})")

    def halves(self, x: Register) -> list[Register]:
        """The lower and the upper half of the lanes."""
        count = x.kind.lanes // 2
        return [self.shuffle(x, x, range(start, start + count)) for start in (0, count)]

    def joined(self, low: Register, high: Register) -> Register:
        return self.shuffle(low, high, range(2 * low.kind.lanes))

    def shuffle(self, x: Register, y: Register, lanes: Sequence[int]) -> Register:
        """The lanes with these numbers, those of `y` counted behind those of `x`."""
        t, count = x.kind.text, len(lanes)
        numbers = f"<{', '.join([f'i32 {i}' for i in lanes])}>" if any(lanes) else "zeroinitializer"
        text = f"shufflevector {t} {x.name}, {t} {y.name}, <{count} x i32> {numbers}"
        return self.emit(kind(x.kind.element, count), text)

    # Structure

    def depend(self, name: str, dtype: str | None = None, lanes: int | None = None):
        """Note that another definition of this package must be in the module."""
        key = (name, dtype or self.dtype, lanes or self.lanes)
        if key not in self.dependencies:
            self.dependencies.append(key)

    def call(self, name: str, *arguments: Register) -> Register:
        """Another function of this package, called rather than written out."""
        self.depend(name)
        t = self.float.text
        operands = ", ".join([f"{t} {a.name}" for a in arguments])
        return self.emit(self.float, f"call {t} @styrax.{name}.{self.dtype}.{self.lanes}({operands})")

    def freeze(self, x: Register) -> Register:
        return self.emit(x.kind, f"freeze {x.kind.text} {x.name}")

    def any(self, mask: Register) -> Register:
        """One i1: whether any lane is set. The mask must not be poison: `freeze` what it comes from."""
        if mask.kind.lanes == 1:
            return mask
        t = mask.kind
        return self.emit(kind("i1", 1), f"call i1 @llvm.vector.reduce.or.{t.suffix}({t.text} {mask.name})")

    def rarely(self, condition: Register, usual: list[Register], rare) -> list[Register]:
        """`rare()` where the one-bit `condition` holds, `usual` otherwise: a real branch."""
        before, number = self.labels[-1], len(self.labels)
        name, done = f"rare{number}", f"done{number}"
        weights = '!prof !{!"branch_weights", i32 1, i32 4000}'
        self.lines += [f"  br i1 {condition.name}, label %{name}, label %{done}, {weights}", f"{name}:"]
        self.labels.append(name)
        values = rare()
        after = self.labels[-1]
        self.lines += [f"  br label %{done}", f"{done}:"]
        self.labels.append(done)
        return [
            self.emit(u.kind, f"phi {u.kind.text} [ {u.name}, %{before} ], [ {v.name}, %{after} ]")
            for u, v in zip(usual, values)
        ]

    def iterate(self, state: list[Register], active: Register, step, limit: int) -> list[Register]:
        """new = step(*state), lane by lane where `active`, until no lane is, at most `limit` times.

        `step` returns the new state and a mask of the lanes that go on; what it starts from is frozen.
        """
        before, number = self.labels[-1], len(self.labels)
        loop, done = f"iterate{number}", f"converged{number}"
        self.lines += [f"  br label %{loop}", f"{loop}:"]
        self.labels.append(loop)
        place = len(self.lines)
        one = kind("i32", 1)
        first = [self.constant(0, one), active, *state]
        phis = [Register(self, f"%p{number}.{i}", v.kind) for i, v in enumerate(first)]
        count, going, *old = phis
        new, more = step(*old)
        new = [self.select(going, x, y) for x, y in zip(new, old)]
        more = more & going
        count_next = count + 1
        again = self.any(more) & (count_next < limit)
        latch = self.labels[-1]
        self.lines += [f"  br i1 {again.name}, label %{loop}, label %{done}", f"{done}:"]
        self.labels.append(done)
        self.lines[place:place] = [
            f"  {phi.name} = phi {phi.kind.text} [ {x.name}, %{before} ], [ {y.name}, %{latch} ]"
            for phi, x, y in zip(phis, first, [count_next, more, *new])
        ]
        return new
