"""Kernels of products in vector registers against NumPy, alone: every edge, and nothing written beside the result."""

import ctypes
import mmap

import ml_dtypes
import numpy as np
import pytest

from styrax.cpu import llvm, microkernels

SIGNATURE = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4, *[ctypes.c_int64] * 4)
INDIRECT = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 5, *[ctypes.c_int64] * 7)
NARROW = {"bf16": ml_dtypes.bfloat16, "f16": np.float16}
ELEMENTS = {"f32": np.float32, "f64": np.float64, "bf16": ml_dtypes.bfloat16, "i16": np.int16, "i8": np.int8,
            "u8": np.int8}
SUMS = {"f32": np.float32, "f64": np.float64, "bf16": np.float32, "i16": np.int32, "i8": np.int32, "u8": np.int32}
HOST = microkernels.kernels()
# kind, rows, columns, bytes of a vector: what the host uses, fewer rows, and what hosts with shorter vectors use
KERNELS = [(kind, rows, HOST[kind].columns, llvm.host().vector_bytes)
           for kind in HOST for rows in (1, HOST[kind].rows - 1, HOST[kind].rows)]
if "i8" in HOST and "avx512vl" in llvm.host().available:
    KERNELS += [(kind, rows, 16, 32) for kind in microkernels.BYTES for rows in (5, 6)]
if {"avx2", "fma"} <= llvm.host().available:
    KERNELS += [(kind, rows, 16, 32) for kind in ("f32", "i16") for rows in (5, 6)]
KERNELS += [("f32", 6, 16, 16)] * bool(HOST)


def aligned(shape, dtype):
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    memory = np.zeros(size + 64, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start : start + size].view(dtype).reshape(shape)


def meant(kind, x):
    """What terms on the left stand for."""
    return {"i8": lambda: x ^ np.int8(-128), "u8": lambda: x.view(np.uint8)}.get(kind, lambda: x)()


def packed(x, rows, inner):
    """x[i, k] as blocks of rows: step after step, with `inner` the row outside of the step's terms, or inside."""
    step, number, blocks = 64 // x.dtype.itemsize, max(4 // x.dtype.itemsize, 1), -(-x.shape[0] // rows)
    steps = -(-x.shape[1] // step)
    whole = np.zeros((blocks * rows, steps * step), x.dtype)
    whole[: x.shape[0], : x.shape[1]] = x
    split = whole.reshape(blocks, rows, steps, step // number, number)
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
                most = 128 if kind in microkernels.BYTES else 99
                x, y = (rng.integers(-most, most, shape).astype(ELEMENTS[kind]) for shape in ((m, k), (n, k)))
                (a, steps), (b, _) = packed(x, rows, False), packed(y, columns, True)
                around = np.full((m + 2, n + 40), -5, SUMS[kind])
                out = around[1:-1, 20:-20]
                out[:] = 7  # (what was there before does not count)
                kernel(a.ctypes.data, b.ctypes.data, None, out.ctypes.data, around.strides[0], m, n, steps)
                want = np.full(around.shape, -5.0)
                want[1:-1, 20:-20] = meant(kind, x).astype(np.float64) @ y.astype(np.float64).T
                np.testing.assert_array_equal(around, want)  # sums of whole numbers are exact


@pytest.mark.parametrize("kind, result", [(kind, result) for kind in HOST for result in sorted(HOST[kind].narrow)])
def test_sums_are_rounded_once(kind, result):
    rows, columns = 5, HOST[kind].columns
    library = llvm.load(microkernels.source(kind, rows, columns, llvm.host().vector_bytes, result=result), "panels")
    kernel = SIGNATURE(library.address(f"panels_{kind}_{rows}_{result}"))
    rng = np.random.default_rng(0)
    for m, n, k in ((3, 5, 40), (rows * microkernels.BLOCKS, columns, 3000), (11, columns - 1, 20)):
        x, y = (rng.integers(-9, 9, shape).astype(ELEMENTS[kind]) for shape in ((m, k), (n, k)))
        x[0, 0], x[1, 1] = np.inf, np.nan
        (a, steps), (b, _) = packed(x, rows, False), packed(y, columns, True)
        around = np.full((m + 2, n + 40), -5, NARROW[result])
        kernel(a.ctypes.data, b.ctypes.data, None, around[1:-1, 20:-20].ctypes.data, around.strides[0], m, n,
               steps)
        want = np.full(around.shape, -5, np.float64)
        with np.errstate(invalid="ignore"):
            want[1:-1, 20:-20] = x.astype(np.float64) @ y.astype(np.float64).T
        with np.errstate(over="ignore"):
            np.testing.assert_array_equal(around.astype(np.float64), want.astype(NARROW[result]).astype(np.float64))


@pytest.mark.parametrize("kind, result",
                         [(kind, result) for kind in sorted(HOST) if kind != "f64"
                          for result in ["", *sorted(HOST[kind].narrow)]])
def test_steps_that_share_rows(kind, result):
    """Lines of rows whose steps begin where offsets say, and of which only some terms are used."""
    height, columns = 4, HOST[kind].columns
    name = f"panels_{kind}_{height}{f'_{result}' if result else ''}_indirect"
    text = microkernels.source(kind, height, columns, llvm.host().vector_bytes, "indirect", result)
    library = llvm.load(text, "panels")
    kernel = INDIRECT(library.address(name))
    rng, word = np.random.default_rng(0), 4 // np.dtype(ELEMENTS[kind]).itemsize
    for rows, lines, steps, used in ((1, 1, 1, 16), (9, 3, 30, 12), (4, 4, 5, 1), (7, 2, 60, 16)):
        a = aligned((200, 16 * word), ELEMENTS[kind])
        a[:] = rng.integers(-3, 4, a.shape)
        offsets = rng.integers(0, 120, steps).astype(np.int32)
        y = np.zeros((columns, steps, 16 * word), ELEMENTS[kind])
        y[:, :, : used * word] = rng.integers(-3, 4, (columns, steps, used * word))
        b, _ = packed(y.reshape(columns, -1), columns, True)
        a_line, n = 17, columns - 3
        out = np.full((lines * rows + 1, n), 77, NARROW.get(result, SUMS[kind]))
        kernel(a.ctypes.data, offsets.ctypes.data, b.ctypes.data, None, out.ctypes.data, out.strides[0], rows, lines,
               64 * a_line, 4 * used, n, steps)
        for line in range(lines):
            for row in range(rows):
                found = meant(kind, a[offsets + line * a_line + row]).astype(np.float64).ravel()
                want = (y.reshape(columns, -1).astype(np.float64) @ found)[:n]
                np.testing.assert_array_equal(out[line * rows + row], want.astype(out.dtype))
        assert (out[-1] == 77).all()


LYING = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, *[ctypes.c_void_p] * 3, *[ctypes.c_int64] * 4)


@pytest.mark.parametrize("kind, result",
                         [(kind, result) for kind in sorted(HOST) for result in ["", *sorted(HOST[kind].narrow)]])
@pytest.mark.parametrize("rows", [1, 5, 11, 14])
@pytest.mark.parametrize("first", [False, True])
def test_a_left_operand_as_it_lies(kind, result, rows, first):
    """Nothing before its first row or behind its last one is read: there is no memory. Between rows is no number."""
    rows = min(rows, HOST[kind].rows)
    dtype, columns = np.dtype(ELEMENTS[kind]), HOST[kind].columns
    name = f"panels_{kind}_{rows}{f'_{result}' if result else ''}_lying"
    library = llvm.load(microkernels.source(kind, rows, columns, llvm.host().vector_bytes, "lying", result), "panels")
    kernel = LYING(library.address(name))
    rng, word = np.random.default_rng(0), max(1, 4 // dtype.itemsize)
    for m in (rows, rows + 1, 3 * rows - 1, rows * microkernels.BLOCKS):
        for k in (1, 15, 16, 500):
            terms, apart = word * k, word * k + 6 * word
            x, y = rng.integers(-9, 9, (m, terms)).astype(dtype), rng.integers(-9, 9, (columns, terms)).astype(dtype)
            b, _ = packed(y, columns, True)
            size = ((m - 1) * apart + terms) * dtype.itemsize
            pages = mmap.mmap(-1, (-(-size // mmap.PAGESIZE) + 2) * mmap.PAGESIZE)
            start = mmap.PAGESIZE if first else len(pages) - mmap.PAGESIZE - size
            flat = np.frombuffer(pages, dtype, size // dtype.itemsize, start)
            flat[:] = np.nan if dtype.kind != "i" else 99
            np.lib.stride_tricks.as_strided(flat, (m, terms), (apart * dtype.itemsize, dtype.itemsize))[:] = x
            address = ctypes.addressof(ctypes.c_char.from_buffer(pages))
            for page in (address, address + len(pages) - mmap.PAGESIZE):
                assert mprotect(page, mmap.PAGESIZE, 0) == 0
            n = columns - 3
            out = np.full((m + 1, n + 3), -5, NARROW.get(result, SUMS[kind]))
            kernel(address + start, apart * dtype.itemsize, b.ctypes.data, None, out.ctypes.data, out.strides[0], m, n,
                   terms * dtype.itemsize)
            want = np.full(out.shape, -5.0)
            want[:m, :n] = (meant(kind, x).astype(np.float64) @ y.astype(np.float64).T)[:, :n]
            np.testing.assert_array_equal(out, want.astype(out.dtype))


STREAMED = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 2, ctypes.c_int64, ctypes.c_void_p, *[ctypes.c_int64] * 4)


@pytest.mark.parametrize("kind", [kind for kind in HOST if kind in ("f32", "f64")])
@pytest.mark.parametrize("rows, vectors", [(1, 5), (3, 3), (4, 2)])
def test_a_right_operand_as_it_lies(kind, rows, vectors):
    """Nothing behind its last row and column is read: there is no number, in a page of its own no memory."""
    dtype, lanes = np.dtype(ELEMENTS[kind]), llvm.host().vector_bytes // np.dtype(ELEMENTS[kind]).itemsize
    width = vectors * lanes
    library = llvm.load(microkernels.source(kind, rows, width, llvm.host().vector_bytes, "streamed"), "panels")
    kernel = STREAMED(library.address(f"panels_{kind}_{rows}_streamed_{vectors}"))
    rng = np.random.default_rng(0)
    for m in (1, rows, 2 * rows + 1):
        for n in (1, lanes, width - 1, width):
            for k in (1, 15, 400, 1000):
                x, y = (rng.integers(-99, 99, shape).astype(dtype) for shape in ((m, k), (k, n)))
                a, _ = packed(x, rows, False)
                size = k * n * dtype.itemsize
                pages = mmap.mmap(-1, (-(-size // mmap.PAGESIZE) + 1) * mmap.PAGESIZE)
                start = len(pages) - mmap.PAGESIZE - size
                b = np.frombuffer(pages, dtype, k * n, start).reshape(k, n)
                b[:] = y
                address = ctypes.addressof(ctypes.c_char.from_buffer(pages))
                assert mprotect(address + len(pages) - mmap.PAGESIZE, mmap.PAGESIZE, 0) == 0
                out = np.full((m + 1, n + 3), -5, SUMS[kind])
                kernel(a.ctypes.data, address + start, n * dtype.itemsize, out.ctypes.data, out.strides[0], m, n, k)
                assert mprotect(address + len(pages) - mmap.PAGESIZE, mmap.PAGESIZE, 3) == 0
                want = np.full(out.shape, -5.0)
                want[:m, :n] = x.astype(np.float64) @ y.astype(np.float64)
                np.testing.assert_array_equal(out, want)


def mprotect(address, size, access):
    return ctypes.CDLL(None).mprotect(ctypes.c_void_p(address), ctypes.c_size_t(size), access)


@pytest.mark.skipif(llvm.host().vector_bytes < 64, reason="fast code generation accumulates in place under masks alone")
@pytest.mark.parametrize("kind", ["f32", "f64"])
@pytest.mark.parametrize("form", ["", "indirect", "lying", "streamed"])
def test_code_made_quickly_accumulates_in_place(kind, form):
    sizes = HOST[kind]
    text = microkernels.source(kind, sizes.rows, sizes.columns, 64, form)
    lines = [line.split("#")[0].split() for line in llvm.asm(text, llvm.BRIEF).splitlines()]
    at = [k for k, line in enumerate(lines) if line and line[0].startswith("vfmadd")]
    assert len(at) == sizes.rows * sizes.columns * ELEMENTS[kind](0).itemsize // 64
    between = (line for line in lines[at[0] : at[-1]] if line)
    copies = [line for line in between if line[0].startswith("vmova") and "(" not in "".join(line)]
    assert {lines[k][0][:10] for k in at} == {"vfmadd231p"} and not copies
