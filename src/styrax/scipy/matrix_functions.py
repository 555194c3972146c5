"""Functions of matrices: exponentials, roots, polar factors, Sylvester's equation."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.types.typing import ArrayLike
from styrax.lax import linalg as lax_linalg
from styrax.numpy import dot_products
from styrax.numpy import linalg as _linalg
from styrax.numpy.binary import less
from styrax.numpy.broadcasting import choose_elements, spread
from styrax.numpy.conversion import asarray
from styrax.numpy.patterns import eye, triu
from styrax.numpy.promotion import arrays, convert, promote_dtypes_inexact, to_complex
from styrax.transforms.jit import jit_for_all_shapes as jit

from .eigenvalues import schur
from .linalg import _adjoint, _inexact

HIGHEST = lax.Precision.HIGHEST

# Padé approximants of the exponential: the largest 1-norms for which each degree is accurate (Higham 2005).
_DEGREES = {
    4: ((3, 4.258730016922831e-01), (5, 1.880152677804762e00), (7, 3.925724783138660e00)),
    8: ((3, 1.495585217958292e-02), (5, 2.539398330063230e-01), (7, 9.504178996162932e-01),
        (9, 2.097847961257068e00), (13, 5.371920351148152e00)),
}


def _product(a: Any, b: Any) -> Array:
    return dot_products.matmul(a, b, precision=HIGHEST)


def _square(a: Any) -> None:
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise ValueError(f"Expected A to be a (batched) square matrix, got A.shape={a.shape}.")


def _batched(function: Callable[..., Any], rank: int, *args: Any) -> Any:
    """Maps a function of matrices over the leading axes that all arguments share."""
    if rank == 2:
        return function(*args)
    from styrax.transforms.api import vmap

    for _ in range(rank - 2):
        function = vmap(function)
    return function(*args)


# -- the exponential -----------------------------------------------------------------------------------
def _pade_weights(degree: int) -> list[float]:
    """The coefficients of the numerator, scaled so that the last one is 1."""
    weights = [1.0]
    for k in range(degree, 0, -1):
        weights.append(weights[-1] * k * (2 * degree + 1 - k) / (degree + 1 - k))
    return weights[::-1]


def _pade(degree: int, a: Any) -> tuple[Array, Array]:
    """The odd and the even part of the numerator of the approximant of exp(a)."""
    weights = _pade_weights(degree)
    one = eye(a.shape[-1], dtype=a.dtype)
    square = _product(a, a)
    powers = [one, square]
    while 2 * len(powers) <= (degree if degree < 13 else 6):
        powers.append(_product(powers[-1], square))

    def combination(part: list[float]) -> Array:
        total = lax.mul(lax.full_like(one, part[0]), powers[0])
        for w, p in zip(part[1:], powers[1:]):
            total = lax.add(total, lax.mul(lax.full_like(one, w), p))
        return total

    odd, even = weights[1::2], weights[0::2]
    if degree < 13:
        return _product(a, combination(odd)), combination(even)
    # The powers above the sixth are products of the lower ones.
    high = powers[3]
    upper_odd, upper_even = combination([0.0, *odd[4:]]), combination([0.0, *even[4:]])
    return (_product(a, lax.add(_product(high, upper_odd), combination(odd[:4]))),
            lax.add(_product(high, upper_even), combination(even[:4])))


def _expm2(a: Any, upper_triangular: bool, max_squarings: int) -> Array:
    real = np.empty(0, a.dtype).real.dtype if a.dtype.kind == "c" else a.dtype
    degrees = _DEGREES[8 if real.itemsize == 8 else 4]
    size = _linalg.norm(a, 1)
    largest = degrees[-1][1]
    halvings = lax.floor(lax.div(lax.log(lax.div(size, convert(largest, real))), lax.log(convert(2.0, real))))
    halvings = lax.max(convert(0, real), halvings)
    # What needs more squarings is NaN, and depends on nothing.
    too_large = lax.gt(halvings, convert(max_squarings, real))
    a = choose_elements(too_large, 0, a)
    scaled = lax.div(a, spread(convert(lax.pow(convert(2.0, real), halvings), a.dtype), a.shape))
    index = convert(0, np.dtype(np.int32))
    for _, bound in degrees[:-1]:
        index = lax.add(index, convert(lax.ge(size, convert(bound, real)), np.dtype(np.int32)))
    odd, even = lax.switch(index, [partial(_pade, d) for d, _ in degrees], scaled)
    p, q = lax.add(odd, even), lax.add(lax.neg(odd), even)
    if upper_triangular:
        r = lax_linalg.triangular_solve(q, p, left_side=True, lower=False)
    else:
        r = _linalg.solve(q, p)
    halvings = convert(halvings, np.dtype(np.int32))

    def body(i: Any, r: Any) -> Any:
        return lax.cond(less(i, halvings), lambda r: _product(r, r), lambda r: r, r)

    r = lax.fori_loop(0, max_squarings, body, r)
    return choose_elements(too_large, np.nan, r)


@partial(jit, static_argnames=("upper_triangular", "max_squarings"))
def expm(A: ArrayLike, *, upper_triangular: bool = False, max_squarings: int = 16) -> Array:
    """The exponentials Σ Aᵏ / k! of square matrices, by Padé approximants with scaling and squaring (Higham 2005).

    Args:
      A: shape [..., n, n]; integers are taken as floats.
      upper_triangular: says that A is upper triangular.
      max_squarings: a norm that needs more gives NaN.

    Returns:
      an array of the shape of `A`.

    Raises ValueError for matrices that are not square.
    """
    (a,) = _inexact(*arrays("expm", A))
    _square(a)
    return _batched(lambda x: _expm2(x, upper_triangular, max_squarings), a.ndim, a)


@partial(jit, static_argnames=("method", "compute_expm"))
def expm_frechet(A: ArrayLike, E: ArrayLike, *, method: str | None = None,
                 compute_expm: bool = True) -> Array | tuple[Array, Array]:
    """The derivative of `expm` at A in the direction E, by forward differentiation.

    Args:
      A, E: shape [..., n, n], the same for both; integers are taken as floats.
      method: ignored.
      compute_expm: whether to return expm(A), too.

    Returns:
      (expm(A), derivative), or the derivative alone without `compute_expm`, of the shape of `A`.

    Raises ValueError for matrices that are not square or differ in shape.
    """
    del method
    a, e = _inexact(*arrays("expm_frechet", A, E))
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise ValueError(f"expected A to be a square matrix, got A.shape={a.shape}")
    if e.ndim < 2 or e.shape[-1] != e.shape[-2]:
        raise ValueError(f"expected E to be a square matrix, got E.shape={e.shape}")
    if a.shape != e.shape:
        raise ValueError(f"expected A and E to be the same shape, got A.shape={a.shape} E.shape={e.shape}")
    from styrax.transforms.api import jvp

    value, derivative = jvp(lambda x: expm(x), (a,), (e,))
    return (value, derivative) if compute_expm else derivative


# -- functions by the Schur form ---------------------------------------------------------------------------
def rsf2csf(T: ArrayLike, Z: ArrayLike, check_finite: bool = True) -> tuple[Array, Array]:
    """The complex Schur form of a real one: turns the blocks of 2 × 2 on the diagonal into triangles.

    Args:
      T, Z: the real Schur form of Z·T·Zᴴ, as `schur` returns it, shape [..., n, n].
      check_finite: ignored.

    Returns:
      a pair of complex arrays (T, Z) with T upper triangular, of the shapes broadcast together.

    Raises ValueError for shapes that do not fit.
    """
    del check_finite
    t, z = _inexact(*arrays("rsf2csf", T, Z))
    for name, x in (("T", t), ("Z", z)):
        if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
            raise ValueError(f"Input '{name}' must be square.")
    if t.shape[-1] != z.shape[-1]:
        raise ValueError(f"Input array shapes must match: Z: {z.shape} vs. T: {t.shape}")
    if t.ndim == z.ndim == 2:
        return _rsf2csf(t, z)
    batch = lax.broadcast_shapes(t.shape[:-2], z.shape[:-2])
    t, z = (spread(x, (*batch, *x.shape[-2:])) for x in (t, z))
    return _batched(_rsf2csf, t.ndim, t, z)


@jit
def _rsf2csf(t: Any, z: Any) -> tuple[Array, Array]:
    dtype = to_complex(t.dtype)
    t, z = convert(t, dtype), convert(z, dtype)
    n = t.shape[0]
    eps = np.finfo(dtype).eps

    def rotate(m: Any, t: Any, z: Any) -> tuple[Array, Array]:
        block = lax.dynamic_slice(t, (m - 1, m - 1), (2, 2))
        a, b, c, d = block[0, 0], block[0, 1], block[1, 0], block[1, 1]
        half = (a - d) / 2
        mu = half + lax.sqrt(half * half + b * c)
        r = lax.sqrt(lax.square(lax.abs(mu)) + lax.square(lax.abs(c)))
        cos, sin = mu / convert(r, dtype), c / convert(r, dtype)
        g = lax.concatenate([lax.reshape(v, (1, 1)) for v in (lax.conj(cos), sin, lax.neg(sin), cos)], 0)
        g = lax.reshape(g, (2, 2))
        rows = _product(g, lax.dynamic_slice(t, (m - 1, 0), (2, n)))
        t = lax.dynamic_update_slice(t, rows, (m - 1, 0))
        columns = _product(lax.dynamic_slice(t, (0, m - 1), (n, 2)), _adjoint(g))
        t = lax.dynamic_update_slice(t, columns, (0, m - 1))
        z = lax.dynamic_update_slice(z, _product(lax.dynamic_slice(z, (0, m - 1), (n, 2)), _adjoint(g)), (0, m - 1))
        return t, z

    def body(i: Any, state: tuple) -> tuple:
        t, z = state
        m = n - 1 - i
        block = lax.dynamic_slice(t, (m - 1, m - 1), (2, 2))
        small = lax.abs(block[1, 0]) > eps * (lax.abs(block[0, 0]) + lax.abs(block[1, 1]))
        t, z = lax.cond(small, rotate, lambda m, t, z: (t, z), m, t, z)
        return lax.dynamic_update_slice(t, lax.full((1, 1), 0, dtype), (m, m - 1)), z

    return lax.fori_loop(0, n - 1, body, (t, z)) if n > 1 else (t, z)


@jit
def _sqrtm(a: Any) -> Array:
    t, z = schur(a, output="complex")
    n = t.shape[-1]
    diagonal = lax.sqrt(_diagonal(t))

    def column(j: Any, root: Any) -> Any:
        # The leading block is known: with it, column j solves a triangular system.
        known = lax.lt(lax.iota(j.dtype, n), j)
        r = lax.dynamic_index_in_dim(diagonal, j, keepdims=False)
        sums = lax.add(diagonal, spread(r, (n,)))
        none = lax.bitwise_and(known, lax.eq(sums, lax.full_like(sums, 0)))
        pivots = choose_elements(lax.bitwise_and(known, lax.bitwise_not(none)), sums, 1)
        shifted = lax.add(root, _as_diagonal(pivots))
        right = choose_elements(known, lax.dynamic_index_in_dim(t, j, 1, keepdims=False), 0)
        x = lax_linalg.triangular_solve(shifted, lax.expand_dims(right, (1,)), left_side=True, lower=False)
        x = lax.squeeze(x, (1,))
        # 0 · x = y has the solution 0 for y = 0, and none otherwise.
        x = choose_elements(lax.bitwise_and(none, lax.ne(x, lax.full_like(x, 0))), np.nan, x)
        return lax.dynamic_update_index_in_dim(root, x, j, 1)

    root = lax.fori_loop(0, n, column, lax.full_like(t, 0)) if n > 0 else t
    root = lax.add(root, _as_diagonal(diagonal))
    return _product(_product(z, root), _adjoint(z))


def _diagonal(a: Any) -> Array:
    return _linalg.diagonal(a)


def _as_diagonal(v: Any) -> Array:
    n = v.shape[0]
    return lax.mul(eye(n, dtype=v.dtype), spread(lax.expand_dims(v, (1,)), (n, n)))


def sqrtm(A: ArrayLike, blocksize: int = 1) -> Array:
    """The principal square root of a square matrix: X with X·X = A whose eigenvalues have no negative real parts.

    Args:
      A: shape [n, n].
      blocksize: at most 1.

    Returns:
      a complex array of shape [n, n], NaN where there is no root.

    Raises NotImplementedError for other block sizes, ValueError for matrices that are not square.
    """
    if blocksize > 1:
        raise NotImplementedError("Blocked version is not implemented yet.")
    (a,) = arrays("sqrtm", A)
    if len(a.shape) != 2:
        raise ValueError(f"The input to sqrtm must be a square matrix. Got shape {tuple(a.shape)}.")
    return _sqrtm(a)


@partial(jit, static_argnums=(1,))
def _funm(a: Any, func: Callable[[Any], Any]) -> tuple[Any, Any]:
    t, z = schur(a, output="complex")
    n = t.shape[0]
    real = np.empty(0, t.dtype).real.dtype
    diagonal = _diagonal(t)
    values = func(diagonal)
    below = lax.sub(lax.broadcast_in_dim(diagonal, (n, n), (1,)), lax.broadcast_in_dim(diagonal, (n, n), (0,)))
    change = lax.sub(lax.broadcast_in_dim(values, (n, n), (1,)), lax.broadcast_in_dim(values, (n, n), (0,)))
    strict = triu(t, 1)
    offset = lax.sub(lax.broadcasted_iota(np.int32, (n, n), 1), lax.broadcasted_iota(np.int32, (n, n), 0))
    zero = lax.eq(below, lax.full_like(below, 0))
    divisor = choose_elements(zero, 1, below)

    def band(p: Any, f: Any) -> Any:
        # Parlett's recurrence for one superdiagonal: the products only reach bands that are done.
        s = lax.add(lax.mul(strict, change), lax.sub(_product(strict, f), _product(f, strict)))
        return choose_elements(lax.eq(offset, lax.full_like(offset, convert(p, offset.dtype))), lax.div(s, divisor), f)

    f = lax.fori_loop(1, n, band, lax.full_like(t, 0)) if n > 1 else lax.full_like(t, 0)
    f = _product(_product(z, lax.add(f, _as_diagonal(values))), _adjoint(z))
    tolerance = convert(np.finfo(real).eps, real)
    gaps = choose_elements(lax.gt(offset, lax.full_like(offset, 0)), lax.abs(below), np.inf)
    smallest = lax.min(convert(1, real), lax.reduce_min(gaps, axes=(0, 1))) if n > 1 else convert(1, real)
    smallest = lax.select(lax.eq(smallest, convert(0, real)), tolerance, smallest)
    error = lax.mul(lax.div(tolerance, smallest), _linalg.norm(strict, 1))
    return f, lax.min(convert(1, real), lax.max(tolerance, error))


def funm(A: ArrayLike, func: Callable[[Any], Any], disp: bool = True) -> Array | tuple[Array, Array]:
    """A function of a square matrix, by Parlett's recurrence on its Schur form.

    Args:
      A: shape [n, n].
      func: the function, of an array of eigenvalues, shape [n], complex.
      disp: if False, an estimate of the error is returned too: (f(A), error).

    Returns:
      f(A), a complex array of shape [n, n]; inaccurate where eigenvalues are close to each other.

    Raises ValueError for matrices that are not square.
    """
    (a,) = _inexact(*arrays("funm", A))
    if a.ndim != 2 or a.shape[0] != a.shape[1]:
        raise ValueError("expected square array_like input")
    f, error = _funm(a, func)
    return f if disp else (f, error)


# -- polar factors and Sylvester's equation ----------------------------------------------------------------
@partial(jit, static_argnames=("side", "method", "max_iterations"))
def polar(a: ArrayLike, side: str = "right", *, method: str = "qdwh", eps: float | None = None,
          max_iterations: int | None = None) -> tuple[Array, Array]:
    """The polar decomposition: U with orthonormal columns and P ≥ 0, a = U·P ("right") or a = P·U ("left").

    Args:
      a: shape [..., m, n].
      side: the side of the Hermitian factor.
      method: "qdwh" or "svd"; both are computed from singular vectors.
      eps, max_iterations: ignored.

    Returns:
      (U, P): of shape [..., m, n], and [..., n, n] ("right") or [..., m, m] ("left").

    Raises:
      ValueError: for other sides and methods.
      NotImplementedError: for "qdwh" with m < n ("right") or m > n ("left").
    """
    del eps, max_iterations
    (a,) = _inexact(asarray(a))
    if side not in ("right", "left"):
        raise ValueError("The argument `side` must be either 'right' or 'left'.")
    if method not in ("qdwh", "svd"):
        raise ValueError(f"Unknown polar decomposition method {method}.")
    m, n = a.shape[-2:]
    if method == "qdwh" and (m < n if side == "right" else m > n):
        raise NotImplementedError("method='qdwh' only supports mxn matrices where m < n where side='right' and m >= n "
                                  f"side='left', got {a.shape} with side={side!r}")
    return _polar(a, side)


@partial(jit, static_argnums=(1,))
def _polar(a: Any, side: str) -> tuple[Array, Array]:
    u, s, vh = lax_linalg.svd(a, full_matrices=False)
    unitary = _product(u, vh)
    s = lax.expand_dims(convert(s, a.dtype), (s.ndim - 1,))
    if side == "right":
        v = _adjoint(vh)
        return unitary, _product(lax.mul(v, spread(s, v.shape)), vh)
    return unitary, _product(lax.mul(u, spread(s, u.shape)), _adjoint(u))


def solve_sylvester(A: ArrayLike, B: ArrayLike, C: ArrayLike, *, method: str = "schur", tol: float = 1e-8) -> Array:
    """X with A·X + X·B = C.

    Args:
      A, B, C: shapes [m, m], [n, n] and [m, n].
      method: "schur", or "eigen" for matrices that can be diagonalised.
      tol: where a sum of an eigenvalue of A and one of B is below it, all of the result is NaN.

    Returns:
      an array of shape [m, n], real unless A, B or C is complex.

    Raises ValueError for shapes that do not fit and other methods.
    """
    a, b, c = arrays("solve_sylvester", A, B, C)
    for name, x in (("A", a), ("B", b)):
        if len(x.shape) != 2 or x.shape[0] != x.shape[1]:
            raise ValueError(f"{name} must be a square matrix, got shape {tuple(x.shape)}")
    if tuple(c.shape) != (a.shape[0], b.shape[0]):
        raise ValueError(f"C must have shape {(a.shape[0], b.shape[0])}, got {tuple(c.shape)}")
    if method not in ("schur", "eigen"):
        raise ValueError(f"Unrecognized method {method}. The two valid methods are either \"schur\" or \"eigen\".")
    a, b, c = (asarray(x) for x in promote_dtypes_inexact(a, b, c))
    return _sylvester(a, b, c, tol, method)


@partial(jit, static_argnums=(4,))
def _sylvester(a: Any, b: Any, c: Any, tol: Any, method: str) -> Array:
    dtype = to_complex(a.dtype)
    m, n = c.shape
    right = convert(c, dtype)
    if method == "eigen":
        ra, ua = _linalg.eig(a)
        rb, ub = _linalg.eig(b)
        right = _linalg.solve(ua, _product(right, ub))
        sums = lax.add(lax.broadcast_in_dim(ra, (m, n), (0,)), lax.broadcast_in_dim(rb, (m, n), (1,)))
        y = lax.div(right, sums)
        out = _product(y, _linalg.inv(ub))
        out = _product(ua, out)
    else:
        r, u = schur(a, output="complex")
        s, v = schur(b, output="complex")
        right = _product(_product(_adjoint(u), right), v)
        one = eye(m, dtype=dtype)

        def column(j: Any, y: Any) -> Any:
            shift = lax.dynamic_slice(s, (j, j), (1, 1))
            f = lax.sub(lax.dynamic_slice(right, (0, j), (m, 1)), _product(y, lax.dynamic_slice(s, (0, j), (n, 1))))
            x = lax_linalg.triangular_solve(lax.add(r, lax.mul(one, spread(shift, (m, m)))), f, left_side=True,
                                            lower=False)
            return lax.dynamic_update_slice(y, x, (0, j))

        y = lax.fori_loop(0, n, column, lax.full_like(right, 0))
        sums = lax.add(lax.broadcast_in_dim(_diagonal(r), (m, n), (0,)),
                       lax.broadcast_in_dim(_diagonal(s), (m, n), (1,)))
        out = _product(_product(u, y), _adjoint(v))
    sizes = lax.abs(sums)
    singular = lax.reduce_or(lax.lt(sizes, lax.full_like(sizes, tol)), axes=(0, 1))
    if a.dtype.kind != "c":
        out = lax.real(out)
    return choose_elements(singular, np.nan, out)
