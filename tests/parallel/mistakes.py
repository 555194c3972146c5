"""What does not fit: meshes, specifications, axes."""

from __future__ import annotations

MISTAKES = [
    "shard(lambda x: x, P('i'), P('i'))(np.zeros(9))", "shard(lambda x: x, P('i'), P('i'))(np.zeros(4))", "shard(lambda x: x, P('i'), P('i'))(3.)",
    "shard(lambda x: x, P('j'), P('i'))(x8)", "shard(lambda x: x, P('i'), P('j'))(x8)", "shard(lambda x: x, P('i', 'i'), P('i'))(x64)", "shard(lambda x: x, P('i'), P('i', 'i'))(x64)",
    "shard(lambda x: x, P('i'), P())(x8)", "shard(lambda x: x, P('a'), P('b'), m42)(x8)", "shard(lambda x: x, P('a', 'b'), P('a'), m42)(x64)", "shard(lambda x: lax.psum(x, 'a'), P('a', 'b'), P(), m42)(x64)",
    "shard(lambda x: lax.axis_index('q'), P('i'), P())(x8)", "shard(lambda x: lax.axis_size('q'), P('i'), P())(x8)", "shard(lambda x: x, (P('i'), P('i')), P('i'))(x8)",
    "shard(lambda x, y: x, (P('i'),), P('i'))(x8, x8)", "shard(lambda x: (x, x), P('i'), (P('i'),))(x8)", "shard(lambda x: (x, x), P('i'), {'a': P('i')})(x8)", "shard(lambda x: x.sum(), P('i'), P('i'))(x8)",
    "shard(lambda x: x.sum(), P('i'), P('i'), check_vma=False)(x8)", "shard(lambda x: x.sum(), P('i'), P())(x8)", "shard(lambda x: x, 'i', P('i'))(x8)", "shard(lambda x: x, P('i'), 'i')(x8)", "shard(lambda x: x, P('i'), 3)(x8)",
    "shard(lambda x: x, None, P('i'))(x8)", "shard(lambda x: x, (None,), P('i'))(x8)", "shard(lambda x: x, P('i'), None)(x8)", "jax.shard_map(lambda x: x, mesh=None, in_specs=P('i'), out_specs=P('i'))(x8)",
    "jax.shard_map(lambda x: x, mesh='m', in_specs=P('i'), out_specs=P('i'))(x8)", "jax.shard_map(lambda x: x, mesh=m8, in_specs=P('i'), out_specs=P('i'), axis_names={'q'})(x8)",
    "jax.shard_map(3, mesh=m8, in_specs=P('i'), out_specs=P('i'))", "shard(lambda x: 'text', P('i'), P('i'))(x8)", "shard(lambda x: x, P('i'), P('i'))('text')", "shard(lambda x: x, P('i'), P('i'))(x=x8)", "shard(lambda x: float(x), P('i'), P('i'))(x8)",
    "shard(lambda x: 1 if x[0] > 0 else 2, P('i'), P('i'))(x8)", "shard(lambda x: np.asarray(x), P('i'), P('i'))(x8)", "shard(lambda x: lax.ppermute(x, 'i', [(0, 1), (0, 2)]), P('i'), P('i'))(x8)", "shard(lambda x: lax.ppermute(x, 'i', [(0, 1), (2, 1)]), P('i'), P('i'))(x8)",
    "shard(lambda x: lax.ppermute(x, 'i', [(0, 9)]), P('i'), P('i'))(x8)", "shard(lambda x: lax.ppermute(x, ('a', 'b'), [(0, 9)]), P('a'), P(('a', 'b')), m42)(x8)", "shard(lambda x: lax.pshuffle(x, 'i', [0, 0]), P('i'), P('i'))(x8)", "shard(lambda x: lax.pshuffle(x, 'i', [1, 0]), P('i'), P('i'))(x8)", 
    "shard(lambda x: lax.psum_scatter(x, 'i'), P('i'), P('i'))(x16)", "shard(lambda x: lax.psum_scatter(x, 'i', tiled=True), P('i'), P('i'))(x16)", "shard(lambda x: lax.all_to_all(x, 'i', 0, 0), P('i'), P('i'))(x16)", "shard(lambda x: lax.all_to_all(x, 'i', 0, 0, tiled=True), P('i'), P('i'))(x16)", "shard(lambda x: lax.all_gather(x, 'i', axis=3), P('i'), P('i'))(x16)",
    "shard(lambda x: lax.psum(x, ('i', 'i')), P('i'), P())(x16)", "shard(lambda x: lax.psum(x, 'i', axis_index_groups=[[0, 1, 2, 3], [4, 5, 6, 7]]), P('i'), P('i'))(x16)", "shard(lambda x: lax.psum(x, 'i', axis_index_groups=[[0, 1, 2, 3], [4, 5, 6, 7]]), P('i'), P('i'), check_vma=False)(x16)",
    "shard(lambda x: lax.all_gather(x, 'i', axis_index_groups=[[0, 1, 2, 3], [4, 5, 6, 7]]), P('i'), P('i'), check_vma=False)(x16)", "shard(lambda x: lax.pcast(x, 'i', to='varying'), P('i'), P('i'))(x16)", "shard(lambda x: lax.pcast(x, 'i', to='nonsense'), P('i'), P('i'))(x16)",
    "lax.psum(x8, 'i')", "lax.axis_index('i')", "jax.smap(lambda x: x, in_axes=0, out_axes=0, axis_name='i')(x8)", "with jax.set_mesh(m8):\n    out = jax.smap(lambda x: x, in_axes='a', out_axes=0, axis_name='i')(x8)\nout", "with jax.set_mesh(m42):\n    out = shard(lambda x: x, P('i'), P('i'))(x8)\nout",
    "shard(lambda x: x, P('i'), P('i'), m8)(jax.device_put(x8, Mesh(np.array(D[:4]), ('i',)).devices.flat[2]))", "shard(lambda x: x, P('i'), P('i'), Mesh(np.array(D[:4]), ('i',)))(jax.device_put(x8, S8))", "shard(lambda x: x, P('a'), P('a'), m42, axis_names={'b'})(x8)", "shard(lambda x: x, P('b'), P('a'), m42, axis_names={'b'})(x8)",
    "shard(lambda x: lax.cond(x[0] > 0, lambda x: x, lambda x: lax.psum(x, 'i'), x), P('i'), P('i'))(x8)", "shard(lambda x: lax.while_loop(lambda c: c[0] < 3, lambda c: c + 1, x), P('i'), P())(x8)", "shard(lambda x: lax.fori_loop(0, 3, lambda k, c: c + x, jnp.zeros(1)), P('i'), P('i'))(x8)", "shard(lambda x: jnp.ones((2,)), P('i'), P('i'))(x8)",
]

ROWS = {"mistakes": MISTAKES}
