"""Random number generators of a user's own, without and with names that are taken."""

from __future__ import annotations

import jax as oracle
import jax.extend as oracle_extend
import jax.extend.random
import numpy as np
import pytest

import styrax
import styrax.extend as extend
import styrax.extend.random


@pytest.mark.parametrize("names", [{}, {"name": "mine", "tag": "m"}])
def test_generators_stand_for_themselves(names):
    def program(jax, extend):
        ones = lambda seed: jax.numpy.full((4, 2), seed, "uint32")
        impls = [extend.random.define_prng_impl(key_shape=(4, 2), seed=ones, split=None, fold_in=None,
                                                random_bits=None, **names) for _ in range(2)]
        found = []
        for impl in impls:
            key = jax.random.key(7, impl=impl)
            again = jax.random.key(7, dtype=jax.random.key_dtype(impl))
            wrapped = jax.random.wrap_key_data(jax.numpy.ones((3, 4, 2), "uint32"), impl=impl)
            found.append((str(key.dtype), repr(jax.random.key_impl(key)), jax.random.key_impl(key) == impl,
                          again.dtype == key.dtype, wrapped.shape, np.asarray(jax.random.key_data(key)).tolist(),
                          repr(impl), hash(impl) == hash(jax.random.key_impl(key))))
        with pytest.raises(ValueError):
            jax.random.key(7, impl="mine")
        return found

    assert program(styrax, extend) == program(oracle, oracle_extend)
