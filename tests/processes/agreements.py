"""`multihost_utils`."""

from __future__ import annotations

ROWS = {"agreements": [
    "multihost.broadcast_one_to_all(np.arange(3) + me)",
    "multihost.broadcast_one_to_all({'a': np.arange(3) + me, 'b': 2.0 * me}, is_source=me == 1)",
    "multihost.broadcast_one_to_all(np.zeros((0, 2)))",
    "multihost.process_allgather(np.arange(3) + me)", "multihost.process_allgather(np.arange(3) + me, tiled=True)",
    "multihost.process_allgather(me)", "multihost.process_allgather(me, tiled=True)",
    "multihost.process_allgather({'a': jnp.arange(2) * me, 'b': np.ones((2, 1), np.float16)})",
    "multihost.process_allgather(a)", "multihost.process_allgather(a, tiled=True)",
    "multihost.process_allgather(made(v, S), tiled=True)",
    "multihost.assert_equal(np.arange(3))", "multihost.assert_equal(np.arange(3) + me, 'no')",
    "multihost.assert_equal({'a': 1.0, 'b': [me]})",
    "multihost.sync_global_devices('here')", "multihost.sync_global_devices(f'here{me}')",
    "multihost.host_local_array_to_global_array(np.full((2, 3), me), m2, P('x'))",
    "multihost.host_local_array_to_global_array(np.full((2, 4), 7), m2, P('y'))",
    "multihost.host_local_array_to_global_array(np.full((2, 4), 7), m2, P(None))",
    "multihost.host_local_array_to_global_array(np.arange(8).reshape(2, 4) + 8 * me, m, P(None, 'i'))",
    "multihost.host_local_array_to_global_array(np.full((2, 4), 7), m2, None)",
    "multihost.host_local_array_to_global_array({'a': np.full(2, me), 'b': np.ones((2, 2))}, m2, {'a': P('x'), 'b': "
    "P()})",
    "multihost.global_array_to_host_local_array(a, m2, P('x', 'y'))",
    "multihost.global_array_to_host_local_array(made(v, NamedSharding(m2, P())), m2, P())",
    "multihost.global_array_to_host_local_array(a, m2, P(None, 'y'))",
    "multihost.reached_preemption_sync_point(1)",
]}
