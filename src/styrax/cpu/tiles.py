"""Products of tiles by the matrix units of x86 processors (AMX), as LLVM IR compiled when a program first asks.

A tile is 16 rows of 64 bytes. A panel of 32 columns is computed in blocks of 32 rows: two by two tiles of sums stay in
the unit while the operands' tiles stream past them, `STEPS` at a time, so that the right operand's stay in the first
cache for all rows. What generated code calls::

    declare void @tiles_KIND(ptr a, i64 a_row, i64 a_step, i64 a_block, ptr b, ptr c, i64 c_row, i64 blocks,
                                    i64 steps) nounwind
        c = a · b for `blocks` blocks of rows and 32 columns. All strides are in bytes. A step is 64 bytes of the
        contracted dimension: a's rows lie `a_row` apart, its steps `a_step`, its blocks `a_block`. b's steps lie one
        after the other, 2048 bytes each: two tiles of 16 columns, whose rows have 4 bytes of the contracted
        dimension for each column. c's rows of 4-byte sums lie `c_row` apart.

    declare void @tiles_KIND_indirect(ptr a, ptr offsets, ptr b, ptr c, i64 c_row, i64 blocks, i64 lines, i64 a_line,
                                      i64 steps) nounwind
        The same for `lines` times `blocks` blocks. a's rows of 64 bytes lie one after the other, and those of step k
        begin with the row of number offsets[k], an i32. A line's lie `a_line` bytes after those of the line before, and
        its results behind them.

Kinds: `bf16` (sums in float32, subnormal numbers count as zero), and `ss`, `su`, `us`, `uu` (8-bit integers by their
signedness, sums in int32 that wrap around). Intel, Architecture Instruction Set Extensions, chapter 3.
"""

from __future__ import annotations

import ctypes
import sys

from . import kept_kernels, llvm

STEPS = 16  # of 2 KB: half of a first cache of 64 KB, two thirds of one of 48
INSTRUCTIONS = {"bf16": "tdpbf16ps", "ss": "tdpbssd", "su": "tdpbsud", "us": "tdpbusd", "uu": "tdpbuud"}
NEEDS = frozenset(("amx-tile", "amx-bf16", "amx-int8"))
_ARCH_PRCTL, _ASK, _TILE_DATA = 158, 0x1023, 18  # arch_prctl(ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA)

_granted: list[bool] = []
_libraries: dict[str, llvm.Library] = {}


def available() -> bool:
    """Whether the host has such units and the system lets this process use them."""
    if not _granted:
        _granted.append(sys.platform == "linux" and llvm.host().available >= NEEDS and _permitted())
    return _granted[0]


def _permitted() -> bool:
    return ctypes.CDLL(None).syscall(_ARCH_PRCTL, _ASK, _TILE_DATA) == 0


def source(kind: str, indirect: bool = False) -> str:
    """The kernel of a kind."""
    config = bytes([1, *[0] * 15, *[64, 0] * 8, *[0] * 16, *[16] * 8, *[0] * 8])
    words = ", ".join(f"i8 {byte}" for byte in config)
    names = ["ldtilecfg(ptr)", "tilerelease()", "tilezero(i8)", "tileloadd64(i8, ptr, i64)",
             "tilestored64(i8, ptr, i64)", f"{INSTRUCTIONS[kind]}(i8, i8, i8)"]
    return "\n".join([f"@config = internal constant [64 x i8] [{words}], align 64",
                      *[f"declare void @llvm.x86.{name}" for name in names],
                      _kernel(kind, INSTRUCTIONS[kind], indirect)])


def _kernel(kind: str, instruction: str, indirect: bool) -> str:
    name, left = f"tiles_{kind}", "ptr %a, i64 %a_row, i64 %a_step, i64 %a_block"
    strides, as_at, x_at = "", "mul i64 %first, %a_step", "  %x_at = mul i64 %k, %a_step"
    count, line, line_end, slice_, slice_end = "i64 %blocks", "", "", "slice", "slice_end"
    if indirect:
        name, left, as_at = f"{name}_indirect", "ptr %a, ptr %offsets", "add i64 0, 0"
        strides = "  %a_row = add i64 0, 64\n  %a_block = add i64 0, 2048"
        count = "i64 %blocks, i64 %lines, i64 %a_line"
        x_at, line, line_end, slice_, slice_end = _FIRST_ROW, _LINE, _LINE_END, "line", "line_end"
    quarters = [(0, "%c"), (1, "%cr"), (2, "%d"), (3, "%dr")]  # the tile of sums, where it lies
    zeros = "\n".join(f"  call void @llvm.x86.tilezero(i8 {t})" for t, _ in quarters)
    loads = "\n".join(f"  call void @llvm.x86.tileloadd64(i8 {t}, ptr {at}, i64 %c_row)" for t, at in quarters)
    stores = "\n".join(f"  call void @llvm.x86.tilestored64(i8 {t}, ptr {at}, i64 %c_row)" for t, at in quarters)
    products = "\n".join(f"  call void @llvm.x86.{instruction}(i8 {2 * i + j}, i8 {4 + i}, i8 {6 + j})"
                         for i in (0, 1) for j in (0, 1))
    return f"""
define void @{name}({left}, ptr %b, ptr %c0, i64 %c_row, {count}, i64 %steps) nounwind {{
entry:
{strides}
  call void @llvm.x86.ldtilecfg(ptr @config)
  %a_half = mul i64 %a_row, 16
  %c_half = mul i64 %c_row, 16
  %c_block = mul i64 %c_row, 32
  br label %slice
slice:
  %first = phi i64 [0, %entry], [%after, %slice_end]
  %left = sub i64 %steps, %first
  %few = icmp slt i64 %left, {STEPS}
  %count = select i1 %few, i64 %left, i64 {STEPS}
  %begun = icmp ne i64 %first, 0
  %as_at = {as_at}
  %as = getelementptr i8, ptr %a, i64 %as_at
  %bs_at = mul i64 %first, 2048
  %bs = getelementptr i8, ptr %b, i64 %bs_at
{line}  br label %block
block:
  %i = phi i64 [0, %{slice_}], [%i1, %block_end]
  %ai_at = mul i64 %i, %a_block
  %ai = getelementptr i8, ptr %{"al" if indirect else "as"}, i64 %ai_at
  %ci_at = mul i64 %i, %c_block
  %c = getelementptr i8, ptr %{"cl" if indirect else "c0"}, i64 %ci_at
  %cr = getelementptr i8, ptr %c, i64 64
  %d = getelementptr i8, ptr %c, i64 %c_half
  %dr = getelementptr i8, ptr %d, i64 64
  br i1 %begun, label %go_on, label %start
start:
{zeros}
  br label %step
go_on:
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
  call void @llvm.x86.tileloadd64(i8 4, ptr %x, i64 %a_row)
  call void @llvm.x86.tileloadd64(i8 6, ptr %r, i64 64)
  call void @llvm.x86.tileloadd64(i8 7, ptr %s, i64 64)
  call void @llvm.x86.tileloadd64(i8 5, ptr %y, i64 %a_row)
{products}
  %k1 = add nuw nsw i64 %k, 1
  %more = icmp slt i64 %k1, %count
  br i1 %more, label %step, label %block_end
block_end:
{stores}
  %i1 = add nuw nsw i64 %i, 1
  %rows = icmp slt i64 %i1, %blocks
  br i1 %rows, label %block, label %{slice_end}
{line_end}slice_end:
  %after = add nuw nsw i64 %first, {STEPS}
  %rest = icmp slt i64 %after, %steps
  br i1 %rest, label %slice, label %done
done:
  call void @llvm.x86.tilerelease()
  ret void
}}
"""


# what kernels of implicit products have more
_FIRST_ROW = """  %number = add i64 %first, %k
  %first_row.at = getelementptr i32, ptr %offsets, i64 %number
  %first_row = load i32, ptr %first_row.at, align 4
  %first_row64 = sext i32 %first_row to i64
  %x_at = mul i64 %first_row64, 64"""
_LINE = """  %c_line = mul i64 %c_block, %blocks
  br label %line
line:
  %l = phi i64 [0, %slice], [%l1, %line_end]
  %al = phi ptr [%as, %slice], [%al1, %line_end]
  %cl = phi ptr [%c0, %slice], [%cl1, %line_end]
"""
_LINE_END = """line_end:
  %l1 = add nuw nsw i64 %l, 1
  %al1 = getelementptr i8, ptr %al, i64 %a_line
  %cl1 = getelementptr i8, ptr %cl, i64 %c_line
  %lines_left = icmp slt i64 %l1, %lines
  br i1 %lines_left, label %line, label %slice_end
"""


def _resolve(symbol: str) -> int | None:
    module, _, name = symbol.partition("_")
    kind, _, indirect = name.partition("_")
    if module != "tiles" or kind not in INSTRUCTIONS or not available():
        return None
    if symbol not in _libraries:
        _libraries[symbol] = kept_kernels.load(source(kind, bool(indirect)), symbol, -1)
    return _libraries[symbol].address(symbol)


llvm.add_resolver(_resolve)
