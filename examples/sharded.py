"""A small transformer, trained by data and tensor parallelism on eight devices of the host, and on one.

    python -m styrax examples/sharded.py [steps [folder]]
    XLA_FLAGS=--xla_force_host_platform_device_count=2 mpirun -n 4 python -m styrax examples/sharded.py [steps [folder]]

The devices form a mesh of four by two: batches are spread over "data", weights over "model". They may be those of
several processes. The losses of both runs are printed side by side, and agree. With a folder the weights are kept there
at the end, by each process the parts that it has, and the next run begins with them, on whatever processes.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

VOCABULARY, WIDTH, HEADS, LAYERS, LENGTH, BATCH = 32, 64, 4, 2, 16, 32

# how each weight of a layer is spread: columns of the first product of a pair, rows of the second
SPECS = {"qkv": P(None, None, "model", None), "out": P("model", None, None), "up": P(None, "model"),
         "down": P("model", None)}


def initial(key):
    shapes = {"qkv": (3, WIDTH, HEADS, WIDTH // HEADS), "out": (HEADS, WIDTH // HEADS, WIDTH),
              "up": (WIDTH, 4 * WIDTH), "down": (4 * WIDTH, WIDTH)}
    keys = iter(jax.random.split(key, 1 + LAYERS * len(shapes)))
    normal = lambda shape: jax.random.normal(next(keys), shape) * WIDTH**-0.5
    return {"embedding": normal((VOCABULARY, WIDTH)),
            "layers": [{name: normal(shape) for name, shape in shapes.items()} for _ in range(LAYERS)]}


def normalise(x):
    return x / jnp.sqrt(jnp.mean(x**2, -1, keepdims=True) + 1e-6)


def layer(x, w):
    q, k, v = jnp.einsum("btd,zdhe->zbthe", normalise(x), w["qkv"])
    scores = jnp.einsum("bthe,bshe->bhts", q, k) * q.shape[-1] ** -0.5
    scores = jnp.where(jnp.tri(x.shape[1], dtype=bool), scores, -jnp.inf)
    x = x + jnp.einsum("bhts,bshe,hed->btd", jax.nn.softmax(scores), v, w["out"])
    return x + jax.nn.gelu(normalise(x) @ w["up"]) @ w["down"]


def loss(weights, tokens):
    x = weights["embedding"][tokens[:, :-1]]
    for w in weights["layers"]:
        x = layer(x, w)
    scores = jax.nn.log_softmax(normalise(x) @ weights["embedding"].T)
    return -jnp.mean(jnp.take_along_axis(scores, tokens[:, 1:, None], -1))


@jax.jit
def step(weights, tokens):
    value, gradient = jax.value_and_grad(loss)(weights, tokens)
    return jax.tree.map(lambda w, g: w - 0.5 * g, weights, gradient), value


def batch(key):
    """Sequences that count upwards from a random number."""
    return (jax.random.randint(key, (BATCH, 1), 0, VOCABULARY) + jnp.arange(LENGTH)) % VOCABULARY


def train(weights, steps, place=lambda tokens: tokens):
    losses = []
    for key in jax.random.split(jax.random.key(1), steps):
        weights, value = step(weights, place(batch(key)))
        losses.append(float(value))
    return weights, losses


def keep(folder, weights):
    """Writes the parts of the weights that this process has, of equal ones the first."""
    parts = {}
    for path, w in jax.tree_util.tree_leaves_with_path(weights):
        for shard in w.addressable_shards:
            if shard.replica_id == 0:
                where = [s.indices(d)[:2] for s, d in zip(shard.index, w.shape)]
                parts[f"{jax.tree_util.keystr(path)} {where}"] = np.asarray(shard.data)
    np.savez(folder / f"process-{jax.process_index()}.npz", **parts)


def kept(folder, weights):
    """Weights of these shapes from the parts that processes have written."""
    found = {}
    for file in folder.glob("process-*.npz"):
        with np.load(file) as parts:
            for key in parts.files:
                path, _, where = key.partition(" ")
                index = tuple(slice(*map(int, ends.split(","))) for ends in where[2:-2].split("), ("))
                found.setdefault(path, []).append((index, parts[key]))

    def restored(path, w):
        whole = np.empty(w.shape, w.dtype)
        for index, part in found[jax.tree_util.keystr(path)]:
            whole[index] = part
        return whole

    return jax.tree_util.tree_map_with_path(restored, weights)


def main(steps: int, folder: Path | None) -> None:
    if any(name in os.environ for name in ("JAX_COORDINATOR_ADDRESS", "PMI_SIZE", "OMPI_COMM_WORLD_SIZE")):
        jax.distributed.initialize()
    mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    put = lambda x, spec: jax.device_put(x, NamedSharding(mesh, spec))
    weights = initial(jax.random.key(0))
    if folder is not None and any(folder.glob("process-*.npz")):
        weights = kept(folder, weights)
    sharded = {"embedding": put(weights["embedding"], P()),
               "layers": [{name: put(w, SPECS[name]) for name, w in each.items()} for each in weights["layers"]]}
    _, alone = train(weights, steps)
    trained, together = train(sharded, steps, lambda tokens: put(tokens, P("data")))
    if folder is not None:
        folder.mkdir(exist_ok=True)
        keep(folder, trained)
    if jax.process_index():
        return
    for i in range(0, steps, max(steps // 10, 1)):
        print(f"step {i:4}  one device {alone[i]:.5f}  eight devices {together[i]:.5f}")
    spread = trained["layers"][0]["up"].sharding
    print(f"weights stay spread: {spread.spec} over {len(spread.device_set)} devices")
    difference = max(abs(a - b) for a, b in zip(alone, together, strict=True))
    print(f"largest difference of losses: {difference:.1e}, last loss {together[-1]:.4f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100, Path(sys.argv[2]) if len(sys.argv) > 2 else None)
