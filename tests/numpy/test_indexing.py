"""Reads and updates at indices."""

from __future__ import annotations

import jax
import jax.numpy
import numpy as np
import pytest

import styrax
import styrax.numpy as jnp
from tests.numpy import oracle

READS = """
x[0]
x[-1]
x[1:]
x[::2]
x[::-1]
x[2:0:-1]
x[::-2]
m[0]
m[-1, 1]
m[:, 0]
m[..., 1]
m[None]
x[:, None]
m[1:, ::-1]
m[0, ::-1]
m[()]
m[...]
m[None, ..., None]
m[0, None]
x[0:0]
x[i]
x[i[0]]
m[i[0]]
m[i[0], 1]
m[i[0], i[1]]
m[:, i[0]]
m[:, i]
m[i, i]
m[i[0], 1:]
m[i[:, None], i]
x[u]
x[jnp.int32(1)]
m[0:1, i]
t[i[0], :, ::2]
t[i[0], :, ::-1]
t[:, i, :]
t[i, :, i]
t[0, :, i]
t[i, 0]
t[i, None]
t[..., i]
t[:, i[:, None], i]
t[i, 1:3]
t[i, ::2]
t[i, ::-1]
t[None, i]
t[i[0], None, :, 1]
t[[0, 1], :]
t[True]
t[:, True]
x.at[i].get(mode='clip')
x.at[i].get(mode='fill', fill_value=2)
x.at[i].get(indices_are_sorted=True, unique_indices=True)
x.at[i].get(wrap_negative_indices=False)
x.at[1:].get(mode='fill')
x.at[i[0]].get(mode='fill')
jnp.take(x, i)
jnp.take(m, i, axis=1)
jnp.take(m, i, axis=1, mode='clip')
jnp.take(x, 0)
"""
UPDATES = """
x.at[0].set(1)
x.at[-1].set(y[0])
x.at[0].add(1)
x.at[i].add(y)
x.at[i].mul(2)
x.at[i].divide(2)
x.at[i].min(2)
x.at[i].max(2)
x.at[i].power(2)
x.at[i].subtract(1)
x.at[1:].set(0)
m.at[:, 1].set(0)
m.at[0].set(x)
m.at[0, 1:].set(0.5)
m.at[i[0]].set(x)
m.at[:, i].add(1.)
m.at[i[:2], i[:2]].set(x[:2])
m.at[::2, 0].set(x[0])
m.at[i[0], 1:].set(5)
x.at[i].set(y, mode='drop')
x.at[i].set(y, mode='clip')
x.at[::-1].set(y)
x.at[5].set(0)
x.at[-5].set(0)
x.at[:0].set(0)
m.at[None].set(1.)
m.at[0, None].set(x)
x.at[u].set(0)
i.at[0].add(1.5)
t.at[i, :, 0].set(y[0])
t.at[..., 0].set(9.)
t.at[i, None, i].set(9.)
t.at[::2, ::-1, i].add(1.)
"""
CONCRETE = """
!x[b]
!m[m > 0]
!m[b[:2], 1]
!x[np.array([True, False, True])]
!m.at[m > 0].set(0)
!x.at[b].set(0.)
!x.at[b].add(y[:2])
!m[:, b]
m[5]
m[-5]
m[:, 10]
m[jnp.array([0, 5, -1, -7])]
m.at[jnp.array([0, 5, -1, -7])].get(mode='fill')
m.at[jnp.array([0, 5, -1, -7])].set(9)
t[5, ...]
t[np.uint8(1)]
t[np.array(1)]
i.at[0].set(1.7)
u.at[0].set(300)
u.at[0].add(-1)
x.at[0].add(1j)
jnp.take(x, 5)
jnp.take(x, jnp.array([0, 7]), mode='wrap')
jnp.take(i, jnp.array([0, 7]))
jnp.take_along_axis(m, jnp.array([[0], [9]]), 1)
jnp.take_along_axis(m, jnp.array([[0, 1, 0]]), 0)
jnp.take_along_axis(m, jnp.array([0, 1, -1]), None)
jnp.put(x, i, y, inplace=False)
jnp.put_along_axis(m, jnp.array([[1], [0]]), 9., 1, inplace=False)
jnp.place(x, b, y, inplace=False)
jnp.fill_diagonal(m, 7., inplace=False)
jnp.unravel_index(jnp.array([3, 5, 100, -1]), (2, 3))
jnp.ravel_multi_index((jnp.array([0, 1]), jnp.array([5, 1])), (2, 3), mode='clip')
!jnp.choose(jnp.array([1, 0, 2]), [x, y, x])
jnp.choose(jnp.array([1, 0, 5]), [x, y, x], mode='wrap')
!jnp.compress(np.array([True, False, True]), m, axis=1)
jnp.compress(b, x, size=4, fill_value=-1)
!jnp.extract(b, x)
jnp.extract(b, x, size=1)
!jnp.nonzero(m)
jnp.nonzero(m, size=3)
jnp.nonzero(m, size=8, fill_value=-1)
!jnp.where(m > 0)
jnp.where(x, size=2)
!jnp.argwhere(m)
jnp.argwhere(x, size=2)
jnp.flatnonzero(x, size=2, fill_value=0)
x.at[i].apply(jnp.sin)
list(x)
jnp.zeros(0)[0]
jnp.zeros((2, 0))[..., -1]
jnp.zeros((0, 3)).at[jnp.array(0)].set(1)
jnp.zeros((2, 0))[1]
jnp.zeros(0)[np.zeros(0, int)]
jnp.unravel_index(u + 198, (30, 40))
jnp.unravel_index(u + 198, (300, 300))
jnp.unravel_index(u + 198, (2, 3))
jnp.unravel_index(i.astype('int8') - 100, (30, 40))
jnp.unravel_index(i.astype('uint32'), (3, 4))
"""
SELECT = """
jnp.where(b, x, y)
jnp.where(b, x, 0)
jnp.where(x > 0, 1., 0.)
jnp.where(x > 0, 1, 0)
jnp.where(b, i, y)
jnp.where(b, m, x)
jnp.where(x, x, y)
jnp.where(True, x, y)
jnp.select([b, x > 0], [x, y], 2)
jnp.select([b, b], [1, 2.])
jnp.clip(x, 0, 1)
jnp.clip(x, max=1)
jnp.clip(i, 0.5, 2)
x.clip(0, 1)
"""
ERRORS = """
x['a']
x[x]
x[0, 0]
x[1.0]
x[[0, 1]]
t[..., ...]
t[::0]
t[0:2.0]
t[object()]
m[jnp.array([True, False, True])]
m[m > 2, 0]
m.at[0].set(jnp.ones(4))
m.at[0].set('a')
m.at[0].set(jnp.ones((1, 3)))
jnp.take(x, 1.5)
jnp.take(x, jnp.array([0]), mode='raise')
jnp.put(x, 0, 1.)
jnp.where(True, 1)
jnp.take_along_axis(m, jnp.array([0]), 1)
jnp.clip(x, 0, 1j)
t.at[0].get(mode='wrap')
"""


def test_reads() -> None:
    oracle.check_values(READS)


def test_read_jaxprs() -> None:
    oracle.check_texts(READS)


def test_updates() -> None:
    oracle.check_values(UPDATES)


def test_update_jaxprs() -> None:
    oracle.check_texts(UPDATES)


def test_concrete() -> None:
    oracle.check_values(CONCRETE)


def test_selection() -> None:
    oracle.check_values(SELECT)
    oracle.check_texts(SELECT)


def test_errors() -> None:
    oracle.check_values(ERRORS)


def test_traced_booleans_and_slices() -> None:
    x = jnp.arange(3.0)
    with pytest.raises(styrax.errors.NonConcreteBooleanIndexError):
        styrax.jit(lambda x: x[x > 1])(x)
    with pytest.raises(IndexError, match="static"):
        styrax.jit(lambda x, i: x[i:2])(x, 1)


def test_assignment_is_refused() -> None:
    x = jnp.arange(3.0)
    with pytest.raises(TypeError, match="immutable"):
        x[0] = 1


def test_against_numpy() -> None:
    rng = np.random.default_rng(0)
    a = rng.normal(size=(3, 4, 5)).astype(np.float32)
    x = jnp.asarray(a)
    choices = [0, -1, slice(None), slice(1, None), slice(None, None, -1), slice(0, 4, 2), None, Ellipsis,
               np.array([0, 2, 1]), np.array([[0, 1], [2, 0]]), np.array([-1])]
    for _ in range(60):
        index = tuple(choices[k] for k in rng.integers(0, len(choices), rng.integers(1, 4)))
        if sum(i is Ellipsis for i in index) > 1:
            continue
        np.testing.assert_array_equal(np.asarray(x[index]), a[index], err_msg=repr(index))
        changed = a.copy()
        changed[index] = 7
        np.testing.assert_array_equal(np.asarray(x.at[index].set(7)), changed, err_msg=repr(index))


ODD_ARGUMENTS = """
jnp.take(t, True, axis=1)
jnp.take(x, b)
jnp.put(x, True, 5, inplace=False)
!jnp.put(x, 1.5, 5, inplace=False)
jnp.apply_along_axis(jnp.sort, 0, t)
jnp.apply_along_axis(lambda v: v[:2], 0, t)
jnp.apply_along_axis(lambda v: jnp.outer(v, v), 1, t)
jnp.apply_along_axis(jnp.sum, 1, t)
jnp.searchsorted(jnp.sort(c), c)
jnp.digitize(x, jnp.sort(y))
!jnp.copy([1, 2])
!jnp.ix_([0, 1])
!jnp.clip(x, [0, 1, 2])
!jnp.bincount(i, length=2.5)
!lax.bitcast_convert_type(c, np.float32)
lax.top_k(x, 2)
"""


def test_odd_arguments() -> None:
    oracle.check_values(ODD_ARGUMENTS)


@pytest.mark.parametrize("options", [
    {}, {"wrap_negative_indices": True}, {"wrap_negative_indices": False, "mode": "clip"},
    {"wrap_negative_indices": None, "mode": "fill"}])
def test_take_along_axis_negative_indices(options):
    x, i = np.arange(6.0).reshape(2, 3), np.array([[-1], [1]])
    np.testing.assert_array_equal(jnp.take_along_axis(jnp.asarray(x), i, 1, **options),
                                  jax.numpy.take_along_axis(jax.numpy.asarray(x), i, 1, **options))
