"""Functions of newer releases of the interface, for which mathematics and NumPy are the oracle."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.special

import styrax
import styrax.lax as lax
import styrax.numpy as jnp
import styrax.scipy.linalg
import styrax.scipy.special

VALUES = np.float32([1, 2, 8, 3, 1e-37, 0.1, np.inf])
PRIMITIVES: dict[str, tuple[Any, Any, np.ndarray]] = {
    "log2": (lax.log2, np.log2, VALUES),
    "log2 of complex": (lax.log2, np.log2, np.complex64([1 + 1j, -2, 3j])),
    "one_minus_square": (lax.one_minus_square, lambda x: (1 - x) * (1 + x), np.float32([0, 1, -1, 0.9999, 1.0001, 3])),
    "polynomial": (lambda x: lax.polynomial(x, [2.0, -1.0, 0.5]), lambda x: np.polyval(np.float32([2, -1, 0.5]), x),
                   np.float32([0, 1, -2, 0.5])),
    "polynomial of integers": (lambda x: lax.polynomial(x, [2, -1, 3]), lambda x: np.polyval([2, -1, 3], x),
                               np.int32([0, 1, -2])),
    "a constant": (lambda x: lax.polynomial(x, [3]), lambda x: np.full_like(x, 3), VALUES),
    "no polynomial": (lambda x: lax.polynomial(x, []), np.zeros_like, VALUES),
}


@pytest.mark.parametrize("name", PRIMITIVES)
def test_primitives(name: str) -> None:
    function, expected, values = PRIMITIVES[name]
    for call in (function, styrax.jit(function), styrax.vmap(function)):
        out = call(jnp.asarray(values))
        assert out.dtype == values.dtype
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(out, expected(values), rtol=2e-6)
    assert function(jnp.asarray(values[:0])).shape == (0,)


@pytest.mark.parametrize("function, slope", [
    (lax.log2, lambda x: 1 / (x * np.log(2))), (lax.one_minus_square, lambda x: -2 * x),
    (lambda x: lax.polynomial(x, [2.0, -1.0, 0.5, 3]), lambda x: 6 * x**2 - 2 * x + 0.5)])
def test_derivatives(function: Any, slope: Any) -> None:
    x = np.float32([0.3, 1, 2.5])
    np.testing.assert_allclose(styrax.vmap(styrax.grad(function))(x), slope(x), rtol=1e-6)
    np.testing.assert_allclose(styrax.jvp(function, (x,), (x,))[1], x * slope(x), rtol=1e-6)
    second = styrax.vmap(styrax.grad(styrax.grad(function)))(x)
    near = (slope(x.astype(float) + 1e-6) - slope(x.astype(float) - 1e-6)) / 2e-6
    np.testing.assert_allclose(second, near, rtol=1e-4)


def test_logarithms_of_powers_of_two_are_exact() -> None:
    powers = np.arange(-126, 127)
    np.testing.assert_array_equal(lax.log2(2.0**powers.astype(np.float32)), powers)


def test_coefficients_have_the_arrays_kind() -> None:
    for array, coefficients in ((np.int32([1]), [0.5]), (np.float32([1]), [1j]), (np.array([True]), [1])):
        with pytest.raises(TypeError):
            lax.polynomial(array, coefficients)


def test_erfcinv() -> None:
    x = np.float32([1e-30, 1e-10, 1e-3, 0.1, 0.5, 0.9, 1, 1.3, 1.9, 1.999, 2, 0, -0.1, 2.1, np.nan])
    np.testing.assert_allclose(styrax.scipy.special.erfcinv(x), scipy.special.erfcinv(x.astype(float)), rtol=2e-6)
    for point in (1e-3, 0.3, 1.7):
        slope = mpmath.diff(lambda y: mpmath.erfinv(1 - y), point)
        np.testing.assert_allclose(styrax.grad(styrax.scipy.special.erfcinv)(point), float(slope), rtol=1e-5)
    with pytest.raises(TypeError):
        styrax.scipy.special.erfcinv(1j)


def test_extrema() -> None:
    x = np.float32([[3, 1, 2], [np.nan, 5, 4]])
    for axis in (None, 0, 1, (0, 1)):
        for keepdims in (False, True):
            low, high = jnp.minmax(x, axis=axis, keepdims=keepdims)
            np.testing.assert_array_equal(low, x.min(axis, keepdims=keepdims))
            np.testing.assert_array_equal(high, x.max(axis, keepdims=keepdims))
    with pytest.raises(ValueError):
        jnp.minmax(np.zeros(0))


@pytest.mark.parametrize("dtype", ["float32", "int8", "uint8"])
def test_largest_and_smallest(dtype: str) -> None:
    x = np.random.default_rng(0).permutation(24).reshape(2, 3, 4).astype(dtype)
    for axis in (0, 1, -1):
        for mode in ("largest", "smallest"):
            k = x.shape[axis] - 1
            values, indices = styrax.jit(lambda x, axis=axis, mode=mode, k=k: jnp.top_k(x, k, axis=axis, mode=mode))(x)
            order = np.argsort(x.astype(int) * (-1 if mode == "largest" else 1), axis=axis)
            order = np.take(order, np.arange(k), axis=axis)
            np.testing.assert_array_equal(indices, order)
            np.testing.assert_array_equal(values, np.take_along_axis(x, order, axis))
    for wrong in ({"mode": "middle"}, {"axis": 3}):
        with pytest.raises(ValueError):
            jnp.top_k(x, 1, **wrong)
    with pytest.raises(ValueError):
        jnp.top_k(x, 9, mode="smallest")


def test_keys() -> None:
    key = styrax.random.key(0)
    assert isinstance(key, styrax.random.Key) and not isinstance(styrax.random.key_data(key), styrax.random.Key)
    assert styrax.jit(lambda k: isinstance(k, styrax.random.Key) * 1)(key) == 1


def test_matrices_of_nothing() -> None:
    assert jnp.linalg.pinv(np.zeros((0, 3), np.float32)).shape == (3, 0)
    assert jnp.linalg.pinv(np.zeros((0, 2, 2), np.float32)).shape == (0, 2, 2)
    assert jnp.linalg.cond(np.zeros((0, 2, 2), np.float32)).shape == (0,)
    with pytest.raises(ValueError):
        jnp.linalg.cond(np.zeros((2, 0, 0)))
    assert styrax.scipy.linalg.sqrtm(np.zeros((0, 0))).shape == (0, 0)
    assert styrax.scipy.linalg.hessenberg(np.zeros((2, 0, 0))).shape == (2, 0, 0)


@pytest.mark.filterwarnings("ignore:jax.scipy.special.lpmn:DeprecationWarning")
@pytest.mark.parametrize("order", [0, 1, 2, 5])
@pytest.mark.parametrize("how", ["eager", "jit", "vmap"])
def test_associated_legendre_functions(order: int, how: str) -> None:
    z = np.float32([-0.9, -0.2, 0.0, 0.3, 0.75])
    run = {"eager": lambda f: f(z), "jit": lambda f: styrax.jit(f)(z),
           "vmap": lambda f: styrax.tree.map(lambda x: jnp.moveaxis(x[..., 0], 0, -1), styrax.vmap(f)(z[:, None]))}[how]
    values, slopes = run(lambda z: styrax.scipy.special.lpmn(order, order, z))
    normalized = run(lambda z: styrax.scipy.special.lpmn_values(order, order, z, True))
    plain = run(lambda z: styrax.scipy.special.lpmn_values(order, order, z, False))
    np.testing.assert_array_equal(plain, values)
    for m in range(order + 1):
        for degree in range(order + 1):
            exact = lambda x: scipy.special.lpmv(m, degree, np.float64(x))  # noqa: B023
            scale = np.sqrt((2 * degree + 1) / (4 * np.pi) * math.factorial(max(degree - m, 0))
                            / math.factorial(degree + m))
            want = exact(z)
            slope = (exact(z.astype(float) + 1e-6) - exact(z.astype(float) - 1e-6)) / 2e-6
            np.testing.assert_allclose(values[m, degree], want, rtol=2e-5, atol=2e-5 * max(1, np.abs(want).max()))
            np.testing.assert_allclose(normalized[m, degree], want * scale, rtol=2e-5, atol=2e-6)
            np.testing.assert_allclose(slopes[m, degree], slope, rtol=1e-4, atol=1e-4 * max(1, np.abs(slope).max()))


@pytest.mark.filterwarnings("ignore:jax.scipy.special.lpmn:DeprecationWarning")
def test_associated_legendre_functions_refuse() -> None:
    lpmn = styrax.scipy.special.lpmn
    for arguments, error in [((1, 2, np.float32([0.5])), NotImplementedError), ((1, 1, np.int32([1])), TypeError),
                             ((1, 1, np.ones((1, 1), np.float32)), ValueError)]:
        with pytest.raises(error):
            lpmn(*arguments)
    assert lpmn(1, 1, np.zeros(0, np.float32))[0].shape == (2, 2, 0)
