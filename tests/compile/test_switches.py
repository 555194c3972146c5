"""`STYRAX_DEBUG`: every optional pass leaves marks, which are gone where it is switched off; results stay right.

The marks of a pass over loops are the statements that carry its name; those of a pass over jaxprs are equations that it
left out or made, and those of a pass over units the units that it made.
"""

from __future__ import annotations

import re

import jax as real
import numpy as np
import pytest

import styrax
from styrax.compile import pipeline
from styrax.compile.ir.loopir import statements
from styrax.core.settings.config import states

rng = np.random.default_rng(0)


def array(*shape):
    return rng.normal(size=shape).astype(np.float32)


def called(j):
    return lambda x: j.jit(j.numpy.sin)(x) + 1


def invariant(j):
    return lambda w, x: j.lax.scan(lambda c, _: (j.numpy.tanh(c @ (w @ w)), None), x, None, length=5)[0]


def states_of(j):
    return lambda w, h: j.lax.fori_loop(0, 5, lambda _, c: j.numpy.tanh(w @ c), h)


def rows(j):
    return lambda w, xs: j.lax.scan(lambda c, x: (j.numpy.tanh(c + x @ w), None), j.numpy.zeros(5), xs)[0]


def twice(j):
    return lambda x: j.numpy.sin(x) * 2 + j.numpy.sin(x) * 3


def unused(j):
    def f(x):
        j.numpy.cos(x)
        return x + 1

    return f


def rolled(j):
    return lambda x: j.numpy.roll(x, 1)


def rolled_rows(j):
    return lambda x: j.numpy.roll(x, 1, 0)


def flagged(j):
    return lambda x: j.numpy.where(x[0] > 0, j.numpy.exp(x), x)


def product(j):
    return lambda a, b: a @ b


def turned_product(j):
    return lambda a, b: (a.T @ b).T


def transposed(j):
    return lambda x: x.T + 1


def records(j):
    return lambda x, y, z: j.numpy.stack([x, y, z], 1)


def rows_of_their_own(j):
    return lambda x: j.numpy.stack([x * 2, j.numpy.sin(x)])


def large(j):
    return lambda x: j.numpy.sin(x) * x


def scalars(j):
    return lambda x: j.lax.fori_loop(0, 7, lambda _, c: (j.numpy.sin(c[0]), j.numpy.sin(c[1])), (x[0], x[1]))


def tail_of_rows(j):
    return lambda x: j.numpy.tanh(x.sum(1))


def short_rows(j):
    return lambda x: x.max(1)


def pendulum(j):
    turn = lambda _, y: y + 0.1 * j.numpy.stack([y[1], -j.numpy.sin(y[0])])
    return lambda y: j.lax.fori_loop(0, 7, turn, y)


def added_up(j):
    return lambda xs, ys: j.lax.scan(lambda c, t: (c + t[0].T @ t[1], None), j.numpy.zeros((6, 5)), (xs, ys))[0]


def total(j):
    return lambda x: j.numpy.sin(x).sum()


def turns(j):
    return lambda x: j.lax.fori_loop(0, 7, lambda _, c: c * 0.5 + 0.25, x)


def slope_of_places(j):
    return lambda x: j.grad(lambda x: j.lax.fori_loop(1, 9, lambda i, x: x.at[i].add(0.5 * x[i - 1]), x).sum())(x)


PROGRAMS = {
    "accumulation": (slope_of_places, array(9)),
    "inline": (called, array(8)),
    "licm": (invariant, array(6, 6) * 0.1, array(6)),
    "packing": (states_of, array(6, 6), array(6)),
    "row-products": (rows, array(4, 5), array(9, 4)),
    "sinking": (added_up, array(9, 4, 6), array(9, 4, 5)),
    "transpose-folding": (turned_product, array(20, 24), array(20, 32)),
    "cse": (twice, array(8)),
    "dce": (unused, array(8)),
    "peeling": (rows_of_their_own, array(40)),
    "split-reduction": (total, array(200000)),
    "loop-distribution": (tail_of_rows, array(40, 20)),
    "transposition": (transposed, array(64, 48)),
    "interleaving": (records, array(100), array(100), array(100)),
    "register-blocking": (product, array(24, 20), array(20, 32)),
    "multi-row-reduction": (product, array(24, 100), array(100)),
    "loop-unswitching": (flagged, array(1000)),
    "index-set-splitting": (rolled, array(1000)),
    "address-selection": (rolled_rows, array(40, 100)),
    "outer-loop-vectorisation": (short_rows, array(100, 10)),
    "unroll-and-jam": (product, array(24, 20), array(20, 32)),
    "parallelize": (large, array(1000, 1000)),
    "scalar-replacement": (pendulum, array(2)),
    "slp": (scalars, array(2)),
    "interchange": (turns, array(1000)),
}
OPTIONAL = [step for step in pipeline.PASSES if step.optional]
BEFORE_LOOPS = [step.name for step in OPTIONAL if step.verify is not pipeline._sound_loops]


def test_every_optional_pass_has_a_program():
    assert set(PROGRAMS) == {step.name for step in OPTIONAL} | {"interchange"}


def compiled(name, words):
    """A program's result, and how many marks the pass `name` left, compiled with `words` in `STYRAX_DEBUG`."""
    make, *args = PROGRAMS[name]
    marks = 0
    changes = pipeline.changes

    def counted(old, new, step):
        nonlocal marks
        marks += changes(old, new, step) if step == name else 0
        return changes(old, new, step)

    with states["styrax_debug"](",".join(["verify", *words])), pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipeline, "changes", counted)
        executable = styrax.jit(make(styrax)).lower(*args).compile()
        out = executable(*args)
    if name not in BEFORE_LOOPS:
        marks = sum(s.made_by == name for s in statements(executable.runtime_executable().program.statements))
    return out, marks


@pytest.mark.parametrize("name", PROGRAMS)
def test_marks_vanish_and_results_stay(name, capsys):
    make, *args = PROGRAMS[name]
    want = real.tree.leaves(real.jit(make(real))(*args))
    usual, marks = compiled(name, [name] if name in BEFORE_LOOPS else [])
    without, none = compiled(name, [f"-{name}", name] if name in BEFORE_LOOPS else [f"-{name}"])
    assert marks > 0 and none == 0
    for got in (usual, without):
        for x, y in zip(styrax.tree.leaves(got), want, strict=True):
            np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=2e-5, atol=1e-5)


@pytest.mark.parametrize("name", [step.name for step in pipeline.PASSES])
def test_a_pass_prints_what_it_changed(name, capsys):
    make, *args = PROGRAMS.get(name, PROGRAMS["unroll-and-jam"])
    with states["styrax_debug"](name):
        styrax.jit(make(styrax)).lower(*args).compile()
    heads = [line for line in capsys.readouterr().out.split("\n") if line.startswith("-- ")]
    assert heads and all(re.fullmatch(rf"-- {name} \S+: \d+ changed", line) for line in heads)
    if name in PROGRAMS or name == "schedule":
        assert any(not line.endswith(" 0 changed") for line in heads)


def test_statements_name_the_pass_that_made_them(capsys):
    make, *args = PROGRAMS["unroll-and-jam"]
    with states["styrax_debug"]("unroll-and-jam"):
        styrax.jit(make(styrax)).lower(*args).compile()
    printed = capsys.readouterr().out
    assert "  ; unroll-and-jam\n" in printed and "  ; lower\n" in printed


@pytest.mark.parametrize("word, shown", [("jaxpr", "sin"), ("loops", "for i"), ("llvm", "define"), ("asm", ".text")])
def test_stages_are_printed(word, shown, capsys):
    make, *args = PROGRAMS["cse"]
    with states["styrax_debug"](word):
        styrax.jit(make(styrax)).lower(*args).compile()
    printed = capsys.readouterr().out
    assert f"-- {word} " in printed and shown in printed


@pytest.mark.parametrize("word", ["slpp", "-verify", "-lower", "schedule,nonsense", "interchange"])
def test_other_words_are_refused(word):
    make, *args = PROGRAMS["cse"]
    refused = word.split(",")[-1]
    message = f"STYRAX_DEBUG has no word '{refused}'; it knows .*slp"
    with states["styrax_debug"](word), pytest.raises(ValueError, match=message):
        styrax.jit(make(styrax)).lower(*args).compile()


def test_a_refused_word_is_named_by_eager_operations():
    with states["styrax_debug"]("slpp"), pytest.raises(ValueError, match="STYRAX_DEBUG has no word 'slpp'"):
        styrax.numpy.sin(np.ones(37, np.float32))
