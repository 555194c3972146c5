"""What the tests of sparse arrays share: the same program in either library."""

from __future__ import annotations

import warnings
from types import SimpleNamespace
from typing import Any

import jax as their_jax
import jax.experimental.sparse as their_sparse
import jax.numpy as their_numpy
import numpy as np

import styrax as our_jax
import styrax.numpy as our_numpy
from styrax.experimental import sparse as our_sparse

OURS = SimpleNamespace(jax=our_jax, np=our_numpy, lax=our_jax.lax, sparse=our_sparse)
THEIRS = SimpleNamespace(jax=their_jax, np=their_numpy, lax=their_jax.lax, sparse=their_sparse)


def with_zeros(shape: tuple[int, ...], dtype: Any = np.float32, seed: int = 0) -> np.ndarray:
    """A random array of which about a half is zero."""
    rng = np.random.default_rng(seed)
    values = rng.integers(1, 9, shape) * rng.choice([-1, 1], shape) * (rng.random(shape) < 0.5)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * rng.integers(-5, 5, shape) * (values != 0)
    return values.astype(dtype)


def layouts(shape: tuple[int, ...]) -> list[tuple[int, int]]:
    """All numbers of batch and dense dimensions."""
    return [(b, d) for b in range(len(shape) + 1) for d in range(len(shape) + 1 - b)]


def described(x: Any) -> Any:
    """What two libraries' results are compared by: format and layout, and the dense array."""
    if isinstance(x, (tuple, list)):
        return [described(y) for y in x]
    if isinstance(x, (our_sparse.JAXSparse, their_sparse.JAXSparse)):
        assert x.data.dtype == x.dtype
        layout = [getattr(x, name, None) for name in ("n_batch", "n_dense", "nse")]
        return [type(x).__name__, tuple(x.shape), str(x.dtype), *layout], np.asarray(x.todense())
    return ["dense", np.shape(x), str(np.asarray(x).dtype)], np.asarray(x)


def compare(program: Any, *args: Any, jitted: bool = True, rtol: float = 1e-5, atol: float = 1e-5) -> None:
    """`program(library, *args)` gives the same in both libraries, or raises the same kind of error.

    Arguments that are functions are called with the library, and give its arrays.
    """
    def run(library: Any) -> Any:
        given = [x(library) if callable(x) else x for x in args]
        fun = lambda *xs: program(library, *xs)
        return described((library.jax.jit(fun) if jitted else fun)(*given))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            wanted = run(THEIRS)
        except Exception as error:
            kind = next(k for k in (NotImplementedError, TypeError, ValueError, Exception) if isinstance(error, k))
            try:
                got = run(OURS)
            except kind:
                return
            raise AssertionError(f"{type(error).__name__}: {error} is what JAX raises; here {got}") from error
        same(run(OURS), wanted, rtol, atol)


def bcoo(dense: np.ndarray, n_batch: int = 0, n_dense: int = 0, nse: int | None = None) -> Any:
    """A BCOO array of a dense one, of whichever library: its buffers are computed by NumPy."""
    end = dense.ndim - n_dense
    batch, sparse = dense.shape[:n_batch], dense.shape[n_batch:end]
    stored = (dense != 0).any(tuple(range(end, dense.ndim)))
    found = [np.argwhere(stored[at]) for at in np.ndindex(batch)]
    count = max(map(len, found), default=0) if nse is None else nse
    indices = np.empty((*batch, count, len(sparse)), np.int32)
    data = np.zeros((*batch, count, *dense.shape[end:]), dense.dtype)
    indices[...] = sparse
    for at, rows in zip(np.ndindex(batch), found, strict=True):
        for i, row in enumerate(rows[:count]):
            indices[(*at, i)] = row
            data[(*at, i)] = dense[(*at, *row)]
    return lambda library: library.sparse.BCOO((library.np.asarray(data), library.np.asarray(indices)),
                                               shape=dense.shape, indices_sorted=True, unique_indices=True)


def same(got: Any, wanted: Any, rtol: float, atol: float) -> None:
    if isinstance(wanted, list):
        assert len(got) == len(wanted)
        for g, w in zip(got, wanted, strict=True):
            same(g, w, rtol, atol)
        return
    assert got[0] == wanted[0]
    np.testing.assert_allclose(got[1], wanted[1], rtol=rtol, atol=atol)
