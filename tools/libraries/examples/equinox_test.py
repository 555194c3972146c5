"""Equinox: modules as trees, filtered transformations, layers, states, errors, serialisation."""

from __future__ import annotations

import io

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest


def close(x, y, tolerance=1e-4):
    np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance)


class Linear(eqx.Module):
    weight: jax.Array
    bias: jax.Array
    scale: int = eqx.field(static=True, default=1)

    def __call__(self, x):
        return self.scale * (self.weight @ x + self.bias)


def mlp(seed: int = 0) -> eqx.nn.MLP:
    return eqx.nn.MLP(2, 1, 8, 2, key=jax.random.key(seed))


def test_a_module_is_a_tree():
    model = Linear(jnp.ones((2, 3)), jnp.zeros(2))
    assert len(jax.tree.leaves(model)) == 2
    close(jax.jit(lambda m, x: m(x))(model, jnp.arange(3.0)), [3.0, 3.0])
    close(jax.grad(lambda m: m(jnp.arange(3.0)).sum())(model).weight, [[0, 1, 2], [0, 1, 2]])
    with pytest.raises(Exception, match="[Cc]annot assign|frozen"):
        model.scale = 2


def test_an_mlp_is_its_layers():
    model, x = mlp(), np.array([1.0, -2.0], np.float32)
    y = x
    for layer in model.layers[:-1]:
        y = np.maximum(np.asarray(layer.weight) @ y + np.asarray(layer.bias), 0)
    close(model(x), np.asarray(model.layers[-1].weight) @ y + np.asarray(model.layers[-1].bias))


def test_training():
    model = mlp()
    x = jax.random.normal(jax.random.key(1), (64, 2))
    y = x.sum(1, keepdims=True)

    @eqx.filter_jit
    @eqx.filter_value_and_grad
    def loss(model):
        return jnp.mean((jax.vmap(model)(x) - y) ** 2)

    losses = []
    for _ in range(60):
        value, gradient = loss(model)
        model = eqx.apply_updates(model, jax.tree.map(lambda g: -0.1 * g, gradient))
        losses.append(float(value))
    assert losses[-1] < 0.1 * losses[0]


def test_partition_combine_tree_at():
    model = mlp()
    arrays, static = eqx.partition(model, eqx.is_inexact_array)
    assert bool(eqx.tree_equal(model, eqx.combine(arrays, static)))
    ones = eqx.tree_at(lambda m: m.layers[0].weight, model, replace_fn=jnp.ones_like)
    close(ones.layers[0].weight, np.ones((8, 2)))
    assert not bool(eqx.tree_equal(model, ones))


def test_ensembles():
    models = eqx.filter_vmap(lambda key: eqx.nn.MLP(2, 1, 4, 1, key=key))(jax.random.split(jax.random.key(0), 3))
    x = jnp.array([0.5, 2.0])
    together = eqx.filter_vmap(lambda m, x: m(x), in_axes=(eqx.if_array(0), None))(models, x)
    last = jax.tree.map(lambda leaf: leaf[2] if eqx.is_array(leaf) else leaf, models)
    close(together[2], last(x))


def test_convolution_and_pooling():
    x = np.arange(2 * 5 * 5, dtype=np.float32).reshape(2, 5, 5)
    conv = eqx.nn.Conv2d(2, 3, 3, key=jax.random.key(0))
    weight, bias = np.asarray(conv.weight), np.asarray(conv.bias)
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(1, 2))
    close(conv(x), np.einsum("ochw,cijhw->oij", weight, windows) + bias, 1e-3)
    close(eqx.nn.MaxPool2d(2, 2)(x), x[:, :4, :4].reshape(2, 2, 2, 2, 2).max((2, 4)))
    close(eqx.nn.AdaptiveAvgPool2d(1)(x), x.mean((1, 2), keepdims=True))


def test_norms():
    x = np.array([1.0, 2.0, 4.0, 8.0], np.float32)
    close(eqx.nn.LayerNorm(4)(x), (x - x.mean()) / np.sqrt(x.var() + 1e-5))
    close(eqx.nn.RMSNorm(4)(x), x / np.sqrt((x**2).mean() + 1e-5))
    groups = x.reshape(2, 2)
    expected = (groups - groups.mean(1, keepdims=True)) / np.sqrt(groups.var(1, keepdims=True) + 1e-5)
    close(eqx.nn.GroupNorm(2, 4)(x), expected.ravel())


def test_batch_norm_has_a_state():
    norm, state = eqx.nn.make_with_state(eqx.nn.BatchNorm)(4, axis_name="batch", mode="batch")
    x = jax.random.normal(jax.random.key(0), (8, 4))
    y, state = jax.vmap(norm, axis_name="batch", in_axes=(0, None), out_axes=(0, None))(x, state)
    close(y, (x - x.mean(0)) / np.sqrt(x.var(0) + 1e-5), 1e-3)
    still = eqx.nn.inference_mode(norm)
    z, _ = jax.vmap(still, axis_name="batch", in_axes=(0, None), out_axes=(0, None))(x, state)
    assert z.shape == (8, 4) and bool(jnp.isfinite(z).all())


def test_dropout():
    drop, x = eqx.nn.Dropout(0.5), jnp.ones(1000)
    y = drop(x, key=jax.random.key(0))
    assert set(np.unique(y)) == {0.0, 2.0}
    close(eqx.nn.inference_mode(drop)(x), x)


def test_attention():
    attention = eqx.nn.MultiheadAttention(1, 4, key=jax.random.key(0))
    x = np.asarray(jax.random.normal(jax.random.key(1), (5, 4)))
    q, k, v, o = (np.asarray(getattr(attention, f"{n}_proj").weight) for n in ("query", "key", "value", "output"))
    scores = (x @ q.T) @ (x @ k.T).T / 2
    weights = np.exp(scores - scores.max(1, keepdims=True))
    weights /= weights.sum(1, keepdims=True)
    close(attention(x, x, x), weights @ (x @ v.T) @ o.T)
    gradient = eqx.filter_grad(lambda a: jnp.sum(a(x, x, x) ** 2))(attention)
    assert all(bool(jnp.isfinite(leaf).all()) for leaf in jax.tree.leaves(gradient))


def test_recurrent_cells():
    cell = eqx.nn.LSTMCell(3, 4, key=jax.random.key(0))
    xs = jax.random.normal(jax.random.key(1), (6, 3))

    def last(cell):
        return jax.lax.scan(lambda h, x: (cell(x, h), None), (jnp.zeros(4), jnp.zeros(4)), xs)[0][0]

    h, c = np.zeros(4), np.zeros(4)
    w, u, b = np.asarray(cell.weight_ih), np.asarray(cell.weight_hh), np.asarray(cell.bias)
    for x in np.asarray(xs):
        i, f, g, o = np.split(w @ x + u @ h + b, 4)
        i, f, o = (1 / (1 + np.exp(-z)) for z in (i, f, o))
        c = f * c + i * np.tanh(g)
        h = o * np.tanh(c)
    close(last(cell), h)
    assert eqx.filter_grad(lambda cell: last(cell).sum())(cell).weight_hh.shape == (16, 4)


@pytest.mark.parametrize("kind", ["checkpointed", "bounded"])
def test_loops_that_reverse_mode_goes_through(kind):
    def f(x):
        return eqx.internal.while_loop(lambda c: c[1] < 5, lambda c: (jnp.sin(c[0]) * 1.5, c[1] + 1), (x, 0),
                                       max_steps=16, kind=kind)[0]

    y, slope = 0.7, 1.0
    for _ in range(5):
        slope *= 1.5 * np.cos(y)
        y = 1.5 * np.sin(y)
    close(jax.value_and_grad(f)(0.7), (y, slope))
    close(jax.vmap(jax.grad(f))(jnp.array([0.7, 0.7])), [slope, slope])


def test_errors_in_compiled_programs():
    @eqx.filter_jit
    def f(x):
        return jnp.sqrt(eqx.error_if(x, x < 0, "x is negative"))

    close(f(jnp.array(4.0)), 2.0)
    with pytest.raises(Exception, match="x is negative"):
        f(jnp.array(-1.0)).block_until_ready()


def test_serialisation():
    saved = io.BytesIO()
    eqx.tree_serialise_leaves(saved, mlp())
    saved.seek(0)
    like = eqx.filter_eval_shape(mlp, 1)
    assert bool(eqx.tree_equal(eqx.tree_deserialise_leaves(saved, like), mlp()))


def test_filtered_derivatives():
    def f(x, y):
        return jnp.sin(x) * y

    close(eqx.filter_jvp(f, (1.0, 2.0), (1.0, 0.0)), (2 * np.sin(1), 2 * np.cos(1)))
    close(eqx.filter_jacfwd(lambda x: x**2)(jnp.arange(3.0)), np.diag([0, 2, 4]))
    close(eqx.filter_hessian(lambda x: jnp.sum(x**3))(jnp.arange(3.0)), np.diag([0, 6, 12]))
    x, y = jnp.array(1.0), jnp.array(3.0)
    close(eqx.filter_closure_convert(f, x, x)(x, y), 3 * np.sin(1))


def test_custom_rules():
    @eqx.filter_custom_vjp
    def f(x, y):
        return x["a"] * y

    @f.def_fwd
    def forward(perturbed, x, y):
        return x["a"] * y, y

    @f.def_bwd
    def backward(y, g, perturbed, x, _):
        return {"a": 2 * g * y}

    close(eqx.filter_grad(f)({"a": jnp.array(3.0)}, jnp.array(5.0))["a"], 10.0)


def test_further_layers():
    table = eqx.nn.Embedding(5, 3, key=jax.random.key(0))
    close(table(jnp.array(2)), table.weight[2])
    close(eqx.nn.PReLU(0.25)(jnp.array([-2.0, 2.0])), [-0.5, 2.0])
    transposed = eqx.nn.ConvTranspose1d(2, 3, 3, stride=2, key=jax.random.key(4))
    assert transposed(jnp.ones((2, 5))).shape == (3, 11)
    layer = eqx.nn.Linear(3, 2, key=jax.random.key(3))
    close(eqx.nn.WeightNorm(layer)(jnp.ones(3)), layer(jnp.ones(3)))
    build = eqx.nn.make_with_state(lambda key: eqx.nn.SpectralNorm(layer, "weight", num_power_iterations=30, key=key))
    spectral, state = build(jax.random.key(1))
    y, _ = spectral(jnp.ones(3), state)
    weight = np.asarray(layer.weight)
    close(y, weight @ np.ones(3) / np.linalg.norm(weight, 2) + layer.bias, 1e-2)
