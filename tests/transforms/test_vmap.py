"""vmap: axes, prefixes, names, errors, and collectives over a mapped axis."""

from __future__ import annotations

import numpy as np
import pytest

from tests.transforms.oracle import assert_same, assert_same_outcome, jax, matrix, outcome, styrax, vector

CASES = """
jax.vmap(lambda x, y: x + y)(x3, jnp.ones(4))
jax.vmap(lambda x, y: x + y)(x3, 1.)
jax.vmap(lambda x, y: x + y)(x3)
jax.vmap(lambda x, y: x + y)()
jax.vmap(lambda x, y: x + y, in_axes=(0,))(x3, x3)
jax.vmap(lambda x, y: x + y, in_axes=(0, 1))(x3, x3)
jax.vmap(lambda x, y: x + y, in_axes=(0, None))(x3, x3)
jax.vmap(lambda x, y: x + y, in_axes=[0, 0])(x3, x3)
jax.vmap(lambda x, y: x + y, in_axes=0.5)(x3, x3)
jax.vmap(lambda x, y: x + y, in_axes='a')(x3, x3)
jax.vmap(lambda x, y: x + y, in_axes=(None, None))(x3, x3)
jax.vmap(lambda x, y: x + y, in_axes=(None, None), axis_size=2)(x3, x3)
jax.vmap(lambda x, y: x + y, axis_size=2)(x3, x3)
jax.vmap(lambda x, y: x + y, out_axes=None)(x3, x3)
jax.vmap(lambda x, y: x + y, out_axes=1)(x3, x3)
jax.vmap(lambda x, y: x + y, out_axes=(0, 0))(x3, x3)
jax.vmap(lambda x, y: x + y, out_axes='a')(x3, x3)
jax.vmap(lambda d: d['a'] + d['b'], in_axes=({'a': 0, 'b': None},))({'a': x3, 'b': 1.})
jax.vmap(lambda d: d['a'] + d['b'], in_axes=({'a': 0},))({'a': x3, 'b': 1.})
jax.vmap(lambda x: {'a': x, 'b': 1.}, out_axes={'a': 0, 'b': None})(x3)
jax.vmap(lambda x: 'a')(x3)
jax.vmap(jnp.sin)('a')
jax.vmap(jnp.sin)(None)
jax.vmap(1)
jax.vmap(jnp.sin, in_axes=-1)(x33)
jax.vmap(jnp.sin, in_axes=-3)(x33)
jax.vmap(jnp.sin, in_axes=2)(x33)
jax.vmap(jnp.sin, out_axes=-1)(x33)
jax.vmap(jnp.sin, in_axes=(0, 0))(x33)
jax.vmap(lambda x, y: x + y, in_axes=(0, {'a': 0}))(x3, x3)
jax.vmap(lambda x, *, k: x + k)(x3, k=x3)
jax.vmap(lambda x, *, k: x + k)(x3, k=1.)
jax.vmap(lambda x: bool(x > 0))(x3)
jax.vmap(lambda x: int(x))(x3)
jax.vmap(lambda x: np.sin(x))(x3)
jax.vmap(lambda x: 3 if x > 0 else 4)(x3)
jax.vmap(lambda x: (x, 3., np.ones(2)))(x3)
jax.vmap(lambda x, y: x @ y)(x33, x33)
jax.vmap(lambda x, y: x @ y, in_axes=(0, None))(x33, x33)
jax.vmap(jax.vmap(lambda x, y: x * y, in_axes=(0, None)), in_axes=(None, 0))(x3, x3)
jax.vmap(lambda x: x.sum(0), in_axes=2, out_axes=1)(np.ones((2, 3, 4), 'float32'))
jax.vmap(lambda x: x.reshape(-1))(np.ones((2, 3, 4), 'float32'))
jax.vmap(lambda x, i: x[i])(x33, np.array([0, 2, 1]))
jax.vmap(lambda x, i: x.at[i].add(5.))(x33, np.array([0, 2, 1]))
jax.vmap(lambda x: lax.psum(x, 'j'), axis_name='i')(x3)
lax.psum(1., 'j')
lax.axis_index('j')
lax.axis_size('j')
jax.make_jaxpr(lambda x, y: x + y)('a', 1)
jax.make_jaxpr(1)
jax.eval_shape(lambda x: 'a', 1.)
jax.eval_shape(lambda x: {'a': x, 'b': None}, 1.)['a'].shape
"""


@pytest.mark.parametrize("expression", CASES.strip().splitlines())
def test_as_jax(expression):
    assert_same_outcome(expression)


MESSAGES = [
    "jax.vmap(lambda x, y: x + y)(x3, jnp.ones(4))",
    "jax.vmap(lambda x, y: x + y)(x3, 1.)",
    "jax.vmap(lambda x, y: x + y, in_axes=(0,))(x3, x3)",
    "jax.vmap(lambda x, y: x + y, in_axes=0.5)(x3, x3)",
    "jax.vmap(lambda x, y: x + y, in_axes=(None, None))(x3, x3)",
    "jax.vmap(lambda x, y: x + y, axis_size=2)(x3, x3)",
    "jax.vmap(lambda x, y: x + y, out_axes=None)(x3, x3)",
    "jax.vmap(lambda x: {'a': x, 'b': 1.}, out_axes=None)(x3)",
    "jax.vmap(lambda x: (1., {'b': [1., x]}), out_axes=(None, {'b': [0, None]}))(x3)",
    "jax.vmap(lambda x: {'a': x}, out_axes=None, axis_name='i')(x3)",
    "jax.vmap(jnp.sin, in_axes=2)(x33)",
    "lax.psum(1., 'j')",
]


@pytest.mark.parametrize("expression", MESSAGES)
def test_message_as_jax(expression):
    assert str(outcome(expression, styrax)[1]) == str(outcome(expression, jax)[1]).split("\n----")[0]


def test_unmapped_values_stay_concrete():
    def f(x, y):
        assert float(y) == 2.0
        return x * y if y > 1 else x

    np.testing.assert_array_equal(styrax.vmap(f, in_axes=(0, None))(np.arange(3.0), 2.0), [0, 2, 4])


cube = np.arange(36, dtype=np.float32).reshape(3, 3, 4)
COLLECTIVES = {
    "psum": lambda lax, x: lax.psum(x, "i"),
    "psum tree": lambda lax, x: lax.psum({"a": x, "b": (x, 1)}, "i"),
    "pmean": lambda lax, x: lax.pmean(x, "i"),
    "pmax": lambda lax, x: lax.pmax(x, "i"),
    "pmin": lambda lax, x: lax.pmin(x, "i"),
    "constants": lambda lax, x: (lax.psum(1, "i"), lax.psum(2.0, "i"), lax.pmax(3.0, "i")),
    "axis_index": lambda lax, x: x + lax.axis_index("i").astype("float32"),
    "axis_size": lambda lax, x: x * lax.axis_size("i"),
    "all_gather": lambda lax, x: lax.all_gather(x, "i"),
    "all_gather axis": lambda lax, x: lax.all_gather(x, "i", axis=1),
    "all_gather tiled": lambda lax, x: lax.all_gather(x, "i", axis=1, tiled=True),
    "ppermute": lambda lax, x: lax.ppermute(x, "i", [(0, 1), (1, 2), (2, 0)]),
    "pshuffle": lambda lax, x: lax.pshuffle(x, "i", [1, 0, 2]),
    "pswapaxes": lambda lax, x: lax.pswapaxes(x, "i", 0),
    "all_to_all": lambda lax, x: lax.all_to_all(x, "i", 0, 0),
    "all_to_all apart": lambda lax, x: lax.all_to_all(x, "i", 0, 1),
    "all_to_all tiled": lambda lax, x: lax.all_to_all(x, "i", 0, 1, tiled=True),
    "psum_scatter": lambda lax, x: lax.psum_scatter(x, "i"),
    "psum_scatter tiled": lambda lax, x: lax.psum_scatter(x, "i", tiled=True),
}


@pytest.mark.parametrize("name", COLLECTIVES)
@pytest.mark.parametrize("jitted", [False, True])
def test_collective(name, jitted):
    def program(package):
        mapped = package.vmap(lambda x: COLLECTIVES[name](package.lax, x), axis_name="i")
        return (package.jit(mapped) if jitted else mapped)(cube)

    assert_same(program)


@pytest.mark.parametrize("name", ["psum", "pmean", "all_gather", "ppermute", "all_to_all", "psum_scatter"])
def test_derivative_of_a_collective(name):
    def across(package):
        def loss(x):
            out = package.vmap(lambda y: COLLECTIVES[name](package.lax, package.numpy.sin(y)), axis_name="i")(x)
            return package.numpy.cos(out).sum()

        return package.grad(loss)(cube)

    def within(package):
        def loss(y):
            return package.numpy.cos(COLLECTIVES[name](package.lax, package.numpy.sin(y))).sum()

        return package.vmap(package.grad(loss), axis_name="i")(cube)

    assert_same(across)
    assert_same(within)


def test_two_names():
    def program(package):
        lax = package.lax

        def f(x):
            return (lax.psum(x, ("i", "j")), lax.psum(x, "i"), lax.pmax(x, "j"), lax.axis_index(("i", "j")),
                    lax.all_gather(x, "j"), lax.ppermute(x, "j", [(0, 1), (1, 2), (2, 0)]))

        return package.vmap(package.vmap(f, axis_name="i"), axis_name="j")(cube)

    assert_same(program)


def test_gather_over_two_names():
    gathered = styrax.vmap(styrax.vmap(lambda x: styrax.lax.all_gather(x, ("j", "i")), axis_name="i"), axis_name="j")(
        matrix)
    np.testing.assert_array_equal(gathered[0, 0], matrix.reshape(-1))


def test_permutation_leaves_zeros():
    out = styrax.vmap(lambda x: styrax.lax.ppermute(x, "i", [(0, 2)]), axis_name="i")(np.arange(1.0, 4.0))
    np.testing.assert_array_equal(out, [0, 0, 1])


def test_groups_are_not_mapped():
    with pytest.raises(NotImplementedError):
        styrax.vmap(lambda x: styrax.lax.psum(x, "i", axis_index_groups=[[0, 1], [2]]), axis_name="i")(matrix)


INDEXED = {
    "predicate": lambda j, i: lambda x: j.lax.while_loop(lambda c: c < i("i"), lambda c: c + 1, 0),
    "predicate and carry": lambda j, i: lambda x: j.lax.while_loop(
        lambda c: c[0] < i("i"), lambda c: (c[0] + 1, c[1] * 2), (0, x)),
    "body": lambda j, i: lambda x: j.lax.while_loop(lambda c: c < 5, lambda c: c + 1 + i("i"), 0),
    "bound": lambda j, i: lambda x: j.lax.fori_loop(0, i("i"), lambda n, c: c * 2 + i("i"), 1),
    "sum in the predicate": lambda j, i: lambda x: j.lax.while_loop(
        lambda c: j.lax.psum(c, "i") < 20, lambda c: c + 1, 0),
    "scan": lambda j, i: lambda x: j.lax.scan(lambda c, _: (c + i("i"), i("i")), 0, None, length=3),
    "jit": lambda j, i: lambda x: j.jit(lambda: j.lax.while_loop(lambda c: c < i("i"), lambda c: c + 1, 0))(),
    "checkpoint": lambda j, i: lambda x: j.checkpoint(lambda: i("i") * 2)(),
    "map": lambda j, i: lambda x: j.lax.map(lambda y: y * i("i"), vector),
    "cond": lambda j, i: lambda x: j.lax.cond(i("i") > 1, lambda: i("i") * 10, lambda: -1),
}
AXES = {
    "vmap": lambda j, f: j.vmap(f, axis_name="i")(vector),
    "nothing mapped": lambda j, f: j.vmap(f, axis_name="i", axis_size=3, in_axes=None)(np.float32(1)),
    "jit": lambda j, f: j.jit(j.vmap(f, axis_name="i"))(vector),
    "inside": lambda j, f: j.vmap(j.vmap(f, axis_name="i"), axis_name="j")(matrix),
    "outside": lambda j, f: j.vmap(j.vmap(f, axis_name="j"), axis_name="i")(matrix),
}


@pytest.mark.parametrize("axes", AXES)
@pytest.mark.parametrize("name", INDEXED)
def test_programs_over_the_index_of_an_axis(name, axes):
    """They depend on the example also where none of their operands does."""
    assert_same(lambda package: AXES[axes](package, INDEXED[name](package, package.lax.axis_index)))
