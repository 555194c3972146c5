"""Passes of Fourier transforms against their formula in NumPy, and both texts of a pass, which give the same bits."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from styrax.cpu import butterflies, llvm

STRIDE, WIDTH = 2, 16


def placed(z: np.ndarray, kind: str, exchanged: bool) -> np.ndarray:
    """Complex numbers as numbers in memory."""
    first, second = (z.imag, z.real) if exchanged else (z.real, z.imag)
    return np.stack([first, second], -1 if kind == "pairs" else 0).copy()


def taken(numbers: np.ndarray, kind: str, exchanged: bool) -> np.ndarray:
    numbers = numbers if kind == "pairs" else np.moveaxis(numbers, 0, -1)
    return numbers[..., 1] + 1j * numbers[..., 0] if exchanged else numbers[..., 0] + 1j * numbers[..., 1]


@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("size", [4, 8])
@pytest.mark.parametrize(("source", "target", "factors"), [
    ("pairs", "apart", "some"), ("apart", "apart", "some"), ("apart", "pairs", "none"), ("apart", "turned", "none"),
    ("pairs", "turned", "some")])
@pytest.mark.parametrize("radix", [2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 17, 31])
def test_passes(radix, source, target, factors, size, lanes):
    rng, dtype = np.random.default_rng([radix, size, lanes]), np.dtype(f"f{size}")
    m = 3 if factors == "some" else 1  # the last pass has none
    points = radix * m * STRIDE

    def drawn(*shape: int) -> np.ndarray:
        return (rng.standard_normal((*shape, 2)).astype(dtype) @ np.array([1, 1j], f"c{2 * size}"))

    x, factor, turns = drawn(points, WIDTH), drawn(m, radix), drawn(points, WIDTH)
    if factors == "some":
        factor[:, 0] = 1  # which is not multiplied with
    exchanged = source == "pairs"
    scale = dtype.type(0.75)
    root = np.exp(-2j * np.pi * (np.outer(np.arange(radix), np.arange(radix)) % radix) / radix)
    lines = x.astype(np.complex128).reshape(radix, m, STRIDE, WIDTH)  # j, p, q
    expected = np.einsum("jk,jpqw->pkqw", root, lines)
    expected *= factor[:, :, None, None] if factors == "some" else scale
    expected = expected.reshape(points, WIDTH)
    if target == "turned":
        expected *= turns

    memory, end = placed(x, source, exchanged), placed(0 * x, target, exchanged)
    tables = [placed(factor, "apart", False), placed(turns, "apart", False)]
    ends = [[WIDTH, 0, int(exchanged)] if kind == "pairs" else [WIDTH, points * WIDTH, 0] for kind in (source, target)]
    counts = [m, STRIDE, WIDTH, *ends[0], *ends[1], *((WIDTH, points * WIDTH) if target == "turned" else (0, 0))]
    symbol = f"pass_{radix}_{source}_{target}_{factors}_{size}_{lanes}"
    results = []
    for name, level in ((symbol, 1), (butterflies.any_kind(symbol), llvm.BRIEFEST)):
        text = butterflies.source(name)
        assert text is not None and (level == 1 or (name == symbol) == (radix > butterflies.WRITTEN_OUT))
        library = llvm.load(text, name, level=level)
        number = ctypes.c_float if size == 4 else ctypes.c_double
        call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4, *[ctypes.c_int64] * 11, number)(library.address(name))
        out = end.copy()
        call(memory.ctypes.data, out.ctypes.data, *(table.ctypes.data for table in tables), *counts, scale)
        results.append(out)
    found = taken(results[0], target, exchanged and target == "pairs")
    np.testing.assert_allclose(found, expected, rtol=0, atol=np.abs(expected).max() * 40 * np.finfo(dtype).eps)
    np.testing.assert_array_equal(results[0].view(f"u{size}"), results[1].view(f"u{size}"))
