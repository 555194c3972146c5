"""Products of few rows and columns over many terms: their sums are cut into stretches, which threads share."""

import numpy as np
import pytest

import styrax
import styrax.numpy as jnp
from styrax.compile.ir.loopir import Call, Loop, statements
from styrax.compile.pipeline import compile_to_loops
from styrax.cpu import runtime

SHAPES = [(8, 24, 8000), (30, 33, 1201), (100, 100, 4001), (17, 120, 7777), (64, 32, 8192)]
LAYOUTS = {
    "rows and columns": (lambda x, y: x @ y, lambda m, n, k: ((m, k), (k, n))),
    "columns and columns": (lambda x, y: x.T @ y, lambda m, n, k: ((k, m), (k, n))),
    "rows and rows": (lambda x, y: x @ y.T, lambda m, n, k: ((m, k), (n, k))),
    "columns and rows": (lambda x, y: x.T @ y.T, lambda m, n, k: ((k, m), (n, k))),
}


def numbers(shape, dtype):
    rng = np.random.default_rng(shape)
    x = rng.normal(size=shape)
    return (x + 1j * rng.normal(size=shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


def stretches(f, *args):
    """How many products the loops over calls of BLAS make."""
    program = compile_to_loops(styrax.make_jaxpr(f)(*args), "f")
    return [s.extent for s in statements(program.statements)
            if isinstance(s, Loop) and any(isinstance(x, Call) and "gemm" in x.symbol for x in s.body)]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("m, n, k", SHAPES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_values(layout, m, n, k, dtype):
    f, shapes = LAYOUTS[layout]
    with styrax.enable_x64(dtype.endswith(("64", "128")) and dtype != "complex64"):
        x, y = (numbers(s, dtype) for s in shapes(m, n, k))
        wide = np.complex128 if np.dtype(dtype).kind == "c" else np.float64
        wanted = f(x.astype(wide), y.astype(wide))
        got = styrax.jit(f)(x, y)
        assert got.dtype == dtype and got.shape == (m, n)
        bound = 4 * np.finfo(dtype).eps * k  # of sums of k products of size one
        np.testing.assert_allclose(np.asarray(got, wide), wanted, rtol=0, atol=bound)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("m, n, k", [(16, 48, 2048), (30, 33, 4096), (64, 64, 3072), (40, 24, 1537)])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "int8", "uint8", "int16"])
def test_values_of_panels(layout, m, n, k, dtype):
    f, shapes = LAYOUTS[layout]
    rng = np.random.default_rng(k)
    x, y = (rng.integers(0, 7, s) for s in shapes(m, n, k))
    got = styrax.jit(f)(jnp.asarray(x, dtype), jnp.asarray(y, dtype))
    assert got.dtype == dtype and got.shape == (m, n)
    np.testing.assert_array_equal(got, f(x, y).astype(got.dtype))  # sums are exact, rounded once, or wrap around
    wide = styrax.jit(lambda x, y: styrax.lax.dot_general(
        x, y, (([x.shape.index(k)], [y.shape.index(k)]), ([], [])), preferred_element_type=np.float32))
    np.testing.assert_array_equal(wide(jnp.asarray(x, dtype), jnp.asarray(y, dtype)), f(x, y))


def test_which_products_are_cut():
    def of(m, n, k):
        return stretches(lambda x, y: x @ y, np.zeros((m, k), np.float32), np.zeros((k, n), np.float32))

    assert of(30, 33, 4000) == [8]
    assert of(128, 128, 3200) == [4]
    assert of(64, 32, 80_000) == [8]
    assert of(30, 30, 10_000) == [10]  # products that BLAS does not pack for
    assert of(64, 32, 8000) == [17]
    assert of(200, 200, 1500) == [2] and of(300, 300, 300) == [2]  # (edges that are not short: panels of rows)
    assert 8 not in of(20, 20, 700)  # (too little work for threads)
    x, y = np.ones((2, 1 << 20), np.complex64), np.ones((1 << 20, 3), np.complex64)
    assert stretches(lambda x, y: x @ y, x, y) == []  # (no product to BLAS)
    np.testing.assert_allclose(styrax.jit(jnp.matmul)(x, y), np.full((2, 3), 1 << 20), rtol=1e-5)


def test_bits_do_not_depend_on_threads():
    x, y = numbers((40, 6001), "float32"), numbers((6001, 24), "float32")
    f, before, found = styrax.jit(lambda x, y: jnp.tanh(x @ y / 80)), runtime.num_threads(), []
    try:
        for threads in (1, 2, 3):
            runtime.set_num_threads(threads)
            found.append(np.asarray(f(x, y)).tobytes())
    finally:
        runtime.set_num_threads(before)
    assert found[0] == found[1] == found[2]


def test_non_finite_terms_stay_where_they_are():
    x, y = numbers((16, 5000), "float32"), numbers((5000, 16), "float32")
    x[3, 4999], x[5, 0], y[17, 2] = np.nan, np.inf, -np.inf
    with np.errstate(invalid="ignore"):
        wanted = x @ y
    got = np.asarray(styrax.jit(jnp.matmul)(x, y))
    np.testing.assert_array_equal(np.isnan(got), np.isnan(wanted))
    np.testing.assert_array_equal(np.isposinf(got), np.isposinf(wanted))


def test_in_loops_and_derivatives():
    x, y = numbers((5000, 12), "float32"), numbers((5000, 20), "float32")

    def f(x, y):
        def turn(c, _):
            g = x.T @ (y * c)
            return c * 0.5 + 1e-6 * (g * g).sum(), g.sum()
        c, rows = styrax.lax.scan(turn, jnp.float32(1.0), None, length=3)
        return c + 1e-3 * rows.sum()

    def by_numpy(x, y):
        c, total = 1.0, 0.0
        for _ in range(3):
            g = x.T @ (y * c)
            c, total = c * 0.5 + 1e-6 * (g * g).sum(), total + g.sum()
        return c + 1e-3 * total

    wide = x.astype(np.float64), y.astype(np.float64)
    np.testing.assert_allclose(styrax.jit(f)(x, y), by_numpy(*wide), rtol=1e-4)
    gradient = np.asarray(styrax.jit(styrax.grad(f))(x, y), np.float64)
    step = numbers((5000, 12), "float64")
    along = (by_numpy(wide[0] + 1e-5 * step, wide[1]) - by_numpy(wide[0] - 1e-5 * step, wide[1])) / 2e-5
    np.testing.assert_allclose((gradient * step).sum(), along, rtol=1e-3)
    batched = styrax.jit(styrax.vmap(lambda x: x.T @ y))(np.stack([x, x[::-1]]))
    np.testing.assert_allclose(batched, np.stack([wide[0].T @ wide[1], wide[0][::-1].T @ wide[1]]), atol=0.02)
