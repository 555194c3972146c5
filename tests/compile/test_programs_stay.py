"""Passes give new programs: what they are given stays as it is, so that a pass run again gives the same again."""

from __future__ import annotations

import re

import jax as real
import numpy as np
import pytest

import styrax
from styrax.compile.ir.loopir import Buffer, BufferKind, made_by
from styrax.compile.pipeline import PASSES
from styrax.compile.program import Program
from tests.compile.test_switches import PROGRAMS


def stored_twice(j):
    """Two values that only lowering sees to be one: fusion stores it once."""
    def f(x):
        y, z = j.numpy.exp(x), j.numpy.exp(x.reshape(5, 8)).reshape(40)
        return y * 2 + y * 3, z * 5 + z * 7, z

    return f


def carried(j):
    def f(x):
        y, z = j.numpy.exp(x), j.numpy.exp(x.reshape(5, 8)).reshape(40)
        return y * 2 + y * 3, j.lax.fori_loop(0, 3, lambda i, c: j.numpy.sort(c) * 2, z), z * 5 + z * 7

    return f


X = np.linspace(-1, 1, 40, dtype=np.float32)
CASES = {**PROGRAMS, "stored twice": (stored_twice, X), "carried": (carried, X)}


def test_buffers_are_not_changed():
    buffer = Buffer("t0", np.dtype("float32"), 8, BufferKind.TEMP)
    for name in (*Buffer.__slots__, "alias", "offset"):
        with pytest.raises(AttributeError, match=f"a buffer is not changed: {name} of t0"):
            setattr(buffer, name, None)


def described(program: Program) -> tuple[object, ...]:
    placement = program.placement
    return (program.show(), {a.name: b.name for a, b in placement.aliases.items()},
            {b.name: offset for b, offset in placement.offsets.items()}, placement.workspace, program.work)


def renamed(text: str) -> str:
    """The text with variables, accumulators and temporaries numbered in the order in which they stand there."""
    names: dict[str, str] = {}
    return re.sub(r"\b[iratws]\d+\b", lambda m: names.setdefault(m[0], f"{m[0][0]}_{len(names)}"), text)


@pytest.mark.parametrize("name", CASES)
def test_a_pass_run_twice_gives_the_same(name):
    make, *args = CASES[name]
    program = Program(name, styrax.make_jaxpr(make(styrax))(*args), (True,) * len(args))
    merged = 0
    for step in PASSES:
        before = described(program)
        with made_by(step.name):
            first, second = step.run(program), step.run(program)
        assert described(program) == before, f"{step.name} changed the program that it was given"
        (text, *rest), (again, *others) = described(first), described(second)
        assert rest == others, step.name
        assert renamed(str(text)) == renamed(str(again)), step.name
        program = first
        merged += step.name == "fuse" and len(first.placement.aliases)
    assert bool(merged) == (name in ("stored twice", "carried"))


@pytest.mark.parametrize("name", ["stored twice", "carried"])
def test_what_is_stored_once_is_read_under_both_names(name):
    make, x = CASES[name]
    for got, want in zip(styrax.jit(make(styrax))(x), real.jit(make(real))(x), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5)
