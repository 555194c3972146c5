"""Mapping over devices with loops, branches, `vmap`, keys and itself."""

from __future__ import annotations

CONTROL = [
    "shard(lambda x: lax.cond(lax.axis_index('i') < 3, jnp.sin, jnp.cos, x), P('i'), P('i'))(x16)",
    "shard(lambda x: lax.switch(lax.axis_index('i') % 3, [jnp.sin, jnp.cos, jnp.tan], x), P('i'), P('i'))(x16)",
    "shard(lambda x: lax.cond(lax.psum(x.sum(), 'i') > 3, jnp.sin, jnp.cos, x), P('i'), P('i'))(x16)",
    "shard(lambda x: lax.cond(lax.psum(x.sum(), 'i') > 3, lambda x: lax.psum(x, 'i'), lambda x: lax.pmax(x, 'i'), "
    "x), P('i'), P())(x16)",
    "shard(lambda x: lax.fori_loop(0, lax.axis_index('i'), lambda k, c: c * 2 + k, x), P('i'), P('i'))(x16)",
    "shard(lambda x: lax.fori_loop(0, 3, lambda k, c: c + lax.psum(c, 'i'), x), P('i'), P('i'))(x16)",
    "shard(lambda x: lax.while_loop(lambda c: c[0] < 5, lambda c: c + lax.axis_index('i') + 1, x), P('i'), "
    "P('i'))(i8)",
    "shard(lambda x: lax.while_loop(lambda c: lax.pmax(c[0], 'i') < 500, lambda c: c * 2 + 1, x), P('i'), "
    "P('i'))(i8)",
    "shard(lambda x: lax.while_loop(lambda c: c[1] < 4, lambda c: (lax.ppermute(c[0], 'i', [(k, (k + 1) % 8) for k "
    "in range(8)]), c[1] + 1), (x, 0))[0], P('i'), P('i'))(x16)",
    "shard(lambda x: lax.scan(lambda c, y: (lax.ppermute(c, 'i', [(k, (k + 1) % 8) for k in range(8)]) + y, c), x, "
    "jnp.arange(3.)), P('i'), (P('i'), P(None, 'i')))(x16)",
    "shard(lambda x: lax.scan(lambda c, y: (c + lax.psum(y, 'i'), y), 0., x), P('i'), (P(), P('i')))(x16)",
    "shard(lambda x: lax.scan(lambda c, y: (c + y, y), 0., x), P('i'), (P(), P('i')))(x16)",
    "shard(lambda x: lax.scan(lambda c, y: (c + y, c), 0., x)[1], P('i'), P('i'), check_vma=False)(x16)",
    "shard(lambda x: lax.scan(lambda c, y: (c + y, y), lax.pcast(0., 'i', to='varying'), x)[1], P('i'), P('i'))(x16)",
    "shard(lambda x: lax.map(lambda y: y * lax.psum(y, 'i'), x), P('i'), P('i'))(x64)",
    "shard(lambda x: lax.associative_scan(jnp.add, x) + lax.psum(x, 'i'), P('i'), P('i'))(x16)",
    "shard(lambda x: jax.jit(lambda y: lax.psum(y, 'i'))(x), P('i'), P())(x16)",
    "shard(lambda x: jax.jit(lambda y: y + lax.axis_index('i'))(x), P('i'), P('i'))(x16)",
    "shard(lambda x: jnp.sort(x)[::-1] + jnp.cumsum(x), P('i'), P('i'))(x16)",
    "shard(lambda x: jnp.linalg.cholesky(x[0] @ x[0].T + jnp.eye(2))[None], P('i'), P('i'))(np.linspace(0, 1, 32, "
    "dtype=np.float32).reshape(8, 2, 2))",
    "shard(lambda x: x.at[0].set(lax.axis_index('i')), P('i'), P('i'))(i16)",
    "shard(lambda x: lax.dynamic_slice(x, (lax.axis_index('i'),), (2,)), P(), P('i'))(x16)",
    "shard(lambda x: x[lax.axis_index('i')][None], P(), P('i'))(x16)",
    "shard(lambda x: lax.fori_loop(0, 2, lambda k, c: lax.cond(c.sum() > 0, lambda c: -c, lambda c: c * 3, c), x), "
    "P('i'), P('i'))(x16)",
    "shard(lambda x: jnp.where(lax.axis_index('i') == 2, x, 0.), P('i'), P('i'))(x16)",
]

MAPPED = [
    "jax.vmap(shard(lambda x: x * lax.psum(x, 'i'), P('i'), P('i')))(x64)",
    "jax.vmap(shard(lambda x: x * lax.psum(x, 'i'), P('i'), P('i')), in_axes=1, out_axes=1)(x64)",
    "jax.vmap(shard(lambda x: x * lax.psum(x, 'i'), P('i'), P('i')), spmd_axis_name=None)(x64)",
    "jax.vmap(shard(lambda x, y: x * y + lax.axis_index('i'), (P('i'), P()), P('i')), in_axes=(0, None))(x64, x8[0])",
    "shard(jax.vmap(lambda x: x * lax.psum(x, 'i')), P('i'), P('i'))(x64)",
    "shard(jax.vmap(lambda x: x * lax.psum(x, ('i', 'j')), axis_name='j'), P('i'), P('i'), check_vma=False)(x16)",
    "shard(jax.vmap(lambda x: lax.axis_index(('i', 'j')), axis_name='j'), P('i'), P('i'))(x16)",
    "jax.vmap(jax.grad(lambda x: shard(lambda x: lax.psum(x ** 2, 'i'), P('i'), P())(x).sum()))(x64)",
    "jax.grad(lambda x: jax.vmap(shard(lambda x: lax.psum(x ** 2, 'i'), P('i'), P()))(x).sum())(x64)",
    "jax.jit(shard(lambda x: lax.psum(x, 'i'), P('i'), P()))(x16)",
    "jax.jit(lambda x: shard(lambda x: lax.psum(x, 'i'), P('i'), P())(x * 2) + 1)(x16)",
    "jax.jit(lambda x: shard(lambda x: x, P('i'), P('i'))(x))(x16)",
    "lax.scan(lambda c, y: (c + shard(lambda x: lax.psum(x, 'i'), P('i'), P())(y), c), jnp.zeros(1), x64)",
    "lax.fori_loop(0, 3, lambda k, c: shard(lambda x: x * lax.pmean(x, 'i'), P('i'), P('i'))(c), x16)",
    "lax.cond(x8[0] < 0, shard(lambda x: x * lax.pmean(x, 'i'), P('i'), P('i')), jnp.sin, x16)",
    "np.asarray(shard(lambda x: jax.shard_map(lambda y: y * lax.psum(y, ('a', 'b')), in_specs=P('b'), "
    "out_specs=P('b'), axis_names={'b'})(x), P('a'), P('a'), m42, axis_names={'a'})(x16))",
    "np.asarray(jax.jit(jax.shard_map(lambda x: jax.shard_map(lambda y: y + lax.axis_index(('a', 'b')), "
    "in_specs=P('b'), out_specs=P('b'), axis_names={'b'})(x), mesh=m42, in_specs=P('a'), out_specs=P('a'), "
    "axis_names={'a'}))(x16))",
    "shard(lambda x: shard(lambda y: y, P('i'), P('i'))(x), P('i'), P('i'))(x64)",
    "jax.eval_shape(shard(lambda x: lax.psum(x, 'i'), P('i'), P()), x16).shape",
    "shard(lambda x: x, P('i'), P('i')).__name__",
    "@jax.shard_map(mesh=m8, in_specs=P('i'), out_specs=P())\ndef f(x): return lax.psum(x, 'i')\nf(x16)",
    "jax.smap(lambda x: lax.psum(x, 'i'), in_axes=0, out_axes=None, axis_name='i')(x16)",
    "with jax.set_mesh(m8):\n"
    "    out = jax.jit(jax.smap(lambda x: x * lax.psum(x, 'i'), in_axes=0, out_axes=0, axis_name='i'))(x16)\nout",
]

KEYS = [
    "shard(lambda k: jax.random.normal(k, (2,)), P(), P())(jax.random.key(1))",
    "shard(lambda k: jax.random.normal(jax.random.fold_in(k, lax.axis_index('i')), (2,)), P(), "
    "P('i'))(jax.random.key(1))",
    "shard(lambda k: jax.vmap(lambda k: jax.random.normal(k, (2,)))(k), P('i'), "
    "P('i'))(jax.random.split(jax.random.key(1), 8))",
    "shard(lambda k: jax.random.bits(k[0], (2,)), P('i'), P('i'))(jax.random.split(jax.random.key(1), 8))",
    "shard(lambda k: k, P('i'), P('i'))(jax.random.split(jax.random.key(1), 8))",
    "shard(lambda k: jax.random.split(k[0], 3), P('i'), P('i'))(jax.random.split(jax.random.key(1), 8))",
    "shard(lambda k: lax.all_gather(k, 'i', tiled=True), P('i'), P('i'))(jax.random.split(jax.random.key(1), 8))",
    "shard(lambda k: lax.ppermute(k, 'i', [(j, (j + 1) % 8) for j in range(8)]), P('i'), "
    "P('i'))(jax.random.split(jax.random.key(1), 8))",
    "shard(lambda x: jax.random.uniform(jax.random.key(3), (2,)) + x, P('i'), P('i'))(x16)",
    "shard(lambda k: jax.random.normal(k[0], (2,)), P('i'), P('i'))(jax.random.split(jax.random.PRNGKey(1), 8))",
]

ROWS = {"control flow": CONTROL, "mapped": MAPPED, "keys": KEYS}
