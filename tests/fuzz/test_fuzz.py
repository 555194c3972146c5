"""The fuzzer finds what is wrong and makes it small, draws the same programs again, and a short run finds nothing."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from dataclasses import replace
from random import Random

import jax
import numpy as np
import pytest

import styrax
from styrax.core.programs import rules
from styrax.lax.elementwise.functions import mul, sin_p
from tests.fuzz import comparison, engines, programs, shrinking
from tests.fuzz.campaign import Campaign
from tests.fuzz.draw import Nothing
from tests.fuzz.generator import Control, Generator, Place, Session, free, single_row
from tests.fuzz.programs import Function, Program, Step
from tests.fuzz.table import BY_TRANSFORMATIONS, EXCLUDED, ROWS
from tests.fuzz.transformations import CONTROL
from tests.fuzz.values import Type, text
from tools.primitives import primitives

SEED, PROGRAMS = 11, 24


def test_a_short_run_finds_nothing():
    campaign = Campaign(Generator(SEED), shrink_for=5.0)
    campaign.run(PROGRAMS)
    report = campaign.report([p.name for p in primitives()])
    assert campaign.findings == [], report
    assert len(campaign.sizes) == PROGRAMS and sorted(campaign.sizes)[PROGRAMS // 2] >= 8, report
    assert campaign.skips.total() < PROGRAMS, report


def test_the_same_seed_draws_the_same_programs():
    def drawn(seed, count=6):
        generator = Generator(seed)
        return [programs.script(generator.program()) for _ in range(count)]

    assert drawn(5) == drawn(5) != drawn(6)


def test_a_run_goes_on_where_it_stopped(tmp_path):
    whole = Generator(8)
    expected = [programs.script(whole.program()) for _ in range(6)]
    first = Campaign.open(8, tmp_path)
    assert [programs.script(first.generator.program()) for _ in range(3)] == expected[:3]
    first.save()
    second = Campaign.open(8, tmp_path)
    assert [programs.script(second.generator.program()) for _ in range(3)] == expected[3:]
    assert Campaign.open(9, tmp_path).generator.index == 0


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.title)
def test_every_row_draws_a_program(row):
    program = single_row(row, 1)
    assert row.title in {step.row for step in programs.walk(program.main)}
    with engines.settings(styrax, program.x64):
        args = list(map(styrax.numpy.asarray, program.args))
        avals = styrax.make_jaxpr(programs.build(program.main, "styrax"))(*args).out_avals
    types = [program.types[name] for name in program.main.outs]  # what JAX says
    assert [(t.shape, t.dtype, t.weak) for t in types] == [(a.shape, str(a.dtype), a.weak_type) for a in avals]


@pytest.mark.parametrize("row", [row for row in ROWS if not row.needs_axis], ids=lambda row: row.title)
def test_every_row_leads_to_its_primitive(row):
    """Not each time: a transposition may leave the axes where they are. Collectives vanish with the `vmap` around."""
    drawn = (single_row(row, seed) for seed in range(1, 16))
    assert any(row.primitive in names for names in engines.equations(drawn))


def test_rows_and_transformations_lead_to_every_primitive():
    named = {p for row in ROWS for p in (row.primitive, *row.adds)} | BY_TRANSFORMATIONS
    excluded = {p for _, group in EXCLUDED.values() for p in group}
    assert {p.name for p in primitives()} - named - excluded == set()
    assert excluded - {p.name for p in primitives()} == set()


def chain() -> Program:
    """A long program with a slope of a sine in the middle."""
    f = Function(
        "inner",
        ("v2", "v3"),
        (
            Step("mul", "lax.mul({0}, {1})", ("v2", "v3"), ("v4",), single=True),
            Step("sin", "lax.sin({0})", ("v4",), ("v5",), single=True),
            Step("cos", "lax.cos({0})", ("v3",), ("v6",), single=True),
        ),
        ("v5", "v6"),
    )
    layers = (programs.Layer("jit", "jax.jit({f})"), programs.Layer("grad", "gradient({f}, 0)"))
    main = Function(
        "program",
        ("v0", "v1"),
        (
            Step("tanh", "lax.tanh({0})", ("v0",), ("v7",), single=True),
            Step("add", "lax.add({0}, {1})", ("v7", "v1"), ("v8",), single=True),
            Step("grad", "", ("v8", "v1"), ("v9",), (f,), layers),
            Step("exp", "lax.exp({0})", ("v9",), ("v10",), single=True),
        ),
        ("v7", "v10"),
    )
    rounded = Type((3,), "float32", exact=False)
    types = {f"v{i}": rounded for i in range(11)} | {"v0": Type((3,), "float32"), "v1": Type((3,), "float32")}
    return Program(main, (np.float32([0.5, 1.5, -2]), np.float32([3, 0.25, 1])), types)


def test_a_planted_mistake_is_found_and_made_small(monkeypatch):
    program = chain()
    assert engines.examine([program], Counter()) == []
    right = rules.jvps[sin_p]

    def wrong(primals, tangents, **params):
        out, slope = right(primals, tangents, **params)
        return out, mul(slope, np.float32(1.001))

    monkeypatch.setitem(rules.jvps, sin_p, wrong)
    (finding,) = engines.examine([program], Counter())
    assert finding.kind == "values"
    small = shrinking.shrink(finding, shrinking.checker(finding.mode), 20)
    rows = [step.row for step in programs.walk(small.program.main)]
    assert "sin" in rows and len(rows) <= 3 < len(list(programs.walk(program.main)))


def test_a_planted_error_is_found(monkeypatch):
    def wrong(*_, **__):
        raise TypeError("planted")

    monkeypatch.setitem(rules.jvps, sin_p, wrong)
    (finding,) = engines.examine([chain()], Counter())
    assert (finding.kind, finding.detail) == ("raises TypeError", "planted")


@pytest.mark.parametrize("name", CONTROL)
def test_control_flow_in_closed_functions_uses_nothing_from_outside(name):
    types = {"outer0": Type((), "int32", exact=True), "outer1": Type((2,), "bool", exact=True),
             "outer2": Type((2,), "float32", exact=True)}
    drawn = 0
    for seed in range(12):
        session = Session(Generator(seed), Random(seed))
        session.types.update(types)
        control = Control(session, dict(types), Place(depth=1, closes=False), [Type((2,), "float32")])
        try:
            layer, functions, _ = control.make(name)
        except Nothing:
            continue
        drawn += 1
        assert not types.keys() & {*layer.uses, *(v for f in functions for s in f.steps for v in free(s))}
    assert drawn


def test_programs_are_cut_around_results_that_jax_refused():
    program = chain()
    known = {name: t for name, t in program.types.items() if name != "v8"}
    cuts = list(shrinking.cuts(replace(program, types=known)))
    assert [set(cut.main.params) - {"v0", "v1"} for cut in cuts] == [{"v10"}, {"v9"}, {"v7"}]


def test_a_script_runs_alone():
    done = subprocess.run([sys.executable, "-c", programs.script(chain())], capture_output=True, text=True, check=True)
    assert done.stdout.count("[") == 4


def test_values_print_as_they_are():
    for x in (
        np.float32([np.nan, -np.inf, -0.0]),
        np.array([complex(np.nan, -0.0)], np.complex64),
        np.array([3, -8], "int4"),
        np.array(2**64 - 1, np.uint64),
        np.zeros((0, 2), jax.numpy.bfloat16),
    ):
        again = eval(text(x), {"np": np, "jnp": jax.numpy})
        assert (again.dtype, again.shape, again.tobytes()) == (x.dtype, x.shape, x.tobytes())


def test_tolerances_come_from_the_program():
    """A difference of what rounding may move is no finding; one above it is."""
    main = Function(
        "program",
        ("v0",),
        (
            Step("exp", "lax.exp({0})", ("v0",), ("v1",), single=True),
            Step("sub", "lax.sub({0}, {1})", ("v1", "v0"), ("v2",), single=True),
            Step("sin", "lax.sin({0})", ("v2",), ("v3",), single=True),
        ),
        ("v3",),
    )
    rounded = Type((1,), "float32", exact=False)
    program = Program(
        main, (np.float32([9.0]),), {"v0": Type((1,), "float32"), **{f"v{i}": rounded for i in (1, 2, 3)}}
    )
    (theirs,) = engines.jitted(jax, [program])
    assert not isinstance(theirs, Exception)
    for moved, expected in ((1e-4, None), (0.3, "values")):
        ours = [comparison.Leaf(theirs[0].value + np.float32(moved), theirs[0].weak)]
        found = engines.difference(program, ours, theirs, Counter())
        assert (found and found[0]) == expected
    weak = [replace(theirs[0], weak=True)]
    assert engines.difference(program, weak, theirs, Counter()) == ("weak", "result 0: weak type True, not False")


def test_terms_that_cancel():
    """A rest that a product leaves which is rounded with its sum is no finding; what strict numerics differ in is."""
    main = Function(
        "program",
        ("v0", "v1", "v2"),
        (
            Step("add", "{0} * -{1} + ({2} * {1} + {0} * {1})", ("v0", "v1", "v2"), ("v3",), single=True),
        ),
        ("v3",),
    )
    given, rounded = Type((9,), "float32"), Type((9,), "float32", exact=False)
    xs = np.linspace(0.1, 1.7, 9, dtype=np.float32)
    program = Program(main, (xs, xs[::-1] / 3, np.zeros(9, np.float32)), {
        **{f"v{i}": given for i in range(3)}, "v3": rounded})
    (theirs,), (ours,) = engines.jitted(jax, [program]), engines.together(styrax, [program])()
    assert not isinstance(theirs, Exception) and not isinstance(ours, Exception)
    assert not theirs[0].value.any() and ours[0].value.any()
    skips: Counter[str] = Counter()
    assert engines.difference(program, ours, theirs, skips) is None
    assert skips["terms that cancel, of products rounded with their sums"] == 1
    more = [replace(ours[0], value=ours[0].value + np.float32(1e-4))]
    found = engines.difference(program, more, theirs, Counter())
    assert found and found[0] == "values"
