"""Types of libraries under `vmap`, as under JAX's."""

from __future__ import annotations

import jax as oracle
import jax.interpreters.batching as oracle_batching
import numpy as np
import pytest

import styrax as jax
from styrax.interpreters import batching


class Named:
    """An array whose dimensions have names."""

    def __init__(self, names, data):
        self.names, self.data = list(names), data


class Name:
    def __init__(self, name):
        self.name = name


def to_elt(element_of, _, x, spec):
    axis = x.names.index(spec.name)
    return Named([n for n in x.names if n != spec.name], element_of(x.data, axis))


def from_elt(all_of, size, x, spec):
    return Named([*x.names, spec.name], all_of(size, x.data, len(x.names)))


@pytest.fixture(autouse=True)
def registered():
    for rules in (batching, oracle_batching):
        rules.register_vmappable(Named, Name, int, to_elt, from_elt, None)
    yield
    for rules in (batching, oracle_batching):
        rules.unregister_vmappable(Named)


X, Y = np.arange(6, dtype=np.float32).reshape(2, 3), np.arange(3, dtype=np.float32)
CASES = {
    "in and out": lambda jax: jax.vmap(lambda x: Named(x.names, x.data * 2 + 1), in_axes=Name("i"), out_axes=Name("i"),
                                       axis_size=3)(Named("ji", X)),
    "with arrays": lambda jax: jax.vmap(lambda x, y: Named(x.names, x.data * y), in_axes=(Name("i"), 0),
                                        out_axes=Name("k"))(Named("ji", X), Y),
    "to an array": lambda jax: jax.vmap(lambda x: x.data.sum(), in_axes=Name("i"), axis_size=3)(Named("ji", X)),
    "from an array": lambda jax: jax.vmap(lambda y: Named("j", y * X[:, 0]), out_axes=Name("i"))(Y),
    "trees": lambda jax: jax.vmap(lambda a: {"u": a["x"], "v": a["y"] + 1}, in_axes=({"x": Name("j"), "y": 0},),
                                  out_axes={"u": Name("j"), "v": 0}, axis_size=2)({"x": Named("ji", X), "y": X}),
    "nested": lambda jax: jax.vmap(jax.vmap(lambda x: Named("", x.data + 1), in_axes=Name("j"), out_axes=Name("j"),
                                            axis_size=2), in_axes=Name("i"), out_axes=Name("i"), axis_size=3)(
                                                Named("ji", X)),
    "under jit": lambda jax: jax.jit(lambda d: jax.vmap(lambda x: x.data ** 2, in_axes=Name("i"), axis_size=3)(
        Named("ji", d)))(X),
}


@pytest.mark.parametrize("case", CASES)
def test_as_jax(case):
    found = []
    for library in (jax, oracle):
        out = CASES[case](library)
        leaves = library.tree.leaves(out, is_leaf=lambda x: isinstance(x, Named))
        found.append([(x.names, np.asarray(x.data)) if isinstance(x, Named) else ([], np.asarray(x)) for x in leaves])
    for (names, data), (wanted_names, wanted) in zip(*found, strict=True):
        assert names == wanted_names
        np.testing.assert_array_equal(data, wanted)


def test_registered_once():
    with pytest.raises(ValueError):
        batching.register_vmappable(Named, Name, int, to_elt, from_elt, None)


class Checked(Named):
    """A named array that looks at what it is given."""

    def __init__(self, names, data):
        super().__init__(names, data)
        assert len(self.names) == len(np.shape(data))


@pytest.mark.parametrize("size", [3, 0])
def test_containers_see_elements_and_wholes(size):
    def take(element_of, _, x, spec):
        axis = x.names.index(spec.name)
        return Checked([n for n in x.names if n != spec.name], element_of(x.data, axis))

    def give(all_of, size, x, spec):
        return Checked([*x.names, spec.name], all_of(size, x.data, len(x.names)))

    def result(jax, rules):
        rules.unregister_vmappable(Named)
        rules.register_vmappable(Checked, Name, int, take, give, None)
        try:
            f = jax.vmap(lambda x: Checked(x.names, x.data + 1), in_axes=Name("i"), out_axes=Name("i"), axis_size=size)
            return np.asarray(f(Checked("ji", X[:, :size])).data)
        finally:
            rules.unregister_vmappable(Checked)
            rules.register_vmappable(Named, Name, int, to_elt, from_elt, None)

    np.testing.assert_array_equal(result(jax, batching), result(oracle, oracle_batching))


def test_specs_may_be_integers():
    class Held:
        def __init__(self, data):
            self.data = data

    def result(jax, rules):
        rules.register_vmappable(Held, int, int, lambda element_of, _, x, axis: Held(element_of(x.data, axis)),
                                 lambda all_of, size, x, axis: Held(all_of(size, x.data, axis)), None)
        try:
            return np.asarray(jax.vmap(lambda x: Held(x.data * 2), in_axes=1, axis_size=3)(Held(X)).data)
        finally:
            rules.unregister_vmappable(Held)

    np.testing.assert_array_equal(result(jax, batching), result(oracle, oracle_batching))


@pytest.mark.parametrize("way", [
    lambda jax, f: f, lambda jax, f: jax.jit(f), lambda jax, f: jax.grad(lambda x: f(x).sum()),
    lambda jax, f: jax.vmap(lambda x: f(x * np.ones(3, np.float32))),
    lambda jax, f: lambda x: jax.jit(jax.vmap(f, in_axes=1))(x * np.ones((3, 1), np.float32)),
])
def test_elements_and_wholes_are_computed(way):
    """The functions of a type apply operations to what they are given."""
    class Held:
        def __init__(self, data):
            self.data = data

    def result(jax, rules):
        rules.register_vmappable(Held, int, int, lambda element_of, _, x, axis: Held(element_of(x.data * x.data, axis)),
                                 lambda all_of, size, x, axis: Held(all_of(size, jax.numpy.sin(x.data) + 1, axis) * 3),
                                 None)
        try:
            f = way(jax, lambda x: jax.vmap(lambda a: Held(a.data * 2), axis_size=x.shape[0])(Held(x)).data)
            return np.asarray(f(X[1]))
        finally:
            rules.unregister_vmappable(Held)

    np.testing.assert_allclose(result(jax, batching), result(oracle, oracle_batching), rtol=1e-6)
