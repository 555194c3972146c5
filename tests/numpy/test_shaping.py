"""Shapes, joining, splitting, padding, editing."""

from __future__ import annotations

import warnings

from tests.numpy import oracle

TABLE = """
jnp.reshape(x, (3, 1))
x.reshape(-1)
x.reshape(1, -1)
m.reshape(3, 2)
m.reshape((6,), order='F')
jnp.ravel(m)
m.flatten()
m.ravel(order='F')
jnp.transpose(m)
m.T
t.mT
t.transpose(1, 0, 2)
jnp.swapaxes(m, 0, 1)
jnp.moveaxis(t, 0, -1)
jnp.moveaxis(t, (0, 1), (1, 0))
jnp.expand_dims(x, 0)
jnp.expand_dims(x, (0, 2))
jnp.squeeze(m[None])
jnp.squeeze(m[None], 0)
jnp.concatenate([x, y])
jnp.concatenate([x, i])
jnp.concatenate([m, m], axis=1)
jnp.concatenate([m, m], axis=None)
jnp.concatenate(m)
jnp.concatenate([x, y], dtype='float16')
jnp.stack([x, y])
jnp.stack([x, y], axis=1)
jnp.stack([x, i])
jnp.stack(m)
jnp.stack([1, 2, w])
jnp.hstack([x, y])
jnp.vstack([x, y])
jnp.dstack([x, y])
jnp.column_stack([x, y])
jnp.broadcast_to(x, (2, 3))
jnp.broadcast_to(w, (2, 3))
jnp.broadcast_arrays(x, m)
jnp.tile(x, 2)
jnp.tile(x, (2, 2))
jnp.tile(m, (2, 1))
jnp.repeat(x, 2)
jnp.repeat(m, 2, axis=1)
jnp.repeat(x, u, total_repeat_length=4)
jnp.flip(x)
jnp.flip(m, 1)
jnp.fliplr(m)
jnp.flipud(m)
jnp.roll(x, 1)
jnp.roll(m, 1, axis=0)
jnp.roll(m, (1, 1), axis=(0, 1))
jnp.roll(m, 2)
jnp.rot90(m)
jnp.rot90(m, 3)
jnp.atleast_1d(w)
jnp.atleast_2d(x)
jnp.atleast_3d(x)
jnp.append(x, y)
jnp.append(m, m, axis=0)
jnp.ix_(x, y)
jnp.unstack(m)
jnp.resize(x, (2, 2))
jnp.rollaxis(t, 2)
jnp.block([[m, m]])
jnp.delete(x, 1)
jnp.diff(x)
jnp.diff(m, n=2, axis=1)
jnp.ediff1d(x)
jnp.matrix_transpose(t)
"""
VALUES = """
jnp.roll(x, i[0])
!jnp.repeat(x, np.array([1, 2, 0]))
jnp.split(x, 3)
jnp.split(x, [1])
jnp.array_split(x, 2)
jnp.hsplit(m, 3)
jnp.vsplit(m, 2)
jnp.dsplit(t, 2)
jnp.split(x, [2, 1])
jnp.pad(x, 1)
jnp.pad(m, ((1, 2), (0, 1)), constant_values=7)
jnp.pad(m, ((1, 2), (0, 1)), constant_values=((1, 2), (3, 4)))
jnp.pad(x, (1, 2), mode='edge')
jnp.pad(x, 4, mode='reflect')
jnp.pad(x, 4, mode='symmetric')
jnp.pad(x, 2, mode='reflect', reflect_type='odd')
jnp.pad(x, 4, mode='wrap')
jnp.pad(x, 2, mode='mean')
jnp.pad(m, 2, mode='maximum', stat_length=2)
jnp.pad(x, 2, mode='linear_ramp', end_values=5)
jnp.pad(m, 1, mode='median')
jnp.insert(x, 1, 5.)
jnp.insert(x, jnp.array([0, 2]), 9.)
jnp.insert(m, 1, 9., axis=1)
jnp.insert(m, 1, x, axis=0)
!jnp.delete(m, np.array([0, 2]), axis=1)
!jnp.delete(x, np.array([True, False, True]))
!jnp.trim_zeros(np.array([0, 1, 2, 0]))
jnp.packbits(u)
jnp.packbits(b, bitorder='little')
jnp.unpackbits(u)
jnp.unpackbits(u, count=-3, bitorder='little')
jnp.gradient(m)
jnp.gradient(x, 0.5)
jnp.trapezoid(m, x)
jnp.unwrap(4 * x)
jnp.interp(x, jnp.sort(y), y)
jnp.interp(x, y, y, period=2.)
jnp.diff(x, prepend=0, append=y)
jnp.diff(b)
m.view('int32')
m.view('int16')
jnp.array([[1, 2, 3, 4]], 'int8').view('int32')
c.view('float32')
x.view('uint8')
u.byteswap()
i.byteswap()
jnp.mgrid[0:3, 0:2]
jnp.ogrid[0:3, 0:2.]
jnp.r_[1, 2, x]
jnp.c_[x, y]
jnp.tril_indices(3)
jnp.triu_indices(3, k=1, m=4)
jnp.hanning(4)
jnp.kaiser(4, 2.)
jnp.blackman(6)
jnp.vectorize(lambda a, b: a + b)(x, m)
jnp.vectorize(jnp.dot, signature='(n),(n)->()')(m, x)
jnp.apply_along_axis(jnp.sort, 0, m)
jnp.apply_over_axes(jnp.sum, t, [0, 2])
jnp.flip(t, range(2))
jnp.squeeze(t[None, None], range(2))
jnp.expand_dims(x, {0, 1})
jnp.moveaxis(t, range(2), (1, 2))
jnp.roll(t, 1, np.array([0, 1]))
jnp.sum(t, {0, 2})
jnp.max(t, range(1, 3))
jnp.fromfunction(lambda a, b: a + b, (2, 3))
jnp.pad(jnp.array([[1, 2, 4], [5, 7, 7]], 'int8'), ((1, 2), (0, 3)), mode='mean')
jnp.pad(jnp.array([[1, 2, 4], [5, 7, 7]], 'uint8'), 2, mode='median')
jnp.pad(i - 4, 2, mode='mean', stat_length=2)
!jnp.trim_zeros(jnp.array([0, 1., 0, 2, 0, 0]))
!jnp.trim_zeros([0, 1., 0])
!jax.grad(lambda z: (jnp.trim_zeros(z)**2).sum())(jnp.array([0, 1., 0, 2, 0]))
!jax.grad(lambda z: (jnp.trim_zeros(z * b)**2).sum())(x)
!jnp.shape(None), jnp.ndim(None), jnp.size(None)
!jnp.shape([1, [2]] if 0 else [1, 2]), jnp.ndim('ab'), jnp.size((1, 2, 3))
!jnp.size([[1, 2], [3, 4]], axis=0)
jnp.array([[1., 3, 4, 5]], 'float32').view('int4').view('float32')
jnp.array([1, 2, 3, 4, -5, -6, 7, -8], 'int4').view('int32')
jnp.array([1, -2, 3, -4], 'int4').view('uint16')
jnp.array([1, -2], 'int4').view('int8')
jnp.array([1, -2, 1, 0], 'int2').view('uint8')
!jnp.array([17, -33], 'int8').view('int4')
!jnp.array_equal([1, 2], [1, 2]), jnp.array_equal([1, 2], i[:2]), jnp.array_equal([1, 2], [1, 2, 3])
!jnp.array_equal(None, 1)
!jnp.array_equal('a', 'a')
!jnp.array_equal([jnp.nan], [jnp.nan], equal_nan=True)
!jnp.array_equiv([1, 2], [[1, 2], [1, 2]]), jnp.array_equiv([1, 2], [[1], [2]])
!jnp.array_equiv(1, None)
"""
ROLLS = """
jnp.roll(x, 1.9)
jnp.roll(x, w)
jnp.roll(x, -y, (0, 0, 0))
jnp.roll(m, (1.2, 2.9), (0, 1))
jnp.roll(x, True)
jnp.roll(x, b[0])
jnp.roll(jnp.arange(300), u.astype(jnp.int8)[0])
jnp.roll(jnp.arange(300), 200 + u[0])
lax.broadcast_to_rank(m, 1)
lax.broadcast_to_rank(w, 2)
"""


def test_rolls_by_other_numbers_than_default_integers() -> None:
    oracle.check_values(ROLLS)


ERRORS = """
jnp.ones(3).reshape(2, 2)
jnp.ones(6).reshape(-1, -1)
jnp.ones(6).reshape(4, -1)
jnp.concatenate([])
jnp.concatenate([jnp.ones(2), jnp.ones((2, 2))])
jnp.stack([])
jnp.stack([jnp.ones(2), jnp.ones(3)])
jnp.squeeze(jnp.ones((2, 1)), 0)
jnp.broadcast_to(jnp.ones(3), (2, 2))
jnp.transpose(jnp.ones((2, 3)), (0, 0))
jnp.expand_dims(jnp.ones(2), 5)
jnp.split(jnp.ones(5), 2)
jnp.pad(x, 1, mode='foo')
jnp.pad(x, -1)
jnp.delete(x, 7)
x.flat
jnp.repeat(jnp.ones(3), jnp.array([1, 2]))
jnp.block((x, y))
"""


def test_values() -> None:
    oracle.check_values(TABLE)


def test_jaxprs() -> None:
    oracle.check_texts(TABLE)


def test_more_values() -> None:
    oracle.check_values(VALUES)


def test_errors() -> None:
    oracle.check_values(ERRORS)


def test_lists_have_a_shape_for_a_while_yet() -> None:
    for package in (oracle.jax, oracle.styrax):
        for name in ("shape", "ndim", "size"):
            with warnings.catch_warnings(record=True) as found:
                warnings.simplefilter("always")
                getattr(package.numpy, name)([1, 2])
            assert any(str(w.message).startswith(f"{name} requires ndarray or scalar arguments") for w in found)
