"""COO, CSR, CSC and BCSR arrays, and what all formats have, beside JAX and SciPy."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse

import styrax as jax
import styrax.numpy as jnp
from styrax.experimental import sparse

from .libraries import compare, with_zeros

A, B, V = with_zeros((3, 4)), with_zeros((4, 2), seed=1), np.linspace(-1, 1, 4).astype(np.float32)
CUBE = with_zeros((2, 3, 4), seed=1)
MATRICES = ["COO", "CSR", "CSC", "BCOO", "BCSR"]


@pytest.mark.parametrize("name", MATRICES)
def test_matrices(name):
    def program(lib, a, b, v):
        mat = getattr(lib.sparse, name).fromdense(a)
        out = [mat, mat @ b, mat @ v, lib.sparse.todense(mat), *mat.tree_flatten()[0]]
        return out if name == "BCSR" else [*out, mat.T, mat.T @ a]

    compare(program, A, B, V, jitted=False)


@pytest.mark.parametrize("name", MATRICES)
def test_jitted_and_printed(name):
    mat = getattr(sparse, name).fromdense(A)
    assert repr(mat) == f"{name}(float32[3, 4], nse={np.count_nonzero(A)})"
    assert (mat.size, mat.ndim, len(mat)) == (12, 2, 3)
    np.testing.assert_allclose(jax.jit(lambda m, v: m @ v)(mat, V), A @ V, rtol=1e-5)
    np.testing.assert_array_equal(jax.jit(lambda m: m)(mat).todense(), A)
    assert mat.block_until_ready() is mat
    mixed = mat @ jnp.arange(4)
    assert mixed.dtype == np.float32
    np.testing.assert_allclose(mixed, A @ np.arange(4), rtol=1e-5)
    for wrong in (lambda: hash(mat), lambda: sparse.todense("a")):
        with pytest.raises(TypeError):
            wrong()


@pytest.mark.parametrize("name", ["COO", "CSR", "CSC", "BCSR"])
@pytest.mark.parametrize("operation", ["add", "mul", "neg", "sum", "rmatmul", "getitem", "matmul itself"])
def test_what_formats_lack(name, operation):
    operations = {"add": lambda m: m + m, "mul": lambda m: m * 2, "neg": lambda m: -m, "sum": lambda m: m.sum(0),
                  "rmatmul": lambda m: B.T @ m.T, "getitem": lambda m: m[0], "matmul itself": lambda m: m @ m.T}
    compare(lambda lib, a: operations[operation](getattr(lib.sparse, name).fromdense(a)), A, jitted=False)


@pytest.mark.parametrize("name", ["bcoo", "bcsr", "coo", "csr", "csc"])
def test_empty_and_eye(name):
    compare(lambda lib: lib.sparse.empty((3, 4), sparse_format=name), jitted=False)
    compare(lambda lib: lib.sparse.empty((3, 4), dtype="int32", sparse_format=name), jitted=False)
    if name != "bcsr":
        for n, m, k in [(3, None, 0), (3, 4, 1), (4, 3, -1), (3, 3, 5), (2, 5, -1)]:
            compare(lambda lib, n=n, m=m, k=k: lib.sparse.eye(n, m, k, sparse_format=name), jitted=False)


def test_empty_and_eye_with_layouts():
    for n_batch, n_dense in [(1, 0), (0, 1), (1, 1), (2, 0), (0, 2)]:
        compare(lambda lib, b=n_batch, d=n_dense: lib.sparse.empty((3, 4), nse=2, n_batch=b, n_dense=d), jitted=False)
        compare(lambda lib, b=n_batch, d=n_dense: lib.sparse.eye(3, 4, 1, n_batch=b, n_dense=d), jitted=False)


@pytest.mark.parametrize("convert", [scipy.sparse.coo_matrix, scipy.sparse.csr_matrix, scipy.sparse.csc_matrix])
def test_scipy(convert):
    for kind in (sparse.BCOO, sparse.BCSR):
        mat = kind.from_scipy_sparse(convert(A))
        np.testing.assert_array_equal(mat.todense(), A)
        np.testing.assert_allclose(mat @ B, convert(A) @ B, rtol=1e-5)
        with pytest.raises(NotImplementedError):
            kind.from_scipy_sparse(convert(A), n_batch=1)


def test_products_beside_scipy():
    a, b = (scipy.sparse.random(30, 20, 0.1, random_state=i, dtype=np.float32) for i in (0, 1))
    ours = sparse.BCOO.from_scipy_sparse(a) @ sparse.BCOO.from_scipy_sparse(b).T
    np.testing.assert_allclose(ours.todense(), (a @ b.T).toarray(), rtol=1e-5)
    np.testing.assert_allclose((sparse.BCOO.from_scipy_sparse(a) + sparse.BCOO.from_scipy_sparse(b)).todense(),
                               (a + b).toarray(), rtol=1e-5)


def test_bcsr():
    compare(lambda lib, a: lib.sparse.BCSR.fromdense(a, n_batch=1), CUBE, jitted=False)
    compare(lambda lib, a: lib.sparse.BCSR.fromdense(a, n_dense=1), CUBE, jitted=False)
    compare(lambda lib, a: lib.sparse.BCSR.fromdense(a), CUBE, jitted=False)
    compare(lambda lib, a: lib.sparse.BCSR.fromdense(a).to_bcoo(), A, jitted=False)
    compare(lambda lib, a: lib.sparse.BCSR.from_bcoo(lib.sparse.BCOO.fromdense(a.T).T), A, jitted=False)
    compare(lambda lib, a: lib.sparse.bcsr_concatenate([lib.sparse.BCSR.fromdense(a)] * 2, dimension=1), A,
            jitted=False)
    compare(lambda lib, a: lib.sparse.bcsr_broadcast_in_dim(
        lib.sparse.BCSR.fromdense(a), shape=(2, 3, 4), broadcast_dimensions=(1, 2)), A, jitted=False)
    numbers = (((2,), (1,)), ((0,), (0,)))
    compare(lambda lib, a, x: lib.sparse.bcsr_dot_general(
        lib.sparse.BCSR.fromdense(a, n_batch=1), x, dimension_numbers=numbers), CUBE, CUBE.transpose(0, 2, 1),
        jitted=False)
    mat = sparse.BCSR.fromdense(A)
    np.testing.assert_array_equal(sparse.bcsr_extract(mat.indices, mat.indptr, A), mat.data)
    np.testing.assert_array_equal(mat.sum_duplicates().todense(), A)
    with pytest.raises(ValueError, match="2 sparse dimensions"):
        sparse.BCSR.fromdense(np.ones(3))


def test_random():
    for kwargs in [{}, {"nse": 3}, {"nse": 0.5, "n_batch": 1}, {"n_dense": 1}, {"sorted_indices": True}]:
        mat = sparse.random_bcoo(jax.random.key(0), (6, 5), dtype=np.float32, **kwargs)
        compare(lambda lib, k=kwargs: [lib.np.zeros(getattr(
            lib.sparse.random_bcoo(lib.jax.random.key(0), (6, 5), dtype=np.float32, **k), x).shape)
            for x in ("data", "indices")], jitted=False)
        assert mat.sum_duplicates(remove_zeros=False).nse == mat.nse, "positions are distinct"
    assert jax.jit(lambda k: sparse.random_bcoo(k, (6, 5), nse=4))(jax.random.key(0)).nse == 4
    for wrong in ({"nse": 31}, {"nse": -1}, {"n_batch": 2, "n_dense": 1}):
        with pytest.raises(ValueError):
            sparse.random_bcoo(jax.random.key(0), (6, 5), **wrong)


def test_warnings_are_kinds_of_each_other():
    assert issubclass(sparse.CuSparseEfficiencyWarning, sparse.SparseEfficiencyWarning)
    mat = sparse.BCOO.fromdense(A)
    with pytest.raises(sparse.SparseEfficiencyError, match="on_inefficient"):
        mat.update_layout(n_batch=1)
    with pytest.warns(sparse.SparseEfficiencyWarning, match="inefficient storage"):
        mat.update_layout(n_batch=1, on_inefficient="warn")


def test_nothing_is_loaded_before_it_is_used():
    code = ("import sys, styrax, styrax.numpy, styrax.experimental, styrax.scipy; "
            "sys.exit(any('sparse' in m for m in sys.modules if m.startswith('styrax')))")
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


class TestHelpers(sparse.test_util.SparseTestCase):
    """The test case itself, on functions that are right and on one that is wrong."""

    def test_products(self):
        draw = sparse.test_util.rand_bcoo(self.rng(), n_batch=1)
        args = lambda: [draw((3, 4), np.float32), V]
        dense, product = lambda m, v: m @ v, sparse.sparsify(lambda m, v: m @ v)
        self._CheckAgainstDense(dense, product, args, atol=1e-4, rtol=1e-4)
        self._CheckGradsSparse(dense, product, args, rtol=0.05, atol=0.05)
        self._CheckBatchingSparse(dense, product, args, bdims=(0, 0), atol=1e-4, rtol=1e-4)
        with self.assertRaises(AssertionError):
            self._CheckAgainstDense(dense, lambda m, v: 2 * (m @ v), args, atol=1e-4, rtol=1e-4)

    def test_random_arrays(self):
        for layout in sparse.test_util.iter_bcsr_layouts((2, 3, 4)):
            mat = sparse.test_util.rand_bcsr(self.rng(), n_batch=layout.n_batch, n_dense=layout.n_dense)(
                (2, 3, 4), np.float32)
            self.assertEqual((mat.n_batch, mat.n_dense), (layout.n_batch, layout.n_dense))
            self.assertArraysEqual(mat.todense(), mat.to_bcoo().todense())
        self.assertEqual(np.count_nonzero(sparse.test_util.rand_sparse(self.rng(), nse=5)((4, 5), np.float32)), 5)
        self.assertEqual(len(list(sparse.test_util.iter_subsets((1, 2, 3)))), 8)


