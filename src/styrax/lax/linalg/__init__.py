"""Linear algebra: factorisations and solves, by LAPACK and BLAS on the CPU.

A factorisation is imported when it is first asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING as _TYPE_CHECKING

from ...lazy import names as _names

# module of this package -> the names that it defines
_HOMES = {
    "cholesky_factors": "cholesky cholesky_p",
    "eigen": (
        "EigImplementation EighImplementation eig eig_p eigh eigh_p hessenberg hessenberg_p schur schur_p tridiagonal "
        "tridiagonal_p"),
    "factor_updates": "cholesky_update cholesky_update_p symmetric_product symmetric_product_p",
    "halley": "qdwh",
    "lu_factors": "lu lu_p lu_pivots_to_permutation lu_pivots_to_permutation_p",
    # (JAX has no public `geqrf`, but `numpy.linalg.qr` needs it)
    "qr_factors": "geqrf householder_product householder_product_p ormqr ormqr_p qr qr_p",
    "singular_values": "SvdAlgorithm svd svd_p",
    "triangular": "triangular_solve triangular_solve_p",
    "tridiagonal_systems": "tridiagonal_solve tridiagonal_solve_p",
}

if _TYPE_CHECKING:  # the same names for type checkers and editors
    from .cholesky_factors import cholesky, cholesky_p
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
    from .factor_updates import cholesky_update, cholesky_update_p, symmetric_product, symmetric_product_p
    from .halley import qdwh
    from .lu_factors import lu, lu_p, lu_pivots_to_permutation, lu_pivots_to_permutation_p
    from .qr_factors import geqrf as geqrf
    from .qr_factors import householder_product, householder_product_p, ormqr, ormqr_p, qr, qr_p
    from .singular_values import SvdAlgorithm, svd, svd_p
    from .triangular import triangular_solve, triangular_solve_p
    from .tridiagonal_systems import tridiagonal_solve, tridiagonal_solve_p
else:
    __getattr__, __dir__, _ = _names(__name__, {f"lax.linalg.{home}": listed for home, listed in _HOMES.items()})

__all__ = [
    "EigImplementation", "EighImplementation", "SvdAlgorithm", "cholesky", "cholesky_p", "cholesky_update",
    "cholesky_update_p", "eig", "eig_p", "eigh", "eigh_p", "hessenberg", "hessenberg_p", "householder_product",
    "householder_product_p", "lu", "lu_p", "lu_pivots_to_permutation", "lu_pivots_to_permutation_p", "ormqr", "ormqr_p",
    "qdwh", "qr", "qr_p", "schur", "schur_p", "svd", "svd_p", "symmetric_product", "symmetric_product_p",
    "triangular_solve", "triangular_solve_p", "tridiagonal", "tridiagonal_p", "tridiagonal_solve",
    "tridiagonal_solve_p",
]
