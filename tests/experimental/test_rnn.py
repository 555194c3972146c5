"""Long short-term memory against JAX's reference."""

from __future__ import annotations

import numpy as np
import pytest

from tests.experimental.oracle import assert_same, jax, module, styrax

CASES = {
    "one layer": (2, 4, 3, 5, 1, False, [4, 2]),
    "both directions": (3, 5, 2, 3, 1, True, [5, 0, 2]),
    "layers": (2, 3, 1, 2, 2, False, [1, 3]),
    "two layers in both directions": (2, 4, 3, 3, 2, True, [3, 4]),
    "one of everything": (1, 1, 1, 1, 1, True, [1]),
}


def inputs(batch, steps, width, hidden, layers, bidirectional, lengths):
    rng = np.random.RandomState(0)
    pseudo = layers * (2 if bidirectional else 1)
    arrays = [rng.randn(*shape).astype(np.float32) for shape in (
        (batch, steps, width), (pseudo, batch, hidden), (pseudo, batch, hidden))]
    return arrays, np.asarray(lengths, np.int32), (width, hidden, layers, bidirectional)


@pytest.mark.parametrize("name", ["layers", "both directions", "one of everything"])
def test_outputs_and_gradients(name):
    arrays, lengths, sizes = inputs(*CASES[name])
    *network, bidirectional = sizes

    def program(package, packed):
        rnn = module(package, "experimental.rnn")
        weights = rnn.init_lstm_weight(package.random.key(1), *sizes)
        assert weights.shape == (rnn.get_num_params_in_lstm(*sizes),)

        def run(weights, x, h, c):
            rest = (lengths, *network, 0.0, bidirectional)
            if packed:
                return rnn.lstm(x, h, c, weights, *rest)
            return rnn.lstm_ref(x, h, c, *rnn.unpack_lstm_weights(weights, *sizes), *rest)

        def loss(*args):
            return sum((out * out).sum() for out in run(*args))

        return [run(weights, *arrays), package.grad(loss, argnums=(0, 1, 2, 3))(weights, *arrays)]

    wanted = program(jax, False)
    for packed in (False, True):  # JAX computes packed weights on GPUs only
        with styrax.numpy_rank_promotion("raise"):
            found = program(styrax, packed)
        for ours, theirs in zip(styrax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("name", CASES)
def test_parts_of_weights(name):
    sizes = inputs(*CASES[name])[2]

    def program(package):
        rnn = module(package, "experimental.rnn")
        weights = package.numpy.arange(rnn.get_num_params_in_lstm(*sizes), dtype="float32")
        return [rnn.unpack_lstm_weights(weights, *sizes), rnn.swap_lstm_gates(weights, *sizes)]

    assert_same(program)


def test_batches_of_networks():
    arrays, lengths, sizes = inputs(2, 4, 3, 3, 2, True, [3, 4])
    rnn = module(styrax, "experimental.rnn")
    keys = styrax.random.split(styrax.random.key(0), 3)
    weights = styrax.numpy.stack([rnn.init_lstm_weight(key, *sizes) for key in keys])

    def run(w):
        return rnn.lstm(*arrays, w, lengths, *sizes[:3], 0.0, sizes[3], precision="highest")

    mapped = styrax.vmap(run)(weights)
    for k, w in enumerate(weights):
        for many, one in zip(mapped, run(w), strict=True):
            np.testing.assert_allclose(many[k], one, rtol=1e-5, atol=1e-6)


def test_lengths_of_other_types_and_dropout_are_refused():
    arrays, lengths, sizes = inputs(1, 2, 1, 1, 1, False, [2])
    for package in (jax, styrax):
        rnn = module(package, "experimental.rnn")
        weights = package.numpy.ones(rnn.get_num_params_in_lstm(*sizes))
        for found, dropout in ((lengths.astype(np.float32), 0.0), (lengths, 0.5)):
            with pytest.raises(NotImplementedError):
                rnn.lstm_ref(*arrays, *rnn.unpack_lstm_weights(weights, *sizes), found, *sizes[:3], dropout, False)
