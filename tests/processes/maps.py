"""`shard_map` and `pmap` over the devices of several processes."""

from __future__ import annotations

SHARD = "f = lambda body, ins, outs, mesh=m2, **o: jax.shard_map(body, mesh=mesh, in_specs=ins, out_specs=outs, **o)\n"
ROWS = {
    "shard_map": [SHARD + row for row in (
        "f(lambda x: lax.psum(x, 'x'), P('x', 'y'), P(None, 'y'))(a)",
        "f(lambda x: lax.psum(x, 'y'), P('x', 'y'), P('x'))(a)",
        "f(lambda x: lax.psum(x, ('x', 'y')), P('x', 'y'), P())(a)",
        "f(lambda x: lax.psum(x, 'x'), P('x', 'y'), P(None, 'y'), mt)(v)",
        "f(lambda x: lax.psum(x, 'y'), P('x', 'y'), P('x'), mt)(made(v, NamedSharding(mt, P('x', 'y'))))",
        "jax.jit(f(lambda x: lax.pmean(x, 'x') + lax.axis_index('x'), P('x', 'y'), P('x', 'y')))(a)",
        "jax.jit(f(lambda x: lax.all_gather(x, 'i', tiled=True), P('i'), P(), m, check_vma=False))(v)",
        "jax.jit(f(lambda x: lax.ppermute(x, 'i', [(k, (k + 1) % 4) for k in range(4)]), P('i'), P('i'), m))(v)",
        "jax.jit(f(lambda x: lax.ppermute(x, 'i', [(0, 3)]), P('i'), P('i'), m))(v)",
        "jax.jit(f(lambda x: lax.all_to_all(x, 'i', 1, 0, tiled=True), P('i'), P(None, 'i'), m))(v)",
        "jax.jit(f(lambda x: lax.psum_scatter(x, 'i', scatter_dimension=1, tiled=True), P('i'), P(None, 'i'), m))(v)",
        "jax.jit(f(lambda x: lax.pmax(x, 'i'), P('i'), P(), m))(v), jax.jit(f(lambda x: lax.pmin(x, 'i'), P('i'), P(), "
        "m))(-v)",
        "jax.jit(f(lambda x: x * lax.axis_size('i') + lax.axis_index('i'), P('i'), P('i'), m))(v)",
        "jax.jit(f(lambda x: lax.psum(x, 'i', axis_index_groups=[[0, 2], [1, 3]]), P('i'), P('i'), m, "
        "check_vma=False))(v)",
        "jax.grad(lambda w: f(lambda w, x: lax.psum((w * x).sum(), ('x', 'y')), (P(), P('x', 'y')), P())(w, a))(2.0)",
        "jax.jit(jax.grad(lambda x: (f(lambda x: jnp.sin(x) * lax.psum(x, 'x'), P('x', 'y'), P('x', 'y'))(x) ** "
        "2).sum()))(a)",
        "jax.jit(f(lambda w, x: jax.grad(lambda w: (w * x).sum())(w), (P('y'), P('x', 'y')), P('y')))(v[0], a)",
        "jax.vmap(f(lambda x: lax.psum(x, 'x'), P('x', 'y'), P(None, 'y')))(np.stack([v, 2 * v]))",
        "jax.jit(f(lambda x: lax.scan(lambda c, r: (c + lax.psum(r, 'x'), c), x[0], x)[0], P('x', 'y'), P('y')))(a)",
        "jax.jit(f(lambda x: lax.fori_loop(0, 3, lambda i, c: lax.ppermute(c + 1, 'i', [(k, (k + 1) % 4) for k in "
        "range(4)]), x), P('i'), P('i'), m))(v)",
        "f(lambda x: x, P('x'), P('x'))(np.ones((3, 2), np.float32))",
        "f(lambda x: x, P('x', 'y'), P())(a)",
        "f(lambda x: x, P('x'), P('x'))(jax.device_put(v, own[0]))",
        "jax.jit(f(lambda x: x + 1, P('x'), P('x')))(jax.device_put(v, own[0]))",
        "f(lambda x: {'a': x * 2, 'b': (lax.psum(x.sum(), ('x', 'y')),)}, P('x', 'y'), {'a': P('x', 'y'), 'b': "
        "(P(),)})(a)",
    )],
    "pmap": [
        "jax.pmap(lambda x: lax.psum(x, 'i'), axis_name='i')(v[:2] + me)",
        "jax.pmap(lambda x: x * lax.axis_index('i'), axis_name='i')(v[:2] + me)",
        "jax.pmap(lambda x: lax.all_gather(x, 'i'), axis_name='i')(v[:2, :3] + me)",
        "jax.pmap(lambda x: lax.ppermute(x, 'i', [(k, (k + 1) % 4) for k in range(4)]), axis_name='i')(v[:2] + me)",
        "jax.pmap(lambda x: lax.psum_scatter(x, 'i'), axis_name='i')(np.arange(16.).reshape(2, 4, 2) + me)",
        "jax.pmap(lambda x: lax.all_to_all(x, 'i', 0, 0), axis_name='i')(np.arange(16.).reshape(2, 4, 2) + me)",
        "jax.pmap(lambda x: lax.pmax(x, 'i') - lax.pmin(x, 'i'), axis_name='i')(v[:2] * (me + 1))",
        "jax.pmap(lambda x: x + 1)(v[:2] + me)",
        "jax.pmap(lambda x, y: lax.pmean(x * y, 'i'), axis_name='i', in_axes=(0, None))(v[:2] + me, 2.0)",
        "jax.pmap(jax.grad(lambda x: (x * lax.psum(x, 'i')).sum()), axis_name='i')(v[:2] + me)",
        "jax.pmap(lambda x: lax.psum(1, 'i'), axis_name='i')(v[:2])",
        "jax.pmap(lambda x: lax.axis_size('i') * x, axis_name='i')(v[:2])",
        "jax.pmap(lambda w, x: jax.tree.map(lambda g: lax.pmean(g, 'i'), jax.grad(lambda w: ((x @ w) ** 2).sum())(w)), "
        "axis_name='i', in_axes=(None, 0))(np.ones((8, 2), np.float32), v.reshape(2, 2, 8) + me)",
        "jax.pmap(lambda x: lax.psum(x, 'i'), axis_name='i', devices=own)(v[:2] + me)",
    ],
}
