# mypy: disable-error-code="name-defined"
"""jaxtyping: shapes and dtypes in annotations, checked at run time, on arrays and in traced functions."""

from __future__ import annotations

import dataclasses
from typing import TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from beartype import beartype
from jaxtyping import Array, ArrayLike, Bool, Float, Int, Key, PyTree, Shaped, TypeCheckError, jaxtyped

Floats: TypeAlias = PyTree[Float[Array, "..."], "T"]
typed = jaxtyped(typechecker=beartype)


def test_membership():
    x = jnp.ones((2, 3))
    assert isinstance(x, Float[Array, "2 3"]) and isinstance(x, Float[Array, "... 3"])
    assert not isinstance(x, Float[Array, "3 2"]) and not isinstance(x, Int[Array, "2 3"])
    assert not isinstance(np.ones((2, 3)), Float[Array, "2 3"]) and isinstance(np.ones(3), Float[np.ndarray, "3"])
    assert isinstance(x > 0, Bool[Array, "2 3"]) and isinstance(x.astype(int), Shaped[Array, "a b"])
    assert isinstance(jnp.float32(1), Float[Array, ""]) and isinstance(1.0, Float[ArrayLike, ""])


def test_keys():
    assert isinstance(jax.random.key(0), Key[Array, ""])
    assert isinstance(jax.random.split(jax.random.key(0), 3), Key[Array, "3"])
    assert not isinstance(jnp.ones(2), Key[Array, "2"])


@typed
def matmul(x: Float[Array, "a b"], y: Float[Array, "b c"]) -> Float[Array, "a c"]:
    return x @ y


@pytest.mark.parametrize("transform, batch", [(lambda f: f, ()), (jax.jit, ()), (jax.vmap, (2,))],
                         ids=["eager", "jit", "vmap"])
def test_sizes_agree_between_arguments(transform, batch):
    out = transform(matmul)(jnp.ones((*batch, 2, 3)), jnp.ones((*batch, 3, 4)))
    assert out.shape == (*batch, 2, 4)
    with pytest.raises(TypeCheckError):
        transform(matmul)(jnp.ones((*batch, 2, 3)), jnp.ones((*batch, 4, 4)))


def test_gradients_are_checked_too():
    @typed
    def loss(x: Float[Array, "n"]) -> Float[Array, ""]:
        return (x**2).sum()

    np.testing.assert_allclose(jax.grad(loss)(jnp.arange(3.0)), [0, 2, 4])
    with pytest.raises(TypeCheckError):
        jax.grad(loss)(jnp.ones((2, 2)))


def test_arithmetic_on_sizes():
    @typed
    def drop(x: Float[Array, "n"]) -> Float[Array, "n-1"]:
        return x[1:]

    assert drop(jnp.ones(4)).shape == (3,)

    @typed
    def wrong(x: Float[Array, "n"]) -> Float[Array, "n-1"]:
        return x

    with pytest.raises(TypeCheckError):
        wrong(jnp.ones(4))


def test_trees():
    assert isinstance({"a": jnp.ones(3), "b": [jnp.ones(3)]}, PyTree[Float[Array, "3"]])
    assert not isinstance({"a": jnp.ones(3), "b": [1]}, PyTree[Float[Array, "3"]])

    @typed
    def add(x: Floats, y: Floats) -> Floats:
        return jax.tree.map(jnp.add, x, y)

    np.testing.assert_allclose(add({"a": jnp.ones(2)}, {"a": jnp.ones(2)})["a"], [2, 2])
    with pytest.raises(TypeCheckError):
        add({"a": jnp.ones(2)}, [jnp.ones(2)])


def test_dataclasses():
    @typed
    @dataclasses.dataclass
    class Batch:
        x: Float[Array, "n d"]
        y: Int[Array, "n"]

    assert Batch(jnp.ones((3, 2)), jnp.arange(3)).y.shape == (3,)
    with pytest.raises(TypeCheckError):
        Batch(jnp.ones((3, 2)), jnp.arange(4))


def test_traced_types():
    seen = []

    @jax.jit
    def f(x):
        seen.append((isinstance(x, Float[Array, "2"]), isinstance(x, Int[Array, "2"])))
        return x

    f(jnp.ones(2))
    assert seen == [(True, False)]
    assert isinstance(jax.eval_shape(f, jnp.ones(2)), Float[jax.ShapeDtypeStruct, "2"])
