"""Products of tiles by the matrix units of x86 processors (AMX), as LLVM IR compiled when a program first asks.

A tile is 16 rows of 64 bytes. A panel of 32 columns is computed in blocks of 32 rows: two by two tiles of sums stay in
the unit while the operands' tiles stream past them, `STEPS` at a time, so that the right operand's stay in the first
cache for all rows. What generated code calls::

    declare void @tiles_KIND(ptr a, i64 a_row, i64 a_step, i64 a_block, i64 last, i64 rest, ptr b, ptr c, i64 c_row,
                             i64 rows, i64 columns, i64 steps) nounwind
        c = a · b for `rows` rows and `columns` columns. All strides are in bytes. A step is 64 bytes of the contracted
        dimension: a's rows lie `a_row` apart, its steps `a_step`, its blocks `a_block`. No block begins behind row
        `last`: one that would begins there, and computes some rows again. Behind the steps come `rest` bytes, less than
        a step, in words of 4. b is panel after panel, each its steps one after the other, 2048 bytes each: two tiles of
        16 columns, whose rows have 4 bytes of the contracted dimension for each column. c's rows of 4-byte sums lie
        `c_row` apart.

    declare void @tiles_KIND_indirect(ptr a, ptr offsets, ptr b, ptr c, i64 c_row, i64 rows, i64 lines, i64 a_line,
                                      i64 columns, i64 steps) nounwind
        The same for `lines` times `rows` rows. a's rows of 64 bytes lie one after the other, and those of step k begin
        with the row of number offsets[k], an i32. A line's lie `a_line` bytes after those of the line before, and its
        results behind them. Of the last block's 32 rows all are read.

There are at most `BLOCKS` blocks: sums are kept here until they are whole. With one of `NARROW` behind KIND c has
numbers of that kind, each rounded once or wrapped around.

Kinds: `bf16` (sums in float32, subnormal numbers count as zero), and `ss`, `su`, `us`, `uu` (8-bit integers by their
signedness, sums in int32 that wrap around). Intel, Architecture Instruction Set Extensions, chapter 3.
"""

from __future__ import annotations

import ctypes
import sys

from . import llvm
from .on_demand import Family

STEPS = 16  # of 2 KB: half of a first cache of 64 KB, two thirds of one of 48
BLOCKS = 16  # of rows that a call may have
EDGE = 32  # rows and columns of a block
ASKED = 512  # bytes of the next steps of b that a step asks for, until the blocks have asked for a slice
INSTRUCTIONS = {"bf16": "tdpbf16ps", "ss": "tdpbssd", "su": "tdpbsud", "us": "tdpbusd", "uu": "tdpbuud"}
NARROW = {"bf16": ("bfloat", 2), "i16": ("i16", 2), "i8": ("i8", 1)}
NEEDS = frozenset(("amx-tile", "amx-bf16", "amx-int8"))
_ARCH_PRCTL, _ASK, _TILE_DATA = 158, 0x1023, 18  # arch_prctl(ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA)

_granted: list[bool] = []


def available() -> bool:
    """Whether the host has such units and the system lets this process use them."""
    if not _granted:
        _granted.append(sys.platform == "linux" and llvm.host().available >= NEEDS and _permitted())
    return _granted[0]


def _permitted() -> bool:
    return ctypes.CDLL(None).syscall(_ARCH_PRCTL, _ASK, _TILE_DATA) == 0


def source(kind: str, result: str = "", indirect: bool = False) -> str:
    """The kernel of a kind. `result`: what becomes of sums, one of `NARROW`."""
    config = bytes([1, *[0] * 15, *[64, 0] * 8, *[0] * 16, *[16] * 8, *[0] * 8])
    words = ", ".join(f"i8 {byte}" for byte in config)
    names = ["ldtilecfg(ptr)", "tilerelease()", "tilezero(i8)", "tileloadd64(i8, ptr, i64)",
             "tilestored64(i8, ptr, i64)", f"{INSTRUCTIONS[kind]}(i8, i8, i8)"]
    return "\n".join([f"@config = internal constant [64 x i8] [{words}], align 64",
                      *[f"declare void @llvm.x86.{name}" for name in names],
                      "declare i64 @llvm.umax.i64(i64, i64)", "declare i64 @llvm.smin.i64(i64, i64)",
                      "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)",
                      "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
                      _kernel(kind, result, indirect)])


def _kernel(kind: str, result: str, indirect: bool) -> str:
    name = f"tiles_{kind}{result and f'_{result}'}"
    left = "ptr %a, i64 %a_row, i64 %a_step, i64 %a_block, i64 %last, i64 %rest"
    more, as_at, x_at, strides, config = "", "mul i64 %first, %a_step", "  %x_at = mul i64 %k, %a_step", "", _END
    size = NARROW[result][1] if result else 4
    outer, line, line_end, end, of = "part", "", "", "slice_end", ("as", "c0", "kept")
    if indirect:
        name, left, more = f"{name}_indirect", "ptr %a, ptr %offsets", "i64 %lines, i64 %a_line, "
        as_at, x_at, strides = "add i64 0, 0", _FIRST_ROW, _ROWS
        config = "  %end.config = getelementptr i8, ptr @config, i64 0\n"
        outer, line, line_end, end, of = "line", _LINE, _LINE_END, "line_end", ("al", "cl", "kl")
    quarters = [(i, 64 * (i % 2) + 2048 * (i // 2)) for i in range(4)]  # the tile of sums, where it lies in a block
    kept, given = ("\n".join(f"  %{name}{t} = getelementptr i8, ptr %{base}, i64 {place}" for t, place in quarters)
                   for name, base in (("p", "kb"), ("q", "whose")))
    zeros = "\n".join(f"  call void @llvm.x86.tilezero(i8 {t})" for t, _ in quarters)
    loads = "\n".join(f"  call void @llvm.x86.tileloadd64(i8 {t}, ptr %p{t}, i64 128)" for t, _ in quarters)
    stores = "\n".join(f"  call void @llvm.x86.tilestored64(i8 {t}, ptr %q{t}, i64 128)" for t, _ in quarters)
    products = "\n".join(f"  call void @llvm.x86.{INSTRUCTIONS[kind]}(i8 {2 * i + j}, i8 {4 + i}, i8 {6 + j})"
                         for i in (0, 1) for j in (0, 1))
    asks = "\n".join(f"  %ask{at} = getelementptr i8, ptr %ask, i64 {at}\n"
                     f"  call void @llvm.prefetch.p0(ptr %ask{at}, i32 0, i32 2, i32 1)" for at in range(0, ASKED, 64))
    return _given(kind, result) + f"""
define void @{name}({left}, ptr %b, ptr %c_first, i64 %c_row, i64 %rows, {more}i64 %columns, i64 %steps) nounwind {{
entry:
  %sums = alloca [{EDGE * EDGE} x i32], align 64
  %kept = alloca [{EDGE * EDGE * BLOCKS} x i32], align 64
{strides}  %a_half = mul i64 %a_row, 16
  %a_each = ashr i64 %a_block, 5
  %ends = icmp ne i64 %rest, 0
{config}  %ends64 = zext i1 %ends to i64
  %b_steps = add i64 %steps, %ends64
  %b_panel = mul i64 %b_steps, 2048
  %steps.up = add i64 %steps, {STEPS - 1}
  %slices.full = udiv i64 %steps.up, {STEPS}
  %slices = call i64 @llvm.umax.i64(i64 %slices.full, i64 1)
  %equal.sum = add i64 %steps, %slices
  %equal.up = sub i64 %equal.sum, 1
  %most = udiv i64 %equal.up, %slices
  br label %panel
panel:
  %column = phi i64 [0, %entry], [%column1, %panel_end]
  %bp = phi ptr [%b, %entry], [%bp1, %panel_end]
  %c0 = phi ptr [%c_first, %entry], [%c1, %panel_end]
  %columns_left = sub i64 %columns, %column
  call void @llvm.x86.ldtilecfg(ptr @config)
  br label %slice
slice:
  %first = phi i64 [0, %panel], [%after, %slice_end]
  %at_end = icmp eq i64 %first, %steps
  br i1 %at_end, label %end, label %part
end:
  call void @llvm.x86.ldtilecfg(ptr %end.config)
  br label %part
part:
  %left = sub i64 %steps, %first
  %few = icmp slt i64 %left, %most
  %some = select i1 %few, i64 %left, i64 %most
  %count = select i1 %at_end, i64 1, i64 %some
  %begun = icmp ne i64 %first, 0
  %after = add nuw nsw i64 %first, %count
  %more_steps = icmp slt i64 %after, %b_steps
  %as_at = {as_at}
  %as = getelementptr i8, ptr %a, i64 %as_at
  %bs_at = mul i64 %first, 2048
  %bs = getelementptr i8, ptr %bp, i64 %bs_at
  %slice_bytes = mul i64 %count, 2048
  %next = getelementptr i8, ptr %bs, i64 %slice_bytes
  %last_ask = sub i64 %slice_bytes, {ASKED}
  %asks = mul i64 %count, {ASKED // EDGE}
{line}  br label %block
block:
  %i = phi i64 [0, %{outer}], [%i1, %block_end]
  %kb = phi ptr [%{of[2]}, %{outer}], [%kept1, %block_end]
  %behind = icmp sgt i64 %i, %last
  %row = select i1 %behind, i64 %last, i64 %i
  %ai_at = mul i64 %row, %a_each
  %ai = getelementptr i8, ptr %{of[0]}, i64 %ai_at
  %whose = select i1 %more_steps, ptr %kb, ptr %sums
  %asked = mul i64 %i, %asks
  br i1 %begun, label %go_on, label %start
start:
{zeros}
  br label %step
go_on:
{kept}
{loads}
  br label %step
step:
  %k = phi i64 [0, %start], [0, %go_on], [%k1, %step]
{x_at}
  %x = getelementptr i8, ptr %ai, i64 %x_at
  %y = getelementptr i8, ptr %x, i64 %a_half
  %r_at = mul i64 %k, 2048
  %r = getelementptr i8, ptr %bs, i64 %r_at
  %s = getelementptr i8, ptr %r, i64 1024
  %asked.k = mul i64 %k, {ASKED}
  %asked.s = add i64 %asked, %asked.k
  %ask.at = call i64 @llvm.smin.i64(i64 %asked.s, i64 %last_ask)
  %ask = getelementptr i8, ptr %next, i64 %ask.at
{asks}
  call void @llvm.x86.tileloadd64(i8 4, ptr %x, i64 %a_row)
  call void @llvm.x86.tileloadd64(i8 6, ptr %r, i64 64)
  call void @llvm.x86.tileloadd64(i8 7, ptr %s, i64 64)
  call void @llvm.x86.tileloadd64(i8 5, ptr %y, i64 %a_row)
{products}
  %k1 = add nuw nsw i64 %k, 1
  %more = icmp slt i64 %k1, %count
  br i1 %more, label %step, label %keep
keep:
{given}
{stores}
  br i1 %more_steps, label %block_end, label %give
give:
  %left_rows = sub i64 %rows, %row
  %fewer = icmp slt i64 %left_rows, {EDGE}
  %here = select i1 %fewer, i64 %left_rows, i64 {EDGE}
  %c_at = mul i64 %row, %c_row
  %c = getelementptr i8, ptr %{of[1]}, i64 %c_at
  call void @give(ptr %sums, ptr %c, i64 %c_row, i64 %here, i64 %columns_left)
  br label %block_end
block_end:
  %i1 = add nuw nsw i64 %i, {EDGE}
  %kept1 = getelementptr i8, ptr %kb, i64 {4 * EDGE * EDGE}
  %again = icmp slt i64 %i1, %rows
  br i1 %again, label %block, label %{end}
{line_end}slice_end:
  br i1 %more_steps, label %slice, label %panel_end
panel_end:
  %column1 = add nuw nsw i64 %column, {EDGE}
  %bp1 = getelementptr i8, ptr %bp, i64 %b_panel
  %c1 = getelementptr i8, ptr %c0, i64 {EDGE * size}
  %panels_left = icmp slt i64 %column1, %columns
  br i1 %panels_left, label %panel, label %done
done:
  call void @llvm.x86.tilerelease()
  ret void
}}
"""


def _given(kind: str, result: str) -> str:
    """A function that writes a block's rows where they belong. Stores under a mask take many cycles on some processors:
    full rows do without."""
    sums = "<16 x float>" if kind == "bf16" else "<16 x i32>"
    element, size = NARROW[result] if result else (sums[6:-1], 4)
    small, suffix = f"<16 x {element}>", {"float": "f32", "bfloat": "bf16"}.get(element, element)
    narrowing = "fptrunc" if kind == "bf16" else "trunc"
    store = f"@llvm.masked.store.v16{suffix}.p0"

    def rows(loop: str, before: str, masked: bool) -> str:
        lines = []
        for v in (0, 1):
            value, to = f"%{loop}.s{v}", f"%{loop}.o{v}"
            lines += [f"  {value}.at = getelementptr i8, ptr %{loop}.t, i64 {64 * v}",
                      f"  {value} = load {sums}, ptr {value}.at, align 64",
                      f"  {to} = getelementptr i8, ptr %{loop}.o, i64 {16 * size * v}"]
            if result:
                lines.append(f"  {value}.n = {narrowing} {sums} {value} to {small}")
                value += ".n"
            lines.append(f"  call void {store}({small} {value}, ptr {to}, i32 {size}, <16 x i1> %mask{v})" if masked
                         else f"  store {small} {value}, ptr {to}, align {size}")
        return "\n".join([
            f"{loop}:", f"  %{loop}.r = phi i64 [0, %{before}], [%{loop}.r.n, %{loop}]",
            f"  %{loop}.t = phi ptr [%sums, %{before}], [%{loop}.t.n, %{loop}]",
            f"  %{loop}.o = phi ptr [%c, %{before}], [%{loop}.o.n, %{loop}]", *lines,
            f"  %{loop}.r.n = add nuw nsw i64 %{loop}.r, 1",
            f"  %{loop}.t.n = getelementptr i8, ptr %{loop}.t, i64 {4 * EDGE}",
            f"  %{loop}.o.n = getelementptr i8, ptr %{loop}.o, i64 %c_row",
            f"  %{loop}.more = icmp slt i64 %{loop}.r.n, %rows",
            f"  br i1 %{loop}.more, label %{loop}, label %done"])

    ramp = ", ".join(f"i32 {i}" for i in range(16))
    masks = "\n".join(f"  %least{v} = sub i32 %columns32, {16 * v}\n"
                      f"  %some{v} = insertelement <16 x i32> poison, i32 %least{v}, i64 0\n"
                      f"  %all{v} = shufflevector <16 x i32> %some{v}, <16 x i32> poison, <16 x i32> zeroinitializer\n"
                      f"  %mask{v} = icmp slt <16 x i32> <{ramp}>, %all{v}" for v in (0, 1))
    return f"""
declare void {store}({small}, ptr, i32, <16 x i1>)

define internal void @give(ptr %sums, ptr %c, i64 %c_row, i64 %rows, i64 %columns) nounwind {{
entry:
  %full = icmp sge i64 %columns, {EDGE}
  br i1 %full, label %whole, label %masks
masks:
  %columns32 = trunc i64 %columns to i32
{masks}
  br label %part
{rows("whole", "entry", False)}
{rows("part", "masks", True)}
done:
  ret void
}}
"""


# tiles of the terms behind the last step: of fewer bytes on the left, of fewer rows on the right
_END = """  %end.config = alloca [64 x i8], align 64
  call void @llvm.memcpy.p0.p0.i64(ptr align 64 %end.config, ptr align 64 @config, i64 64, i1 false)
  %rest8 = trunc i64 %rest to i8
  %words8 = lshr i8 %rest8, 2
""" + "".join(f"""  %end.{at} = getelementptr i8, ptr %end.config, i64 {at}
  store i8 %{value}, ptr %end.{at}
""" for at, value in ((24, "rest8"), (26, "rest8"), (54, "words8"), (55, "words8")))
# what kernels of implicit products have more
_ROWS = """  %rest = add i64 0, 0
  %a_row = add i64 0, 64
  %a_block = add i64 0, 2048
  %last = add i64 %rows, 0
  %c_line = mul i64 %c_row, %rows
"""
_FIRST_ROW = """  %number = add i64 %first, %k
  %first_row.at = getelementptr i32, ptr %offsets, i64 %number
  %first_row = load i32, ptr %first_row.at, align 4
  %first_row64 = sext i32 %first_row to i64
  %x_at = mul i64 %first_row64, 64"""
_LINE = """  br label %line
line:
  %l = phi i64 [0, %part], [%l1, %line_end]
  %al = phi ptr [%as, %part], [%al1, %line_end]
  %cl = phi ptr [%c0, %part], [%cl1, %line_end]
  %kl = phi ptr [%kept, %part], [%kept1, %line_end]
"""
_LINE_END = """line_end:
  %l1 = add nuw nsw i64 %l, 1
  %al1 = getelementptr i8, ptr %al, i64 %a_line
  %cl1 = getelementptr i8, ptr %cl, i64 %c_line
  %lines_left = icmp slt i64 %l1, %lines
  br i1 %lines_left, label %line, label %slice_end
"""


def _source_of(symbol: str) -> str | None:
    kind, *names = symbol.removeprefix("tiles_").split("_")
    if kind not in INSTRUCTIONS or not available():
        return None
    return source(kind, next((name for name in names if name in NARROW), ""), "indirect" in names)


family = Family("tiles", _source_of)
