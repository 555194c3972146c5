"""Sums of exponentials and what is made of them: log-sum-exp, softmax and their kin."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal, overload

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.programs.named import named
from styrax.core.types import dtypes
from styrax.core.types.typing import ArrayLike, Axis
from styrax.numpy.broadcasting import choose_elements
from styrax.numpy.conversion import asarray
from styrax.numpy.moments import count, count_where
from styrax.numpy.promotion import (
    arrays,
    axis_indices,
    convert,
    dtype_of,
    number_like,
    promote_args_inexact,
    promote_dtypes_inexact,
    shape_of,
    static_axis,
    unwrap,
)
from styrax.numpy.reductions import max as max_
from styrax.numpy.reductions import split_axes
from styrax.numpy.reductions import sum as sum_
from styrax.transforms.fused import fused
from styrax.transforms.jit import jit_for_all_shapes as jit


@overload
def logsumexp(a: ArrayLike, axis: Axis = None, b: ArrayLike | None = None, keepdims: bool = False,
              return_sign: Literal[False] = False, where: ArrayLike | None = None) -> Array: ...


@overload
def logsumexp(a: ArrayLike, axis: Axis = None, b: ArrayLike | None = None, keepdims: bool = False, *,
              return_sign: Literal[True], where: ArrayLike | None = None) -> tuple[Array, Array]: ...


@overload
def logsumexp(a: ArrayLike, axis: Axis = None, b: ArrayLike | None = None, keepdims: bool = False,
              return_sign: bool = False, where: ArrayLike | None = None) -> Array | tuple[Array, Array]: ...


def logsumexp(a: ArrayLike, axis: Axis = None, b: ArrayLike | None = None, keepdims: bool = False,
              return_sign: bool = False, where: ArrayLike | None = None) -> Array | tuple[Array, Array]:
    """log(sum(b · exp(a))) along `axis`, without overflow.

    Args:
      a: exponents; integers are taken as floats.
      axis: an int, several, or None for all. Names of mapped axes may be among them.
      b: factors, which broadcast with `a`.
      keepdims: whether reduced axes stay, with size 1.
      return_sign: whether the result is a pair of the logarithm of the modulus and the sign; otherwise a
        negative sum of real numbers gives NaN.
      where: booleans; elements where they are False are left out.

    Returns:
      an array of the shape of `a` without the reduced axes, and of the float dtype of the arguments; with
      `return_sign` a pair of such arrays.

    Example:
      >>> import styrax as jax
      >>> import styrax.numpy as jnp
      >>> jax.nn.logsumexp(jnp.array([1000.0, -1000.0]))
      Array(1000., dtype=float32)
    """
    if b is not None:
        a, b = promote_args_inexact("logsumexp", a, b)
        a = choose_elements(lax.ne(b, number_like(0, b)), a, -np.inf)
    else:
        (a,) = promote_args_inexact("logsumexp", a)
        a = asarray(a)
    if where is not None:
        a = choose_elements(unwrap(where), a, 0)
    axis, names = split_axes(static_axis(axis))
    axes = axis_indices(axis, len(shape_of(a)))
    reduced: Any = (*names, *axes)
    real = np.empty(0, a.dtype).real.dtype if dtypes.issubdtype(a.dtype, np.complexfloating) else a.dtype
    largest = max_(lax.real(a) if real != a.dtype else a, axis=reduced, keepdims=keepdims, where=where,
                   initial=-np.inf)
    largest = lax.stop_gradient(lax.select(lax.is_finite(largest), largest, lax.full_like(largest, 0)))
    with_axes = largest if keepdims else lax.expand_dims(largest, axes)
    terms = lax.exp(lax.sub(a, convert(with_axes, a.dtype) if real != a.dtype else with_axes))
    if b is not None:
        terms = lax.mul(terms, b)
    total = sum_(terms, axis=reduced, keepdims=keepdims, where=where)
    sign = lax.sign(total)
    if return_sign or real == a.dtype:
        total = lax.abs(total)
    out = lax.add(lax.log(total), convert(largest, dtype_of(total)))
    if return_sign:
        return out, sign
    if b is not None and real == a.dtype:
        out = choose_elements(lax.lt(sign, convert(0, dtype_of(sign))), convert(np.nan, dtype_of(out)), out)
    return out


def _logmeanexp(x: ArrayLike, axis: Axis = None, where: ArrayLike | None = None, keepdims: bool = False) -> Array:
    """log(mean(exp(x))) along `axis`, without overflow. Arguments as for `logsumexp`.

    Args:
      x: exponents; integers are taken as floats.
      axis: an int, several, or None for all.
      where: booleans; elements where they are False are left out, and do not count.
      keepdims: whether reduced axes stay, with size 1.

    Returns:
      an array of the shape of `x` without the reduced axes, and of its float dtype.
    """
    (x,) = promote_dtypes_inexact(*arrays("logmeanexp", x))
    total = logsumexp(x, axis=axis, where=where, keepdims=keepdims)
    if where is None:
        number: Any = lax.log(convert(count(shape_of(x), static_axis(axis)), dtype_of(total)))
    else:
        number = lax.log(count_where(unwrap(where), shape_of(x), axis, keepdims, dtype_of(total)))
    return lax.sub(total, number)


logmeanexp = jit(named(_logmeanexp, "logmeanexp"), static_argnames=("axis", "keepdims"))


def softmax(x: ArrayLike, axis: Axis = -1, where: ArrayLike | None = None) -> Array:
    """exp(x) divided by its sum along `axis` (an int, or several): positive numbers that add up to 1.

    Elements where `where` is False are left out, and 0. Integers are taken as floats.

    Args:
      x: an array; integers are taken as floats.
      axis: an int, or several.
      where: booleans that broadcast with `x`; elements where they are False are left out.

    Returns:
      an array of the shape of `x` and of its float dtype.

    Example:
      >>> import styrax as jax
      >>> import styrax.numpy as jnp
      >>> jax.nn.softmax(jnp.array([0.0, 0.0]))
      Array([0.5, 0.5], dtype=float32)
    """
    return _softmax(x, axis if type(axis) is int else static_axis(axis), where)


@fused(static_argnames=("axis",))
def _softmax(x: Any, axis: Any, where: Any) -> Array:
    (x,) = promote_args_inexact("softmax", x)
    x = asarray(x)
    largest = max_(x, axis, where=where, initial=-np.inf, keepdims=True)
    kept = x if where is None else choose_elements(unwrap(where), x, -np.inf)
    powers = lax.exp(lax.sub(kept, lax.stop_gradient(largest)))
    out = lax.div(powers, sum_(powers, axis, where=where, keepdims=True))
    return out if where is None else choose_elements(unwrap(where), out, 0)


@partial(jit, static_argnames=("axis",))
def log_softmax(x: ArrayLike, axis: Axis = -1, where: ArrayLike | None = None) -> Array:
    """The logarithm of `softmax(x, axis)`, without loss of precision. Left-out elements are -∞.

    Args:
      x: an array; integers are taken as floats.
      axis: an int, or several.
      where: booleans that broadcast with `x`; elements where they are False are left out.

    Returns:
      an array of the shape of `x` and of its float dtype, with numbers up to 0.

    Example:
      >>> import styrax as jax
      >>> import styrax.numpy as jnp
      >>> jax.nn.log_softmax(jnp.array([0.0, 0.0]))
      Array([-0.6931472, -0.6931472], dtype=float32)
    """
    (x,) = promote_args_inexact("log_softmax", x)
    x = asarray(x)
    largest = max_(x, axis, where=where, initial=-np.inf, keepdims=True)
    kept = x if where is None else choose_elements(unwrap(where), x, -np.inf)
    shifted = lax.sub(kept, lax.stop_gradient(largest))
    total = lax.log(sum_(lax.exp(shifted), axis, where=where, keepdims=True))
    out = lax.sub(shifted, total)
    return out if where is None else choose_elements(unwrap(where), out, -np.inf)
