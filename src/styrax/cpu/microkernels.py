"""Products of panels in vector registers (the microkernels of BLIS), as LLVM IR compiled when a program first asks.

A block of rows × columns of sums stays in registers while packed operands stream past it, `STEPS` steps at a time. What
generated code calls, for blocks of ROWS rows::

    declare void @panels_KIND_ROWS(ptr a, ptr b, ptr then, ptr c, i64 c_row, i64 rows, i64 columns, i64 steps) nounwind
        c = a · b for `rows` rows and at most `Panels.columns` columns. A step is 16 words of 4 bytes of the contracted
        dimension. a is packed as blocks of ROWS rows: step after step, in each row after row, 16 words. b is packed
        step after step: 16 rows of a word for each column. As many bytes from `then` on will be read later, and are
        asked for. c's rows of 4-byte sums lie `c_row` bytes apart.

    declare void @panels_KIND_ROWS_indirect(ptr a, ptr offsets, ptr b, ptr then, ptr c, i64 c_row, i64 rows,
                                            i64 lines, i64 a_line, i64 used, i64 columns, i64 steps) nounwind
        The same for `lines` times `rows` rows, and the first `used` bytes of each step. a's rows of 16 words lie one
        after the other, and those of step k begin with the row of number offsets[k], an i32: steps may share rows, as
        the taps of a convolution do (implicit products). A line's lie `a_line` bytes after those of the line before,
        and its results behind them.

    declare void @panels_KIND_ROWS_lying(ptr a, i64 a_row, ptr b, ptr then, ptr c, i64 c_row, i64 rows, i64 columns,
                                         i64 bytes) nounwind
        The same of an a that lies as it is: rows of so many bytes, whole words, `a_row` bytes apart. There are ROWS
        rows at least up to the last one.

    declare void @panels_KIND_ROWS_streamed_V(ptr a, ptr b, i64 b_row, ptr c, i64 c_row, i64 rows, i64 columns,
                                              i64 terms) nounwind
        c = a · b for at most V vectors of columns, of a b that lies as it is: its rows, one for each of the `terms`,
        `b_row` bytes apart.

There are at most 16 blocks of rows: sums are kept here until they are whole. With `_bf16` or `_f16` behind ROWS c has
numbers of that kind, each rounded once.

Kinds: `f32` and `f64` (a word is one element; those of `f64` have 8 bytes, and a step has 8), `bf16` (two; sums in
float32, subnormal numbers count as zero), `i16` (two; sums in int32 that wrap around), `u8` and `i8` (four; the same
sums). Instructions for bytes multiply unsigned ones of a by signed ones of b. With `i8` a has 128 more than what is
meant, and sums begin with what that is too much. Van Zee and van de Geijn, BLIS: A Framework for Rapidly Instantiating
BLAS Functionality, ACM TOMS 41 (2015).
"""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING, NamedTuple

from . import llvm
from .on_demand import Family

if TYPE_CHECKING:  # programs from the disk need no compiler
    from ..compile.program import Panels

PREFIX = "panels"
STEPS = 32  # of b at most: 64 KB of 32 columns, which stay in the second cache with the blocks of a
BLOCKS = 16  # of rows that a call may have
AGAIN, AGAIN_NEAR = 1 << 21, 1 << 22  # bytes of a that are read for each panel, and where the third cache is near
LINE = 64  # bytes of a cache line
CHAINS = 4  # words of b that are added up side by side
NARROW = {"bf16": "bfloat", "f16": "half"}
BYTES = "u8", "i8"


def kernels() -> dict[str, Panels]:
    """The kinds that the host has, with the sums that its registers hold."""
    from ..compile.program import Panels

    needs = {"f16": {"avx512bw", "avx512vl"}, "bf16": {"avx512bf16", "avx512bw", "avx512vl"}}
    narrow = frozenset(name for name in NARROW if llvm.host().available >= needs[name])
    none: frozenset[str] = frozenset()
    again = AGAIN_NEAR if llvm.host().cpu.startswith("znver") else AGAIN  # shared by a few cores: as fast as the second
    return {kind: Panels(*sums, BLOCKS, again, narrow if kind in ("f32", "bf16") else none)
            for kind, sums in _kinds().items()}


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
    if ("avx512vnni" if host.vector_bytes == 64 else "avxvnni") in host.available:
        kinds += BYTES
    return {**dict.fromkeys(kinds, shape), "f64": (rows, vectors * host.vector_bytes // 8)}


def source(kind: str, rows: int, columns: int, vector_bytes: int, form: str = "", result: str = "") -> str:
    """The kernel of a kind for blocks of so many rows. `result`: what becomes of sums, one of `NARROW`."""
    return _Kernel(kind, rows, columns, vector_bytes // _size(kind), _FORMS[form], result).text()


def _size(kind: str) -> int:
    """The bytes of a word."""
    return 8 if kind == "f64" else 4


class _Form(NamedTuple):
    """What differs between kernels by how operands lie: parts of their text."""

    suffix: str = ""
    left: str = "ptr %a"  # parameters
    right: str = "ptr %b, ptr %then"
    more: str = ""
    last: str = "i64 %steps"
    entry: str = ""
    b_row: str = "{row}"
    b_step: str = "{b_step}"
    packed: bool = True  # b: its rows are aligned, as long as a panel is wide, and follow each other
    a_block: str = "mul i64 %steps, {a_step}"  # from a block of a to the next,
    slice: str = "mul i64 %first, {a_step}"  # to the first step of a slice
    block: str = "  %ab = getelementptr i8, ptr %ai, i64 0"  # where the rows of a block begin
    step: str = "  %x = getelementptr i8, ptr %x.p, i64 0"  # and those of a step
    next_step: str = "{a_step}"
    words: str = "64"
    lying: bool = False  # a
    outer: str = "slice"  # the loop around that of the blocks, and what it begins with
    a: str = "as"
    c: str = "c0"
    kept: str = "kept"
    line: str = ""
    line_end: str = ""
    end: str = "slice_end"


_INDIRECT = _Form(
    "_indirect", "ptr %a, ptr %offsets", more="i64 %lines, i64 %a_line, i64 %used, ", a_block="add i64 0, {a_step}",
    slice="add i64 0, 0", step="""  %number = add i64 %first, %k
  %first_row.at = getelementptr i32, ptr %offsets, i64 %number
  %first_row = load i32, ptr %first_row.at, align 4
  %first_row64 = sext i32 %first_row to i64
  %offset = mul i64 %first_row64, 64
  %x = getelementptr i8, ptr %ai, i64 %offset""",
    words="%used", outer="line", a="al", c="cl", kept="kl", line="""  %c_line = mul i64 %c_row, %rows
  br label %line
line:
  %l = phi i64 [0, %slice], [%l1, %line_end]
  %al = phi ptr [%as, %slice], [%al1, %line_end]
  %cl = phi ptr [%c0, %slice], [%cl1, %line_end]
  %kl = phi ptr [%kept, %slice], [%kept1, %line_end]
""", line_end="""line_end:
  %l1 = add nuw nsw i64 %l, 1
  %al1 = getelementptr i8, ptr %al, i64 %a_line
  %cl1 = getelementptr i8, ptr %cl, i64 %c_line
  %lines_left = icmp slt i64 %l1, %lines
  br i1 %lines_left, label %line, label %slice_end
""", end="line_end")
_LYING = _Form(
    "_lying", "ptr %a, i64 %a_row", last="i64 %bytes", entry="""
  %bytes.up = add i64 %bytes, 63
  %steps = udiv i64 %bytes.up, 64
""", a_block="mul i64 %a_row, {rows}", slice="mul i64 %first, 64", block="""  %missing = sub i64 {rows}, %here
  %back = mul i64 %missing, %a_row
  %forth = sub i64 0, %back
  %ab = getelementptr i8, ptr %ai, i64 %forth""",
    step="""  %x = getelementptr i8, ptr %x.p, i64 0
  %number = add i64 %first, %k
  %before = mul i64 %number, 64
  %bytes_left = sub i64 %bytes, %before
  %used = call i64 @llvm.smin.i64(i64 %bytes_left, i64 64)""", next_step="64", words="%used", lying=True)
_STREAMED = _Form(
    "_streamed_{vectors}", right="ptr %b, i64 %b_row", last="i64 %terms", entry="""
  %terms.up = add i64 %terms, {words_1}
  %steps = udiv i64 %terms.up, {words}
  %b_step = mul i64 %b_row, {words}
""", b_row="%b_row", b_step="%b_step", packed=False, step="""  %x = getelementptr i8, ptr %x.p, i64 0
  %number = add i64 %first, %k
  %before = mul i64 %number, {words}
  %terms_left = sub i64 %terms, %before
  %part = icmp slt i64 %terms_left, {words}
  %terms_here = select i1 %part, i64 %terms_left, i64 {words}
  %used = mul i64 %terms_here, {size}
  %follows = icmp sge i64 %terms_left, {words_2}
  %b_ahead = select i1 %follows, i64 %b_step, i64 0""", words="%used")
_FORMS = {"": _Form(), "indirect": _INDIRECT, "lying": _LYING, "streamed": _STREAMED}


class _Kernel:
    """The text of a kernel, and what its lines have in common."""

    def __init__(self, kind: str, rows: int, columns: int, lanes: int, form: _Form, result: str):
        self.kind, self.rows, self.columns, self.lanes, self.form, self.result = (
            kind, rows, columns, lanes, form, result)
        self.vectors = columns // lanes
        self.size = _size(kind)
        self.sum = "i32" if kind in ("i16", *BYTES) else "double" if kind == "f64" else "float"
        self.word = {"f32": "float", "f64": "double"}.get(kind, "i32")
        self.masked = f"v{lanes}{ {'i32': 'i32', 'float': 'f32', 'double': 'f64'}[self.sum]}.p0"
        self.sums = [f"%s{r}.{v}" for r in range(rows) for v in range(self.vectors)]

    def text(self) -> str:
        n, vector, form = self.lanes, f"<{self.lanes} x {self.sum}>", self.form
        ramp = ", ".join(f"i32 {i}" for i in range(n))
        counts = f"<{n} x i32>"
        masks = "\n".join(f"  %least{v} = sub i32 %columns32, {v * n}\n"
                          f"  %some{v} = insertelement {counts} poison, i32 %least{v}, i64 0\n"
                          f"  %all{v} = shufflevector {counts} %some{v}, {counts} poison, {counts} zeroinitializer\n"
                          f"  %mask{v} = icmp slt {counts} <{ramp}>, %all{v}" for v in range(self.vectors))
        first = [f"%base{v}" if self.kind == "i8" else "zeroinitializer" for v in range(self.vectors)]
        outer = "\n".join(f"  {s}.p = phi {vector} [{first[i % self.vectors]}, %far], [{s}.n, %step_end]"
                          for i, s in enumerate(self.sums))
        inner = "\n".join(f"  {s} = phi {vector} [{s}.p, %step], [{s}.n, %words]" for s in self.sums)
        a_step, b_step, row = 64 * self.rows, 64 * self.columns, self.size * self.columns
        suffix = f"{f'_{self.result}' if self.result else ''}{form.suffix.format(vectors=self.vectors)}"
        words = 64 // self.size
        sizes = {"a_step": a_step, "b_step": b_step, "row": row, "rows": self.rows, "size": self.size,
                 "words": words, "words_1": words - 1, "words_2": 2 * words}
        asked = self.asked_ahead(b_step, words)
        return "\n".join(self.declared()) + f"""

define void @panels_{self.kind}_{self.rows}{suffix}({form.left}, {form.right}, ptr %c0, i64 %c_row, i64 %rows,
                                    {form.more}i64 %columns, {form.last}) nounwind {{
entry:
{form.entry.format(**sizes)}{self.multiples()}  %columns32 = trunc i64 %columns to i32
  %full = icmp sge i64 %columns, {self.columns}
{masks}
  %sums = alloca [{self.rows * self.columns} x {self.sum}], align 64
  %kept = alloca [{self.rows * self.columns * BLOCKS} x {self.sum}], align 64
  %a_block = {form.a_block.format(**sizes)}
  %c_block = mul i64 %c_row, {self.rows}
  %steps.up = add i64 %steps, {STEPS - 1}
  %slices = udiv i64 %steps.up, {STEPS}
  %equal.sum = add i64 %steps, %slices
  %equal.up = sub i64 %equal.sum, 1
  %most = udiv i64 %equal.up, %slices
  br label %next_slice
next_slice:
  %first = phi i64 [0, %entry], [%after, %slice_end]
  %left = sub i64 %steps, %first
  %few = icmp slt i64 %left, %most
  %count = select i1 %few, i64 %left, i64 %most
  %begun = icmp ne i64 %first, 0
  %after = add nuw nsw i64 %first, %most
  %rest = icmp slt i64 %after, %steps
  %as_at = {form.slice.format(**sizes)}
  %as = getelementptr i8, ptr %a, i64 %as_at
  %bs_at = mul i64 %first, {form.b_step.format(**sizes)}
  %bs = getelementptr i8, ptr %b, i64 %bs_at
{asked["slice"]}{self.bases(vector) if self.kind == "i8" else ""}  br label %slice
slice:
{form.line}  br label %block
block:
  %row = phi i64 [0, %{form.outer}], [%row1, %block_end]
  %ai = phi ptr [%{form.a}, %{form.outer}], [%ai1, %block_end]
  %c = phi ptr [%{form.c}, %{form.outer}], [%c1, %block_end]
  %kb = phi ptr [%{form.kept}, %{form.outer}], [%kept1, %block_end]
  %left_rows = sub i64 %rows, %row
  %fewer = icmp slt i64 %left_rows, {self.rows}
  %here = select i1 %fewer, i64 %left_rows, i64 {self.rows}
{form.block.format(**sizes)}
{asked["block"]}{self.prefetches(row)}
step:
  %k = phi i64 [0, %far], [%k1, %step_end]
  %x.p = phi ptr [%ab, %far], [%x1, %step_end]
  %y = phi ptr [%bs, %far], [%y.s, %step_end]
{outer}
{asked["step"]}{form.step.format(**sizes)}
  br label %words
words:
  %w = phi i64 [0, %step], [%w1, %words]
  %y.w = phi ptr [%y, %step], [%y.n, %words]
{inner}
{asked["word"]}  %z = getelementptr i8, ptr %x, i64 %w
{self.word_products()}
  %w1 = add nuw nsw i64 %w, {self.size}
  %inside = icmp ult i64 %w1, {form.words}
  br i1 %inside, label %words, label %step_end
step_end:
  %x1 = getelementptr i8, ptr %x, i64 {form.next_step.format(**sizes)}
  %y.s = getelementptr i8, ptr %y, i64 {form.b_step.format(**sizes)}
  %k1 = add nuw nsw i64 %k, 1
  %more = icmp slt i64 %k1, %count
  br i1 %more, label %step, label %keep
keep:
{self.keep(vector)}
  %unasked = {f"mul i64 %missing, {row}" if form.lying else "add i64 0, 0"}
  %given = getelementptr i8, ptr %sums, i64 %unasked
  br label %result
result:
  %r = phi i64 [0, %keep], [%r1, %result_end]
  %t = phi ptr [%given, %keep], [%t1, %result_end]
  %o = phi ptr [%c, %keep], [%o1, %result_end]
  %p = phi ptr [%kb, %keep], [%p1, %result_end]
{self.results(vector)}
result_end:
  %r1 = add nuw nsw i64 %r, 1
  %t1 = getelementptr i8, ptr %t, i64 {row}
  %o1 = getelementptr i8, ptr %o, i64 %c_row
  %p1 = getelementptr i8, ptr %p, i64 {row}
  %rows_left = icmp slt i64 %r1, %here
  br i1 %rows_left, label %result, label %block_end
block_end:
  %row1 = add nuw nsw i64 %row, {self.rows}
  %ai1 = getelementptr i8, ptr %ai, i64 %a_block
  %c1 = getelementptr i8, ptr %c, i64 %c_block
  %kept1 = getelementptr i8, ptr %kb, i64 {row * self.rows}
  %again = icmp slt i64 %row1, %rows
  br i1 %again, label %block, label %{form.end}
{form.line_end}slice_end:
  br i1 %rest, label %next_slice, label %done
done:
  ret void
}}
"""

    def bases(self, vector: str) -> str:
        """What sums of a slice begin with where a has 128 more: minus 128 times the sums of b's columns."""
        n, total = self.lanes, [f"%total{w}.{v}" for w in range(CHAINS) for v in range(self.vectors)]
        more = f"<{4 * n} x i8> splat (i8 -128)"  # as unsigned bytes: 128
        lines = ["  %b_words = mul i64 %count, 16", "  br label %total", "total:",
                 "  %b_word = phi i64 [0, %next_slice], [%b_word.n, %total]",
                 "  %b_at = phi ptr [%bs, %next_slice], [%b_at.n, %total]",
                 *(f"  {t} = phi {vector} [zeroinitializer, %next_slice], [{t}.n, %total]" for t in total)]
        for i, t in enumerate(total):
            lines += [f"  {t}.at = getelementptr i8, ptr %b_at, i64 {self.size * n * i}",
                      f"  {t}.b = load <{4 * n} x i8>, ptr {t}.at, align 64",
                      f"  {t}.n = call {vector} {_I8[n]}({vector} {t}, {more}, <{4 * n} x i8> {t}.b)"]
        lines += [f"  %b_word.n = add nuw nsw i64 %b_word, {CHAINS}",
                  f"  %b_at.n = getelementptr i8, ptr %b_at, i64 {CHAINS * self.size * self.columns}",
                  "  %b_more = icmp slt i64 %b_word.n, %b_words",
                  "  br i1 %b_more, label %total, label %based", "based:"]
        for v in range(self.vectors):
            sums = [f"%total{w}.{v}.n" for w in range(CHAINS)]
            for w in range(1, CHAINS):
                lines.append(f"  %all{w}.{v} = add {vector} {sums[0] if w == 1 else f'%all{w - 1}.{v}'}, {sums[w]}")
            lines.append(f"  %base{v} = sub {vector} zeroinitializer, %all{CHAINS - 1}.{v}")
        return "\n".join(lines) + "\n"

    def multiples(self) -> str:
        """Odd multiples of the distance of rows, of which addresses make the others."""
        odd = range(1, self.rows, 2) if self.form.lying else ()
        return "".join(f"  %a_row{r} = mul i64 %a_row, {r}\n" for r in odd)

    def row(self, r: int) -> str:
        """Where a row of a step begins."""
        if not self.form.lying or r == 0:
            return f"i8, ptr %z, i64 {64 * r}"
        scale = r & -r
        return f"i{8 * scale}, ptr %z, i64 %a_row{r // scale}"

    def asked_ahead(self, b_step: int, words: int) -> dict[str, str]:
        """Asks for what is read after b: a line with each word, until the blocks have asked for as much as a slice."""
        if not self.form.packed:
            return dict.fromkeys(("slice", "block", "step", "word"), "")
        step = words * LINE
        return {
            "slice": f"""  %then_slice = getelementptr i8, ptr %then, i64 %bs_at
  %slice_bytes = mul i64 %count, {b_step}
  %last_ask = sub i64 %slice_bytes, {step}
  %asks = mul i64 %count, {step}
""", "block": f"""  %block.k = udiv i64 %row, {self.rows}
  %asked = mul i64 %block.k, %asks
""", "step": f"""  %asked.k = mul i64 %k, {step}
  %asked.s = add i64 %asked, %asked.k
  %ask.at = call i64 @llvm.smin.i64(i64 %asked.s, i64 %last_ask)
  %ask.s = getelementptr i8, ptr %then_slice, i64 %ask.at
""", "word": f"""  %ask.w = mul i64 %w, {LINE // self.size}
  %ask = getelementptr i8, ptr %ask.s, i64 %ask.w
  call void @llvm.prefetch.p0(ptr %ask, i32 0, i32 2, i32 1)
"""}

    def prefetches(self, row: int) -> str:
        """Asks for the lines that a block's sums go to, before it computes them. The last block is `far`."""
        bytes_given = self.vectors * self.lanes * (2 if self.result else self.size)
        asks = "\n".join(f"  %far.{at} = getelementptr i8, ptr %far.p, i64 {at}\n"
                         f"  call void @llvm.prefetch.p0(ptr %far.{at}, i32 1, i32 3, i32 1)"
                         for at in (*range(0, bytes_given, LINE), bytes_given - 1))
        return f"""  %far.begin = select i1 %rest, ptr %kb, ptr %c
  %far_row = select i1 %rest, i64 {row}, i64 %c_row
  br label %far
far:
  %far.r = phi i64 [0, %block], [%far.r1, %far]
  %far.p = phi ptr [%far.begin, %block], [%far.p1, %far]
{asks}
  %far.r1 = add nuw nsw i64 %far.r, 1
  %far.p1 = getelementptr i8, ptr %far.p, i64 %far_row
  %far.more = icmp slt i64 %far.r1, %here
  br i1 %far.more, label %far, label %step"""

    def keep(self, vector: str) -> str:
        """Puts the sums of a slice where rows of them can be counted."""
        lines = []
        for i, s in enumerate(self.sums):
            lines += [f"  {s}.at = getelementptr i8, ptr %sums, i64 {self.size * i * self.lanes}",
                      f"  store {vector} {s}.n, ptr {s}.at, align 64"]
        return "\n".join(lines)

    def results(self, vector: str) -> str:
        """A row of the sums, added to what the slices before have left: kept for the next slice, or given. Stores under
        a mask take many cycles on some processors: full rows do without."""
        n, size = self.lanes, self.size
        small, suffix, width = (f"<{n} x {NARROW[self.result]}>", self.result, 2) if self.result else (
            vector, self.masked.removeprefix(f"v{n}").removesuffix(".p0"), size)
        load, add, put, keep, give, whole, part = [], [], [], [], [], [], []
        for v in range(self.vectors):
            mask, at = f"<{n} x i1> %mask{v}", size * v * n
            load += [f"  %new{v}.at = getelementptr i8, ptr %t, i64 {at}",
                     f"  %new{v} = load {vector}, ptr %new{v}.at, align 64",
                     f"  %at{v} = getelementptr i8, ptr %p, i64 {at}"]
            add += [f"  %old{v} = load {vector}, ptr %at{v}, align 64",
                    f"  %sum{v} = {'add' if self.sum == 'i32' else 'fadd'} {vector} %old{v}, %new{v}"]
            put += [f"  %v{v} = phi {vector} [%new{v}, %result], [%sum{v}, %add]"]
            keep += [f"  store {vector} %v{v}, ptr %at{v}, align 64"]
            value = f"%v{v}"
            if self.result:
                value = f"%small{v}"
                give += [f"  {value} = fptrunc {vector} %v{v} to {small}"]
            give += [f"  %out{v} = getelementptr i8, ptr %o, i64 {width * v * n}"]
            whole += [f"  store {small} {value}, ptr %out{v}, align {width}"]
            part += [f"  call void @llvm.masked.store.v{n}{suffix}.p0({small} {value}, ptr %out{v}, i32 {width}, "
                     f"{mask})"]
        return "\n".join([
            *load, "  br i1 %begun, label %add, label %put", "add:", *add, "  br label %put", "put:", *put,
            "  br i1 %rest, label %leave, label %give", "give:", *give, "  br i1 %full, label %unmasked, label %masked",
            "unmasked:", *whole, "  br label %result_end", "masked:", *part, "  br label %result_end", "leave:", *keep,
            "  br label %result_end"])

    def word_products(self) -> str:
        """A word of the contracted dimension: the outer product of a column of a and a row of b."""
        words, lines = f"<{self.lanes} x {self.word}>", []
        for v in range(self.vectors):
            load = f"load {words}, ptr %y{v}.at, align 64"
            if not self.form.packed:
                load = (f"call {words} @llvm.masked.load.{self.masked}(ptr %y{v}.at, i32 {self.size}, "
                        f"<{self.lanes} x i1> %mask{v}, {words} zeroinitializer)")
            lines += [f"  %y{v}.at = getelementptr i8, ptr %y.w, i64 {self.size * v * self.lanes}", f"  %y{v} = {load}"]
        lines += [f"  %y.n = getelementptr i8, ptr %y.w, i64 {self.form.b_row.format(row=self.size * self.columns)}"]
        if not self.form.packed:  # rows are apart: no processor foresees the next. (Behind b there may be no page.)
            row = self.size * self.columns
            lines += ["  %y.ahead = getelementptr i8, ptr %y.w, i64 %b_ahead"]
            lines += [line for at in (*range(0, row, LINE), row - 1) for line in (
                f"  %ahead{at} = getelementptr i8, ptr %y.ahead, i64 {at}",
                f"  call void @llvm.prefetch.p0(ptr %ahead{at}, i32 0, i32 3, i32 1)")]
        align = 2 if self.form.lying and self.word == "i32" else self.size
        for r in range(self.rows):
            lines += [f"  %z{r}.at = getelementptr {self.row(r)}",
                      f"  %z{r}.w = load {self.word}, ptr %z{r}.at, align {align}",
                      f"  %z{r}.i = insertelement {words} poison, {self.word} %z{r}.w, i64 0",
                      f"  %z{r} = shufflevector {words} %z{r}.i, {words} poison, <{self.lanes} x i32> zeroinitializer"]
            for v in range(self.vectors):
                lines += self.multiply(f"%s{r}.{v}.n", f"%s{r}.{v}", f"%z{r}", f"%y{v}", f"%mask{v}")
        return "\n".join(lines)

    def declared(self) -> list[str]:
        n, vector, masked = self.lanes, f"<{self.lanes} x {self.sum}>", self.masked
        lines = [f"declare {vector} @llvm.masked.load.{masked}(ptr, i32, <{n} x i1>, {vector})",
                 f"declare void @llvm.masked.store.{masked}({vector}, ptr, i32, <{n} x i1>)",
                 "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)", "declare i64 @llvm.smin.i64(i64, i64)"]
        if self.result:
            small = f"<{n} x {NARROW[self.result]}>"
            lines.append(f"declare void @llvm.masked.store.v{n}{self.result}.p0({small}, ptr, i32, <{n} x i1>)")
        if self.kind in ("f32", "f64"):
            lines.append(f"declare {vector} @llvm.fma.v{n}{self.kind}({vector}, {vector}, {vector})")
        elif self.kind == "bf16":
            lines.append(f"declare <16 x float> {_BF16}(<16 x float>, <32 x bfloat>, <32 x bfloat>)")
        elif self.kind in BYTES:
            quads = f"<{4 * n} x i8>"
            lines.append(f"declare <{n} x i32> {_I8[n]}(<{n} x i32>, {quads}, {quads})")
        elif n in _I16:
            lines.append(f"declare <{n} x i32> {_I16[n]}(<{2 * n} x i16>, <{2 * n} x i16>)")
        return lines

    def multiply(self, out: str, total: str, x: str, y: str, mask: str) -> list[str]:
        """A vector of sums and one of products. The mask of the columns that there are changes no result, but fast
        code generation accumulates in place under masks alone; it copies each sum else."""
        n = self.lanes
        if self.kind in ("f32", "f64"):
            vector = f"<{n} x {self.word}>"
            fma = f"call {vector} @llvm.fma.v{n}{self.kind}({vector} {x}, {vector} {y}, {vector} {total})"
            if n * self.size < 64:
                return [f"  {out} = {fma}"]
            return [f"  {out}.m = {fma}", f"  {out} = select <{n} x i1> {mask}, {vector} {out}.m, {vector} {total}"]
        parts = f"<{4 * n} x i8>" if self.kind in BYTES else f"<{2 * n} x {'bfloat' if self.kind == 'bf16' else 'i16'}>"
        lines = [f"  {out}.{name} = bitcast <{n} x i32> {value} to {parts}" for name, value in (("x", x), ("y", y))]
        operands = f"{parts} {out}.x, {parts} {out}.y"
        if self.kind == "bf16":
            return [*lines, f"  {out} = call <16 x float> {_BF16}(<16 x float> {total}, {operands})"]
        if self.kind in BYTES:
            return [*lines, f"  {out} = call <{n} x i32> {_I8[n]}(<{n} x i32> {total}, {operands})"]
        return [*lines, f"  {out}.m = call <{n} x i32> {_I16[n]}({operands})",
                f"  {out} = add <{n} x i32> {total}, {out}.m"]


_BF16 = "@llvm.x86.avx512bf16.dpbf16ps.512"
_I8 = {16: "@llvm.x86.avx512.vpdpbusd.512", 8: "@llvm.x86.avx512.vpdpbusd.256"}
_I16 = {16: "@llvm.x86.avx512.pmaddw.d.512", 8: "@llvm.x86.avx2.pmadd.wd"}


def _source_of(symbol: str) -> str | None:
    kind, rows, *more = symbol.removeprefix(f"{PREFIX}_").split("_")
    known = _kinds().get(kind)
    if known is None:
        return None
    form, result = (next((name for name in more if name in names), "") for names in (_FORMS, NARROW))
    vector_bytes = llvm.host().vector_bytes
    columns = int(more[-1]) * vector_bytes // _size(kind) if form == "streamed" else known[1]
    return source(kind, int(rows), columns, vector_bytes, form, result)


family = Family(PREFIX, _source_of)
