"""Functions of BCOO arrays in all layouts, beside JAX's: results, formats, layouts and kinds of errors."""

from __future__ import annotations

import numpy as np
import pytest

import styrax as jax
import styrax.numpy as jnp
from styrax.experimental import sparse

from .libraries import OURS, bcoo, compare, layouts, with_zeros

MATRIX, CUBE = with_zeros((3, 4)), with_zeros((2, 3, 4), seed=1)

FUNCTIONS = {
    "fromdense": lambda lib, m: m,
    "transposed": lambda lib, m: m.T,
    "last two exchanged": lambda lib, m: m.transpose((*range(m.ndim - 2), m.ndim - 1, m.ndim - 2)),
    "sorted": lambda lib, m: m.T.sort_indices() if m.n_sparse == m.ndim else m.sort_indices(),
    "sum_duplicates": lambda lib, m: lib.sparse.bcoo_sum_duplicates(m, nse=m.nse),
    "sum of all": lambda lib, m: m.sum(),
    "sum of the first": lambda lib, m: m.sum(0),
    "sum of the last": lambda lib, m: m.sum(-1),
    "reduce_sum": lambda lib, m: lib.sparse.bcoo_reduce_sum(m, axes=(0, 1)),
    "broadcast before": lambda lib, m: lib.sparse.bcoo_broadcast_in_dim(
        m, shape=(5, *m.shape), broadcast_dimensions=range(1, m.ndim + 1)),
    "broadcast after": lambda lib, m: lib.sparse.bcoo_broadcast_in_dim(
        m, shape=(*m.shape, 1), broadcast_dimensions=range(m.ndim)),
    "concatenate first": lambda lib, m: lib.sparse.bcoo_concatenate([m, m, m], dimension=0),
    "concatenate last": lambda lib, m: lib.sparse.bcoo_concatenate([m, m], dimension=m.ndim - 1),
    "rev": lambda lib, m: lib.sparse.bcoo_rev(m, (0, m.ndim - 1)),
    "slice": lambda lib, m: lib.sparse.bcoo_slice(
        m, start_indices=(1, *[0] * (m.ndim - 1)), limit_indices=(2, *m.shape[1:-1], 3)),
    "strided slice": lambda lib, m: lib.sparse.bcoo_slice(
        m, start_indices=[0] * m.ndim, limit_indices=m.shape, strides=[2] * m.ndim),
    "dynamic_slice": lambda lib, m: lib.sparse.bcoo_dynamic_slice(m, [1] * m.ndim, [1, *[2] * (m.ndim - 1)]),
    "element": lambda lib, m: m[1],
    "part": lambda lib, m: m[..., 1:],
    "new dimension": lambda lib, m: m[None],
    "multiply_sparse": lambda lib, m: lib.sparse.bcoo_multiply_sparse(m, lib.sparse.BCOO(
        (m.data + 1, m.indices + 0), shape=m.shape)),
    "multiply_dense": lambda lib, m: lib.sparse.bcoo_multiply_dense(m, np.arange(4, dtype=m.dtype)),
    "add": lambda lib, m: m + lib.sparse.BCOO((m.data, m.indices + 0), shape=m.shape),
    "scaled": lambda lib, m: 2 * m / 3,
    "extract": lambda lib, m: lib.sparse.bcoo_extract(m, np.ones(m.shape, m.dtype)),
    "no batches": lambda lib, m: m.update_layout(n_batch=0),
    "all sparse": lambda lib, m: m.update_layout(n_batch=0, n_dense=0),
    "more batches": lambda lib, m: m.update_layout(n_batch=m.n_batch + 1, on_inefficient=None),
    "more dense": lambda lib, m: m.update_layout(n_dense=m.n_dense + 1, on_inefficient=None),
    "inefficient": lambda lib, m: m.update_layout(n_batch=2, n_dense=0),
    "square": lambda lib, m: m ** 2,
    "unary": lambda lib, m: -abs(m),
    "astype": lambda lib, m: m.astype("complex64"),
}



@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("n_batch, n_dense", [(0, 0), (1, 0), (0, 1)])
def test_layouts(name, n_batch, n_dense):
    compare(FUNCTIONS[name], bcoo(MATRIX, n_batch, n_dense))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_all_kinds_of_dimensions(name):
    compare(FUNCTIONS[name], bcoo(CUBE, 1, 1, nse=3))


@pytest.mark.parametrize("n_batch, n_dense", layouts((2, 3, 4)))
def test_fromdense(n_batch, n_dense):
    compare(lambda lib, x: lib.sparse.BCOO.fromdense(x, n_batch=n_batch, n_dense=n_dense), CUBE, jitted=False)


@pytest.mark.parametrize("places", [(0, 1), (0, 2), (1, 2)])
@pytest.mark.parametrize("n_dense", [0, 1])
def test_broadcasting_without_sparse_dimensions(n_dense, places):
    shape = tuple({places[0]: 2, places[1]: 3}.get(d, 5) for d in range(3))
    compare(lambda lib, m: lib.sparse.bcoo_broadcast_in_dim(m, shape=shape, broadcast_dimensions=places),
            bcoo(np.ones((2, 3), np.float32), 2 - n_dense, n_dense))


@pytest.mark.parametrize("shape", [(), (0,), (1,), (0, 3), (3, 0), (1, 1)])
def test_empty_and_single(shape):
    for dense in (np.zeros(shape, np.float32), np.ones(shape, np.float32)):
        mat = sparse.BCOO.fromdense(dense)
        np.testing.assert_array_equal(mat.todense(), dense)
        np.testing.assert_array_equal(mat.sum_duplicates().todense(), dense)
        np.testing.assert_array_equal((mat + mat).todense(), 2 * dense)


def test_positions_beyond_the_shape_do_not_count():
    """Whatever an operation does with the indices of such elements."""
    data, indices = np.arange(1, 6, dtype=np.float32), np.array([[0, 1], [2, 0], [1, 3], [1, 2], [0, 1]], np.int32)
    mat = sparse.BCOO((data, indices), shape=(2, 3))
    dense = np.array([[0, 6, 0], [0, 0, 4]], np.float32)
    for got, wanted in [(mat, dense), (mat.sum(0), dense.sum(0)), (mat.sum(1), dense.sum(1)), (mat.T, dense.T),
                        (mat[0], dense[0]), (mat[:, ::-1], dense[:, ::-1]), (mat.reshape(6), dense.reshape(6)),
                        (mat.sum_duplicates(), dense), (mat.update_layout(n_batch=1, on_inefficient=None), dense),
                        (mat @ mat.T, dense @ dense.T), (sparse.bcoo_concatenate([mat, mat], dimension=1),
                                                         np.concatenate([dense, dense], 1)),
                        (sparse.bcoo_squeeze(mat[:, 1:2], dimensions=[1]), dense[:, 1])]:
        np.testing.assert_array_equal(got.todense(), wanted)
    np.testing.assert_array_equal(mat.sum(), 10)
    np.testing.assert_array_equal(mat @ np.ones(3, np.float32), dense.sum(1))
    np.testing.assert_array_equal(np.ones(2, np.float32) @ mat, dense.sum(0))


def test_sum_duplicates_of_unknown_positions():
    mat = sparse.BCOO.fromdense(MATRIX)
    with pytest.raises(ValueError, match="nse must be specified"):
        jax.jit(lambda m: m.sum_duplicates())(mat)
    with pytest.raises(jax.errors.ConcretizationTypeError, match="nse argument of bcoo_fromdense"):
        jax.jit(sparse.BCOO.fromdense)(MATRIX)
    doubled = sparse.BCOO((mat.data, mat.indices + 0), shape=mat.shape) + mat
    assert doubled.nse == 2 * mat.nse and doubled.sum_duplicates().nse == mat.nse
    assert doubled.sum_duplicates(nse=2).nse == 2


@pytest.mark.parametrize("shapes, numbers", [
    (((3, 4), (4,)), (((1,), (0,)), ((), ()))), (((3, 4), (4, 5)), (((1,), (0,)), ((), ()))),
    (((3, 4), (3, 4)), (((0, 1), (0, 1)), ((), ()))), (((3, 4), (2,)), (((), ()), ((), ()))),
    (((2, 3, 4), (2, 4, 5)), (((2,), (1,)), ((0,), (0,)))), (((2, 3, 4), (2, 4, 3)), (((0, 2), (0, 1)), ((), ()))),
], ids=str)
def test_products(shapes, numbers):
    lhs, rhs = with_zeros(shapes[0]), with_zeros(shapes[1], seed=1)
    (a, b), (c, d) = numbers

    def dense(lib, m, x):
        product = lib.sparse.bcoo_dot_general(m, x, dimension_numbers=numbers)
        return product, lib.sparse.bcoo_dot_general(x, m, dimension_numbers=((b, a), (d, c)))

    for n_batch, n_dense in layouts(shapes[0])[:4]:
        compare(dense, bcoo(lhs, n_batch, n_dense), rhs)
        compare(lambda lib, m, x: lib.sparse.bcoo_dot_general(m, x, dimension_numbers=numbers),
                bcoo(lhs, n_batch), bcoo(rhs, min(n_batch, rhs.ndim)))


def test_sampled_products():
    A, B = with_zeros((2, 3, 4)), with_zeros((2, 4, 5), seed=1)
    numbers = (((2,), (1,)), ((0,), (0,)))
    product = np.matmul(A, B)
    for n_batch, n_dense in layouts(product.shape):
        at = bcoo(product + 100, n_batch, n_dense)(OURS)  # without zeros
        got = sparse.bcoo_dot_general_sampled(A, B, at.indices, dimension_numbers=numbers)
        np.testing.assert_array_equal(got, at.data - 100)


@pytest.mark.parametrize("new", [(12,), (2, 6), (1, 3, 4), (3, 4, 1), (3, 2, 2), (5,)], ids=str)
def test_reshape(new):
    for n_batch in (0, 1):
        compare(lambda lib, m: lib.sparse.bcoo_reshape(m, new_sizes=new), bcoo(MATRIX, n_batch))


def test_gather():
    numbers = dict(offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,))
    compare(lambda lib, m: lib.sparse.bcoo_gather(m, np.array([[0], [2]]), lib.lax.GatherDimensionNumbers(**numbers),
                                                  (1, 4)), bcoo(MATRIX))
    compare(lambda lib, m: m[lib.np.array([2, 0, 2])], bcoo(MATRIX))


@pytest.mark.parametrize("padding", ["SAME", "VALID", [(2, 3)]], ids=str)
def test_convolution(padding):
    window = np.arange(3, dtype=np.float32).reshape(1, 1, 3)
    compare(lambda lib, m: lib.sparse.bcoo_conv_general_dilated(m, window, window_strides=(1,), padding=padding),
            bcoo(with_zeros((1, 1, 9)), 2))


def test_tree_and_print():
    compare(lambda lib, m: m, bcoo(CUBE, 1, 1))
    mat = sparse.BCOO.fromdense(CUBE, n_batch=1, n_dense=1)
    assert repr(mat) == f"BCOO(float32[2, 3, 4], nse={mat.nse}, n_batch=1, n_dense=1)"
    leaves, structure = jax.tree.flatten(mat)
    assert [x.shape for x in leaves] == [mat.data.shape, mat.indices.shape]
    assert jax.tree.unflatten(structure, leaves)._info == mat._info
    with pytest.raises(AssertionError):
        sparse.BCOO((jnp.ones(3), jnp.zeros((3, 2), int)), shape=(2,))
    with pytest.raises(TypeError):
        hash(mat)


def test_booleans_are_counted():
    where = MATRIX != 0
    for name in ("BCOO", "BCSR"):
        compare(lambda lib, x, n=name: [getattr(lib.sparse, n).fromdense(x).todense(),
                                        getattr(lib.sparse, n).fromdense(x).sum_duplicates().todense()], where,
                jitted=False)
    mat = sparse.BCOO.fromdense(where)
    np.testing.assert_array_equal(jax.jit(lambda m: m.T.todense())(mat), where.T)
    np.testing.assert_array_equal(mat.sum(0).todense(), where.sum(0))
    np.testing.assert_array_equal(mat @ np.ones(4, np.float32), where.sum(1))
    np.testing.assert_array_equal(sparse.COO.fromdense(where).todense(), where)
    np.testing.assert_array_equal(sparse.CSR.fromdense(where).todense(), where)
