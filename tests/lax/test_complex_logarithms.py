"""Complex logarithms close to the unit circle, where their real parts cancel, and moduli, against high precision."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

import styrax
import styrax.lax as slax
from styrax.core.settings import config


@pytest.mark.parametrize("jitted", [False, True], ids=["eager", "jitted"])
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("name", ["log", "log1p"])
def test_close_to_the_circle(name: str, dtype: type, jitted: bool):
    rng = np.random.default_rng(3)
    info = np.finfo(dtype)
    radius = 1 + np.ldexp(rng.uniform(-1, 1, 400), -rng.integers(0, info.nmant, 400))
    z = (radius * np.exp(1j * rng.uniform(-np.pi, np.pi, 400)) - (name == "log1p")).astype(dtype)
    with config.enable_x64(True):
        f = getattr(slax, name)
        out = np.asarray((styrax.jit(f) if jitted else f)(z))
    assert out.dtype == dtype
    with mpmath.workprec(500):
        for x, y in zip(z.tolist(), out, strict=True):
            exact = mpmath.log(mpmath.mpc(x) + (name == "log1p"))
            for got, want in ((y.real, exact.real), (y.imag, exact.imag)):
                allowed = 4 if abs(want) > info.eps else 64
                assert abs(mpmath.mpf(float(got)) - want) <= allowed * float(np.spacing(abs(got))), (x, y)


@pytest.mark.parametrize("jit", [True, False])
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_moduli_to_the_last_bit(dtype, jit):
    """Within one unit in the last place over the whole range, and as C99 says at its ends."""
    part = np.finfo(dtype).dtype
    rng, ends = np.random.default_rng(0), np.finfo(part)
    exponents = rng.integers(ends.minexp + 70, ends.maxexp - 2, 20_000)
    with np.errstate(under="ignore", over="ignore"):
        re = np.ldexp(rng.uniform(1, 2, exponents.size), exponents).astype(part)
        im = np.ldexp(rng.uniform(1, 2, exponents.size), exponents - rng.integers(0, 60, exponents.size)).astype(part)
        want = np.hypot(re.astype(np.longdouble), im.astype(np.longdouble))
    x = np.empty(re.size, dtype)
    x.real, x.imag = re, -im
    f = styrax.jit(slax.abs) if jit else slax.abs
    with styrax.enable_x64(True):
        found = np.asarray(f(x))
        assert found.dtype == part
        assert (np.abs(found - want) <= want * ends.eps).all()
        edges = [0, -0.0, 1, ends.max, ends.max / 2, ends.tiny, np.inf, -np.inf, np.nan]
        pairs = np.array([complex(a, b) for a in edges for b in edges], dtype)
        with np.errstate(over="ignore"):
            at_ends = np.hypot(pairs.real, pairs.imag)
        np.testing.assert_allclose(f(pairs), at_ends, rtol=ends.eps)
