"""Plugins for the host's processors where a program runs in several processes: each has its own devices alone."""

from __future__ import annotations

import ctypes
import textwrap

import pytest

import styrax as jax
from styrax.xla.pjrt import options
from tests.processes import ended, free_port, start

from .conftest import OTHER


@pytest.mark.skipif(bool(OTHER), reason="of plugins for the host's processors")
def test_what_they_say_to_options_of_processes():
    """They have no option for the number of processes: the newer one refuses what GPUs are told, the older one reads
    nothing of it."""
    given = {"node_id": 1, "num_nodes": 2}
    array, _kept = options.named_values(given)
    newer, older = (jax.devices(name)[0].client.plugin for name in ("xla_cpu", "xla_cpu_older"))
    with pytest.raises(jax.errors.JaxRuntimeError, match="Unexpected option name passed to PJRT_Client_Create"):
        newer.call("Client_Create", options=ctypes.addressof(array), count=len(given))
    client = older.call("Client_Create", options=ctypes.addressof(array), count=len(given)).client
    assert older.call("Client_ProcessIndex", client=client).process == 0
    found = [older.call(f"Client_{name}Devices", client=client).count for name in ("", "Addressable")]
    assert found[0] == found[1]
    older.call("Client_Destroy", handle=client)


@pytest.mark.skipif(bool(OTHER), reason="of plugins for the host's processors")
@pytest.mark.parametrize("platforms", ["", "xla_cpu,cpu"])
def test_each_process_has_its_own_devices(platforms):
    text = textwrap.dedent(f"""
        import os, sys
        os.environ["JAX_PLATFORMS"] = {platforms!r}
        import numpy as np, styrax as jax, styrax.numpy as jnp
        from styrax.sharding import NamedSharding, PartitionSpec as P
        jax.config.update("jax_num_cpu_devices", 2)
        me = int(sys.argv[1])
        jax.distributed.initialize(sys.argv[2], 2, me)
        devices = jax.devices("xla_cpu")
        assert devices == jax.local_devices(me, "xla_cpu") and len(devices) == 2
        v = np.arange(8, dtype=np.float32)
        assert np.asarray(jax.jit(lambda x: x * me)(jax.device_put(v, devices[1]))).tolist() == (v * me).tolist()
        mesh = jax.make_mesh((2,), ("i",), (jax.sharding.AxisType.Auto,), devices=devices)
        x = jax.device_put(v + me, NamedSharding(mesh, P("i")))
        assert x.is_fully_addressable and len(x.addressable_shards) == 2
        total = jax.shard_map(lambda a: jax.lax.psum(a, "i"), mesh=mesh, in_specs=P("i"), out_specs=P())
        for f in (total, jax.jit(total), lambda a: a.reshape(2, 4).sum(0)):
            y = f(x)
            assert y.devices() == set(devices) and np.asarray(y).tolist() == (v + me).reshape(2, 4).sum(0).tolist()
        named = jax.jit(lambda: jnp.arange(4.0), out_shardings=NamedSharding(mesh, P("i")))()
        assert named.devices() == set(devices)
        """)
    address = f"localhost:{free_port()}"
    found = ended(start([["-c", text, str(i), address] for i in range(2)], plain=True), 100)
    assert [status for status, _, _ in found] == [0, 0], found
