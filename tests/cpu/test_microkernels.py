"""Kernels of products in vector registers against NumPy, alone: every edge, and nothing written beside the result."""

import ctypes

import ml_dtypes
import numpy as np
import pytest

from styrax.cpu import llvm, microkernels

SIGNATURE = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3, *[ctypes.c_int64] * 4)
ELEMENTS = {"f32": np.float32, "bf16": ml_dtypes.bfloat16, "i16": np.int16}
HOST = microkernels.kernels()
# kind, rows, columns, bytes of a vector: what the host uses, fewer rows, and what hosts with shorter vectors use
KERNELS = [(kind, rows, HOST[kind].columns, llvm.host().vector_bytes)
           for kind in HOST for rows in (1, HOST[kind].rows - 1, HOST[kind].rows)]
if {"avx2", "fma"} <= llvm.host().available:
    KERNELS += [(kind, rows, 16, 32) for kind in ("f32", "i16") for rows in (5, 6)]
KERNELS += [("f32", 6, 16, 16)] * bool(HOST)


def aligned(shape, dtype):
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    memory = np.zeros(size + 64, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start : start + size].view(dtype).reshape(shape)


def packed(x, rows, inner):
    """x[i, k] as blocks of rows: step after step, with `inner` the row outside of the step's terms, or inside."""
    number, blocks = 4 // x.dtype.itemsize, -(-x.shape[0] // rows)
    steps = -(-x.shape[1] // (16 * number))
    whole = np.zeros((blocks * rows, steps * 16 * number), x.dtype)
    whole[: x.shape[0], : x.shape[1]] = x
    split = whole.reshape(blocks, rows, steps, 16, number)
    order = (0, 2, 3, 1, 4) if inner else (0, 2, 1, 3, 4)
    out = aligned([split.shape[d] for d in order], x.dtype)
    out[:] = split.transpose(order)
    return out, steps


@pytest.mark.parametrize("kind, rows, columns, vector_bytes", KERNELS)
def test_every_edge(kind, rows, columns, vector_bytes):
    library = llvm.load(microkernels.source(kind, rows, columns, vector_bytes), "panels")
    kernel = SIGNATURE(library.address(f"panels_{kind}_{rows}"))
    rng = np.random.default_rng(0)
    for m in sorted({1, rows, rows + 1, 3 * rows - 1}):
        for n in sorted({1, columns // 2 + 1, columns - 1, columns}):
            for k in (1, 31, 16 * 16 * 4 // np.dtype(ELEMENTS[kind]).itemsize // 2, 700):
                x, y = (rng.integers(-99, 99, shape).astype(ELEMENTS[kind]) for shape in ((m, k), (n, k)))
                (a, steps), (b, _) = packed(x, rows, False), packed(y, columns, True)
                around = np.full((m + 2, n + 40), -5, np.int32 if kind == "i16" else np.float32)
                out = around[1:-1, 20:-20]
                out[:] = 7  # (what was there before does not count)
                kernel(a.ctypes.data, b.ctypes.data, out.ctypes.data, around.strides[0], m, n, steps)
                want = np.full(around.shape, -5.0)
                want[1:-1, 20:-20] = x.astype(np.float64) @ y.astype(np.float64).T
                np.testing.assert_array_equal(around, want)  # sums of whole numbers are exact
