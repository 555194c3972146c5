"""What the passes' docstrings show is what the passes do: the block after "before" becomes the block after it."""

from __future__ import annotations

import re
from types import ModuleType

import numpy as np
import pytest

import styrax
import styrax.numpy as jnp
from styrax import lax
from styrax.compile.ir.loopir import made_by
from styrax.compile.loops import (
    address_selection,
    coalescing,
    fuse,
    index_set_splitting,
    loop_unswitching,
    memory,
    multi_row_reduction,
    nest,
    outer_loop_vectorisation,
    parallelize,
    register_blocking,
    schedule,
    slp,
    transposition,
    unroll_and_jam,
)
from styrax.compile.lowering import interchange, lower
from styrax.compile.pipeline import PASSES, compile_to_loops
from styrax.compile.program import Program
from styrax.core.settings.config import states
from tests.compile.test_passes import after, program_of

FLOATS = "buffer {}: float32 x {}{}\n"
DECLARATIONS = {
    address_selection: FLOATS.format("arg0", 6400, " arg") + FLOATS.format("out0", 3200, " out"),
    index_set_splitting: FLOATS.format("arg0", 1000, " arg") + FLOATS.format("out0", 1000, " out"),
    loop_unswitching: FLOATS.format("arg0", 1000, " arg") + FLOATS.format("arg1", 1, " arg") + FLOATS.format(
        "out0", 1000, " out"),
    unroll_and_jam: FLOATS.format("arg0", 2080, " arg") + FLOATS.format("arg1", 1536, " arg") + FLOATS.format(
        "out0", 3120, " out"),
    outer_loop_vectorisation: FLOATS.format("arg0", 9000, " arg") + FLOATS.format("out0", 9000, " out"),
    parallelize: FLOATS.format("arg0", 4096, " arg") + FLOATS.format("out0", 4096 * 4096, " out"),
    slp: FLOATS.format("out0", 1, " out") + FLOATS.format("out1", 1, " out") + "k0 := 1.0:float32\nk1 := 2.0:float32\n",
    memory: FLOATS.format("arg0", 64, " arg") + FLOATS.format("c0", 64, "") + FLOATS.format("t0", 64, "")
    + FLOATS.format("out0", 64, " out"),
}
NAMES = {step.run.__module__: step.name for step in PASSES}


def blocks(module: ModuleType) -> list[str]:
    """The indented blocks of a module's docstring from "before" on."""
    text = (module.__doc__ or "").lower().find("before")
    found, lines = [[]], (module.__doc__ or "")[text:].split("\n")
    assert text >= 0
    for line in lines:
        if line.startswith("    "):
            found[-1].append(line[4:])
        elif found[-1]:
            found.append([])
    return ["\n".join(block) for block in found if block]


@pytest.mark.parametrize("module", DECLARATIONS, ids=lambda m: m.__name__.rpartition(".")[2])
def test_loops(module):
    before, wanted = blocks(module)
    given = DECLARATIONS[module]
    program = after(NAMES[module.__name__], program_of(given + before, "docstring", True))
    first = len(re.findall(":=", given))
    shown = "\n".join("\n".join(s.lines()) for s in program.statements[first:])
    for buffer in program.builder.buffers:
        shown = re.sub(rf"\b{buffer.name}\b", program.placement.root(buffer).name, shown)
    assert shown == wanted


def test_from_a_jaxpr_to_loops():
    """One program through the passes that make loops of it."""
    closed = styrax.make_jaxpr(lambda x: x / jnp.broadcast_to(lax.reduce_sum_p.bind(
        x, axes=(1,), out_sharding=None)[:, None], (20, 30)))(np.ones((20, 30), np.float32))
    program = Program("docstring", closed)
    for step in PASSES:
        module = {"lower": lower, "fuse": fuse, "nest": nest, "schedule": schedule}.get(step.name)
        if module is not None:
            assert blocks(module)[0] == program.show()
        with made_by(step.name):
            program = step.run(program)
        if module is not None:
            assert blocks(module)[1] == program.show()


CHOICES = {
    transposition: ("transposition", lambda x: x.T, (64, 48)),
    register_blocking: ("register-blocking", jnp.matmul, (24, 20), (20, 32)),
    multi_row_reduction: ("multi-row-reduction", jnp.matmul, (24, 100), (100,)),
}


@pytest.mark.parametrize("module", CHOICES, ids=lambda m: m.__name__.rpartition(".")[2])
def test_choices_for_nests(module):
    name, f, *shapes = CHOICES[module]
    program = Program("docstring", styrax.make_jaxpr(f)(*[np.ones(shape, np.float32) for shape in shapes]))
    for step in PASSES:
        if step.name == name:
            assert blocks(module)[0] == program.show()
            assert blocks(module)[1] == step.run(program).show()
            return
        program = step.run(program)


def test_coalescing():
    program = Program("docstring", styrax.make_jaxpr(lambda x: jnp.pad(x, ((1, 0), (0, 0))))(
        np.ones((63, 3), np.float32)))
    for step in PASSES:
        if step.name == "nest":
            assert blocks(coalescing) == [program.show(), step.run(program).show()]
            return
        program = step.run(program)


def test_interchange():
    before, wanted = blocks(interchange)

    def turns(x):
        return lax.scan(lambda c, _: (c * 0.5 + 0.25, None), x, None, length=7)[0]

    for words, text in (("-interchange", before), ("", wanted)):
        with states["styrax_debug"](words):
            program = compile_to_loops(styrax.make_jaxpr(turns)(np.ones(1000, np.float32)), "docstring")
        assert program.show() == text


def test_every_pass_shows_before_and_after():
    for module in (*DECLARATIONS, *CHOICES, lower, fuse, nest, schedule, interchange):
        assert len(blocks(module)) == 2
    jaxprs = {step.run.__closure__[0].cell_contents.__globals__["__doc__"] for step in PASSES
              if step.run.__module__ == "styrax.compile.pipeline"}
    assert len(jaxprs) == 9 and all("→" in doc and "\n    " in doc for doc in jaxprs)
