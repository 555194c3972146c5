"""Linear algebra on (batches of) matrices: the last two axes.

A function's module is imported when it is first asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING as _TYPE_CHECKING

from ...lazy import names as _names

# module of this package -> the names that it defines
_HOMES = {
    "decompositions": (
        "EighResult EigResult QRResult SVDResult cholesky eig eigh eigvals eigvalsh qr svd svdvals"),
    "determinants": "SlogdetResult det slogdet",
    "equations": "inv lstsq lu_solve_by_permutation pinv solve tensorinv tensorsolve",
    "matrix_products": (
        "cross diagonal matmul matrix_power matrix_transpose multi_dot outer tensordot trace vecdot"),
    "norms": "cond matrix_norm matrix_rank norm vector_norm",
}

if _TYPE_CHECKING:  # the same names for type checkers and editors
    from .decompositions import (
        EighResult,
        EigResult,
        QRResult,
        SVDResult,
        cholesky,
        eig,
        eigh,
        eigvals,
        eigvalsh,
        qr,
        svd,
        svdvals,
    )
    from .determinants import SlogdetResult, det, slogdet
    from .equations import inv, lstsq, lu_solve_by_permutation, pinv, solve, tensorinv, tensorsolve
    from .matrix_products import (
        cross,
        diagonal,
        matmul,
        matrix_power,
        matrix_transpose,
        multi_dot,
        outer,
        tensordot,
        trace,
        vecdot,
    )
    from .norms import cond, matrix_norm, matrix_rank, norm, vector_norm
else:
    __getattr__, __dir__, _ = _names(
        __name__, {f"numpy.linalg.{home}": listed for home, listed in _HOMES.items()})
