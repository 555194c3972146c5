"""Linear algebra: factorisations and solves, by LAPACK and BLAS on the CPU."""

from __future__ import annotations

from .cholesky import cholesky, cholesky_p
from .eigen import (
    EighImplementation,
    EigImplementation,
    eig,
    eig_p,
    eigh,
    eigh_p,
    hessenberg,
    hessenberg_p,
    schur,
    schur_p,
    tridiagonal,
    tridiagonal_p,
)
from .factor_updates import (
    cholesky_update,
    cholesky_update_p,
    symmetric_product,
    symmetric_product_p,
    tridiagonal_solve,
    tridiagonal_solve_p,
)
from .halley import qdwh
from .lu import lu, lu_p, lu_pivots_to_permutation, lu_pivots_to_permutation_p
from .qr import geqrf as geqrf  # (no public name of JAX's, but `numpy.linalg.qr` needs it)
from .qr import householder_product, householder_product_p, ormqr, ormqr_p, qr, qr_p
from .svd import SvdAlgorithm, svd, svd_p
from .triangular import triangular_solve, triangular_solve_p

__all__ = [
    "EigImplementation", "EighImplementation", "SvdAlgorithm", "cholesky", "cholesky_p", "cholesky_update",
    "cholesky_update_p", "eig", "eig_p", "eigh", "eigh_p", "hessenberg", "hessenberg_p", "householder_product",
    "householder_product_p", "lu", "lu_p", "lu_pivots_to_permutation", "lu_pivots_to_permutation_p", "ormqr", "ormqr_p",
    "qdwh", "qr", "qr_p", "schur", "schur_p", "svd", "svd_p", "symmetric_product", "symmetric_product_p",
    "triangular_solve", "triangular_solve_p", "tridiagonal", "tridiagonal_p", "tridiagonal_solve",
    "tridiagonal_solve_p",
]
