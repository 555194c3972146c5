"""What JAX leaves open, has for other platforms or lacks a package for: these rows hold.

Parts are views of their array's memory, `pbroadcast`, NaN in maxima, donation under the eyes of NumPy, refusals,
pictures.
"""

from __future__ import annotations

from . import exports

ROWS = [
    "with jax.set_mesh(e8):\n    y = jnp.matmul(jnp.ones((1, 8, 4)), jnp.ones((3, 4, 2)), out_sharding=P(None, 'i'))\n"
    "str(jax.typeof(y)) == 'float32[3,8@i,2]'",
    "y = jax.device_put(x64, S8)\n"
    "[s.data.unsafe_buffer_pointer() - y.addressable_shards[0].data.unsafe_buffer_pointer() for s in "
    "y.addressable_shards] == [32 * k for k in range(8)]",
    "y = jax.device_put(x64, NamedSharding(m8, P()))\n"
    "len({s.data.unsafe_buffer_pointer() for s in y.addressable_shards}) == 1",
    "y = jax.device_put(x64, S8)\n"
    "len(y.addressable_shards[0].data.devices() | y.addressable_shards[1].data.devices()) == 2",
    "np.asarray(shard(lambda x: lax.pbroadcast(x, 'i', 3), P('i'), P('i'))(x16)).tolist() == np.tile(x16[6:8], "
    "8).tolist()",
    "np.asarray(shard(lambda x: lax.pbroadcast(x, ('a', 'b'), 3), P(('a', 'b')), P(('a', 'b')), m42, "
    "check_vma=False)(x16)).tolist() == np.tile(x16[6:8], 8).tolist()",
    "np.asarray(shard(lambda x: lax.pbroadcast(x, ('b', 'a'), 3), P(('a', 'b')), P(('a', 'b')), m42, "
    "check_vma=False)(x16)).tolist() == np.tile(x16[12:14], 8).tolist()",
    "np.asarray(shard(lambda x: lax.pbroadcast(x, 'b', 1), P(('a', 'b')), P(('a', 'b')), m42)(x16)).tolist() == "
    "np.tile(x16.reshape(4, 2, 2)[:, 1:], (1, 2, 1)).ravel().tolist()",
    "np.isnan(shard(lambda x: lax.pmax(x, 'i'), P('i'), P())(np.where(i16 == 5, np.nan, x16))).tolist() == [False, "
    "True]",
    "x = jax.pmap(lambda x: x)(x64)\nseen = np.asarray(x)\ny = jax.pmap(lambda x: x + 1, donate_argnums=0)(x)\n"
    "np.array_equal(seen, x64) and np.array_equal(y, x64 + 1)",
    "def body(x):\n"
    "    return lax.cond(x[0] > 0, lambda x: (jax.debug.print('a'), lax.psum(x, 'i'))[1], lambda x: x, x)\ntry:\n"
    "    shard(body, P('i'), P('i'), check_vma=False)(x8)\n    out = False\nexcept NotImplementedError as error:\n"
    "    out = 'axis_index' in str(error)\nout",
    "try:\n    jax.pmap(lambda x: lax.psum(x, 'p', axis_index_groups=[[0, 1], [2, 3]]), 'p')(x64)\n    out = False\n"
    "except ValueError as error:\n    out = 'cover all' in str(error)\nout",
    "pickle.loads(pickle.dumps(D[3])) is D[3] and pickle.loads(pickle.dumps(S42)) == S42",
    "import contextlib, io\nout = io.StringIO()\nwith contextlib.redirect_stdout(out):\n"
    "    jax.debug.visualize_array_sharding(jax.device_put(x64, S42))\n"
    "[w for w in out.getvalue().replace('CPU', '').split() if w.isdigit()] == list('01234567')",
    "import contextlib, io\nout = io.StringIO()\nwith contextlib.redirect_stdout(out):\n"
    "    jax.debug.visualize_sharding((8, 8), NamedSharding(m42, P('a')))\n"
    "[w for w in out.getvalue().replace('CPU', '').split() if ',' in w] == ['0,1', '2,3', '4,5', '6,7']",
    "np.array_equal(jax.pmap(lambda x: x * 2, in_axes=-1, out_axes=-1)(x64), x64 * 2)",
    *exports.KEPT,
]
