"""Arrays whose copies on the devices differ although they are told to be alike."""

from __future__ import annotations

# c: a number, v: a vector, ab: spread along a with copies along b; w: put together of unlike copies
ARRAYS = (
    "def own(f, mesh=m8, outs=P()):\n"
    "    return jax.shard_map(f, mesh=mesh, in_specs=(), out_specs=outs, check_vma=False)()\n"
    "def each(f, *args, ins=P(), outs=P(), mesh=m8):\n    return shard(f, ins, outs, mesh, check_vma=False)(*args)\n"
    "c = own(lambda: lax.axis_index('i').astype('float32'))\n"
    "v = own(lambda: jnp.arange(8.) + 10 * lax.axis_index('i'))\n"
    "ab = own(lambda: jnp.arange(2.) + 10 * lax.axis_index('a') + 100 * lax.axis_index('b'), m42, P('a'))\n"
    "w = jax.make_array_from_single_device_arrays((2,), NamedSharding(m8, P()), [\n"
    "    jax.device_put(np.arange(2, dtype=np.float32) + i, d) for i, d in enumerate(D)])\n"
    "local = lambda w, x: each(lambda w, x: w - .1 * jax.grad(lambda w: ((x @ w - 1) ** 2).sum())(w), w, x,\n"
    "                          ins=(P(), P('i')))\n"
    "mean = lambda w: each(lambda w: lax.pmean(w, 'i'), w)\n"
    "X = np.linspace(-1, 1, 32, dtype=np.float32).reshape(16, 2)\n")

_KEYS = "k = own(lambda: jax.random.fold_in(jax.random.key(0), lax.axis_index('i')))\n"

ROWS: dict[str, list[str]] = {
    "copies made": [ARRAYS + row for row in (
        "c", "v", "ab", "w", "each(lambda: lax.axis_index('i'), ins=())",
        "each(lambda: lax.axis_index('i') > 3, ins=())",
        "each(lambda: jnp.zeros((0, 2)) + lax.axis_index('i'), ins=())", "each(lambda x: x, x16, ins=P('i'))",
        "each(lambda x: (x * lax.axis_index('i'), lax.psum(x, 'i'), x), x8, outs=(P(), P(), P()))",
        "each(lambda: jnp.full(2, lax.axis_index('a'), 'bfloat16'), ins=(), outs=P('b'), mesh=m42)",
        "own(lambda: jnp.full((2, 2), 1j) * lax.axis_index('y'), m222, P('z', 'x'))",
        "m = Mesh(np.array(D[::-1]), ('i',))\nown(lambda: lax.axis_index('i') * 1., m)",
        "jax.make_array_from_single_device_arrays((8,), NamedSharding(m42, P('a')), [\n"
        "    jax.device_put(np.arange(2) + 10 * i, d) for i, d in enumerate(D)])",
        "jax.pmap(lambda x: (x, lax.psum(x, 'i')), axis_name='i', out_axes=(None, None))(x8)",
        "own(lambda: jax.random.uniform(jax.random.fold_in(jax.random.key(0), lax.axis_index('i')), (2,)))",
    )],
    "copies computed with": [ARRAYS + row for row in (
        "c + 1", "v * c", "w + w[::-1]", "w + np.ones(2, np.float32)", "ab + 1", "ab.sum()", "ab[1]",
        "jnp.ones(8) @ ab",
        "jnp.sort(-w)", "jnp.where(w > 3, w, 0)", "jnp.stack([w, w + 1])", "w.reshape(2, 1)", "w.at[0].set(7)",
        "w.astype('bfloat16').astype('float32')", "(w * 1j).conj()", "jnp.linalg.norm(w)", "jnp.copy(w)",
        "jax.jit(lambda c: c + 1)(c)", "jax.jit(lambda w: w + 1, donate_argnums=0)(w)\nw.is_deleted()",
        "jax.jit(lambda v: v * 2, out_shardings=S8)(v)",
        "jax.jit(lambda v: lax.with_sharding_constraint(v * 2, S8))(v)",
        "jax.jit(lambda w: w + 1).lower(w).compile()(w)", "lax.scan(lambda c, x: (c + x, c * x), w, jnp.arange(3.))",
        "lax.cond(w.sum() > 3, lambda w: w * 10, lambda w: w, w)",
        "lax.while_loop(lambda w: w.sum() < 20, lambda w: w * 2, w + 1)", "jax.vmap(lambda a: a * 2)(w)",
        "jax.grad(lambda z: (z ** 2).sum())(ab)", "jax.jit(jax.grad(lambda z: (z ** 2).sum()))(ab)",
        "jax.pmap(lambda x, w: x + w, in_axes=(0, None))(x8, w)",
        "jax.pmap(lambda x, w: lax.psum(w, 'i') + x, 'i', in_axes=(0, None))(x8, w)",
        "jax.pmap(lambda w: lax.pmean(w, 'i'), 'i', in_axes=None, axis_size=8)(w)",
    )],
    "copies in maps": [ARRAYS + row for row in (
        "each(lambda c: lax.psum(c, 'i'), c)", "each(lambda c: c[None], c, outs=P('i'))",
        "each(lambda w: lax.psum(w, 'i') + w, w)", "each(lambda v: v * 2, v, ins=P('i'), outs=P('i'))",
        "each(lambda v: v * 2, v, ins=P('b'), outs=P('b'), mesh=m42)",
        "each(lambda w: lax.psum(w, 'a'), w, outs=P('b'), mesh=m42)", "local(np.ones(2, np.float32), X)",
        "f = lambda w: mean(local(local(w, X), X))\n[f(np.ones(2, np.float32)), jax.jit(f)(np.ones(2, np.float32))]",
        "f = lambda w: mean(lax.scan(lambda w, _: (local(w, X), w.sum()), w, None, length=3)[0])\n"
        "jax.jit(f)(np.ones(2, np.float32))",
        "w = local(np.ones(2, np.float32), X)\njax.jit(lambda w: jax.jit(mean)(w) + w)(w)",
        "w = local(np.ones(2, np.float32), X)\n"
        "f = lambda w: each(lambda w, x: ((x @ w) ** 2).sum()[None], w, X, ins=(P(), P('i')), outs=P('i')).sum()\n"
        "[jax.grad(f)(w), jax.jit(jax.grad(f))(w)]",
        "jax.jit(jax.grad(lambda w: each(lambda w: w * (1. + lax.axis_index('i')), w).sum()))(jnp.ones(2))",
        "f = jax.checkpoint(lambda w: each(lambda w: jnp.sin(lax.psum(w, 'i')), w))\n"
        "jax.jit(jax.grad(lambda w: f(w).sum()))(w)",
        "jax.jit(lambda: own(lambda: lax.axis_index('i') * 1.) + 1)()",
        "jax.jit(lambda: lax.cond(own(lambda: lax.axis_index('i') > 3), lambda: 1., lambda: 2.))()",
        "jax.jit(lambda w: own(lambda: lax.axis_index('i') * 1.) * each(lambda w: lax.psum(w, 'i'), w))(w)",
        "jax.jit(lambda: own(lambda: lax.axis_index('i') * 1.)).lower().compile()()",
    )],
    "copies of summands": [
        "with jax.set_mesh(e22):\n"
        "    s = jax.device_put(np.arange(8.), P(unreduced={'x'}))\n"
        "    g = jax.jit(jax.shard_map(lambda x: x, in_specs=P(unreduced={'x'}), out_specs=P(), check_vma=False))\n"
        "    out = [[np.asarray(p.data) for p in g(s).addressable_shards]]\nout",
        "f = lambda x: x + jax.device_put(1., D[0])\n"
        "jax.jit(jax.shard_map(f, mesh=m8, in_specs=P('i'), out_specs=P('i')))(x8)",
    ],
    "copies of keys": [ARRAYS + _KEYS + row for row in (
        "k", "jax.random.key_data(k)", "jax.random.uniform(k)", "jax.random.split(k, 2)", "k[None]",
        "each(lambda k: jax.random.normal(k, (1,)), k, outs=P('i'))", "jax.device_put(k, D[3])",
        "jax.device_put(k, NamedSharding(m42, P()))", "jax.jit(lambda k: jax.random.fold_in(k, 3))(k)",
        "jax.jit(lambda: own(lambda: jax.random.fold_in(jax.random.key(0), lax.axis_index('i'))))()",
        "jax.jit(lambda: jax.random.normal(own(lambda: jax.random.key(lax.axis_index('i'))), (2,)))()",
        "jax.random.normal(own(lambda: jax.random.PRNGKey(lax.axis_index('i'))), (2,))",
        "own(lambda: jax.random.split(jax.random.key(lax.axis_index('i')), 2))",
        "own(lambda: jax.random.split(jax.random.key(lax.axis_index('a')), 2), m42, P('b'))",
    )],
    "copies moved": [ARRAYS + row for row in (
        "jax.device_put(v, NamedSharding(m42, P()))", "jax.device_put(ab, NamedSharding(m8, P()))",
        "jax.device_put(v, NamedSharding(Mesh(D[::-1], ('i',)), P()))", "jax.device_put(v, NamedSharding(m42, P('b')))",
        "jax.device_put(v, NamedSharding(m8, P()), may_alias=False)", "jax.device_put(v, D[3])",
        "lax.with_sharding_constraint(v, S8)", "lax.with_sharding_constraint(v, NamedSharding(m42, P('a')))",
        "jax.jit(lambda v: v, out_shardings=NamedSharding(m42, P('a')))(v)", "copy.deepcopy(w)", "copy.copy(w)",
        "jax.jit(lambda v: v * 2, in_shardings=NamedSharding(m8, P()))(v)",
    )],
    "copies read": [ARRAYS + row for row in (
        "float(c)", "np.asarray(ab)", "w.tolist()", "bool(w.sum() > 3)", "jax.device_get(w)", "w.is_fully_replicated",
        "jax.device_put(c, D[5])", "jax.device_put(w, NamedSharding(m8, P()))", "jax.device_put(v, S8)",
        "jax.device_put(ab, NamedSharding(m42, P()))", "w.addressable_data(3)", "pickle.loads(pickle.dumps(w))",
        "jax.block_until_ready(w)", "w.delete()\n[w.is_deleted()]",
        "[np.asarray(s.data) + 1 for s in ab.global_shards]", "jax.jit(lambda: w * 2)().tolist()",
    )],
}
