"""Derivatives and batching of sparse primitives, beside those of dense arrays in JAX."""

from __future__ import annotations

import jax as their_jax
import numpy as np
import pytest

import styrax as jax
import styrax.numpy as jnp
from styrax.experimental import sparse
from styrax.experimental.sparse import bcoo as functions
from styrax.test_util import check_grads

from .libraries import OURS, THEIRS, bcoo, with_zeros

A, B, V = with_zeros((3, 4)), with_zeros((4, 2), seed=1), np.linspace(-1, 1, 4).astype(np.float32)
ARRAYS = {
    "BCOO": lambda: sparse.BCOO.fromdense(A), "batched": lambda: sparse.BCOO.fromdense(A, n_batch=1),
    "dense rows": lambda: sparse.BCOO.fromdense(A.T, n_dense=1), "BCSR": lambda: sparse.BCSR.fromdense(A),
    "COO": lambda: sparse.COO.fromdense(A), "CSR": lambda: sparse.CSR.fromdense(A),
    "CSC": lambda: sparse.CSC.fromdense(A),
}


def of_data(mat, fun):
    """A function of a sparse array as one of its elements."""
    leaves, structure = jax.tree.flatten(mat)
    return lambda data: fun(structure.unflatten([data, *leaves[1:]]))


@pytest.mark.parametrize("name", ARRAYS)
def test_products_and_todense(name):
    mat = ARRAYS[name]()
    if name == "dense rows":
        fun = lambda m: jnp.sin(V @ m.todense()) + (V @ m)
    else:
        fun = lambda m: jnp.sin(m @ V) + (m @ B).sum(1) + m.todense().sum(1)
    f = of_data(mat, fun)
    check_grads(f, (mat.data,), 2, rtol=0.05, atol=0.05)
    check_grads(jax.jit(f), (mat.data,), 1, rtol=0.05, atol=0.05)


@pytest.mark.parametrize("name", ["BCOO", "batched", "BCSR", "COO", "CSR", "CSC"])
def test_gradients_are_those_of_dense_products(name):
    mat = ARRAYS[name]()
    loss = lambda np_: lambda m, b: np_.sum(np_.sin(m @ b))
    got = jax.grad(of_data(mat, lambda m: loss(jnp)(m, B)))(mat.data)
    by_b = jax.jit(jax.grad(lambda b: loss(jnp)(mat, b)))(B)
    wanted = their_jax.grad(loss(their_jax.numpy), (0, 1))(A, B)
    _, structure = jax.tree.flatten(mat)
    leaves = jax.tree.leaves(mat)
    at = structure.unflatten([jnp.ones_like(mat.data), *leaves[1:]]).todense() != 0
    np.testing.assert_allclose(structure.unflatten([got, *leaves[1:]]).todense(), np.where(at, wanted[0], 0), rtol=1e-5)
    np.testing.assert_allclose(by_b, wanted[1], rtol=1e-5)


def test_sparse_products():
    lhs, rhs = sparse.BCOO.fromdense(A), sparse.BCOO.fromdense(B)
    f = lambda x, y: functions.bcoo_dot_general(
        sparse.BCOO((x, lhs.indices), shape=A.shape), sparse.BCOO((y, rhs.indices), shape=B.shape),
        dimension_numbers=(((1,), (0,)), ((), ()))).todense()
    np.testing.assert_allclose(f(lhs.data, rhs.data), A @ B)
    check_grads(f, (lhs.data, rhs.data), 2, rtol=0.05, atol=0.05)


@pytest.mark.parametrize("name, fun", [
    ("fromdense", lambda x: sparse.BCOO.fromdense(x, nse=12, n_batch=1).data),
    ("extract", lambda x: sparse.bcoo_extract(sparse.BCOO.fromdense(A, nse=5), x).data),
    ("bcsr", lambda x: sparse.BCSR.fromdense(x, nse=12).data),
    ("coo", lambda x: sparse.COO.fromdense(x, nse=12).data),
    ("csr", lambda x: sparse.CSR.fromdense(x, nse=12).data),
    ("sorted", lambda x: sparse.BCOO.fromdense(x, nse=12).T.sort_indices().data),
    ("summed", lambda x: sparse.bcoo_sum_duplicates(sparse.BCOO.fromdense(x, nse=12).T, nse=7).data),
    ("transposed", lambda x: sparse.BCOO.fromdense(x, nse=12).T.todense()),
    ("sampled", lambda x: sparse.bcoo_dot_general_sampled(
        x, B, np.array([[0, 1], [2, 1], [3, 0]]), dimension_numbers=(((1,), (0,)), ((), ())))),
])
def test_of_dense_arrays(name, fun):
    x = np.arange(1, 13, dtype=np.float32).reshape(3, 4)  # no zero becomes stored
    check_grads(fun, (x,), 1, rtol=0.02, atol=0.02)
    check_grads(jax.jit(fun), (x,), 1, rtol=0.02, atol=0.02)


def test_integer_results_have_no_derivative():
    outs, tangents = jax.jvp(lambda x: sparse.CSR.fromdense(x, nse=5)._bufs, (A,), (A,))
    assert [t.dtype for t in tangents[1:]] == [jax.dtypes.float0] * 2
    np.testing.assert_array_equal(tangents[0], outs[0])


def test_vmap():
    mat = sparse.BCOO.fromdense(A)
    batches = np.random.default_rng(0).standard_normal((5, 4)).astype(np.float32)
    datas = np.stack([mat.data] * 5) * np.arange(1, 6, dtype=np.float32)[:, None]
    of = lambda d: sparse.BCOO((d, mat.indices), shape=mat.shape)
    np.testing.assert_allclose(jax.vmap(lambda v: mat @ v)(batches), batches @ A.T, rtol=1e-5)
    np.testing.assert_allclose(jax.jit(jax.vmap(lambda v: mat @ v, 1, 1))(batches.T), A @ batches.T, rtol=1e-5)
    np.testing.assert_allclose(jax.vmap(lambda d: of(d) @ V)(datas), np.outer(np.arange(1, 6), A @ V), rtol=1e-5)
    slopes = jax.jit(jax.vmap(jax.grad(lambda d, v: jnp.sum((of(d) @ v) ** 2))))(datas, batches)
    wanted = [jax.grad(lambda d, v=v: jnp.sum((of(d) @ v) ** 2))(d) for d, v in zip(datas, batches)]
    np.testing.assert_allclose(slopes, np.stack(wanted), rtol=1e-4)


@pytest.mark.parametrize("library", [OURS, THEIRS], ids=["ours", "theirs"])
def test_vmap_of_arrays(library):
    vmap, jit, fromdense = library.jax.vmap, library.jax.jit, library.sparse.BCOO.fromdense
    mat = bcoo(A, 1)(library)
    assert vmap(lambda m: m)(mat).shape == (3, 4) and vmap(lambda m: m)(mat).n_batch == 1
    np.testing.assert_allclose(vmap(lambda m: m @ V)(mat), A @ V, rtol=1e-5)
    np.testing.assert_array_equal(jit(vmap(lambda m: m.todense() * m.shape[0]))(mat), 4 * A)
    rows = vmap(lambda x: fromdense(x, nse=4))(A)
    assert (rows.shape, rows.n_batch) == ((3, 4), 1)
    np.testing.assert_array_equal(rows.todense(), A)
    np.testing.assert_array_equal(vmap(lambda m, k: k * m.todense(), (None, 0))(mat, V[:2]), V[:2, None, None] * A)
    scaled = vmap(lambda k: library.sparse.BCOO((k * mat.data, mat.indices), shape=(3, 4)))(V)
    assert (scaled.shape, scaled.n_batch) == ((4, 3, 4), 2)
    np.testing.assert_array_equal(scaled.todense(), V[:, None, None] * A)
    for axis in (1, -1):
        with pytest.raises(ValueError):
            vmap(lambda m: m, axis)(mat)
    with pytest.raises(ValueError, match="n_batch=0"):
        vmap(lambda m: m)(bcoo(A)(library))
    stack = library.sparse.BCSR.fromdense(np.stack([A, A]), n_batch=1)
    np.testing.assert_allclose(vmap(lambda m: m @ V)(stack), np.stack([A @ V] * 2), rtol=1e-5)


@pytest.mark.parametrize("transform", ["grad", "value_and_grad", "jacfwd", "jacrev", "jacobian"])
@pytest.mark.parametrize("has_aux", [False, True])
def test_sparse_gradients(transform, has_aux):
    """With respect to sparse and dense arguments, in trees."""
    outs = []
    for library in (OURS, THEIRS):
        def f(tree, v, library=library):
            out = library.np.sin(tree["m"] @ v) + tree["b"]
            out = out.sum() if "grad" in transform else out
            return (out, {"aux": v}) if has_aux else out

        mat = bcoo(A)(library)
        args = {"m": mat, "b": library.np.ones(3)}, library.np.asarray(V)
        outs.append(getattr(library.sparse, transform)(f, argnums=(0, 1), has_aux=has_aux)(*args))
    assert repr(outs[0]).count("BCOO(float32") == repr(outs[1]).count("BCOO(float32") == 1
    ours, theirs = jax.tree.leaves(outs[0]), their_jax.tree.leaves(outs[1])
    assert len(ours) == len(theirs)
    for x, y in zip(ours, theirs):
        np.testing.assert_allclose(x, y, rtol=1e-5)


def test_complex_and_x64():
    z = with_zeros((3, 4), np.complex64)
    mat = sparse.BCOO.fromdense(z)
    v = (V + 1j * V[::-1]).astype(np.complex64)
    np.testing.assert_allclose(mat @ v, z @ v, rtol=1e-5)
    check_grads(of_data(mat, lambda m: m @ v), (mat.data,), 1, rtol=0.02, atol=0.02)
    with jax.enable_x64(True):
        wide = sparse.BCOO.fromdense(A.astype(np.float64), index_dtype=np.int64)
        assert (wide.dtype, wide.indices.dtype) == (np.float64, np.int64)
        np.testing.assert_allclose(wide @ V.astype(np.float64), A.astype(np.float64) @ V, rtol=1e-12)
        np.testing.assert_array_equal(wide.sum_duplicates().T.todense(), A.T)
