"""Polynomials, given by their coefficients from the highest power down."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.programs.named import named
from styrax.core.tracing.trace import concrete_or_error
from styrax.core.types import dtypes
from styrax.core.types.typing import ArrayLike
from styrax.transforms.jit import jit_for_all_shapes as jit

from .binary import add, divide, multiply, subtract
from .broadcasting import broadcast_to, choose_elements
from .concatenation import concatenate
from .conversion import asarray
from .convolutions import convolve
from .creation import full_like, ones, zeros
from .indexing import gather_elements
from .patterns import diag, vander
from .promotion import (
    arrays,
    check_arraylike,
    convert,
    promote_dtypes,
    promote_dtypes_inexact,
    shape_of,
    to_complex,
    unwrap,
)
from .shaping import atleast_1d
from .updates import scatter


def _polyval(p: ArrayLike, x: ArrayLike, *, unroll: int = 16) -> Array:
    """The values of a polynomial, by Horner's rule.

    Args:
      p: coefficients along the first axis, the highest power first; further axes are broadcast with `x`.
      x: where it is evaluated, an array or number.
      unroll: how many steps of the loop are written out.

    Returns:
      an array of the broadcast shape and the common dtype; 0 for no coefficients.
    """
    p, x = (asarray(v) for v in promote_dtypes(*arrays("polyval", p, x)))
    shape = lax.broadcast_shapes(p.shape[1:], x.shape)
    start = convert(lax.full_like(x, 0, shape=shape), x.dtype)
    y, _ = lax.scan(lambda y, c: (add(multiply(y, x), c), None), start, p, unroll=unroll)
    return y


polyval = jit(named(_polyval, "polyval"), static_argnames=("unroll",))


def _padded(name: str, a1: Any, a2: Any) -> tuple[Any, Any]:
    """Two arrays of coefficients, the shorter one like the last rows of the longer, with zeros in front."""
    a1, a2 = (asarray(v) for v in promote_dtypes(*arrays(name, a1, a2)))
    n1, n2 = a1.shape[0], a2.shape[0]
    if n1 < n2:
        return _like_last_rows(a1, a2), a2
    return a1, _like_last_rows(a2, a1)


def _like_last_rows(short: Any, long: Any) -> Any:
    missing = long.shape[0] - short.shape[0]
    short = broadcast_to(short, (short.shape[0], *long.shape[1:]))
    return lax.pad(short, lax.full_like(short, 0, shape=()), ((missing, 0, 0), *[(0, 0, 0)] * (long.ndim - 1)))


@jit
def polyadd(a1: ArrayLike, a2: ArrayLike) -> Array:
    """The sum of two polynomials.

    Args:
      a1, a2: coefficients, the highest power first: vectors, or arrays whose further axes are several polynomials.
        The shorter one broadcasts to the last rows of the longer.

    Returns:
      an array of the longer one's shape and the common dtype; zeros in front stay.

    Raises:
      ValueError: the shorter one does not broadcast.
    """
    return add(*_padded("polyadd", a1, a2))


@jit
def polysub(a1: ArrayLike, a2: ArrayLike) -> Array:
    """The difference of two polynomials.

    Args:
      a1, a2: coefficients, the highest power first: vectors, or arrays whose further axes are several polynomials.
        The shorter one broadcasts to the last rows of the longer.

    Returns:
      an array of the longer one's shape and the common dtype; zeros in front stay.

    Raises:
      ValueError: the shorter one does not broadcast.
    """
    return subtract(*_padded("polysub", a1, a2))


def polymul(a1: ArrayLike, a2: ArrayLike, *, trim_leading_zeros: bool = False) -> Array:
    """The product of two polynomials.

    Args:
      a1, a2: vectors of coefficients, the highest power first; integers are taken as floats.
      trim_leading_zeros: whether zeros in front of both are dropped first; not under `jit`.

    Returns:
      a vector of length `a1.size + a2.size - 1`, where an empty one counts as [0].
    """
    from .editing import trim_zeros

    check_arraylike("polymul", a1, a2)
    a1, a2 = promote_dtypes_inexact(unwrap(a1), unwrap(a2))
    if trim_leading_zeros and (shape_of(a1)[0] > 1 or shape_of(a2)[0] > 1):
        a1, a2 = trim_zeros(a1, trim="f"), trim_zeros(a2, trim="f")
    a1 = asarray(a1) if shape_of(a1)[0] else zeros(1, a2.dtype)
    a2 = asarray(a2) if shape_of(a2)[0] else zeros(1, a1.dtype)
    return convolve(a1, a2, mode="full")


def polydiv(u: ArrayLike, v: ArrayLike, *, trim_leading_zeros: bool = False) -> tuple[Array, Array]:
    """The quotient and the remainder of two polynomials.

    Args:
      u, v: vectors of coefficients of dividend and divisor, the highest power first; integers are taken as floats.
        Where `v` begins with 0, results are inf or NaN.
      trim_leading_zeros: whether zeros in front of the remainder are dropped; not under `jit`.

    Returns:
      `(q, r)` with u = q·v + r; r has the length of `u` unless it is trimmed.
    """
    from .editing import trim_zeros

    u, v = (asarray(x) for x in promote_dtypes_inexact(*arrays("polydiv", u, v)))
    m, n = u.shape[0] - 1, v.shape[0] - 1
    scale = divide(1.0, gather_elements(v, 0))
    q = zeros(max(m - n + 1, 1), u.dtype)
    for k in range(m - n + 1):
        d = multiply(scale, gather_elements(u, k))
        q = scatter(q, k, d, "set")
        u = scatter(u, slice(k, k + n + 1), lax.neg(multiply(d, v)), "add")
    if trim_leading_zeros:
        u = trim_zeros(u, trim="f")
    return q, u  # type: ignore[return-value]


def _polyder(p: ArrayLike, m: int = 1) -> Array:
    """The m-th derivative of a polynomial.

    Args:
      p: a vector of coefficients, the highest power first; integers are taken as floats.
      m: how often it is differentiated.

    Returns:
      a vector with m elements less, empty where there are not so many.

    Raises:
      ValueError: for negative m.
    """
    (p,) = promote_dtypes_inexact(*arrays("polyder", p))
    m = concrete_or_error(operator.index, m, "'m' argument of jnp.polyder")
    if m < 0:
        raise ValueError("Order of derivative must be positive")
    if m == 0:
        return p
    count = p.shape[0]
    powers = np.arange(count)[m:].astype(np.float64)[:, None] - np.arange(m)[None] if count > m else np.zeros((0, m))
    factors = np.prod(powers, axis=1)[::-1].astype(p.dtype)
    return multiply(gather_elements(p, slice(None, -m)) if count > m else lax.slice_in_dim(p, 0, 0), factors)


polyder = jit(named(_polyder, "polyder"), static_argnames=("m",))


def _polyint(p: ArrayLike, m: int = 1, k: int | ArrayLike | None = None) -> Array:
    """The m-th integral of a polynomial.

    Args:
      p: a vector of coefficients, the highest power first; integers are taken as floats.
      m: how often it is integrated.
      k: the constants of integration, one for all or m of them, that of the first integration first; 0 by default.

    Returns:
      a vector with m elements more.

    Raises:
      ValueError: for negative m, and for constants that do not fit.
    """
    p, constants = (asarray(v) for v in promote_dtypes_inexact(*arrays("polyint", p, 0 if k is None else k)))
    m = concrete_or_error(operator.index, m, "'m' argument of jnp.polyint")
    constants = atleast_1d(constants)
    if m < 0:
        raise ValueError("Order of integral must be positive (see polyder)")
    if constants.shape[0] == 1:
        constants = full_like(p, gather_elements(constants, 0), shape=(m,))
    if constants.shape != (m,):
        raise ValueError("k must be a scalar or a rank-1 array of length 1 or m.")
    if m == 0:
        return p
    count = p.shape[0]
    # Coefficient i of p, or of the constants after them, is divided by its m rising powers.
    grid = np.maximum(0, np.arange(count + m, 0, -1)[None, :] - 1 - np.arange(m)[:, None])
    divisors = np.where(grid == 0, 1, grid).prod(0)
    return divide(concatenate([p, constants]), convert(asarray(divisors.astype(p.dtype)), p.dtype))


polyint = jit(named(_polyint, "polyint"), static_argnames=("m",))


@jit
def poly(seq_of_zeros: ArrayLike) -> Array:
    """The coefficients of the polynomial with given roots, or the characteristic one of a matrix.

    Args:
      seq_of_zeros: a vector of roots, or a square matrix; integers are taken as floats.

    Returns:
      a vector of coefficients, the highest power (with coefficient 1) first, complex for a matrix; the scalar 1 for no
      roots.

    Raises:
      ValueError: for other shapes.
    """
    (roots_,) = promote_dtypes_inexact(*arrays("poly", seq_of_zeros))
    roots_ = atleast_1d(roots_)
    if roots_.ndim == 2:
        from .linalg import eigvals

        if roots_.shape[0] != roots_.shape[1] or roots_.shape[0] == 0:
            raise ValueError("input must be 1d or non-empty square 2d array.")
        roots_ = eigvals(roots_)
    elif roots_.ndim != 1:
        raise ValueError("input must be 1d or non-empty square 2d array.")
    kind = roots_.dtype
    if roots_.shape[0] == 0:
        return ones((), kind)
    a = ones((1,), kind)
    for k in range(roots_.shape[0]):
        a = convolve(a, asarray([convert(1, kind), lax.neg(gather_elements(roots_, k))], dtype=kind), mode="full")
    return a


@jit
def _roots_no_zeros(p: Any) -> Any:
    from .linalg import eigvals

    if p.shape[0] < 2:
        return lax.full((0,), 0, to_complex(p.dtype))
    matrix = diag(ones((p.shape[0] - 2,), p.dtype), -1)
    matrix = scatter(
        matrix, (0, slice(None)), divide(lax.neg(gather_elements(p, slice(1, None))), gather_elements(p, 0)), "set"
    )
    return eigvals(matrix)


@jit
def _roots_with_zeros(p: Any, count: Any) -> Any:
    # Leading zeros make the matrix singular: they are moved to the end, and their roots become NaN.
    from .arrangements import roll

    size = p.shape[0]
    p = roll(p, lax.neg(count))
    found = _roots_no_zeros(p)
    # The zeros at the end gave roots of 0, which the magnitudes put first.
    order = lax.sort((lax.abs(found), lax.iota(np.dtype(np.int32), size - 1)), num_keys=1)[1]
    found = lax.rev(gather_elements(found, order), (0,))
    valid = lax.lt(lax.iota(np.dtype(np.int32), size - 1), lax.sub(convert(size - 1, np.dtype(np.int32)),
                                                                   convert(count, np.dtype(np.int32))))
    return choose_elements(valid, found, complex(np.nan, np.nan))


def roots(p: ArrayLike, *, strip_zeros: bool = True) -> Array:
    """The roots of a polynomial, as the eigenvalues of its companion matrix.

    Args:
      p: a vector of n coefficients, the highest power first, or one number; integers are taken as floats.
      strip_zeros: whether zeros at both ends are taken off first, which needs a concrete `p`. Otherwise the length of
        the result is n - 1, as `jit` needs, filled up with NaN for zeros in front.

    Returns:
      a complex vector, in no order.

    Raises:
      ValueError: for higher ranks.
    """
    (p,) = promote_dtypes_inexact(*arrays("roots", p))
    p = asarray(p)
    if p.ndim > 1:
        raise ValueError("Input must be a rank-1 array.")
    if p.size < 2:
        return lax.full((0,), 0, to_complex(p.dtype))
    if not strip_zeros:
        from .reductions import argmax

        nonzero_ = lax.ne(p, convert(0, p.dtype))
        leading = choose_elements(lax.reduce_or(nonzero_, (0,)), argmax(nonzero_), p.shape[0])
        return _roots_with_zeros(p, leading)
    values = concrete_or_error(np.asarray, p, "The error occurred in the jnp.roots() function. To use this within a "
                               "JIT-compiled context, pass strip_zeros=False, but be aware that leading zeros will "
                               "be result in some returned roots being set to NaN.")
    places = np.nonzero(values)[0]
    if not len(places):
        return lax.full((0,), 0, to_complex(p.dtype))
    trailing = len(values) - int(places[-1]) - 1
    found = _roots_no_zeros(gather_elements(p, slice(int(places[0]), int(places[-1]) + 1)))
    return concatenate([found, lax.full((trailing,), 0, found.dtype)]) if trailing else found


def polyfit(x: ArrayLike, y: ArrayLike, deg: int, rcond: float | None = None, full: bool = False,
            w: ArrayLike | None = None, cov: bool = False) -> Array | tuple[Array, ...]:
    """The polynomial of degree `deg` that fits points best, by least squares.

    Args:
      x: a vector of n coordinates; integers are taken as floats.
      y: values there, `[n]` or several columns `[n, k]`.
      deg: the degree.
      rcond: singular values below this share of the largest count as 0; by default n times the epsilon of the dtype.
      full: whether the residuals, rank, singular values and `rcond` are given, too.
      w: weights of the residuals (not of their squares), a vector.
      cov: whether the covariance of the coefficients is given, too ("unscaled": not scaled by the residuals).

    Returns:
      coefficients, the highest power first, `[deg + 1]` or `[deg + 1, k]`; with `full` or `cov` a tuple that begins
      with them.

    Raises:
      ValueError: for a negative degree, and too few points for `cov`.
      TypeError: for vectors that are empty, of other ranks, or of lengths that differ.
    """
    deg = concrete_or_error(int, deg, "deg must be int")
    return _polyfit(x, y, deg, rcond, full, w, cov)


def _polyfit_entry(x: Any, y: Any, deg: int, rcond: float | None, full: bool, w: Any, cov: bool | str) -> Any:
    if w is None:
        check_arraylike("polyfit", x, y)
        x, y = promote_dtypes_inexact(*arrays("polyfit", x, y))
    else:
        x, y, w = promote_dtypes_inexact(*arrays("polyfit", x, y, w))
    x, y = asarray(x), asarray(y)
    order = deg + 1
    if deg < 0:
        raise ValueError("expected deg >= 0")
    if x.ndim != 1:
        raise TypeError("expected 1D vector for x")
    if x.size == 0:
        raise TypeError("expected non-empty vector for x")
    if y.ndim not in (1, 2):
        raise TypeError("expected 1D or 2D array for y")
    if x.shape[0] != y.shape[0]:
        raise TypeError("expected x and y to have same length")
    if rcond is None:
        rcond = x.shape[0] * float(dtypes.finfo(x.dtype).eps)
    from .linalg import inv, lstsq
    from .reductions import sum as sum_

    lhs, rhs = vander(x, order), y
    if w is not None:
        w = asarray(w)
        if w.ndim != 1:
            raise TypeError("expected a 1-d array for weights")
        if w.shape[0] != y.shape[0]:
            raise TypeError("expected w and y to have the same length")
        column = lax.expand_dims(w, (1,))
        lhs = multiply(lhs, column)
        rhs = multiply(rhs, column) if rhs.ndim == 2 else multiply(rhs, w)
    scale = lax.sqrt(sum_(multiply(lhs, lhs), axis=0))
    lhs = divide(lhs, lax.expand_dims(scale, (0,)))
    c, residuals, rank, s = lstsq(lhs, rhs, rcond)
    c = divide(c, scale) if c.ndim == 1 else divide(c, lax.expand_dims(scale, (1,)))
    if full:
        return c, residuals, rank, s, asarray(rcond)
    if not cov:
        return c
    from .dot_products import dot, outer

    base = inv(dot(lax.transpose(lhs, (1, 0)), lhs))
    base = divide(base, outer(scale, scale))
    if cov == "unscaled":
        factor: Any = 1
    else:
        if x.shape[0] <= order:
            raise ValueError("the number of data points must exceed order to scale the covariance matrix")
        factor = divide(residuals, x.shape[0] - order)
        factor = gather_elements(factor, 0) if y.ndim == 1 else factor
    if y.ndim == 1:
        return c, multiply(base, factor)
    return c, multiply(lax.expand_dims(base, (2,)), factor)


_polyfit = jit(named(_polyfit_entry, "polyfit", ""), static_argnames=("deg", "rcond", "full", "cov"))
