"""Each pass of the compiler on its own: text in, text out. And whole programs, in `pipeline/`.

A file `<pass>/<case>.txt` holds a comment, the program that the pass is given, a line `---`, and the expectations.
Passes over jaxprs, and those that make loops of them, are given a jaxpr in its lossless text form; passes over loops,
loops as `compile.ir.parse` reads them. Expectations are `CHECK: text` (in this order), `NOT: text` (nowhere),
`COUNT n: text` (exactly n lines), and of the memory plan `WORKSPACE bytes`, `SHARED a b` (the first has the second's
memory; `none`: no buffer has another's), and `PLAN NO COPY IN LOOPS` (the two sides of every copy inside a loop became
one buffer).
"""

from __future__ import annotations

from pathlib import Path

import pytest

import styrax.debug
import styrax.numpy
import styrax.transforms.checkpoint  # noqa: F401  (these make the primitives of the texts known)
from styrax.compile.ir import parse as loops
from styrax.compile.ir.loopir import BufferKind, Copy, Loop, While, made_by, statements
from styrax.compile.lowering.builder import Builder
from styrax.compile.pipeline import PASSES, compile_to_loops
from styrax.compile.program import Program
from styrax.core.programs.jaxpr import ClosedJaxpr, Jaxpr
from styrax.core.programs.serial import parse

HERE = Path(__file__).parent
FILES = sorted(HERE.glob("*/*.txt"))
NAMES = [step.name for step in PASSES]
ON_LOOPS = NAMES[NAMES.index("schedule") + 1:]
OVER_UNITS = NAMES[NAMES.index("peeling"):NAMES.index("schedule") + 1]
FEWEST = 5  # files of a pass


def program_of(text, name, given_loops):
    if not given_loops:
        return Program(name, parse("\n".join(line for line in text.split("\n") if not line.startswith("#"))))
    b = Builder()
    body, buffers = loops.parse(text, b)
    kinds = {k: [buffer for buffer in buffers.values() if buffer.kind is k] for k in BufferKind}
    return Program(name, ClosedJaxpr(Jaxpr([], [], [], []))).replace(
        builder=b, statements=body, inputs=kinds[BufferKind.ARG], outputs=kinds[BufferKind.OUT])


def after(name, program):
    """The program after a pass; of those that make loops of operations, with the passes from lowering on."""
    run = [step for step in PASSES if step.name == name]
    if name in OVER_UNITS:
        run = list(PASSES[NAMES.index("lower"):NAMES.index(name) + 1])
    for step in run:
        with made_by(step.name):
            program = step.run(program)
        step.verify(program)
    return program


@pytest.mark.parametrize("path", FILES, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_text(path):
    name = path.parent.name
    text, expectations = path.read_text().split("\n---\n")
    given = program_of(text, path.stem, name in ON_LOOPS)
    before = given.show()
    program = compile_to_loops(given.closed, path.stem) if name == "pipeline" else after(name, given)
    assert given.show() == before, "a pass changed the program that it was given"
    check(program, expectations)


def check(program, expectations):
    lines = str(program).split("\n")
    at = 0
    for wanted in expectations.strip().split("\n"):
        kind, _, what = wanted.partition(": ")
        if kind == "CHECK":
            found = [k for k in range(at, len(lines)) if what in lines[k]]
            assert found, f"{what!r} does not follow line {at} of\n{program}"
            at = found[0]
        elif kind == "NOT":
            assert not any(what in line for line in lines), f"{what!r} stands in\n{program}"
        elif kind.startswith("COUNT"):
            count = sum(what in line for line in lines)
            assert count == int(kind.split()[1]), f"{count} lines have {what!r} in\n{program}"
        elif kind.startswith("WORKSPACE"):
            assert program.placement.workspace == int(kind.split()[1])
        elif kind.startswith("SHARED"):
            shared = [[b.name, program.placement.root(b).name] for b in program.placement.aliases]
            assert shared == ([] if kind == "SHARED none" else [kind.split()[1:]]), shared
        elif kind.startswith("HELD"):
            held = [[b.name, host.name] for b, host in program.placement.hosts.items()]
            assert held == ([] if kind == "HELD none" else [kind.split()[1:]]), held
        else:
            assert wanted == "PLAN NO COPY IN LOOPS"
            inside = [s for s in statements(program.statements) if isinstance(s, (Loop, While))]
            left = [c for s in inside for c in statements([s]) if isinstance(c, Copy)
                    and program.placement.root(c.target) is not program.placement.root(c.source)]
            assert not left, f"{left} in\n{program}"


@pytest.mark.parametrize("name", NAMES)
def test_every_pass_has_its_folder(name):
    assert len(list((HERE / name).glob("*.txt"))) >= FEWEST
