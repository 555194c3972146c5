"""LLVM's effort for the first calls of a program: code is generated quickly where the first one ends sooner by that."""

from __future__ import annotations

from ..compile.costs import SEARCH, instructions
from ..compile.pipeline import debugging
from ..compile.program import Program
from ..compile.registers import is_avx512
from . import llvm, microkernels

INSTANT = 1500  # instructions of a whole call for which optimised code is not worth its making, ever
GAIN = 2.5e-3, 20e-6  # seconds, about, that LLVM saves with a program, and each expression, by generating code quickly
LOSS = 0.1e-9  # seconds, about, by which each estimated instruction of a call takes longer in such code
KERNEL_LOSS = 0.35e-9  # of products' kernels, which copy each sum where registers are few; others are little slower
KERNEL_GAIN = 5e-3  # seconds that LLVM saves with such a kernel
FAST_GAIN, FAST_LOSS = (0.5e-3, 10e-6), 0.6e-9  # the same of fast register allocation


def first_level(program: Program) -> int:
    """LLVM's effort for the first calls of a program: `BRIEF`, `BRIEFEST` or `CALLING` where the first one ends sooner
    by that."""
    if program.work < INSTANT:
        return llvm.BRIEF
    if program.builder.host_calls or debugging("-tiers"):
        return 1
    if program.least_work is not None and any(program.donated):
        return 1  # it may turn for long, and cannot be begun anew
    if program.generic:
        return llvm.BRIEF
    own = _instructions(program, None)
    nodes = len(program.builder.arena.nodes)
    if not own * LOSS < GAIN[0] + nodes * GAIN[1]:  # (where nobody knows how long it takes, too)
        return 1
    if level_of_kernels(_instructions(program, microkernels.PREFIX) - own) == 1:
        return llvm.CALLING
    return llvm.BRIEFEST if own * FAST_LOSS < FAST_GAIN[0] + nodes * FAST_GAIN[1] else llvm.BRIEF


def level_of_kernels(work: float) -> int:
    """The same for products' kernels that will execute so many instructions in a call."""
    if debugging("-tiers") or not is_avx512(llvm.host().vector_bytes) and not work * KERNEL_LOSS < KERNEL_GAIN:
        return 1
    return llvm.BRIEF


def _instructions(program: Program, called: str | None) -> float:
    """Those of a first call. Loops of unknown length are tried for a short time only."""
    return instructions(program.statements, endless=1.0, called=called, ending=SEARCH)
