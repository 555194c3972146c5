"""Arrays over the devices of several processes."""

from __future__ import annotations

ROWS = {"arrays": [
    "a",
    "a.is_fully_addressable, a.is_fully_replicated, a.sharding, len(a.addressable_shards), len(a.global_shards)",
    "sorted((s.device.id, str(s.index), s.replica_id, s.data is None) for s in a.global_shards)",
    "repr(a), str(a), len(a)",
    "np.asarray(a)",
    "jax.device_get(a)",
    "a.tolist()",
    "pickle.dumps(a)",
    "sorted(d.id for d in a.devices())",
    "made(v, S)", "made(v, NamedSharding(mt, P('y', 'x')))", "made(v, NamedSharding(m2, P(('x', 'y'))))",
    "made(v, NamedSharding(m2, P(None, 'y')))", "made(v, NamedSharding(m2, P()))",
    "r = made(v, NamedSharding(m2, P()))\nr.is_fully_replicated, np.asarray(r), repr(r), float(r[1, 2])",
    "made(v, NamedSharding(m2, P('y'))).addressable_data(0)",
    "jax.device_put(v, S2)", "jax.device_put(v, S)", "jax.device_put(3.0, NamedSharding(m, P()))",
    "jax.device_put(v + me, S2)",
    "jax.device_put({'a': v, 'b': (v[0], 2)}, NamedSharding(m2, P()))",
    "jax.device_put(a, NamedSharding(m2, P('y', 'x')))", "jax.device_put(a, NamedSharding(m2, P()))",
    "jax.device_put(a, NamedSharding(m2, P(('y', 'x'))))",
    "jax.device_put(made(v, NamedSharding(m2, P())), S2)",
    "jax.device_put(v, own[0])", "jax.device_put(v, NamedSharding(jax.make_mesh((2,), ('i',), (auto,), devices=own), "
    "P('i')))",
    "jax.make_array_from_process_local_data(NamedSharding(m2, P('x')), np.full((2, 3), me))",
    "jax.make_array_from_process_local_data(NamedSharding(m2, P('y')), np.full((2, 3), 5))",
    "jax.make_array_from_process_local_data(NamedSharding(m2, P(None, 'x')), np.full((2, 3), me, np.float32))",
    "jax.make_array_from_process_local_data(NamedSharding(m, P('i')), np.arange(4) + 4 * me)",
    "jax.make_array_from_process_local_data(NamedSharding(m2, P('x')), np.arange(12.0).reshape(4, 3), (4, 3))",
    "jax.make_array_from_process_local_data(NamedSharding(m2, P('x')), np.full((3, 3), me), (4, 3))",
    "jax.make_array_from_process_local_data(NamedSharding(m2, P('x')), np.full((2, 3), me), (4, 3))",
    "jax.make_array_from_process_local_data(NamedSharding(m2, P('x')), {'a': np.full((2, 3), me), 'b': np.ones(1)})",
    "jax.make_array_from_process_local_data(NamedSharding(m2, P()), np.full((2, 3), 4))",
    "jax.make_array_from_single_device_arrays((8,), NamedSharding(m, P('i')), [jax.device_put(np.full(2, d.id), d) for "
    "d in own])",
    "jax.make_array_from_single_device_arrays((4, 2), NamedSharding(m2, P('x')), [jax.device_put(np.full((2, 2), me), "
    "d) for d in own])",
    "jax.make_array_from_single_device_arrays((8,), NamedSharding(m, P('i')), [jax.device_put(np.full(2, 1), "
    "own[0])])",
    "jax.make_array_from_single_device_arrays((8,), NamedSharding(m, P('i')), [jax.device_put(np.full(3, 1), d) for d "
    "in own])",
    "jax.make_array_from_callback((8, 2), NamedSharding(m, P('i')), lambda i: np.full((2, 2), me, np.int32))",
    "jax.make_array_from_callback((7, 2), NamedSharding(m, P('i')), lambda i: np.full((2, 2), me, np.int32))",
    "jax.make_array_from_callback((0, 4), NamedSharding(m, P(None, 'i')), lambda i: np.zeros((0, 1), np.float32))",
    "S2.is_fully_addressable, len(S2.addressable_devices), S2.shard_shape((4, 8)), "
    "len(S2.devices_indices_map((4, 8))), sorted(str(i) for i in S2.addressable_devices_indices_map((4, 8)).values())",
    "x = made(v, S2)\nx.delete()\nx.is_deleted()",
    "a.block_until_ready() is a, a.is_ready(), a.nbytes, a.size, a.ndim, a.dtype == np.float32",
    "jax.device_put(v, NamedSharding(m, P('z')))",
]}
