"""Compiling a program: from its jaxpr to LLVM IR, and what who calls it must know. Loads the compiler."""

from __future__ import annotations

import math
from collections.abc import Sequence, Set

import numpy as np

from ..compile.lowering import panel_products
from ..compile.lowering.products import BLAS, LARGE
from ..compile.pipeline import compile_to_loops
from ..compile.program import Kernels, Program
from ..core.programs.jaxpr import ClosedJaxpr, Jaxpr, jaxprs_in_params
from ..core.types.dims import Recorder
from . import effort, libraries, llvm, microkernels, tiles
from .code import begin, shown, text
from .executable import QUEUED, Compiled
from .interface import Interface


def compiled(closed: ClosedJaxpr, name: str, donated: Sequence[bool], sizes: Recorder | None) -> Compiled:
    """Compiles a program on plain arrays. With `sizes`, its shapes are known only when it is called."""
    panels = microkernels.kernels()
    theirs = {dtype for dtype in BLAS if panel_products.FLOATS.get(dtype) != "f32" or "f32" not in panels}
    if sizes is None and libraries.named_kernels() is None and _multiplies(closed.jaxpr, theirs):
        libraries.open_ahead()  # products will ask for its kernels
    begun: set[str] = set()

    def begin_once(symbol: str, work: float) -> None:
        if symbol not in begun:
            begun.add(symbol)
            begin({symbol}, effort.level_of_kernels(work))

    program = compile_to_loops(closed, name, donated, llvm.host().vector_bytes, sizes is not None,
                               Kernels(tiles.available(), libraries.vector_bytes, panels, begin_once))
    level = effort.first_level(program)
    ir, units = text(program, 0 if sizes is None else sizes.inputs, level)
    shown(name, ir)
    made = program.replace(closed=None) if program.statements else program  # (which keeps its code)
    return Compiled(interface(program), [value for _, value in program.constants], units,
                    hasty=level < 1 and program.work >= effort.INSTANT,
                    calls_host=bool(program.builder.host_calls), lowered=lambda: (made, ir))


def _multiplies(jaxpr: Jaxpr, theirs: Set[np.dtype]) -> bool:
    """Whether a program has large products of such dtypes, which BLAS will likely be asked for."""
    for eqn in jaxpr.eqns:
        if eqn.primitive.traits.contraction and eqn.outvars[0].aval.dtype in theirs:  # type: ignore[attr-defined]
            sizes = [math.prod(v.aval.shape) for v in (*eqn.invars, *eqn.outvars)]  # type: ignore[attr-defined]
            if math.prod(sizes) >= LARGE**2:  # m·k, k·n and m·n
                return True
        elif any(_multiplies(inner, theirs) for inner in jaxprs_in_params(eqn.params)):
            return True
    return False


def interface(program: Program) -> Interface:
    """That of a program with a memory plan."""
    inputs = {b: i for i, b in enumerate(program.inputs) if b is not None}
    roots = [None if b is None else program.placement.root(b) for b in program.outputs]
    taken = {k: inputs[b] for k, b in enumerate(roots) if b in inputs}
    # What has overwritten an argument cannot be run once more.
    work = program.work if program.least_work is None or taken else program.least_work
    return Interface(
        name=program.name, generic=program.generic, arguments=len(program.inputs),
        live_inputs=[i for i, b in enumerate(program.inputs) if b is not None],
        in_bytes=0 if program.generic else sum(int(b.nbytes) for b in program.inputs if b is not None),
        out_bytes=[b.size * b.dtype.itemsize if b is not None and isinstance(b.size, int) else 0
                   for b in program.outputs],
        hollow=frozenset(k for k, b in enumerate(program.outputs) if b is None), taken=taken,
        workspace=program.placement.workspace, fuelled=program.least_work is not None,
        queued=not program.generic and work >= QUEUED)
