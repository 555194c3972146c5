"""Sorting, searching, sets, choices."""

from __future__ import annotations

from tests.numpy import oracle

TABLE = """
jnp.sort(x)
jnp.sort(m, axis=0)
jnp.sort(m, axis=None)
jnp.sort(x, descending=True)
jnp.sort(c)
jnp.sort(b)
jnp.sort(x, kind='stable')
jnp.sort(x, axis=3)
jnp.sort(x, order='f')
jnp.argsort(x)
jnp.argsort(m, axis=0)
jnp.argsort(x, descending=True)
jnp.argsort(i, stable=False)
x.sort()
x.argsort()
jnp.lexsort((x, i))
jnp.lexsort((i, y), axis=0)
jnp.partition(x, 1)
jnp.argpartition(x, 1)
jnp.searchsorted(jnp.sort(x), y, method='foo')
!jnp.nonzero(x > 0)
jnp.nonzero(m > 0)
!jnp.flatnonzero(m)
!jnp.argwhere(m > 0)
jnp.count_nonzero(m)
jnp.count_nonzero(m, axis=1, keepdims=True)
jnp.choose(u, [x, y, p])
jnp.select([x > 0, y > 0], [x, y], 7)
jnp.top_k(x, 2) if hasattr(jnp, 'top_k') else x
lax.top_k(x, 2)
!jnp.unique(i)
!jnp.unique(jnp.array([3, 1, 3, 2]), return_index=True, return_inverse=True, return_counts=True)
!jnp.unique(jnp.array([[1, 2], [1, 2], [0, 1]]), axis=0)
!jnp.unique(jnp.array([jnp.nan, 1, jnp.nan]))
!jnp.unique(jnp.array([jnp.nan, 1, jnp.nan]), equal_nan=False)
!jnp.unique_all(jnp.array([3, 1, 3]))
!jnp.unique_counts(jnp.array([3, 1, 3]))
!jnp.unique_inverse(jnp.array([[3, 1], [3, 2]]))
!jnp.unique_values(jnp.array([3, 1, 3]))
!jnp.union1d(i, jnp.array([1, 5]))
!jnp.setdiff1d(i, jnp.array([1, 5]))
!jnp.setxor1d(i, jnp.array([1, 5]))
!jnp.intersect1d(i, jnp.array([1, 0, 5]))
!jnp.intersect1d(i, jnp.array([1, 0, 5]), return_indices=True)
jnp.isin(x, y)
jnp.isin(m, y, invert=True)
"""

# JAX composes these of other primitives.
VALUES = """
jnp.sort_complex(x)
jnp.partition(m, 1, axis=0)
jnp.searchsorted(jnp.sort(x), y)
jnp.searchsorted(jnp.sort(x), y, side='right')
jnp.searchsorted(jnp.sort(x), w, method='sort')
jnp.searchsorted(jnp.sort(x), y, method='compare_all')
jnp.searchsorted(x, y, sorter=jnp.argsort(x))
x.searchsorted(y)
jnp.nonzero(x > 0, size=2)
jnp.nonzero(x > 0, size=5, fill_value=-1)
jnp.flatnonzero(m, size=3)
jnp.argwhere(m > 0, size=2)
!jnp.extract(x > 0, y)
jnp.extract(x > 0, y, size=2)
!jnp.compress(b, x)
jnp.compress(b, x, size=3)
jnp.choose(i, [x, y], mode='wrap')
jnp.piecewise(x, [x < 0, x > 1], [lambda v: -v, 2.0, 5])
jnp.unique(jnp.array([3, 1, 3, 2]), size=4)
jnp.unique(jnp.array([3, 1, 3, 2]), size=2, return_counts=True)
jnp.unique(jnp.array([3, 1, 3, 2]), size=5, fill_value=-1, return_index=True, return_inverse=True, return_counts=True)
jnp.union1d(i, jnp.array([1, 5]), size=6)
jnp.setdiff1d(i, jnp.array([1, 5]), size=4)
jnp.setxor1d(i, jnp.array([1, 5]), size=4)
jnp.intersect1d(i, jnp.array([1, 0, 5]), size=3)
jnp.intersect1d(i, jnp.array([1, 0, 5]), size=3, return_indices=True)
jnp.isin(i, jnp.array([1, 5]), method='sort')
jnp.isin(i, jnp.array([1, 5]), method='binary_search')
"""


def test_values() -> None:
    oracle.check_values(TABLE + VALUES)


def test_jaxprs() -> None:
    oracle.check_texts(TABLE)
