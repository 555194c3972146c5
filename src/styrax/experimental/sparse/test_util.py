"""Random sparse arrays for tests, and a test case that compares functions of sparse arrays with those of dense ones."""

from __future__ import annotations

import itertools
import math
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

import styrax.numpy as jnp
from styrax.core.trees import tree
from styrax.core.types import dtypes
from styrax.core.types.typing import DTypeLike, Function, Object, PyTree
from styrax.test_util import check_grads
from styrax.transforms.api import vmap
from styrax.transforms.jit import jit

from .arrays import JAXSparse
from .bcoo.array import BCOO
from .bcsr import BCSR

try:  # parameterized tests, where absl is installed
    from absl.testing.parameterized import TestCase
except ImportError:
    from unittest import TestCase

Draw = Callable[..., np.ndarray]  # (shape, dtype) -> array

MATMUL_TOL = {np.float32: 1e-5, np.float64: 1e-10, np.complex64: 1e-5, np.complex128: 1e-10}
_TOLERANCE = {"bfloat16": 1e-2, "float16": 1e-3, "float32": 1e-6, "complex64": 1e-6, "float64": 1e-15,
              "complex128": 1e-15}


class BatchedDotGeneralProperties(NamedTuple):
    """A product to try: shapes, layout, and dimension numbers."""

    lhs_shape: tuple[int, ...]
    rhs_shape: tuple[int, ...]
    n_batch: int
    n_dense: int
    dimension_numbers: Object


class SparseLayout(NamedTuple):
    """The numbers of dimensions of each kind."""

    n_batch: int
    n_dense: int
    n_sparse: int


def is_sparse(x: Object) -> bool:
    """Whether something is a sparse array."""
    return isinstance(x, JAXSparse)


def iter_subsets(s: Sequence[Object]) -> Iterator[tuple[Object, ...]]:
    """All subsets of a sequence, in its order, small ones first."""
    return itertools.chain.from_iterable(itertools.combinations(s, n) for n in range(len(s) + 1))


def iter_sparse_layouts(shape: Sequence[int], min_n_batch: int = 0) -> Iterator[SparseLayout]:
    """All layouts of a BCOO array of some shape."""
    for n_batch in range(min_n_batch, len(shape) + 1):
        for n_dense in range(len(shape) + 1 - n_batch):
            yield SparseLayout(n_batch, n_dense, len(shape) - n_batch - n_dense)


def iter_bcsr_layouts(shape: Sequence[int], min_n_batch: int = 0) -> Iterator[SparseLayout]:
    """All layouts of a BCSR array of some shape."""
    return (layout for layout in iter_sparse_layouts(shape, min_n_batch) if layout.n_sparse == 2)


def normal(rng: np.random.RandomState) -> Draw:
    """Draws normally distributed arrays; integers are such numbers cut off."""
    def draw(shape: Sequence[int], dtype: DTypeLike) -> np.ndarray:
        values = 3 * rng.standard_normal(shape)
        if dtypes.issubdtype(np.dtype(dtype), np.complexfloating):
            values = values + 3j * rng.standard_normal(shape)
        return np.asarray(values).astype(dtype)

    return draw


def rand_sparse(rng: np.random.RandomState, nse: float = 0.5, post: Function = lambda x: x,
                rand_method: Function = normal) -> Function:
    """Draws dense arrays with zeros: `(shape, dtype, nse) -> post(array)`.

    `nse` elements are kept; below 1 it is their part.
    """
    draw = rand_method(rng)

    def rand(shape: Sequence[int], dtype: DTypeLike, nse: float = nse) -> Any:
        size = math.prod(shape)
        kept = min(size, int(nse * size if 0 <= nse < 1 else nse))
        out = np.array(draw(tuple(shape), dtype))
        out.flat[rng.choice(size, size - kept, replace=False)] = 0
        return post(out)

    return rand


def rand_bcoo(rng: np.random.RandomState, rand_method: Function = normal, nse: float = 0.5, n_batch: int = 0,
              n_dense: int = 0) -> Function:
    """Draws BCOO arrays: `(shape, dtype) -> array`. Positions may occur several times, and lie beyond the shape."""
    draw = rand_method(rng)

    def rand(shape: Sequence[int], dtype: DTypeLike, nse: float = nse, n_batch: int = n_batch,
             n_dense: int = n_dense) -> BCOO:
        end = len(shape) - n_dense
        batch, sparse, dense = shape[:n_batch], shape[n_batch:end], shape[end:]
        count = math.ceil(nse * math.prod(sparse)) if 0 <= nse < 1 else int(nse)
        columns = [rng.randint(0, size + 1, (*batch, count)) for size in sparse]
        indices = np.stack(columns, axis=-1) if columns else np.zeros((*batch, count, 0))
        return BCOO((jnp.asarray(draw((*batch, count, *dense), dtype)), jnp.asarray(indices.astype(np.int32))),
                    shape=shape)

    return rand


def rand_bcsr(rng: np.random.RandomState, rand_method: Function = normal, nse: float = 0.5, n_batch: int = 0,
              n_dense: int = 0) -> Function:
    """Draws BCSR arrays: `(shape, dtype) -> array`. Positions may occur several times."""
    coordinates = rand_bcoo(rng, rand_method, nse, n_batch, n_dense)
    return lambda *args, **kwargs: BCSR.from_bcoo(coordinates(*args, **kwargs))


class SparseTestCase(TestCase):
    """A test case with comparisons of arrays, dense and sparse."""

    def rng(self) -> np.random.RandomState:
        """Random numbers that are the same each time the test runs."""
        return np.random.RandomState(zlib.adler32(self._testMethodName.encode()))

    def assertDtypesMatch(self, x: Object, y: Object) -> None:
        self.assertEqual(*(dtypes.canonicalize_dtype(dtypes.dtype(v)) for v in (x, y)))

    def assertArraysEqual(self, x: Object, y: Object, *, check_dtypes: bool = True, err_msg: str = "",
                          **_: Object) -> None:
        """Both are equal, with NaNs at the same places."""
        if check_dtypes:
            self.assertDtypesMatch(x, y)
        np.testing.assert_array_equal(np.asarray(x), np.asarray(y), err_msg=err_msg)

    def assertArraysAllClose(self, x: Object, y: Object, *, check_dtypes: bool = True, atol: Object = None,
                             rtol: Object = None, err_msg: str = "", **_: Object) -> None:
        """Both are close, by default as close as rounding lets them be."""
        if check_dtypes:
            self.assertDtypesMatch(x, y)
        a, b = np.asarray(x), np.asarray(y)

        def tolerance(given: Any) -> float:
            names = {np.dtype(t).name: value for t, value in given.items()} if isinstance(given, dict) else {}
            return max(given if given is not None and not names else names.get(
                dtypes.canonicalize_dtype(v.dtype).name, _TOLERANCE.get(v.dtype.name, 0.0)) for v in (a, b))

        np.testing.assert_allclose(a, b, atol=tolerance(atol), rtol=tolerance(rtol), err_msg=err_msg)

    def assertAllClose(self, x: PyTree, y: PyTree, *, check_dtypes: bool = True, atol: Object = None,
                       rtol: Object = None, canonicalize_dtypes: bool = True, err_msg: str = "") -> None:
        """Two trees are close."""
        self.assertEqual(tree.tree_structure(x), tree.tree_structure(y))
        for a, b in zip(tree.tree_leaves(x), tree.tree_leaves(y), strict=True):
            self.assertArraysAllClose(a, b, check_dtypes=check_dtypes, atol=atol, rtol=rtol, err_msg=err_msg)

    def assertSparseArraysEquivalent(self, x: PyTree, y: PyTree, *, check_dtypes: bool = True, atol: Object = None,
                                     rtol: Object = None, canonicalize_dtypes: bool = True, err_msg: str = "") -> None:
        """Two trees have the same structure, and close arrays in it."""
        self.assertAllClose(x, y, check_dtypes=check_dtypes, atol=atol, rtol=rtol, err_msg=err_msg)

    def _CompileAndCheck(self, fun: Function, args_maker: Function, *, check_dtypes: bool = True, rtol: Object = None,
                         atol: Object = None, **_: Object) -> None:
        args = args_maker()
        self.assertAllClose(fun(*args), jit(fun)(*args), check_dtypes=check_dtypes, atol=atol, rtol=rtol)

    def _CheckAgainstDense(self, dense_op: Function, sparse_op: Function, args_maker: Function, check_jit: bool = True,
                           check_dtypes: bool = True, tol: Object = None, atol: Object = None, rtol: Object = None,
                           canonicalize_dtypes: bool = True) -> None:
        args = args_maker()
        expected = dense_op(*_dense(args))
        for op in (sparse_op, jit(sparse_op)) if check_jit else (sparse_op,):
            self.assertAllClose(_dense(op(*args)), expected, check_dtypes=check_dtypes,
                                atol=tol if atol is None else atol, rtol=tol if rtol is None else rtol)

    def _CheckGradsSparse(self, dense_fun: Function, sparse_fun: Function, args_maker: Function, *,
                          argnums: Sequence[int] | None = None, modes: Sequence[str] = ("fwd", "rev"),
                          atol: Object = None, rtol: Object = None) -> None:
        args = args_maker()
        leaves, structure = tree.tree_flatten(args)
        numbers = [i for i, x in enumerate(leaves) if dtypes.issubdtype(dtypes.dtype(x), np.inexact)]

        def of_numbers(*values: Any) -> Any:
            full = list(leaves)
            for i, value in zip(numbers, values, strict=True):
                full[i] = value
            return _dense(sparse_fun(*structure.unflatten(full)))

        check_grads(of_numbers, tuple(leaves[i] for i in numbers), 1, modes, atol, rtol)

    def _random_bdims(self, *args: Object) -> list[int]:
        rng = self.rng()
        return [rng.randint(0, 1 + (x.n_batch if is_sparse(x) else np.ndim(x))) for x in args]

    def _CheckBatchingSparse(self, dense_fun: Function, sparse_fun: Function, args_maker: Function, *,
                             batch_size: int = 3, bdims: Sequence[int] | None = None, check_jit: bool = False,
                             check_dtypes: bool = True, rtol: Object = None, atol: Object = None) -> None:
        from .bcoo.shaping import bcoo_broadcast_in_dim, bcoo_concatenate

        dims = tuple(self._random_bdims(*args_maker())) if bdims is None else tuple(bdims)

        def together(x: Any, at: int, others: Sequence[Any]) -> Any:
            if not is_sparse(x):
                return jnp.stack([jnp.asarray(v) for v in others], at)
            shape = (*x.shape[:at], 1, *x.shape[at:])
            where = [d + (d >= at) for d in range(x.ndim)]
            return bcoo_concatenate([bcoo_broadcast_in_dim(v, shape=shape, broadcast_dimensions=where)
                                     for v in others], dimension=at)

        examples = [args_maker() for _ in range(batch_size)]
        args = [together(column[0], at, column) for at, column in zip(dims, zip(*examples, strict=True), strict=True)]
        self._CheckAgainstDense(vmap(dense_fun, dims), vmap(sparse_fun, dims), lambda: args, check_jit=check_jit,
                                check_dtypes=check_dtypes, atol=atol, rtol=rtol)


def _dense(values: PyTree) -> PyTree:
    return tree.tree_map(lambda x: x.todense() if is_sparse(x) else x, values, is_leaf=is_sparse)
