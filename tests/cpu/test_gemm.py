"""The register-tiled matrix products against NumPy: types, extents, strides, edges, accumulation."""

from __future__ import annotations

import ctypes

import ml_dtypes
import numpy as np
import pytest

from styrax.cpu import gemm, llvm

STORED = {
    "f32": np.float32,
    "f64": np.float64,
    "bf16": ml_dtypes.bfloat16,
    "f16": np.float16,
    "i8": np.int8,
    "u8": np.uint8,
}
ADDED = {"float": np.float32, "double": np.float64, "i32": np.int32}
ARGUMENTS = "m n k a_row a_column b_row b_column c_row c_column".split()


def compiled(dtype: str, **known):
    symbol, text = gemm.definition(dtype, **known)
    parameters = ", ".join(["ptr %a", "ptr %b", "ptr %c", *[f"i64 %{name}" for name in ARGUMENTS]])
    text += f"define void @product({parameters}) nounwind {{\n  call void @{symbol}({parameters})\n  ret void\n}}\n"
    library = llvm.load(text, "product")
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3, *[ctypes.c_int64] * 9)(library.address("product"))
    function.library = library
    return function


def strides(x: np.ndarray) -> tuple[int, int]:
    return tuple(stride // x.itemsize for stride in x.strides)


def numbers(dtype, shape, rng):
    if dtype in ("i8", "u8"):
        info = np.iinfo(STORED[dtype])
        return rng.integers(info.min, info.max + 1, shape).astype(STORED[dtype])
    return rng.normal(size=shape).astype(STORED[dtype])


def matrix(dtype, rows, columns, layout, rng):
    if layout == "rows":
        return numbers(dtype, (rows, columns), rng)
    if layout == "columns":
        return numbers(dtype, (columns, rows), rng).T
    return numbers(dtype, (2 * rows, 3 * columns), rng)[::2, ::-3]


def check(dtype, m, n, k, layouts=("rows", "rows", "rows"), knowledge="all", accumulate=False):
    rng = np.random.default_rng(m + 10 * n + 100 * k)
    a, b = matrix(dtype, m, k, layouts[0], rng), matrix(dtype, k, n, layouts[1], rng)
    added = ADDED[gemm.TYPES[dtype][1]]
    c = rng.integers(-9, 9, (m, n) if layouts[2] == "rows" else (n, m)).astype(added)
    c = c if layouts[2] == "rows" else c.T
    before = c.copy()
    known = {"c_strides": (None, 1) if layouts[2] == "rows" else (1, None), "accumulate": accumulate}
    if knowledge == "all":
        known.update(m=m, n=n, k=k, a_strides=strides(a), b_strides=strides(b), c_strides=strides(c))
    elif knowledge == "units":
        known.update({f"{name}_strides": tuple(s if s == 1 else None for s in strides(x))
                      for name, x in (("a", a), ("b", b))})  # fmt: skip
    compiled(dtype, **known)(
        a.ctypes.data, b.ctypes.data, c.ctypes.data, m, n, k, *strides(a), *strides(b), *strides(c)
    )
    wide = np.int64 if added is np.int32 else np.float64
    expected = a.astype(wide) @ b.astype(wide) + (before if accumulate else 0)
    if added is np.int32:
        np.testing.assert_array_equal(c, expected)
    else:
        tolerance = np.finfo(added).eps * (np.abs(a.astype(wide)) @ np.abs(b.astype(wide)) + 10) * (k + 1) ** 0.5
        assert (np.abs(c - expected) <= tolerance).all()


EXTENTS = [(8, 8, 8), (13, 21, 17), (1, 5, 300), (40, 70, 30), (9, 1, 2), (3, 3, 0)]


@pytest.mark.parametrize("extents", EXTENTS)
@pytest.mark.parametrize("knowledge", ["all", "units", "nothing"])
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_extents(dtype, extents, knowledge):
    check(dtype, *extents, knowledge=knowledge)


@pytest.mark.parametrize("dtype", sorted(STORED))
def test_types(dtype):
    check(dtype, 21, 45, 300)
    check(dtype, 7, 18, 33, ("rows", "columns", "rows"))


LAYOUTS = [
    ("columns", "rows", "rows"),
    ("rows", "columns", "rows"),
    ("rows", "columns", "columns"),
    ("rows", "spread", "rows"),
    ("spread", "rows", "columns"),
]


@pytest.mark.parametrize("layouts", LAYOUTS)
@pytest.mark.parametrize("knowledge", ["all", "units"])
def test_layouts(layouts, knowledge):
    check("f32", 19, 37, 29, layouts, knowledge)


@pytest.mark.parametrize("k", [5, 600])
def test_accumulate(k):
    check("f32", 35, 20, k, accumulate=True)
    check("f64", 12, 20, k, knowledge="nothing", accumulate=True)


def test_bits_do_not_depend_on_what_is_known():
    rng = np.random.default_rng(1)
    m, n, k = 41, 39, 530
    a, b = numbers("f32", (m, k), rng), numbers("f32", (k, n), rng)
    results = []
    for known in (
        {},
        {"m": m, "n": n, "k": k, "a_strides": (k, 1), "b_strides": (n, 1), "c_strides": (n, 1)},
        {"b_strides": (None, 1)},
    ):
        c = np.zeros((m, n), np.float32)
        compiled("f32", **known)(a.ctypes.data, b.ctypes.data, c.ctypes.data, m, n, k, k, 1, n, 1, n, 1)
        results.append(c)
    chain = np.zeros((m, n))
    for step in range(k):
        # f64 holds the product exactly, and the sum with one rounding of its own before that to f32.
        chain = (a[:, step, None].astype(np.float64) * b[step] + chain).astype(np.float32).astype(np.float64)
    np.testing.assert_allclose(results[0], chain, rtol=1e-4, atol=1e-5)
    for other in results[1:]:
        np.testing.assert_array_equal(results[0], other)


def test_errors():
    with pytest.raises(ValueError, match="strides of C"):
        gemm.definition("f32", c_strides=(None, None))
    with pytest.raises(KeyError):
        gemm.definition("c64")
