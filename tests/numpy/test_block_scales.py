"""Block-scaled products: their settings are JAX's, their values those of NumPy on rounded operands."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tests.transforms.oracle import jax, styrax

LEFT = np.linspace(-3, 3, 2 * 4 * 64).reshape(2, 4, 64).astype(np.float32)
RIGHT = np.linspace(-2, 1, 2 * 3 * 64).reshape(2, 3, 64).astype(np.float32)
TOP = {"nvfp4": 6.0, "mxfp8": 448.0}


@pytest.mark.parametrize("scale", [None, 2.0])
@pytest.mark.parametrize("mode", ["nvfp4", "mxfp8", "odd"])
def test_settings(mode, scale):
    texts = []
    for package in (jax, styrax):
        try:
            texts.append(repr(package.nn.get_scaled_dot_general_config(mode, scale)).replace("Array", "array"))
        except ValueError as error:
            texts.append(str(error))
    theirs, ours = texts
    assert ours.replace(", dtype=float32", "") == theirs.replace(", dtype=float32", "")


def rounded(x, mode, block, element, scale):
    blocks = x.reshape(*x.shape[:-1], -1, block)
    scales = abs(blocks).max(-1, keepdims=True) / TOP[mode]
    scales = np.exp2(np.ceil(np.log2(scales))) if mode == "mxfp8" else scales.astype(scale).astype(np.float32)
    scaled = np.clip(blocks / scales, -TOP[mode], TOP[mode])
    return (scaled.astype(element).astype(np.float32) * scales).reshape(x.shape)


@pytest.mark.parametrize("mode, block, element, scale", [
    ("nvfp4", 16, ml_dtypes.float4_e2m1fn, ml_dtypes.float8_e4m3fn),
    ("mxfp8", 32, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e8m0fnu)])
def test_products(mode, block, element, scale):
    configs = [styrax.nn.get_scaled_dot_general_config(mode)] * 3
    numbers = (((2,), (2,)), ((0,), (0,)))
    expected = np.einsum("bik,bjk->bij", rounded(LEFT, mode, block, element, scale),
                         rounded(RIGHT, mode, block, element, scale))

    def product(x, y):
        return styrax.nn.scaled_dot_general(x, y, numbers, configs=configs)

    exact = np.einsum("bik,bjk->bij", LEFT, RIGHT)
    assert np.abs(expected - exact).max() < 0.1 * np.abs(exact).max()
    np.testing.assert_allclose(product(LEFT, RIGHT), expected, rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(styrax.jit(product)(LEFT, RIGHT), expected, rtol=1e-5, atol=1e-4)
