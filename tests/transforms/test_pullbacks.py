"""What a pullback keeps: arguments apart from other residuals, which can be taken out and put in again."""

from __future__ import annotations

import numpy as np
import pytest

from tests.transforms.oracle import assert_same, jax, styrax


def layer(package):
    return lambda p, x: package.numpy.sin(x @ p["w"]) * 2 + p["b"]


def arguments(package):
    w = package.numpy.asarray(np.linspace(0, 1, 12, dtype=np.float32).reshape(3, 4))
    return {"w": w, "b": package.numpy.ones(4)}, package.numpy.asarray(np.ones((2, 3), np.float32))


@pytest.mark.parametrize("package", [jax, styrax])
def test_arguments_are_kept_apart(package):
    p, x = arguments(package)
    y, pull = package.vjp(layer(package), p, x)
    (b, w), again = pull.args_res
    assert w is p["w"] and again is x and type(b).__name__ == "NotNeeded"
    assert len(pull.opaque_residuals) == 2
    expected = pull(y)
    pull.args_res = [None, None]
    assert len(package.tree_util.tree_leaves(pull)) == 2
    with pytest.raises(Exception):  # noqa: B017
        pull(y)
    pull.args_res = [p, x]
    for a, b in zip(package.tree_util.tree_leaves(expected), package.tree_util.tree_leaves(pull(y)), strict=True):
        np.testing.assert_array_equal(a, b)


def test_pullbacks_through_jit_without_their_arguments():
    def program(package):
        @package.jit
        def forward(p, x):
            y, pull = package.vjp(layer(package), p, x)
            pull.args_res = [None, None]
            return y, pull

        @package.jit
        def backward(pull, p, x, ct):
            pull.args_res = [p, x]
            return pull(ct)

        p, x = arguments(package)
        y, pull = forward(p, x)
        return backward(pull, p, x, y), package.vmap(lambda ct: backward(pull, p, x, ct))(package.numpy.stack([y, y]))

    assert_same(program)
