"""Factorisations in programs for XLA: what they are where no library of the client's has them.

`lapack_calls` and `cusolver_calls` say which libraries have what.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from styrax.core.programs import rules
from styrax.core.programs.primitive import Primitive
from styrax.core.types.avals import ShapedArray

from ..indexing.static_slicing import slice_in_dim
from ..shaping.filling import pad
from . import cusolver_calls as cusolver_calls
from . import double_shifts, elimination, jacobi, lapack_calls, qr_iteration, reflections
from .cholesky_factors import cholesky_p
from .eigen import eig_p, eigh_p, hessenberg_p, schur_p, tridiagonal_p
from .factor_updates import cholesky_update_p
from .library_calls import Rule, otherwise, program
from .lu_factors import lu_p, lu_pivots_to_permutation_p
from .matrices import INT32, band, is_complex
from .qr_factors import geqrf_p, householder_product_p, ormqr_p, qr_p
from .singular_values import svd_p
from .tridiagonal_systems import tridiagonal_solve_p


def _cholesky(m: Any, x: Any) -> list[Any]:
    return m.op("stablehlo.cholesky", [x], [m.avals_out[0]], attributes="lower = true")


_complex_schur, _real_schur = program(qr_iteration.schur, 2), program(double_shifts.schur, 2)


def _schur(m: Any, x: Any, **params: Any) -> Any:
    return (_complex_schur if is_complex(x.dtype) else _real_schur)(m, x, **params)


def _expanded(m: Any, target: str, operands: Sequence[Any], results: Sequence[ShapedArray]) -> list[Any]:
    """A call that XLA expands into a program on all platforms that have no routine of their own."""
    return m.op("stablehlo.custom_call", operands, results, f'call_target_name = "{target}", backend_config = ""')


def _expanded_geqrf(m: Any, x: Any) -> list[Any]:
    *batch, rows, columns = x.shape
    taus = ShapedArray((*batch, min(rows, columns)), x.dtype)
    return _expanded(m, "Qr", [x], [x.aval, taus]) if math.prod(x.shape) else [x, m.const(0, taus)]


def _expanded_product(m: Any, a: Any, taus: Any) -> list[Any]:
    *_, columns = a.shape
    if not math.prod(a.shape):
        return [a]
    missing = columns - taus.shape[-1]
    if missing:
        taus = m.call_traced(lambda x: pad(x, np.zeros((), x.dtype), [(0, 0, 0)] * (len(taus.shape) - 1) + [
            (0, missing, 0)]), taus)[0]
    return _expanded(m, "ProductOfElementaryHouseholderReflectors", [a, taus], [a.aval])


_by_reflections = program(reflections.pivoted, 2)


def _pivoted(m: Any, x: Any) -> list[Any]:
    """Packed reflections and r, their factors, and the order of the columns."""
    return (lapack_calls.pivoted if "lapack" in m.module.libraries else _by_reflections)(m, x)


def _qr(m: Any, x: Any, *, pivoting: bool, full_matrices: bool, **_: Any) -> list[Any]:
    *batch, rows, columns = x.shape
    width = rows if full_matrices else min(rows, columns)
    if not math.prod(x.shape):
        order = [m.const(np.broadcast_to(np.arange(columns, dtype=INT32), (*batch, columns)))] if pivoting else []
        return [m.const(np.broadcast_to(np.eye(rows, width, dtype=x.dtype), (*batch, rows, width))),
                m.const(np.zeros((*batch, width, columns), x.dtype)), *order]

    def formed(packed: Any, taus: Any) -> list[Any]:
        axis = len(batch) + 1
        if width > columns:
            first = pad(packed, np.zeros((), x.dtype), [(0, 0, 0)] * axis + [(0, width - columns, 0)])
        else:
            first = slice_in_dim(packed, 0, width, axis=axis)
        return [householder_product_p.bind(first, taus), band(slice_in_dim(packed, 0, width, axis=axis - 1), False)]

    if not pivoting:
        return m.call_traced(lambda x: formed(*geqrf_p.bind(x)), x)
    packed, taus, order = _pivoted(m, x)
    return [*m.call_traced(formed, packed, taus), order]


_RULES: dict[Primitive, Rule] = {
    cholesky_p: _cholesky,
    cholesky_update_p: program(elimination.cholesky_update, 2),
    eigh_p: program(jacobi.eigh),
    eig_p: program(qr_iteration.eig, 2),
    schur_p: _schur,
    hessenberg_p: program(reflections.hessenberg, 2),
    tridiagonal_p: program(reflections.tridiagonal, 2),
    svd_p: program(jacobi.svd),
    geqrf_p: _expanded_geqrf,
    householder_product_p: _expanded_product,
    ormqr_p: program(reflections.product),
    lu_p: program(elimination.lu, 2),
    lu_pivots_to_permutation_p: program(elimination.permutation, 1),
    qr_p: _qr,
    tridiagonal_solve_p: program(elimination.tridiagonal_solve, 1),
}
for _primitive, _rule in _RULES.items():
    otherwise(_primitive, _rule)


def rule_of_factorisation(primitive: Primitive) -> Rule | None:
    """The StableHLO rule of a primitive, if it is one of these."""
    return rules.stablehlos.get(primitive)
