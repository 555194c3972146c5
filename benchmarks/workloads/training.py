"""Training steps: the two networks of the demonstration, and a small transformer."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from examples import digits

from .catalog import Workload, between, floats


def step_of(network):
    def step(params, velocity, images, labels):
        return digits.train_step(network, params, velocity, images, labels, 0.1)

    return step


def layers(sizes, rng):
    return [
        {"w": w * np.float32(np.sqrt(2 / m)), "b": np.zeros(n, np.float32)}
        for (m, n) in sizes
        for w in floats((m, n), rng=rng)
    ]


def zeros_like(params):
    return jax.tree_util.tree_map(np.zeros_like, params)


def image_batch(batch, rng):
    images = rng.random((batch, 8, 8, 1), dtype=np.float32)
    return [images, rng.integers(0, 10, batch).astype(np.int32)]


def mlp_arguments(shape, rng):
    params = layers([(64, 256), (256, 128), (128, 10)], rng)
    return [params, zeros_like(params), *image_batch(shape[0], rng)]


def conv_arguments(shape, rng):
    def conv(inputs, outputs):
        (w,) = floats((3, 3, inputs, outputs), rng=rng)
        return {"w": w * np.float32(np.sqrt(2 / (9 * inputs))), "b": np.zeros(outputs, np.float32)}

    params = {"conv1": conv(1, 16), "conv2": conv(16, 32), "dense": layers([(512, 10)], rng)[0]}
    return [params, zeros_like(params), *image_batch(shape[0], rng)]


def normalise(x, scale):
    return x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-6) * scale


def attention(layer, x, heads):
    batch, length, width = x.shape
    q, k, v = jnp.split(x @ layer["qkv"], 3, axis=-1)
    q, k, v = (y.reshape(batch, length, heads, width // heads) for y in (q, k, v))
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(width // heads)
    scores = jnp.where(jnp.tril(jnp.ones((length, length), bool)), scores, -1e9)
    mixed = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores, axis=-1), v)
    return mixed.reshape(batch, length, width) @ layer["out"]


def transformer_loss(params, tokens):
    x = params["embedding"][tokens[:, :-1]]
    for layer in params["layers"]:
        x = x + attention(layer, normalise(x, layer["scale1"]), heads=4)
        x = x + jax.nn.gelu(normalise(x, layer["scale2"]) @ layer["up"]) @ layer["down"]
    log_probs = jax.nn.log_softmax(x @ params["embedding"].T)
    return -jnp.mean(jnp.take_along_axis(log_probs, tokens[:, 1:, None], axis=-1))


@jax.jit
def transformer_step(params, moments, tokens):
    """One step of Adam."""
    loss, grads = jax.value_and_grad(transformer_loss)(params, tokens)
    tree_map = jax.tree_util.tree_map
    first = tree_map(lambda m, g: 0.9 * m + 0.1 * g, moments[0], grads)
    second = tree_map(lambda v, g: 0.99 * v + 0.01 * g * g, moments[1], grads)
    params = tree_map(lambda p, m, v: p - 1e-3 * m / (jnp.sqrt(v) + 1e-6), params, first, second)
    return params, (first, second), loss


def transformer_arguments(shape, rng):
    batch, length, width = shape
    normal = partial(rng.standard_normal, dtype=np.float32)
    scale = np.float32(1 / np.sqrt(width))

    def layer():
        return {
            "qkv": normal((width, 3 * width)) * scale,
            "out": normal((width, width)) * scale,
            "up": normal((width, 4 * width)) * scale,
            "down": normal((4 * width, width)) * scale,
            "scale1": np.ones(width, np.float32),
            "scale2": np.ones(width, np.float32),
        }

    params = {"embedding": normal((256, width)) * scale, "layers": [layer() for _ in range(2)]}
    tokens = rng.integers(0, 256, (batch, length + 1)).astype(np.int32)
    return [params, (zeros_like(params), zeros_like(params)), tokens]


MLP_STEP = Workload(
    "digits mlp step", step_of(digits.mlp), mlp_arguments, [(64,)], between(8, 256), tolerance=1e-3
)
CONV_STEP = Workload(
    "digits conv step", step_of(digits.conv_net), conv_arguments, [(64,)], between(8, 256), tolerance=1e-3
)
TRANSFORMER_STEP = Workload(
    "transformer step", transformer_step, transformer_arguments, [(8, 64, 128), (1, 16, 32)],
    lambda rng: (rng.integers(1, 8), rng.integers(8, 80), 4 * rng.integers(8, 32)), tolerance=2e-2,
)  # fmt: skip
