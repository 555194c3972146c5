"""The floating-point mode that programs run in, as LLVM IR: subnormal numbers count as zero, as under XLA.

Results are JAX's to the last zero by that; and some processors take so much longer for each instruction that meets a
subnormal number that what decays, a stable recurrence or a kernel of far points, would take several times as long.
Only programs run so: Python that they call has the mode of before.
"""

from __future__ import annotations

import os

# Of each processor: `get_mode`, without exceptions' flags on x86, and `set_mode`; the bits by which it flushes
_X86 = """
declare void @llvm.x86.sse.stmxcsr(ptr)
declare void @llvm.x86.sse.ldmxcsr(ptr)

define internal i64 @get_mode() nounwind alwaysinline {
  %slot = alloca i32, align 4
  call void @llvm.x86.sse.stmxcsr(ptr %slot)
  %value = load i32, ptr %slot
  %bits = and i32 %value, -64
  %wide = zext i32 %bits to i64
  ret i64 %wide
}
define internal void @set_mode(i64 %mode) nounwind alwaysinline {
  %slot = alloca i32, align 4
  %value = trunc i64 %mode to i32
  store i32 %value, ptr %slot
  call void @llvm.x86.sse.ldmxcsr(ptr %slot)
  ret void
}
"""
_AARCH64 = """
declare i64 @llvm.aarch64.get.fpcr()
declare void @llvm.aarch64.set.fpcr(i64)

define internal i64 @get_mode() nounwind alwaysinline {
  %value = call i64 @llvm.aarch64.get.fpcr()
  ret i64 %value
}
define internal void @set_mode(i64 %mode) nounwind alwaysinline {
  call void @llvm.aarch64.set.fpcr(i64 %mode)
  ret void
}
"""
_MODES = {"x86_64": (_X86, 0x8040), "aarch64": (_AARCH64, 1 << 24)}  # FTZ and DAZ; FZ
_SWITCHES = """
define internal i64 @flush_subnormals() nounwind alwaysinline {
  %mode = call i64 @get_mode()
  %flushing = or i64 %mode, FLUSHING
  call void @set_mode(i64 %flushing)
  ret i64 %mode
}
define internal i64 @keep_subnormals() nounwind alwaysinline {
  %mode = call i64 @get_mode()
  %keeping = and i64 %mode, KEEPING
  call void @set_mode(i64 %keeping)
  ret i64 %mode
}
"""


def processor(machine: str | None = None) -> str:
    """LLVM's name of a machine's kind of processor, of this one's unless it is told."""
    name = (machine or (os.uname().machine if hasattr(os, "uname") else "unknown")).lower()
    return {"arm64": "aarch64", "amd64": "x86_64"}.get(name, name)


def source(name: str) -> str:
    """IR of a processor's functions ``i64 get_mode()``, ``set_mode(i64)``, and of two that switch and give the mode of
    before: ``i64 flush_subnormals()`` and ``i64 keep_subnormals()``. Other processors' modes stay as they are."""
    if name not in _MODES:
        return ("\ndefine internal i64 @get_mode() alwaysinline {\n  ret i64 0\n}\n"
                "define internal void @set_mode(i64 %mode) alwaysinline {\n  ret void\n}\n"
                "define internal i64 @flush_subnormals() alwaysinline {\n  ret i64 0\n}\n"
                "define internal i64 @keep_subnormals() alwaysinline {\n  ret i64 0\n}\n")
    text, bits = _MODES[name]
    return text + _SWITCHES.replace("FLUSHING", str(bits)).replace("KEEPING", str(~bits))


def told(ir_text: str) -> str:
    """A module whose functions say how they run: else LLVM would take tests of numbers for tests of their bits."""
    return ir_text.replace(" nounwind {\n", ' nounwind "denormal-fp-math"="preserve-sign,preserve-sign" {\n')


__all__ = ["processor", "source", "told"]
