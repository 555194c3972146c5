"""The instructions of matrix units as functions of LLVM IR on tiles in memory, for hosts without such units.

Intel, Architecture Instruction Set Extensions, chapter 3: LDTILECFG, TILELOADD, TILESTORED, TILEZERO, TDPBF16PS and
TDPB{SS,SU,US,UU}D. Rows and bytes are those of the configuration; sums of bfloat16 are rounded after each product.
"""

from __future__ import annotations

import re

from styrax.cpu import tiles

ROWS = """define internal void @emulated_{name}(ptr %tiles, i8 %t, ptr %p, i64 %stride) nounwind {{
entry:
  %n = zext i8 %t to i64
  %at = mul i64 %n, 1024
  %tile = getelementptr i8, ptr %tiles, i64 %at
  %config = getelementptr i8, ptr %tiles, i64 8192
  %rows.at = getelementptr i8, ptr %config, i64 48
  %rows.t = getelementptr i8, ptr %rows.at, i64 %n
  %rows8 = load i8, ptr %rows.t
  %rows = zext i8 %rows8 to i64
  %bytes.at = getelementptr i8, ptr %config, i64 16
  %bytes.t = getelementptr i16, ptr %bytes.at, i64 %n
  %bytes16 = load i16, ptr %bytes.t
  %bytes32 = zext i16 %bytes16 to i32
  %words = lshr i32 %bytes32, 2
  %words.0 = insertelement <16 x i32> poison, i32 %words, i64 0
  %words.v = shufflevector <16 x i32> %words.0, <16 x i32> poison, <16 x i32> zeroinitializer
  %mask = icmp slt <16 x i32> <{ramp}>, %words.v
  br label %rows_begin
rows_begin:
  %r = phi i64 [0, %entry], [%r1, %rows_begin]
  %far.at = mul i64 %r, %stride
  %far = getelementptr i8, ptr %p, i64 %far.at
  %near.at = mul i64 %r, 64
  %near = getelementptr i8, ptr %tile, i64 %near.at
{body}
  %r1 = add i64 %r, 1
  %more = icmp slt i64 %r1, 16
  br i1 %more, label %rows_begin, label %done
done:
  ret void
}}
"""
LOAD = """  %in = icmp slt i64 %r, %rows
  %in.0 = insertelement <16 x i1> poison, i1 %in, i64 0
  %in.v = shufflevector <16 x i1> %in.0, <16 x i1> poison, <16 x i32> zeroinitializer
  %both = and <16 x i1> %in.v, %mask
  %x = call <16 x i32> @llvm.masked.load.v16i32.p0(ptr %far, i32 1, <16 x i1> %both, <16 x i32> zeroinitializer)
  store <16 x i32> %x, ptr %near, align 64"""
STORE = """  %x = load <16 x i32>, ptr %near, align 64
  store <16 x i32> %x, ptr %far, align 1"""
PRODUCT = """define internal void @emulated_{name}(ptr %tiles, i8 %c, i8 %a, i8 %b) nounwind {{
entry:
  %cn = zext i8 %c to i64
  %an = zext i8 %a to i64
  %bn = zext i8 %b to i64
  %c.at = mul i64 %cn, 1024
  %a.at = mul i64 %an, 1024
  %b.at = mul i64 %bn, 1024
  %ct = getelementptr i8, ptr %tiles, i64 %c.at
  %at = getelementptr i8, ptr %tiles, i64 %a.at
  %bt = getelementptr i8, ptr %tiles, i64 %b.at
  br label %rows
rows:
  %r = phi i64 [0, %entry], [%r1, %rows_end]
  %row.at = mul i64 %r, 64
  %cr = getelementptr i8, ptr %ct, i64 %row.at
  %ar = getelementptr i8, ptr %at, i64 %row.at
  %first = load <16 x {sum}>, ptr %cr, align 64
  br label %words
words:
  %k = phi i64 [0, %rows], [%k1, %words]
  %s = phi <16 x {sum}> [%first, %rows], [%s{parts}, %words]
  %aw = getelementptr i32, ptr %ar, i64 %k
  %word = load i32, ptr %aw, align 4
  %words.0 = insertelement <16 x i32> poison, i32 %word, i64 0
  %x = shufflevector <16 x i32> %words.0, <16 x i32> poison, <16 x i32> zeroinitializer
  %br.at = mul i64 %k, 64
  %br = getelementptr i8, ptr %bt, i64 %br.at
  %y = load <16 x i32>, ptr %br, align 64
{body}
  %k1 = add i64 %k, 1
  %more = icmp slt i64 %k1, 16
  br i1 %more, label %words, label %rows_end
rows_end:
  store <16 x {sum}> %s{parts}, ptr %cr, align 64
  %r1 = add i64 %r, 1
  %again = icmp slt i64 %r1, 16
  br i1 %again, label %rows, label %done
done:
  ret void
}}
"""
ZERO = """define internal void @emulated_tilezero(ptr %tiles, i8 %t) nounwind {
  %n = zext i8 %t to i64
  %at = mul i64 %n, 1024
  %tile = getelementptr i8, ptr %tiles, i64 %at
  store [256 x i32] zeroinitializer, ptr %tile, align 64
  ret void
}
define internal void @emulated_ldtilecfg(ptr %tiles, ptr %config) nounwind {
  %at = getelementptr i8, ptr %tiles, i64 8192
  %x = load <64 x i8>, ptr %config, align 1
  store <64 x i8> %x, ptr %at, align 1
  store [2048 x i32] zeroinitializer, ptr %tiles, align 64
  ret void
}
define internal void @emulated_tilerelease(ptr %tiles) nounwind {
  ret void
}
"""
ROUNDED = """define internal <16 x i16> @rounded(<16 x float> %x) nounwind {
  %b = bitcast <16 x float> %x to <16 x i32>
  %s = lshr <16 x i32> %b, splat (i32 16)
  %l = and <16 x i32> %s, splat (i32 1)
  %r = add <16 x i32> %l, splat (i32 32767)
  %t = add <16 x i32> %b, %r
  %u = lshr <16 x i32> %t, splat (i32 16)
  %v = trunc <16 x i32> %u to <16 x i16>
  ret <16 x i16> %v
}
"""


RAMP = ", ".join(f"i32 {i}" for i in range(16))


def product(kind: str) -> str:
    """The instruction that adds the products of the parts of words."""
    lines = []
    if kind == "bf16":
        for j, part in enumerate(("shl <16 x i32> %{v}, splat (i32 16)", "and <16 x i32> %{v}, splat (i32 -65536)")):
            for v in "xy":
                lines += [f"  %{v}.b{j} = {part.format(v=v)}",
                          f"  %{v}{j} = bitcast <16 x i32> %{v}.b{j} to <16 x float>"]
            lines += [f"  %m{j} = fmul <16 x float> %x{j}, %y{j}",
                      f"  %s{j + 1} = fadd <16 x float> %s{j or ''}, %m{j}"]
        return PRODUCT.format(name=tiles.INSTRUCTIONS[kind], sum="float", parts=2, body="\n".join(lines))
    for j in range(4):
        for v, signed in zip("xy", kind, strict=True):
            lines += [f"  %{v}.h{j} = shl <16 x i32> %{v}, splat (i32 {24 - 8 * j})",
                      f"  %{v}{j} = {'ashr' if signed == 's' else 'lshr'} <16 x i32> %{v}.h{j}, splat (i32 24)"]
        lines += [f"  %m{j} = mul <16 x i32> %x{j}, %y{j}", f"  %s{j + 1} = add <16 x i32> %s{j or ''}, %m{j}"]
    return PRODUCT.format(name=tiles.INSTRUCTIONS[kind], sum="i32", parts=4, body="\n".join(lines))


def emulated(text: str, kind: str) -> str:
    """The text of a kernel without the instructions."""
    text = re.sub(r"declare void @llvm\.x86\.\S+\(.*\)\n", "", text)
    text = text.replace("@llvm.x86.tilerelease()", "@emulated_tilerelease(ptr %tiles)")
    text = text.replace("entry:\n  %sums", "entry:\n  %tiles = alloca [2064 x i32], align 64\n  %sums")
    text = re.sub(r"@llvm\.x86\.(\w+)\(", r"@emulated_\1(ptr %tiles, ", text)
    # what hosts without AVX-512-BF16 round by a function of the C library
    text = re.sub(r"fptrunc <16 x float> (\S+) to <16 x bfloat>", r"call <16 x i16> @rounded(<16 x float> \1)", text)
    text = text.replace("<16 x bfloat>", "<16 x i16>").replace("v16bf16", "v16i16")
    declared = "declare <16 x i32> @llvm.masked.load.v16i32.p0(ptr, i32, <16 x i1>, <16 x i32>)"
    return "\n".join([text, declared, ROWS.format(name="tileloadd64", body=LOAD, ramp=RAMP),
                      ROWS.format(name="tilestored64", body=STORE, ramp=RAMP), ZERO, ROUNDED, product(kind)])


def install() -> None:
    """Has programs compiled for units that are not there."""
    real = tiles.source

    def source(kind: str, result: str = "", indirect: bool = False) -> str:
        return emulated(real(kind, result, indirect), kind)

    tiles.source, tiles.available = source, lambda: True  # type: ignore[assignment]
