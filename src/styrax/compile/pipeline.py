"""The compiler as a list of passes: jaxpr → jaxpr, jaxpr → operations → groups → loops, loops → loops.

`STYRAX_DEBUG=slp` prints programs after the pass of that name, with the count of what it changed; `STYRAX_DEBUG=jaxpr`
the program as it comes in, `loops` as the emitter gets it. `STYRAX_DEBUG=verify` checks each pass's result.
`STYRAX_DEBUG=-slp` leaves an optional pass out. Other words than these, and the emitter's `llvm`, `asm` and `bounds`,
are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ..core.programs.check import check_jaxpr
from ..core.programs.jaxpr import ClosedJaxpr, JaxprEqn
from ..core.settings import config, progress
from .ir.loopir import made_by, statements
from .jaxprs import (
    accumulation,
    cse,
    dead_equations,
    inline,
    loop_invariants,
    packing,
    row_products,
    sinking,
    transpose_folding,
)
from .jaxprs.rewriting import programs_of
from .loops import (
    address_selection,
    fuse,
    index_set_splitting,
    interleaving,
    loop_distribution,
    loop_unswitching,
    memory,
    multi_row_reduction,
    nest,
    outer_loop_vectorisation,
    parallelize,
    peeling,
    register_blocking,
    scalar_replacement,
    schedule,
    slp,
    split_reduction,
    transposition,
    unroll_and_jam,
)
from .lowering import interchange, lower
from .program import Kernels, Program


class Pass(NamedTuple):
    """One step: its name, what it does, what holds of its result, and when it may or must be left out."""

    name: str
    run: Callable[[Program], Program]
    verify: Callable[[Program], None]
    optional: bool = True
    generic: bool = True  # whether it runs on programs whose sizes are known only at run time


def _on_jaxpr(change: Callable[[ClosedJaxpr], ClosedJaxpr]) -> Callable[[Program], Program]:
    def run(program: Program) -> Program:
        closed = change(program.closed)
        return program if closed is program.closed else program.replace(closed=closed)

    return run


def _well_typed(program: Program) -> None:
    check_jaxpr(program.closed.jaxpr)


def _unchecked(program: Program) -> None:
    """Operations and groups have no invariants of their own: what they become is checked."""


def _sound_loops(program: Program) -> None:
    from .ir.verify import verify  # (tests and bug hunts alone need it)

    verify(program.statements, program.name)


# Passes over jaxprs that compare parameters leave programs with run-time sizes alone: each comparison is a question
# about sizes, and each question a guard.
PASSES = (
    Pass("inline", _on_jaxpr(inline.inline), _well_typed, generic=False),
    Pass("transpose-folding", _on_jaxpr(transpose_folding.fold_transposes), _well_typed, generic=False),
    Pass("sinking", _on_jaxpr(sinking.sink_sums), _well_typed, generic=False),
    Pass("accumulation", _on_jaxpr(accumulation.add_in_place), _well_typed, generic=False),
    Pass("packing", _on_jaxpr(packing.pack_operands), _well_typed, generic=False),
    Pass("licm", _on_jaxpr(loop_invariants.move_invariants), _well_typed, generic=False),
    Pass("row-products", _on_jaxpr(row_products.multiply_rows_together), _well_typed, generic=False),
    Pass("cse", _on_jaxpr(cse.merge_equal), _well_typed, generic=False),
    Pass("dce", _on_jaxpr(dead_equations.drop_unused), _well_typed),
    Pass("lower", lower.run, _unchecked, optional=False),
    Pass("peeling", peeling.run, _unchecked),
    Pass("split-reduction", split_reduction.run, _unchecked),
    Pass("fuse", fuse.run, _unchecked, optional=False),
    Pass("nest", nest.run, _unchecked, optional=False),
    Pass("loop-distribution", loop_distribution.run, _unchecked),
    Pass("transposition", transposition.run, _unchecked),
    Pass("interleaving", interleaving.run, _unchecked),
    Pass("register-blocking", register_blocking.run, _unchecked),
    Pass("multi-row-reduction", multi_row_reduction.run, _unchecked),
    Pass("schedule", schedule.run, _sound_loops, optional=False),
    Pass("loop-unswitching", loop_unswitching.run, _sound_loops, generic=False),
    Pass("index-set-splitting", index_set_splitting.run, _sound_loops),
    Pass("address-selection", address_selection.run, _sound_loops),
    Pass("outer-loop-vectorisation", outer_loop_vectorisation.run, _sound_loops, generic=False),
    Pass("unroll-and-jam", unroll_and_jam.run, _sound_loops),
    Pass("parallelize", parallelize.run, _sound_loops),
    Pass("scalar-replacement", scalar_replacement.run, _sound_loops),
    Pass("slp", slp.run, _sound_loops),
    Pass("memory", memory.run, _sound_loops, optional=False),
)

# what `STYRAX_DEBUG` may say
WORDS = frozenset(("jaxpr", "loops", "llvm", "asm", "bounds", "verify", "-tiers", f"-{interchange.NAME}",
                   *(step.name for step in PASSES), *(f"-{step.name}" for step in PASSES if step.optional)))


def debugging(word: str) -> bool:
    return word in config.config.debug


def compile_to_loops(closed: ClosedJaxpr, name: str, donated: Sequence[bool] = (), vector_bytes: int = 64,
                     generic: bool = False, kernels: Kernels = Kernels()) -> Program:
    """All passes: a program as loops with a memory plan."""
    words = config.config.debug
    if not words <= WORDS:
        raise ValueError(f"STYRAX_DEBUG has no word {', '.join(map(repr, sorted(words - WORDS)))}; it knows "
                         f"{', '.join(sorted(WORDS))}")
    program = Program(name, closed, donated, generic, vector_bytes, kernels)
    if "jaxpr" in words:
        print(f"-- jaxpr {name}\n{program}")
    for step in PASSES:
        if generic and not step.generic or step.optional and f"-{step.name}" in words:
            continue
        progress.stage = step.name
        with made_by(step.name):
            new = step.run(program)
        if step.name in words:
            print(f"-- {step.name} {name}: {changes(program, new, step.name)} changed\n{new.show(marks=True)}")
        if "verify" in words:
            step.verify(new)
        program = new
    if "loops" in words:
        print(f"-- loops {name}\n{program}")
    return program


def changes(old: Program, new: Program, name: str) -> int:
    """How many equations a pass over jaxprs left out or made, how many units a pass over them made, or how many
    statements a pass over loops."""
    if new.statements:
        return sum(s.made_by == name for s in statements(new.statements))
    if new.units is not None:
        known = {id(unit) for unit in fuse.leaves(old.units or ())}
        return sum(id(unit) not in known for unit in fuse.leaves(new.units))
    if new.operations is not None:
        left = {id(op) for op in old.operations or ()}
        return sum(id(op) not in left for op in new.operations)
    before, after = _equations(old.closed), _equations(new.closed)
    return len(before.keys() ^ after.keys())


def _equations(closed: ClosedJaxpr) -> dict[int, JaxprEqn]:
    found = {id(eqn): eqn for eqn in closed.eqns}
    for eqn in closed.eqns:
        for inner in programs_of(eqn):
            found |= _equations(inner)
    return found
