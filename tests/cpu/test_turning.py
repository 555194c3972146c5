"""The functions that turn tiles in registers: every size, tile and length, and no element besides."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from styrax.cpu import llvm, turning

rng = np.random.default_rng(0)


@pytest.mark.parametrize("lanes", [4, 8, 16])
@pytest.mark.parametrize("size", [2, 4, 8])
def test_there_and_back(size, lanes):
    group = 16 // size
    if lanes < group:
        pytest.skip("tiles have a strip of rows at least")
    dtype = np.dtype(f"u{size}")
    given = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
    names = [f"turn_{way}_{size}_{lanes}" for way in ("in", "out")]
    libraries = [llvm.load(turning.source(name)) for name in names]  # (which keep the code)
    addresses = [library.address(name) for library, name in zip(libraries, names, strict=True)]
    into = ctypes.CFUNCTYPE(None, *given)(addresses[0])
    out = ctypes.CFUNCTYPE(None, given[0], given[2], given[1], given[3])(addresses[1])
    for length in (group, group + 1, 9, 16, 17, 31):
        if length < group:
            continue
        for stride in (length, length + 3):
            matrix = rng.integers(0, 1 << 16, (lanes, stride)).astype(dtype)
            tile = np.full(length * lanes + 2, 7, dtype)
            into(tile.ctypes.data + size, matrix.ctypes.data, stride, length)
            np.testing.assert_array_equal(tile[1:-1].reshape(length, lanes), matrix[:, :length].T)
            assert tile[0] == tile[-1] == 7
            back = np.full((lanes, stride), 9, dtype)
            out(back.ctypes.data, stride, tile.ctypes.data + size, length)
            np.testing.assert_array_equal(back[:, :length], matrix[:, :length])
            assert (back[:, length:] == 9).all()


@pytest.mark.parametrize("symbol", ["turn_in_1_16", "turn_up_4_16", "turn_in_4", "turn_in_4_x", "turn_"])
def test_other_names_are_none_of_the_family(symbol):
    assert turning.source(symbol) is None
