"""A small transformer, trained by data and tensor parallelism on eight devices of the host, and on one.

    python -m styrax examples/sharded.py [steps]

The devices form a mesh of four by two: batches are spread over "data", weights over "model". The losses of both runs
are printed side by side, and agree.
"""

from __future__ import annotations

import os
import sys

os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")

import jax
import jax.numpy as jnp
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


def main(steps: int) -> None:
    mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    put = lambda x, spec: jax.device_put(x, NamedSharding(mesh, spec))
    weights = initial(jax.random.key(0))
    sharded = {"embedding": put(weights["embedding"], P()),
               "layers": [{name: put(w, SPECS[name]) for name, w in each.items()} for each in weights["layers"]]}
    _, alone = train(weights, steps)
    trained, together = train(sharded, steps, lambda tokens: put(tokens, P("data")))
    for i in range(0, steps, max(steps // 10, 1)):
        print(f"step {i:4}  one device {alone[i]:.5f}  eight devices {together[i]:.5f}")
    spread = trained["layers"][0]["up"].sharding
    print(f"weights stay spread: {spread.spec} over {len(spread.device_set)} devices")
    difference = max(abs(a - b) for a, b in zip(alone, together, strict=True))
    print(f"largest difference of losses: {difference:.1e}, last loss {together[-1]:.4f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100)
