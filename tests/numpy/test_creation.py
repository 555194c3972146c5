"""Arrays from objects, shapes and ranges."""

from __future__ import annotations

import pickle
from typing import Any

import jax
import jax.numpy
import numpy as np
import pytest

import styrax
import styrax.numpy as jnp
from tests.numpy import oracle

RANGES = """
jnp.arange(3)
jnp.arange(3.)
jnp.arange(1, 7, 2)
jnp.arange(0, 1, 0.3)
jnp.arange(2, 5, dtype='float32')
jnp.arange(3, dtype='uint8')
jnp.arange(10, 0, -3)
jnp.arange(0.5, 3)
jnp.linspace(0, 1, 5)
jnp.linspace(0, 10, num=1)
jnp.linspace(w, 3, 4)
jnp.linspace(0, 1, 5, endpoint=False)
jnp.linspace(0, 10, 5, dtype=int)
jnp.linspace(x, y, 3, axis=1)
jnp.linspace(0, 1, 0)
jnp.linspace(0, 1, 5, retstep=True)
jnp.logspace(0, 1, 5)
jnp.geomspace(1, 10, 5)
jnp.linspace(c, c + 1, 3, dtype='float32')
jnp.logspace(c, c + 1, 3, dtype='float32')
jnp.geomspace(c, c + 1, 3, dtype='int32')
jnp.geomspace(c, c + 1, 3)
"""
FILLED = """
jnp.zeros(3)
jnp.ones((2, 3), int)
jnp.full((2,), 3)
jnp.full((2,), w)
jnp.full((2, 3), x)
jnp.full((2, 3), 2.5, dtype=int)
jnp.zeros_like(x)
jnp.ones_like(i)
jnp.full_like(x, 2)
jnp.full_like(x, w)
jnp.empty_like(m)
jnp.zeros_like(m, dtype=bool, shape=(2,))
jnp.eye(3)
jnp.eye(3, 4, k=1, dtype=int)
jnp.identity(2)
jnp.tri(3)
jnp.tril(m)
jnp.triu(m, k=1)
jnp.tril(t, k=-1)
jnp.diag(x)
jnp.diag(x, 1)
jnp.diag(x, -2)
jnp.diag(m)
jnp.diag(m, k=1)
jnp.diagonal(t, axis1=1, axis2=2)
jnp.diagflat(m)
jnp.diagflat(x, 1)
jnp.diagflat(x, -1)
jnp.trace(m)
jnp.trace(t, axis1=1, axis2=2)
jnp.indices((2, 3))
jnp.vander(x)
jnp.vander(x, 2, increasing=True)
jnp.meshgrid(x, y)
jnp.array(x)
jnp.array([x, y])
jnp.array([x, y], dtype=int)
jnp.array([w, 2.])
jnp.asarray([x[0], 1, 2])
jnp.copy(x)
jnp.asarray(x, dtype=int)
x.astype(int)
x.astype('float16')
i.astype(bool)
x.astype(bool)
w * jnp.ones(2)
"""
OBJECTS = [3, 2.0, True, 1j, [1, 2], [1.0, 2], [True, False], [np.int8(1), 2], [[True, 2.0]], np.arange(3), range(3),
           (1, 2), np.float16(3), [], [[]], [np.ones(2), [1, 2]], np.float64(2), np.array(2**40), [[1, 2], [3, 4]]]
BAD = [[1, "a"], ["a"], None, [None, 1], {}, pytest.param(object(), id="object"), [[1, 2], [3]], 2**40, [2**40], "abc"]


def test_ranges() -> None:
    oracle.check_values(RANGES)
    oracle.check_texts(RANGES.replace("jnp.geomspace(1, 10, 5)", ""))


def test_filled() -> None:
    oracle.check_values(FILLED)
    oracle.check_texts(FILLED)


@pytest.mark.parametrize("value", OBJECTS, ids=repr)
def test_objects(value: object) -> None:
    import jax.numpy

    oracle.assert_same(jnp.array(value), jax.numpy.array(value), repr(value), 0, 0)
    oracle.assert_same(jnp.asarray(value), jax.numpy.asarray(value), repr(value), 0, 0)


@pytest.mark.parametrize("value", BAD, ids=repr)
def test_bad_objects(value: object) -> None:
    import jax.numpy

    ours, theirs = oracle.outcome(jnp.array, [value]), oracle.outcome(jax.numpy.array, [value])
    assert type(ours).__name__ == type(theirs).__name__ and str(ours) == str(theirs)


def test_scalar_types() -> None:
    assert jnp.float32 == np.float32 and jnp.float32 == np.dtype("float32") and np.dtype(jnp.bfloat16).itemsize == 2
    assert isinstance(np.float32(1), jnp.float32) and not isinstance(jnp.float32(1), jnp.float32)
    assert jnp.int8(3).dtype == np.int8 and not jnp.float32(1).weak_type
    with pytest.raises(OverflowError):
        jnp.int8(300)
    assert jnp.issubdtype(jnp.bfloat16, jnp.floating) and jnp.finfo(jnp.float32).bits == 32
    assert jnp.promote_types("int8", "uint8") == np.int16 and jnp.result_type(1.5, np.int8) == np.float32


def test_errors() -> None:
    oracle.check_values("""
        jnp.zeros(3, 'foo')
        jnp.zeros(-1)
        jnp.zeros((2, 1.5))
        jnp.linspace(0, 1, -1)
        jnp.arange(None)
        jnp.arange('a')
        jnp.diag(jnp.ones((2, 2, 2)))
        jnp.tril(x)
        jnp.eye(-1)
        jnp.asarray(x, copy=False)
    """)


def test_copies_of_numpy_arrays_are_independent() -> None:
    source = np.ones(3, np.float32)
    for made in (jnp.array(source), jnp.asarray(source)):
        source[0] = 5
        assert float(made[0]) == 1
        source[0] = 1


def test_x64() -> None:
    with styrax.enable_x64(True):
        assert jnp.arange(3).dtype == np.int64 and jnp.ones(3).dtype == np.float64
        assert (jnp.ones(3) + 1).dtype == np.float64 and jnp.asarray(1.5).weak_type
    assert jnp.ones(3).dtype == np.float32


MIXED = {
    "number": lambda j, v, i: v + 1,
    "reflected": lambda j, v, i: 2.5 - i,
    "array": lambda j, v, i: v * j.numpy.float32(2),
    "both": lambda j, v, i: v / i,
    "compared": lambda j, v, i: j.numpy.where(i > 0, v, 0.0),
    "same": lambda j, v, i: v + v,
    "joined": lambda j, v, i: j.numpy.concatenate([v, j.numpy.ones(2)]),
    "maximum": lambda j, v, i: j.numpy.maximum(v, 0),
    "divided": lambda j, v, i: i // 2,
    "compiled": lambda j, v, i: j.jit(lambda x: x * 2)(v),
    "gradient": lambda j, v, i: j.grad(lambda x: (x * 2).sum())(v),
}


@pytest.mark.parametrize("name", MIXED)
def test_arrays_outlive_x64(name: str) -> None:
    """Beside others, arrays of 64 bits are used in 32 bits where x64 is off again."""

    def run(package: Any) -> Any:
        with package.enable_x64(True):
            v, i = package.numpy.arange(3.0), package.numpy.arange(3)
        return MIXED[name](package, v, i)

    ours, expected = run(styrax), run(jax)
    assert ours.dtype == expected.dtype
    np.testing.assert_allclose(np.asarray(ours), np.asarray(expected), rtol=1e-6)


class Convertible:
    """An object that knows which array it stands for."""

    def __init__(self, package: Any, value: Any = (0.0, 1.0, 2.0)):
        self.package, self.value = package, value

    def __jax_array__(self) -> Any:
        return self.package.numpy.asarray(np.array(self.value, np.float32))


CONVERTED = {
    "shape": lambda j, a: (j.numpy.shape(a), j.numpy.ndim(a), j.numpy.size(a)),
    "like": lambda j, a: (j.numpy.ones_like(a), j.numpy.zeros_like(a), j.numpy.full_like(a, 2)),
    "array": lambda j, a: (j.numpy.array(a), j.numpy.asarray(a), j.numpy.array([a, a]), j.numpy.array([[a], [a]])),
    "joined": lambda j, a: (j.numpy.concatenate([a, a]), j.numpy.stack([a, a]), j.numpy.broadcast_to(a, (2, 3))),
    "scalar": lambda j, a: j.numpy.isscalar(a),
    "reshaped": lambda j, a: j.numpy.reshape(a, (3, 1)),
    "updated": lambda j, a: j.numpy.zeros(3).at[:].set(a),
    "operand": lambda j, a: j.numpy.arange(3) + a,
}


@pytest.mark.parametrize("name", CONVERTED)
def test_objects_that_stand_for_arrays(name: str) -> None:
    ours = CONVERTED[name](styrax, Convertible(styrax))
    expected = CONVERTED[name](jax, Convertible(jax))
    oracle.assert_same(ours, expected, name, 1e-6, 0)


@pytest.mark.parametrize("x64", [False, True])
def test_pickled_under_x64(x64: bool) -> None:
    def run(package: Any) -> list[Any]:
        with package.enable_x64(True):
            stored = [pickle.dumps(package.numpy.asarray(v)) for v in (np.arange(3.0), 3, 2.5, np.arange(2) * 1j)]
        with package.enable_x64(x64):
            return [pickle.loads(s) for s in stored]

    oracle.assert_same(run(styrax), run(jax), "pickled", 0, 0)


@pytest.mark.parametrize("function", [
    lambda j, **k: j.array([1.0, 2.0], **k), lambda j, **k: j.asarray(np.ones(2), **k), lambda j, **k: j.zeros(2, **k),
    lambda j, **k: j.full((2,), 1.0, **k), lambda j, **k: j.full_like(j.ones(2), j.ones(2), **k),
    lambda j, **k: j.arange(2, **k), lambda j, **k: j.array(1.0, ndmin=1, **k),
], ids=["array", "asarray", "zeros", "full", "full_like", "arange", "ndmin"])
def test_created_under_a_sharding(function: Any) -> None:
    mesh = styrax.make_mesh((1,), ("x",), axis_types=(styrax.sharding.AxisType.Auto,))
    sharding = styrax.sharding.NamedSharding(mesh, styrax.sharding.PartitionSpec())
    assert function(jnp, device=sharding).sharding == sharding


@pytest.mark.parametrize("given", [(False,), (True, "K"), (True, "K", 3)])
def test_array_arguments_by_position(given):
    """They are deprecated: they work as if they were named."""
    with pytest.warns(DeprecationWarning, match="positionally"):
        expected = jax.numpy.array([1, 2], None, *given)
    with pytest.warns(DeprecationWarning, match="positionally"):
        got = jnp.array([1, 2], None, *given)
    assert got.shape == expected.shape and got.dtype == expected.dtype
