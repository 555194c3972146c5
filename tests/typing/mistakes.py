"""Mistakes that type checkers find: each of these lines has to be refused."""

import styrax.numpy as jnp

jnp.zeros("three")
jnp.sum([1, 2], axis="rows")
jnp.reshape(jnp.ones(4), 1.5)
jnp.ones(3).sum(axes=0)
jnp.exp(jnp.ones(3), jnp.ones(3))
jnp.ones(3).summ()
jnp.ones(3).at[0].put(1)
jnp.concatenate(3)
