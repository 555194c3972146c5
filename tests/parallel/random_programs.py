"""Programs that were drawn at random, for sharding propagation: a row is `mesh; arguments; results` and the lines."""

from __future__ import annotations

PROGRAMS = [
    """m222; v0=((8,), 'z'), v1=((24, 24), None, ('x', 'y')); v5
    v2 = jax.grad(lambda u: ((u*v1).sum(0)**2).sum())(v1)
    v3 = jnp.repeat(v0, 2, 0)
    v4 = jnp.repeat(v2, 2, 1)
    v5 = wsc(v3, ('z', 'y'))""",
    """m222; v0=((16,), None), v1=((16,), ('z', 'x')); v7, v2, v4, v5, v6
    v2 = v1[::2]
    v3 = jnp.var(v1, 0)
    v4 = jnp.sort(v2, 0)[:2]
    v5 = wsc(v3, )
    v6 = jnp.nanmean(v4, 0)
    v7 = jnp.argsort(v2, 0)*1.""",
    """m42; v0=((16, 16), ('a', 'b'), None); v5, v2
    v1 = jnp.stack([v0, v0], 1)
    v2 = jnp.linspace(0., 1., 16) + v1
    v3 = v0.T
    v4 = jnp.linspace(0., 1., 16) + v1
    v5 = jnp.hypot(v4, v1)""",
    """m222; v0=((2, 24), 'z', 'y'), v1=((16, 16), 'z', ('y', 'x')); v8, v3
    v2 = lax.reduce_window(v0, 0., lax.add, (1, 2), (1, 1), 'SAME')
    v3 = wsc(v0, 'y', None)
    v4 = jnp.trace(v0)*v0
    v5 = v3.reshape((2, 12, 2))
    v6 = v1[:,:8]
    v7 = jnp.sin(v4)
    v8 = jax.lax.stop_gradient(v2)""",
    """m42; v0=((8, 8), 'b', None), v1=((8, 8), None, None), v2=((2, 2), 'b', None); v7, v3, v5
    v3 = jnp.nanmean(v1, 0)
    v4 = v0**2
    v5 = jax.nn.one_hot(jnp.argmax(v1, 0), 8)
    v6 = v4**2
    v7 = wsc(v6, None, 'a')""",
    """m42; v0=((4, 16, 8), 'b', 'a', None), v1=((8, 8), None, 'a'); v5, v2
    v2 = jnp.clip(v1, 0., 1.)
    v3 = v0[jnp.array([0,1,1])]
    v4 = v0 % 3.
    v5 = jnp.einsum('bij,bjk->bik', v0, jnp.swapaxes(v4,1,2))""",
    """m8; v0=((8,), 'i'), v1=((8, 8), None, 'i'); v7, v2, v4
    v2 = v1.max(1)
    v3 = jnp.concatenate([v1, v1], 1)
    v4 = jax.grad(lambda u: jax.nn.softmax(u@v3.T).sum())(v3)
    v5 = jnp.prod(v1, 1)
    v6 = jnp.einsum('ij,ij->ji', v3, v3)
    v7 = jnp.tile(v3, (2, 1))""",
    """m222; v0=((8,), ('z', 'x')), v1=((8,), ('y', 'z', 'x')), v2=((8,), 'z'); v8
    v3 = v2[0]
    v4 = jnp.where(v0 > 0, v2, v2)
    v5 = jnp.hypot(v4, v1)
    v6 = v5 % 3.
    v7 = v2.reshape(-1)
    v8 = wsc(v6, ('x', 'y', 'z'))""",
    """m42; v0=((8,), 'a'); v4
    v1 = lax.cummax(v0, 0)
    v2 = wsc(v1, ('a', 'b'))
    v3 = wsc(v2, 'b')
    v4 = v2 / v1""",
    """m8; v0=((16,), 'i'), v1=((16,), 'i'), v2=((16, 2), 'i', None); v8, v3, v5, v7
    v3 = jnp.maximum(v2, v2)
    v4 = jnp.concatenate([v2, v3], 1)
    v5 = (v1 + jnp.ones((16,)))
    v6 = lax.while_loop(lambda c: c[1] < 3, lambda c: (c[0]*v2, c[1]+1), (v3, 0))[0]
    v7 = jnp.tanh(v1)
    v8 = v0**2""",
    """m42; v0=((16,), 'b'), v1=((16,), ('b', 'a')); v7
    v2 = jnp.tensordot(v1, v0, 0)
    v3 = jnp.ones((16,))
    v4 = jnp.linspace(0., 1., 16) + v1
    v5 = v2.sum()
    v6 = v5 * v5
    v7 = v0[::2]""",
    """m222; v0=((4, 16), 'x', ('z', 'y')), v1=((16, 16), None, 'x'), v2=((16,), 'z'); v8, v3, v4
    v3 = jnp.sin(v1)
    v4 = v2 * 2
    v5 = lax.scan(lambda c, u: (c*v2, u.sum()), v2, v2)[0]
    v6 = v3.T
    v7 = jax.lax.stop_gradient(v1)
    v8 = jnp.split(v1, 2, 0)[0]""",
    """m222; v0=((24,), ('y', 'x')), v1=((16, 16), ('x', 'z'), 'y'); v5
    v2 = lax.reduce_window(v0, 0., lax.add, (2,), (1,), 'SAME')
    v3 = jnp.hypot(v0, v2)
    v4 = jnp.einsum('ij,kj->ki', v1, v1)
    v5 = jnp.linspace(0., 1., 24) + v3""",
    """m42; v0=((16, 16), None, 'b'); v4, v2
    v1 = jnp.repeat(v0, 2, 0)
    v2 = jnp.tile(v0, (1, 2))
    v3 = jax.nn.logsumexp(v0, 1)
    v4 = wsc(v1, 'a', 'b')""",
    """m8; v0=((16,), 'i'); v4, v3
    v1 = wsc(v0, 'i')
    v2 = v1[::2]
    v3 = lax.optimization_barrier(v1)
    v4 = jnp.argsort(v0, 0)*1.""",
    """m8; v0=((16,), 'i'), v1=((4, 8, 4), None, None, None); v7, v3
    v2 = jnp.expand_dims(v0, 0)
    v3 = lax.scan(lambda c, u: (c*v0, u.sum()), v0, v0)[0]
    v4 = jnp.einsum('ij,kj->ki', v2, v2)
    v5 = jnp.roll(v3, 1, 0)
    v6 = jax.nn.one_hot(jnp.argmax(v2, 0), 8)
    v7 = jnp.transpose(v6, (0, 1))""",
    """m222; v0=((8, 8), ('y', 'x'), 'z'), v1=((2, 24), None, 'y'), v2=((8,), ('y', 'z')); v6
    v3 = lax.rev(v2, (0,))
    v4 = jax.grad(lambda u: (u*v3).sum())(v2)
    v5 = v3 * 2
    v6 = lax.rev(v4, (0,))""",
    """m222; v0=((8,), ('z', 'y')), v1=((8, 8), 'z', ('x', 'y')); v5, v4
    v2 = v1 * 2
    v3 = jnp.tanh(v1)
    v4 = jnp.expand_dims(v3, 0)
    v5 = v2 @ v0""",
    """m42; v0=((2, 4, 24), None, None, None), v1=((8, 24), None, 'b'); v5
    v2 = lax.reduce_max(v1, (1,))
    v3 = v1.at[jnp.array([0,1])].add(1.)
    v4 = lax.map(lambda u: u*2, v2)
    v5 = jnp.hypot(v3, v3)""",
    """m8; v0=((2,), None), v1=((16, 4), 'i', None), v2=(2,); v6
    v3 = jax.vmap(lambda u: jnp.sort(u))(v1)
    v4 = jnp.clip(v0, 0., 1.)
    v5 = jnp.tanh(v1)
    v6 = lax.fori_loop(0, 3, lambda i, c: jnp.sin(c)+v1, v3)""",
    """m8; v0=((8,), None), v1=((8, 8), None, 'i'), v2=(8, 8); v6, v4, v5
    v3 = lax.fori_loop(0, 3, lambda i, c: jnp.sin(c)+v1, v1)
    v4 = v1.at[0].set(1.)
    v5 = lax.associative_scan(jnp.add, v0, axis=0)
    v6 = jax.nn.softmax(v5, 0)""",
    """m42; v0=((16, 16), None, 'a'), v1=((16,), ('a', 'b')); v6
    v2 = jnp.diff(v0, axis=0)
    v3 = wsc(v2, None, ('b', 'a'))
    v4 = v2 + v2
    v5 = jnp.maximum(v2, v4)
    v6 = jax.grad(lambda u: (u*v2).sum())(v5)""",
    """m8; v0=((16, 24), None, 'i'), v1=(8, 8), v2=((16, 24), None, 'i'); v6, v3
    v3 = lax.rev(v0, (0,))
    v4 = jax.vmap(lambda u, w: u@w)(v1, v1)
    v5 = v4.reshape((2, 4))
    v6 = jnp.sin(v3)""",
    """m42; v0=((8,), ('b', 'a')); v6, v1
    v1 = jnp.expand_dims(v0, 0)
    v2 = jnp.diag(v1[0])
    v3 = v0 * v0
    v4 = lax.erf(v0)
    v5 = jnp.sort(v2, 1)[:,:2]
    v6 = v5 * 2""",
]
