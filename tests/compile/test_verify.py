"""What the verifier of loops refuses, and that passes' results with a fault put into them are refused."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

import styrax.numpy  # noqa: F401  (its import makes all primitives known)
from styrax.compile.ir.loopir import (
    STATEMENTS,
    Accumulator,
    Buffer,
    BufferKind,
    Close,
    Copy,
    Declare,
    Let,
    Loop,
    LoopKind,
    Open,
    Pack,
    Set,
    Statement,
    Store,
    Together,
    rewrite,
    statements,
)
from styrax.compile.ir.parse import parse
from styrax.compile.ir.verify import LoopIRError, verify
from styrax.compile.lowering.builder import Builder
from styrax.compile.pipeline import PASSES
from tests.compile.test_passes import FILES, ON_LOOPS, after, program_of

BUFFERS = """
buffer arg0: float32 x 64 arg
buffer arg1: int64 x 64 arg
buffer t0: float32 x 64
buffer t1: float32 x 64
buffer t2: float32 x 64
buffer t9: float32 x 63
buffer out0: float32 x 64 out
"""

WRONG = {
    "undefined variable": ("for i0 < 64:\n  out0[i0] = 1.0:float32\nout0[i0] = 2.0:float32", "i0 is not defined here"),
    "undefined name": ("if gt(arg0[0], 0.0:float32):\n  v0 := arg0[1]\nout0[0] = v0", "v0 is not defined here"),
    "name of another branch": (
        "if gt(arg0[0], 0.0:float32):\n  v0 := arg0[1]\nelse:\n  out0[0] = v0", "v0 is not defined here"),
    "name of a loop's head": (
        "while:\n  v0 := arg0[0]\n  holds gt(v0, 0.0:float32)\ndo:\n  out0[0] = v0\nout0[1] = v0",
        "v0 is not defined here"),
    "beyond the end": ("for i0 < 65:\n  out0[i0] = 1.0:float32", "reaches from 0 to 64, outside of 64 elements"),
    "before the start": ("for i0 < 64:\n  out0[(-1 + i0)] = 1.0:float32", "reaches from -1 to 62, outside"),
    "reads beyond the end": ("for i0 < 33:\n  out0[i0] = arg0[(2*i0)]", "arg0.*reaches from 0 to 64, outside"),
    "reads backwards from beyond": ("for i0 < 64:\n  out0[i0] = arg0[(64 + -1*i0)]", "reaches from 1 to 64, outside"),
    "writes an argument": ("arg0[0] = 1.0:float32", "arg0 belongs to the caller"),
    "copies into an argument": ("copy arg0[0] <- out0[0] x 64", "arg0 belongs to the caller"),
    "exchanges an argument": ("for i0 < 3:\n  exchange arg0 with t0", "the program's own"),
    "exchanges buffers that differ": ("for i0 < 3:\n  exchange out0 with t9", "pairs of one size and kind"),
    "exchanges a buffer twice": ("for i0 < 3:\n  exchange out0 with t0, out0 with t1", "pairs of one size and kind"),
    "exchanges in a circle": ("for i0 < 3:\n  exchange t0 with t1, t1 with t0", "pairs of one size and kind"),
    "exchanges four": ("for i0 < 3:\n  exchange out0 with t0, t0 with t1, t1 with t2", "more than three memories"),
    "exchanges in a parallel loop": ("for i0 < 64 parallel:\n  exchange out0 with t0", "parallel loop exchange"),
    "copies beyond the end": ("copy out0[1] <- arg0[0] x 64", "reaches from 1 to 64, outside"),
    "copies from beyond the end": ("copy out0[0] <- arg0[32] x 33", "reaches from 32 to 64, outside"),
    "open and not closed": ("open a0 = 0.0:float32\nfor r0 < 64:\n  a0 add= arg0[r0]", "opened and not closed"),
    "used before it is closed": ("open a0 = 0.0:float32\nfor r0 < 64:\n  a0 add= arg0[r0]\nout0[0] = a0\nclose a0",
                                 "a0 is not defined here"),
    "folded after it is closed": ("open a0 = 0.0:float32\nfor r0 < 64:\n  a0 add= arg0[r0]\nclose a0\na0 add= arg0[0]",
                                  "the accumulator is not open"),
    "closed twice": ("open a0 = 0.0:float32\nfor r0 < 64:\n  a0 add= arg0[r0]\nclose a0\nclose a0",
                     "the accumulator is not open"),
    "assigned, not declared": ("v0 := 1.0:float32\nv0 = 2.0:float32", "v0 is assigned, but not declared"),
    "lanes branch": ("for i0 < 64 vector(8):\n  if gt(arg0[i0], 0.0:float32):\n    out0[i0] = arg0[i0]",
                     "branches of their own"),
    "lanes branch by their sums": (
        "for i0 < 8 vector(8):\n  open a0 = 0.0:float32\n  for i1 < 8:\n    a0 add= arg0[(i0 + 8*i1)]\n  close a0\n"
        "  if gt(a0, 0.0:float32):\n    out0[i0] = a0", "branches of their own"),
    "iterations write one place": ("for i0 < 64 parallel:\n  out0[0] = arg0[i0]", "write one place"),
    "iterations write one place inside": (
        "for i0 < 64 parallel:\n  for i1 < 64:\n    out0[i1] = arg0[i0]", "write one place"),
    "iterations copy to one place": ("for i0 < 2 parallel:\n  copy out0[0] <- arg0[(32*i0)] x 32", "write one place"),
    "iterations fold into one accumulator": (
        "open a0 = 0.0:float32\nfor i0 < 64 parallel:\n  a0 add= arg0[i0]\nclose a0", "fold into one accumulator"),
    "iterations assign one scalar": ("var s0 = 0.0:float32\nfor i0 < 64 parallel:\n  s0 = arg0[i0]", "assign s0"),
    "place of another type": ("out0[arg1[0]] = 1.0:float32", "is a place, but no index"),
    "read from a place of another type": ("out0[0] = arg0[arg1[0]]", "is a place, but no index"),
    "pack of one": ("v0 := arg0[0]\npack sin(v0)", "a pack is of several equal functions"),
    "pack of two functions": ("v0 := arg0[0]\npack sin(v0), cos(v0)", "a pack is of several equal functions"),
    "rows left at the end": ("for i0 < 63 jammed(2):\n  out0[i0] = 1.0:float32", "left at the end are not run"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_programs_are_refused(name):
    text, message = WRONG[name]
    body, _ = parse(BUFFERS + text, Builder())
    with pytest.raises(LoopIRError, match=message):
        verify(body, name)


RIGHT = {
    "last element": "for i0 < 64:\n  out0[(63 + -1*i0)] = arg0[i0]",
    "guarded": "for i0 < 64:\n  if lt(i0, 32):\n    out0[(32 + i0)] = 1.0:float32",
    "iterations of their own": "for i0 < 64 parallel:\n  v0 := arg0[i0]\n  out0[i0] = v0",
    "iterations with accumulators": "for i0 < 64 parallel:\n  open a0 = 0.0:float32\n  for r0 < 64:\n"
                                    "    a0 add= arg0[r0]\n  close a0\n  out0[i0] = a0",
    "iterations with scratch": "for i0 < 64 parallel:\n  scratch w0: float32[1]\n  w0[0] = arg0[i0]\n"
                               "  out0[i0] = w0[0]",
    "steps and what is left": "for i0 < 63 jammed(2):\n  out0[(1 + i0)] = 1.0:float32\nrest:\n  out0[i0] = 1.0:float32",
    "no iterations": "for i0 < 0:\n  out0[(64 + i0)] = 1.0:float32",
    "whole copy": "copy out0[0] <- arg0[0] x 64",
    "empty copy": "copy out0[64] <- arg0[0] x 0",
}


@pytest.mark.parametrize("name", RIGHT)
def test_right_programs_are_not(name):
    verify(parse(BUFFERS + RIGHT[name], Builder())[0])


def test_what_text_cannot_say():
    """Programs that no text stands for: kinds outside of their enumerations, one variable of two loops."""
    b = Builder()
    out = Buffer("out0", b.const(0.0, "float32").dtype, 64, BufferKind.OUT)
    i, one = b.loop_var(8), b.const(1.0, "float32")
    store = Store(out, i, one)
    x = b.arena.unique("get", one.dtype, "x")
    wrong = [
        ([Loop(i, 8, [store], "sideways")], "is no kind of loop"),
        ([Loop(i, 8, [store], LoopKind.SERIAL, rest=[])], "jammed loops alone have a rest"),
        ([Loop(i, 8, [store], LoopKind.JAMMED, 2)], "jammed loops alone have a rest"),
        ([Loop(i, 8, [Loop(i, 8, [store])])], "is another loop's already"),
        ([Store(Buffer("x", one.dtype, 64, "somewhere"), b.int(0), one)], "is no kind of buffer"),
        ([Let(x, one), Let(x, one)], "x is defined twice"),
        ([Declare(x, one), Let(x, one)], "x is defined twice"),
        ([Set((x,), (one,))], "x is assigned, but not declared"),
        ([Close(Accumulator((x,), (one,), lambda a, v: a, "add"))], "the accumulator is not open"),
        ([Copy(out, b.int(0), Buffer("t", one.dtype, 64, BufferKind.TEMP), b.int(0), i)], "i0 is not defined here"),
    ]
    for body, message in wrong:
        with pytest.raises(LoopIRError, match=message):
            verify(body)


# -- mutations: each breaks one invariant of a sound program; None where the program has nothing for it to break -----
def without_first(kind):
    def mutate(body):
        first = next((s for s in statements(body) if isinstance(s, kind)), None)
        return None if first is None else rewrite(body, lambda s: [] if s is first else [s])

    return mutate


def undefined(body):
    """The first scalar or place is one that nothing defines."""
    first = next((s for s in statements(body) if isinstance(s, Store)), None)
    if first is None:
        return None
    stray = first.value.arena.unique("get", first.value.dtype, "stray")
    return rewrite(body, lambda s: [Store(s.buffer, s.offset, stray)] if s is first else [s])


def shifted(body):
    """A place beyond the end of its buffer, where it is written for certain."""
    guarded = {s for outer in statements(body) if not isinstance(outer, Loop | Together) or isinstance(outer, Loop)
               and outer.extent == 0 for inner in outer.bodies() for s in statements(inner)}
    first = next((s for s in statements(body) if isinstance(s, Store) and isinstance(s.buffer.size, int)
                  and s not in guarded and s.offset.bounds[1] < 1 << 40), None)
    if first is None:
        return None
    beyond = first.offset.arena.iadd(first.offset, first.buffer.size)
    return rewrite(body, lambda s: [Store(s.buffer, beyond, s.value)] if s is first else [s])


def one_place(body):
    """A loop whose iterations share what they write."""
    first = next((s for s in statements(body) if isinstance(s, Loop) and any(
        isinstance(t, Store) and t.buffer.size != 1 and t.buffer.kind is not BufferKind.SCRATCH for t in s.body)), None)
    if first is None:
        return None
    stores = [Store(s.buffer, s.value.arena.int(0), s.value) if isinstance(s, Store) else s for s in first.body]
    return rewrite(body, lambda s: [first.replace(body=stores, parallel=True)] if isinstance(s, Loop)
                   and s.var is first.var else [s])


def overwritten(body):
    """A store into what belongs to the caller."""
    first = next((s for s in statements(body) if isinstance(s, Store)), None)
    if first is None:
        return None
    arg = Buffer("arg9", first.buffer.dtype, first.buffer.size, BufferKind.ARG)
    return rewrite(body, lambda s: [Store(arg, s.offset, s.value)] if s is first else [s])


def lonely(body):
    first = next((s for s in statements(body) if isinstance(s, Pack)), None)
    return None if first is None else rewrite(body, lambda s: [Pack(s.nodes[:1])] if s is first else [s])


def rest_forgotten(body):
    first = next((s for s in statements(body) if isinstance(s, Loop) and s.rest), None)
    return None if first is None else rewrite(body, lambda s: [s.replace(rest=[])] if isinstance(s, Loop)
                                              and s.var is first.var else [s])


MUTATIONS = {
    "a close is lost": without_first(Close),
    "an opening is lost": without_first(Open),
    "a definition is lost": without_first(Let),
    "a declaration is lost": without_first(Declare),
    "a name is undefined": undefined,
    "a place is shifted": shifted,
    "iterations write one place": one_place,
    "an argument is written": overwritten,
    "a pack is of one": lonely,
    "the rest is forgotten": rest_forgotten,
}
SCHEDULED = ["schedule", *ON_LOOPS]


def results():
    for path in FILES:
        if path.parent.name in SCHEDULED:
            given = program_of(path.read_text().split("\n---\n")[0], path.stem, path.parent.name in ON_LOOPS)
            yield path, after(path.parent.name, given)


def test_faults_put_into_results_are_noticed():
    """Each mutation of each pass's results; and every pass is hit by several, every mutation hits something."""
    hit: set[tuple[str, str]] = set()
    unnoticed = []
    for (path, program), (name, mutate) in itertools.product(results(), MUTATIONS.items()):
        wrong = mutate(program.statements)
        if wrong is None or wrong is program.statements:
            continue
        try:
            verify(wrong)
        except LoopIRError:
            hit.add((path.parent.name, name))
        else:
            unnoticed.append(f"{path.parent.name}/{path.stem}: {name}")
    assert not unnoticed
    assert {name for _, name in hit} == set(MUTATIONS)
    assert all(sum(folder == p for p, _ in hit) >= 3 for folder in SCHEDULED), hit


def test_every_kind_of_statement_is_in_the_table():
    assert {kind for kind in Statement.__subclasses__() if kind.__module__ == Statement.__module__} == set(STATEMENTS)
    assert [kind.__name__ for kind in STATEMENTS] == sorted(kind.__name__ for kind in STATEMENTS)


def test_every_pass_over_loops_is_verified():
    from styrax.compile import pipeline

    assert {step.name for step in PASSES if step.verify is pipeline._sound_loops} == set(SCHEDULED)
    assert Path(__file__).with_name("memory").is_dir()
