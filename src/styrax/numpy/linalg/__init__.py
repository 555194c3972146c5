"""Linear algebra on (batches of) matrices: the last two axes."""

from __future__ import annotations

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
