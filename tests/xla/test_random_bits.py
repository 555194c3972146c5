"""Random numbers in StableHLO: keys are the integers behind them, and the bits on XLA are those on the CPU."""

from __future__ import annotations

import numpy as np
import pytest

import styrax
from styrax import random
from tests import xla_cpu

KEY = np.array([7, 11], np.uint32)
KEYS = np.arange(6, dtype=np.uint32).reshape(3, 2)

CASES = {
    "seed": (lambda n: random.key_data(random.key(n)), np.int32(-5)),
    "seeds": (lambda n: random.key_data(styrax.vmap(random.key)(n)), np.arange(3, dtype=np.int32)),
    "split": (lambda k: random.key_data(random.split(random.wrap_key_data(k), (2, 3))), KEY),
    "split of many": (styrax.vmap(lambda k: random.key_data(random.split(random.wrap_key_data(k)))), KEYS),
    "fold_in": (lambda k: random.key_data(random.fold_in(random.wrap_key_data(k), 9)), KEY),
    "clone": (lambda k: random.key_data(random.clone(random.wrap_key_data(k))), KEY),
    "bits": (lambda k: random.bits(random.wrap_key_data(k), (5, 3)), KEY),
    "narrow bits": (lambda k: random.bits(random.wrap_key_data(k), (7,), np.uint8), KEY),
    "no bits": (lambda k: random.bits(random.wrap_key_data(k), (0, 3)), KEY),
    "bits of many": (styrax.vmap(lambda k: random.bits(random.wrap_key_data(k), (2,))), KEYS),
    "former keys": (lambda k: random.uniform(k, (4,)), KEY),
    "permutation": (lambda k: random.permutation(random.wrap_key_data(k), 9), KEY),
    "a key of many": (lambda k: random.key_data(random.wrap_key_data(k)[1]), KEYS),
    "keys in a loop": (lambda k: styrax.lax.scan(
        lambda key, _: (random.split(key)[0], random.bits(key)), random.wrap_key_data(k), length=3)[1], KEY),
    "keys in a branch": (lambda k: random.key_data(styrax.lax.cond(
        k[0] > 5, lambda key: random.split(key)[0], lambda key: key, random.wrap_key_data(k))), KEY),
    "rbg": (lambda k: random.key_data(random.split(random.wrap_key_data(k, impl="rbg"))), np.tile(KEY, 2)),
}


def on_both(f, *args):
    closed = styrax.make_jaxpr(styrax.jit(f))(*args)
    return xla_cpu.run(closed, *args)[0], np.asarray(styrax.jit(f)(*args))


@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_bits(case, x64):
    with styrax.enable_x64(x64):
        found, wanted = on_both(*CASES[case])
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("log_space", [False, True])
def test_gamma(log_space):
    draw = random.loggamma if log_space else random.gamma
    found, wanted = on_both(lambda k, a: draw(random.wrap_key_data(k), a), KEY, np.array([0.5, 2, 30], np.float32))
    np.testing.assert_allclose(found, wanted, rtol=1e-5)


def test_lowered_programs():
    """An argument that is a key is an array of integers in the text, and no primitive on keys is left."""
    text = styrax.jit(random.split).lower(random.key(0)).as_text()
    assert '@main(%arg0: tensor<2xui32>) -> (tensor<2x2xui32> {jax.result_info = "result"})' in text
