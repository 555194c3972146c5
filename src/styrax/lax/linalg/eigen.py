"""Eigenvalues and eigenvectors, and the forms on the way to them."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from styrax.core.arrays.array import Array
from styrax.core.programs import rules
from styrax.core.programs.primitive import multiple_results
from styrax.core.tracing.trace import get_aval
from styrax.core.types import dtypes
from styrax.core.types.avals import ShapedArray
from styrax.core.types.typing import ArrayLike
from styrax.transforms import ad

from ..casting import convert_element_type
from ..elementwise.arithmetic import add, div, mul, sub
from ..elementwise.functions import abs, complex, conj, imag, real
from ..indexing.gather import take_along
from ..reductions.arg_extrema import argmax
from ..reductions.reduce import reduce_sum
from ..shaping.broadcasting import broadcast_in_dim, expand_dims, squeeze
from . import by_blocks
from .lu_factors import lu
from .matrices import (
    INT32,
    Routine,
    adjoint,
    batch_in_front,
    by_columns,
    check_inexact,
    check_square,
    complex_dtype,
    each_matrix,
    identity,
    in_dtype,
    is_complex,
    matmul,
    not_finite,
    place_of,
    real_dtype,
    result_types,
    shape_of,
    swapped,
    symmetrised,
    unless,
    working,
    zeros_for,
)
from .qr_factors import BLOCK
from .triangular import triangular_solve

if TYPE_CHECKING:
    from styrax.core.programs.lowering import Builder


class EigImplementation(enum.Enum):
    """Who computes `eig`, on platforms that have a choice."""

    CUSOLVER = "cusolver"
    MAGMA = "magma"
    LAPACK = "lapack"


class EighImplementation(enum.Enum):
    """Who computes `eigh`, on platforms that have a choice."""

    QR = "qr"
    JACOBI = "jacobi"
    QDWH = "qdwh"


def diagonal(x: Any) -> Any:
    """The diagonals of square matrices."""
    shape = shape_of(x)
    eye = np.broadcast_to(identity(shape[-1], get_aval(x).dtype), shape)
    return reduce_sum(mul(x, eye), (len(shape) - 1,))


def columns_of(x: Any, n: int) -> Any:
    """A vector as every row of a matrix."""
    shape = shape_of(x)
    return broadcast_in_dim(x, (*shape[:-1], n, shape[-1]), (*range(len(shape) - 1), len(shape)))


def rows_of(x: Any, n: int) -> Any:
    """A vector as every column of a matrix."""
    shape = shape_of(x)
    return broadcast_in_dim(x, (*shape, n), tuple(range(len(shape))))


def inverse_gaps(w: Any) -> Any:
    """`1 / (w[j] - w[i])`, and 0 on the diagonal."""
    n = shape_of(w)[-1]
    dtype = get_aval(w).dtype
    eye = np.broadcast_to(identity(n, dtype), (*shape_of(w), n))
    gaps = add(eye, sub(columns_of(w, n), rows_of(w, n)))
    return sub(div(np.ones((), dtype), gaps), eye)


# --- symmetric and Hermitian matrices

eigh_p = multiple_results("eigh")
batch_in_front(eigh_p)


@result_types(eigh_p)
def _eigh_abstract(x: ShapedArray, *, lower: bool, sort_eigenvalues: bool, subset_by_index: Any, algorithm: Any
                   ) -> list[ShapedArray]:
    check_inexact("eigh", x)
    check_square("eigh", x)
    if subset_by_index is not None and tuple(subset_by_index) != (0, x.shape[-1]):
        raise NotImplementedError("subset_by_index not supported on CPU and GPU")
    return [ShapedArray(x.shape, x.dtype), ShapedArray(x.shape[:-1], real_dtype(x.dtype))]


def eigh(x: ArrayLike, *, lower: bool = True, symmetrize_input: bool = True, sort_eigenvalues: bool = True,
         subset_by_index: tuple[int, int] | None = None,
         implementation: EighImplementation | None = None) -> tuple[Array, Array]:
    """Eigenvectors and eigenvalues of symmetric or Hermitian matrices.

    Args:
      x: matrices of shape `[..., n, n]`.
      lower: which triangle counts, where `symmetrize_input` is False.
      symmetrize_input: whether to use the mean of `x` and its adjoint.
      sort_eigenvalues: whether eigenvalues have to ascend; here they always do.
      subset_by_index: a range of eigenvalues, where the platform can compute a part.
      implementation: who computes them, where there is a choice.

    Returns:
      `(v, w)`: eigenvectors in columns, and eigenvalues.
    """
    if symmetrize_input:
        x = symmetrised("eigh", x)
    v, w = eigh_p.bind(x, lower=lower, sort_eigenvalues=sort_eigenvalues, subset_by_index=subset_by_index,
                       algorithm=implementation)
    return v, w


def _eigh_loops(b: Builder, x: Any, *, lower: bool, **_: Any) -> list[Any]:
    dtype = x.dtype
    x = working(b, x)
    *batch, n, _ = x.shape
    real_type = real_dtype(x.dtype)
    hermitian = is_complex(x.dtype)
    vectors = "N" if 0 in b.unused else "V"
    work_size = max(1, 2 * n + n * n, (BLOCK + 1) * n) if hermitian else max(1, 1 + 6 * n + 2 * n * n, (BLOCK + 2) * n)
    real_size, int_size = max(1, 1 + 5 * n + 2 * n * n), max(1, 3 + 5 * n)

    if vectors == "V" and by_blocks.pays(batch, n, n):
        return _large_eigh(b, x, dtype, "L" if lower else "U")

    def body(nest: Any, outs: Sequence[Any], ins: Sequence[Any]) -> None:
        v, w, failed = outs
        with each_matrix(nest, batch) as at:
            if not n:
                nest.store(failed, at, b.const(0, INT32))
                return
            work, ints = nest.scratch((work_size,), x.dtype), nest.scratch((int_size,), INT32)
            info = nest.scratch((1,), INT32)
            more = [nest.scratch((real_size,), real_type), real_size] if hermitian else []
            Routine(b, nest, "heevd" if hermitian else "syevd", x.dtype)(
                vectors, "L" if lower else "U", n, place_of(b, v, at), n, place_of(b, w, at), work, work_size, *more,
                ints, int_size, info, writes=[v, w, work, ints, info, *more[:1]])
            nest.store(failed, at, nest.load(info, [b.index(0)]))

    transposed = by_columns(b, x)
    v, w, failed = b.nest([(transposed.shape, x.dtype, transposed), ((*batch, n), real_type), (tuple(batch), INT32)],
                          body)
    return [in_dtype(b, unless(b, failed, by_columns(b, v)), dtype),
            in_dtype(b, unless(b, failed, w), real_dtype(dtype))]


def _large_eigh(b: Builder, x: Any, dtype: Any, triangle: str) -> list[Any]:
    """The same by blocks, of the matrix with a power of two taken out, which squares of elements could not bear."""
    *batch, n, _ = x.shape
    real_type = real_dtype(x.dtype)
    zero = b.const(0, real_type)
    (largest,) = b.reduce(tuple(batch), [n, n], [real_type], "max", (zero,),
                          lambda i, r: (b.max(*(b.abs(part(x.at([*i, *r]))) for part in (b.real, b.imag))),))

    transposed = b.value(x.shape, x.dtype, lambda index: b.mul(
        x.at((*index[:-2], index[-1], index[-2])), b.cast(b.binade(largest.at(index[:-2]))[1], x.dtype)))

    def body(nest: Any, outs: Sequence[Any], ins: Sequence[Any]) -> None:
        factors, w, v, failed = outs
        with each_matrix(nest, batch) as at:
            by_blocks.eigen(b, nest, factors, w, v, failed, at, triangle)

    _, w, v, failed = b.nest([(x.shape, x.dtype, transposed), ((*batch, n), real_type), (x.shape, x.dtype),
                              (tuple(batch), INT32)], body)
    scaled = b.value(w.shape, w.dtype, lambda index: b.mul(w.at(index), b.binade(largest.at(index[:-1]))[0]))
    return [in_dtype(b, unless(b, failed, by_columns(b, v)), dtype),
            in_dtype(b, unless(b, failed, scaled), real_dtype(dtype))]


rules.loops[eigh_p] = _eigh_loops


def _eigh_jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
    (x,), (tangent,) = primals, tangents
    v, w = eigh_p.bind(x, **params)
    if type(tangent) is ad.Zero:
        return [v, w], [ad.Zero.from_primal_value(v), ad.Zero.from_primal_value(w)]
    dtype = get_aval(x).dtype
    inner = matmul(adjoint(v), matmul(tangent, v))
    gaps = inverse_gaps(convert_element_type(w, dtype))
    dw = diagonal(inner)
    return [v, w], [matmul(v, mul(gaps, inner)), real(dw) if is_complex(dtype) else dw]


rules.jvps[eigh_p] = _eigh_jvp

# --- any square matrices

eig_p = multiple_results("eig")
batch_in_front(eig_p)


@result_types(eig_p)
def _eig_abstract(x: ShapedArray, *, compute_left_eigenvectors: bool, compute_right_eigenvectors: bool,
                  enable_eigvec_derivs: bool, implementation: Any) -> list[ShapedArray]:
    check_inexact("eig", x)
    check_square("eig", x)
    if dtypes.itemsize_bits(x.dtype) < 32:  # there is no complex dtype of their precision
        raise NotImplementedError(f"Unsupported dtype {x.dtype.name}.")
    dtype = complex_dtype(x.dtype)
    vectors = [ShapedArray(x.shape, dtype)] * (compute_left_eigenvectors + compute_right_eigenvectors)
    return [ShapedArray(x.shape[:-1], dtype), *vectors]


def eig(x: ArrayLike, *, compute_left_eigenvectors: bool = True, compute_right_eigenvectors: bool = True,
        enable_eigvec_derivs: bool = False, implementation: EigImplementation | None = None,
        use_magma: bool | None = None) -> list[Array]:
    """Eigenvalues and eigenvectors of square matrices, in no particular order.

    Args:
      x: matrices of shape `[..., n, n]`.
      compute_left_eigenvectors, compute_right_eigenvectors: whether to return those.
      enable_eigvec_derivs: allows derivatives of right eigenvectors, which hold only for eigenvalues
        that differ and a normalisation in which each vector's largest component keeps its phase.
      implementation, use_magma: who computes them, where there is a choice.

    Returns:
      `[w, vl, vr]` without what was not asked for; all complex.
    """
    if use_magma is not None and implementation is None:
        implementation = EigImplementation.MAGMA if use_magma else EigImplementation.CUSOLVER
    return eig_p.bind(x, compute_left_eigenvectors=compute_left_eigenvectors,
                      compute_right_eigenvectors=compute_right_eigenvectors,
                      enable_eigvec_derivs=enable_eigvec_derivs, implementation=implementation)


def _paired(b: Builder, vectors: Any, imaginary: Any, dtype: Any) -> Any:
    """Complex eigenvectors from LAPACK's real form: pairs of columns hold real and imaginary parts."""
    n = vectors.shape[-1]
    zero = b.const(0, vectors.dtype)

    def at(index: Sequence[Any]) -> Any:
        *batch, i, j = index
        part = imaginary.at([*batch, j])
        first, second = b.gt(part, zero), b.lt(part, zero)
        before, after = b.max(b.sub(j, b.index(1)), b.index(0)), b.min(b.add(j, b.index(1)), b.index(n - 1))
        here = vectors.at([*batch, j, i])
        re = b.select(second, vectors.at([*batch, before, i]), here)
        im = b.select(first, vectors.at([*batch, after, i]), b.select(second, b.neg(here), zero))
        return b.complex(re, im)

    return b.value(vectors.shape, dtype, at)


def _eig_loops(b: Builder, x: Any, *, compute_left_eigenvectors: bool, compute_right_eigenvectors: bool, **_: Any
               ) -> list[Any]:
    dtype = complex_dtype(b.avals_in[0].dtype) if x.dtype.itemsize >= 4 else np.dtype(np.complex64)
    x = working(b, x)
    *batch, n, _ = x.shape
    complex_input = is_complex(x.dtype)
    part = real_dtype(x.dtype)
    wanted = [compute_left_eigenvectors, compute_right_eigenvectors]
    work_size = max(1, (BLOCK + 4) * n)
    values = [((*batch, n), x.dtype)] if complex_input else [((*batch, n), part)] * 2

    def body(nest: Any, outs: Sequence[Any], ins: Sequence[Any]) -> None:
        factors, failed, *rest = outs
        found, vectors = rest[: len(values)], rest[len(values):]
        with each_matrix(nest, batch) as at:
            if not n:
                nest.store(failed, at, b.const(0, INT32))
                return
            work, info = nest.scratch((work_size,), x.dtype), nest.scratch((1,), INT32)
            unused = nest.scratch((1,), x.dtype)
            places: list[Any] = []
            remaining = list(vectors)
            for flag in wanted:
                places += [place_of(b, remaining.pop(0), at), n] if flag else [unused, 1]
            more = [nest.scratch((2 * n,), part)] if complex_input else []
            Routine(b, nest, "geev", x.dtype)(
                *("V" if flag else "N" for flag in wanted), n, place_of(b, factors, at), n,
                *(place_of(b, v, at) for v in found), *places, work, work_size, *more, info,
                writes=[factors, *rest, work, info, unused, *more])
            nest.store(failed, at, nest.load(info, [b.index(0)]))

    flawed = not_finite(b, x)
    transposed = by_columns(b, zeros_for(b, flawed, x))
    factored, failed, *rest = b.nest([(transposed.shape, x.dtype, transposed), (tuple(batch), INT32), *values,
                               *[((*batch, n, n), x.dtype)] * sum(wanted)], body)
    found, vectors = rest[: len(values)], rest[len(values):]
    if complex_input:
        w, out = found[0], [by_columns(b, v) for v in vectors]
    else:
        w = b.value((*batch, n), dtype, lambda index: b.complex(found[0].at(index), found[1].at(index)))
        out = [_paired(b, v, found[1], dtype) for v in vectors]
    return [unless(b, flawed, unless(b, failed, v)) for v in (w, *out)]


rules.loops[eig_p] = _eig_loops


def solve(a: Any, rhs: Any) -> Any:
    """`a⁻¹ @ rhs`, for square matrices of derivative rules."""
    factors, _, permutation = lu(a)
    shape = shape_of(rhs)
    order = broadcast_in_dim(permutation, shape, tuple(range(len(shape) - 1)))
    out = take_along(rhs, order, len(shape) - 2)
    out = triangular_solve(factors, out, left_side=True, lower=True, unit_diagonal=True)
    return triangular_solve(factors, out, left_side=True, lower=False)


def _at_largest(v: Any, x: Any) -> Any:
    """The elements of `x`, column by column, where those of `v` are largest."""
    axis = len(shape_of(v)) - 2
    place = argmax(abs(v), axis, INT32)
    return squeeze(take_along(x, expand_dims(place, (axis,)), axis), (axis,))


def _eig_jvp(primals: Sequence[Any], tangents: Sequence[Any], *, compute_left_eigenvectors: bool,
             compute_right_eigenvectors: bool, enable_eigvec_derivs: bool, implementation: Any
             ) -> tuple[list[Any], list[Any]]:
    (x,), (tangent,) = primals, tangents
    params = dict(compute_left_eigenvectors=compute_left_eigenvectors,
                  compute_right_eigenvectors=compute_right_eigenvectors, enable_eigvec_derivs=enable_eigvec_derivs,
                  implementation=implementation)
    if type(tangent) is ad.Zero:
        outs = eig_p.bind(x, **params)
        return outs, [ad.Zero.from_primal_value(v) for v in outs]
    vectors = compute_left_eigenvectors or compute_right_eigenvectors
    if vectors and not enable_eigvec_derivs:
        raise NotImplementedError(
            "Derivatives of non-symmetric eigenvectors are only valid under assumptions on the input that JAX cannot "
            "check (see the enable_eigvec_derivs argument to jax.lax.linalg.eig). Pass enable_eigvec_derivs=True to "
            "jax.lax.linalg.eig to compute them.")
    if compute_left_eigenvectors:
        raise NotImplementedError("Derivatives of left eigenvectors are not implemented, only those of eigenvalues and "
                                  "right eigenvectors.")
    w, v = eig_p.bind(x, **{**params, "compute_right_eigenvectors": True})
    dtype = get_aval(w).dtype
    inner = solve(v, matmul(convert_element_type(tangent, dtype), v))
    dw = diagonal(inner)
    if not compute_right_eigenvectors:
        return [w], [dw]
    n = shape_of(w)[-1]
    dv = matmul(v, mul(inverse_gaps(w), inner))
    # Vectors keep their length, and their largest components stay real.
    along = real(reduce_sum(mul(conj(v), dv), (len(shape_of(v)) - 2,)))
    turned = imag(div(_at_largest(v, dv), _at_largest(v, v)))
    return [w, v], [dw, sub(dv, mul(v, columns_of(complex(along, turned), n)))]


rules.jvps[eig_p] = _eig_jvp

# --- Schur, Hessenberg and tridiagonal form

schur_p = multiple_results("schur")
batch_in_front(schur_p)


@result_types(schur_p)
def _schur_abstract(x: ShapedArray, *, compute_schur_vectors: bool, sort_eig_vals: bool, select_callable: Any
                    ) -> list[ShapedArray]:
    check_inexact("schur", x)
    check_square("schur", x)
    return [ShapedArray(x.shape, x.dtype)] * (1 + compute_schur_vectors)


def schur(x: ArrayLike, *, compute_schur_vectors: bool = True, sort_eig_vals: bool = False,
          select_callable: Callable[..., Any] | None = None) -> tuple[Array, Array]:
    """The Schur form of square matrices: `x == v @ t @ v.T` with `t` (almost) upper triangular.

    Args:
      x: matrices of shape `[..., n, n]`.
      compute_schur_vectors: whether to return `v`.
      sort_eig_vals, select_callable: not supported.

    Returns:
      `[t, v]`, or `[t]`.

    Raises:
      NotImplementedError: for `sort_eig_vals`.
    """
    if sort_eig_vals:
        raise NotImplementedError("The sort feature of LAPACK's gees routine is not implemented.")
    return schur_p.bind(x, compute_schur_vectors=compute_schur_vectors, sort_eig_vals=sort_eig_vals,
                        select_callable=select_callable)


def _schur_loops(b: Builder, x: Any, *, compute_schur_vectors: bool, **_: Any) -> list[Any]:
    dtype = x.dtype
    x = working(b, x)
    *batch, n, _ = x.shape
    complex_input = is_complex(x.dtype)
    part = real_dtype(x.dtype)
    work_size = max(1, (BLOCK + 3) * n)

    def body(nest: Any, outs: Sequence[Any], ins: Sequence[Any]) -> None:
        t, v, failed = outs
        with each_matrix(nest, batch) as at:
            if not n:
                nest.store(failed, at, b.const(0, INT32))
                return
            work, info = nest.scratch((work_size,), x.dtype), nest.scratch((1,), INT32)
            count, flags = nest.scratch((1,), INT32), nest.scratch((n,), INT32)
            w = [nest.scratch((n,), x.dtype) for _ in range(1 if complex_input else 2)]
            more = [nest.scratch((n,), part)] if complex_input else []
            Routine(b, nest, "gees", x.dtype)(
                "V" if compute_schur_vectors else "N", "N", flags, n, place_of(b, t, at), n, count, *w,
                place_of(b, v, at), n, work, work_size, *more, flags, info,
                writes=[t, v, work, info, count, flags, *w, *more])
            nest.store(failed, at, nest.load(info, [b.index(0)]))

    transposed = by_columns(b, x)
    t, v, failed = b.nest([(transposed.shape, x.dtype, transposed), (transposed.shape, x.dtype), (tuple(batch), INT32)],
                          body)
    outs = [t, v] if compute_schur_vectors else [t]
    return [in_dtype(b, unless(b, failed, by_columns(b, o)), dtype) for o in outs]


rules.loops[schur_p] = _schur_loops

hessenberg_p = multiple_results("hessenberg")
batch_in_front(hessenberg_p)


@result_types(hessenberg_p)
def _hessenberg_abstract(a: ShapedArray) -> list[ShapedArray]:
    check_inexact("hessenberg", a)
    check_square("hessenberg", a)
    if a.shape[-1] == 0:
        raise TypeError(f"hessenberg takes matrices of at least one row, got shape {a.shape}")
    return [ShapedArray(a.shape, a.dtype), ShapedArray((*a.shape[:-2], a.shape[-1] - 1), a.dtype)]


def hessenberg(a: ArrayLike) -> tuple[Array, Array]:
    """Square matrices reduced to upper Hessenberg form by an orthogonal (unitary) similarity.

    Args:
      a: matrices `[..., n, n]` of a float or complex dtype.

    Returns:
      `(h, taus)`: the form, with the reflections that lead to it below its subdiagonal, `[..., n, n]`, and their
      factors, `[..., n - 1]`.
    """
    return tuple(hessenberg_p.bind(a))


def _hessenberg_loops(b: Builder, a: Any) -> list[Any]:
    dtype = a.dtype
    a = working(b, a)
    *batch, n, _ = a.shape
    work_size = max(1, BLOCK * n)

    def body(nest: Any, outs: Sequence[Any], ins: Sequence[Any]) -> None:
        h, taus, failed = outs
        with each_matrix(nest, batch) as at:
            work, info = nest.scratch((work_size,), a.dtype), nest.scratch((1,), INT32)
            Routine(b, nest, "gehrd", a.dtype)(n, 1, n, place_of(b, h, at), n, place_of(b, taus, at), work, work_size,
                                               info, writes=[h, taus, work, info])
            nest.store(failed, at, nest.load(info, [b.index(0)]))

    transposed = by_columns(b, a)
    h, taus, failed = b.nest([(transposed.shape, a.dtype, transposed), ((*batch, n - 1), a.dtype),
                              (tuple(batch), INT32)], body)
    return [in_dtype(b, unless(b, failed, by_columns(b, h)), dtype), in_dtype(b, unless(b, failed, taus), dtype)]


rules.loops[hessenberg_p] = _hessenberg_loops

tridiagonal_p = multiple_results("tridiagonal")
batch_in_front(tridiagonal_p)


@result_types(tridiagonal_p)
def _tridiagonal_abstract(a: ShapedArray, *, lower: bool) -> list[ShapedArray]:
    check_inexact("tridiagonal", a)
    check_square("tridiagonal", a)
    *batch, n, _ = a.shape
    if n == 0:
        raise TypeError(f"tridiagonal takes matrices of at least one row, got shape {a.shape}")
    part = real_dtype(a.dtype)
    return [ShapedArray(a.shape, a.dtype), ShapedArray((*batch, n), part), ShapedArray((*batch, n - 1), part),
            ShapedArray((*batch, n - 1), a.dtype)]


def tridiagonal(a: ArrayLike, *, lower: bool = True) -> list[Array]:
    """Symmetric or Hermitian matrices reduced to tridiagonal form by an orthogonal similarity.

    Args:
      a: matrices of shape `[..., n, n]`.
      lower: which triangle counts.

    Returns:
      `(a, d, e, taus)`: the reflections that lead to the form, its diagonal, its off-diagonal, and the
      factors of the reflections.
    """
    return list(tridiagonal_p.bind(a, lower=lower))


def _tridiagonal_loops(b: Builder, a: Any, *, lower: bool) -> list[Any]:
    dtype = a.dtype
    a = working(b, a)
    *batch, n, _ = a.shape
    part = real_dtype(a.dtype)
    work_size = max(1, BLOCK * n)

    def body(nest: Any, outs: Sequence[Any], ins: Sequence[Any]) -> None:
        with each_matrix(nest, batch) as at:
            work, info = nest.scratch((work_size,), a.dtype), nest.scratch((1,), INT32)
            Routine(b, nest, "hetrd" if is_complex(a.dtype) else "sytrd", a.dtype)(
                "L" if lower else "U", n, place_of(b, outs[0], at), n, *(place_of(b, o, at) for o in outs[1:]), work,
                work_size, info, writes=[*outs, work, info])

    transposed = by_columns(b, a)
    form, d, e, taus = b.nest([(transposed.shape, a.dtype, transposed), ((*batch, n), part), ((*batch, n - 1), part),
                               ((*batch, n - 1), a.dtype)], body)
    return [in_dtype(b, by_columns(b, form), dtype), in_dtype(b, d, real_dtype(dtype)),
            in_dtype(b, e, real_dtype(dtype)), in_dtype(b, taus, dtype)]


rules.loops[tridiagonal_p] = _tridiagonal_loops

__all__ = [
    "EigImplementation", "EighImplementation", "eig", "eig_p", "eigh", "eigh_p", "hessenberg", "hessenberg_p", "schur",
    "schur_p", "swapped", "tridiagonal", "tridiagonal_p",
]
