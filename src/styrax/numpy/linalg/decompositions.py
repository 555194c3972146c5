"""Decompositions: Cholesky, QR, singular values, eigenvalues."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, overload

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.programs.named import named
from styrax.core.types.typing import ArrayLike
from styrax.lax import linalg as lax_linalg
from styrax.transforms.jit import jit_for_all_shapes as jit

from ..binary import multiply
from ..promotion import convert
from ..sorting import argsort
from .operands import adjoint, matrices, transposed


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


class SVDResult(NamedTuple):
    """Singular vectors and values."""

    U: Array
    S: Array
    Vh: Array


def _cholesky(a: ArrayLike, *, upper: bool = False, symmetrize_input: bool = True) -> Array:
    """The Cholesky factors of Hermitian positive definite matrices: L·Lᴴ = a, or Uᴴ·U = a.

    Args:
      a: matrices of shape `[..., n, n]`; integers are taken as floats.
      upper: whether the upper factor U is given instead of the lower one L.
      symmetrize_input: whether (a + aᴴ)/2 is factored; otherwise only the lower triangle is read.

    Returns:
      triangular matrices of the shape of `a`; NaN where a matrix is not positive definite.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.linalg.cholesky(jnp.array([[4.0, 2.0], [2.0, 5.0]]))
      Array([[2., 0.],
             [1., 2.]], dtype=float32)
    """
    (a,) = matrices("cholesky", a)
    factor = lax_linalg.cholesky(a, symmetrize_input=symmetrize_input)
    return adjoint(factor) if upper else factor


cholesky = jit(named(_cholesky, "cholesky"), static_argnames=("upper", "symmetrize_input"))


def _packed_factors(matrix: Array) -> QRResult:
    """R and the reflectors below it, transposed as LAPACK keeps them, and the reflectors' factors."""
    packed, taus = lax_linalg.geqrf(matrix)
    return QRResult(transposed(packed), taus)


def _factors(matrix: Array, square: bool = False) -> QRResult:
    return QRResult(*lax_linalg.qr(matrix, pivoting=False, full_matrices=square))


# Householder's reflections ("Unitary triangularization of a nonsymmetric matrix", 1958), and what is made of them.
_QR_MODES: dict[str, Callable[[Array], Array | QRResult]] = {
    "reduced": _factors, "complete": partial(_factors, square=True), "r": lambda matrix: _factors(matrix).R,
    "raw": _packed_factors, "full": _factors,
}


def _qr(a: ArrayLike, mode: str = "reduced") -> Array | QRResult:
    """Matrices Q with orthonormal columns and upper triangular ones R with Q·R = a, by Householder's reflections
    ("Unitary triangularization of a nonsymmetric matrix", 1958).

    Args:
      a: matrices of shape `[..., m, n]`; integers are taken as floats. Let k be the smaller of m and n.
      mode: "reduced" for Q of shape `[..., m, k]` and R of `[..., k, n]`, "complete" for `[..., m, m]` and
        `[..., m, n]`, "r" for the R of "reduced" alone, or "raw" for LAPACK's packed form: the transpose of R
        with the reflections beside it, `[..., n, m]`, and their factors, `[..., k]`.

    Returns:
      a `QRResult` of `Q` and `R`, or an array with "r". The diagonal of R may be negative.

    Raises:
      ValueError: for another mode.

    Example:
      >>> import styrax.numpy as jnp
      >>> q, r = jnp.linalg.qr(jnp.eye(2) * 2)
      >>> q.shape, r.shape
      ((2, 2), (2, 2))
    """
    if mode not in _QR_MODES:
        raise ValueError(f"Unsupported QR decomposition mode '{mode}': it is one of {', '.join(_QR_MODES)}")
    (matrix,) = matrices("qr", a)
    return _QR_MODES[mode](matrix)


qr = jit(named(_qr, "qr"), static_argnames=("mode",))


def _svd(a: ArrayLike, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False,
         subset_by_index: tuple[int, int] | None = None) -> Array | SVDResult:
    """Singular vectors U, values S and vectors Vᴴ with U·diag(S)·Vᴴ = a.

    Args:
      a: matrices of shape `[..., m, n]`; integers are taken as floats. Let k be the smaller of m and n.
      full_matrices: whether U and Vᴴ are square, or of shape `[..., m, k]` and `[..., k, n]`.
      compute_uv: whether the vectors are given; otherwise S alone.
      hermitian: whether `a` is known to be Hermitian: its eigenvectors are used then.
      subset_by_index: the range `(first, end)` of the singular values wanted. CPUs give all or none.

    Returns:
      an `SVDResult` of `U`, `S` (real, falling, `[..., k]`) and `Vh`, or S.

    Example:
      >>> import styrax.numpy as jnp
      >>> _, s, _ = jnp.linalg.svd(jnp.diag(jnp.array([3.0, 4.0])))
      >>> s
      Array([4., 3.], dtype=float32)
    """
    (a,) = matrices("svd", a)
    if hermitian:
        w, v = lax_linalg.eigh(a, lower=True, symmetrize_input=True, subset_by_index=subset_by_index)[::-1]
        s = lax.abs(w)
        order = lax.rev(argsort(s, axis=-1), (s.ndim - 1,))
        from ..selection import take_along_axis

        s = take_along_axis(s, order, -1)
        if not compute_uv:
            return s
        sign = lax.sign(take_along_axis(w, order, -1))
        columns = take_along_axis(v, lax.expand_dims(order, (order.ndim - 1,)), -1)
        left = multiply(columns, convert(lax.expand_dims(sign, (sign.ndim - 1,)), columns.dtype))
        return SVDResult(left, s, adjoint(columns))
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
    """The singular values of matrices.

    Args:
      x: matrices of shape `[..., m, n]`; integers are taken as floats.

    Returns:
      real numbers, falling, of shape `[..., min(m, n)]`.
    """
    return svd(x, compute_uv=False, hermitian=False)


def _eigh(a: ArrayLike, UPLO: str | None = None, symmetrize_input: bool = True) -> EighResult:
    """Eigenvalues and eigenvectors of Hermitian matrices. Where eigenvalues coincide, gradients of the vectors are NaN.

    Args:
      a: matrices of shape `[..., n, n]`; integers are taken as floats.
      UPLO: the triangle that is read, "L" (also for None) or "U".
      symmetrize_input: whether (a + aᴴ)/2 is taken first: both triangles count then.

    Returns:
      an `EighResult` of `eigenvalues`, real and rising, `[..., n]`, and `eigenvectors`, orthonormal columns of
      `[..., n, n]`.

    Raises:
      ValueError: for another `UPLO`.

    Example:
      >>> import styrax.numpy as jnp
      >>> w, v = jnp.linalg.eigh(jnp.diag(jnp.array([2.0, 1.0])))
      >>> w
      Array([1., 2.], dtype=float32)
    """
    if UPLO not in (None, "L", "U"):
        raise ValueError(f"UPLO must be one of None, 'L', or 'U', got {UPLO}")
    (a,) = matrices("eigh", a)
    v, w = lax_linalg.eigh(a, lower=UPLO in (None, "L"), symmetrize_input=symmetrize_input)
    return EighResult(w, v)


eigh = jit(named(_eigh, "eigh"), static_argnames=("UPLO", "symmetrize_input"))


def _eigvalsh(a: ArrayLike, UPLO: str | None = "L", *, symmetrize_input: bool = True) -> Array:
    """The eigenvalues of Hermitian matrices.

    Args:
      a, UPLO, symmetrize_input: as for `eigh`.

    Returns:
      real numbers, rising, of shape `[..., n]`.
    """
    (a,) = matrices("eigvalsh", a)
    return eigh(a, UPLO, symmetrize_input=symmetrize_input)[0]


eigvalsh = jit(named(_eigvalsh, "eigvalsh"), static_argnames=("UPLO", "symmetrize_input"))


def eig(a: ArrayLike) -> EigResult:
    """Eigenvalues and right eigenvectors of square matrices, by LAPACK.

    Args:
      a: matrices of shape `[..., n, n]`; integers are taken as floats.

    Returns:
      an `EigResult` of `eigenvalues`, complex, in no order, `[..., n]`, and `eigenvectors`, complex columns of
      length 1, `[..., n, n]`.

    Raises:
      ValueError: for matrices that are not square.
    """
    (a,) = matrices("eig", a)
    w, v = lax_linalg.eig(a, compute_left_eigenvectors=False)
    return EigResult(w, v)


@jit
def eigvals(a: ArrayLike) -> Array:
    """The eigenvalues of square matrices, by LAPACK.

    Args:
      a: matrices of shape `[..., n, n]`; integers are taken as floats.

    Returns:
      complex numbers, in no order, of shape `[..., n]`.

    Raises:
      ValueError: for matrices that are not square.
    """
    (a,) = matrices("eigvals", a)
    return lax_linalg.eig(a, compute_left_eigenvectors=False, compute_right_eigenvectors=False)[0]
