"""Layers and optimizers against JAX's: the same parameters from the same keys, and the same steps."""

from __future__ import annotations

import numpy as np
import pytest

from tests.experimental.oracle import assert_same, module, styrax

CONV = ("NHWC", "HWIO", "NHWC")
LAYERS = {
    "dense": (lambda s: s.Dense(3), (2, 4)),
    "dense, unknown size": (lambda s: s.Dense(3), (-1, 4)),
    "convolution": (lambda s: s.GeneralConv(CONV, 3, (2, 3), (2, 1), "SAME"), (2, 5, 5, 2)),
    "convolution, channels first": (lambda s: s.GeneralConv(("NCHW", "OIHW", "NCHW"), 3, (2, 2)), (2, 2, 5, 5)),
    "convolution by its short name": (lambda s: s.Conv(3, (2, 2)), (-1, 5, 5, 2)),
    "transposed": (lambda s: s.GeneralConvTranspose(CONV, 3, (2, 2), (2, 2)), (2, 5, 5, 2)),
    "transposed by its short name": (lambda s: s.ConvTranspose(3, (3, 2), padding="SAME"), (2, 5, 4, 2)),
    "transposed of one dimension": (lambda s: s.Conv1DTranspose(3, (2,), (2,)), (2, 5, 2)),
    "batch": (lambda s: s.BatchNorm(), (2, 3, 3, 2)),
    "batch, no shift": (lambda s: s.BatchNorm(center=False), (2, 3, 3, 2)),
    "batch, no scale": (lambda s: s.BatchNorm(axis=0, scale=False), (4, 5)),
    "batch, bare": (lambda s: s.BatchNorm(axis=(0,), scale=False, center=False, epsilon=1e-3), (4, 5)),
    "max": (lambda s: s.MaxPool((2, 2)), (2, 5, 5, 2)),
    "mean": (lambda s: s.AvgPool((2, 2), (2, 2), "SAME"), (2, 5, 5, 2)),
    "mean, channels first": (lambda s: s.AvgPool((2, 3), None, "SAME", "NCHW"), (2, 2, 5, 5)),
    "sum": (lambda s: s.SumPool((2, 2), (1, 2), "SAME", "NCHW"), (2, 2, 5, 5)),
    "flat": (lambda s: s.Flatten, (2, 3, 4)),
    "flat, empty": (lambda s: s.Flatten, (2, 0, 4)),
    "itself": (lambda s: s.Identity, (2, 3)),
    "dropout": (lambda s: s.Dropout(0.5), (4, 3)),
    "dropout, later": (lambda s: s.Dropout(0.5, mode="test"), (4, 3)),
    "serial": (lambda s: s.serial(s.Dense(3), s.Relu, s.Dropout(0.5), s.serial(s.Dense(2), s.Tanh)), (2, 4)),
    "parallel": (lambda s: s.serial(s.FanOut(2), s.parallel(s.Dense(2), s.Dropout(.3)), s.FanInConcat()), (2, 4)),
    "residual": (lambda s: s.serial(s.FanOut(2), s.parallel(s.Dense(4), s.Identity), s.FanInSum), (2, 4)),
    "concatenated rows": (lambda s: s.serial(s.FanOut(2), s.FanInConcat(0)), (2, 4)),
    "by shape": (lambda s: s.shape_dependent(lambda shape: s.Dense(shape[-1])), (2, 4)),
    **{name: (lambda s, name=name: getattr(s, name), (3, 4)) for name in (
        "Tanh Relu Exp LogSoftmax Softmax Softplus Sigmoid Elu LeakyRelu Selu Gelu").split()},
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers(name):
    make, shape = LAYERS[name]

    def program(jax):
        init, apply = make(module(jax, "example_libraries.stax"))
        out_shape, params = init(jax.random.key(1), shape)
        known = [3 if d == -1 else d for d in shape]
        x = jax.numpy.arange(np.prod(known), dtype="float32").reshape(known) / 7 - 1
        return tuple(map(int, out_shape)), params, apply(params, x, rng=jax.random.key(2))

    assert_same(program, atol=1e-5)


def test_dropout_wants_a_key():
    stax = module(styrax, "example_libraries.stax")
    with pytest.raises(ValueError, match="rng"):
        stax.Dropout(0.5)[1]((), styrax.numpy.ones(3))


OPTIMIZERS = {
    "sgd": (0.1,), "momentum": (0.1, 0.9), "nesterov": (0.1, 0.9), "adagrad": (0.1,), "rmsprop": (0.1,),
    "rmsprop_momentum": (0.1,), "adam": (0.1,), "adamax": (0.1,), "sm3": (0.1,),
}


@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers(name, jit):
    def program(jax):
        jnp = jax.numpy
        optimizers = module(jax, "example_libraries.optimizers")
        init, update, params_of = getattr(optimizers, name)(*OPTIMIZERS[name])
        state = init({"a": jnp.array([[1.0, 2.0], [0.0, -1.0]]), "b": jnp.array([3.0]),
                      "c": jnp.array(2.0)})
        if jit and name != "sm3":
            update = jax.jit(update)
        loss = lambda p: jnp.sum(p["a"] ** 2) + jnp.sum(jnp.cos(p["b"])) + p["c"] ** 2
        for i in range(3):
            state = update(i, jax.grad(loss)(params_of(state)), state)
        again = optimizers.pack_optimizer_state(optimizers.unpack_optimizer_state(state))
        return params_of(state), list(state.packed_state), list(again.packed_state)

    assert_same(program)


SCHEDULES = {
    "constant": lambda o: o.constant(0.1),
    "exponential": lambda o: o.exponential_decay(0.1, 10, 0.5),
    "inverse": lambda o: o.inverse_time_decay(0.1, 10, 0.5),
    "stairs": lambda o: o.inverse_time_decay(0.1, 10, 0.5, staircase=True),
    "polynomial": lambda o: o.polynomial_decay(0.1, 10, 0.01, 2.0),
    "pieces": lambda o: o.piecewise_constant([2, 10], [1.0, 2.0, 3.0]),
    "made": lambda o: o.make_schedule(0.3),
    "passed on": lambda o: o.make_schedule(o.constant(0.2)),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules(name):
    def program(jax):
        schedule = SCHEDULES[name](module(jax, "example_libraries.optimizers"))
        return [schedule(i) for i in (0, 2, 3, 10, 25)], jax.jit(schedule)(7)

    assert_same(program)


def test_norms():
    def program(jax):
        optimizers = module(jax, "example_libraries.optimizers")
        grads = {"a": jax.numpy.array([3.0, 4.0]), "b": jax.numpy.zeros(())}
        return optimizers.l2_norm(grads), optimizers.clip_grads(grads, 1.0), optimizers.clip_grads(grads, 10.0)

    assert_same(program)


REFUSED = {
    "lengths": (lambda o: o.piecewise_constant([2, 4], [1.0, 2.0]), ValueError),
    "ranks": (lambda o: o.piecewise_constant([[2, 4]], [1.0, 2.0]), ValueError),
    "schedule": (lambda o: o.make_schedule(np.ones(2)), TypeError),
    "trees": (lambda o: o.sgd(1).update_fn(0, {}, o.sgd(1).init_fn([1.0])), TypeError),
    "marks": (lambda o: o.pack_optimizer_state([1.0]), (TypeError, AssertionError)),
    "states": (lambda o: o.optimizer(lambda: (lambda x: [x], lambda i, g, s: (s[0],), lambda s: s))().update_fn(
        0, 1.0, o.optimizer(lambda: (lambda x: [x], None, None))().init_fn(1.0)), TypeError),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("package", ["jax", "styrax"])
def test_refused(name, package):
    import importlib

    call, error = REFUSED[name]
    with pytest.raises(error):
        call(importlib.import_module(f"{package}.example_libraries.optimizers"))
