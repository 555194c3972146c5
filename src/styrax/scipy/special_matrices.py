"""Matrices of known form: Toeplitz, Hankel, Hilbert, Pascal, …"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.types import dtypes
from styrax.core.types.typing import ArrayLike, DTypeLike
from styrax.numpy.binary import subtract
from styrax.numpy.broadcasting import choose_elements
from styrax.numpy.concatenation import block
from styrax.numpy.conversion import asarray
from styrax.numpy.dot_products import matmul
from styrax.numpy.indexing import gather_elements
from styrax.numpy.patterns import eye
from styrax.numpy.promotion import (
    arrays,
    convert,
    default_float,
    promote_dtypes,
    to_complex,
    to_inexact,
    user_dtype,
)
from styrax.numpy.selection import take
from styrax.numpy.shaping import atleast_1d
from styrax.numpy.ufuncs import absolute
from styrax.transforms.jit import jit_for_all_shapes as jit


def _inexact_vector(name: str, x: Any) -> Array:
    (x,) = arrays(name, x)
    x = _vectors(x)
    return convert(x, to_inexact(x.dtype))


def _vectors(x: ArrayLike) -> Array:
    """An array of vectors, along its last axis."""
    return atleast_1d(x)


def _table(rows: int, columns: int, dtype: Any) -> tuple[Array, Array]:
    """The row and the column index of each element."""
    return lax.broadcasted_iota(dtype, (rows, columns), 0), lax.broadcasted_iota(dtype, (rows, columns), 1)


def _along_last(values: Any, places: Any) -> Array:
    return take(values, places, axis=-1, mode="clip")


def _batched_last(function: Any, x: Any) -> Array:
    """Maps a function of vectors over the leading axes of x."""
    if x.ndim == 1:
        return function(x)
    from styrax.numpy.vectorization import vectorize

    return vectorize(function, signature="(n)->(m,k)")(x)


def toeplitz(c: ArrayLike, r: ArrayLike | None = None) -> Array:
    """The Toeplitz matrix, with equal elements along each diagonal.

    Args:
      c: the first column, shape [..., m].
      r: the first row, shape [..., n], of which r[0] is not used; by default the conjugate of c.

    Returns:
      an array of shape [..., m, n] of the common dtype.

    Example:
      >>> import styrax.scipy.linalg as linalg
      >>> import styrax.numpy as jnp
      >>> linalg.toeplitz(jnp.array([1, 2, 3]))
      Array([[1, 2, 3],
             [2, 1, 2],
             [3, 2, 1]], dtype=int32)
    """
    if r is None:
        (c,) = arrays("toeplitz", c)
        c = asarray(c, asarray(c).dtype)
        r = lax.conj(c) if c.dtype.kind == "c" else c
    else:
        c, r = arrays("toeplitz", c, r)
    c, r = _vectors(c), _vectors(r)
    m, n = c.shape[-1], r.shape[-1]
    if m == 0 or n == 0:
        return lax.full((*lax.broadcast_shapes(c.shape[:-1], r.shape[:-1]), m, n), 0, promote_dtypes(c, r)[0].dtype)
    c, r = promote_dtypes(lax.rev(c, (c.ndim - 1,)), lax.slice_in_dim(r, 1, n, axis=r.ndim - 1))
    batch = lax.broadcast_shapes(c.shape[:-1], r.shape[:-1])
    c, r = (lax.broadcast_in_dim(x, (*batch, x.shape[-1]), tuple(range(len(batch) + 1 - x.ndim, len(batch) + 1)))
            for x in (c, r))
    values = lax.concatenate([c, r], len(batch))
    values = convert(values, values.dtype)
    row, column = _table(m, n, np.dtype(np.int32))
    return _along_last(values, lax.sub(lax.add(column, lax.full_like(column, m - 1)), row))


def hankel(c: ArrayLike, r: ArrayLike | None = None) -> Array:
    """The Hankel matrix, with equal elements along each antidiagonal.

    Args:
      c: the first column, shape [..., m].
      r: the last row, shape [..., n], of which r[0] is not used; by default m zeros.

    Returns:
      an array of shape [..., m, n] of the common dtype.

    Raises ValueError for scalars.
    """
    if r is None:
        c = asarray(arrays("hankel", c)[0])
        r = lax.full_like(c, 0)
    else:
        c, r = map(asarray, promote_dtypes(*arrays("hankel", c, r)))
    for name, x in {"c": c, "r": r}.items():
        if not x.ndim:
            raise ValueError(f"hankel: {name} must be at least 1-dimensional, got a scalar.")
    m, n = c.shape[-1], r.shape[-1]
    batch = lax.broadcast_shapes(c.shape[:-1], r.shape[:-1])
    if m == 0 or n == 0:
        return lax.full((*batch, m, n), 0, c.dtype)
    r = lax.slice_in_dim(r, 1, n, axis=r.ndim - 1)
    c, r = (lax.broadcast_in_dim(x, (*batch, x.shape[-1]), tuple(range(len(batch) + 1 - x.ndim, len(batch) + 1)))
            for x in (c, r))
    values = lax.concatenate([c, r], len(batch))
    row, column = _table(m, n, np.dtype(np.int32))
    return _along_last(values, lax.add(row, column))


def circulant(c: ArrayLike) -> Array:
    """The circulant matrix: each column is the one before, turned by one place.

    Args:
      c: the first column, shape [..., n].

    Returns:
      an array of shape [..., n, n] of the dtype of `c`.
    """
    (c,) = arrays("circulant", c)
    c = _vectors(c)
    n = c.shape[-1]
    if n == 0:
        return lax.full((*c.shape, 0), 0, c.dtype)
    row, column = _table(n, n, np.dtype(np.int32))
    turned = lax.sub(row, column)
    turned = lax.select(lax.lt(turned, lax.full_like(turned, 0)), lax.add(turned, lax.full_like(turned, n)), turned)
    return _along_last(c, turned)


def companion(a: ArrayLike) -> Array:
    """The companion matrix of a polynomial, whose eigenvalues are its roots.

    Args:
      a: the coefficients, highest power first, shape [..., n]; integers are taken as floats.

    Returns:
      an array of shape [..., n - 1, n - 1] with -a[1:] / a[0] as first row and ones below the diagonal.

    Raises ValueError for fewer than two coefficients.
    """
    a = _inexact_vector("companion", a)
    n = a.shape[-1]
    if n < 2:
        raise ValueError(f"The length of `a` along the last axis must be at least 2; got shape {a.shape}.")

    def one(a: Any) -> Array:
        first = lax.div(lax.neg(lax.slice_in_dim(a, 1, n)), lax.broadcast_in_dim(a[0], (n - 1,), ()))
        below = lax.slice_in_dim(eye(n - 1, dtype=a.dtype), 0, n - 2)
        return lax.concatenate([lax.expand_dims(first, (0,)), below], 0)

    return _batched_last(one, a)


@partial(jit, static_argnames=("n", "mode"))
def convolution_matrix(a: ArrayLike, n: int, mode: str = "full") -> Array:
    """The Toeplitz matrix whose product with a vector is the convolution of that and another one.

    Args:
      a: the other vector, shape [..., m].
      n: how many elements the vector has.
      mode: "full" for m + n - 1 rows, "same" for the max(m, n) in the middle, "valid" for the |m - n| + 1 where neither
        is extended by zeros.

    Returns:
      an array of shape [..., rows, n] of the dtype of `a`.

    Raises ValueError for other modes, n below 1, and without elements of `a`.
    """
    (a,) = arrays("convolution_matrix", a)
    if not a.shape:
        raise ValueError("convolution_matrix: a must be at least 1-dimensional, got a scalar.")
    if n <= 0:
        raise ValueError(f"n must be a positive integer; got {n}.")
    if mode not in ("full", "same", "valid"):
        raise ValueError(f"mode must be one of 'full', 'valid', 'same'; got {mode!r}.")
    m = a.shape[-1]
    if m == 0:
        raise ValueError(f"len(a) must be at least 1; got shape {a.shape}.")

    def one(a: Any) -> Array:
        zero = lax.full((), 0, a.dtype)
        column = lax.pad(a, zero, ((0, n - 1, 0),))
        row = lax.pad(lax.slice_in_dim(a, 0, 1), zero, ((0, n - 1, 0),))
        full = toeplitz(column, row)
        if mode == "full":
            return full
        size = max(m, n) if mode == "same" else max(m, n) - min(m, n) + 1
        start = (m + n - 1 - size) // 2 if mode == "same" else min(m, n) - 1
        return lax.slice_in_dim(full, start, start + size)

    return _batched_last(one, a)


@partial(jit, static_argnames=("n", "scale", "dtype"))
def dft(n: int, scale: str | None = None, *, dtype: DTypeLike | None = None) -> Array:
    """The matrix of the discrete Fourier transform, exp(-2πi·j·k / n) at row j and column k.

    Args:
      n: its size.
      scale: what it is divided by: nothing for None, √n for "sqrtn", n for "n".
      dtype: a complex dtype, by default that of the default float.

    Returns:
      an array of shape [n, n].

    Raises ValueError for other scales and dtypes that are not complex.
    """
    if scale not in (None, "sqrtn", "n"):
        raise ValueError(f"scale must be None, 'sqrtn', or 'n'; got {scale!r}.")
    kind = to_complex(default_float()) if dtype is None else user_dtype(dtype, "dft")
    if not dtypes.issubdtype(kind, np.complexfloating):
        raise ValueError(f"dtype must be a complex floating-point type; got {kind}.")
    k = lax.iota(kind, n)
    angle = lax.mul(lax.full((n, 1), -2j * np.pi, kind), lax.broadcast_in_dim(k, (n, 1), (0,)))
    angle = lax.mul(lax.broadcast_in_dim(angle, (n, n), (0, 1)), lax.broadcast_in_dim(k, (n, n), (1,)))
    out = lax.exp(lax.div(angle, lax.full((n, n), n, kind)))
    if scale is None:
        return out
    return lax.div(out, lax.full((n, n), np.sqrt(n) if scale == "sqrtn" else n, kind))


def fiedler(a: ArrayLike) -> Array:
    """The matrix of distances |a[i] - a[j]|.

    Args:
      a: numbers, shape [..., n]; differences of unsigned integers wrap around.

    Returns:
      an array of shape [..., n, n] of the dtype of `a`, real for complex numbers.
    """
    (a,) = arrays("fiedler", a)
    a = _vectors(a)
    return absolute(subtract(lax.expand_dims(a, (a.ndim,)), lax.expand_dims(a, (a.ndim - 1,))))


def fiedler_companion(a: ArrayLike) -> Array:
    """A matrix of five diagonals whose eigenvalues are the roots of a polynomial (Fiedler 2003).

    Args:
      a: the coefficients, highest power first, shape [..., n]; integers are taken as floats.

    Returns:
      an array of shape [..., n - 1, n - 1].

    Raises ValueError for no coefficients.
    """
    a = _inexact_vector("fiedler_companion", a)
    n = a.shape[-1]
    if n == 0:
        raise ValueError("fiedler_companion requires the last axis of 'a' to have nonzero length, but got an array of "
                         f"shape {a.shape}.")
    if n == 1:
        return lax.full((*a.shape[:-1], 0, 0), 0, a.dtype)

    def one(a: Any) -> Array:
        a = lax.div(a, lax.broadcast_in_dim(a[0], (n,), ()))
        if n == 2:
            return lax.neg(lax.reshape(a[1], (1, 1)))
        places, ones = _fiedler_places(n - 1)
        values = gather_elements(lax.neg(a), (convert(places, np.dtype(np.int32)),))
        return choose_elements(ones, 1, choose_elements(places != 0, values, 0))

    return _batched_last(one, a)


def _fiedler_places(m: int) -> tuple[np.ndarray, np.ndarray]:
    """Which coefficient stands where (0 for none), and where the ones are, in SciPy's layout."""
    places, ones = np.zeros((m, m), np.int32), np.zeros((m, m), bool)
    places[0, 0] = 1
    for row in range(0, m, 2):
        if row:
            places[row, row - 1] = row + 1
        if row + 1 < m:
            places[row, row + 1] = row + 2
    ones[1, 0] = True
    for row in range(m - 2):
        ones[(row, row + 2) if row % 2 == 0 else (row + 2, row)] = True
    return places, ones


@partial(jit, static_argnames=("n", "dtype"))
def hadamard(n: int, dtype: DTypeLike = int) -> Array:
    """The Hadamard matrix of ones and minus ones, whose rows are orthogonal, by Sylvester's construction.

    Args:
      n: its size, a power of 2.
      dtype: by default the default integer.

    Returns:
      an array of shape [n, n].

    Raises ValueError unless n is a power of 2.
    """
    if n < 1 or n & (n - 1):
        raise ValueError(f"n must be a positive power of 2; got {n}.")
    kind = default_float() if dtype is None else user_dtype(dtype, "hadamard")
    h = lax.full((1, 1), 1, kind)
    while h.shape[0] < n:
        h = block([[h, h], [h, lax.neg(h)]])
    return h


@partial(jit, static_argnames=("n", "full"))
def helmert(n: int, full: bool = False) -> Array:
    """The Helmert matrix, whose rows are orthonormal: row j compares element j with the mean of those before.

    Args:
      n: its order.
      full: whether it has a first row, of the elements 1 / √n.

    Returns:
      an array of the default float, of shape [n, n] if it is `full`, otherwise [n - 1, n].

    Raises ValueError for n below 1.
    """
    if n < 1:
        raise ValueError(f"n must be a positive integer; got {n}.")
    kind = default_float()
    row, column = _table(n, n, kind)
    length = lax.sqrt(lax.mul(row, lax.add(row, lax.full_like(row, 1))))
    body = choose_elements(lax.lt(column, row), lax.div(lax.full_like(row, 1), length),
                           choose_elements(lax.eq(column, row), lax.div(lax.neg(row), length), 0.0))
    body = lax.slice_in_dim(body, 1, n)
    if not full:
        return body
    return lax.concatenate([lax.full((1, n), 1 / np.sqrt(n), kind), body], 0)


@partial(jit, static_argnames=("n",))
def hilbert(n: int) -> Array:
    """The Hilbert matrix, with elements 1 / (i + j + 1) counted from 0.

    Args:
      n: its size.

    Returns:
      an array of the default float, shape [n, n].
    """
    a = lax.broadcasted_iota(default_float(), (n, 1), 0)
    total = lax.add(lax.broadcast_in_dim(a, (n, n), (0, 1)),
                    lax.broadcast_in_dim(lax.transpose(a, (1, 0)), (n, n), (0, 1)))
    return lax.div(lax.full((n, n), 1, a.dtype), lax.add(total, lax.full((n, n), 1, a.dtype)))


def _binomials(n: Any, k: Any) -> Array:
    """Binomial coefficients as exponentials of log-gammas; zero where k > n."""
    def lg(x: Any) -> Array:
        return lax.lgamma(lax.add(x, lax.full_like(x, 1)))

    return lax.exp(lax.sub(lax.sub(lg(n), lg(lax.sub(n, k))), lg(k)))


@partial(jit, static_argnames=("n",))
def invhilbert(n: int) -> Array:
    """The inverse of the Hilbert matrix, from binomial coefficients: its elements are rounded integers.

    Args:
      n: its size.

    Returns:
      an array of the default float, shape [n, n].
    """
    kind = default_float()
    i, j = _table(n, n, kind)
    size = lax.full_like(i, n)
    one = lax.full_like(i, 1)
    total = lax.add(i, j)
    sign = lax.sub(one, lax.mul(lax.full_like(i, 2), lax.rem(total, lax.full_like(i, 2))))
    out = lax.mul(sign, lax.add(total, one))
    out = lax.mul(out, _binomials(lax.add(size, i), lax.sub(lax.sub(size, j), one)))
    out = lax.mul(out, _binomials(lax.add(size, j), lax.sub(lax.sub(size, i), one)))
    middle = _binomials(total, i)
    return lax.mul(out, lax.mul(middle, middle))


def _pascal_kind(kind: str) -> None:
    if kind not in ("symmetric", "lower", "upper"):
        raise ValueError(f"Expected kind to be one of: ['symmetric', 'lower', 'upper']; got {kind}")


@partial(jit, static_argnames=("n", "kind"))
def pascal(n: int, kind: str | None = None) -> Array:
    """The matrix of binomial coefficients of Pascal's triangle.

    Args:
      n: its size.
      kind: "symmetric" (the default) for C(i + j, i), "lower" for C(i, j), "upper" for C(j, i).

    Returns:
      an array of the default float, shape [n, n].

    Raises ValueError for other kinds.
    """
    kind = "symmetric" if kind is None else kind
    _pascal_kind(kind)
    row, column = _table(n, n, default_float())
    lower = _binomials(row, column)
    if kind == "lower":
        return lower
    upper = lax.transpose(lower, (1, 0))
    return upper if kind == "upper" else matmul(lower, upper)


@partial(jit, static_argnames=("n", "kind"))
def invpascal(n: int, kind: str | None = None) -> Array:
    """The inverse of `pascal(n, kind)`.

    Args:
      n: its size.
      kind: "symmetric" (the default), "lower" or "upper".

    Returns:
      an array of the default float, shape [n, n].

    Raises ValueError for other kinds.
    """
    kind = "symmetric" if kind is None else kind
    _pascal_kind(kind)
    row, column = _table(n, n, default_float())
    distance = lax.abs(lax.sub(row, column))
    sign = lax.sub(lax.full_like(row, 1), lax.mul(lax.full_like(row, 2), lax.rem(distance, lax.full_like(row, 2))))
    lower = lax.mul(sign, _binomials(row, column))
    if kind == "lower":
        return lower
    upper = lax.transpose(lower, (1, 0))
    return upper if kind == "upper" else matmul(upper, lower)


def leslie(f: ArrayLike, s: ArrayLike) -> Array:
    """The Leslie matrix, which takes a population by age classes to the next step of time.

    Args:
      f: fecundities, the first row, shape [..., n].
      s: survival rates, below the diagonal, shape [..., n - 1].

    Returns:
      an array of shape [..., n, n] of the common dtype.

    Raises ValueError for other shapes, and for n below 2.
    """
    f, s = arrays("leslie", f, s)
    f, s = _vectors(f), _vectors(s)
    n = f.shape[-1]
    if n < 2:
        raise ValueError(f"The length of f along the last axis must be at least 2; got shape {f.shape}.")
    if s.shape[-1] != n - 1:
        raise ValueError("Incorrect lengths for f and s. The length of s along the last axis must be one less than the "
                         f"length of f; got f shape {f.shape} and s shape {s.shape}.")
    f, s = promote_dtypes(f, s)

    def one(f: Any, s: Any) -> Array:
        below = lax.mul(lax.slice_in_dim(eye(n, dtype=s.dtype), 0, n - 1), lax.broadcast_in_dim(s, (n - 1, n), (0,)))
        return lax.concatenate([lax.expand_dims(f, (0,)), below], 0)

    if f.ndim == 1 and s.ndim == 1:
        return one(f, s)
    from styrax.numpy.vectorization import vectorize

    return vectorize(one, signature="(n),(m)->(n,n)")(f, s)

