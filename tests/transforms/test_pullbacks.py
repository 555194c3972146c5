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


UNWANTED = {
    "product": lambda jnp, x, y: x * y,
    "chains": lambda jnp, x, y: jnp.sin(x) * jnp.exp(y) + jnp.cos(jnp.tanh(x)),
    "sum": lambda jnp, x, y: (x + y) * y,
}


@pytest.mark.parametrize("name", UNWANTED)
def test_cotangents_that_nobody_asks_for_are_not_computed(name):
    def program(package):
        ad = package.ad
        x, y = package.numpy.arange(3.0), package.numpy.arange(3.0) + 1
        z, pull = package.vjp(lambda x, y: UNWANTED[name](package.numpy, x, y), x, y)
        found = []
        for refs in ((ad.DontWant(), ad.GradValue()), (ad.GradValue(), ad.DontWant()),
                     (ad.GradValue(), ad.GradValue())):
            g = package.jit(lambda refs=refs: pull.with_refs(*refs)(package.numpy.ones_like(z)))
            found.append([np.asarray(v) for v in g() if hasattr(v, "shape")])
            eqns = g.trace().jaxpr.eqns
            found.append(len(eqns))
        return found

    ours, theirs = program(styrax), program(jax)
    for a, b in zip(ours[::2], theirs[::2], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)
    assert sum(ours[1:4:2]) < 2 * ours[5]
    assert all(a <= b for a, b in zip(ours[1::2], theirs[1::2], strict=True))


def test_an_unwanted_cotangent_of_a_reference_is_dropped_and_others_are_added():
    x, y = styrax.numpy.arange(3.0), styrax.numpy.arange(3.0) + 1
    _, pull = styrax.vjp(lambda x, y: (x * y).sum(), x, y)
    total = styrax.new_ref(styrax.numpy.zeros(3))
    pull.with_refs(styrax.ad.DontWant(), total)(1.0)
    np.testing.assert_array_equal(total[...], x)
