"""Plugins whose devices several processes have: what clients are told, whose devices are whose, and what each runs.

The plugin is one without processors (`stand_in`), which two processes find for the platform `cuda`, with two devices
in each. What its programs compute the tests say; that XLA parts programs rightly is tested in one process.
"""

from __future__ import annotations

import textwrap
from pathlib import Path

from tests.processes import ended, free_port, start

BEGIN = f"""
import os, sys
sys.path.insert(0, {str(Path(__file__).parents[2])!r})
os.environ["JAX_PLATFORMS"] = sys.argv[3]
import numpy as np
import styrax as jax, styrax.numpy as jnp
from styrax.sharding import Mesh, NamedSharding, PartitionSpec as P, SingleDeviceSharding
from tests.xla import stand_in
me = int(sys.argv[1])

def begin(local=None, **arguments):
    plugin = stand_in.installed(**arguments)
    jax.distributed.initialize(sys.argv[2], 2, me, local)
    return plugin

def raised(kind, function):
    try:
        function()
    except kind as error:
        return str(error)
    raise AssertionError("nothing was raised")
"""
# besides: meshes over all devices, and an array of which each device has a part
MESH = """
plugin = begin()
D, own = jax.devices("cuda"), jax.local_devices(backend="cuda")
mesh = jax.make_mesh((4,), ("i",), (jax.sharding.AxisType.Auto,), devices=D)
S, whole = NamedSharding(mesh, P("i")), NamedSharding(mesh, P())
v = np.arange(8, dtype=np.float32)
x = jax.make_array_from_callback((8,), S, lambda index: v[index])
mine = [v[4 * me:4 * me + 2], v[4 * me + 2:4 * me + 4]]

def parts(array):
    return [np.asarray(s.data).tolist() for s in array.addressable_shards]
"""


def both(text: str, platforms: str = "") -> list[tuple[int, str, str]]:
    """What becomes of two processes."""
    address = f"localhost:{free_port()}"
    return ended(start([["-c", BEGIN + textwrap.dedent(text), str(i), address, platforms] for i in range(2)],
                       plain=True), 100)


def run(text: str, platforms: str = "") -> None:
    """Has two processes run, which are to end well."""
    found = both(text, platforms)
    assert [status for status, _, _ in found] == [0, 0], "\n".join(out + err for _, out, err in found)


def test_devices():
    run("""
        import pickle
        plugin = begin()
        D, own = jax.devices("cuda"), jax.local_devices(backend="cuda")
        assert plugin.options == [{"node_id": me, "num_nodes": 2}]
        assert [d.id for d in D] == [0, 1, 2, 3] and [d.process_index for d in D] == [0, 0, 1, 1]
        assert own == [d for d in D if d.process_index == me] == D[0].client.devices() if me == 0 else own == D[2:]
        assert [d.local_hardware_id for d in own] == [0, 1]
        assert (jax.process_index("cuda"), jax.process_count("cuda")) == (me, 2)
        assert (jax.device_count("cuda"), jax.local_device_count("cuda")) == (4, 2)
        assert [jax.local_devices(i, "cuda") for i in (0, 1)] == [D[:2], D[2:]]
        other = D[2 - 2 * me]
        assert str(other) == f"cuda:{other.id}" and repr(other) == f"CudaDevice(id={other.id})"
        assert other.local_hardware_id is None and other.platform == "gpu" and other.device_kind == "stand-in"
        assert pickle.loads(pickle.dumps(D)) == D
        assert "only supported for addressable" in raised(jax.errors.JaxRuntimeError, other.memory_stats)
        for target in (other, SingleDeviceSharding(other)):
            assert f"process {1 - me}" in raised(ValueError, lambda: jax.device_put(v, target))
        y = jax.device_put(np.ones(3, np.float32), own[1])
        assert y.devices() == {own[1]} and np.asarray(y).tolist() == [1, 1, 1]
    """.replace("jax.device_put(v", "jax.device_put(np.ones(3)"))


def test_each_process_has_its_parts():
    run(MESH + """
assert not S.is_fully_addressable and S.addressable_devices == set(own) and mesh.is_multi_process
assert not x.is_fully_addressable and not x.is_fully_replicated and x.shape == (8,) and x.sharding == S
assert [(s.device, s.index[0].start, s.replica_id) for s in x.addressable_shards] == [
    (own[0], 4 * me, 0), (own[1], 4 * me + 2, 0)]
assert parts(x) == [m.tolist() for m in mine] and len(x.global_shards) == 4
assert {s.data.device for s in x.addressable_shards} == set(own)
assert "spans non-addressable" in raised(RuntimeError, lambda: np.asarray(x))
assert repr(x) == "Array(shape=(8,), dtype=float32)"
assert np.asarray(x.addressable_data(1)).tolist() == mine[1].tolist()
y = jax.make_array_from_single_device_arrays((8,), S, [jax.device_put(m, d) for m, d in zip(mine, own)])
z = jax.make_array_from_process_local_data(S, np.concatenate(mine))
assert parts(y) == parts(z) == parts(x) and z.shape == (8,)
assert "per-device arrays" in raised(ValueError, lambda: jax.make_array_from_single_device_arrays(
    (8,), S, [jax.device_put(m, own[0]) for m in mine[:1]]))
r = jax.make_array_from_callback((8,), whole, lambda index: v)
assert r.is_fully_replicated and not r.is_fully_addressable and np.asarray(r).tolist() == v.tolist()
""")


def test_values_are_put_on_all():
    run(MESH + """
assert parts(jax.device_put(v, S)) == parts(x) == parts(jax.device_put(jax.device_put(v, own[1]), S))
both = jax.device_put(v.reshape(2, 4), NamedSharding(Mesh(np.array(D).reshape(2, 2), ("a", "b")), P("b", "a")))
assert parts(both) == [[v[2 * me:2 * me + 2].tolist()], [v[4 + 2 * me:6 + 2 * me].tolist()]]
assert "not the same on each process" in raised(AssertionError, lambda: jax.device_put(v + me, S))
local = jax.make_mesh((2,), ("i",), (jax.sharding.AxisType.Auto,), devices=own)
there = jax.device_put(v, NamedSharding(local, P("i")))  # of this process alone
assert there.is_fully_addressable and np.asarray(there).tolist() == v.tolist()
others = Mesh(np.array([d for d in D if d not in own]), ("i",))
assert not NamedSharding(others, P("i")).addressable_devices
raised(NotImplementedError, lambda: jax.device_put(v, NamedSharding(others, P("i"))))
""")


def test_programs():
    """Compiled for the devices of all processes, a program gets what is this process's, and gives as much."""
    run(MESH + """
plugin.computes = lambda place, blocks: [np.sin(blocks[0])]
y = jax.jit(jnp.sin)(x)
(text, options), = plugin.compiled
assert "mhlo.num_partitions = 4" in text and text.count('@mesh, [{"i"}') >= 2, text
from styrax.xla.pjrt.options import compile_options
assert options == compile_options([0, 1, 2, 3])
assert [[b.tolist() for b in blocks] for blocks in plugin.executed[-1]] == [[m.tolist()] for m in mine]
assert not y.is_fully_addressable and y.sharding.is_equivalent_to(S, 1)
assert parts(y) == [np.sin(m).tolist() for m in mine]
plugin.computes = lambda place, blocks: [blocks[0] + blocks[1].flat[0]]
for other in (1.0, np.ones(8, np.float32), jnp.ones(8)):  # committed to no device: whole on all
    assert parts(jax.jit(lambda a, b: a + b)(x, other)) == [(m + 1).tolist() for m in mine]
    assert plugin.executed[-1][0][1].shape == np.shape(other)
plugin.computes = lambda place, blocks: [blocks[0] + blocks[1]]
z = x + y  # an eager operation
assert parts(z) == [(m + np.sin(m)).tolist() for m in mine] and z.sharding.is_equivalent_to(S, 1)
assert "incompatible devices" in raised(ValueError, lambda: jax.jit(jnp.add)(x, jax.device_put(v, own[0])))
""")


def test_programs_that_name_the_devices():
    """In a sharding of results, and in a map, with no argument that is there."""
    run(MESH + """
plugin.computes = lambda place, blocks: [mine[place] + 1]
y = jax.jit(lambda: jnp.arange(1.0, 9.0), out_shardings=S)()
assert parts(y) == [(m + 1).tolist() for m in mine] and [len(blocks) for blocks in plugin.executed[-1]] == [0, 0]
total = jax.shard_map(lambda a: jax.lax.psum(a, "i"), mesh=mesh, in_specs=P("i"), out_specs=P())
for f, name in ((jax.jit(total), "jitted"), (total, "at once")):
    plugin.computes = lambda place, blocks, name=name: [np.float32(np.reshape(plugin.exchange(
        f"{name} {place}", [each[0].tolist() for each in plugin.executed[-1]]), (4, 2)).sum(0))]
    s = f(x)
    assert np.asarray(s).tolist() == v.reshape(4, 2).sum(0).tolist()
    assert s.is_fully_replicated and "mhlo.num_partitions = 4" in plugin.compiled[-1][0]
with mesh:
    plugin.computes = lambda place, blocks: [blocks[0] * 2]
    assert parts(jax.jit(lambda a: a * 2)(x)) == [(m * 2).tolist() for m in mine]
""")


def test_arrays_move_among_all():
    """By programs, which communicate: here by the store of keys and values."""
    run(MESH + """
from styrax.experimental import multihost_utils
numbers = iter(range(100))
def gathered(place, blocks):
    n = next(numbers)
    return [np.float32(np.concatenate([np.concatenate(e) for e in plugin.exchange(
        f"gather {n}", [each[0].tolist() for each in plugin.executed[-1]])]))]
plugin.computes = gathered
r = jax.device_put(x, whole)
assert r.is_fully_replicated and np.asarray(r).tolist() == v.tolist()
assert multihost_utils.process_allgather(x, tiled=True).tolist() == v.tolist()
assert multihost_utils.process_allgather(np.float32(me)).tolist() == [0, 1]
multihost_utils.sync_global_devices("here")
local = multihost_utils.global_array_to_host_local_array(x, mesh, P("i"))
assert local.is_fully_addressable and np.asarray(local).tolist() == np.concatenate(mine).tolist()
back = multihost_utils.host_local_array_to_global_array(np.concatenate(mine), mesh, P("i"))
assert parts(back) == parts(x)
""")


def test_kinds_of_programs():
    run(MESH + """
plugin.computes = lambda place, blocks: [blocks[0]]
compiled = jax.jit(lambda a: a + 1).lower(jax.ShapeDtypeStruct((8,), np.float32, sharding=S)).compile()
assert parts(compiled(x)) == parts(x) and compiled.output_shardings.is_equivalent_to(S, 1)
assert parts(jax.jit(jax.grad(lambda a: (a * a).sum()))(x)) == parts(jax.vmap(jnp.sin)(x)) == parts(x)
assert parts(jax.jit(lambda a: a * 1, in_shardings=S)(v)) == parts(x)
assert parts(jax.lax.with_sharding_constraint(v, S)) == parts(x)
plugin.computes = lambda place, blocks: [np.float32(5)]
assert float(x.sum()) == 5 and x.sum().is_fully_replicated and float(x[3]) == 5
keys = jax.device_put(jax.random.split(jax.random.key(0), 8), S)
assert [s.data.shape for s in keys.addressable_shards] == [(2,), (2,)]
explicit = jax.make_mesh((4,), ("i",), (jax.sharding.AxisType.Explicit,), devices=D)
plugin.computes = lambda place, blocks: [blocks[0]]
with jax.set_mesh(explicit):
    y = jax.make_array_from_callback((8,), NamedSharding(explicit, P("i")), lambda index: v[index])
    for z in (jnp.sin(y), jax.jit(jnp.cos)(y)):
        assert str(jax.typeof(z)) == "float32[8@i]" and parts(z) == parts(x)
one, other = plugin.exchange("texts", plugin.compiled)
assert one == other and len(one) > 8, "all compile the same"
""")


def test_orders_of_devices():
    """A process's arguments are in the order of the mesh; a program's large constants are on each of its devices."""
    run(MESH + """
from styrax.xla.pjrt.options import compile_options
big = np.arange(4096, dtype=np.float32)
plugin.computes = lambda place, blocks: [blocks[-1] + blocks[0][blocks[-1].astype(int)]]
for order in ([3, 1, 0, 2], [1, 2]):
    sharding = NamedSharding(Mesh(np.array(D)[order], ("i",)), P("i"))
    y = jax.make_array_from_callback((4096,), sharding, lambda index: big[index])
    z = jax.jit(lambda a: a + big)(y)
    assert plugin.compiled[-1][1] == compile_options(order)
    here = [i for i, d in enumerate(order) if D[d] in own]
    assert [s.device for s in z.addressable_shards] == [D[order[i]] for i in here]
    for (constant, block), i in zip(plugin.executed[-1], here, strict=True):
        assert (constant == big).all() and (block == np.split(big, len(order))[i]).all()
    assert all((np.asarray(s.data) == 2 * big[s.index]).all() for s in z.addressable_shards)
""")


def test_errors_of_programs():
    """They are let go of, and nothing else is."""
    run(MESH + """
def fails(place, blocks):
    raise ValueError("no such thing")
plugin.computes = fails
assert "INTERNAL: ValueError: no such thing" in raised(jax.errors.JaxRuntimeError, lambda: jax.jit(jnp.sin)(x))
jax.clear_caches()
assert not [o for o in plugin._objects.values() if isinstance(o, tuple) and "no such thing" in str(o)]
plugin.computes = lambda place, blocks: blocks
assert parts(jax.jit(jnp.sin)(x)) == parts(x)
""")


def test_donation():
    run(MESH + """
plugin.computes = lambda place, blocks: [blocks[0] + 1]
f = jax.jit(lambda a: a + 1, donate_argnums=0)
y = f(x)
assert x.is_deleted() and "tf.aliasing_output" in plugin.compiled[-1][0]
assert parts(f(y)) == [(m + 2).tolist() for m in mine]
""")


def test_as_the_default_platform():
    run("""
        plugin = begin(each=1)
        assert jax.default_backend() == "cuda" and len(jax.devices()) == 2 and len(jax.local_devices()) == 1
        assert jax.process_index() == me and jax.process_count() == 2
        plugin.computes = lambda place, blocks: [blocks[0] + 1]
        y = jax.jit(lambda a: a + 1)(np.ones(3, np.float32))
        assert y.devices() == set(jax.local_devices()) and np.asarray(y).tolist() == [2, 2, 2]
        mesh = jax.make_mesh((2,), ("i",), (jax.sharding.AxisType.Auto,))
        x = jax.make_array_from_process_local_data(NamedSharding(mesh, P("i")), np.float32([me, me]))
        assert x.shape == (4,)
        z = jax.jit(lambda a: a + 1)(x)
        assert np.asarray(z.addressable_data(0)).tolist() == [me + 1, me + 1]
    """, "cuda,cpu")


def test_maps_of_old_are_refused():
    run(MESH + """
f = jax.pmap(lambda a: jax.lax.psum(a, "i"), axis_name="i", backend="cuda")
assert "use jax.shard_map" in raised(NotImplementedError, lambda: f(v.reshape(4, 2)[:2]))
""")


def test_plugins_that_find_each_other():
    """As TPUs do, which are told nothing."""
    run("""
        plugin = begin(platform="tpu", known=(), number=me, count=2)
        D = jax.devices("tpu")
        assert plugin.options == [{}] and plugin.asker is None
        assert [d.process_index for d in D] == [0, 0, 1, 1] and jax.local_devices(backend="tpu") == D[2 * me:2 * me + 2]
        x = jax.make_array_from_callback((4,), NamedSharding(Mesh(np.array(D), ("i",)), P("i")),
                                         lambda index: np.arange(4.0, dtype=np.float32)[index])
        plugin.computes = lambda place, blocks: [blocks[0] + 1]
        assert [s.data.item() for s in jax.jit(lambda a: a + 1)(x).addressable_shards] == [2 * me + 1, 2 * me + 2]
    """)


def test_a_plugin_that_counts_otherwise():
    run("""
        begin(platform="tpu", number=1 - me, count=2)
        assert f"by the number {1 - me}" in raised(RuntimeError, lambda: jax.devices("tpu"))
    """)


def test_processes_that_have_not_joined():
    """Each has its own devices alone."""
    run("""
        plugin = stand_in.installed(platform="tpu", number=me, count=2)
        assert [d.id for d in jax.devices("tpu")] == [2 * me, 2 * me + 1] and jax.process_count("tpu") == 1
        x = jax.device_put(np.ones(4, np.float32), NamedSharding(Mesh(np.array(jax.devices("tpu")), ("i",)), P("i")))
        assert x.is_fully_addressable and np.asarray(x).tolist() == [1, 1, 1, 1]
    """)


def test_plugins_for_the_hosts_processors():
    """They are told nothing of others, whose options they refuse."""
    run("""
        plugin = begin(platform="xla_cpu_stand_in", known=("cpu_device_count",), each=1)
        device, = jax.devices("xla_cpu_stand_in")
        assert [device] == jax.local_devices(backend="xla_cpu_stand_in") and device.process_index == me
        assert plugin.options == [{"cpu_device_count": 1}] and plugin.asker is None
    """)


def test_some_devices_of_a_host():
    run("""
        plugin = begin(local=3 + me)
        assert len(jax.devices("cuda")) == 4
        assert plugin.options == [{"node_id": me, "num_nodes": 2, "visible_devices": [3 + me]}]
    """)
    run("""
        os.environ["JAX_LOCAL_DEVICE_IDS"] = "0,2"
        plugin = begin()
        assert len(jax.devices("cuda")) == 4 and plugin.options[0]["visible_devices"] == [0, 2]
    """)


def test_options_that_a_plugin_does_not_know():
    run("""
        begin(known=())
        assert "Unexpected option name" in raised(RuntimeError, lambda: jax.devices("cuda"))
    """)


def test_a_store_that_died():
    """The first process ends while the other waits for its devices."""
    found = both("""
        import time
        from styrax.core.arrays import host_devices
        begin()
        store = host_devices.cohort.client
        if me == 0:
            store.blocking_key_value_get("here", 20_000)
            time.sleep(0.5)  # the other is to be told that its key is set
            os._exit(3)
        store.key_value_set("here", "")
        print(raised(RuntimeError, lambda: jax.devices("cuda")))
    """)
    assert found[0][0] == 3 and found[1][0] == 0, found
    assert "UNAVAILABLE" in found[1][1] and "initialize backend 'cuda'" in found[1][1]
