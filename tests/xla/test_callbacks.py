"""Python functions in StableHLO: custom calls as JAX's, run by XLA's client for CPUs; ordered ones hand a token on."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import styrax
from styrax.xla.stablehlo import module_text
from tests import xla_cpu
from tests.xla import structure

SCALAR = jax.ShapeDtypeStruct((), np.float32)
X = np.float32(2)


def pure(j, log):
    return lambda x: j.pure_callback(lambda v: np.float32(v + 1), SCALAR, x) * 2


def several(j, log):
    results = (jax.ShapeDtypeStruct((2, 3), np.float32), jax.ShapeDtypeStruct((0,), np.int32), SCALAR)
    return lambda x: j.pure_callback(
        lambda v: (np.full((2, 3), v, np.float32), np.zeros(0, np.int32), np.float32(v)), results, x)


def effect(j, log):
    return lambda x: j.experimental.io_callback(lambda v: np.float32(log.append(int(v)) or 7), SCALAR, x)


def twice(j, log):
    def f(x):
        y = j.experimental.io_callback(lambda v: np.float32(log.append(int(v)) or v + 1), SCALAR, x, ordered=True)
        j.experimental.io_callback(lambda v: log.append(-int(v)), None, x, ordered=True)
        return j.experimental.io_callback(lambda v: np.float32(log.append(int(v)) or v), SCALAR, y, ordered=True)

    return f


def in_a_loop(j, log):
    def body(i, x):
        j.debug.callback(lambda i, v: log.append((int(i), int(v))), i, x, ordered=True)
        return x + 1

    def f(x):
        x = j.lax.fori_loop(0, 3, body, x)
        j.debug.callback(lambda v: log.append(int(v)), x, ordered=True)
        return x

    return f


def in_a_scan(j, log):
    def body(x, y):
        j.debug.callback(lambda v: log.append(int(v)), y, ordered=True)
        return x + y, x

    return lambda x: j.lax.scan(body, x, j.numpy.arange(4, dtype=np.float32))


def in_a_branch(j, log):
    def f(x):
        y = j.lax.cond(x > 1, lambda x: (j.debug.callback(lambda v: log.append(int(v)), x, ordered=True), x)[1],
                       lambda x: -x, x)
        j.debug.callback(lambda v: log.append(-int(v)), y, ordered=True)
        return y

    return f


def in_a_function(j, log):
    @j.jit
    def inner(x):
        j.debug.callback(lambda v: log.append(int(v)), x, ordered=True)
        return x + 1

    return lambda x: inner(inner(x))


def in_a_predicate(j, log):
    def going(x):
        j.debug.callback(lambda v: log.append(int(v)), x, ordered=True)
        return x < 5

    return lambda x: j.lax.while_loop(going, lambda x: x + 1, x)


PROGRAMS = [pure, several, effect, twice, in_a_loop, in_a_scan, in_a_branch, in_a_function, in_a_predicate]
ORDERED = PROGRAMS[3:]


@pytest.mark.parametrize("program", [pure, several, effect, twice, in_a_branch], ids=lambda f: f.__name__)
def test_calls_are_those_of_jax(program):
    ours = module_text(styrax.make_jaxpr(program(styrax, []))(X))
    assert structure.custom_calls(ours) == structure.custom_calls(jax.jit(program(jax, [])).lower(X).as_text())


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_programs_run(program):
    ours, theirs = [], []
    wanted = jax.tree.leaves(jax.jit(program(jax, theirs))(X))
    jax.effects_barrier()
    outs = xla_cpu.run(styrax.make_jaxpr(program(styrax, ours))(X), X)
    for x, y in zip(outs, wanted, strict=True):
        np.testing.assert_array_equal(x, y)
    assert ours == theirs


@pytest.mark.parametrize("program", ORDERED, ids=lambda f: f.__name__)
def test_one_token_passes_through(program):
    """It is made once, and each operation that takes it hands it on."""
    operations = structure.operations(module_text(styrax.make_jaxpr(program(styrax, []))(X)))
    assert [op.name for op in operations].count("stablehlo.after_all") == 1
    for op in operations:
        if op.name == "stablehlo.custom_call":
            assert op.operands[0] == op.results[0] == "!stablehlo.token"


def test_unordered_prints_take_no_token(capsys):
    closed = styrax.make_jaxpr(lambda x: styrax.debug.print("x = {}", x))(X)
    assert "token" not in module_text(closed)
    assert xla_cpu.run(closed, X) == []
    assert capsys.readouterr().out == "x = 2.0\n"
    closed = styrax.make_jaxpr(lambda x: [styrax.debug.print("{}", v, ordered=True) for v in (x, x + 1)] and None)(X)
    xla_cpu.run(closed, X)
    assert capsys.readouterr().out == "2.0\n3.0\n"


def test_wrong_results_are_refused():
    closed = styrax.make_jaxpr(lambda x: styrax.pure_callback(lambda v: np.zeros(3, np.float32), SCALAR, x))(X)
    with pytest.raises(Exception, match="Incorrect output shape"):
        xla_cpu.run(closed, X)


def test_under_vmap():
    f = styrax.vmap(lambda x: styrax.pure_callback(lambda v: np.asarray(v) * 2, SCALAR, x, vmap_method="sequential"))
    x = np.arange(3, dtype=np.float32)
    np.testing.assert_array_equal(xla_cpu.run(styrax.make_jaxpr(f)(x), x)[0], [0, 2, 4])


def test_buffers():
    """The function writes its results; one that has an operand's memory starts from that operand."""
    from styrax.experimental.buffer_callback import buffer_callback

    def write(context, outs, x, y):
        np.asarray(outs[0])[...] += np.asarray(y)
        np.asarray(outs[1])[...] = np.asarray(x).sum()

    x, y = np.arange(6, dtype=np.float32).reshape(2, 3), np.ones((2, 3), np.float32)
    results = (styrax.ShapeDtypeStruct((2, 3), np.float32), styrax.ShapeDtypeStruct((), np.float32))
    f = buffer_callback(write, results, input_output_aliases={0: 0})
    outs = xla_cpu.run(styrax.make_jaxpr(f)(x, y), x, y)
    np.testing.assert_array_equal(outs[0], x + 1)
    np.testing.assert_array_equal(outs[1], (x + 1).sum())
