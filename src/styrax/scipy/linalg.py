"""Linear algebra with SciPy's signatures: factorizations, systems of equations, and matrices of matrices.

Eigenvalues (`eigh`, `schur`, …), functions of matrices (`expm`, `sqrtm`, …) and matrices of known form (`toeplitz`, …)
live in their own modules and are loaded when first used.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.programs.named import named
from styrax.core.types import dtypes
from styrax.core.types.typing import ArrayLike
from styrax.lax import linalg as lax_linalg
from styrax.lazy import names as _names
from styrax.numpy import dot_products
from styrax.numpy import linalg as _linalg
from styrax.numpy.broadcasting import spread, spread_all
from styrax.numpy.conversion import asarray
from styrax.numpy.patterns import eye, tril, triu
from styrax.numpy.promotion import arrays, convert, promote_dtypes_inexact
from styrax.numpy.shaping import atleast_2d
from styrax.transforms.jit import jit_for_all_shapes as jit

if TYPE_CHECKING:  # the same names for type checkers and editors
    from .eigenvalues import eigh as eigh
    from .eigenvalues import eigh_tridiagonal as eigh_tridiagonal
    from .eigenvalues import hessenberg as hessenberg
    from .eigenvalues import schur as schur
    from .matrix_functions import expm as expm
    from .matrix_functions import expm_frechet as expm_frechet
    from .matrix_functions import funm as funm
    from .matrix_functions import polar as polar
    from .matrix_functions import rsf2csf as rsf2csf
    from .matrix_functions import solve_sylvester as solve_sylvester
    from .matrix_functions import sqrtm as sqrtm
    from .special_matrices import circulant as circulant
    from .special_matrices import companion as companion
    from .special_matrices import convolution_matrix as convolution_matrix
    from .special_matrices import dft as dft
    from .special_matrices import fiedler as fiedler
    from .special_matrices import fiedler_companion as fiedler_companion
    from .special_matrices import hadamard as hadamard
    from .special_matrices import hankel as hankel
    from .special_matrices import helmert as helmert
    from .special_matrices import hilbert as hilbert
    from .special_matrices import invhilbert as invhilbert
    from .special_matrices import invpascal as invpascal
    from .special_matrices import leslie as leslie
    from .special_matrices import pascal as pascal
    from .special_matrices import toeplitz as toeplitz

HIGHEST = lax.Precision.HIGHEST

__getattr__, __dir__, _ = _names(__name__, {
    "scipy.eigenvalues": "eigh eigh_tridiagonal hessenberg schur",
    "scipy.matrix_functions": "expm expm_frechet funm polar rsf2csf solve_sylvester sqrtm",
    "scipy.special_matrices": """
        circulant companion convolution_matrix dft fiedler fiedler_companion hadamard hankel helmert hilbert invhilbert
        invpascal leslie pascal toeplitz""",
})


def _inexact(*args: Any) -> list[Array]:
    return [asarray(x) for x in promote_dtypes_inexact(*args)]


def _adjoint(x: Any) -> Array:
    y = lax.transpose(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))
    return lax.conj(y) if dtypes.issubdtype(y.dtype, np.complexfloating) else y


def _over_batches(function: Callable[..., Any], call: str, b: Any, a: Any, *more: Any) -> Any:
    """`function(a, *more, b)` of one matrix and a vector or matrix of right-hand sides, over leading axes of all.

    `more` are vectors that come with each matrix; `call` is what users write but for `b`, for a warning.
    """
    vectors = b.ndim == 1
    if not vectors and a.ndim == b.ndim + 1 and a.shape[-1] == b.shape[-1]:
        vectors = True
        name = call.partition("(")[0]
        warnings.warn(f"jax.scipy.linalg.{name}: batched 1D solves with b.ndim > 1 are deprecated, and in the future "
                      f"will be treated as a batched 2D solve. Use {call}b[..., None]).squeeze(-1) to avoid this "
                      "warning.", FutureWarning, stacklevel=2)
    if b.ndim in (1, 2) and a.shape == 2 * b.shape[:1] and all(x.ndim == 1 for x in more):
        return function(a, *more, b)
    from styrax.numpy.vectorization import vectorize

    right = "(n)->(n)" if vectors else "(n,k)->(n,k)"
    return vectorize(function, signature=",".join(["(n,n)", *("(n)" for _ in more), right]))(a, *more, b)


# -- factorizations ------------------------------------------------------------------------------------
@partial(jit, static_argnames=("lower",))
def _cholesky(a: Any, lower: bool) -> Array:
    (a,) = _inexact(asarray(a))
    if a.ndim < 2:
        raise ValueError(f"x must be at least two-dimensional for matrix_transpose; got ndim={a.ndim}")
    factor = lax_linalg.cholesky(a if lower else _adjoint(a), symmetrize_input=False)
    return factor if lower else _adjoint(factor)


def cholesky(a: ArrayLike, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The triangular factor of positive definite matrices: U with Uᴴ·U = a, or L with L·Lᴴ = a.

    Args:
      a: shape [..., n, n]; only the triangle that is asked for is read.
      lower: whether to return the lower factor L.
      overwrite_a, check_finite: ignored.

    Returns:
      an array of the shape of `a`, zero in the other triangle; NaN for a matrix that is not positive definite. Integers
      become floats.

    Raises ValueError for rank below 2 and matrices that are not square.

    Example:
      >>> import styrax.scipy.linalg as linalg
      >>> import styrax.numpy as jnp
      >>> linalg.cholesky(jnp.array([[4.0, 2.0], [2.0, 5.0]]), lower=True)
      Array([[2., 0.],
             [1., 2.]], dtype=float32)
    """
    del overwrite_a, check_finite
    return _cholesky(a, lower)


def cho_factor(a: ArrayLike, lower: bool = False, overwrite_a: bool = False,
               check_finite: bool = True) -> tuple[Array, bool]:
    """The Cholesky factor as `cho_solve` takes it.

    Args:
      a: Hermitian positive definite matrices, shape [..., n, n]; only the triangle that is asked for is read.
      lower: whether to return L with L·Lᴴ = a, and not U with Uᴴ·U = a.
      overwrite_a, check_finite: ignored.

    Returns:
      a pair of the factor, as `cholesky` returns it, and `lower`.
    """
    return cholesky(a, lower=lower, overwrite_a=overwrite_a, check_finite=check_finite), lower


def _triangular(a: Any, b: Any, **flags: Any) -> Array:
    """Solves with triangular matrices; a right side of rank 1 is one column."""
    vector = b.ndim == 1
    out = lax_linalg.triangular_solve(a, lax.expand_dims(b, (1,)) if vector else b, left_side=True, **flags)
    return lax.squeeze(out, (out.ndim - 1,)) if vector else out


@partial(jit, static_argnames=("lower",))
def _cho_solve(c: Any, b: Any, lower: bool) -> Array:
    c, b = _inexact(asarray(c), asarray(b))
    complex_ = dtypes.issubdtype(c.dtype, np.complexfloating)

    def one(c: Any, b: Any) -> Array:
        b = _triangular(c, b, lower=lower, transpose_a=not lower, conjugate_a=complex_ and not lower)
        return _triangular(c, b, lower=lower, transpose_a=lower, conjugate_a=complex_ and lower)

    return _over_batches(one, "cho_solve(c_and_lower, ", b, c)


def cho_solve(c_and_lower: tuple[ArrayLike, bool], b: ArrayLike, overwrite_b: bool = False,
              check_finite: bool = True) -> Array:
    """Solves a·x = b for positive definite matrices a with their Cholesky factors.

    Args:
      c_and_lower: what `cho_factor` returned for a, shape [..., n, n].
      b: shape [n], [..., n, k], or [..., n] with one axis less than a.
      overwrite_b, check_finite: ignored.

    Returns:
      x, an array of the shape of `b` broadcast against leading axes of a.

    Raises ValueError for shapes that do not fit.
    """
    del overwrite_b, check_finite
    c, lower = c_and_lower
    return _cho_solve(c, b, bool(lower))


@partial(jit, static_argnames=("full_matrices", "compute_uv"))
def _svd(a: Any, *, full_matrices: bool, compute_uv: bool) -> Any:
    (a,) = _inexact(asarray(a))
    out = lax_linalg.svd(a, full_matrices=full_matrices, compute_uv=compute_uv)
    return tuple(out) if compute_uv else out


def svd(a: ArrayLike, full_matrices: bool = True, compute_uv: bool = True, overwrite_a: bool = False,
        check_finite: bool = True, lapack_driver: str = "gesdd") -> Array | tuple[Array, Array, Array]:
    """The singular value decomposition a = U·diag(s)·Vᴴ: a tuple (U, s, Vᴴ), or s alone without `compute_uv`.

    Args:
      a: shape [..., m, n].
      full_matrices: whether U and Vᴴ are square; otherwise they have min(m, n) columns and rows.
      compute_uv: whether to return U and Vᴴ.
      overwrite_a, check_finite, lapack_driver: ignored.

    Returns:
      U of shape [..., m, m] or [..., m, k], s of shape [..., k], real, falling, and Vᴴ of shape [..., n, n] or
      [..., k, n], where k = min(m, n). Integers become floats.
    """
    del overwrite_a, check_finite, lapack_driver
    return _svd(a, full_matrices=full_matrices, compute_uv=compute_uv)


def det(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The determinants of square matrices.

    Args:
      a: shape [..., n, n].
      overwrite_a, check_finite: ignored.

    Returns:
      an array of shape [...], 1 for n = 0; integers become floats.

    Raises ValueError for matrices that are not square.

    Example:
      >>> import styrax.scipy.linalg as linalg
      >>> import styrax.numpy as jnp
      >>> linalg.det(jnp.array([[2.0, 0.0], [0.0, 4.0]]))
      Array(8., dtype=float32)
    """
    del overwrite_a, check_finite
    return _linalg.det(a)


def inv(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The inverses of square matrices.

    Args:
      a: shape [..., n, n].
      overwrite_a, check_finite: ignored.

    Returns:
      an array of the shape of `a`, with infinities or NaN where it is singular; integers become floats.

    Raises ValueError for matrices that are not square.
    """
    del overwrite_a, check_finite
    return _linalg.inv(a)


@jit
def lu_factor(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> tuple[Array, Array]:
    """The factors of a = P·L·U in one array, as `lu_solve` takes them.

    Args:
      a: shape [..., m, n].
      overwrite_a, check_finite: ignored.

    Returns:
      a pair: U on and above the diagonal with L below it, whose ones are left out, in the shape of `a`; and the pivots,
      int32 of shape [..., min(m, n)]: row i was exchanged with row pivots[i], one after the other.
    """
    del overwrite_a, check_finite
    (a,) = _inexact(asarray(a))
    factors, pivots, _ = lax_linalg.lu(a)
    return factors, pivots


@partial(jit, static_argnums=(3,))
def _lu_solve(lu: Any, permutation: Any, b: Any, trans: int) -> Array:
    vector = b.ndim == 1
    out = _linalg.lu_solve_by_permutation(lu, permutation, lax.expand_dims(b, (1,)) if vector else b, trans)
    return lax.squeeze(out, (out.ndim - 1,)) if vector else out


def _lu_solve_entry(lu_and_piv: tuple[ArrayLike, ArrayLike], b: ArrayLike, trans: int = 0, overwrite_b: bool = False,
                    check_finite: bool = True) -> Array:
    """Solves a·x = b, or with the transpose of a, by its LU factors.

    Args:
      lu_and_piv: what `lu_factor` returned for a, shape [..., n, n].
      b: shape [n], [..., n, k], or [..., n] with one axis less than a.
      trans: 0 for a·x = b, 1 for aᵀ·x = b, 2 for aᴴ·x = b.
      overwrite_b, check_finite: ignored.

    Returns:
      x, an array of the shape of `b` broadcast against leading axes of a.

    Raises ValueError for other values of `trans` and shapes that do not fit.
    """
    del overwrite_b, check_finite
    lu, pivots = lu_and_piv
    lu, b = _inexact(asarray(lu), asarray(b))
    if trans not in (0, 1, 2):
        raise ValueError(f"'trans' value must be 0, 1, or 2, got {trans}")
    if lu.ndim < 2:
        raise ValueError(f"lu_solve takes factors of shape [..., n, n], got {lu.shape}")
    permutation = lax_linalg.lu_pivots_to_permutation(asarray(pivots), lu.shape[-1])
    return _over_batches(lambda lu, p, b: _lu_solve(lu, p, b, trans), "lu_solve(lu_and_piv, ", b, lu, permutation)


named(_lu_solve_entry, "lu_solve")
lu_solve = jit(_lu_solve_entry, static_argnames=("trans", "overwrite_b", "check_finite"))


@partial(jit, static_argnums=(1,))
def _lu(a: Any, permute_l: bool) -> tuple:
    (a,) = _inexact(asarray(a))
    factors, _, permutation = lax_linalg.lu(a)
    m, n = a.shape[-2:]
    k = min(m, n)
    real = np.empty(0, a.dtype).real.dtype if a.dtype.kind == "c" else a.dtype
    rows = lax.iota(permutation.dtype, m)
    p = convert(lax.eq(*spread_all((lax.expand_dims(permutation, (permutation.ndim - 1,)),
                                  lax.expand_dims(rows, (1,))))),
                real)
    lower = tril(factors, -1)
    if n > k:
        lower = lax.slice_in_dim(lower, 0, k, axis=a.ndim - 1)
    unit = eye(m, k, dtype=a.dtype)
    lower = lax.add(lower, spread(unit, lower.shape))
    upper = triu(factors)
    if m > k:
        upper = lax.slice_in_dim(upper, 0, k, axis=a.ndim - 2)
    return (dot_products.matmul(p, lower, precision=HIGHEST), upper) if permute_l else (p, lower, upper)


@partial(jit, static_argnames=("permute_l", "overwrite_a", "check_finite"))
def lu(a: ArrayLike, permute_l: bool = False, overwrite_a: bool = False,
       check_finite: bool = True) -> tuple[Array, ...]:
    """The factors of a = P·L·U: a permutation, a lower triangle with ones on its diagonal, and an upper triangle.

    Args:
      a: shape [..., m, n].
      permute_l: whether to multiply P and L.
      overwrite_a, check_finite: ignored.

    Returns:
      (P, L, U), or (P·L, U) with `permute_l`: of shapes [..., m, m], [..., m, k] and [..., k, n], where k = min(m, n).
      P is real for complex matrices, too; integers become floats.
    """
    del overwrite_a, check_finite
    return _lu(a, permute_l)


@partial(jit, static_argnames=("mode", "pivoting"))
def _qr(a: Any, mode: str, pivoting: bool) -> tuple:
    (a,) = _inexact(asarray(a))
    if mode not in ("full", "r", "economic"):
        raise ValueError(f"Unsupported QR decomposition mode '{mode}'")
    q, r, *p = lax_linalg.qr(a, pivoting=pivoting, full_matrices=mode != "economic")
    return (r, *p) if mode == "r" else (q, r, *p)


def qr(a: ArrayLike, overwrite_a: bool = False, lwork: int | None = None, mode: str = "full", pivoting: bool = False,
       check_finite: bool = True) -> tuple[Array, ...]:
    """The factors of a = Q·R, with Q unitary and R triangular.

    Args:
      a: shape [..., m, n].
      mode: "full" for Q of shape [m, m], "economic" for min(m, n) columns, "r" for (R,) alone.
      pivoting: also returns the order p of the columns, such that a[:, p] = Q·R.
      overwrite_a, lwork, check_finite: ignored.

    Returns:
      a tuple: Q unless the mode is "r", R of shape [..., m, n] (min(m, n) rows for "economic"), and with `pivoting` p,
      int32 of shape [..., n]. Integers become floats.

    Raises ValueError for other modes.
    """
    del overwrite_a, lwork, check_finite
    return _qr(a, mode, pivoting)


def qr_multiply(a: ArrayLike, c: ArrayLike, mode: str = "right", pivoting: bool = False, conjugate: bool = False,
                overwrite_a: bool = False, overwrite_c: bool = False) -> tuple[Array, ...]:
    """The product of the factor Q of a = Q·R with another matrix, and R.

    Args:
      a: shape [..., m, n]; Q has k = min(m, n) columns.
      c: shape [..., l, m] or [m] for "right", [..., k, l] or [k] for "left".
      mode: "right" for c·Q, "left" for Q·c.
      pivoting: also returns the order of the columns, as `qr` does.
      conjugate: whether Q is conjugated.
      overwrite_a, overwrite_c: ignored.

    Returns:
      (product, R), or (product, R, p) with `pivoting`; the product with a vector is a vector.

    Raises ValueError for other modes and shapes that do not fit.
    """
    del overwrite_a, overwrite_c
    a, c = _inexact(*arrays("qr_multiply", a, c))
    if mode not in ("left", "right"):
        raise ValueError(f"mode must be 'left' or 'right', got {mode!r}")
    shape = c.shape
    if c.ndim == 1:
        c = lax.expand_dims(c, (1,) if mode == "left" else (0,))
    q, r, *p = lax_linalg.qr(a, pivoting=pivoting, full_matrices=False)
    if conjugate and q.dtype.kind == "c":
        q = lax.conj(q)
    side, have, need = ("Q @ c", c.shape[-2], q.shape[-1]) if mode == "left" else ("c @ Q", c.shape[-1], q.shape[-2])
    if have != need:
        counts = ("columns", "rows") if mode == "left" else ("rows", "columns")
        raise ValueError(f"Array shapes are not compatible for {side} operation: a has shape {a.shape} so Q has {need} "
                         f"{counts[0]}, but c has {have} {counts[1]} (expected {need}).")
    out = dot_products.matmul(*((q, c) if mode == "left" else (c, q)), precision=HIGHEST)
    if len(shape) == 1:
        out = lax.reshape(out, (out.size,))
    return (out, r, *p)


# -- systems of equations ------------------------------------------------------------------------------
@partial(jit, static_argnames=("assume_a", "lower"))
def _solve(a: Any, b: Any, assume_a: str, lower: bool) -> Array:
    if assume_a != "pos":
        return _linalg.solve(a, b)
    a, b = _inexact(asarray(a), asarray(b))
    vectors = a.ndim == b.ndim + 1
    if a.ndim < 2 or a.ndim - b.ndim not in (0, 1) or {*a.shape[-2:]} != {b.shape[-1 if vectors else -2]}:
        raise ValueError(f"The arguments to solve must have shapes a=[..., m, m] and b=[..., m, k] or b=[..., m]; got "
                         f"a={a.shape} and b={b.shape}")
    factors = cho_factor(lax.stop_gradient(a), lower=lower)[0]

    def one(a: Any, factors: Any, b: Any) -> Array:
        return lax.custom_linear_solve(lambda x: dot_products.matmul(a, x, precision=HIGHEST), b,
                                       lambda _, x: cho_solve((factors, lower), x), symmetric=True)

    if a.ndim == 2:
        return one(a, factors, b)
    from styrax.numpy.vectorization import vectorize

    right = "(m)->(m)" if vectors else "(m,n)->(m,n)"
    return vectorize(one, signature="(m,m),(m,m)," + right)(a, factors, b)


def solve(a: ArrayLike, b: ArrayLike, lower: bool = False, overwrite_a: bool = False, overwrite_b: bool = False,
          debug: bool = False, check_finite: bool = True, assume_a: str = "gen") -> Array:
    """x with a·x = b, for square matrices.

    Args:
      a: shape [..., n, n].
      b: shape [n] or [..., n, k].
      lower: which triangle is read where `assume_a` is "pos".
      overwrite_a, overwrite_b, debug, check_finite: ignored.
      assume_a: "pos" (Hermitian positive definite) solves by Cholesky factors, with NaN where `a` is not; "gen", "sym"
        and "her" by LU factors of all of `a`.

    Returns:
      an array of the shape of `b` broadcast against leading axes of `a`; integers become floats.

    Raises ValueError for other values of `assume_a` and shapes that do not fit.

    Example:
      >>> import styrax.scipy.linalg as linalg
      >>> import styrax.numpy as jnp
      >>> linalg.solve(jnp.array([[2.0, 0.0], [0.0, 4.0]]), jnp.array([2.0, 2.0]))
      Array([1. , 0.5], dtype=float32)
    """
    del overwrite_a, overwrite_b, debug, check_finite
    if assume_a not in ("gen", "sym", "her", "pos"):
        raise ValueError(f"Expected assume_a to be one of ['gen', 'sym', 'her', 'pos']; got {assume_a!r}")
    return _solve(a, b, assume_a, lower)


@partial(jit, static_argnames=("trans", "lower", "unit_diagonal"))
def _solve_triangular(a: Any, b: Any, trans: int | str, lower: bool, unit_diagonal: bool) -> Array:
    if trans in (0, "N"):
        transpose, conjugate = False, False
    elif trans in (1, "T"):
        transpose, conjugate = True, False
    elif trans in (2, "C"):
        transpose, conjugate = True, True
    else:
        raise ValueError(f"Invalid 'trans' value {trans}")
    a, b = _inexact(asarray(a), asarray(b))
    if conjugate and a.dtype.kind != "c":
        conjugate = False
    one = partial(_triangular, lower=lower, transpose_a=transpose, conjugate_a=conjugate, unit_diagonal=unit_diagonal)
    return _over_batches(one, "solve_triangular(a, ", b, a)


def solve_triangular(a: ArrayLike, b: ArrayLike, trans: int | str = 0, lower: bool = False, unit_diagonal: bool = False,
                     overwrite_b: bool = False, debug: bool | None = None, check_finite: bool = True) -> Array:
    """x with op(a)·x = b, for triangular matrices.

    Args:
      a: shape [..., n, n]; one triangle is read.
      b: shape [n], [..., n, k], or [..., n] with one axis less than `a`.
      trans: 0 or "N" for a itself, 1 or "T" for its transpose, 2 or "C" for its adjoint.
      lower: whether `a` is lower triangular.
      unit_diagonal: whether to take the diagonal as ones.
      overwrite_b, debug, check_finite: ignored.

    Returns:
      an array of the shape of `b` broadcast against leading axes of `a`, not finite where `a` is singular.

    Raises ValueError for other values of `trans` and shapes that do not fit.
    """
    del overwrite_b, debug, check_finite
    return _solve_triangular(a, b, trans, lower, unit_diagonal)


@jit
def block_diag(*arrs: ArrayLike) -> Array:
    """A matrix with the given ones on its diagonal and zeros elsewhere.

    Args:
      *arrs: matrices; vectors count as rows, numbers as matrices of one element.

    Returns:
      an array whose sizes are the sums of theirs, of their common dtype; shape [1, 0] for no matrices.

    Raises ValueError for arrays of rank above 2.

    Example:
      >>> import styrax.scipy.linalg as linalg
      >>> import styrax.numpy as jnp
      >>> linalg.block_diag(jnp.ones((1, 2)), 3.0)
      Array([[1., 1., 0.],
             [0., 0., 3.]], dtype=float32)
    """
    blocks = [asarray(x) for x in arrs] if arrs else [lax.full((1, 0), 0, np.float32)]
    for i, block in enumerate(blocks):
        if block.ndim > 2:
            raise ValueError(f"Arguments to jax.scipy.linalg.block_diag must have at most 2 dimensions, got {block} at "
                             f"argument {i}.")
    dtype = dtypes.result_type(*blocks)
    blocks = [atleast_2d(convert(b, dtype)) for b in blocks]
    width = sum(b.shape[1] for b in blocks)
    rows, offset = [], 0
    for b in blocks:
        after = width - offset - b.shape[1]
        rows.append(lax.pad(b, convert(0, dtype), ((0, 0, 0), (offset, after, 0))))
        offset += b.shape[1]
    return lax.concatenate(rows, 0) if len(rows) > 1 else rows[0]
