"""Dtypes with 64 bits enabled: small integers become float32, integers of 64 bits float64."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import styrax
from tests.numpy import oracle

EXPRESSIONS = """
jnp.sin(z)
jnp.mean(z)
jnp.var(z)
jnp.divide(z, z)
jnp.arctan2(z, 3)
jnp.float_power(z, 2)
jnp.linspace(z[0], z[1], 3)
jnp.median(z)
jnp.quantile(z, 0.3)
jnp.percentile(z, np.float32(30))
jnp.square(z)
jnp.angle(z)
jnp.searchsorted(z, z)
jnp.digitize(z, z)
z.astype(bool)**2
jnp.power(z.astype(bool), np.int8(3))
z**2
nn.relu6(z)
nn.squareplus(z)
nn.soft_sign(z)
nn.softplus(z)
nn.logsumexp(z)
jsp.special.gammaln(z + 1)
jsp.linalg.expm(z * np.eye(3))
jsp.linalg.expm(z * np.eye(3, dtype=np.float32))
"""


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int32", "uint32", "int64", "uint64", "float32"])
def test_dtypes(dtype: str) -> None:
    z = np.array([0, 1, 1], dtype)
    failures = []
    with jax.enable_x64(True), styrax.enable_x64(True):
        for line in oracle.rows(EXPRESSIONS):
            theirs = eval(line, {**oracle.THEIRS, "z": z})
            ours = eval(line, {**oracle.OURS, "z": z})
            if (ours.dtype, ours.shape) != (theirs.dtype, theirs.shape):
                failures.append(f"{line}: {ours.dtype} against {theirs.dtype}")
            np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), rtol=1e-5, atol=1e-6, err_msg=line)
    assert not failures, failures


def test_square_roots_and_functions_of_matrices() -> None:
    a = np.random.default_rng(0).normal(size=(4, 4))
    a = a @ a.T + np.eye(4)
    with styrax.enable_x64(True):
        root = np.asarray(styrax.scipy.linalg.sqrtm(a))
        np.testing.assert_allclose(root @ root, a, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(styrax.scipy.linalg.funm(a, styrax.numpy.square), a @ a, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("x64", [False, True])
def test_complex_powers_without_finite_logarithms(x64: bool) -> None:
    dtype = np.complex128 if x64 else np.complex64
    bases = np.array([complex(np.nan, np.nan), complex(np.inf, 0), complex(-np.inf, np.nan), 0, 1, 2 + 1j], dtype)
    with jax.enable_x64(x64), styrax.enable_x64(x64):
        for j in (jax, styrax):
            power = j.numpy.power
            zeroth = [power(bases, 0.0), j.jit(power)(bases, np.zeros(6, np.int32)), j.numpy.vander(bases, 2)[:, 1],
                      j.vmap(j.lax.pow)(bases, np.zeros(6, dtype))]
            for found in zeroth:
                np.testing.assert_array_equal(found, np.ones(6))
            np.testing.assert_array_equal(power(j.numpy.ones(6, dtype), bases), np.ones(6))
        first = styrax.numpy.power(bases, np.ones(6, np.int32))
        np.testing.assert_array_equal(first, bases)
        from_zero = styrax.lax.pow(np.zeros(4, dtype), np.array([2, -1, 1j, 2 + 1j], dtype))
        nan = complex(np.nan, np.nan)
        np.testing.assert_array_equal(from_zero, np.array([0, nan, nan, 0], dtype))
