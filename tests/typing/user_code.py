"""A user's program, read by type checkers and never run: what an editor knows of arrays and transformations."""

from __future__ import annotations

from typing import assert_type

import numpy as np

import styrax as jax
import styrax.numpy as jnp
from styrax.typing import ArrayLike, DTypeLike


# -- arrays: functions, operators, methods, updates ---------------------------------------------------
def normalise(x: jax.Array, eps: float = 1e-6) -> jax.Array:
    mean = jnp.mean(x, axis=-1, keepdims=True)
    assert_type(mean, jax.Array)
    centred = x - mean
    assert_type(centred, jax.Array)
    assert_type(2.0 * centred ** 2 / 3, jax.Array)
    assert_type(-centred @ centred.T, jax.Array)
    assert_type(centred > 0, jax.Array)
    assert_type(jnp.var(x, axis=(0, 1)), jax.Array)
    return centred / jnp.sqrt(jnp.var(x, axis=-1, keepdims=True) + eps)


def reading(x: jax.Array) -> None:
    assert_type(x.shape, tuple[int, ...])
    assert_type(x.ndim, int)
    assert_type(x[0], jax.Array)
    assert_type(x[..., None, 1:], jax.Array)
    assert_type(x[x > 0], jax.Array)
    assert_type(x.at[0].set(1.0), jax.Array)
    assert_type(x.at[:, 1].add(x[:, 0]), jax.Array)
    assert_type(x.sum(axis=0).reshape(-1, 2).astype(jnp.bfloat16), jax.Array)
    assert_type(x.T.mT.real, jax.Array)
    assert_type(float(x.max()), float)
    assert_type(np.asarray(x).dtype, np.dtype)


def making(shape: tuple[int, int], dtype: DTypeLike = jnp.float32) -> list[jax.Array]:
    made = [jnp.zeros(shape, dtype), jnp.ones(3), jnp.array([[1, 2], [3.0, 4]]), jnp.arange(10, dtype="int32"),
            jnp.full_like(jnp.eye(3), 2), jnp.asarray(np.ones(3)), jnp.linspace(0, 1, 5)]
    assert_type(made, list[jax.Array])
    assert_type(jnp.concatenate(made), jax.Array)
    assert_type(jnp.stack([made[0], made[0]], axis=1), jax.Array)
    assert_type(jnp.einsum("ij,jk->ik", made[0], made[0].T), jax.Array)
    return made


# -- one name, several results ---------------------------------------------------------------------------
def choosing(x: jax.Array, y: ArrayLike) -> None:
    assert_type(jnp.where(x > 0, x, y), jax.Array)
    assert_type(jnp.where(x > 0), tuple[jax.Array, ...])
    assert_type(jnp.unique(x), jax.Array)
    assert_type(jnp.unique(x, return_counts=True), tuple[jax.Array, ...])
    assert_type(jnp.linspace(0, 1, 5, retstep=True), tuple[jax.Array, jax.Array])
    assert_type(jnp.add(x, y), jax.Array)
    assert_type(jnp.exp(y), jax.Array)
    assert_type(jnp.maximum.reduce(x, axis=0), jax.Array)
    assert_type(jnp.cumsum(x, axis=0), jax.Array)
    assert_type(jnp.quantile(x, 0.5), jax.Array)
    assert_type(jnp.result_type(x, jnp.float32), np.dtype)


def decomposing(a: jax.Array) -> jax.Array:
    from styrax.numpy import linalg

    assert_type(linalg.svd(a, compute_uv=False), jax.Array)
    u, s, vh = linalg.svd(a)
    assert_type(u, jax.Array)
    w, v = linalg.eigh(a)
    assert_type(linalg.norm(a, ord=np.inf, axis=(0, 1)), jax.Array)
    return (u * s) @ vh + linalg.solve(a, v) * w


# -- a training loop -------------------------------------------------------------------------------------
Params = dict[str, jax.Array]


def predict(params: Params, x: jax.Array) -> jax.Array:
    return jnp.tanh(x @ params["w"]) + params["b"]


def loss(params: Params, x: jax.Array, y: jax.Array) -> jax.Array:
    return jnp.mean((jax.vmap(predict, in_axes=(None, 0))(params, x) - y) ** 2)


@jax.jit
def step(params: Params, x: jax.Array, y: jax.Array) -> Params:
    gradients = jax.grad(loss)(params, x, y)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients)


@jax.jit(static_argnames="times")
def repeated(x: jax.Array, times: int) -> jax.Array:
    for _ in range(times):
        x = normalise(x)
    return x


def train(x: jax.Array, y: jax.Array) -> float:
    key = jax.random.key(0)
    params: Params = {"w": jax.random.normal(key, (x.shape[1], 1)), "b": jnp.zeros(1)}
    for _ in range(10):
        params = step(params, repeated(x, 3), y)
    assert_type(step(params, x, y), Params)
    assert_type(repeated(x, times=2), jax.Array)
    return float(loss(params, x, y))
