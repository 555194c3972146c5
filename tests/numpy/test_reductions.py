"""Reductions, means and variances, cumulative forms, positions of extrema."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

import styrax
import styrax.numpy
from tests.numpy import oracle

TABLE = """
jnp.sum(x)
jnp.sum(m, axis=1)
jnp.sum(m, axis=(0, 1), keepdims=True)
jnp.sum(m, axis=-1)
jnp.sum(b)
jnp.sum(i)
jnp.sum(u)
jnp.sum(h)
jnp.sum(x, dtype=int)
jnp.sum(m, axis=-1, where=m > 0, initial=2)
jnp.sum(w)
jnp.sum(x, promote_integers=False)
jnp.sum(u, promote_integers=False)
jnp.sum(b, promote_integers=False)
jnp.sum(b, promote_integers=False, where=b, initial=2)
jnp.prod(b, promote_integers=False)
jnp.prod(x)
jnp.prod(b)
jnp.max(x)
jnp.max(m, axis=1, keepdims=True)
jnp.max(x, initial=3)
jnp.max(x, initial=3, where=x > 0)
jnp.min(x)
jnp.min(b)
jnp.max(c)
jnp.amax(m, axis=0)
jnp.amin(m, axis=0)
jnp.all(x)
jnp.all(b)
jnp.any(m, axis=0)
jnp.any(x, where=b)
jnp.mean(x)
jnp.mean(m, axis=0, keepdims=True)
jnp.mean(i)
jnp.mean(h)
jnp.mean(x, where=b)
jnp.mean(c)
jnp.mean(w)
jnp.var(x)
jnp.var(m, axis=1, ddof=1)
jnp.var(c)
jnp.var(i)
jnp.var(x, where=b)
jnp.var(h)
jnp.var(x, mean=0.5)
jnp.var(x, correction=1)
jnp.std(x)
jnp.std(m, axis=0, keepdims=True)
jnp.ptp(x)
jnp.average(x)
jnp.average(x, weights=y)
jnp.average(m, axis=1, weights=x)
jnp.average(m, axis=0, weights=m * m + 1, returned=True)
jnp.count_nonzero(x)
jnp.cumsum(x)
jnp.cumsum(m)
jnp.cumsum(m, axis=1)
jnp.cumsum(b)
jnp.cumsum(x, dtype=int)
jnp.cumprod(i)
jnp.cumulative_sum(x, include_initial=True)
jnp.cumulative_prod(x)
jnp.argmax(x)
jnp.argmax(m, axis=1, keepdims=True)
jnp.argmin(m)
m.sum(axis=0)
x.mean()
m.max(axis=1)
b.any()
x.cumsum()
x.std()
jnp.mean(i, dtype='int16', where=b)
jnp.mean(u, dtype='uint16', where=b)
jnp.mean(x, dtype='int8', where=b)
jnp.var(u, dtype='int16')
jnp.var(i, dtype='float16')
jnp.var(h, dtype='uint8')
jnp.std(i, dtype='complex64', where=b)
jnp.nanvar(m, axis=1, ddof=0.5)
jnp.nanstd(i, ddof=0.5)
jnp.nanvar(u, dtype='int16', where=b)
jnp.min(u.astype('uint32'), initial=1, where=b)
jnp.max(i, initial=-7, where=b)
jnp.nanmin(u.astype('uint32'), initial=2, where=b)
jnp.var(m, axis=1, mean=i[:2].reshape(2, 1))
"""

NAN = """
jnp.nansum(jnp.log(x))
jnp.nanprod(jnp.log(x))
jnp.nanmean(jnp.log(m), axis=1)
jnp.nanmax(jnp.log(x))
jnp.nanmin(jnp.log(m), axis=0)
jnp.nanvar(jnp.log(x))
jnp.nanstd(jnp.log(x))
jnp.nancumsum(jnp.log(x))
jnp.nancumprod(jnp.log(x))
jnp.nanargmax(jnp.log(m + 0.5), axis=1)
jnp.nanargmin(jnp.log(x))
jnp.max(jnp.log(x))
jnp.argmax(jnp.log(x))
"""

ERRORS = """
jnp.sum([1, 2])
jnp.sum(x, axis=2)
jnp.sum(x, axis=(0, 0))
jnp.max(jnp.ones(0))
jnp.max(jnp.ones((0, 2)), axis=1)
jnp.max(x, where=b)
jnp.sum(x, where=x)
jnp.mean(x, where=1)
jnp.any(x, where=x)
jnp.argmax(jnp.ones(0))
jnp.sum(x, out=3)
jnp.var(x, ddof=1, correction=1)
jnp.cumulative_sum(m)
jnp.std(x, dtype=int)
jnp.average(m, weights=x)
"""


def test_values() -> None:
    oracle.check_values(TABLE, rtol=1e-3)


def test_jaxprs() -> None:
    oracle.check_texts(TABLE)


@pytest.mark.parametrize("dtype", ["int16", "float16", "complex64"])
@pytest.mark.parametrize("name", ["mean", "var", "std", "nanmean", "nanvar", "nanstd", "sum"])
@pytest.mark.parametrize("operand", ["u", "h"])
def test_dtypes_that_are_asked_for_need_no_promotion(name: str, operand: str, dtype: str) -> None:
    def strictly(package: Any) -> Any:
        with package.numpy_dtype_promotion("strict"), package.numpy_rank_promotion("raise"):
            reduce = lambda a: getattr(package.numpy, name)(a, dtype=dtype)
            return oracle.outcome(reduce, [package.numpy.asarray(oracle.ARGUMENTS[operand])])

    oracle.assert_same(strictly(styrax), strictly(jax), f"{name}({operand}, {dtype})", rtol=2e-3, atol=1e-3)


def test_nan() -> None:
    oracle.check_values(NAN)
    oracle.check_texts(NAN)


def test_errors() -> None:
    oracle.check_values(ERRORS)


EDGES = """
jnp.sum(b, dtype=bool)
jnp.prod(b, dtype=bool)
jnp.sum(x, dtype=bool)
jnp.prod(x, dtype=bool)
jnp.sum(x, dtype=bool, where=b, initial=0)
jnp.cumsum(x - 0.3, dtype=bool)
jnp.cumprod(p, dtype=bool)
jnp.cumsum(2)
jnp.cumulative_prod(u)
jnp.cumulative_prod(h)
jnp.cumulative_prod(b)
jnp.median(m[:, :0], axis=0)
jnp.nanmax(jnp.array([jnp.nan, -3, 2]).astype(jnp.float8_e4m3fn))
jnp.nanmin(jnp.array([jnp.nan, -3, 2]).astype(jnp.float8_e5m2))
jnp.select([x, b], [x, y])
jnp.median(m[:0, :0], axis=())
jnp.cumsum(jnp.sort(t[:, :0], axis=0), axis=0) * 2
"""


def test_edges() -> None:
    oracle.check_values(EDGES)


@pytest.mark.parametrize("name", ["sum", "max", "min", "mean", "var", "std", "nansum"])
@pytest.mark.parametrize("axis", ["i", ("i", -1), (0, "i")])
@pytest.mark.parametrize("keepdims", [False, True])
def test_over_mapped_axes(name: str, axis: Any, keepdims: bool) -> None:
    def run(module: Any) -> Any:
        reduce = getattr(module.numpy, name)
        return module.vmap(lambda v: reduce(v, axis=axis, keepdims=keepdims), axis_name="i")(x)

    x = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)
    ours, theirs = run(styrax), run(jax)
    assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
    np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), rtol=1e-5)


def test_unknown_names_of_axes() -> None:
    for name, error in (("sum", NameError), ("prod", NotImplementedError)):
        for module in (styrax, jax):
            with pytest.raises(error):
                getattr(module.numpy, name)(np.ones(3), axis="i")
