"""Functions of BCOO arrays in all layouts, beside JAX's: results, formats, layouts and kinds of errors."""

from __future__ import annotations

import numpy as np
import pytest

from styrax.experimental.sparse import BCOO

from .libraries import OURS, compare, layouts, with_zeros

MATRIX, CUBE = with_zeros((3, 4)), with_zeros((2, 3, 4), seed=1)
ROW = with_zeros((1, 4), seed=2)

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
@pytest.mark.parametrize("dense", [MATRIX, CUBE], ids=["matrix", "cube"])
def test_all_layouts(name, dense):
    for n_batch, n_dense in layouts(dense.shape):
        compare(lambda lib, x: FUNCTIONS[name](lib, lib.sparse.BCOO.fromdense(x, n_batch=n_batch, n_dense=n_dense)), dense)
