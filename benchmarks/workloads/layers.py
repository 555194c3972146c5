"""Parts of networks, forward and with their gradients, and what updates their weights."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax import lax

from .catalog import Workload, between, floats

LAYOUT = ("NHWC", "HWIO", "NHWC")


@jax.jit
def attention(q, k, v):
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(q.shape[-1])
    n = q.shape[1]
    scores = jnp.where(jnp.tril(jnp.ones((n, n), bool)), scores, -1e30)
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores, -1), v)


short_heads = jax.jit(lambda q, k, v: jax.nn.dot_product_attention(q, k, v, is_causal=True))
attention_gradient = jax.jit(jax.grad(lambda q, k, v: (attention(q, k, v) ** 2).sum(), (0, 1, 2)))


def three(shape, rng):
    return floats(shape, shape, shape, rng=rng)


def draw_heads(rng):
    return rng.integers(1, 5), rng.integers(16, 300), rng.integers(1, 9), 8 * rng.integers(2, 12)


def gated(params, xs):
    w, u = params
    n = u.shape[0]

    def step(h, x):
        a, b = x @ w, h @ u
        reset, update = jax.nn.sigmoid(a[:, :n] + b[:, :n]), jax.nn.sigmoid(a[:, n : 2 * n] + b[:, n : 2 * n])
        new = jnp.tanh(a[:, 2 * n :] + reset * b[:, 2 * n :])
        return (1 - update) * new + update * h, None

    return (lax.scan(step, jnp.zeros((xs.shape[1], n)), xs)[0] ** 2).sum()


def gated_arguments(shape, rng):
    steps, batch, width = shape
    w, u, xs = floats((width, 3 * width), (width, 3 * width), shape, rng=rng)
    return [(w * np.float32(0.1), u * np.float32(0.1)), xs]


@jax.jit
def messages(x, w, senders, receivers):
    return jax.nn.relu(jax.ops.segment_sum((x @ w)[senders], receivers, x.shape[0]))


def graph(shape, rng):
    nodes, edges, width = shape
    ends = [rng.integers(0, nodes, edges).astype(np.int32) for _ in range(2)]
    return [*floats((nodes, width), (width, width), rng=rng), *ends]


@jax.jit
def block(x, w1, w2):
    mean = x.mean(-1, keepdims=True)
    spread = ((x - mean) ** 2).mean(-1, keepdims=True)
    return x + jax.nn.gelu((x - mean) / jnp.sqrt(spread + 1e-5) @ w1) @ w2


def block_arguments(shape, rng):
    rows, width = shape
    x, w1, w2 = floats((rows, width), (width, 4 * width), (4 * width, width), rng=rng)
    return [x, w1 * np.float32(0.05), w2 * np.float32(0.05)]


def residual(weights, x):
    convolved = lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=LAYOUT)
    h = jax.nn.relu(convolved(x, weights[0]))
    return (jax.nn.relu(x + convolved(h, weights[1])) ** 2).mean()


def residual_arguments(shape, rng):
    w1, w2, x = floats((3, 3, shape[-1], shape[-1]), (3, 3, shape[-1], shape[-1]), shape, rng=rng)
    return [(w1 * np.float32(0.1), w2 * np.float32(0.1)), x]


@jax.jit
def upsampled(x, w):
    return lax.conv_transpose(x, w, (2, 2), "SAME")


def pooled(x):
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


def pooled_channels_first(x):
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 3, 3), (1, 1, 2, 2), "SAME")


@jax.jit
def box_filtered(x):
    return lax.reduce_window(x, 0.0, lax.add, (9, 9), (1, 1), "SAME") / 81


@jax.jit
@jax.grad
def embedded(table, indices):
    return (table[indices] ** 2).sum()


def embedding(shape, rng):
    entries, width, rows = shape
    return [*floats((entries, width), rng=rng), rng.integers(0, entries, (rows, 32)).astype(np.int32)]


@jax.jit
def adam(params, means, squares, grads):
    means = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, means, grads)
    squares = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, squares, grads)
    params = jax.tree.map(lambda p, m, v: p - 0.01 * m / (jnp.sqrt(v) + 1e-8), params, means, squares)
    return params, means, squares


def trees(shape, rng):
    count, *leaf = shape
    p, m, v, g = (floats(*[tuple(leaf)] * count, rng=rng) for _ in range(4))
    return [p, m, [x * x for x in v], g]


@jax.jit
def wide_product(x, y):
    return lax.dot(x, y, preferred_element_type=jnp.int32 if x.dtype == jnp.int8 else jnp.float32)


@jax.jit
def narrow_product(x, y):
    return x @ y


def halves(shape, rng):
    return [x.astype(ml_dtypes.bfloat16) for x in floats((shape[0], shape[1]), (shape[1], shape[2]), rng=rng)]


def bytes_(shape, rng):
    return [rng.integers(-128, 128, s).astype(np.int8) for s in ((shape[0], shape[1]), (shape[1], shape[2]))]


def unrolled_loss(params, xs):
    """A recurrent network with memory cells, whose steps are written out."""
    inputs, states, bias = params
    state = cell = jnp.zeros((xs.shape[1], states.shape[0]), xs.dtype)
    for x in xs:
        i, f, g, o = jnp.split(x @ inputs + state @ states + bias, 4, -1)
        cell = jax.nn.sigmoid(f) * cell + jax.nn.sigmoid(i) * jnp.tanh(g)
        state = jax.nn.sigmoid(o) * jnp.tanh(cell)
    return (state**2).sum()


@jax.jit
def unrolled_step(params, means, squares, xs):
    return adam(params, means, squares, jax.grad(unrolled_loss)(params, xs))


def unrolled_arguments(shape, rng):
    steps, batch, width = shape
    params = [x / 10 for x in floats((width, 4 * width), (width, 4 * width), (4 * width,), rng=rng)]
    return [params, [np.zeros_like(p) for p in params], [np.ones_like(p) for p in params],
            floats((steps, batch, width), rng=rng)[0]]


def deep_loss(weights, x):
    for w, b in weights:
        x = jnp.tanh(x @ w + b)
    return (x**2).sum()


def deep_arguments(shape, rng):
    layers, batch, width = shape
    weights = [(floats((width, width), rng=rng)[0] / 6, np.zeros(width, np.float32)) for _ in range(layers)]
    return [weights, floats((batch, width), rng=rng)[0]]


ATTENTION = Workload("causal attention", attention, three, [(2, 128, 4, 32), (4, 256, 8, 64)], draw_heads)
SHORT_HEADS = Workload(
    "dot_product_attention", short_heads, three, [(4, 64, 8, 16), (1, 16, 2, 8)], draw_heads)
ATTENTION_GRADIENT = Workload(
    "gradient of causal attention", attention_gradient, three, [(2, 128, 4, 32)], draw_heads, tolerance=1e-3
)
GATED = Workload(
    "gradient of a gated recurrent layer", jax.jit(jax.grad(gated)), gated_arguments, [(128, 16, 64)],
    lambda rng: (rng.integers(10, 150), rng.integers(1, 32), rng.integers(8, 100)), tolerance=1e-3,
)  # fmt: skip
UNROLLED = Workload(
    "step of an unrolled recurrent network", unrolled_step, unrolled_arguments, [(20, 16, 64)],
    lambda rng: (rng.integers(4, 30), rng.integers(1, 40), rng.integers(8, 100)), tolerance=1e-3,
)  # fmt: skip
DEEP = Workload(
    "gradient of many layers", jax.jit(jax.grad(deep_loss)), deep_arguments, [(10, 8, 32), (130, 8, 32)],
    lambda rng: (rng.integers(5, 60), rng.integers(1, 20), rng.integers(8, 64)), tolerance=2e-3,
)  # fmt: skip
MESSAGES = Workload(
    "messages on a graph", messages, graph, [(2000, 20_000, 64), (30, 100, 16)],
    lambda rng: (rng.integers(50, 3000), rng.integers(100, 30_000), rng.integers(4, 100)), tolerance=1e-3,
)  # fmt: skip
BLOCK = Workload(
    "normalised feed-forward block", block, block_arguments, [(256, 256), (16, 64)],
    lambda rng: (rng.integers(1, 400), 16 * rng.integers(2, 24)), tolerance=1e-3,
)  # fmt: skip
RESIDUAL = Workload(
    "gradient of a residual block", jax.jit(jax.grad(residual)), residual_arguments, [(8, 16, 16, 32)],
    lambda rng: (rng.integers(1, 9), *(int(rng.integers(5, 30)),) * 2, rng.integers(3, 48)), tolerance=1e-3,
)  # fmt: skip
UPSAMPLED = Workload(
    "transposed convolution", upsampled, lambda s, rng: floats(s, (3, 3, s[-1], s[-1] // 2), rng=rng),
    [(4, 32, 32, 32)], lambda rng: (rng.integers(1, 6), *rng.integers(5, 40, 2), 2 * rng.integers(1, 24)),
    tolerance=1e-3,
)  # fmt: skip
POOLED = Workload(
    "gradient of pooling", jax.jit(jax.grad(lambda x: (pooled(x) ** 2).sum())),
    lambda s, rng: floats(s, rng=rng), [(8, 64, 64, 32)],
    lambda rng: (rng.integers(1, 9), *rng.integers(4, 64, 2), rng.integers(1, 40)),
)  # fmt: skip
POOLED_FIRST = Workload(
    "pooling, channels first", jax.jit(pooled_channels_first), lambda s, rng: floats(s, rng=rng), [(8, 32, 56, 56)],
    lambda rng: (rng.integers(1, 9), rng.integers(1, 48), *rng.integers(4, 80, 2)),
)  # fmt: skip
POOLED_FIRST_GRADIENT = Workload(
    "gradient of pooling, channels first", jax.jit(jax.grad(lambda x: (pooled_channels_first(x) ** 2).sum())),
    lambda s, rng: floats(s, rng=rng), [(8, 32, 56, 56)],
    lambda rng: (rng.integers(1, 9), rng.integers(1, 48), *rng.integers(4, 80, 2)),
)  # fmt: skip
BOX = Workload("box filter", box_filtered, lambda s, rng: floats(s, rng=rng), [(512, 512)],
               lambda rng: tuple(rng.integers(20, 700, 2)), tolerance=1e-3)  # fmt: skip
EMBEDDED = Workload(
    "gradient of an embedding", embedded, embedding, [(10_000, 64, 64)],
    lambda rng: (rng.integers(100, 20_000), rng.integers(4, 100), rng.integers(1, 100)),
)  # fmt: skip
ADAM = Workload(
    "Adam on a tree", adam, trees, [(20, 100, 100), (100, 10, 10)],
    lambda rng: (rng.integers(5, 60), *rng.integers(3, 200, 2)), tolerance=1e-3,
)  # fmt: skip
BFLOAT16 = Workload(
    "bfloat16 product", narrow_product, halves, [(1024, 1024, 1024), (100, 300, 200)], between(20, 1200, 3),
    tolerance=2e-2, torch=lambda x, y: x @ y,
)  # fmt: skip
BFLOAT16_WIDE = Workload(
    "bfloat16 product in float32", wide_product, halves, [(1024, 1024, 1024), (100, 300, 200)],
    between(20, 1200, 3), tolerance=1e-3,
)  # fmt: skip
INT8 = Workload(
    "int8 product", wide_product, bytes_, [(512, 512, 512), (100, 300, 200)], between(20, 1200, 3), tolerance=0.0
)
