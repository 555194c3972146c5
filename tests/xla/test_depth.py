"""Programs that are nested as deeply as tracing allows are printed, and XLA compiles them."""

from __future__ import annotations

import sys
import threading

import numpy as np
import pytest

import styrax
import styrax.numpy as jnp
from styrax import lax
from styrax.xla import depth
from styrax.xla.stablehlo import module_text
from tests import xla_cpu

X = np.ones(3, np.float32)


def nested(levels, around):
    f = jnp.sin
    for _ in range(levels):
        f = around(f)
    return f


KINDS = {
    "jit": (110, lambda f: styrax.jit(lambda x: f(x) + 1)),
    "cond": (150, lambda f: lambda x: lax.cond(x.sum() > -100, f, jnp.cos, x)),
    "loop": (60, lambda f: lambda x: lax.fori_loop(0, 1, lambda _, x: f(x), x)),
    "checkpoint": (50, lambda f: styrax.checkpoint(lambda x: f(x) * 1)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_as_deep_as_tracing(kind):
    levels, around = KINDS[kind]
    while True:  # how many levels the interpreter has room for depends on who calls
        try:
            closed = styrax.make_jaxpr(nested(levels, around))(X)
            break
        except RecursionError:
            levels -= 5
    assert levels > 20
    text = module_text(closed)
    assert text.count("func.call") + text.count("stablehlo.case") + text.count("stablehlo.while") >= levels
    (out,) = xla_cpu.run(closed, X)
    np.testing.assert_allclose(out, np.sin(X) + (levels if kind == "jit" else 0), rtol=1e-6)


def test_text_and_code():
    f = styrax.jit(nested(KINDS["cond"][0] - 20, KINDS["cond"][1]))
    lowered = f.lower(X)
    assert lowered.as_text().count("stablehlo.case") >= 100
    np.testing.assert_allclose(lowered.compile()(X), np.sin(X), rtol=1e-6)


def test_the_limit_is_restored():
    before = sys.getrecursionlimit()
    with depth.room():
        with depth.room():
            assert sys.getrecursionlimit() == depth.FACTOR * before
        assert sys.getrecursionlimit() == depth.FACTOR * before
    assert sys.getrecursionlimit() == before
    entered, leave, limits = threading.Event(), threading.Event(), []

    def other():
        with depth.room():
            entered.set()
            leave.wait(10)
        limits.append(sys.getrecursionlimit())

    thread = threading.Thread(target=other)
    with depth.room():
        thread.start()
        entered.wait(10)
    assert sys.getrecursionlimit() == depth.FACTOR * before
    leave.set()
    thread.join()
    assert limits == [before]
