"""`jax.ds` in indices, and what stands in the brackets of `r_` and `c_`, as under JAX."""

from __future__ import annotations

import pytest

from . import oracle

TABLES = {
    "reads": """
        t[jax.ds(0, 1)]
        t[jax.ds(i[0], 1)]
        t[jax.ds(i[1], 2)]
        t[0, jax.ds(i[0], 2)]
        t[..., jax.ds(i[0], 2)]
        t[None, jax.ds(0, 2, stride=1), 1]
        t[:, :, jax.ds(0, 2, stride=2)]
        t[:, :, jax.ds(i[0], 2, stride=2)]
        t[:, :, jax.ds(3, 3, stride=2)]
        t[:, :, jax.ds(-3, 3)]
        t[:, :, jax.ds(-3, 3, stride=2)]
        t[:, :, jax.ds(9, 2)]
        t[1:2, jax.ds(i[0], 2), i[2]]
        t[jax.ds(i[0], 2), i[1:]]
        t[i, jax.ds(2, 2)]
        t[i, jax.ds(i[0], 2), i]
        t[jax.ds(i[0], 0)]
        t[jax.ds(i[0], 1), None, ..., 0]
        t[jax.ds(i[0], 1), True]
        t[jax.ds(0, 5)]
        t[jax.ds(True, 1)]
        t[jax.ds(i, 1)]
        t[jax.ds(None)]
        t[jax.ds(1)]
        t[jax.ds(i[0], 2, stride=-1)]
        t[jax.ds(i[0], 2, stride=i[0])]
        t.at[jax.ds(i[0], 2)].get()
        t.at[:, jax.ds(i[0] + 1, 2)].get(mode='fill', fill_value=-1)
        t.at[:, jax.ds(i[0], 2, stride=2)].get(mode='fill', fill_value=-1)
        t.at[jax.ds(i[1], 2)].get(wrap_negative_indices=False)
        jax.vmap(lambda k: t[0, jax.ds(k, 2)])(i)
        jax.grad(lambda y: y[jax.ds(i[0], 2)].sum())(x)
        jax.vmap(jax.grad(lambda y, k: (y[jax.ds(k, 2)] ** 2).sum()), (None, 0))(x, i)
        jax.lax.fori_loop(0, 3, lambda k, a: a + y[jax.ds(k, 1)], np.zeros(1, np.float32))
        jnp.zeros((0,))[jax.ds(0, 0)]
        jnp.take(t, jax.ds(0, 1))
    """,
    "updates": """
        t.at[jax.ds(i[0], 1)].set(0)
        t.at[:, jax.ds(i[0], 2)].add(1)
        t.at[0, jax.ds(i[0], 2), 1:2].set(7)
        t.at[:, jax.ds(i[0] + 1, 2)].set(9)
        t.at[:, jax.ds(i[1], 3)].set(9)
        t.at[:, jax.ds(5, 3)].set(9)
        t.at[:, :, jax.ds(i[0], 2, stride=2)].multiply(9)
        t.at[:, :, jax.ds(3, 3, stride=2)].set(9)
        t.at[jnp.abs(i), jax.ds(i[0], 2)].add(99)
        t.at[jnp.abs(i), jax.ds(i[0] + 1, 2)].set(99, mode='clip')
        jax.vmap(lambda k: t.at[0, jax.ds(k, 2)].set(0))(i)
        jax.grad(lambda y: (t.at[0, 0, jax.ds(i[0], 3)].multiply(y) ** 2).sum())(y)
    """,
    "brackets": """
        jnp.c_['r', [1, 2, 3], [4, 5, 6]]
        jnp.c_['c', [1, 2, 3], [4, 5, 6]]
        jnp.c_['0,2', [1, 2, 3], [4, 5, 6]]
        jnp.c_['0,2,0', x, y]
        jnp.c_['1', x, y]
        jnp.c_['1,3', x, y]
        jnp.c_['1,3,1', x, y]
        jnp.c_['1,2', 1:3, 0]
        jnp.c_['c', jnp.ones((2, 2)), jnp.zeros((2, 1))]
        jnp.c_[x, y]
        jnp.c_[1:3, 3:5]
        jnp.c_[1:3:4j]
        jnp.c_[2]
        jnp.c_['c', 2]
        jnp.r_['r', x, y]
        jnp.r_['c', x, y]
        jnp.r_['r', jnp.ones((2, 2)), jnp.zeros((1, 2))]
        jnp.r_['0,2', x, m]
        jnp.r_['1,2,0', x, y]
        jnp.r_['0,3,-2', x, y]
        jnp.r_['2,3,0', x, y]
        jnp.r_['abc', 2]
        jnp.r_['0,x', 2]
        jnp.r_[1, 'r', 2]
        !len(jnp.r_) + len(jnp.c_)
    """,
    "bases": """
        jnp.logspace(0, i, 3, base=y)
        jnp.logspace(0, x, 3, base=jnp.abs(y))
        jnp.logspace(0, 1, 3, base=jnp.abs(y))
        jnp.logspace(0, 1, 4, base=m)
        jnp.logspace(0, 1, 3, base=jnp.ones((2, 1)))
        jnp.logspace(m, 1, 4, base=jnp.ones((2, 1)))
        jnp.logspace(m, 1, 4, base=x)
        jnp.logspace(0, x, 4, base=2 + x, axis=1)
        jnp.logspace(0, x, 3, base=2, axis=-1)
    """,
    "several polynomials": """
        jnp.polyadd(x[None], m)
        jnp.polyadd(m, x[None])
        jnp.polysub(x[None], m)
        jnp.polysub(m, jnp.ones((1, 1)))
        jnp.polyadd(x[:1], m)
        jnp.polyadd(m, jnp.ones((2, 1)))
        jnp.polyadd(s, x)
        jnp.polyadd(x, m)
        jnp.polyadd(x[:2], jnp.ones((4, 1)))
        jnp.polyadd(t, x[:1])
        jax.grad(lambda a: jnp.polysub(m, a).sum())(x[None])
        jax.vmap(lambda a: jnp.polyadd(a, x))(m)
    """,
}


@pytest.mark.parametrize("name", TABLES)
def test_values(name):
    oracle.check_values(TABLES[name])
