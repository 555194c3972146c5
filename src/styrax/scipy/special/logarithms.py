"""Functions made of logarithms and exponentials: logits, entropies, Box and Cox's transformation, softmax."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.programs.named import named
from styrax.core.types.typing import ArrayLike, Axis
from styrax.nn.exponentials import log_softmax as _log_softmax
from styrax.nn.exponentials import softmax as _softmax
from styrax.numpy.binary import add, divide, equal, multiply, not_equal, subtract
from styrax.numpy.broadcasting import choose_elements
from styrax.numpy.promotion import arrays, convert, dtype_of, either, promote_args_inexact, shape_of, typed_beside
from styrax.transforms.custom import custom_jvp

from .numbers import number, reals, zero


def expit(x: ArrayLike) -> Array:
    """1 / (1 + exp(-x)), the logistic sigmoid.

    Args:
      x: numbers; integers are taken as floats.

    Returns:
      an array of the shape of `x`.

    Example:
      >>> import styrax.scipy.special as special
      >>> special.expit(0.0)
      Array(0.5, dtype=float32, weak_type=True)
    """
    (x,) = promote_args_inexact("expit", x)
    return lax.logistic(x)


@custom_jvp
def _logit(x: Any) -> Array:
    return lax.log(lax.div(x, lax.sub(number(1, x), x)))


_logit.defjvps(lambda g, ans, x: divide(g, multiply(x, subtract(1, x))))


def logit(x: ArrayLike) -> Array:
    """log(x / (1 - x)), the inverse of `expit`.

    Args:
      x: numbers; integers are taken as floats.

    Returns:
      an array of the shape of `x`.
    """
    (x,) = promote_args_inexact("logit", x)
    return _logit(convert(x, *typed_beside(x)))


def _x_times_log(name: str, log: Callable[..., Any], slope: Callable[..., Any]) -> Callable[..., Any]:
    def function(x: Any, y: Any) -> Any:
        x, y = promote_args_inexact(name, x, y)
        # 0 · log(0) is 0; a NaN stays one.
        defined = either(not_equal(x, 0.0), lax.ne(y, y))
        product = multiply(x, log(y))
        return choose_elements(defined, product, lax.full_like(product, 0))

    named(function, name)
    wrapped = custom_jvp(function)

    def jvp(primals: tuple, tangents: tuple) -> tuple:
        (x, y), (tx, ty) = primals, tangents
        out = wrapped(x, y)
        tx, ty = promote_args_inexact(name, tx, ty) if dtype_of(tx) != dtype_of(ty) else (tx, ty)
        return out, add(multiply(tx, log(y)), multiply(ty, slope(x, y)))

    named(jvp, f"_{name}_jvp")
    wrapped.defjvp(jvp)
    return wrapped


_xlogy = _x_times_log("xlogy", lax.log, lambda x, y: divide(x, y))
_xlog1py = _x_times_log("xlog1py", lax.log1p, lambda x, y: divide(x, add(1, y)))


def xlogy(x: ArrayLike, y: ArrayLike) -> Array:
    """x · log(y), and 0 where x is 0 unless y is NaN. The derivatives are log(y) and x / y everywhere.

    Args:
      x, y: real or complex numbers; integers are taken as floats.

    Returns:
      an array of the shape of the arguments broadcast together.
    """
    x, y = promote_args_inexact("xlogy", x, y)
    return _xlogy(x, y)


def xlog1py(x: ArrayLike, y: ArrayLike) -> Array:
    """x · log(1 + y), and 0 where x is 0 unless y is NaN. The derivatives are log(1 + y) and x / (1 + y) everywhere.

    Args:
      x, y: real or complex numbers; integers are taken as floats.

    Returns:
      an array of the shape of the arguments broadcast together.
    """
    x, y = promote_args_inexact("xlog1py", x, y)
    return _xlog1py(x, y)


@custom_jvp
def _xlogx(x: Any) -> Array:
    return xlogy(x, x)


@_xlogx.defjvp
def _xlogx_jvp(primals: tuple, tangents: tuple) -> tuple:
    (x,), (t,) = primals, tangents
    return _xlogx(x), multiply(t, add(lax.log(x), 1))


def entr(x: ArrayLike) -> Array:
    """-x · log(x), 0 at 0 and -∞ below.

    Args:
      x: numbers; integers are taken as floats.

    Returns:
      an array of the shape of `x`.
    """
    (x,) = reals("entr", x)
    return lax.select(lax.lt(x, zero(x)), lax.full_like(x, -np.inf), lax.neg(_xlogx(x)))


def rel_entr(p: ArrayLike, q: ArrayLike) -> Array:
    """p · log(p / q), 0 where p is 0 and q is not negative, ∞ outside the domain.

    Args:
      p, q: numbers; integers are taken as floats.

    Returns:
      an array of the shape of the arguments broadcast together.
    """
    p, q = reals("rel_entr", p, q)
    safe = lax.bitwise_and(lax.gt(p, zero(p)), lax.gt(q, zero(q)))
    none = lax.bitwise_and(lax.eq(p, zero(p)), lax.ge(q, zero(q)))
    p_ = choose_elements(safe, p, 1)
    q_ = choose_elements(safe, q, 1)
    value = subtract(_xlogx(p_), xlogy(p_, q_))
    return choose_elements(safe, value, choose_elements(none, zero(p), np.inf))


def kl_div(p: ArrayLike, q: ArrayLike) -> Array:
    """p · log(p / q) - p + q, the terms of the Kullback-Leibler divergence.

    Args:
      p, q: numbers; integers are taken as floats.

    Returns:
      an array of the shape of the arguments broadcast together.
    """
    p, q = reals("kl_div", p, q)
    return add(subtract(rel_entr(p, q), p), q)


def boxcox(x: ArrayLike, lmbda: ArrayLike) -> Array:
    """(x^λ - 1) / λ, and log(x) for λ = 0.

    Args:
      x: numbers; integers are taken as floats.
      lmbda: λ.

    Returns:
      an array of the shape of `x`.
    """
    x, lmbda = promote_args_inexact("boxcox", x, lmbda)
    none = equal(lmbda, 0)
    safe = choose_elements(none, 1.0, lmbda)
    return choose_elements(none, lax.log(x), divide(lax.expm1(multiply(safe, lax.log(x))), safe))


def boxcox1p(x: ArrayLike, lmbda: ArrayLike) -> Array:
    """((1 + x)^λ - 1) / λ, and log1p(x) for λ = 0.

    Args:
      x: numbers; integers are taken as floats.
      lmbda: λ.

    Returns:
      an array of the shape of `x`.
    """
    x, lmbda = promote_args_inexact("boxcox1p", x, lmbda)
    none = equal(lmbda, 0)
    safe = choose_elements(none, 1.0, lmbda)
    return choose_elements(none, lax.log1p(x), divide(lax.expm1(multiply(safe, lax.log1p(x))), safe))


def softmax(x: ArrayLike, /, *, axis: int | Sequence[int] | None = None) -> Array:
    """exp(x) divided by its sum along `axis`, by default over all elements.

    Args:
      x: numbers; integers are taken as floats.
      axis: an axis, several, or None for all.

    Returns:
      an array of the shape of `x`.
    """
    (x,) = arrays("softmax", x)
    return _softmax(x, axis=tuple(range(len(shape_of(x)))) if axis is None else axis)


def log_softmax(x: ArrayLike, /, *, axis: Axis = None) -> Array:
    """The logarithm of `softmax(x, axis)`.

    Args:
      x: numbers; integers are taken as floats.
      axis: an axis, several, or None for all.

    Returns:
      an array of the shape of `x`.
    """
    (x,) = arrays("log_softmax", x)
    return _log_softmax(x, axis=tuple(range(len(shape_of(x)))) if axis is None else axis)
