"""`jax.nn`: activations, normalisations, losses, and small layers."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax, nn

from ..rows import Family

FAMILY = Family()
add = FAMILY.add
each = FAMILY.each

each(
    "nn",
    "relu relu6 gelu silu sigmoid softplus log_sigmoid elu selu celu leaky_relu hard_tanh hard_sigmoid hard_silu mish "
    "soft_sign squareplus sparse_plus sparse_sigmoid",
    "1000", "300,200",
)  # fmt: skip
each("nn", "relu gelu silu", "1000,1000")
each("nn", "glu", "100,64", "300,200", fixed=True)
each("nn", "softmax log_softmax logsumexp standardize logmeanexp", "1000", "100,10", "300,200", "20,5000")
add("gelu exactly", lambda x: nn.gelu(x, approximate=False), "1000", "300,200")
add("log1mexp", lambda x: nn.log1mexp(x), "300,200:pos")
add("softmax axis 0", lambda x: nn.softmax(x, 0), "300,200", "5000,20")
add("softmax of all", lambda x: nn.softmax(x, (0, 1)), "300,200")
add("softmax where", lambda x, c: nn.softmax(x, where=c), "300,200 300,200:bool")
add("log_softmax axis 0", lambda x: nn.log_softmax(x, 0), "300,200")
add("logsumexp of all", lambda x: nn.logsumexp(x), "1000", "300,200")
add("logsumexp axis 0", lambda x: nn.logsumexp(x, 0), "300,200")
add("logsumexp with weights", lambda x, w: nn.logsumexp(x, 1, b=w), "300,200 300,200:pos")
add("one_hot", lambda i: nn.one_hot(i, 10), "100:int<10", "10000:int<10")
add("one_hot of many", lambda i: nn.one_hot(i, 500), "200:int<500")
add("causal softmax", lambda x: nn.softmax(jnp.where(jnp.tril(jnp.ones(x.shape[-2:], bool)), x, -1e9)), "4,100,100")
add("gumbel softmax", lambda x, u: nn.softmax((x - jnp.log(-jnp.log(u))) / 0.5), "300,200 300,200:unit")
add("attention", lambda q, k, v: nn.dot_product_attention(q, k, v),
    "2,16,4,8 2,16,4,8 2,16,4,8", "2,64,4,32 2,64,4,32 2,64,4,32", "1,128,8,64 1,128,8,64 1,128,8,64")
add("attention, causal", lambda q, k, v: nn.dot_product_attention(q, k, v, is_causal=True),
    "2,64,4,32 2,64,4,32 2,64,4,32")
add("attention, grouped", lambda q, k, v: nn.dot_product_attention(q, k, v), "2,64,8,16 2,64,2,16 2,64,2,16",
    fixed=True)
add("attention of one query", lambda q, k, v: nn.softmax(jnp.einsum("hd,thd->ht", q, k) / 8) @ v[:, 0],
    "8,64 500,8,64 500,8,64")

# Normalisations.
add("layer norm", lambda x, s, b: (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5) * s + b,
    "16,64 64 64", "300,200 200 200", "128,768 768 768")
add("rms norm", lambda x, s: x * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6) * s, "16,64 64", "300,200 200",
    "128,768 768")
add("batch norm", lambda x, s, b: (x - x.mean(0)) * lax.rsqrt(x.var(0) + 1e-5) * s + b, "32,64 64 64",
    "300,200 200 200")
add("batch norm of images", lambda x: (x - x.mean((0, 1, 2))) * lax.rsqrt(x.var((0, 1, 2)) + 1e-5), "4,16,16,32")
add("batch norm of images, channels first", lambda x: (x - x.mean((0, 2, 3), keepdims=True)) * lax.rsqrt(
    x.var((0, 2, 3), keepdims=True) + 1e-5), "4,32,16,16")
add("convolution, batch norm and rectifier, channels first", lambda x, w: nn.relu((y := lax.conv_general_dilated(
    x, w, (1, 1), "SAME")) - y.mean((0, 2, 3), keepdims=True)) * lax.rsqrt(y.var((0, 2, 3), keepdims=True) + 1e-5),
    "10,3,32,32 16,3,3,3")
add("normalised columns, turned", lambda x: ((x - x.mean(1, keepdims=True)) * lax.rsqrt(
    x.var(1, keepdims=True) + 1e-5)).T, "64,1000", "1000,64")
add("batch norm in use", lambda x, m, v: (x - m) * lax.rsqrt(v + 1e-5), "300,200 200 200:pos")


def group_norm(x):
    grouped = x.reshape(*x.shape[:-1], 4, x.shape[-1] // 4)
    mean, var = (f(grouped, axis=(1, 2, 4), keepdims=True) for f in (jnp.mean, jnp.var))
    return ((grouped - mean) * lax.rsqrt(var + 1e-5)).reshape(x.shape)


add("group norm", group_norm, "4,16,16,32", fixed=True)
add("l2 normalisation", lambda x: x / jnp.linalg.norm(x, axis=-1, keepdims=True), "300,200", "5000,3")
add("weight normalisation", lambda v, g: g * v / jnp.sqrt(jnp.sum(v * v, 0)), "300,200 200")
add("min-max scaling", lambda x: (x - x.min(0)) / (x.max(0) - x.min(0)), "300,200", "5000,4")
add("z-scores", lambda x: (x - x.mean(0)) / x.std(0), "300,200", "5000,4")

# Losses.
add("cross entropy", lambda x, i: -jnp.mean(jnp.take_along_axis(nn.log_softmax(x), i[:, None], 1)),
    "32,10 32:int<10", "500,100 500:int<100", "32,5000 32:int<5000")
add("cross entropy with one_hot", lambda x, i: -jnp.mean(jnp.sum(nn.one_hot(i, x.shape[1]) * nn.log_softmax(x), 1)),
    "32,10 32:int<10", "500,100 500:int<100")
add("binary cross entropy", lambda x, y: jnp.mean(jnp.maximum(x, 0) - x * y + jnp.log1p(jnp.exp(-jnp.abs(x)))),
    "1000 1000:unit", "300,200 300,200:unit")
add("huber loss", lambda x, y: jnp.mean(jnp.where(jnp.abs(x - y) < 1, 0.5 * (x - y) ** 2, jnp.abs(x - y) - 0.5)),
    "1000 1000", "300,200 300,200")
add("mean squared error", lambda x, y: jnp.mean((x - y) ** 2), "1000 1000", "300,200 300,200", "1000,1000 1000,1000")
add("hinge loss", lambda x, y: jnp.mean(jnp.maximum(0, 1 - x * y)), "100000 100000")
add("kl divergence", lambda p, q: jnp.sum(p * (jnp.log(p) - jnp.log(q))), "300,200:unit 300,200:unit")
add("cosine similarity", lambda x, y: jnp.sum(x * y, -1) / (jnp.linalg.norm(x, axis=-1) * jnp.linalg.norm(y, axis=-1)),
    "100 100", "300,200 300,200")
add("contrastive loss", lambda x, y: -jnp.mean(jnp.diagonal(nn.log_softmax(x @ y.T))), "64,32 64,32", "200,100 200,100")
add("accuracy", lambda x, i: jnp.mean(jnp.argmax(x, -1) == i), "500,10 500:int<10")
add("focal loss", lambda x: jnp.mean(-((1 - nn.sigmoid(x)) ** 2) * nn.log_sigmoid(x)), "10000")
add("triplet loss", lambda a, p, n: jnp.mean(nn.relu(jnp.sum((a - p) ** 2, 1) - jnp.sum((a - n) ** 2, 1) + 1)),
    "300,64 300,64 300,64")
add("gaussian log-likelihood", lambda x, m, s: jnp.sum(-0.5 * ((x - m) / s) ** 2 - jnp.log(s) - 0.919),
    "1000 1000 1000:pos", "300,200 200 200:pos")
add("mixture log-density", lambda x, m, s, w: nn.logsumexp(jnp.log(w) - 0.5 * ((x[:, None] - m) / s) ** 2 - jnp.log(s),
    axis=1), "500 5 5:pos 5:unit", "5000 20 20:pos 20:unit")

# Layers.
add("dense and relu", lambda x, w, b: nn.relu(x @ w + b), "1,64 64,64 64", "32,64 64,128 128", "128,256 256,256 256")
add("dense and gelu", lambda x, w, b: nn.gelu(x @ w + b), "64,128 128,512 512")
add("two layers", lambda x, w, v: jnp.tanh(x @ w) @ v, "32,20 20,50 50,10", "200,100 100,200 200,10")
add("gated unit", lambda x, w, v: nn.silu(x @ w) * (x @ v), "32,64 64,128 64,128", "100,200 200,300 200,300")
add("RNN cell", lambda h, x, w, u, b: jnp.tanh(h @ w + x @ u + b), "64 32 64,64 32,64 64", "16,64 16,32 64,64 32,64 64")


def lstm_cell(h, c, x, w, u, b):
    i, f, g, o = jnp.split(h @ w + x @ u + b, 4, axis=-1)
    c = nn.sigmoid(f) * c + nn.sigmoid(i) * jnp.tanh(g)
    return nn.sigmoid(o) * jnp.tanh(c), c


def gru_cell(h, x, w, u):
    a, b = jnp.split(h @ w, 3, axis=-1), jnp.split(x @ u, 3, axis=-1)
    z, r = nn.sigmoid(a[0] + b[0]), nn.sigmoid(a[1] + b[1])
    return (1 - z) * h + z * jnp.tanh(r * a[2] + b[2])


def rotary(x, angles):
    a, b = jnp.split(x, 2, axis=-1)
    cos, sin = jnp.cos(angles)[:, None], jnp.sin(angles)[:, None]
    return jnp.concatenate([a * cos - b * sin, a * sin + b * cos], -1)


def rotary_pairs(x, angles):
    a, b = x[..., ::2], x[..., 1::2]
    cos, sin = jnp.cos(angles), jnp.sin(angles)
    return jnp.stack([a * cos - b * sin, a * sin + b * cos], -1).reshape(x.shape)


def adam(p, g, m, v):
    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
    return p - 1e-3 * m / (jnp.sqrt(v) + 1e-8), m, v


add("LSTM cell", lstm_cell, "64 64 32 64,256 32,256 256", "16,64 16,64 16,32 64,256 32,256 256", fixed=True)
add("GRU cell", gru_cell, "16,64 16,32 64,192 32,192", fixed=True)
add("rotary embedding", rotary, "64,4,32 64,16", "128,8,64 128,32", fixed=True)
add("rotary embedding of pairs", rotary_pairs, "4,64,32 64,16", fixed=True)
add("adam step", adam, "1000 1000 1000 1000:pos", "300,200 300,200 300,200 300,200:pos")
add("momentum step", lambda p, g, m: (p - 0.01 * (0.9 * m + g), 0.9 * m + g), "1000,1000 1000,1000 1000,1000")
add("gradient clipping by norm", lambda g, h: (g * jnp.minimum(1, 1 / jnp.sqrt(jnp.sum(g * g) + jnp.sum(h * h))), h),
    "300,200 200")
add("embedding", lambda e, i: e[i] * 8, "1000,64 128:int<1000", "5000,128 8,64:int<5000")
add("embedding as a product", lambda e, i: nn.one_hot(i, e.shape[0], dtype=e.dtype) @ e, "100,64 128:int<100")
add("dropout", lambda s, x: jnp.where(jax.random.bernoulli(jax.random.key(s), 0.9, x.shape), x / 0.9, 0),
    "():seed 1000", "():seed 300,200")
add("label smoothing", lambda i: nn.one_hot(i, 100) * 0.9 + 0.001, "500:int<100")
add("squeeze and excitation", lambda x, w, v: x * nn.sigmoid(nn.relu(x.mean((1, 2)) @ w) @ v)[:, None, None],
    "4,16,16,32 32,8 8,32")
add("positional encoding", lambda x: x + jnp.sin(jnp.arange(x.shape[0])[:, None] * 1e-2 ** jnp.linspace(
    0, 1, x.shape[1])), "128,64")
