"""Quotients of vectors of 64-bit integers.

No processor has an instruction for them, and those for single integers take tens of cycles. What is small enough, as
nearly all is, is divided as float64: a quotient of integers of up to 51 bits that is none differs from the next one
by 2**-52 of it or more, which rounding to 53 bits does not reach, so cutting the fraction off gives it exactly.
"""

from __future__ import annotations

# An integer of up to 51 bits is added to the bits of 1.5 · 2**52, whose last place is 1, and back.
_SHIFT = 0x4338000000000000

_TEXT = """\
define internal {v} @styrax.quotient.{dtype}.{lanes}({v} %x0, {v} %y0) alwaysinline nounwind {{
entry:
  %x = freeze {v} %x0
  %y = freeze {v} %y0
  %x.up = add {v} %x, splat (i64 {low})
  %y.up = add {v} %y, splat (i64 {low})
  %either = or {v} %x.up, %y.up
  %high = lshr {v} %either, splat (i64 {bits})
  %large = icmp ne {v} %high, zeroinitializer
  %any = call i1 @llvm.vector.reduce.or.v{lanes}i1(<{lanes} x i1> %large)
  br i1 %any, label %far, label %near, !prof !{{!"branch_weights", i32 1, i32 4000}}
near:
  %x.sum = add {v} %x, splat (i64 {shift})
  %y.sum = add {v} %y, splat (i64 {shift})
  %x.bits = bitcast {v} %x.sum to {d}
  %y.bits = bitcast {v} %y.sum to {d}
  %x.real = fsub {d} %x.bits, splat (double 0x{shift:X})
  %y.real = fsub {d} %y.bits, splat (double 0x{shift:X})
  %ratio = fdiv {d} %x.real, %y.real
  %whole = call {d} @llvm.trunc.v{lanes}f64({d} %ratio)
  %moved = fadd {d} %whole, splat (double 0x{shift:X})
  %moved.bits = bitcast {d} %moved to {v}
  %near.quotient = sub {v} %moved.bits, splat (i64 {shift})
  br label %done
far:
  %far.quotient = call {v} @styrax.far_quotient.{dtype}.{lanes}({v} %x, {v} %y)
  br label %done
done:
  %quotient = phi {v} [ %near.quotient, %near ], [ %far.quotient, %far ]
  ret {v} %quotient
}}
"""

_FAR = """\
define internal {v} @styrax.far_quotient.{dtype}.{lanes}({v} %x, {v} %y) noinline nounwind optnone {{
entry:
  %xs = alloca {v}
  %ys = alloca {v}
  store {v} %x, ptr %xs
  store {v} %y, ptr %ys
  br label %lane
lane:
  %i = phi i64 [ 0, %entry ], [ %next, %lane ]
  %xp = getelementptr i64, ptr %xs, i64 %i
  %yp = getelementptr i64, ptr %ys, i64 %i
  %xi = load i64, ptr %xp
  %yi = load i64, ptr %yp
  %qi = {op} i64 %xi, %yi
  store i64 %qi, ptr %xp
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, {lanes}
  br i1 %more, label %lane, label %done
done:
  %quotient = load {v}, ptr %xs
  ret {v} %quotient
}}
"""


def _filled(text: str, dtype: str, lanes: int) -> str:
    signed = dtype == "i64"
    return text.format(v=f"<{lanes} x i64>", d=f"<{lanes} x double>", dtype=dtype, lanes=lanes, shift=_SHIFT,
                       low=1 << 51 if signed else 0, bits=52 if signed else 51, op="sdiv" if signed else "udiv")


def quotient(dtype: str, lanes: int) -> tuple[str, tuple]:
    """Of divisors that are not 0 (nor -1 where the smallest integer is divided), rounded towards zero; `dtype` is "i64"
    or "u64"."""
    return _filled(_TEXT, dtype, lanes), (("far_quotient", dtype, lanes),)


FUNCTIONS: dict = {}
TEXTS = {"quotient": quotient, "far_quotient": lambda dtype, lanes: (_filled(_FAR, dtype, lanes), ())}
