"""Complex logarithms close to the unit circle, where their real parts cancel, against high precision."""

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
