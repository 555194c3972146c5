"""`all_to_all` over several axes at once, one or all of them mapped by `vmap`."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from tests.transforms.oracle import assert_same, styrax


@pytest.mark.parametrize("tiled", [False, True])
@pytest.mark.parametrize("split", range(3))
@pytest.mark.parametrize("concat", range(3))
def test_all_to_all_over_two_axes(split, concat, tiled):
    shape = [5, 2, 3]
    shape[split] = 12 if tiled else 6
    x = np.arange(6 * np.prod(shape), dtype=np.float32).reshape(2, 3, *shape)

    def exchange(names, x):
        return styrax.lax.all_to_all(x, names, split, concat, tiled=tiled)

    one = styrax.vmap(partial(exchange, "k"), axis_name="k")(x.reshape(6, *shape))
    f = styrax.vmap(styrax.vmap(partial(exchange, ("i", "j")), axis_name="j"), axis_name="i")
    np.testing.assert_array_equal(np.reshape(one, f(x).shape), f(x))
    ct = np.arange(one.size, dtype=np.float32).reshape(f(x).shape)
    (back,) = styrax.vjp(f, x)[1](ct)
    np.testing.assert_array_equal(f(back), ct)


def test_all_to_all_over_two_axes_as_jax_does():
    def program(package):
        x = package.numpy.arange(64).reshape(2, 2, 4, 4)
        f = lambda x: package.lax.all_to_all(x, ("i", "j"), 1, 1)
        return package.vmap(package.vmap(f, axis_name="j"), axis_name="i")(x)

    assert_same(program)
