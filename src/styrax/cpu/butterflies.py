"""Passes of Fourier transforms, as LLVM IR compiled when a program first asks.

A pass of radix r over lines that lie side by side, of n = r·m·stride elements of which stretches of `stride` are done
already, is Stockham's (C. Van Loan, Computational Frameworks for the Fast Fourier Transform, 1992, section 1.7): for
all p < m and q < stride,

    y[q + stride·(r·p + k)] = factor[p, k] · Σ x[q + stride·(p + m·j)] exp(-2πi·j·k/r)

What generated code calls, for numbers of SIZE bytes and LANES lines at once::

    declare void @pass_RADIX_FROM_TO_FACTORS_SIZE_LANES(
        ptr source, ptr target, ptr factors, ptr turns, i64 m, i64 stride, i64 width,
        i64 source_unit, i64 source_part, i64 source_exchanged, i64 target_unit, i64 target_part, i64 target_exchanged,
        i64 turns_unit, i64 turns_part, T scale)

There are `width` lines, a multiple of LANES. FROM and TO tell how elements lie, `unit` complex numbers or, apart, parts
of such after each other: `pairs` are complex numbers, whose parts change places where they are `exchanged`; of `apart`
ones the imaginary parts stand `part` numbers behind the real ones. To `turned` ones, too, after element k of a line has
been multiplied with a complex number of its own at `turns`, laid out as `apart` ones. FACTORS are `some` of shape [2,
m, RADIX], real parts first; or `none`, in a last pass, whose results are multiplied with `scale`. The butterflies of
radices up to 13 are straight-line code, those of larger primes loops over results and points.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from . import llvm
from .instructions import literal, splat, suffix, vector
from .on_demand import Family

Pair = tuple[str, str]  # the names of both parts of a complex number
_TYPES = {4: "float", 8: "double"}
_NAME = re.compile(r"pass_(\d+)_(pairs|apart)_(pairs|apart|turned)_(some|none)_(4|8)_(\d+)")
_ANY = re.compile(r"pass_(\d+)_any_(4|8)_(\d+)")
WRITTEN_OUT = 13  # the largest radix whose butterfly is straight-line code
TOGETHER = 4, 2  # radices whose passes of any kind are one function
_COUNTS = ("m", "stride", "width", "source_unit", "source_part", "source_exchanged", "target_unit", "target_part",
           "target_exchanged", "turns_unit", "turns_part")


def unit_root(numerator: int, denominator: int) -> tuple[float, float]:
    """Cosine and sine of `-2π·numerator/denominator`, exact at multiples of an eighth of a turn."""
    eighths, rest = divmod(8 * (numerator % denominator), denominator)
    if rest == 0:
        h = math.sqrt(0.5)
        return ((1.0, 0.0), (h, -h), (0.0, -1.0), (-h, -h), (-1.0, 0.0), (-h, h), (0.0, 1.0), (h, h))[eighths]
    angle = -2 * math.pi * (numerator % denominator) / denominator
    return math.cos(angle), math.sin(angle)


class _Block:
    """Lines of instructions on vectors of one type. All transforms are forward ones."""

    def __init__(self, size: int, lanes: int):
        self.t, self.lanes, self.dtype = _TYPES[size], lanes, np.dtype(f"f{size}")
        self.v = vector(self.t, lanes)
        self.lines: list[str] = []

    def op(self, text: str) -> str:
        self.lines.append(f"  %v{len(self.lines)} = {text}")
        return f"%v{len(self.lines) - 1}"

    def constant(self, value: float) -> str:
        return splat(literal(self.dtype.type(value), self.dtype), self.t, self.lanes)

    def splat(self, scalar: str) -> str:
        if self.lanes == 1:
            return scalar
        one = self.op(f"insertelement {self.v} poison, {self.t} {scalar}, i64 0")
        return self.op(f"shufflevector {self.v} {one}, {self.v} poison, <{self.lanes} x i32> zeroinitializer")

    # -- arithmetic --------------------------------------------------------------------------------
    def add(self, x: str, y: str) -> str:
        return self.op(f"fadd {self.v} {x}, {y}")

    def sub(self, x: str, y: str) -> str:
        return self.op(f"fsub {self.v} {x}, {y}")

    def mul(self, x: str, y: str) -> str:
        return self.op(f"fmul {self.v} {x}, {y}")

    def neg(self, x: str) -> str:
        return self.op(f"fneg {self.v} {x}")

    def fma(self, x: str, y: str, z: str) -> str:
        """x·y + z, rounded once where the host can."""
        return self.op(f"call {self.v} @llvm.fmuladd.{suffix(self.t, self.lanes)}"
                       f"({self.v} {x}, {self.v} {y}, {self.v} {z})")

    def plus(self, x: Pair, y: Pair) -> Pair:
        return self.add(x[0], y[0]), self.add(x[1], y[1])

    def minus(self, x: Pair, y: Pair) -> Pair:
        return self.sub(x[0], y[0]), self.sub(x[1], y[1])

    def times(self, x: Pair, w: Pair) -> Pair:
        return (self.fma(x[0], w[0], self.neg(self.mul(x[1], w[1]))), self.fma(x[0], w[1], self.mul(x[1], w[0])))

    def rotated(self, x: Pair, numerator: int, denominator: int) -> Pair:
        """`x` times a root of unity, with fewer operations where that is a multiple of an eighth of a turn."""
        re, im = x
        eighths, rest = divmod(8 * (numerator % denominator), denominator)
        if rest == 0 and eighths % 2 == 0:
            turn = eighths // 2
            return ((re, im) if turn == 0 else (im, self.neg(re)) if turn == 1
                    else (self.neg(re), self.neg(im)) if turn == 2 else (self.neg(im), re))
        c, s = unit_root(numerator, denominator)
        if rest:
            return self.times(x, (self.constant(c), self.constant(s)))
        cosine = self.constant(c)  # both parts of the factor have one size: two products do
        if (c > 0) == (s > 0):
            return self.mul(self.sub(re, im), cosine), self.mul(self.add(re, im), cosine)
        return self.mul(self.add(re, im), cosine), self.mul(self.sub(im, re), cosine)

    def dft(self, x: Sequence[Pair]) -> list[Pair]:
        """The transform of `len(x)` points (Cooley and Tukey 1965 for composite numbers of them)."""
        n = len(x)
        if n == 1:
            return list(x)
        if n == 2:
            return [self.plus(x[0], x[1]), self.minus(x[0], x[1])]
        first = next((p for p in range(2, n) if n % p == 0), n)
        if first == n:
            return self._odd_prime(x)
        rest = n // first
        inner = [self.dft(x[j::first]) for j in range(first)]
        out: list[Pair] = [x[0]] * n
        for k in range(rest):
            column = [self.rotated(inner[j][k], j * k, n) for j in range(first)]
            for i, value in enumerate(self.dft(column)):
                out[k + rest * i] = value
        return out

    def _odd_prime(self, x: Sequence[Pair]) -> list[Pair]:
        """By sums and differences of opposite points: what belongs to k and to n - k shares its products."""
        n = len(x)
        half = range(1, (n + 1) // 2)
        sums = [self.plus(x[j], x[n - j]) for j in half]
        differences = [self.minus(x[j], x[n - j]) for j in half]
        total = x[0]
        for s in sums:
            total = self.plus(total, s)
        out = [total] * n
        for k in half:
            re, im = x[0]
            across: list[str] = []
            for j, s, d in zip(half, sums, differences, strict=True):
                cosine, sine = map(self.constant, unit_root(j * k, n))
                re, im = self.fma(s[0], cosine, re), self.fma(s[1], cosine, im)
                across = ([self.fma(d[1], sine, across[0]), self.fma(d[0], sine, across[1])] if across
                          else [self.mul(d[1], sine), self.mul(d[0], sine)])
            out[k] = self.sub(re, across[0]), self.add(im, across[1])
            out[n - k] = self.add(re, across[0]), self.sub(im, across[1])
        return out


class _Pass(_Block):
    """The text of a pass: loops over p, over q, and over the lines."""

    def __init__(self, symbol: str, radix: int, source: str, target: str, factors: bool, size: int, lanes: int):
        super().__init__(size, lanes)
        self.symbol, self.radix, self.source, self.target, self.factors = symbol, radix, source, target, factors
        self.linkage, self.points = "", str(radix)  # (the radix as an operand)

    def text(self) -> str:
        self.body()
        intrinsic = f"@llvm.fmuladd.{suffix(self.t, self.lanes)}"
        return "\n".join([f"declare {self.v} {intrinsic}({self.v}, {self.v}, {self.v})", *self.constants(),
                          f"define {self.linkage}void @{self.symbol}({self.parameters()}) nounwind {{", *self.lines,
                          "  ret void", "}"])

    def parameters(self) -> str:
        counts = ", ".join(f"i64 %{name}" for name in _COUNTS)
        return f"ptr %source, ptr %target, ptr %factors, ptr %turns, {counts}, {self.t} %scale"

    def constants(self) -> list[str]:
        """The lines of what stands before the function."""
        return []

    def body(self) -> None:
        """The lines of the function."""
        radix, turned = self.radix, self.target == "turned"
        ends = ("source", "target", "turns") if turned else ("source", "target")
        numbers = {end: 2 if kind == "pairs" else 1 for end, kind in (("source", self.source), ("target", self.target))}
        self.lines.append("entry:")
        scale = self.splat("%scale")
        across = {end: self.op(f"mul i64 %stride, %{end}_unit") for end in ends}
        step = self.op(f"mul i64 %m, {across['source']}")
        flags = {end: self._mask(f"%{end}_exchanged") for end in ends if numbers.get(end) == 2}
        self.lines += ["  br label %next_p", "next_p:", "  %p = phi i64 [ 0, %entry ], [ %p1, %end_q ]"]
        factors = self._factors()
        first = {"source": self.op(f"mul i64 %p, {across['source']}")}
        results = self.op(f"mul i64 %p, {radix}")
        first |= {end: self.op(f"mul i64 {results}, {across[end]}") for end in ends[1:]}
        starts = {end: self._starts(f"%{end}", first[end], step if end == "source" else across[end],
                                    numbers.get(end, 1)) for end in ends}
        self.lines += ["  br label %next_q", "next_q:", "  %q = phi i64 [ 0, %next_p ], [ %q1, %end_lanes ]"]
        along = {end: self.op(f"mul i64 %q, %{end}_unit") for end in ends}
        self.lines += ["  br label %next_lanes", "next_lanes:",
                       "  %lane = phi i64 [ 0, %next_q ], [ %lane1, %next_lanes ]"]
        at = {end: self.op(f"add i64 %lane, {along[end]}") for end in ends}
        values = self.dft([self._load(start, at["source"], flags.get("source", "")) for start in starts["source"]])
        for k, value in enumerate(values):
            if not self.factors:
                value = self.mul(value[0], scale), self.mul(value[1], scale)
            elif k:
                value = self.times(value, factors[k - 1])
            if turned:
                value = self.times(value, self._apart(starts["turns"][k], at["turns"], "%turns_part"))
            self._store(value, starts["target"][k], at["target"], flags.get("target", ""))
        self._again("lane", self.lanes, "%width", "next_lanes", "end_lanes")
        self._again("q", 1, "%stride", "next_q", "end_q")
        self._again("p", 1, "%m", "next_p", "done")

    def _again(self, var: str, step: int, extent: str, loop: str, after: str) -> None:
        """The end of a loop."""
        self.lines += [f"  %{var}1 = add nuw nsw i64 %{var}, {step}",
                       f"  %more_{var} = icmp slt i64 %{var}1, {extent}",
                       f"  br i1 %more_{var}, label %{loop}, label %{after}", f"{after}:"]

    def _factors(self) -> list[Pair]:
        """Those of results 1, 2, … of this p."""
        if not self.factors:
            return []
        row = self.op(f"mul i64 %p, {self.radix}")
        imaginary = self.op(f"add i64 {row}, {self.op(f'mul i64 %m, {self.radix}')}")
        out = []
        for k in range(1, self.radix):
            parts = []
            for begin in (row, imaginary):
                at = self.op(f"getelementptr {self.t}, ptr %factors, i64 {self.op(f'add i64 {begin}, {k}')}")
                parts.append(self.splat(self.op(f"load {self.t}, ptr {at}")))
            out.append((parts[0], parts[1]))
        return out

    def _starts(self, base: str, first: str, step: str, numbers: int) -> list[str]:
        """Addresses of a butterfly's elements, `step` elements apart, of so many numbers each."""
        element = self.t if numbers == 1 else f"{{ {self.t}, {self.t} }}"
        out = [self.op(f"getelementptr {element}, ptr {base}, i64 {first}")]
        while len(out) < self.radix:
            out.append(self.op(f"getelementptr {element}, ptr {out[-1]}, i64 {step}"))
        return out

    def _apart(self, start: str, at: str, part: str) -> Pair:
        re = self.op(f"getelementptr {self.t}, ptr {start}, i64 {at}")
        im = self.op(f"getelementptr {self.t}, ptr {re}, i64 {part}")
        align = self.dtype.itemsize
        return (self.op(f"load {self.v}, ptr {re}, align {align}"), self.op(f"load {self.v}, ptr {im}, align {align}"))

    def _load(self, start: str, at: str, exchanged: str) -> Pair:
        if self.source == "apart":
            return self._apart(start, at, "%source_part")
        return self._sorted(self.op(f"getelementptr {{ {self.t}, {self.t} }}, ptr {start}, i64 {at}"), exchanged)

    def _sorted(self, first: str, exchanged: str) -> Pair:
        """The parts of complex numbers that lie as such."""
        halves = [self._at(first, i, load=True) for i in (0, 1)]
        if self.lanes > 1:
            halves = [self._picked(halves, range(part, 2 * self.lanes, 2)) for part in (0, 1)]
        return self._exchanged((halves[0], halves[1]), exchanged)

    def _store(self, value: Pair, start: str, at: str, exchanged: str) -> None:
        if self.target == "pairs":
            self._mix(value, self.op(f"getelementptr {{ {self.t}, {self.t} }}, ptr {start}, i64 {at}"), exchanged)
        else:
            self._store_apart(value, self.op(f"getelementptr {self.t}, ptr {start}, i64 {at}"))

    def _store_apart(self, value: Pair, re: str) -> None:
        im = self.op(f"getelementptr {self.t}, ptr {re}, i64 %target_part")
        for x, to in zip(value, (re, im), strict=True):
            self.lines.append(f"  store {self.v} {x}, ptr {to}, align {self.dtype.itemsize}")

    def _mix(self, value: Pair, first: str, exchanged: str) -> None:
        """Stores both parts as complex numbers."""
        align = self.dtype.itemsize
        halves = list(self._exchanged(value, exchanged))
        if self.lanes > 1:
            orders = [[i // 2 + i % 2 * self.lanes for i in range(half, half + self.lanes)] for half in (0, self.lanes)]
            halves = [self._picked(halves, order) for order in orders]
        for i, half in enumerate(halves):
            self.lines.append(f"  store {self.v} {half}, ptr {self._at(first, i)}, align {align}")

    def _at(self, first: str, half: int, load: bool = False) -> str:
        """The vector that begins there, or the next one: its place, or what it holds."""
        place = self.op(f"getelementptr {self.t}, ptr {first}, i64 {self.lanes}") if half else first
        return self.op(f"load {self.v}, ptr {place}, align {self.dtype.itemsize}") if load else place

    def _picked(self, pair: Sequence[str], order: Sequence[int]) -> str:
        mask = ", ".join(f"i32 {i}" for i in order)
        return self.op(f"shufflevector {self.v} {pair[0]}, {self.v} {pair[1]}, <{self.lanes} x i32> <{mask}>")

    def _mask(self, count: str) -> str:
        """Whether a number is not zero, for each lane: to choose by one bit would be to branch."""
        bit, v = self.op(f"icmp ne i64 {count}, 0"), vector("i1", self.lanes)
        if self.lanes == 1:
            return bit
        one = self.op(f"insertelement {v} poison, i1 {bit}, i64 0")
        return self.op(f"shufflevector {v} {one}, {v} poison, <{self.lanes} x i32> zeroinitializer")

    def _exchanged(self, x: Pair, mask: str) -> Pair:
        select = f"select {vector('i1', self.lanes)} {mask}, {self.v}"
        return self.op(f"{select} {x[1]}, {self.v} {x[0]}"), self.op(f"{select} {x[0]}, {self.v} {x[1]}")


class _LoopedPass(_Pass, ABC):
    """A pass whose butterflies reach points, or finish results, in loops: less text, and more of it runs."""

    def ends(self) -> Sequence[str]:
        """What a butterfly reaches."""
        return ("source", "target", "turns") if self.target == "turned" else ("source", "target")

    def asked(self) -> None:
        """The lines of what is asked once."""

    def body(self) -> None:
        ends = self.ends()
        self.numbers = {end: 2 if kind == "pairs" else 1
                        for end, kind in (("source", self.source), ("target", self.target))}
        self.lines += ["entry:", f"  %kept = alloca [{self.vectors()} x {self.v}], align 64"]
        self.asked()
        self.by = self.splat("%scale")
        self.across = {end: self.op(f"mul i64 %stride, %{end}_unit") for end in ends}
        self.step = self.op(f"mul i64 %m, {self.across['source']}")
        self.flags = {end: self._mask(f"%{end}_exchanged") for end in ends if self.numbers.get(end) == 2}
        self.behind = self.op(f"mul i64 %m, {self.points}")  # the imaginary parts of factors
        self.lines += ["  br label %next_p", "next_p:", "  %p = phi i64 [ 0, %entry ], [ %p1, %end_q ]"]
        self.row = self.op(f"mul i64 %p, {self.points}")
        self.first = {"source": self.op(f"mul i64 %p, {self.across['source']}")}
        self.first |= {end: self.op(f"mul i64 {self.row}, {self.across[end]}") for end in ends[1:]}
        self.lines += ["  br label %next_q", "next_q:", "  %q = phi i64 [ 0, %next_p ], [ %q1, %end_lanes ]"]
        along = {end: self.op(f"mul i64 %q, %{end}_unit") for end in ends}
        self.lines += ["  br label %next_lanes", "next_lanes:",
                       "  %lane = phi i64 [ 0, %next_q ], [ %lane1, %end_k ]"]
        self.at = {end: self.op(f"add i64 %lane, {along[end]}") for end in ends}
        self.butterfly()
        self._again("lane", self.lanes, "%width", "next_lanes", "end_lanes")
        self._again("q", 1, "%stride", "next_q", "end_q")
        self._again("p", 1, "%m", "next_p", "done")

    def vectors(self) -> int:
        """How many a butterfly keeps in memory."""
        return 2 * self.radix

    @abstractmethod
    def butterfly(self) -> None:
        """The lines of one; the last block is `end_k`."""

    @staticmethod
    def _pair(values: Sequence[str]) -> Pair:
        return values[0], values[1]

    def _start(self, end: str, number: str) -> str:
        """The address of an element of the butterfly."""
        element = self.t if self.numbers.get(end, 1) == 1 else f"{{ {self.t}, {self.t} }}"
        far = self.op(f"mul i64 {number}, {self.step if end == 'source' else self.across[end]}")
        return self.op(f"getelementptr {element}, ptr %{end}, i64 {self.op(f'add i64 {self.first[end]}, {far}')}")

    def _point(self, number: str) -> Pair:
        return self._load(self._start("source", number), self.at["source"], self.flags.get("source", ""))

    def _finish(self, value: Pair, k: str) -> None:
        if not self.factors:
            value = self.mul(value[0], self.by), self.mul(value[1], self.by)
        elif k != "0":
            value = self.times(value, self._factor(k))
        if self.target == "turned":
            value = self.times(value, self._apart(self._start("turns", k), self.at["turns"], "%turns_part"))
        self._store(value, self._start("target", k), self.at["target"], self.flags.get("target", ""))

    def _factor(self, k: str) -> Pair:
        """That of result k of this p."""
        real = self.op(f"add i64 {self.row}, {k}")
        parts = [self.op(f"load {self.t}, ptr {self.op(f'getelementptr {self.t}, ptr %factors, i64 {place}')}")
                 for place in (real, self.op(f"add i64 {real}, {self.behind}"))]
        return self.splat(parts[0]), self.splat(parts[1])

    def _places(self, first: str, count: int) -> list[str]:
        """Where so many vectors are kept, from the `first`-th on."""
        place = self.op(f"getelementptr {self.v}, ptr %kept, i64 {first}")
        return [place, *(self.op(f"getelementptr {self.v}, ptr {place}, i64 {i}") for i in range(1, count))]

    def _keep(self, values: Sequence[str], first: str) -> None:
        for value, place in zip(values, self._places(first, len(values)), strict=True):
            self.lines.append(f"  store {self.v} {value}, ptr {place}")

    def _kept(self, first: str, count: int) -> list[str]:
        return [self.op(f"load {self.v}, ptr {place}") for place in self._places(first, count)]


class _AnyPass(_LoopedPass):
    """A pass between ends of any kind, in the middle or the last: what differs is asked at each point. A program that
    may run once has this function compiled for all of a radix, or of several: each has a function of its own then,
    which calls it."""

    def __init__(self, radices: Sequence[int], size: int, lanes: int):
        self.names = [any_name(r, size, lanes) for r in radices]
        self.radices, self.several = radices, len(radices) > 1
        super().__init__("pass_of_radix" if self.several else self.names[0], max(radices), "pairs", "pairs", True, size,
                         lanes)
        if self.several:
            self.linkage, self.points = "internal ", "%radix"

    def text(self) -> str:
        given = super().parameters()
        calls = [f"define void @{name}({given}) nounwind {{\n  call void @{self.symbol}({given}, i64 {radix})\n"
                 "  ret void\n}" for name, radix in zip(self.names, self.radices, strict=True) if self.several]
        return "\n".join((super().text(), *calls))

    def parameters(self) -> str:
        return super().parameters() + (", i64 %radix" if self.several else "")

    def ends(self) -> Sequence[str]:
        return ("source", "target", "turns")

    def asked(self) -> None:
        for end in ("source", "target"):  # parts of complex numbers do not lie apart
            self.lines += [f"  %{end}_pairs = icmp eq i64 %{end}_part, 0",
                           f"  %{end}_numbers = select i1 %{end}_pairs, i64 2, i64 1"]
        self.lines += ["  %last = icmp eq i64 %m, 1", "  %turned = icmp ne i64 %turns_part, 0"]

    def butterfly(self) -> None:
        self.lines += ["  br label %gather", "gather:", "  %j = phi i64 [ 0, %next_lanes ], [ %j1, %read ]"]
        self._keep(self._read(), self.op("mul i64 %j, 2"))
        self._again("j", 1, self.points, "gather", "transform")
        others = " ".join(f"i64 {r}, label %radix{r}" for r in self.radices[1:])
        self.lines.append(f"  switch i64 {self.points}, label %radix{self.radices[0]} [{others}]")
        for radix in self.radices:
            self.lines.append(f"radix{radix}:")
            values = self.dft([self._pair(self._kept(str(2 * j), 2)) for j in range(radix)])
            for k, value in enumerate(values):
                self._keep(value, str(2 * k))
            self.lines.append("  br label %transformed")
        self.lines += ["transformed:", "  br label %next_k",
                       "next_k:", "  %k = phi i64 [ 0, %transformed ], [ %k1, %written ]"]
        plain = self._pair(self._kept(self.op("mul i64 %k, 2"), 2))
        self.lines += ["  br i1 %last, label %scale_it, label %in_the_middle", "scale_it:"]
        scaled = self.mul(plain[0], self.by), self.mul(plain[1], self.by)
        self.lines += ["  br label %made", "in_the_middle:", "  %first = icmp eq i64 %k, 0",
                       "  br i1 %first, label %made, label %multiply", "multiply:"]
        product = self.times(plain, self._factor("%k"))
        self.lines += ["  br label %made", "made:"]
        made = self._either(("scale_it", scaled), ("in_the_middle", plain), ("multiply", product))
        self.lines += ["  br i1 %turned, label %turn, label %write", "turn:"]
        turn = self.times(made, self._apart(self._start("turns", "%k"), self.at["turns"], "%turns_part"))
        self.lines += ["  br label %write", "write:"]
        self._write(self._either(("made", made), ("turn", turn)))
        self._again("k", 1, self.points, "next_k", "end_k")

    def _either(self, *found: tuple[str, Pair]) -> Pair:
        """The complex number that the block before this one has found."""
        parts = [", ".join(f"[ {pair[part]}, %{block} ]" for block, pair in found) for part in (0, 1)]
        return self.op(f"phi {self.v} {parts[0]}"), self.op(f"phi {self.v} {parts[1]}")

    def _address(self, end: str, number: str) -> str:
        """Of the first part of an element of the butterfly."""
        far = self.op(f"mul i64 {number}, {self.step if end == 'source' else self.across[end]}")
        place = self.op(f"add i64 {self.op(f'add i64 {self.first[end]}, {far}')}, {self.at[end]}")
        return self.op(f"getelementptr {self.t}, ptr %{end}, i64 {self.op(f'mul i64 {place}, %{end}_numbers')}")

    def _read(self) -> Pair:
        """Point j; the last block is `read`."""
        place = self._address("source", "%j")
        self.lines += ["  br i1 %source_pairs, label %read_pairs, label %read_apart", "read_pairs:"]
        pairs = self._sorted(place, self.flags["source"])
        self.lines += ["  br label %read", "read_apart:"]
        apart = self._apart(place, "0", "%source_part")
        self.lines += ["  br label %read", "read:"]
        return self._either(("read_pairs", pairs), ("read_apart", apart))

    def _write(self, value: Pair) -> None:
        """Result k; the last block is `written`."""
        place = self._address("target", "%k")
        self.lines += ["  br i1 %target_pairs, label %write_pairs, label %write_apart", "write_pairs:"]
        self._mix(value, place, self.flags["target"])
        self.lines += ["  br label %written", "write_apart:"]
        self._store_apart(value, place)
        self.lines += ["  br label %written", "written:"]


class _PrimePass(_LoopedPass):
    """A pass of a large odd prime radix: what `_odd_prime` writes out, in loops over results and points. The roots of
    unity stand in a table."""

    def constants(self) -> list[str]:
        table = [part for j in range(self.radix) for part in unit_root(j, self.radix)]
        numbers = ", ".join(f"{self.t} {literal(self.dtype.type(x), self.dtype)}" for x in table)
        return [f"@roots = internal constant [{len(table)} x {self.t}] [{numbers}], align 64"]

    def vectors(self) -> int:
        return 4 * (self.radix // 2)

    def butterfly(self) -> None:
        half, v = self.radix // 2, self.v
        zero = self._point("0")
        self.lines += ["  br label %gather", "gather:", "  %j = phi i64 [ 1, %next_lanes ], [ %j1, %gather ]",
                       *(f"  %total{i} = phi {v} [ {x}, %next_lanes ], [ %sum{i}, %gather ]"
                         for i, x in enumerate(zero))]
        x, y = self._point("%j"), self._point(self.op(f"sub i64 {self.radix}, %j"))
        sums = self.plus(x, y)
        self._keep((*sums, *self.minus(x, y)), self.op(f"mul i64 {self.op('sub i64 %j, 1')}, 4"))
        self.lines += [f"  %sum{i} = fadd {v} %total{i}, {s}" for i, s in enumerate(sums)]
        self._again("j", 1, str(half + 1), "gather", "begin_k")
        self._finish(("%sum0", "%sum1"), "0")
        self.lines += ["  br label %next_k", "next_k:", "  %k = phi i64 [ 1, %begin_k ], [ %k1, %after_k ]",
                       "  br label %add", "add:", "  %i = phi i64 [ 0, %next_k ], [ %i1, %add ]",
                       "  %root = phi i64 [ %k, %next_k ], [ %root1, %add ]",
                       *(f"  %part{i} = phi {v} [ {x}, %next_k ], [ %part{i}.n, %add ]"
                         for i, x in enumerate((*zero, "zeroinitializer", "zeroinitializer")))]
        kept = self._kept(self.op("mul i64 %i, 4"), 4)
        pair = self.op(f"getelementptr [2 x {self.t}], ptr @roots, i64 %root")
        cosine = self.splat(self.op(f"load {self.t}, ptr {pair}"))
        sine = self.splat(self.op(f"load {self.t}, ptr {self.op(f'getelementptr {self.t}, ptr {pair}, i64 1')}"))
        for i, (value, root) in enumerate(((kept[0], cosine), (kept[1], cosine), (kept[3], sine), (kept[2], sine))):
            self.lines.append(f"  %part{i}.n = call {v} @llvm.fmuladd.{suffix(self.t, self.lanes)}"
                              f"({v} {value}, {v} {root}, {v} %part{i})")
        self.lines += ["  %root2 = add nuw nsw i64 %root, %k", f"  %root3 = sub nsw i64 %root2, {self.radix}",
                       f"  %inside = icmp slt i64 %root2, {self.radix}",
                       "  %root1 = select i1 %inside, i64 %root2, i64 %root3"]
        self._again("i", 1, str(half), "add", "after_k")
        re, im, real, imaginary = (f"%part{i}.n" for i in range(4))
        self._finish((self.sub(re, real), self.add(im, imaginary)), "%k")
        self._finish((self.add(re, real), self.sub(im, imaginary)), self.op(f"sub i64 {self.radix}, %k"))
        self._again("k", 1, str(half + 1), "next_k", "end_k")


def any_kind(symbol: str) -> str:
    """The function that does for a pass of any kind, where there is one: its name has `any` in place of the kinds."""
    found = _NAME.fullmatch(symbol)
    if found is None or int(found[1]) > WRITTEN_OUT:
        return symbol
    return any_name(*map(int, (found[1], found[5], found[6])))


def any_name(radix: int, size: int, lanes: int) -> str:
    return f"pass_{radix}_any_{size}_{lanes}"


def home(symbol: str) -> str:
    """The function whose module has this one: lengths that are powers of two have passes of both radices."""
    found = _ANY.fullmatch(symbol)
    if found is None or int(found[1]) not in TOGETHER:
        return symbol
    return any_name(TOGETHER[0], int(found[2]), int(found[3]))


def source(symbol: str) -> str | None:
    """The text of a pass."""
    if found := _ANY.fullmatch(symbol):
        radix, size, lanes = map(int, found.groups())
        return _AnyPass(TOGETHER if radix in TOGETHER else (radix,), size, lanes).text()
    found = _NAME.fullmatch(symbol)
    if found is None:
        return None
    kind = _PrimePass if int(found[1]) > WRITTEN_OUT else _Pass
    return kind(symbol, int(found[1]), found[2], found[3], found[4] == "some", int(found[5]), int(found[6])).text()


# Spilled registers cost their loops, which wait for memory, little.
family = Family("pass", source, llvm.BRIEFEST, any_kind, home)
