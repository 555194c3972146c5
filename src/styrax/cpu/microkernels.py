"""Products of panels in vector registers (the microkernels of BLIS), as LLVM IR compiled when a program first asks.

A block of rows × columns of sums stays in registers while packed operands stream past it, `STEPS` steps at a time. What
generated code calls, for blocks of ROWS rows::

    declare void @panels_KIND_ROWS(ptr a, ptr b, ptr c, i64 c_row, i64 rows, i64 columns, i64 steps) nounwind
        c = a · b for `rows` rows and at most `Panels.columns` columns. A step is 16 words of 4 bytes of the contracted
        dimension. a is packed as blocks of ROWS rows: step after step, in each row after row, 16 words. b is packed
        step after step: 16 rows of a word for each column. c's rows of 4-byte sums lie `c_row` bytes apart.

Kinds: `f32` (a word is one element), `bf16` (two; sums in float32, subnormal numbers count as zero) and `i16` (two;
sums in int32 that wrap around). Van Zee and van de Geijn, BLIS: A Framework for Rapidly Instantiating BLAS
Functionality, ACM TOMS 41 (2015).
"""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING

from . import llvm
from .on_demand import Family

if TYPE_CHECKING:  # programs from the disk need no compiler
    from ..compile.program import Panels

STEPS = 16  # of b: 32 KB of 32 columns, which stay in the second cache with the blocks of a


def kernels() -> dict[str, Panels]:
    """The kinds that the host has, with the sums that its registers hold."""
    from ..compile.program import Panels

    return {kind: Panels(*sums) for kind, sums in _kinds().items()}


def _kinds() -> dict[str, tuple[int, int]]:
    """The same as plain numbers: rows, and columns."""
    host = llvm.host()
    if host.vector_bytes == 64:
        rows, vectors = 14, 2  # 28 of 32 registers
    elif platform.machine() in ("aarch64", "arm64"):
        rows, vectors = 6, 4  # 24 of 32
    elif host.available >= {"avx2", "fma"}:
        rows, vectors = 6, 2  # 12 of 16
    else:
        return {}
    shape = rows, vectors * host.vector_bytes // 4
    kinds = ["f32"]
    if host.vector_bytes == 64 and "avx512bf16" in host.available:
        kinds.append("bf16")
    if host.vector_bytes == 64 and "avx512bw" in host.available or host.vector_bytes == 32:
        kinds.append("i16")
    return dict.fromkeys(kinds, shape)


def source(kind: str, rows: int, columns: int, vector_bytes: int) -> str:
    """The kernel of a kind for blocks of so many rows."""
    return _Kernel(kind, rows, columns, vector_bytes // 4).text()


class _Kernel:
    """The text of a kernel, and what its lines have in common."""

    def __init__(self, kind: str, rows: int, columns: int, lanes: int):
        self.kind, self.rows, self.columns, self.lanes = kind, rows, columns, lanes
        self.vectors = columns // lanes
        self.sum = "i32" if kind == "i16" else "float"
        self.word = "float" if kind == "f32" else "i32"
        self.sums = [f"%s{r}.{v}" for r in range(rows) for v in range(self.vectors)]

    def text(self) -> str:
        n, vector = self.lanes, f"<{self.lanes} x {self.sum}>"
        masked = f"v{n}{'i32' if self.sum == 'i32' else 'f32'}.p0"
        declared = [f"declare {vector} @llvm.masked.load.{masked}(ptr, i32, <{n} x i1>, {vector})",
                    f"declare void @llvm.masked.store.{masked}({vector}, ptr, i32, <{n} x i1>)", *self.declared()]
        ramp = ", ".join(f"i32 {i}" for i in range(n))
        counts = f"<{n} x i32>"
        masks = "\n".join(f"  %least{v} = sub i32 %columns32, {v * n}\n"
                          f"  %some{v} = insertelement {counts} poison, i32 %least{v}, i64 0\n"
                          f"  %all{v} = shufflevector {counts} %some{v}, {counts} poison, {counts} zeroinitializer\n"
                          f"  %mask{v} = icmp slt {counts} <{ramp}>, %all{v}" for v in range(self.vectors))
        outer = "\n".join(f"  {s}.p = phi {vector} [zeroinitializer, %block], [{s}.n, %step_end]" for s in self.sums)
        inner = "\n".join(f"  {s} = phi {vector} [{s}.p, %step], [{s}.n, %words]" for s in self.sums)
        return "\n".join(declared) + f"""

define void @panels_{self.kind}_{self.rows}(ptr %a, ptr %b, ptr %c0, i64 %c_row, i64 %rows, i64 %columns,
                                    i64 %steps) nounwind {{
entry:
  %columns32 = trunc i64 %columns to i32
{masks}
  %sums = alloca [{self.rows * self.columns} x {self.sum}], align 64
  %a_block = mul i64 %steps, {64 * self.rows}
  %c_block = mul i64 %c_row, {self.rows}
  br label %slice
slice:
  %first = phi i64 [0, %entry], [%after, %slice_end]
  %left = sub i64 %steps, %first
  %few = icmp slt i64 %left, {STEPS}
  %count = select i1 %few, i64 %left, i64 {STEPS}
  %begun = icmp ne i64 %first, 0
  %as_at = mul i64 %first, {64 * self.rows}
  %as = getelementptr i8, ptr %a, i64 %as_at
  %bs_at = mul i64 %first, {64 * self.columns}
  %bs = getelementptr i8, ptr %b, i64 %bs_at
  br label %block
block:
  %row = phi i64 [0, %slice], [%row1, %block_end]
  %ai = phi ptr [%as, %slice], [%ai1, %block_end]
  %c = phi ptr [%c0, %slice], [%c1, %block_end]
  %left_rows = sub i64 %rows, %row
  %fewer = icmp slt i64 %left_rows, {self.rows}
  %here = select i1 %fewer, i64 %left_rows, i64 {self.rows}
  br label %step
step:
  %k = phi i64 [0, %block], [%k1, %step_end]
  %x = phi ptr [%ai, %block], [%x1, %step_end]
  %y = phi ptr [%bs, %block], [%y.n, %step_end]
{outer}
  br label %words
words:
  %w = phi i64 [0, %step], [%w1, %words]
  %y.w = phi ptr [%y, %step], [%y.n, %words]
{inner}
  %z = getelementptr i8, ptr %x, i64 %w
{self.word_products()}
  %w1 = add nuw nsw i64 %w, 4
  %inside = icmp ult i64 %w1, 64
  br i1 %inside, label %words, label %step_end
step_end:
  %x1 = getelementptr i8, ptr %x, i64 {64 * self.rows}
  %k1 = add nuw nsw i64 %k, 1
  %more = icmp slt i64 %k1, %count
  br i1 %more, label %step, label %keep
keep:
{self.keep(vector)}
  br label %result
result:
  %r = phi i64 [0, %keep], [%r1, %result_end]
  %t = phi ptr [%sums, %keep], [%t1, %result_end]
  %d = phi ptr [%c, %keep], [%d1, %result_end]
  br i1 %begun, label %add, label %put
add:
{self.row("add", vector, masked)}
  br label %result_end
put:
{self.row("put", vector, masked)}
  br label %result_end
result_end:
  %r1 = add nuw nsw i64 %r, 1
  %t1 = getelementptr i8, ptr %t, i64 {4 * self.columns}
  %d1 = getelementptr i8, ptr %d, i64 %c_row
  %rows_left = icmp slt i64 %r1, %here
  br i1 %rows_left, label %result, label %block_end
block_end:
  %row1 = add nuw nsw i64 %row, {self.rows}
  %ai1 = getelementptr i8, ptr %ai, i64 %a_block
  %c1 = getelementptr i8, ptr %c, i64 %c_block
  %again = icmp slt i64 %row1, %rows
  br i1 %again, label %block, label %slice_end
slice_end:
  %after = add nuw nsw i64 %first, {STEPS}
  %rest = icmp slt i64 %after, %steps
  br i1 %rest, label %slice, label %done
done:
  ret void
}}
"""

    def keep(self, vector: str) -> str:
        """Puts the sums of a slice where rows of them can be counted."""
        lines = []
        for i, s in enumerate(self.sums):
            lines += [f"  {s}.at = getelementptr i8, ptr %sums, i64 {4 * i * self.lanes}",
                      f"  store {vector} {s}.n, ptr {s}.at, align 64"]
        return "\n".join(lines)

    def row(self, name: str, vector: str, masked: str) -> str:
        """Writes a row of the sums, or adds it to what the slices before have left."""
        lines = []
        for v in range(self.vectors):
            p, mask = f"%{name}{v}", f"<{self.lanes} x i1> %mask{v}"
            lines += [f"  {p}.t = getelementptr i8, ptr %t, i64 {4 * v * self.lanes}",
                      f"  {p}.d = getelementptr i8, ptr %d, i64 {4 * v * self.lanes}",
                      f"  {p}.new = load {vector}, ptr {p}.t, align 64"]
            if name == "add":
                lines += [f"  {p}.old = call {vector} @llvm.masked.load.{masked}(ptr {p}.d, i32 4, {mask}, "
                          f"{vector} zeroinitializer)",
                          f"  {p}.sum = {'add' if self.sum == 'i32' else 'fadd'} {vector} {p}.old, {p}.new"]
            value = f"{p}.sum" if name == "add" else f"{p}.new"
            lines += [f"  call void @llvm.masked.store.{masked}({vector} {value}, ptr {p}.d, i32 4, {mask})"]
        return "\n".join(lines)

    def word_products(self) -> str:
        """A word of the contracted dimension: the outer product of a column of a and a row of b."""
        words, lines = f"<{self.lanes} x {self.word}>", []
        for v in range(self.vectors):
            lines += [f"  %y{v}.at = getelementptr i8, ptr %y.w, i64 {4 * v * self.lanes}",
                      f"  %y{v} = load {words}, ptr %y{v}.at, align 64"]
        lines += [f"  %y.n = getelementptr i8, ptr %y.w, i64 {4 * self.columns}"]
        for r in range(self.rows):
            lines += [f"  %z{r}.at = getelementptr i8, ptr %z, i64 {64 * r}",
                      f"  %z{r}.w = load {self.word}, ptr %z{r}.at, align 4",
                      f"  %z{r}.i = insertelement {words} poison, {self.word} %z{r}.w, i64 0",
                      f"  %z{r} = shufflevector {words} %z{r}.i, {words} poison, <{self.lanes} x i32> zeroinitializer"]
            for v in range(self.vectors):
                lines += self.multiply(f"%s{r}.{v}.n", f"%s{r}.{v}", f"%z{r}", f"%y{v}")
        return "\n".join(lines)

    def declared(self) -> list[str]:
        n = self.lanes
        return {"f32": [f"declare <{n} x float> @llvm.fma.v{n}f32(<{n} x float>, <{n} x float>, <{n} x float>)"],
                "bf16": [f"declare <16 x float> {_BF16}(<16 x float>, <32 x bfloat>, <32 x bfloat>)"],
                "i16": [f"declare <{n} x i32> {_I16[n]}(<{2 * n} x i16>, <{2 * n} x i16>)"] if n in _I16 else []
                }[self.kind]

    def multiply(self, out: str, total: str, x: str, y: str) -> list[str]:
        n = self.lanes
        if self.kind == "f32":
            vector = f"<{n} x float>"
            return [f"  {out} = call {vector} @llvm.fma.v{n}f32({vector} {x}, {vector} {y}, {vector} {total})"]
        pairs = f"<{2 * n} x {'bfloat' if self.kind == 'bf16' else 'i16'}>"
        lines = [f"  {out}.{name} = bitcast <{n} x i32> {value} to {pairs}" for name, value in (("x", x), ("y", y))]
        if self.kind == "bf16":
            operands = f"<16 x float> {total}, {pairs} {out}.x, {pairs} {out}.y"
            return [*lines, f"  {out} = call <16 x float> {_BF16}({operands})"]
        return [*lines, f"  {out}.m = call <{n} x i32> {_I16[n]}({pairs} {out}.x, {pairs} {out}.y)",
                f"  {out} = add <{n} x i32> {total}, {out}.m"]


_BF16 = "@llvm.x86.avx512bf16.dpbf16ps.512"
_I16 = {16: "@llvm.x86.avx512.pmaddw.d.512", 8: "@llvm.x86.avx2.pmadd.wd"}


def _source_of(symbol: str) -> str | None:
    kind, _, rows = symbol.removeprefix("panels_").partition("_")
    known = _kinds().get(kind)
    return known and source(kind, int(rows), known[1], llvm.host().vector_bytes)


family = Family("panels", _source_of, tiered=True)
