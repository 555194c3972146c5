"""Factorisations in programs for XLA.

Where the client knows LAPACK's routines by name, as JAX's does for CPUs (`Module.libraries`), they are calls of these.
For all other clients they are programs of other operations (`jacobi`, `reflections`, `elimination`), or calls that XLA
expands by itself on each platform.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from styrax.core.programs import rules
from styrax.core.programs.primitive import Primitive
from styrax.core.trees.tree import tree_map
from styrax.core.types import dtypes
from styrax.core.types.avals import ShapedArray
from styrax.transforms.mapping import vmap

from ..indexing.static_slicing import slice_in_dim
from ..shaping.filling import pad
from ..shaping.reshaping import reshape
from . import elimination, jacobi, qr_iteration, reflections
from .eigen import eig_p, eigh_p, hessenberg_p, schur_p, tridiagonal_p
from .factor_updates import cholesky_update_p, tridiagonal_solve_p
from .lu import lu_p, lu_pivots_to_permutation_p
from .matrices import INT32, LETTERS, band, complex_dtype, is_complex, real_dtype, shape_of
from .qr import geqrf_p, householder_product_p, ormqr_p, qr_p
from .svd import svd_p


def _letter(flag: str) -> str:
    return f"{ord(flag)} : ui8"


def _boolean(value: bool) -> str:
    return str(value).lower()


def _layout(rank: int, batch: int) -> str:
    """Matrices by columns, batches of them one after the other: dimensions from the fastest to the slowest."""
    order = [*range(batch, rank), *reversed(range(batch))]
    return f"dense<{order if order else ''}> : tensor<{rank}xindex>"


def _lapack(m: Any, routine: str, operands: Sequence[Any], results: Sequence[tuple[Sequence[int], Any]], batch: int, *,
            config: Mapping[str, str] | None = None, reused: Sequence[int] = ()) -> list[Any]:
    """Calls a routine, named without its letter, on matrices and vectors of a batch of so many dimensions.

    `results` are shapes and dtypes, `reused` the operands whose memory the first results take, in this order.
    """
    avals = [ShapedArray(tuple(shape), dtype) for shape, dtype in results]
    inside = [] if len(avals) == 1 else [f"[{i}]" for i in range(len(avals))]
    aliases = ", ".join(
        f"#stablehlo.output_operand_alias<output_tuple_indices = {inside[i] if inside else '[]'}, "
        f"operand_index = {operand}, operand_tuple_indices = []>" for i, operand in enumerate(reused))
    layouts = [", ".join(_layout(len(x.shape), batch) for x in values) for values in (operands, avals)]
    return m.custom_call(
        f"lapack_{LETTERS[operands[0].dtype]}{routine}_ffi", operands, avals,
        ", ".join(f"{name} = {value}" for name, value in (config or {}).items()),
        [f'mhlo.frontend_attributes = {{num_batch_dims = "{batch}"}}', f"operand_layouts = [{layouts[0]}]",
         f"result_layouts = [{layouts[1]}]", f"output_operand_aliases = [{aliases}]"])


def _unless(m: Any, failed: str, info: Any, value: Any) -> Any:
    """A value with NaN where a status compares so with 0 ("NE": any failure; "LT": a wrong argument)."""
    zero = m.full(0, info.aval)
    wrong = m.compare(failed, info, zero)
    spread = ShapedArray(value.shape, np.dtype(np.bool_))
    nan = complex(np.nan, np.nan) if is_complex(value.dtype) else np.nan
    return m.select(m.broadcast_in_dim(wrong, spread, range(len(info.shape))), m.full(nan, value.aval), value)


def _in_working_dtype(rule: Callable[..., Any]) -> Callable[..., Any]:
    """A rule for half precisions, too: LAPACK computes them in f32."""
    def lowered(m: Any, *operands: Any, **params: Any) -> Any:
        wanted = [a.dtype for a in m.avals_out]
        half = [x.dtype not in LETTERS and dtypes.issubdtype(x.dtype, np.inexact) for x in operands]
        single = np.dtype(np.float32)
        outs = rule(m, *(m.convert(x, single) if h else x for x, h in zip(operands, half, strict=True)), **params)
        if outs is NotImplemented:
            return outs
        return [m.convert(x, dtype) for x, dtype in zip(outs, wanted, strict=True)]

    return lowered


def _stablehlo(primitive: Primitive, otherwise: Callable[..., Any] | None = None) -> Callable[..., None]:
    """Makes a function the rule of a primitive where the client knows LAPACK; `otherwise` is the rule for other
    clients. None: there the primitive needs a library that computes it."""
    def enter(by_lapack: Callable[..., Any]) -> None:
        def rule(m: Any, *operands: Any, **params: Any) -> Any:
            if "lapack" in m.module.libraries:
                return by_lapack(m, *operands, **params)
            if not any(math.prod(a.shape) for a in m.avals_out):  # nor does a program compute them
                return [m.const(0, a) for a in m.avals_out]
            return NotImplemented if otherwise is None else otherwise(m, *operands, **params)

        rules.stablehlos.setdefault(primitive, _in_working_dtype(rule))

    return enter


def _program(function: Callable[..., Any], *ranks: int) -> Callable[..., Any]:
    """The rule that a primitive is a program of other operations. `ranks`: of the operands, if the function has no
    batches."""
    each = _each(function, ranks) if ranks else function
    return lambda m, *operands, **params: m.call_program(each, *operands, name=function.__name__, **params)


def _each(function: Callable[..., Any], ranks: Sequence[int]) -> Callable[..., Any]:
    """A function of arrays of so many dimensions, for batches of them."""
    def batched(*xs: Any, **params: Any) -> Any:
        batch = shape_of(xs[0])[:len(shape_of(xs[0])) - ranks[0]]
        one = functools.partial(function, **params)
        if not batch:
            return one(*xs)
        flat = (reshape(x, (math.prod(batch), *shape_of(x)[len(batch):])) for x in xs)
        return tree_map(lambda out: reshape(out, (*batch, *shape_of(out)[1:])), vmap(one)(*flat))

    return batched


# --- eigenvalues, and the forms on the way to them


@_stablehlo(eigh_p, _program(jacobi.eigh))
def _eigh(m: Any, x: Any, *, lower: bool, **_: Any) -> list[Any]:
    *batch, n, _n = x.shape
    config = {"mode": _letter("V"), "uplo": _letter("L" if lower else "U")}
    routine = "heevd" if is_complex(x.dtype) else "syevd"
    v, w, info = _lapack(m, routine, [x], [(x.shape, x.dtype), ((*batch, n), real_dtype(x.dtype)), (batch, INT32)],
                         len(batch), config=config, reused=[0])
    return [_unless(m, "NE", info, v), _unless(m, "NE", info, w)]


@_stablehlo(eig_p, _program(qr_iteration.eig, 2))
def _eig(m: Any, x: Any, *, compute_left_eigenvectors: bool, compute_right_eigenvectors: bool, **_: Any) -> list[Any]:
    *batch, n, _n = x.shape
    dtype = complex_dtype(x.dtype)
    wanted = [compute_left_eigenvectors, compute_right_eigenvectors]
    config = {"compute_left": _letter("V" if wanted[0] else "N"), "compute_right": _letter("V" if wanted[1] else "N")}
    values = [((*batch, n), x.dtype)] * (1 if is_complex(x.dtype) else 2)
    *w, left, right, info = _lapack(m, "geev", [x], [*values, (x.shape, dtype), (x.shape, dtype), (batch, INT32)],
                                    len(batch), config=config)
    if len(w) == 2:
        w = [m.op1("stablehlo.complex", w, ShapedArray((*batch, n), dtype))]
    vectors = [v for v, flag in zip((left, right), wanted, strict=True) if flag]
    return [_unless(m, "NE", info, v) for v in (*w, *vectors)]


_by_iteration = _program(qr_iteration.schur, 2)


def _complex_schur(m: Any, x: Any, **params: Any) -> Any:
    return _by_iteration(m, x, **params) if is_complex(x.dtype) else NotImplemented


@_stablehlo(schur_p, _complex_schur)
def _schur(m: Any, x: Any, *, compute_schur_vectors: bool, **_: Any) -> list[Any]:
    *batch, n, _n = x.shape
    config = {"mode": _letter("V" if compute_schur_vectors else "N"), "sort": _letter("N")}
    values = [((*batch, n), x.dtype)] * (1 if is_complex(x.dtype) else 2)
    t, v, *_w, _count, info = _lapack(
        m, "gees", [x], [(x.shape, x.dtype), (x.shape, x.dtype), *values, (batch, INT32), (batch, INT32)], len(batch),
        config=config, reused=[0])
    return [_unless(m, "NE", info, o) for o in ([t, v] if compute_schur_vectors else [t])]


@_stablehlo(hessenberg_p, _program(reflections.hessenberg, 2))
def _hessenberg(m: Any, a: Any) -> list[Any]:
    *batch, n, _n = a.shape
    h, taus, info = _lapack(m, "gehrd", [a], [(a.shape, a.dtype), ((*batch, n - 1), a.dtype), (batch, INT32)],
                            len(batch), config={"high": f"{n} : i32", "low": "1 : i32"}, reused=[0])
    return [_unless(m, "NE", info, h), _unless(m, "NE", info, taus)]


@_stablehlo(tridiagonal_p, _program(reflections.tridiagonal, 2))
def _tridiagonal(m: Any, a: Any, *, lower: bool) -> list[Any]:
    *batch, n, _n = a.shape
    part = real_dtype(a.dtype)
    results = [(a.shape, a.dtype), ((*batch, n), part), ((*batch, n - 1), part), ((*batch, n - 1), a.dtype)]
    *outs, info = _lapack(m, "hetrd" if is_complex(a.dtype) else "sytrd", [a], [*results, (batch, INT32)], len(batch),
                          config={"uplo": _letter("L" if lower else "U")}, reused=[0])
    return [_unless(m, "NE", info, o) for o in outs]


# --- singular values


@_stablehlo(svd_p, _program(jacobi.svd))
def _svd(m: Any, x: Any, *, full_matrices: bool, compute_uv: bool, **_: Any) -> list[Any]:
    *batch, rows, columns = x.shape
    k = min(rows, columns)
    full = full_matrices or not compute_uv
    u_shape = (*batch, rows, rows if full else k)
    vh_shape = (*batch, columns if full else k, columns)
    s_shape, part = (*batch, k), real_dtype(x.dtype)
    if not math.prod(x.shape):
        eyes = [np.broadcast_to(np.eye(*s[-2:], dtype=x.dtype), s) for s in (u_shape, vh_shape)] if compute_uv else []
        return [m.const(np.zeros(s_shape, part)), *map(m.const, eyes)]
    _factors, s, *uv, info = _lapack(
        m, "gesdd", [x], [(x.shape, x.dtype), (s_shape, part), (u_shape, x.dtype), (vh_shape, x.dtype), (batch, INT32)],
        len(batch), config={"mode": _letter("N" if not compute_uv else "A" if full_matrices else "S")}, reused=[0])
    return [_unless(m, "NE", info, v) for v in (s, *(uv if compute_uv else ()))]


# --- QR factorisation, and products of reflections


def _expanded(m: Any, target: str, operands: Sequence[Any], results: Sequence[ShapedArray]) -> list[Any]:
    """A call that XLA expands into a program on all platforms that have no routine of their own."""
    return m.op("stablehlo.custom_call", operands, results, f'call_target_name = "{target}", backend_config = ""')


def _expanded_geqrf(m: Any, x: Any) -> list[Any]:
    *batch, rows, columns = x.shape
    taus = ShapedArray((*batch, min(rows, columns)), x.dtype)
    return _expanded(m, "Qr", [x], [x.aval, taus]) if math.prod(x.shape) else [x, m.const(0, taus)]


@_stablehlo(geqrf_p, _expanded_geqrf)
def _geqrf(m: Any, x: Any) -> list[Any]:
    *batch, rows, columns = x.shape
    taus = (*batch, min(rows, columns))
    if not math.prod(x.shape):
        return [x, m.const(np.zeros(taus, x.dtype))]
    return _lapack(m, "geqrf", [x], [(x.shape, x.dtype), (taus, x.dtype)], len(batch), reused=[0])


_by_reflections = _program(reflections.pivoted, 2)


def _pivoted(m: Any, x: Any) -> list[Any]:
    """Packed reflections and r, their factors, and the order of the columns."""
    if "lapack" not in m.module.libraries:
        return _by_reflections(m, x)
    *batch, rows, columns = x.shape
    free = m.const(np.zeros((*batch, columns), INT32))
    results = [(x.shape, x.dtype), (free.shape, INT32), ((*batch, min(rows, columns)), x.dtype)]
    packed, order, taus = _lapack(m, "geqp3", [x, free], results, len(batch), reused=[0, 1])
    return [packed, taus, m.op1("stablehlo.subtract", [order, m.full(1, free.aval)], free.aval)]


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


_stablehlo(qr_p, _qr)(_qr)


def _unitary(name: str, dtype: Any) -> str:
    return ("un" if is_complex(dtype) else "or") + name


def _expanded_product(m: Any, a: Any, taus: Any) -> list[Any]:
    *_, columns = a.shape
    if not math.prod(a.shape):
        return [a]
    missing = columns - taus.shape[-1]
    if missing:
        taus = m.call_traced(lambda x: pad(x, np.zeros((), x.dtype), [(0, 0, 0)] * (len(taus.shape) - 1) + [
            (0, missing, 0)]), taus)[0]
    return _expanded(m, "ProductOfElementaryHouseholderReflectors", [a, taus], [a.aval])


@_stablehlo(householder_product_p, _expanded_product)
def _householder_product(m: Any, a: Any, taus: Any) -> list[Any]:
    if not math.prod(a.shape):
        return [a]
    return _lapack(m, _unitary("gqr", a.dtype), [a, taus], [(a.shape, a.dtype)], len(a.shape) - 2, reused=[0])


@_stablehlo(ormqr_p, _program(reflections.product))
def _ormqr(m: Any, a: Any, taus: Any, c: Any, *, left: bool, transpose: bool) -> list[Any]:
    if not (math.prod(c.shape) and math.prod(taus.shape)):
        return [c]
    return _lapack(m, _unitary("mqr", c.dtype), [a, taus, c], [(c.shape, c.dtype)], len(c.shape) - 2,
                   config={"left": _boolean(left), "transpose": _boolean(transpose)}, reused=[2])


# --- LU factorisation


@_stablehlo(lu_p, _program(elimination.lu, 2))
def _lu(m: Any, x: Any) -> list[Any]:
    *batch, rows, columns = x.shape
    steps = (*batch, min(rows, columns))
    factors, pivots, info = _lapack(m, "getrf", [x], [(x.shape, x.dtype), (steps, INT32), (batch, INT32)], len(batch),
                                    reused=[0])
    pivots = m.op1("stablehlo.subtract", [pivots, m.full(1, pivots.aval)], pivots.aval)
    permutation = m.call_traced(lambda p: lu_pivots_to_permutation_p.bind(p, permutation_size=rows), pivots)
    return [_unless(m, "LT", info, factors), pivots, *permutation]


_by_exchanges = _program(elimination.permutation, 1)
_stablehlo(lu_pivots_to_permutation_p, _by_exchanges)(_by_exchanges)


# --- tridiagonal systems, and updates


@_stablehlo(tridiagonal_solve_p, _program(elimination.tridiagonal_solve, 1))
def _tridiagonal_solve(m: Any, dl: Any, d: Any, du: Any, b: Any, *, perturb_singular: bool) -> list[Any]:
    if not math.prod(b.shape):
        return [b]
    *batch, _n, _k = b.shape
    *_diagonals, x, info = _lapack(m, "gtsv", [dl, d, du, b],
                                   [*((v.shape, v.dtype) for v in (dl, d, du, b)), (batch, INT32)], len(batch),
                                   reused=[0, 1, 2, 3])
    return [_unless(m, "NE", info, x)]


_by_rotations = _program(elimination.cholesky_update, 2)
_stablehlo(cholesky_update_p, _by_rotations)(_by_rotations)


def rule_of_factorisation(primitive: Primitive) -> Callable[..., Any] | None:
    """The StableHLO rule of a primitive, if it is one of these."""
    return rules.stablehlos.get(primitive)
