"""How often a function is traced by those who look at its program or run it, one after the other: as under JAX."""

from __future__ import annotations

import gc
import itertools
import weakref

import numpy as np
import pytest

from tests.transforms.oracle import jax, styrax

x = np.arange(3.0, dtype=np.float32)
USES = {
    "jit": lambda j, f, g: g(x),
    "make_jaxpr of jit": lambda j, f, g: j.make_jaxpr(g)(x),
    "make_jaxpr": lambda j, f, g: j.make_jaxpr(f)(j.ShapeDtypeStruct((3,), np.float32)),
    "make_jaxpr with shapes": lambda j, f, g: j.make_jaxpr(f, return_shape=True)(x),
    "make_jaxpr, static": lambda j, f, g: j.make_jaxpr(f, static_argnums=(1,))(x, 2.0),
    "make_jaxpr, keyword": lambda j, f, g: j.make_jaxpr(f)(x, y=2.0),
    "make_jaxpr, weak": lambda j, f, g: j.make_jaxpr(f)(1.0),
    "make_jaxpr in an axis": lambda j, f, g: j.make_jaxpr(f, axis_env=[("i", 2)])(x),
    "eval_shape of jit": lambda j, f, g: j.eval_shape(g, x),
    "eval_shape": lambda j, f, g: j.eval_shape(f, x),
    "trace": lambda j, f, g: g.trace(x),
    "lower": lambda j, f, g: g.lower(x),
    "another jit": lambda j, f, g: j.jit(f)(x),
    "inside": lambda j, f, g: j.jit(lambda x: g(x) + 1)(x),
    "grad": lambda j, f, g: j.grad(lambda x: g(x).sum())(x),
    "static": lambda j, f, g: j.jit(f, static_argnums=1)(x, 2.0),
    "pmap": lambda j, f, g: j.pmap(f)(x[None]),
    "pmap with a name": lambda j, f, g: j.pmap(f, axis_name="i", in_axes=(0,))(x[None]),
}


def counts(j, first, second):
    traced = [0]

    def f(x, y=1.0):
        traced[0] += 1
        return j.numpy.sin(x) * y

    g = j.jit(f)
    USES[first](j, f, g)
    before = traced[0]
    USES[second](j, f, g)
    return before, traced[0]


@pytest.mark.parametrize(("first", "second"), list(itertools.product(USES, USES)))
def test_counts(first, second):
    assert counts(styrax, first, second) == counts(jax, first, second)


def test_maps_over_devices_keep_nothing_alive():
    def f(x):
        return x + 1

    kept = weakref.ref(f)
    lower, trace = styrax.pmap(f).lower, styrax.pmap(f).trace
    styrax.pmap(f)(x[None])
    del f
    gc.collect()
    assert lower(x[None]).compile()(x[None]).tolist() == [[1, 2, 3]] and len(trace(x[None]).jaxpr.eqns) == 3
    del lower, trace
    gc.collect()
    assert kept() is None


def test_methods_are_mapped_each_for_its_object():
    class Scale:
        def __init__(self, by):
            self.by = by

        def __call__(self, x):
            return x * self.by

        def method(self, x):
            return x - self.by

        def __eq__(self, other):
            return isinstance(other, Scale)

        def __hash__(self):
            return 0

    twice, thrice = Scale(2), Scale(3)
    for one in (twice, thrice, twice):
        assert styrax.pmap(one)(x[None]).tolist() == [[0, one.by, 2 * one.by]]
        assert styrax.pmap(one.method)(x[None]).tolist() == [[-one.by, 1 - one.by, 2 - one.by]]


def test_captured_values_are_constants():
    """A program that captures tracers is shown with these among its constants, as the user wrote it."""
    def consts(j):
        found = []

        def outer(y):
            closed = j.make_jaxpr(lambda x: x * j.numpy.ones(3) * y)(1.0)
            found.extend((str(closed.jaxpr), len(closed.consts)))
            return y

        j.jit(outer)(2.0)
        return found

    assert consts(styrax) == consts(jax)


def test_callables_without_weak_references():
    class Callable:
        __slots__ = ()

        def __call__(self, x):
            return x * 2

    assert str(styrax.make_jaxpr(Callable())(1.0)) == str(jax.make_jaxpr(Callable())(1.0))
    for j in (jax, styrax):
        with pytest.raises(TypeError):
            j.eval_shape(Callable(), 1.0)
