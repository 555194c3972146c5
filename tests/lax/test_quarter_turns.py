"""Arrays turned and mirrored, and reshaped after that: squares are turned in registers, backwards too."""

import itertools

import numpy as np
import pytest

import styrax as jax
import styrax.numpy as jnp

SHAPES = [(1, 1), (3, 2), (8, 8), (5, 67), (67, 5), (40, 61), (130, 33), (300, 400)]
DTYPES = ["bool", "int8", "bfloat16", "float32", "int32", "complex64"]
TURNS = {  # with NumPy, or ours
    "left": lambda np, x: np.rot90(x),
    "right": lambda np, x: np.rot90(x, 3),
    "half round": lambda np, x: np.rot90(x, 2),
    "other diagonal": lambda np, x: x[::-1, ::-1].T,
    "mirrored": lambda np, x: x[:, ::-1],
    "left, every other": lambda np, x: np.rot90(x)[::2, ::-2],
}


def example(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    x = np.arange(np.prod(shape)).reshape(shape)
    return np.asarray(jnp.asarray(x % 2 if dtype == "bool" else x % 120, dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", TURNS)
def test_copies(name: str, dtype: str) -> None:
    for shape in SHAPES:
        x = example(shape, dtype)
        np.testing.assert_array_equal(np.asarray(jax.jit(lambda x: TURNS[name](jnp, x))(x)), TURNS[name](np, x))


@pytest.mark.parametrize("shape", SHAPES)
def test_computed_and_batched(shape: tuple[int, int]) -> None:
    x = example((3, *shape), "float32")
    f = lambda x: jnp.rot90(x * 2 + 1) + jnp.rot90(x)
    expected = np.stack([np.rot90(y) * 3 + 1 for y in x])
    np.testing.assert_array_equal(np.asarray(jax.jit(jax.vmap(f))(x)), expected)
    slope = jax.jit(jax.grad(lambda x: (jnp.rot90(x, 3) * jnp.arange(x.size).reshape(x.shape[::-1])).sum()))(x[0])
    np.testing.assert_array_equal(np.asarray(slope), np.rot90(np.arange(x[0].size).reshape(shape[::-1])))


MIXED = {  # complex numbers, real ones with a turned part, both turned
    "adjoint": lambda x, y: x.conj().T,
    "sum with a turned one": lambda x, y: y + 2 * x.T,
    "parts": lambda x, y: x.T.real - y.imag,
    "with turned real numbers": lambda x, y: x.T * x.real.T + y.real,
    "sums of rows": lambda x, y: x.T + x.sum(1),
}


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", MIXED)
def test_complex(name: str, dtype: str) -> None:
    for shape in SHAPES:
        with jax.enable_x64(dtype == "complex128"):
            x = example(shape, dtype) * (1 + 0.5j)
            x[0, -1] = complex(np.inf, -0.0)
            y = (example(shape, dtype) * (0.5 - 1j)).T
            x, y = x.astype(dtype), y.astype(dtype)
            with np.errstate(invalid="ignore"):
                expected = MIXED[name](x, y)
            batched = jax.jit(jax.vmap(MIXED[name]))(np.stack([y.T, x]), np.stack([x.T, y]))
            for got in (jax.jit(MIXED[name])(x, y), batched[1]):
                assert got.dtype == expected.dtype
                np.testing.assert_allclose(np.asarray(got), expected, rtol=1e-6)


REARRANGED = {
    "reversed": lambda x: x[::-1],
    "mirrored": lambda x: x[:, ::-1],
    "transposed": lambda x: x.T,
    "cut": lambda x: x[1:, :-2],
    "strided": lambda x: x[::2, 1::3],
}


@pytest.mark.parametrize("name", REARRANGED)
@pytest.mark.parametrize("size", [(24, 36), (26, 38)])
def test_reshaped_after_that(name: str, size: tuple[int, int]) -> None:
    """A reshaped array is stored in the shape that it had before: as a result, for a scan along it, for records."""
    x = example(size, "float32")
    y = np.ascontiguousarray(REARRANGED[name](x))
    for columns, function in itertools.product([1, 2, 3, 4, 6], ["as it is", "twice", "sums", "products"]):
        if y.size % columns:
            continue
        rows = y.reshape(-1, columns)
        ours, expected = {
            "as it is": (lambda r: r, rows),
            "twice": (lambda r: r.reshape(2, -1).reshape(r.shape), rows),
            "sums": (lambda r: jnp.cumsum(r, 0)[:, 0], np.cumsum(rows, 0)[:, 0]),
            "products": (lambda r: r[:, 0] * r[::-1, -1] - r[:, -1], rows[:, 0] * rows[::-1, -1] - rows[:, -1]),
        }[function]
        if function == "twice" and y.size % 2:
            continue
        found = jax.jit(lambda x: ours(REARRANGED[name](x).reshape(-1, columns)))(x)  # noqa: B023
        np.testing.assert_array_equal(np.asarray(found), expected)
