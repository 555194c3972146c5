"""Resampling of images: values, derivatives, dtypes and errors as JAX's."""

from __future__ import annotations

from typing import Any

import jax
import jax.image
import numpy as np
import pytest

import styrax
import styrax.image
import styrax.numpy

METHODS = ["nearest", "linear", "lanczos3", "lanczos5", "cubic", "cubic-pytorch", "area"]
SHAPES = [(9, 6, 3), (3, 4, 3), (5, 6, 3), (1, 1, 1), (0, 6, 3), (10, 2, 4)]
IMAGE = np.random.default_rng(0).normal(size=(5, 6, 3)).astype(np.float32)


@pytest.mark.parametrize("antialias", [True, False])
@pytest.mark.parametrize("method", METHODS)
def test_sizes(method: str, antialias: bool) -> None:
    for shape in SHAPES:
        ours = styrax.image.resize(styrax.numpy.asarray(IMAGE), shape, method, antialias)
        theirs = jax.image.resize(jax.numpy.asarray(IMAGE), shape, method, antialias)
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, atol=3e-6)


@pytest.mark.parametrize("method", METHODS[1:])
def test_usual_sizes(method: str) -> None:
    image = np.random.default_rng(1).normal(size=(128, 120, 3)).astype(np.float32)
    for shape in [(90, 75, 3), (200, 119, 3)]:
        resized = [p.jit(lambda x, p=p, s=shape: p.image.resize(x, s, method))(image) for p in (styrax, jax)]
        np.testing.assert_allclose(*resized, atol=6e-5)  # rounded positions, 1e-5 of up to 128, times slopes


@pytest.mark.parametrize("antialias", [True, False])
@pytest.mark.parametrize("method", METHODS[1:])
def test_movement_and_its_derivatives(method: str, antialias: bool) -> None:
    def cost(package: Any) -> Any:
        def function(scale: Any, translation: Any, image: Any) -> Any:
            moved = package.image.scale_and_translate(image, (7, 8, 3), (0, -2), scale, translation, method, antialias)
            return (moved**2).sum(), moved
        return package.value_and_grad(function, argnums=(0, 1, 2), has_aux=True)

    args = np.float32([1.3, 0.6]), np.float32([0.5, -1]), IMAGE
    for ours, theirs in zip(styrax.tree.leaves(styrax.jit(cost(styrax))(*args)), jax.tree.leaves(cost(jax)(*args))):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("method", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "float16", "bfloat16", "complex64"])
def test_dtypes(dtype: str, method: str) -> None:
    image = IMAGE[:, :, 0].astype(dtype)
    ours = styrax.image.resize(styrax.numpy.asarray(image), (7, 4), method)
    theirs = jax.image.resize(jax.numpy.asarray(image), (7, 4), method)
    assert (ours.dtype, ours.weak_type) == (theirs.dtype, theirs.weak_type)
    wide = "complex64" if dtype == "complex64" else "float32"
    np.testing.assert_allclose(ours.astype(wide), theirs.astype(wide), rtol=0.02 if "16" in dtype else 1e-5, atol=1e-3)


def test_batches() -> None:
    def cost(package: Any) -> Any:
        return lambda image: (package.image.resize(image, (8, 2), "cubic") ** 3).sum()

    ours = styrax.vmap(styrax.grad(cost(styrax)), in_axes=2)(IMAGE)
    np.testing.assert_allclose(ours, jax.vmap(jax.grad(cost(jax)), in_axes=2)(IMAGE), rtol=1e-5, atol=1e-5)


def test_a_linear_gradient_is_exact() -> None:
    line = styrax.numpy.arange(8.0)
    np.testing.assert_allclose(styrax.image.resize(line, (4,), "area"), np.arange(8.0).reshape(4, 2).mean(1), rtol=1e-6)
    np.testing.assert_allclose(styrax.image.resize(line, (16,), "linear")[1:-1], np.arange(0.25, 7, 0.5), rtol=1e-6)


CALLS = {
    "rank": lambda p: p.image.resize(p.numpy.ones((4, 5)), (7,), "linear"),
    "name": lambda p: p.image.resize(p.numpy.ones((4, 5)), (7, 5), "foo"),
    "method": lambda p: p.image.resize(p.numpy.ones((4, 5)), (7, 5), 1),
    "list": lambda p: p.image.resize([[1, 2]], (7, 5), "linear"),
    "none": lambda p: p.image.resize(None, (7, 5), "linear"),
    "number": lambda p: p.image.resize(1, (), "linear"),
    "sizes": lambda p: p.image.resize(p.numpy.ones((4, 5)), (4.5, 5), "linear"),
    "samples": lambda p: p.image.resize(p.numpy.ones((0, 5)), (4, 5), "linear"),
    "nearest of none": lambda p: p.image.resize(p.numpy.ones((0, 5)), (4, 5), "nearest"),
    "nothing": lambda p: p.image.resize(p.numpy.ones((0, 5)), (0, 5), "linear"),
    "nearest": lambda p: p.image.scale_and_translate(p.numpy.ones(2), (7,), (0,), np.ones(1), np.ones(1), "nearest"),
    "axis": lambda p: p.image.scale_and_translate(p.numpy.ones(2), (7,), (1,), np.ones(1), np.ones(1), "linear"),
    "scales": lambda p: p.image.scale_and_translate(p.numpy.ones(2), (7,), (0,), np.ones(2), np.ones(1), "linear"),
    "lists": lambda p: p.image.scale_and_translate(p.numpy.ones(2), (7,), (0,), [1.0], [1.0], "linear"),
    "no axes": lambda p: p.image.scale_and_translate(p.numpy.ones(2), (2,), (), np.ones(0), np.ones(0), "linear"),
    "no axes of NumPy": lambda p: p.image.scale_and_translate(np.ones(2), (2,), (), np.ones(0), np.ones(0), "linear"),
    "integers": lambda p: p.image.scale_and_translate(p.numpy.arange(2), (3,), (0,), np.ones(1, int), np.ones(1, int),
                                                      "cubic"),
    "precision": lambda p: p.image.resize(p.numpy.ones(2), (7,), "linear", precision="foo"),
}


@pytest.mark.parametrize("call", CALLS)
def test_errors_and_edges(call: str) -> None:
    def outcome(package: Any) -> Any:
        try:
            out = CALLS[call](package)
        except Exception as error:
            return type(error).__name__
        return out.shape, out.dtype, out.weak_type

    assert outcome(styrax) == outcome(jax)


def test_names_of_methods() -> None:
    for name in [*METHODS, "bilinear", "trilinear", "triangle", "bicubic", "tricubic"]:
        assert styrax.image.ResizeMethod.from_string(name).name == jax.image.ResizeMethod.from_string(name).name
    assert {m.name: m.value for m in styrax.image.ResizeMethod} == {m.name: m.value for m in jax.image.ResizeMethod}
