"""Linear algebra on (batches of) matrices: the last two axes."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, overload

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.programs.named import named
from styrax.core.types import dtypes
from styrax.core.types.typing import ArrayLike, Axis, DTypeLike, ShardingLike
from styrax.lax import linalg as lax_linalg
from styrax.transforms.custom import custom_jvp
from styrax.transforms.jit import jit_for_all_shapes as jit

from . import contractions, reductions, shaping
from .binary import add, divide, greater, multiply, subtract
from .broadcasting import choose_elements, spread
from .conversion import asarray
from .creation import eye
from .indexing import gather_elements
from .promotion import (
    arrays,
    axis_indices,
    check_arraylike,
    convert,
    promote_dtypes_inexact,
    shape_of,
    unwrap,
    user_dtype,
)
from .sorting import argsort
from .ufuncs import conj

HIGHEST = lax.Precision.HIGHEST


class EighResult(NamedTuple):
    """Eigenvalues and eigenvectors of Hermitian matrices."""

    eigenvalues: Array
    eigenvectors: Array


class EigResult(NamedTuple):
    """Eigenvalues and eigenvectors."""

    eigenvalues: Array
    eigenvectors: Array


class QRResult(NamedTuple):
    """Orthogonal and triangular factors."""

    Q: Array
    R: Array


class SlogdetResult(NamedTuple):
    """Sign and logarithm of the modulus of determinants."""

    sign: Array
    logabsdet: Array


class SVDResult(NamedTuple):
    """Singular vectors and values."""

    U: Array
    S: Array
    Vh: Array


def _matrices(name: str, *args: Any) -> list[Array]:
    """Arguments as floating point arrays."""
    return [asarray(x) for x in promote_dtypes_inexact(*arrays(f"linalg.{name}", *args))]


def _transposed(x: Array) -> Array:
    return lax.transpose(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def _adjoint(x: Array) -> Array:
    return conj(_transposed(x))


def _square(name: str, a: Any) -> None:
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise ValueError(f"Argument to {name}() must have shape [..., n, n], got {a.shape}")


def _real_dtype(dtype: Any) -> Any:
    return np.empty(0, dtype).real.dtype if dtypes.issubdtype(dtype, np.complexfloating) else dtype


# -- decompositions ------------------------------------------------------------------------------------
def _cholesky(a: ArrayLike, *, upper: bool = False, symmetrize_input: bool = True) -> Array:
    """The Cholesky factors L with L·Lᴴ = a (or Lᴴ with `upper`); NaN where a matrix is not positive definite.

    `symmetrize_input` takes (a + aᴴ)/2 first.
    """
    (a,) = _matrices("cholesky", a)
    factor = lax_linalg.cholesky(
        _adjoint(a) if upper and not symmetrize_input else a, symmetrize_input=symmetrize_input
    )
    return _adjoint(factor) if upper else factor


cholesky = jit(named(_cholesky, "cholesky"), static_argnames=("upper", "symmetrize_input"))


def _packed_factors(matrix: Array) -> QRResult:
    """R and the reflectors below it, transposed as LAPACK keeps them, and the reflectors' factors."""
    packed, taus = lax_linalg.geqrf(matrix)
    return QRResult(_transposed(packed), taus)


def _factors(matrix: Array, square: bool = False) -> QRResult:
    return QRResult(*lax_linalg.qr(matrix, pivoting=False, full_matrices=square))


# Householder's reflections ("Unitary triangularization of a nonsymmetric matrix", 1958), and what is made of them.
_QR_MODES: dict[str, Callable[[Array], Array | QRResult]] = {
    "reduced": _factors, "complete": partial(_factors, square=True), "r": lambda matrix: _factors(matrix).R,
    "raw": _packed_factors, "full": _factors,
}


def _qr(a: ArrayLike, mode: str = "reduced") -> Array | QRResult:
    """Orthogonal matrices Q and triangular ones R with Q·R = a.

    `mode` is "reduced", "complete" (square Q), "r" (R alone) or "raw". Raises ValueError for others.
    """
    if mode not in _QR_MODES:
        raise ValueError(f"linalg.qr knows the modes {', '.join(_QR_MODES)}, not '{mode}'")
    (matrix,) = _matrices("qr", a)
    return _QR_MODES[mode](matrix)


qr = jit(named(_qr, "qr"), static_argnames=("mode",))


def _svd(a: ArrayLike, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False,
         subset_by_index: tuple[int, int] | None = None) -> Array | SVDResult:
    """Singular vectors U, values S (falling) and vectors Vᴴ with U·diag(S)·Vᴴ = a.

    Args:
      full_matrices: whether U and Vᴴ are square.
      compute_uv: whether the vectors are given; otherwise S alone.
      hermitian: whether `a` is known to be Hermitian.
      subset_by_index: the range of singular values wanted.
    """
    (a,) = _matrices("svd", a)
    if hermitian:
        w, v = lax_linalg.eigh(a, lower=True, symmetrize_input=True)[::-1]
        s = lax.abs(w)
        order = lax.rev(argsort(s, axis=-1), (s.ndim - 1,))
        from .selection import take_along_axis

        s = take_along_axis(s, order, -1)
        if not compute_uv:
            return s
        sign = lax.sign(take_along_axis(w, order, -1))
        columns = take_along_axis(v, lax.expand_dims(order, (order.ndim - 1,)), -1)
        left = multiply(columns, convert(lax.expand_dims(sign, (sign.ndim - 1,)), columns.dtype))
        return SVDResult(left, s, _adjoint(columns))
    if compute_uv:
        u, s, vh = lax_linalg.svd(a, full_matrices=full_matrices, compute_uv=True, subset_by_index=subset_by_index)
        return SVDResult(u, s, vh)
    return lax_linalg.svd(a, full_matrices=full_matrices, compute_uv=False, subset_by_index=subset_by_index)


if TYPE_CHECKING:
    @overload
    def svd(a: ArrayLike, full_matrices: bool = True, *, compute_uv: Literal[False], hermitian: bool = False,
            subset_by_index: tuple[int, int] | None = None) -> Array: ...
    @overload
    def svd(a: ArrayLike, full_matrices: bool = True, compute_uv: Literal[True] = True, hermitian: bool = False,
            subset_by_index: tuple[int, int] | None = None) -> SVDResult: ...
    def svd(*args: Any, **kwargs: Any) -> Any: ...
else:
    svd = jit(named(_svd, "svd"), static_argnames=("full_matrices", "compute_uv", "hermitian", "subset_by_index"))


def svdvals(x: ArrayLike, /) -> Array:
    """The singular values, falling."""
    return svd(x, compute_uv=False, hermitian=False)


def _eigh(a: ArrayLike, UPLO: str | None = None, symmetrize_input: bool = True) -> EighResult:
    """Eigenvalues (rising) and eigenvectors (columns) of Hermitian matrices.

    `UPLO` says which triangle is read, "L" or "U"; `symmetrize_input` takes (a + aᴴ)/2 first. Raises
    ValueError for other letters.

    Example:
      >>> import styrax.numpy as jnp
      >>> w, v = jnp.linalg.eigh(jnp.diag(jnp.array([2.0, 1.0])))
      >>> w
      Array([1., 2.], dtype=float32)
    """
    if UPLO not in (None, "L", "U"):
        raise ValueError(f"UPLO must be one of None, 'L', or 'U', got {UPLO}")
    (a,) = _matrices("eigh", a)
    v, w = lax_linalg.eigh(a, lower=UPLO in (None, "L"), symmetrize_input=symmetrize_input)
    return EighResult(w, v)


eigh = jit(named(_eigh, "eigh"), static_argnames=("UPLO", "symmetrize_input"))


def _eigvalsh(a: ArrayLike, UPLO: str | None = "L", *, symmetrize_input: bool = True) -> Array:
    """The eigenvalues (rising) of Hermitian matrices. Arguments as for `eigh`."""
    (a,) = _matrices("eigvalsh", a)
    return eigh(a, UPLO, symmetrize_input=symmetrize_input)[0]


eigvalsh = jit(named(_eigvalsh, "eigvalsh"), static_argnames=("UPLO", "symmetrize_input"))


def eig(a: ArrayLike) -> EigResult:
    """The eigenvalues and right eigenvectors (columns) of square matrices, complex."""
    (a,) = _matrices("eig", a)
    w, v = lax_linalg.eig(a, compute_left_eigenvectors=False)
    return EigResult(w, v)


@jit
def eigvals(a: ArrayLike) -> Array:
    """The eigenvalues of square matrices, complex."""
    (a,) = _matrices("eigvals", a)
    return lax_linalg.eig(a, compute_left_eigenvectors=False, compute_right_eigenvectors=False)[0]


# -- systems of equations --------------------------------------------------------------------------------
def lu_solve_by_permutation(lu: Any, permutation: Any, b: Any, trans: int) -> Any:
    """Solves with matrices given by their LU factors and row permutations; b has the columns of right sides.

    `trans` 0 solves a·x = b, 1 aᵀ·x = b, 2 aᴴ·x = b.
    """
    if trans == 0:
        x = _permuted_rows(b, permutation)
        x = lax_linalg.triangular_solve(lu, x, left_side=True, lower=True, unit_diagonal=True)
        return lax_linalg.triangular_solve(lu, x, left_side=True, lower=False)
    conjugate = trans == 2
    x = lax_linalg.triangular_solve(lu, b, left_side=True, lower=False, transpose_a=True, conjugate_a=conjugate)
    x = lax_linalg.triangular_solve(lu, x, left_side=True, lower=True, unit_diagonal=True, transpose_a=True,
                                    conjugate_a=conjugate)
    inverse = lax.sort((permutation, lax.broadcasted_iota(permutation.dtype, permutation.shape, permutation.ndim - 1)),
                       dimension=permutation.ndim - 1, num_keys=1)[1]
    return _permuted_rows(x, inverse)


def _permuted_rows(x: Any, permutation: Any) -> Any:
    if permutation.ndim == 1 and x.ndim == 2:
        return gather_elements(x, (permutation,))
    from .selection import take_along_axis

    return take_along_axis(x, lax.expand_dims(permutation, (permutation.ndim,)), axis=-2)


@jit
def solve(a: ArrayLike, b: ArrayLike) -> Array:
    """x with a·x = b, for square matrices a.

    `b` is one vector (rank 1) or has matrices of right-hand sides; batch axes are broadcast. Raises
    ValueError for shapes that do not fit.

    Example:
      >>> import styrax.numpy as jnp
      >>> a = jnp.array([[2.0, 0.0], [0.0, 4.0]])
      >>> jnp.linalg.solve(a, jnp.array([2.0, 2.0]))
      Array([1. , 0.5], dtype=float32)
    """
    a, b = _matrices("solve", a, b)
    if a.ndim < 2:
        raise ValueError(f"left hand array must be at least two dimensional; got a.shape={a.shape}")
    if a.shape[-1] != a.shape[-2]:
        raise ValueError(f"The arguments to solve must have shapes a=[..., m, m] and b=[..., m, k] or b=[..., m]; got "
                         f"a={a.shape} and b={b.shape}")
    if b.ndim < 1:
        raise ValueError(f"right hand array must be at least one dimensional; got b.shape={b.shape}")
    vector = b.ndim == 1
    right = lax.expand_dims(b, (1,)) if vector else b
    if right.shape[-2] != a.shape[-1]:
        raise ValueError(f"The arguments to solve must have shapes a=[..., m, m] and b=[..., m, k] or b=[..., m]; got "
                         f"a={a.shape} and b={b.shape}")
    batch = lax.broadcast_shapes(a.shape[:-2], right.shape[:-2])
    a_, right = spread(a, (*batch, *a.shape[-2:])), spread(right, (*batch, *right.shape[-2:]))
    lu, _, permutation = lax_linalg.lu(lax.stop_gradient(a_))

    def product(x: Any) -> Any:
        return contractions.matmul(a_, x, precision=HIGHEST)

    def transposed_product_solve(_: Any, x: Any) -> Any:
        return lu_solve_by_permutation(lu, permutation, x, 1)

    out = lax.custom_linear_solve(product, right, lambda _, x: lu_solve_by_permutation(lu, permutation, x, 0),
                                  transposed_product_solve)
    return lax.squeeze(out, (out.ndim - 1,)) if vector else out


@jit
def inv(a: ArrayLike) -> Array:
    """The inverses of square matrices. Raises ValueError for others.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.linalg.inv(jnp.array([[2.0, 0.0], [0.0, 4.0]]))
      Array([[0.5 , 0.  ],
             [0.  , 0.25]], dtype=float32)
    """
    (a,) = _matrices("inv", a)
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise ValueError(f"Argument to inv must have shape [..., n, n], got {a.shape}.")
    return solve(a, spread(eye(a.shape[-1], dtype=a.dtype), a.shape))


@partial(jit, static_argnames=("numpy_resid",))
def _lstsq(a: Any, b: Any, rcond: Any, *, numpy_resid: bool = False) -> tuple[Any, Any, Any, Any]:
    a, b = _matrices("lstsq", a, b)
    if a.shape[0] != b.shape[0]:
        raise ValueError("Leading dimensions of input arrays must match")
    vector = b.ndim == 1
    if vector:
        b = lax.expand_dims(b, (1,))
    if a.ndim != 2:
        raise TypeError(f"{a.ndim}-dimensional array given. Array must be two-dimensional")
    if b.ndim != 2:
        raise TypeError(f"{b.ndim}-dimensional array given. Array must be one or two-dimensional")
    m, n = a.shape
    kind = a.dtype
    real = _real_dtype(kind)
    if a.size == 0:
        s = lax.full((0,), 0, real)
        rank: Any = lax.full((), 0, np.dtype(np.int32))
        x = lax.full((n, *b.shape[1:]), 0, kind)
    else:
        if rcond is None:
            rcond = convert(float(dtypes.finfo(real).eps) * max(n, m), real)
        else:
            rcond = choose_elements(lax.lt(*_same(rcond, 0)), convert(float(dtypes.finfo(real).eps), real),
                                    convert(rcond, real))
        u, s, vt = svd(a, full_matrices=False)
        positive = lax.gt(s, convert(0, real))
        large = lax.ge(s, lax.broadcast_in_dim(multiply(rcond, gather_elements(s, 0)), s.shape, ()))
        mask = lax.bitwise_and(positive, large)
        rank = reductions.sum(mask)
        safe = choose_elements(mask, s, 1)
        inverse = choose_elements(mask, divide(1.0, safe), 0)
        uty = contractions.matmul(_adjoint(u), b, precision=HIGHEST)
        scaled = multiply(convert(lax.expand_dims(inverse, (1,)), kind), uty)
        x = contractions.matmul(_adjoint(vt), scaled, precision=HIGHEST)
    if numpy_resid and (m <= n or n == 0 or a.size == 0):
        residuals = lax.full((0,), 0, real)
    elif a.size == 0:
        residuals = reductions.sum(multiply(lax.abs(b), lax.abs(b)), axis=0)
    else:
        difference = subtract(b, contractions.matmul(a, x, precision=HIGHEST))
        square = lax.abs(difference)
        residuals = reductions.sum(multiply(square, square), axis=0)
    if vector:
        x = lax.reshape(x, (n,))
    return x, residuals, rank, s


def _same(x: Any, y: Any) -> tuple[Any, Any]:
    from .promotion import promote_dtypes

    x, y = promote_dtypes(x, y)
    return x, y


def lstsq(a: ArrayLike, b: ArrayLike, rcond: float | None = None, *,
          numpy_resid: bool = False) -> tuple[Array, Array, Array, Array]:
    """x that makes |a·x - b| least, with the squared residuals, the rank of `a` and its singular values.

    Args:
      rcond: singular values below this share of the largest count as 0.
      numpy_resid: whether the residuals are empty where NumPy's are; needs a concrete rank.

    Raises ValueError or TypeError for shapes that do not fit.
    """
    check_arraylike("linalg.lstsq", a, b)
    x, residuals, rank, s = _lstsq(unwrap(a), unwrap(b), rcond, numpy_resid=False)
    if numpy_resid and (int(rank) < shape_of(a)[-1] or shape_of(a)[0] <= shape_of(a)[1]):
        residuals = lax.full((0,), 0, residuals.dtype)
    return x, residuals, rank, s


@partial(jit, static_argnames=("hermitian",))
def _pinv(a: Any, rtol: Any = None, hermitian: bool = False) -> Any:
    a = conj(a)
    real = _real_dtype(a.dtype)
    if rtol is None:
        rtol = lax.mul(convert(10.0 * max(a.shape[-2:]), real), convert(float(dtypes.finfo(real).eps), real))
    rtol = convert(unwrap(rtol), real)
    if 0 in a.shape[-2:]:
        return _transposed(lax.full_like(a, 0)) if a.shape[-1] != a.shape[-2] else lax.full_like(a, 0)
    u, s, vh = svd(a, full_matrices=False, hermitian=hermitian)
    top = gather_elements(s, (..., slice(0, 1)))
    cutoff = lax.mul(lax.broadcast_in_dim(rtol, top.shape, tuple(range(len(shape_of(rtol))))), top)
    s = choose_elements(greater(s, cutoff), s, np.inf)
    right = divide(_transposed(u), convert(lax.expand_dims(s, (s.ndim,)), u.dtype))
    return contractions.matmul(_transposed(vh), right, precision=HIGHEST)


def pinv(a: ArrayLike, rtol: ArrayLike | None = None, hermitian: bool = False, *,
         rcond: ArrayLike | None = None) -> Array:
    """The pseudo-inverses of matrices, by their singular values.

    Those below `rtol` (also `rcond`) times the largest count as 0. `hermitian` says that `a` is.
    """
    if rcond is not None:
        rtol = rcond if rtol is None else rtol
    (a,) = _matrices("pinv", a)
    if a.ndim < 2:
        raise ValueError(f"{a.ndim}-dimensional array given. Array must be at least two-dimensional")
    return _pinv(a, rtol, hermitian)


def tensorinv(a: ArrayLike, ind: int = 2) -> Array:
    """The inverse of an array as a map from its last axes to its first `ind` ones. Raises ValueError for others."""
    (a,) = _matrices("tensorinv", a)
    ind = operator.index(ind)
    if ind <= 0:
        raise ValueError(f"ind must be a positive integer; got ind={ind}")
    rows, columns = a.shape[:ind], a.shape[ind:]
    if math.prod(rows) != math.prod(columns):
        raise ValueError("tensorinv is only possible when the product of the first `ind` dimensions equals that of the "
                         f"remaining dimensions. got arr.shape={a.shape} with {ind=}.")
    return lax.reshape(inv(lax.reshape(a, (math.prod(rows), math.prod(columns)))), (*columns, *rows))


def tensorsolve(a: ArrayLike, b: ArrayLike, axes: Sequence[int] | None = None) -> Array:
    """x with tensordot(a, x, x.ndim) = b. `axes` of `a` are moved to the end first."""
    a, b = _matrices("tensorsolve", a, b)
    if axes is not None:
        moved = axis_indices(axes, a.ndim)
        a = lax.transpose(a, (*(i for i in range(a.ndim) if i not in moved), *moved))
    shape = a.shape[b.ndim:]  # type: ignore[union-attr]
    if a.shape[:b.ndim] != b.shape:  # type: ignore[union-attr]
        raise ValueError(f"After moving axes to end, leading shape of a must match shape of b. got a.shape={a.shape}, "  # type: ignore[union-attr]
                         f"b.shape={b.shape}")
    if b.size != math.prod(shape):
        raise ValueError("Input arrays must have prod(a.shape[:b.ndim]) == prod(a.shape[b.ndim:]); got "
                         f"a.shape={a.shape}, b.ndim={b.ndim}.")  # type: ignore[union-attr]
    return lax.reshape(solve(lax.reshape(a, (b.size, b.size)), lax.reshape(b, (b.size,))), shape)


# -- determinants -----------------------------------------------------------------------------------------
def _lu_parity(pivots: Any, lu: Any) -> tuple[Any, Any]:
    """The diagonal of LU factors, and how many row exchanges (and negative real diagonals) there were."""
    diagonal = shaping.diagonal(lu, axis1=-2, axis2=-1)
    exchanged = lax.ne(pivots, lax.broadcasted_iota(pivots.dtype, pivots.shape, pivots.ndim - 1))
    return diagonal, reductions.count_nonzero(exchanged, axis=-1)


def _slogdet(a: ArrayLike, *, method: str | None = None) -> SlogdetResult:
    """The sign and the logarithm of the modulus of the determinants of square matrices.

    `method` "lu" and "qr" are accepted. Raises ValueError for matrices that are not square.
    """
    (a,) = _matrices("slogdet", a)
    _square("slogdet", a)
    if method not in (None, "lu", "qr"):
        raise ValueError(f"Unknown slogdet method '{method}'. Supported methods are 'lu' (`None`), and 'qr'.")
    kind = a.dtype
    lu, pivots, _ = lax_linalg.lu(a)
    diagonal, parity = _lu_parity(pivots, lu)
    singular = reductions.any(lax.eq(diagonal, convert(0, kind)), axis=-1)
    if dtypes.issubdtype(kind, np.complexfloating):
        sign = reductions.prod(divide(diagonal, convert(lax.abs(diagonal), kind)), axis=-1)
    else:
        sign = convert(1, kind)
        parity = add(parity, reductions.count_nonzero(lax.lt(diagonal, convert(0, kind)), axis=-1))
    from .binary import remainder

    odd = remainder(parity, 2)
    sign = multiply(sign, convert(add(multiply(-2, odd), 1), kind))
    real = _real_dtype(kind)
    sign = choose_elements(singular, convert(0, kind), sign)
    logdet = reductions.sum(lax.log(lax.abs(diagonal)), axis=-1)
    return SlogdetResult(sign, choose_elements(singular, convert(-np.inf, real), logdet))


slogdet = jit(named(_slogdet, "slogdet"), static_argnames=("method",))


def _entry(a: Any, i: int, j: int) -> Any:
    return gather_elements(a, (..., i, j))


def _det2(a: Any) -> Any:
    return lax.sub(lax.mul(_entry(a, 0, 0), _entry(a, 1, 1)), lax.mul(_entry(a, 0, 1), _entry(a, 1, 0)))


def _det3(a: Any) -> Any:
    def product(*places: tuple[int, int]) -> Any:
        out = _entry(a, *places[0])
        for place in places[1:]:
            out = lax.mul(out, _entry(a, *place))
        return out

    total = lax.add(product((0, 0), (1, 1), (2, 2)), product((0, 1), (1, 2), (2, 0)))
    total = lax.add(total, product((0, 2), (1, 0), (2, 1)))
    total = lax.sub(total, product((0, 2), (1, 1), (2, 0)))
    total = lax.sub(total, product((0, 0), (1, 2), (2, 1)))
    return lax.sub(total, product((0, 1), (1, 0), (2, 2)))


@custom_jvp
def _det(a: Any) -> Any:
    sign, logdet = slogdet(a)
    return multiply(sign, convert(lax.exp(logdet), sign.dtype))


@_det.defjvp
def _det_jvp(primals: tuple, tangents: tuple) -> tuple:
    # d det(a) = trace(adj(a)·da). The adjugate times da comes from the LU factors with the last pivot
    # divided out, so that it is right for matrices of rank n - 1, too.
    (a,), (t,) = primals, tangents
    lu, pivots, permutation = lax_linalg.lu(a)
    diagonal, parity = _lu_parity(pivots, lu)
    from .binary import remainder
    from .cumulative import cumprod
    from .updates import scatter

    sign = convert(add(multiply(-2, remainder(parity, 2)), 1), a.dtype)
    products = multiply(cumprod(diagonal, axis=-1), lax.expand_dims(sign, (sign.ndim,)))
    det_ = gather_elements(products, (..., -1))
    partial_det = gather_elements(products, (..., -2))
    last = gather_elements(diagonal, (..., -1))
    x = lax_linalg.triangular_solve(lu, _permuted_rows(t, permutation), left_side=True, lower=True, unit_diagonal=True)
    x = lax.concatenate([
        multiply(gather_elements(x, (..., slice(None, -1), slice(None))),
                 lax.expand_dims(multiply(last, partial_det), (last.ndim, last.ndim + 1))),
        multiply(gather_elements(x, (..., slice(-1, None), slice(None))),
                 lax.expand_dims(partial_det, (partial_det.ndim, partial_det.ndim + 1)))], x.ndim - 2)
    upper = scatter(lu, (..., -1, -1), 1, "set")
    adjugate_t = lax_linalg.triangular_solve(upper, x, left_side=True, lower=False)
    return det_, shaping.trace(adjugate_t, axis1=-1, axis2=-2)


@jit
def det(a: ArrayLike) -> Array:
    """The determinants of square matrices. Raises ValueError for others.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.linalg.det(jnp.array([[1.0, 2.0], [3.0, 5.0]]))
      Array(-1., dtype=float32)
    """
    (a,) = _matrices("det", a)
    if a.ndim >= 2 and a.shape[-2:] == (2, 2):
        return _det2(a)
    if a.ndim >= 2 and a.shape[-2:] == (3, 3):
        return _det3(a)
    _square("det", a)
    if a.shape[-1] == 0:
        return lax.full(a.shape[:-2], 1, a.dtype)
    if a.shape[-1] == 1:
        return _entry(a, 0, 0)
    return _det(a)


# -- norms -------------------------------------------------------------------------------------------------
def _modulus_squared(x: Any) -> Any:
    if dtypes.issubdtype(x.dtype, np.complexfloating):
        return lax.real(lax.mul(x, lax.conj(x)))
    return lax.mul(x, x)


def _norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """The norms of vectors or matrices.

    Args:
      ord: which one. Of vectors any number p (2 by default), ±∞ and 0 (how many are nonzero); of matrices
        "fro" (the default), "nuc", ±1, ±2 and ±∞.
      axis: one axis for vectors, two for matrices; by default all axes.
      keepdims: whether reduced axes stay, with size 1.

    Raises ValueError for norms that do not exist.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.linalg.norm(jnp.array([3.0, 4.0]))
      Array(5., dtype=float32)
    """
    (x,) = _matrices("norm", x)
    rank = x.ndim
    if axis is None:
        if ord is None:
            return lax.sqrt(reductions.sum(_modulus_squared(x), keepdims=keepdims))
        axes: tuple[int, ...] = tuple(range(rank))
    else:
        axes = axis_indices(tuple(axis) if isinstance(axis, (tuple, list)) else (operator.index(axis),), rank)
    if len(axes) == 1:
        return _vector_norm(x, ord, axes, keepdims)
    if len(axes) == 2:
        return _matrix_norm(x, ord, axes, keepdims)
    raise ValueError(f"Improper number of axes for norm: axis={axis}. Pass one axis to compute a vector-norm, or two "
                     f"axes to compute a matrix-norm.")


def _vector_norm(x: Any, ord: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    if ord is None or (not hasattr(ord, "aval") and not isinstance(ord, str) and ord == 2):
        return lax.sqrt(reductions.sum(_modulus_squared(x), axis=axes, keepdims=keepdims))
    if isinstance(ord, str):
        raise ValueError(f"Invalid order '{ord}' for vector norm.")
    if not hasattr(ord, "aval"):
        if ord == np.inf:
            return reductions.max(lax.abs(x), axis=axes, keepdims=keepdims, initial=0)
        if ord == -np.inf:
            return reductions.min(lax.abs(x), axis=axes, keepdims=keepdims, initial=np.inf)
        if ord == 0:
            return reductions.sum(
                lax.ne(x, convert(0, x.dtype)), axis=axes, dtype=_real_dtype(x.dtype), keepdims=keepdims
            )
        if ord == 1:
            return reductions.sum(lax.abs(x), axis=axes, keepdims=keepdims)
    size = lax.abs(x)
    exponent = convert(unwrap(ord), size.dtype)
    total = reductions.sum(lax.pow(size, exponent), axis=axes, keepdims=keepdims)
    inverse = convert(1.0 / ord, size.dtype) if not hasattr(ord, "aval") else lax.div(convert(1, size.dtype), exponent)
    return lax.pow(total, inverse)


def _matrix_norm(x: Any, ord: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    row, column = axes

    def restored(out: Any) -> Any:
        return lax.expand_dims(out, tuple(sorted(axes))) if keepdims else out

    if ord is None or ord in ("f", "fro"):
        return lax.sqrt(reductions.sum(_modulus_squared(x), axis=axes, keepdims=keepdims))
    if ord in (1, -1, np.inf, -np.inf):
        first, second = (row, column) if ord in (1, -1) else (column, row)
        if not keepdims and second > first:
            second -= 1
        sums = reductions.sum(lax.abs(x), axis=first, keepdims=keepdims)
        if ord in (1, np.inf):
            return reductions.max(sums, axis=second, keepdims=keepdims, initial=0)
        return reductions.min(sums, axis=second, keepdims=keepdims, initial=np.inf)
    if ord in ("nuc", 2, -2):
        moved = shaping.moveaxis(x, axes, (-2, -1))
        s = svd(moved, compute_uv=False)
        if ord == "nuc":
            out = reductions.sum(s, axis=-1)
        elif ord == 2:
            out = reductions.max(s, axis=-1, initial=0)
        else:
            out = reductions.min(s, axis=-1, initial=np.inf)
        return restored(out)
    raise ValueError(f"Invalid order '{ord}' for matrix norm.")


_norm_jit = jit(named(_norm, "norm"), static_argnames=("ord", "axis", "keepdims"))
_norm_dynamic = jit(_norm, static_argnames=("axis", "keepdims"))


def _norm_entry(x: ArrayLike, ord: int | float | str | None = None, axis: Axis = None, keepdims: bool = False) -> Array:
    axis = tuple(axis) if isinstance(axis, list) else axis
    if hasattr(ord, "aval"):
        return _norm_dynamic(x, ord, axis, keepdims)
    return _norm_jit(x, ord, axis, keepdims)


norm = named(_norm_entry, "norm", _norm.__doc__)


def matrix_norm(x: ArrayLike, /, *, keepdims: bool = False, ord: int | float | str = "fro") -> Array:
    """The norms of matrices. `ord` as for `norm`."""
    return norm(x, ord=ord, keepdims=keepdims, axis=(-2, -1))


def vector_norm(x: ArrayLike, /, *, axis: Axis = None, keepdims: bool = False, ord: int | float | str = 2) -> Array:
    """The norms of vectors along one axis, several taken together, or all. `ord` as for `norm`."""
    (x,) = _matrices("vector_norm", x)
    axes = axis_indices(tuple(axis) if isinstance(axis, (tuple, list)) else axis, x.ndim)
    if ord is None or (not hasattr(ord, "aval") and ord == 2):
        return lax.sqrt(reductions.sum(_modulus_squared(x), axis=axes, keepdims=keepdims))
    return _vector_norm(x, ord, axes, keepdims)


def _cond(x: ArrayLike, p: int | float | str | None = None) -> Array:
    """The condition numbers of matrices in a norm p: 2 (the default) by singular values, others by the inverse.

    Raises ValueError for empty arrays and rank below 2.
    """
    (x,) = _matrices("cond", x)
    if x.ndim < 2:
        raise ValueError(f"jnp.linalg.cond: input array must be at least 2D; got x.shape={x.shape}")
    if x.size == 0:
        raise ValueError(f"jnp.linalg.cond: input array must not be empty; got x.shape={x.shape}")
    if p is None or p == 2:
        s = svd(x, compute_uv=False)
        return divide(gather_elements(s, (..., 0)), gather_elements(s, (..., -1)))
    if p == -2:
        s = svd(x, compute_uv=False)
        return divide(gather_elements(s, (..., -1)), gather_elements(s, (..., 0)))
    if x.shape[-1] != x.shape[-2]:
        raise ValueError(f"jnp.linalg.cond: for p={p!r}, array must be square; got x.shape={x.shape}")
    r = multiply(norm(x, ord=p, axis=(-2, -1)), norm(inv(x), ord=p, axis=(-2, -1)))
    # NaN in the result is infinity, unless it was in the matrix.
    unknown = lax.bitwise_and(lax.ne(r, r), lax.bitwise_not(reductions.any(lax.ne(x, x), axis=(-2, -1))))
    return choose_elements(unknown, np.inf, r)


cond = jit(named(_cond, "cond"), static_argnames=("p",))


def _matrix_rank(M: ArrayLike, rtol: ArrayLike | None = None, *, hermitian: bool = False,
                 tol: ArrayLike | None = None) -> Array:
    """How many singular values of each matrix exceed `rtol` times the largest one."""
    (m,) = _matrices("matrix_rank", M)
    if m.ndim < 2:
        return convert(reductions.any(lax.ne(m, convert(0, m.dtype))), np.dtype(np.int32))
    s = svd(m, full_matrices=False, compute_uv=False, hermitian=hermitian)
    if tol is not None:
        threshold = convert(unwrap(tol), s.dtype)
        threshold = lax.broadcast_in_dim(threshold, s.shape[:-1], ()) if shape_of(threshold) == () else threshold
    else:
        top = reductions.max(s, axis=-1)
        if rtol is None:
            threshold = multiply(multiply(top, np.asarray(max(m.shape[-2:]), s.dtype)),
                                 np.asarray(dtypes.finfo(s.dtype).eps, s.dtype))
        else:
            threshold = multiply(top, rtol)
    return reductions.sum(greater(s, lax.expand_dims(threshold, (threshold.ndim,))), axis=-1)


matrix_rank = jit(named(_matrix_rank, "matrix_rank"), static_argnames=("hermitian",))


# -- products --------------------------------------------------------------------------------------------
def _matrix_power(a: ArrayLike, n: int) -> Array:
    """The n-th powers of square matrices; negative n takes the inverses. Raises TypeError for other n."""
    (a,) = _matrices("matrix_power", a)
    if a.ndim < 2:
        raise TypeError(f"{a.ndim}-dimensional array given. Array must be at least two-dimensional")
    if a.shape[-2] != a.shape[-1]:
        raise TypeError("Last 2 dimensions of the array must be square")
    try:
        n = operator.index(n)
    except TypeError as error:
        raise TypeError(f"exponent must be an integer, got {n}") from error
    if n == 0:
        return spread(eye(a.shape[-1], dtype=a.dtype), a.shape)
    if n < 0:
        a, n = inv(a), -n
    if n == 1:
        return a
    if n == 2:
        return contractions.matmul(a, a)
    if n == 3:
        return contractions.matmul(contractions.matmul(a, a), a)
    square: Any = None
    out: Any = None
    while n > 0:
        square = a if square is None else contractions.matmul(square, square)
        n, bit = divmod(n, 2)
        if bit:
            out = square if out is None else contractions.matmul(out, square)
    return out


matrix_power = jit(named(_matrix_power, "matrix_power"), static_argnames=("n",))


def multi_dot(arrays: Sequence[ArrayLike], *, precision: lax.PrecisionLike = None) -> Array:
    """The product of two or more matrices in the order that takes least work; vectors at the ends.

    Raises ValueError for fewer, and for other ranks.
    """
    check_arraylike("jnp.linalg.multi_dot", *arrays)
    members = [asarray(unwrap(x)) for x in arrays]
    if len(members) < 2:
        raise ValueError(f"multi_dot requires at least two arrays; got len(arrays)={len(members)}")
    if any(x.ndim not in (1, 2) for x in (members[0], members[-1])) or any(x.ndim != 2 for x in members[1:-1]):
        raise ValueError("multi_dot: input arrays must all be two-dimensional, except for the first and last array "
                         f"which may be 1 or 2 dimensional. Got shapes={[x.shape for x in members]}")
    if any(a.shape[-1] != b.shape[0] for a, b in zip(members[:-1], members[1:])):
        raise ValueError("multi_dot: last dimension of each array must match first dimension of following array. Got "
                         f"shapes={[x.shape for x in members]}")
    from .einsum import einsum

    operands: list[Any] = []
    for i, x in enumerate(members):
        operands += [x, [i, i + 1] if x.ndim == 2 else [i + 1] if i == 0 else [i]]
    n = len(members)
    output = [*([0] if members[0].ndim == 2 else []), *([n] if members[-1].ndim == 2 else [])]
    return einsum(*operands, output, optimize="optimal", precision=precision)


def cross(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1) -> Array:
    """The cross product of vectors with 3 components along `axis`. Raises ValueError for others."""
    x1, x2 = arrays("jnp.linalg.outer", x1, x2)
    if shape_of(x1)[axis] != 3 or shape_of(x2)[axis] != 3:
        raise ValueError(f"Both input arrays must be (arrays of) 3-dimensional vectors, but they have "
                         f"x1.shape[axis]={shape_of(x1)[axis]} and x2.shape[axis]={shape_of(x2)[axis]}")
    return contractions.cross(x1, x2, axis=axis)


def outer(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """All products of elements of two vectors. Raises ValueError for other ranks."""
    x1, x2 = arrays("jnp.linalg.outer", x1, x2)
    if len(shape_of(x1)) != 1 or len(shape_of(x2)) != 1:
        raise ValueError(f"Input arrays must be one-dimensional, but they are x1.ndim={len(shape_of(x1))} "
                         f"x2.ndim={len(shape_of(x2))}")
    return contractions.outer(x1, x2)


def matmul(x1: ArrayLike, x2: ArrayLike, /, *, precision: lax.PrecisionLike = None,
           preferred_element_type: DTypeLike | None = None) -> Array:
    """The matrix product. See `jax.numpy.matmul`."""
    return contractions.matmul(x1, x2, precision=precision, preferred_element_type=preferred_element_type)


def vecdot(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1, precision: lax.PrecisionLike = None,
           preferred_element_type: DTypeLike | None = None) -> Array:
    """The products of vectors. See `jax.numpy.vecdot`."""
    return contractions.vecdot(x1, x2, axis=axis, precision=precision, preferred_element_type=preferred_element_type)


def tensordot(x1: ArrayLike, x2: ArrayLike, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2,
              precision: lax.PrecisionLike = None, preferred_element_type: DTypeLike | None = None,
              out_sharding: ShardingLike | None = None) -> Array:
    """The product over several axes. See `jax.numpy.tensordot`."""
    return contractions.tensordot(x1, x2, axes=axes, precision=precision, preferred_element_type=preferred_element_type,
                                  out_sharding=out_sharding)


def matrix_transpose(x: ArrayLike, /) -> Array:
    """The matrices transposed. Raises ValueError below rank 2."""
    return shaping.matrix_transpose(x)


def diagonal(x: ArrayLike, /, *, offset: int = 0) -> Array:
    """The diagonals of matrices."""
    check_arraylike("jnp.linalg.diagonal", x)
    return shaping.diagonal(x, offset=offset, axis1=-2, axis2=-1)


def trace(x: ArrayLike, /, *, offset: int = 0, dtype: DTypeLike | None = None) -> Array:
    """The sums of the diagonals of matrices."""
    check_arraylike("jnp.linalg.trace", x)
    return shaping.trace(
        x, offset=offset, axis1=-2, axis2=-1, dtype=None if dtype is None else user_dtype(dtype, "trace")
    )
