"""Products by kernels of the host, in matrix units or vector registers, against NumPy's in wider types."""

import re
import string

import ml_dtypes
import numpy as np
import pytest

import styrax as jax
import styrax.numpy as jnp
from styrax import lax
from styrax.cpu import libraries, llvm, microkernels, runtime, tiles

BF16 = np.dtype(ml_dtypes.bfloat16)
CASES = {
    "whole blocks": ((64, 64), (64, 64), ((1,), (0,)), ((), ())),
    "one edge short": ((40, 300), (300, 100), ((1,), (0,)), ((), ())),
    "large": ((430, 410), (410, 400), ((1,), (0,)), ((), ())),
    "ragged": ((61, 70), (70, 45), ((1,), (0,)), ((), ())),
    "many terms": ((100, 1000), (1000, 17), ((1,), (0,)), ((), ())),
    "few terms": ((600, 16), (16, 600), ((1,), (0,)), ((), ())),
    "rows end within a block": ((70, 64), (64, 45), ((1,), (0,)), ((), ())),
    "terms end within a step": ((64, 70), (70, 64), ((1,), (0,)), ((), ())),
    "few terms behind a step": ((50, 514), (514, 40), ((1,), (0,)), ((), ())),
    "terms of half a step": ((600, 16), (16, 40), ((1,), (0,)), ((), ())),
    "rows in pieces": ((1061, 40), (40, 24), ((1,), (0,)), ((), ())),
    "terms and rows in pieces": ((200, 5000), (5000, 20), ((1,), (0,)), ((), ())),
    "right transposed": ((64, 128), (96, 128), ((1,), (1,)), ((), ())),
    "left transposed": ((128, 64), (128, 96), ((0,), (0,)), ((), ())),
    "batched": ((3, 40, 90), (3, 90, 60), ((2,), (1,)), ((0,), (0,))),
    "heads": ((3, 40, 4, 90), (3, 90, 4, 60), ((3,), (1,)), ((0, 2), (0, 2))),
    "two free dimensions": ((5, 40, 50), (50, 60), ((2,), (0,)), ((), ())),
    "two contracted dimensions": ((40, 5, 50), (60, 5, 50), ((1, 2), (1, 2)), ((), ())),
}
E4M3, INT4 = np.dtype(ml_dtypes.float8_e4m3fn), np.dtype(ml_dtypes.int4)
DTYPES = [(BF16, BF16, None), (BF16, BF16, np.float32), (np.int8, np.int8, None), (np.int8, np.int8, np.int32),
          (np.int8, np.uint8, np.int32), (np.uint8, np.int8, np.int32), (np.uint8, np.uint8, np.uint32),
          (np.int16, np.int16, np.int32), (np.int8, np.int16, np.int16), (INT4, INT4, np.int32),
          (np.float16, np.float16, None), (np.float16, np.float16, np.float32), (E4M3, E4M3, np.float32),
          (np.float32, np.float32, None)]


def operands(case, left, right, rng):
    for shape, dtype in zip(case[:2], (left, right), strict=True):
        if jnp.issubdtype(dtype, np.floating):
            yield rng.standard_normal(shape).astype(dtype)
        else:
            info = ml_dtypes.iinfo(dtype)
            yield rng.integers(info.min, info.max + 1, shape).astype(dtype)


def expected(x, y, contract, batch):
    left = string.ascii_lowercase[: x.ndim]
    right = list(string.ascii_uppercase[: y.ndim])
    for dims in (contract, batch):
        for i, j in zip(*dims, strict=True):
            right[j] = left[i]
    used = {left[i] for i in (*contract[0], *batch[0])}
    out = "".join(left[i] for i in batch[0]) + "".join(c for c in left if c not in used)
    out += "".join(c for c in right if c not in used)
    wide = np.float64 if jnp.issubdtype(x.dtype, np.floating) else np.int64
    return np.einsum(f"{left},{''.join(right)}->{out}", x.astype(wide), y.astype(wide))


def compare(got, want, terms):
    got = np.asarray(got)
    if got.dtype.kind in "iu":
        np.testing.assert_array_equal(got, want.astype(got.dtype))  # (wraps around)
    else:
        rounding = {BF16: 4e-3, np.dtype(np.float16): 5e-4}.get(got.dtype, 0.0)
        np.testing.assert_allclose(got.astype(np.float64), want, rtol=rounding, atol=1e-6 * terms)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("left, right, out", DTYPES)
def test_products(name, left, right, out):
    case = CASES[name]
    x, y = operands(case, left, right, np.random.default_rng(0))
    want = expected(x, y, *case[2:])
    terms = int(np.prod([x.shape[d] for d in case[2][0]]))
    f = jax.jit(lambda x, y: lax.dot_general(x, y, case[2:], preferred_element_type=out))
    before = runtime.num_threads()
    try:
        for threads in (1, 2):
            runtime.set_num_threads(threads)
            compare(f(x, y), want, terms)
    finally:
        runtime.set_num_threads(before)


# How the right operand lies whose panels a thread packs as it comes to them: its shape, and what is multiplied
LAID_OUT = {
    "rows": (lambda k, n: (k, n), lambda y: y),
    "columns": (lambda k, n: (n, k), lambda y: y.T),
    "a part of rows": (lambda k, n: (k + 3, n + 9), lambda y: y[2:-1, 5:-4]),
    "a part of columns": (lambda k, n: (n + 9, k + 3), lambda y: y[5:-4, 2:-1].T),
    "an even part of columns": (lambda k, n: (n + 9, k + 8), lambda y: y[5:-4, 4:-4].T),
    "computed": (lambda k, n: (k, n), lambda y: 2 * y - y[:1]),
    "computed columns": (lambda k, n: (n, k), lambda y: (2 * y - y[:1]).T),
    "turned round": (lambda k, n: (k, n), lambda y: y[::-1, ::-1]),
}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "int8"])
@pytest.mark.parametrize("layout", LAID_OUT)
@pytest.mark.parametrize("m, k, n", [(40, 700, 640), (33, 1040, 512), (310, 260, 520), (60, 9, 33000), (64, 2100, 130),
                                     (600, 21, 700), (64, 2100, 16), (70, 640, 48), (48, 512, 20),
                                     (2000, 640, 64)])
def test_panels_packed_as_they_pass(layout, m, k, n, dtype):
    """Whole panels and one that ends early, terms that fill steps and words and not, rows in one piece and in more.
    (Where the rows are too many, all panels are packed before.)"""
    rng = np.random.default_rng(0)
    shape, lay = LAID_OUT[layout]
    x, y = (rng.integers(-9, 10, size).astype(dtype) for size in ((m, k), shape(k, n)))
    if dtype != "int8":
        y[-1, -1] = np.nan  # (must not reach results that do not have it)
    wide = np.int32 if dtype == "int8" else np.float32  # sums of whole numbers are exact
    want = x.astype(np.float64) @ np.asarray(lay(y)).astype(np.float64)
    f = jax.jit(lambda x, y: jnp.matmul(x, lay(y), preferred_element_type=wide))
    before = runtime.num_threads()
    try:
        for threads in (1, 2):
            runtime.set_num_threads(threads)
            np.testing.assert_array_equal(np.asarray(f(x, y), np.float64), want)
    finally:
        runtime.set_num_threads(before)


def text(x, y):
    return jax.jit(jnp.matmul).lower(x, y).compile().as_text()


@pytest.fixture
def wide_blas(monkeypatch):
    """Whatever BLAS this host has, one that computes in vectors as wide as the host's."""
    monkeypatch.setattr(libraries, "vector_bytes", lambda: 64)


def test_kernels_are_used(wide_blas):
    x = jnp.ones((128, 128), jnp.bfloat16)
    assert ("tiles_bf16" in text(x, x)) == tiles.available()
    small = text(x[:8, :8], x[:8, :8])  # loops are faster
    assert "tiles" not in small and "panels" not in small
    kinds = microkernels.kernels()
    if not tiles.available():
        assert ("panels_bf16" in text(x, x)) == ("bf16" in kinds)
        for kind, lhs, rhs in (("i8", "int8", "int8"), ("u8", "uint8", "int8"), ("i16", "int8", "uint8")):
            used = kind if kind in kinds else "i16"
            assert (f"panels_{used}" in text(x.astype(lhs), x.astype(rhs))) == (used in kinds), (lhs, rhs)
    assert ("panels_f32" in text(x.astype("float16"), x.astype("float16"))) == ("f32" in kinds)
    skinny, square = jnp.ones((32, 512)), jnp.ones((512, 128))
    assert ("panels_f32" in text(skinny, jnp.ones((512, 600)))) == ("f32" in kinds)
    assert "blas_sgemm" in text(skinny, square)  # packs while it multiplies
    assert "panels" not in text(jnp.ones((20000, 50)), jnp.ones((50, 20)))  # a panel's columns would be half empty
    assert "blas_sgemm" in text(square.T, square)
    assert "blas" not in text(skinny[:8], square)  # few rows are loops


@pytest.mark.skipif("i16" not in microkernels.kernels(), reason="no such kernel on this host")
def test_left_operands_that_lie_well_are_not_packed():
    def lies(x):
        return "_lying" in text(x, jnp.ones((x.shape[1], 96), x.dtype))

    x = jnp.ones((100, 2048), jnp.int16)
    assert lies(x[:, :400])  # rows 800 bytes apart
    assert not lies(x)  # rows 4 KB apart meet in one place of the nearest cache
    assert not lies(x[:, :401])  # words of two terms
    assert not lies(x[:, :400].astype(jnp.int8))  # which are cast


@pytest.mark.skipif("f32" not in microkernels.kernels(), reason="no such kernel on this host")
def test_nothing_is_asked_for_behind_the_panels():
    asked = re.findall(r"call panels_f32\w*\(&.*?, &(\w+)\[(.*?)\], &(\w+)\[(.*?)\], ",
                       text(*[jnp.ones((300, 300), jnp.float16)] * 2))
    assert asked and all(panel == then and (at == "0" or at.startswith("min(")) for panel, _, then, at in asked), asked


def test_products_in_loops_stay_loops_for_longer(wide_blas):
    def text(x, y):
        return jax.jit(lambda x, y: lax.scan(lambda c, _: (jnp.tanh(c @ y), None), x, None, length=5)[0]).lower(
            x, y).compile().as_text()

    x, y = np.ones((32, 128), np.float32), np.ones((128, 128), np.float32)
    assert ("blas" in text(x, y)) == (llvm.host().vector_bytes == 64)
    assert "blas" in text(np.ones((300, 128), np.float32), y)
    assert "blas" in text(x.astype(np.complex64), y.astype(np.complex64))


def test_values_that_are_no_numbers():
    x = np.ones((70, 90), BF16)
    x[3, 5], x[4, 7], x[5, 0], x[5, 1] = np.inf, np.nan, np.inf, -np.inf
    y = np.ones((90, 33), BF16)
    with np.errstate(invalid="ignore"):
        want = x.astype(np.float32) @ y.astype(np.float32)
    np.testing.assert_array_equal(jax.jit(jnp.matmul)(x, y).astype(np.float32), want)


@pytest.mark.parametrize("k", [36, 100, 514])
def test_what_lies_behind_rows_is_not_multiplied(k):
    rng = np.random.default_rng(2)
    x, y = np.full((64, k + 64), np.nan, BF16), rng.standard_normal((k, 48)).astype(BF16)
    x[:, :k] = rng.standard_normal((64, k))
    x[3, 5] = np.inf
    got = jax.jit(lambda x, y: jnp.matmul(x[:, :k], y, preferred_element_type=jnp.float32))(x, y)
    want = x[:, :k].astype(np.float64) @ y.astype(np.float64)
    np.testing.assert_array_equal(got[3], np.sign(y[5].astype(np.float64)) * np.inf)
    np.testing.assert_allclose(np.delete(got, 3, 0), np.delete(want, 3, 0), atol=1e-6 * k)


@pytest.mark.parametrize("turned", [lambda x: x[::-1], lambda x: x[::2], lambda x: jnp.broadcast_to(x[3], x.shape)],
                         ids=["backwards", "every other", "one"])
def test_rows_in_other_orders(turned):
    rng = np.random.default_rng(3)
    x, y = rng.standard_normal((150, 70)).astype(BF16), rng.standard_normal((70, 40)).astype(BF16)
    got = jax.jit(lambda x, y: jnp.matmul(turned(x), y, preferred_element_type=jnp.float32))(x, y)
    want = np.asarray(turned(x)).astype(np.float64) @ y.astype(np.float64)
    np.testing.assert_allclose(got, want, atol=1e-4)


def test_derivatives_batches_and_loops():
    rng = np.random.default_rng(1)
    x, y = (rng.standard_normal(s).astype(BF16) for s in ((4, 64, 96), (96, 80)))

    def loss(x, y):
        return (jnp.matmul(x, y, preferred_element_type=jnp.float32) ** 2).sum()

    grads = jax.jit(jax.vmap(jax.grad(loss, (0, 1)), (0, None)))(x, y)
    wide = x.astype(np.float64), y.astype(np.float64)
    products = 2 * (wide[0] @ wide[1])
    for got, want in zip(grads, (products @ wide[1].T, np.swapaxes(wide[0], 1, 2) @ products), strict=True):
        np.testing.assert_allclose(got.astype(np.float64), want, rtol=2e-2, atol=2e-2 * np.abs(want).max())

    square = rng.standard_normal((64, 64)).astype(BF16) / BF16.type(8)
    got = jax.jit(lambda a: lax.fori_loop(0, 4, lambda i, c: c @ a, a))(square)
    want = square
    for _ in range(4):
        want = (want.astype(np.float64) @ square.astype(np.float64)).astype(BF16)
    np.testing.assert_allclose(got.astype(np.float64), want.astype(np.float64), atol=2e-2)


# the function, its operands' shapes, and whether they are computed along what is packed
COMPUTED = {
    "right, along columns": (lambda x, y: x @ (y - y.mean(0)), (40, 300), (300, 3000), True),
    "right, ragged": (lambda x, y: x @ jnp.where(y > 0, y, 0.5), (61, 299), (299, 3001), True),
    "left, along terms": (lambda x, y: (2 * x + 1) @ y, (1500, 64), (64, 3000), True),
    "both": (lambda x, y: (x + 1) @ (y * 3), (61, 299), (299, 3001), True),
    "right, along terms": (lambda x, y: x @ (y + 1).T, (40, 300), (3000, 300), False),
    "left, transposed": (lambda x, y: (x * 2).T @ y, (300, 100), (300, 3000), False),
    "right, of a row": (lambda x, y: x @ (y * jnp.linspace(0, 1, 3000)), (40, 300), (300, 3000), True),
    "batched": (lambda x, y: jax.vmap(jnp.matmul)(x, y + 1), (3, 50, 300), (3, 300, 1000), True),
}


@pytest.mark.parametrize("dtype", [np.float32, BF16])
@pytest.mark.parametrize("name", COMPUTED)
def test_computed_operands(name, dtype):
    f, left, right, _ = COMPUTED[name]
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal(s).astype(dtype) for s in (left, right))
    x.flat[7], y.flat[11] = np.inf if dtype == np.float32 else 1.0, np.nan
    with jax.enable_x64(True):
        wide = np.asarray(f(jnp.asarray(x.astype(np.float64)), jnp.asarray(y.astype(np.float64))))
    before = runtime.num_threads()
    results = []
    try:
        for threads in (1, 2):
            runtime.set_num_threads(threads)
            results.append(np.asarray(jax.jit(f)(x, y)))
    finally:
        runtime.set_num_threads(before)
    assert results[0].tobytes() == results[1].tobytes()
    scale = np.abs(wide[np.isfinite(wide)]).max()
    close = 2e-2 if dtype == BF16 else 1e-5
    np.testing.assert_allclose(results[0].astype(np.float64), wide, rtol=close, atol=close * scale)


@pytest.mark.skipif("f32" not in microkernels.kernels(), reason="no kernel on this host")
@pytest.mark.parametrize("name", [name for name, row in COMPUTED.items() if row[-1]])
def test_what_lies_side_by_side_is_computed_where_it_is_packed(name, wide_blas):
    f, left, right, _ = COMPUTED[name]

    def temporaries(f):
        return jax.jit(f).lower(jnp.ones(left), jnp.ones(right)).compile().memory_analysis().temp_size_in_bytes

    more = temporaries(f) - temporaries(jnp.matmul)
    assert more < 4 * min(np.prod(left), np.prod(right)) / 2
