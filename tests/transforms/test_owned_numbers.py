"""Numbers are kept as arrays for the operations that use them; no caller ever gets one of those."""

from __future__ import annotations

import numpy as np
import pytest

import styrax as jax
import styrax.numpy as jnp

MAKERS = {
    "asarray": lambda: jnp.asarray(2.5),
    "asarray of a NumPy scalar": lambda: jnp.asarray(np.array(2.5, np.float32)),
    "constructor": lambda: jnp.float32(2.5),
    "device_put": lambda: jax.device_put(2.5),
    "sum": lambda: jnp.ones(()) * 2.5,
    "identity": lambda: identity(2.5),
    "passed on": lambda: passed_on(1.0, 2.5)[0],
    "positive": lambda: jnp.positive(2.5),
}
identity = jax.jit(lambda x: x)
passed_on = jax.jit(lambda x, y: (y, x + y))


@pytest.mark.parametrize("name", MAKERS)
def test_deleting_one_leaves_its_equals(name):
    arrays = [MAKERS[name]() for _ in range(3)]
    arrays[0].delete()
    assert [float(x) for x in (*arrays[1:], MAKERS[name]())] == [2.5] * 3


def test_donating_one_leaves_its_equals():
    taken = jax.jit(lambda x: x + 1, donate_argnums=0)
    x, y = jnp.asarray(2.5), jnp.asarray(2.5)
    assert float(taken(x)) == 3.5
    assert float(y) == 2.5
    assert float(taken(2.5)) == float(taken(2.5)) == 3.5
