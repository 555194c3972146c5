"""What docstrings say of edges, ties, dtypes and errors holds, and holds under JAX."""

from __future__ import annotations

import numpy as np
import pytest

from tests.transforms.oracle import jax, styrax

from . import oracle

TABLES = {
    "calculus": """
        jnp.ediff1d(i, to_end=2.5, to_begin=x)
        jnp.ediff1d(i, to_end=[1])
        jnp.ediff1d(i, to_begin=[1])
        jnp.ediff1d(jnp.zeros(0))
        jnp.diff(x, n=5)
        jnp.diff(u)
        jnp.unwrap(3 * i, period=4)
        jnp.unwrap(jnp.array([0, 3, 1, 5]), period=4)
        jnp.unwrap(jnp.array([0, 2, 4, 6]), period=4)
        jnp.unwrap(jnp.array([6, 4, 2, 0]), period=4)
        jnp.unwrap(jnp.array([0, 3, 1, 5], 'uint8'), period=4)
        jnp.unwrap(jnp.array([[0, 3], [1, 5]], 'int8'), period=4, axis=0)
        jnp.unwrap(jnp.array([0, 3, 1, 5]), discont=4, period=4)
        jnp.unwrap(jnp.array([True, False]), period=4)
        jnp.unwrap(jnp.zeros(0, int))
        jax.vmap(lambda k: jnp.unwrap(k, period=4))(jnp.array([[0, 3], [1, 5]]))
        jax.jacfwd(lambda a: jnp.unwrap(a, period=2))(x)
    """,
    "weak types": """
        jnp.heaviside(w, n)
        jnp.heaviside(i, w)
        jnp.hypot(w, n)
        jnp.hypot(i, w)
        jnp.hypot(3., jnp.inf)
        jnp.logaddexp2(w, n)
        jnp.logaddexp2(i, w)
        jnp.logaddexp2(1j, w)
        jnp.logical_and(w, n)
        jnp.logical_or(n, True)
        jnp.logical_xor(i, w)
        jnp.logical_and(jnp.full(2, 1), jnp.full(2, 0))
        jnp.where(w, n, w)
    """,
    "products": """
        jnp.matvec(m, jnp.ones(2))
        jnp.matvec(m[:, :1], x)
        jnp.vecmat(x, m)
        jnp.vecmat(x[:1], s)
        jnp.matvec(t, jnp.ones((2, 4)))
        jnp.convolve(i, i, preferred_element_type='int32')
        jnp.convolve(i, i, preferred_element_type='float32')
        jnp.convolve(u, u, preferred_element_type='int32')
        jnp.convolve(u, u, preferred_element_type='uint8')
        jnp.correlate(i, u, 'full', preferred_element_type='int32')
        jnp.convolve(x, i, preferred_element_type='int32')
        jnp.convolve(h, h, preferred_element_type='float32')
    """,
    "elements": """
        jnp.delete(x, 1.5)
        jnp.delete(x, jnp.array([1.]))
        jnp.delete(x, np.array([]))
        jnp.delete(x, jnp.zeros(0, int))
        jnp.delete(x, y)
        jnp.delete(x, x > 0)
        jnp.delete(x, 1, axis=(0, 1))
        jnp.delete(x, jnp.array([5]), assume_unique_indices=True)
        jnp.delete(x, x, assume_unique_indices=True)
        jnp.ix_(jnp.zeros(0), i)
        jnp.ix_(jnp.zeros(0, 'int8'))
        jnp.ix_(jnp.zeros(0, bool))
        jnp.tril_indices_from(jax.ShapeDtypeStruct((2, 3), 'int8'))
        jnp.triu_indices_from(jax.ShapeDtypeStruct((2, 3), 'int8'), 1)
        jnp.tril_indices_from(3)
        jnp.triu_indices_from([[1]])
        !jnp.bincount(u, minlength=-5)
        !jnp.bincount(jnp.zeros(0, int), minlength=-5)
        jnp.spacing(jnp.array([-1, 1, -1.5, 0, -0., 65504, -65504, jnp.inf, -jnp.inf, jnp.nan], 'float16'))
        jnp.spacing(jnp.array([-1, 1, -1.5, 0, -0., jnp.inf, -jnp.inf, jnp.nan], 'bfloat16'))
    """,
    "arrays": """
        jnp.array(x, order='F')
        jnp.array(x, order='Z')
        jnp.asarray(x, order='F')
        jnp.asarray(x, order='K')
        jnp.asarray(np.ones(2, np.float32), copy=False)
        jnp.asarray([1, 2], copy=False)
        jnp.asarray(2, copy=False)
        jnp.asarray(x, dtype=int, copy=False)
        jnp.isscalar(np.array(1))
        jnp.isscalar(np.array([1]))
        jnp.isscalar(np.float32(1))
        jnp.astype(jnp.array([300., -300, jnp.nan, 1e20]), 'int8')
    """,
    "ties": """
        jax.grad(jnp.maximum, (0, 1))(w, w)
        jax.grad(jnp.fmax, (0, 1))(w, w)
        jax.grad(jnp.fmin, (0, 1))(w, w)
        jax.grad(lambda a: jnp.clip(a, w, 2.))(w)
        jax.grad(jnp.remainder, (0, 1))(-5., w)
        jax.grad(jnp.floor_divide, (0, 1))(5., w)
        jnp.clip(x, 2, 1)
        jnp.nanargmax(jnp.array([1., 3, 3, jnp.nan]))
        jnp.nanmax(jnp.zeros((0, 2)), axis=0)
        jnp.nanmax(x, where=b)
        jnp.split(jnp.arange(3), [2, 1])
        jnp.array_split(jnp.arange(5), 3)
    """,
}


@pytest.mark.parametrize("name", TABLES)
def test_edges(name):
    oracle.check_values(TABLES[name])


@pytest.mark.parametrize("dtype", ["int32", "int8"])
def test_unwrapped_integers_stay_congruent(dtype):
    angles = np.array([0, 3, 1, 5, 2, 0, 4], dtype)
    for period in (3, 4, 5, 7):
        np.testing.assert_array_equal(styrax.numpy.unwrap(styrax.numpy.array(angles), period=period),
                                      np.unwrap(angles, period=period))


PLACED = {
    "broadcast_to": lambda jnp, s: jnp.broadcast_to(jnp.arange(3), (2, 3), out_sharding=s),
    "bincount": lambda jnp, s: jnp.bincount(jnp.arange(3), length=4, out_sharding=s),
    "dot": lambda jnp, s: jnp.dot(jnp.ones(3), jnp.ones((3, 2)), out_sharding=s),
    "matmul": lambda jnp, s: jnp.matmul(jnp.ones((2, 3)), jnp.ones((3, 2)), out_sharding=s),
    "tensordot": lambda jnp, s: jnp.tensordot(jnp.ones((2, 3)), jnp.ones((3, 2)), 1, out_sharding=s),
    "einsum": lambda jnp, s: jnp.einsum("i,j->ij", jnp.ones(2), jnp.ones(3), out_sharding=s),
}


@pytest.mark.parametrize("name", PLACED)
def test_results_have_the_sharding_asked_for(name):
    results = []
    for package in (jax, styrax):
        axis_type, spec = package.sharding.AxisType, package.sharding.PartitionSpec
        with pytest.raises(ValueError):
            PLACED[name](package.numpy, spec(None))
        with package.set_mesh(package.make_mesh((1,), ("x",), axis_types=(axis_type.Auto,))), \
                pytest.raises(ValueError, match="Auto or Manual"):
            PLACED[name](package.numpy, spec("x"))
        asked = spec() if name == "bincount" else spec("x")
        with package.set_mesh(package.make_mesh((1,), ("x",), axis_types=(axis_type.Explicit,))):
            out = PLACED[name](package.numpy, asked)
            results.append((np.asarray(out), [axis for axis in out.sharding.spec if axis is not None]))
    (theirs, their_axes), (ours, our_axes) = results
    assert our_axes == their_axes
    np.testing.assert_array_equal(ours, theirs)
