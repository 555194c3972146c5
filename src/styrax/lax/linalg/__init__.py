"""Linear algebra: factorisations and solves, by LAPACK and BLAS on the CPU."""

from __future__ import annotations

from .cholesky import cholesky, cholesky_p
from .triangular import triangular_solve, triangular_solve_p

__all__ = ["cholesky", "cholesky_p", "triangular_solve", "triangular_solve_p"]
