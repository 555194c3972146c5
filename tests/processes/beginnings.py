"""Who is there: processes, their devices, what the coordinator keeps."""

from __future__ import annotations

ROWS = {"beginnings": [
    "[(d.id, d.process_index, d.local_hardware_id, repr(d), str(d)) for d in own]",
    "[(d.id, d.process_index, repr(d), str(d)) for d in D]",
    "jax.device_count(), jax.local_device_count(), jax.process_index(), jax.process_count(), jax.process_indices()",
    "[d.id for d in jax.local_devices(process_index=0)], [d.id for d in jax.local_devices(process_index=1)]",
    "jax.local_devices(process_index=7)",
    "jax.distributed.initialize('localhost:1', 2, 0)",
    "jax.distributed.is_initialized()",
    "m2.is_multi_process, m2.local_mesh.shape_tuple, [d.id for d in m2.local_devices]",
    "mt.is_multi_process, mt.local_mesh.shape_tuple, [d.id for d in mt.local_devices]",
    "one = jax.make_mesh((2,), ('i',), devices=own)\none.is_multi_process, one.local_mesh.shape_tuple",
    "from jax._src.distributed import global_state as g\ng.process_id, g.num_processes",
    "from jax._src.distributed import global_state as g\nc = g.client\nc.key_value_set(f'k/{me}', 'v')\n"
    "found = c.blocking_key_value_get('k/0', 5000), c.blocking_key_value_get('k/1', 5000)\n"
    "c.wait_at_barrier('all', 5000)\nfound, sorted(c.key_value_dir_get('k'))",
    "from jax._src.distributed import global_state as g\ng.client.key_value_set_bytes(f'b/{me}', bytes(range(256)))\n"
    "g.client.blocking_key_value_get_bytes('b/1', 5000) == bytes(range(256))",
    "from jax._src.distributed import global_state as g\nc = g.client\nc.key_value_set(f'gone/{me}', 'v')\n"
    "c.key_value_delete(f'gone/{me}')\nc.key_value_try_get(f'gone/{me}')",
    "from jax._src.distributed import global_state as g\ng.client.blocking_key_value_get('nowhere', 50)",
    "from jax._src.distributed import global_state as g\ng.client.key_value_set(f'twice/{me}', 'v')\n"
    "g.client.key_value_set(f'twice/{me}', 'v')",
    "from jax._src.distributed import global_state as g\ng.client.key_value_set(f'over/{me}', 'v')\n"
    "g.client.key_value_set(f'over/{me}', 'w', True)\ng.client.key_value_try_get(f'over/{me}')",
    "from jax._src.distributed import global_state as g\nc = g.client\n"
    "c.wait_at_barrier('alone', 100) if me == 0 else None\nNone",
]}
