"""Each collective over one axis and over several."""

from __future__ import annotations

REDUCTIONS = [
    f"shard(lambda x: lax.{name}(x, {axes}), P(('a', 'b')), P({left}), m42)({x})"
    for name in ("psum", "pmean", "pmax", "pmin")
    for axes, left in (("'a'", "'b'"), ("('a', 'b')", ""), ("('b', 'a')", ""), ("'b'", "'a'"))
    for x in ("x16",)
]

TYPES = [
    "shard(lambda x: lax.psum(x, 'i'), P('i'), P())(i16)",
    "shard(lambda x: lax.psum(x, 'i'), P('i'), P())(i16 > 3)",
    "shard(lambda x: lax.pmax(x, 'i'), P('i'), P())(i16 > 3)",
    "shard(lambda x: lax.pmean(x, 'i'), P('i'), P())(i16)",
    "shard(lambda x: lax.psum(x, 'i'), P('i'), P())(x16.astype(jnp.bfloat16))",
    "shard(lambda x: lax.pmean(x, 'i'), P('i'), P())(i16.astype(np.float16))",
    "shard(lambda x: lax.psum(x, 'i'), P('i'), P())(x16 + 1j)",
    "shard(lambda x: lax.psum(x, 'i'), P('i'), P())(i16.astype(np.uint8) * 30)",
    "shard(lambda x: (lax.psum(1, 'i'), lax.psum(2.5, 'i'), lax.psum(True, 'i')), P('i'), P())(x16)",
    "shard(lambda x: (lax.psum(x, ()), lax.pmean(x, ())), P('i'), P('i'))(x16)",
    "shard(lambda x: lax.psum({'a': x, 'b': (x * 2, 1)}, 'i'), P('i'), P())(x16)",
    "shard(lambda x: lax.psum(x, 'i'), P('i'), P())(np.zeros((0, 3), np.float32))",
    "np.asarray(shard(lambda x: lax.all_gather(x, 'i'), P(None, 'i'), P('i'))(np.zeros((0, 8), np.float32)))",
    "with jax.enable_x64(True):\n"
    "    out = shard(lambda x: (lax.psum(x, 'i'), lax.axis_index('i')[None], lax.pmean(x, 'i')), P('i'), (P(), "
    "P('i'), P()))(i16)\nout",
    "with jax.enable_x64(True):\n"
    "    out = shard(lambda x: (lax.psum(x > 3, 'i'), lax.all_gather(x, 'i'), jnp.cumsum(x)), P('i'), (P(), P('i'), "
    "P('i')))(i16)\nout",
]

MOVES = [
    "shard(lambda x: lax.all_gather(x, 'i'), P('i'), P('i'))(x16)",
    "shard(lambda x: lax.all_gather(x, 'i', tiled=True), P('i'), P('i'))(x16)",
    "shard(lambda x: lax.all_gather(x, 'i', axis=1), P('i'), P('i'))(x16)",
    "shard(lambda x: lax.all_gather(x, 'i', axis=-1), P('i'), P('i'))(x64)",
    "shard(lambda x: lax.all_gather(x, 'i', axis=1, tiled=True), P('i'), P('i'))(x64)",
    "shard(lambda x: lax.all_gather(x, ('a', 'b')), P(('a', 'b')), P('a'), m42)(x16)",
    "shard(lambda x: lax.all_gather(x, ('b', 'a')), P(('a', 'b')), P('a'), m42)(x16)",
    "shard(lambda x: lax.all_gather(x, ('b', 'a'), tiled=True), P(('a', 'b')), P('a'), m42)(x16)",
    "shard(lambda x: lax.all_gather(x, 'a', tiled=True), P(('a', 'b')), P('a', 'b'), m42)(x64)",
    "shard(lambda x: lax.all_gather(x, ('z', 'x'), axis=1, tiled=True), P(('x', 'y', 'z')), P(('x', 'y')), "
    "m222)(x64)",
    "shard(lambda x: lax.all_gather(x, 'i'), P('i'), P(), check_vma=False)(x16)",
    "shard(lambda x: lax.all_to_all(x, 'i', 1, 0, tiled=True), P('i'), P('i'))(x64)",
    "shard(lambda x: lax.all_to_all(x, 'i', 1, 1), P('i'), P('i'))(x64)",
    "shard(lambda x: lax.all_to_all(x, 'i', 1, 0), P('i'), P('i'))(x64)",
    "shard(lambda x: lax.all_to_all(x, 'a', 1, 0, tiled=True), P('a', 'b'), P('a', 'b'), m42)(x64)",
    "shard(lambda x: lax.all_to_all(x, ('a', 'b'), 1, 0, tiled=True), P(('a', 'b')), P(('a', 'b')), m42)(x64)",
    "shard(lambda x: lax.all_to_all(x, ('b', 'a'), 1, 0, tiled=True), P(('a', 'b')), P(('a', 'b')), m42)(x64)",
    "shard(lambda x: lax.all_to_all(x, ('x', 'z'), 1, 1), P('y', None), P(('x', 'z'), 'y'), m222)(x64[:, :4])",
    "shard(lambda x: lax.pswapaxes(x, 'i', 1), P('i'), P('i'))(x64)",
    "shard(lambda x: lax.ppermute(x, 'i', [(k, (k + 1) % 8) for k in range(8)]), P('i'), P('i'))(x16)",
    "shard(lambda x: lax.ppermute(x, 'i', [(0, 3), (5, 1)]), P('i'), P('i'))(x16)",
    "shard(lambda x: lax.ppermute(x, 'i', []), P('i'), P('i'))(x16)",
    "shard(lambda x: lax.ppermute(x, 'i', [(0, 3), (5, 1)]), P('i'), P('i'))(i16 > 3)",
    "shard(lambda x: lax.ppermute(x, 'a', [(0, 3), (3, 1)]), P(('a', 'b')), P(('a', 'b')), m42)(x16)",
    "shard(lambda x: lax.ppermute(x, ('a', 'b'), [(k, (k + 3) % 8) for k in range(8)]), P(('a', 'b')), P(('a', "
    "'b')), m42)(x16)",
    "shard(lambda x: lax.ppermute(x, ('a', 'b'), [(0, 7), (6, 1), (1, 2)]), P(('a', 'b')), P(('a', 'b')), m42)(x16)",
    "shard(lambda x: lax.ppermute(x, ('b', 'a'), [(0, 7), (6, 1), (1, 2)]), P(('a', 'b')), P(('a', 'b')), m42)(x16)",
    "shard(lambda x: lax.ppermute(x, ('x', 'z'), [(0, 3), (3, 1)]), P(('x', 'y', 'z')), P(('x', 'y', 'z')), "
    "m222)(x16)",
    "shard(lambda x: lax.ppermute(x, ('a', 'b'), [(0, 7), (6, 1)]), P('a'), P(('a', 'b')), m42)(x8)",
    "shard(lambda x: lax.pshuffle(x, 'i', [3, 1, 2, 0, 7, 6, 5, 4]), P('i'), P('i'))(x16)",
    "shard(lambda x: lax.pshuffle(x, ('a', 'b'), [3, 1, 2, 0, 7, 6, 5, 4]), P(('a', 'b')), P(('a', 'b')), m42)(x16)",
    "shard(lambda x: lax.psum_scatter(x, 'i'), P(None, 'i'), P('i'))(x64)",
    "shard(lambda x: lax.psum_scatter(x, 'i', tiled=True), P('i'), P('i'))(np.arange(64.0, dtype=np.float32))",
    "shard(lambda x: lax.psum_scatter(x, 'i', scatter_dimension=1, tiled=True), P('i'), P('i'))(x64)",
    "shard(lambda x: lax.psum_scatter(x, 'a', scatter_dimension=1), P('b'), P('b'), m42)(x64[:, :4])",
    "shard(lambda x: lax.psum_scatter(x, ('a', 'b'), scatter_dimension=1, tiled=True), P(('a', 'b')), P(None, ('a', "
    "'b')), m42)(x64)",
    "shard(lambda x: lax.psum_scatter(x, ('b', 'a'), scatter_dimension=1, tiled=True), P(('a', 'b')), P(None, ('a', "
    "'b')), m42)(x64)",
    "shard(lambda x: lax.psum_scatter(x, ('b', 'a'), scatter_dimension=1), P(('a', 'b')), P(('a', 'b')), m42)(x64)",
    "shard(lambda x: lax.psum_scatter(x, ('z', 'x')), P(None, 'y'), P(('x', 'z'), 'y'), m222)(x64[:4])",
    "shard(lambda x: (x[:1] * 0 + lax.axis_index('i')), P('i'), P('i'))(i16)",
    "shard(lambda x: (lax.axis_index('i')[None], lax.axis_size('i')), P('i'), (P('i'), P()), check_vma=False)(i16)",
    "shard(lambda x: lax.axis_index(('a', 'b'))[None], P('a'), P(('a', 'b')), m42)(x16)",
    "shard(lambda x: lax.axis_index(('b', 'a'))[None], P('a'), P(('a', 'b')), m42)(x16)",
    "shard(lambda x: lax.axis_index(('z', 'x'))[None], P('x'), P(('x', 'y', 'z')), m222, check_vma=False)(x16)",
    "shard(lambda x: jnp.full((1,), lax.axis_size(('x', 'z'))), P('x'), P('x'), m222)(x16)",
    "shard(lambda x: lax.pcast(x, 'i', to='varying') + lax.axis_index('i'), P(), P('i'))(i8)",
]

SPECS = [
    "shard(lambda x: x * 2, P(None, 'i'), P(None, 'i'))(x64)",
    "shard(lambda x: x * 2, P('a', 'b'), P('a', 'b'), m42)(x64)",
    "shard(lambda x: x * 2, P('b', 'a'), P('b', 'a'), m42)(x64)",
    "shard(lambda x: x.T, P('b', 'a'), P('a', 'b'), m42)(x64)",
    "shard(lambda x: x * 2, P(('b', 'a')), P(('b', 'a')), m42)(x64)",
    "shard(lambda x: x.sum()[None], P(('b', 'a')), P(('a', 'b')), m42)(x64)",
    "shard(lambda x: x * 2, P(('x', 'z'), 'y'), P('y', ('z', 'x')), m222)(x64)",
    "shard(lambda x: x * 2, P(), P('i'))(x8)",
    "shard(lambda x: x * 2, P('x', None, 'z'), P('x', None, 'z'), m222)(np.arange(64.0).reshape(4, 4, 4))",
    "shard(lambda x, y: (x @ y, x.sum(0)), (P('a', None), P(None, 'b')), (P('a', 'b'), P('a')), m42)(x64, x64)",
    "shard(lambda x, y: lax.psum(x @ y, 'b'), (P('a', 'b'), P('b', None)), P('a', None), m42)(x64, x64)",
    "shard(lambda t: {'s': lax.psum(t['u'], 'i'), 'v': t['v']}, ({'u': P('i'), 'v': P()},), {'s': P(), 'v': "
    "P()})({'u': x16, 'v': x8})",
    "shard(lambda t: t, P('i'), P('i'))({'u': x16, 'v': [x8, x64]})",
    "shard(lambda x: (x, None), P('i'), (P('i'), None))(x8)",
    "shard(lambda: jnp.arange(3) + lax.axis_index('i'), (), P('i'))()",
    "shard(lambda: jnp.arange(3), (), P())()",
    "np.asarray(shard(lambda x: x, P('i'), P('i'))(np.zeros((0, 4), np.float32)))",
    "np.asarray(shard(lambda x: x + 1, P('i'), P('i'))(np.zeros((8, 0), np.float32)))",
    "shard(lambda x: x + 1, P(), P())(3.0)",
    "shard(lambda x: x.reshape(1), P(), P('i'))(3)",
    "shard(lambda x: lax.psum(x, 'a'), P('a'), P(), m42, axis_names={'a'})(x16)",
    "jax.jit(jax.shard_map(lambda x: x * lax.axis_index('a'), mesh=m42, in_specs=P('a'), out_specs=P('a'), "
    "axis_names={'a'}))(x16)",
    "np.asarray(jax.jit(jax.shard_map(lambda x: jnp.sort(x) + lax.psum(x, 'a'), mesh=m42, in_specs=P('a'), "
    "out_specs=P('a'), axis_names={'a'}))(jax.device_put(x16, NamedSharding(m42, P(('a', 'b'))))))",
    "with jax.set_mesh(m42):\n"
    "    out = jax.jit(jax.shard_map(lambda x: lax.psum(x, 'a'), in_specs=P('a'), out_specs=P()))(x16)\nout",
    "shard(lambda x: lax.rev(x, (0,)), P('i'), P('i'))(jax.device_put(x16, D[3]))",
    "shard(lambda x: x * 2, P('i'), P('i'))(jax.device_put(x16, S8))",
    "shard(lambda x: x * 2, P('i'), P('i'))(jax.device_put(x64, NamedSharding(m8, P(None, 'i'))))",
    "shard(lambda x: x * 2, P('a'), P('a'), Mesh(np.array(D[4:]).reshape(4), ('a',)))(x16)",
    "shard(lambda x: x * 2, P('a'), P('a'), Mesh(np.array(D[::-1]), ('a',)))(x16)",
    "np.asarray(shard(lambda x: lax.axis_index('a')[None] + x, P('a'), P('a'), Mesh(np.array(D[5:6]), ('a',)))(i8))",
]

ROWS = {"reductions": REDUCTIONS, "types": TYPES, "moves": MOVES, "specifications": SPECS}
