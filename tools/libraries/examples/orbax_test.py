"""Orbax: saving and restoring trees, managers of steps, metrics, asynchronous saves, keys, sharded arrays."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
import orbax.checkpoint.experimental.v1 as v1
import pytest
from etils import epath


@pytest.fixture
def folder(tmp_path):
    return epath.Path(tmp_path)


def tree(k: int = 0):
    return {"w": jnp.arange(6.0).reshape(2, 3) + k, "b": jnp.ones(3, jnp.bfloat16), "n": np.arange(4) + k, "s": 3,
            "l": [jnp.int32(2), {"k": jnp.zeros((1, 2))}]}


def same(x, y):
    assert str(jax.tree.structure(x)) == str(jax.tree.structure(y))
    for a, b in zip(jax.tree.leaves(x), jax.tree.leaves(y)):
        assert np.asarray(a).dtype == np.asarray(b).dtype
        np.testing.assert_array_equal(a, b)


def test_standard_checkpoints(folder):
    with ocp.StandardCheckpointer() as checkpointer:
        checkpointer.save(folder / "a", tree())
        checkpointer.wait_until_finished()
        same(checkpointer.restore(folder / "a", jax.tree.map(ocp.utils.to_shape_dtype_struct, tree())), tree())
        same(checkpointer.restore(folder / "a")["w"], tree()["w"])


def test_trees_and_their_metadata(folder):
    with ocp.PyTreeCheckpointer() as checkpointer:
        checkpointer.save(folder / "a", {"w": tree()["w"]})
        same(checkpointer.restore(folder / "a"), {"w": tree()["w"]})
    with ocp.StandardCheckpointer() as checkpointer:
        checkpointer.save(folder / "b", {"w": tree()["w"]})
        checkpointer.wait_until_finished()
        assert tuple(checkpointer.metadata(folder / "b").item_metadata.tree["w"].shape) == (2, 3)


def test_restoring_as_another_type(folder):
    sharding = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    with ocp.PyTreeCheckpointer() as checkpointer:
        checkpointer.save(folder / "a", {"w": tree()["w"]})
        as_half = ocp.ArrayRestoreArgs(restore_type=jax.Array, dtype=jnp.float16, sharding=sharding)
        same(checkpointer.restore(folder / "a", restore_args={"w": as_half})["w"], tree()["w"].astype(jnp.float16))


def test_a_manager_keeps_the_last_steps(folder):
    options = ocp.CheckpointManagerOptions(max_to_keep=2, save_interval_steps=1)
    with ocp.CheckpointManager(folder, options=options) as manager:
        for k in range(4):
            manager.save(k, args=ocp.args.StandardSave(tree(k)))
        manager.wait_until_finished()
        assert list(manager.all_steps()) == [2, 3] and manager.latest_step() == 3
        same(manager.restore(3, args=ocp.args.StandardRestore(tree())), tree(3))


def test_a_manager_keeps_the_best_step(folder):
    options = ocp.CheckpointManagerOptions(best_fn=lambda metrics: metrics["accuracy"], max_to_keep=1)
    with ocp.CheckpointManager(folder, options=options) as manager:
        for k, accuracy in enumerate((0.5, 0.9, 0.7)):
            items = ocp.args.Composite(state=ocp.args.StandardSave({"w": tree(k)["w"]}),
                                       meta=ocp.args.JsonSave({"k": k}))
            manager.save(k, metrics={"accuracy": accuracy}, args=items)
        manager.wait_until_finished()
        assert manager.best_step() == 1
        found = manager.restore(1, args=ocp.args.Composite(state=ocp.args.StandardRestore(),
                                                           meta=ocp.args.JsonRestore()))
        assert found.meta == {"k": 1}
        same(found.state["w"], tree(1)["w"])


def test_asynchronous_saves(folder):
    with ocp.AsyncCheckpointer(ocp.StandardCheckpointHandler()) as checkpointer:
        checkpointer.save(folder / "a", args=ocp.args.StandardSave(tree()))
        checkpointer.wait_until_finished()
        same(checkpointer.restore(folder / "a", args=ocp.args.StandardRestore(tree())), tree())


def test_keys(folder):
    key = jax.random.key(7)
    with ocp.Checkpointer(ocp.JaxRandomKeyCheckpointHandler()) as checkpointer:
        checkpointer.save(folder / "a", args=ocp.args.JaxRandomKeySave(key))
        found = checkpointer.restore(folder / "a", args=ocp.args.JaxRandomKeyRestore())
    same(jax.random.key_data(found), jax.random.key_data(key))
    with ocp.StandardCheckpointer() as checkpointer:
        checkpointer.save(folder / "b", {"key": key})
        checkpointer.wait_until_finished()
        found = checkpointer.restore(folder / "b", {"key": key})["key"]
    same(jax.random.normal(found, (2,)), jax.random.normal(key, (2,)))


def test_single_arrays(folder):
    with ocp.Checkpointer(ocp.ArrayCheckpointHandler()) as checkpointer:
        checkpointer.save(folder / "a", args=ocp.args.ArraySave(tree()["w"]))
        same(checkpointer.restore(folder / "a", args=ocp.args.ArrayRestore()), tree()["w"])


def test_sharded_arrays(folder):
    mesh = jax.sharding.Mesh(np.array(jax.devices()), ("x",))
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("x"))
    array = jax.device_put(jnp.arange(16.0).reshape(8, 2), sharding)
    with ocp.StandardCheckpointer() as checkpointer:
        checkpointer.save(folder / "a", {"a": array})
        checkpointer.wait_until_finished()
        like = jax.ShapeDtypeStruct((8, 2), jnp.float32, sharding=sharding)
        found = checkpointer.restore(folder / "a", {"a": like})["a"]
    same(found, array)
    assert found.sharding == sharding and len(found.addressable_shards) == len(jax.devices())


def test_the_second_interface(folder):
    v1.save_pytree(folder / "a", {"w": tree()["w"]})
    same(v1.load_pytree(folder / "a")["w"], tree()["w"])
