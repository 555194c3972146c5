"""Which primitives the automatic check for NaN looks at: those that JAX checks."""

from __future__ import annotations

import jax as real
import numpy as np
import pytest
from jax.experimental import checkify as real_checkify

import styrax
from styrax.experimental import checkify


def square(j, x):
    return j.numpy.broadcast_to(x, (3, 3))


PROGRAMS = {
    "cummax": lambda j, x: j.lax.cummax(x),
    "cummin": lambda j, x: j.lax.cummin(x),
    "cumsum": lambda j, x: j.lax.cumsum(x),
    "cumprod": lambda j, x: j.lax.cumprod(x),
    "cumlogsumexp": lambda j, x: j.lax.cumlogsumexp(x),
    "pad": lambda j, x: j.lax.pad(x, np.float32(0), ((1, 1, 0),)),
    "psum": lambda j, x: j.vmap(lambda y: j.lax.psum(y, "i"), axis_name="i")(x),
    "reduce": lambda j, x: j.lax.reduce(x, np.float32(0), lambda a, b: a * b + 1, (0,)),
    "reduce_window": lambda j, x: j.lax.reduce_window(x, np.float32(0), lambda a, b: a * b + 1, (2,), (1,), "VALID"),
    "reduce_window_max": lambda j, x: j.lax.reduce_window(x, -np.inf, j.lax.max, (2,), (1,), "VALID"),
    "custom_linear_solve": lambda j, x: j.lax.custom_linear_solve(lambda v: v, x, lambda f, b: b),
    "rng_uniform": lambda j, x: j.lax.rng_uniform(x[1], x[2], (3,)),
    "reduce_max": lambda j, x: x.max(),
    "sort": lambda j, x: j.lax.sort(x),
    "gather": lambda j, x: x[j.numpy.array([1])],
    "slice": lambda j, x: x[1:],
    "convert_element_type": lambda j, x: x.astype(j.numpy.float16),
    "select": lambda j, x: j.numpy.where(x > 0, x, x),
    "concatenate": lambda j, x: j.numpy.concatenate([x, x]),
    "neg": lambda j, x: -x,
    "maximum": lambda j, x: j.numpy.maximum(x, 1),
    "dynamic_slice": lambda j, x: j.lax.dynamic_slice(x, (1,), (2,)),
    "dynamic_update_slice": lambda j, x: j.lax.dynamic_update_slice(x, x[:1], (1,)),
    "scatter": lambda j, x: x.at[0].add(x[1]),
    "copy": lambda j, x: j.numpy.copy(x),
    "reduce_precision": lambda j, x: j.lax.reduce_precision(x, 8, 10),
    "clamp": lambda j, x: j.lax.clamp(0.0, x, 1.0),
    "rev": lambda j, x: j.lax.rev(x, (0,)),
    "while": lambda j, x: j.lax.while_loop(lambda c: False, lambda c: c, x),
    "top_k": lambda j, x: j.lax.top_k(x, 1)[0],
    "broadcast": lambda j, x: j.numpy.broadcast_to(x, (2, 3)),
    "fft": lambda j, x: j.numpy.fft.fft(x),
    "rfft": lambda j, x: j.numpy.fft.rfft(x),
    "conv": lambda j, x: j.lax.conv(x[None, None, None], x[None, None, None], (1, 1), "SAME"),
    "nextafter": lambda j, x: j.lax.nextafter(x, x),
    "polygamma": lambda j, x: j.lax.polygamma(x, x),
    "zeta": lambda j, x: j.lax.zeta(x, x),
    **{name: lambda j, x, name=name: getattr(j.lax, name)(x, x)
       for name in ("atan2", "igamma", "igammac", "igamma_grad_a", "rem", "pow", "complex", "max")},
    **{name: lambda j, x, name=name: getattr(j.lax, name)(x) for name in (
        "acos", "acosh", "asin", "asinh", "atan", "atanh", "bessel_i0e", "bessel_i1e", "cbrt", "ceil", "cos", "cosh",
        "digamma", "erf", "erf_inv", "erfc", "exp", "exp2", "expm1", "floor", "is_finite", "lgamma", "log", "log1p",
        "logistic", "round", "rsqrt", "sign", "sin", "sinh", "sqrt", "square", "tan", "tanh")},
    **{name: lambda j, x, name=name: getattr(j.lax.linalg, name)(square(j, x))
       for name in ("cholesky", "eig", "eigh", "hessenberg", "lu", "qr", "schur", "svd", "tridiagonal")},
    "eigh as given": lambda j, x: j.lax.linalg.eigh(square(j, x), symmetrize_input=False),
    "cholesky as given": lambda j, x: j.lax.linalg.cholesky(square(j, x), symmetrize_input=False),
    "log2": lambda j, x: j.numpy.log2(x),
    "triangular_solve": lambda j, x: j.lax.linalg.triangular_solve(square(j, x), square(j, x)),
    "householder_product": lambda j, x: j.lax.linalg.householder_product(square(j, x), x),
    "tridiagonal_solve": lambda j, x: j.lax.linalg.tridiagonal_solve(x, x, x, x[:, None]),
}
WITH_NAN = np.array([1, np.nan, 2], np.float32)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_same_are_checked(name, jitted):
    def message(j, check):
        def f(x):
            return PROGRAMS[name](j, x)

        checked = check.checkify(f, errors=check.nan_checks)
        error, _ = (j.jit(checked) if jitted else checked)(j.numpy.asarray(WITH_NAN))
        return (error.get() or "").partition(".")[0]

    assert message(styrax, checkify) == message(real, real_checkify)
