"""Products of BCOO arrays and dense ones, and products of dense arrays at given positions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np

import styrax.numpy as jnp
from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.arrays.shape_struct import ShapeDtypeStruct
from styrax.core.types.typing import ArrayLike, DTypeLike, ShardingLike
from styrax.transforms.api import eval_shape

from ..arrays import SparseInfo
from ..primitives import traceable
from .array import BCOO
from .sparse_products import spdot_general
from .storage import Layout, layout_of, positions, whole_batches

Pair: TypeAlias = tuple[Sequence[int], Sequence[int]]
DimensionNumbers: TypeAlias = tuple[Pair, Pair]
"""`((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch))`, as of `lax.dot_general`."""


def normalized(dimension_numbers: DimensionNumbers) -> Any:
    """Dimension numbers as tuples of plain integers."""
    return tuple(tuple(tuple(map(int, dims)) for dims in pair) for pair in dimension_numbers)


def product_shape(lhs: Sequence[int], rhs: Sequence[int], dimension_numbers: DimensionNumbers) -> tuple[int, ...]:
    """The shape of a product. Raises what `lax.dot_general` does where the shapes do not fit."""
    def like(shape: Sequence[int]) -> ShapeDtypeStruct:
        return ShapeDtypeStruct(tuple(shape), np.dtype(np.float32))

    return eval_shape(partial(lax.dot_general, dimension_numbers=dimension_numbers), like(lhs), like(rhs)).shape


def _counters(sizes: Sequence[int], rank: int, start: int) -> list[Array]:
    """For dimensions of the given sizes, which stand at `start`, …, their own indices among `rank` dimensions."""
    return [lax.broadcasted_iota(np.int32, tuple(n if d == start + i else 1 for d in range(rank)), start + i)
            for i, n in enumerate(sizes)]


def _check(layout: Layout, contracting: Sequence[int], batch: Sequence[int]) -> None:
    if any(d >= layout.n_batch + layout.n_sparse for d in contracting):
        raise NotImplementedError("bcoo_dot_general: contracting over dense dimensions.")
    if any(d >= layout.n_batch for d in batch):
        raise NotImplementedError(
            "bcoo_dot_general batch dimensions must be among the batch dimensions in the sparse representation.\n"
            f"got lhs_batch={tuple(batch)}, n_batch={layout.n_batch}")


def _dot_general(lhs_data: Array, lhs_indices: Array, rhs: Array, *, dimension_numbers: DimensionNumbers,
                 preferred_element_type: DTypeLike | None, lhs_spinfo: SparseInfo) -> Array:
    """Each stored element times the part of `rhs` that it meets, added up where it belongs."""
    (contracting, rhs_contracting), (batch, rhs_batch) = normalized(dimension_numbers)
    shape = lhs_spinfo.shape
    layout = layout_of(lhs_data, lhs_indices, shape)
    n_batch, n_sparse, n_dense, nse = layout
    _check(layout, contracting, batch)
    data, indices = whole_batches(lhs_data, lhs_indices, shape)
    dtype = jnp.result_type(data, rhs) if preferred_element_type is None else preferred_element_type

    # [batch, contracted batch, free batch, nse] come first in `data`, and all but the free ones in `rhs`
    folded = [d for d in contracting if d < n_batch]
    looked_up = [d for d in contracting if d >= n_batch]
    free = [d for d in range(n_batch) if d not in batch and d not in folded]
    kept = [d for d in range(n_batch, n_batch + n_sparse) if d not in looked_up]
    leading = (*batch, *folded, *free)
    data = data.transpose(*leading, *range(n_batch, data.ndim)).astype(dtype)
    indices = indices.transpose(*leading, n_batch, n_batch + 1)
    partner = dict(zip(contracting, rhs_contracting, strict=True))
    front = (*rhs_batch, *(partner[d] for d in (*folded, *looked_up)))
    rhs = rhs.transpose(*front, *(d for d in range(rhs.ndim) if d not in front)).astype(dtype)
    rest = rhs.shape[len(front):]

    rank = n_batch + 1
    met = rhs
    if front:
        where = _counters([shape[d] for d in (*batch, *folded)], rank, 0)
        where += [indices[..., d - n_batch] for d in looked_up]
        met = rhs.at[tuple(where)].get(mode="fill", fill_value=0, wrap_negative_indices=False)
    met = jnp.broadcast_to(met, (*data.shape[:rank], *rest))
    if not kept:
        summed = (*range(len(batch), len(batch) + len(folded)), n_batch)
        alone = tuple(d for d in range(rank) if d not in summed)
        return lax.dot_general(data, met, ((summed, summed), (alone, alone)))
    terms = jnp.expand_dims(data, tuple(range(data.ndim, data.ndim + len(rest))))
    terms = terms * jnp.expand_dims(met, tuple(range(rank, rank + n_dense)))
    where = _counters([shape[d] for d in batch], rank, 0)
    where += _counters([shape[d] for d in free], rank, len(batch) + len(folded))
    where += [indices[..., d - n_batch] for d in kept]
    sizes = [shape[d] for d in (*batch, *free, *kept, *range(n_batch + n_sparse, len(shape)))]
    return jnp.zeros((*sizes, *rest), dtype).at[tuple(where)].add(terms, mode="drop", wrap_negative_indices=False)


bcoo_dot_general_p = traceable("bcoo_dot_general", _dot_general, linear=[0, 2])


def _bcoo_dot_general(lhs_data: Array, lhs_indices: Array, rhs: ArrayLike, *, dimension_numbers: DimensionNumbers,
                      preferred_element_type: DTypeLike | None = None, lhs_spinfo: SparseInfo) -> Array:
    return bcoo_dot_general_p.bind(
        jnp.asarray(lhs_data), jnp.asarray(lhs_indices), jnp.asarray(rhs),
        dimension_numbers=normalized(dimension_numbers), preferred_element_type=preferred_element_type,
        lhs_spinfo=lhs_spinfo)


def swapped(dimension_numbers: DimensionNumbers) -> DimensionNumbers:
    """Those of the product with the operands exchanged."""
    (lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch) = dimension_numbers
    return (rhs_contracting, lhs_contracting), (rhs_batch, lhs_batch)


def operands_exchanged(product: Array, first: int, second: int, batch: int) -> Array:
    """A product with the free dimensions of its operands exchanged: `first` has so many dimensions of its own, …"""
    order = (*range(batch), *range(batch + first, batch + first + second), *range(batch, batch + first))
    return product.transpose(*order)


def _bcoo_rdot_general(lhs: ArrayLike, rhs_data: Array, rhs_indices: Array, *, dimension_numbers: DimensionNumbers,
                       preferred_element_type: DTypeLike | None = None, rhs_spinfo: SparseInfo) -> Array:
    product = _bcoo_dot_general(
        rhs_data, rhs_indices, lhs, dimension_numbers=swapped(dimension_numbers),
        preferred_element_type=preferred_element_type, lhs_spinfo=rhs_spinfo)
    (contracting, _), (batch, _) = dimension_numbers
    taken = len(contracting) + len(batch)
    return operands_exchanged(product, len(rhs_spinfo.shape) - taken, jnp.ndim(lhs) - taken, len(batch))


def bcoo_dot_general(lhs: BCOO | ArrayLike, rhs: BCOO | ArrayLike, *, dimension_numbers: DimensionNumbers,
                     precision: None = None, preferred_element_type: DTypeLike | None = None,
                     out_sharding: ShardingLike | None = None) -> BCOO | Array:
    """The product of arrays of which any may be BCOO, as `lax.dot_general` of dense ones.

    Args:
      lhs: a BCOO or dense array.
      rhs: a BCOO or dense array.
      dimension_numbers: `((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch))`.
      precision: not used.
      preferred_element_type: the dtype of the result.
      out_sharding: must be None.

    Returns:
      A BCOO array where both are, else a dense one.

    Raises:
      TypeError: the shapes do not fit.
      NotImplementedError: dense dimensions are contracted, or batch dimensions are no batch dimensions of a BCOO array.
    """
    if out_sharding is not None:
        raise NotImplementedError("bcoo_dot_general with out_sharding")
    numbers = normalized(dimension_numbers)
    product_shape(jnp.shape(lhs), jnp.shape(rhs), numbers)  # type: ignore[arg-type]
    if isinstance(lhs, BCOO) and isinstance(rhs, BCOO):
        data, indices, shape = spdot_general(*lhs._bufs, *rhs._bufs, lhs_spinfo=lhs._info, rhs_spinfo=rhs._info,
                                             dimension_numbers=numbers, preferred_element_type=preferred_element_type)
        return BCOO((data, indices), shape=shape)
    if isinstance(lhs, BCOO):
        return _bcoo_dot_general(*lhs._bufs, rhs, dimension_numbers=numbers, lhs_spinfo=lhs._info,  # type: ignore
                                 preferred_element_type=preferred_element_type)
    if isinstance(rhs, BCOO):
        return _bcoo_rdot_general(lhs, *rhs._bufs, dimension_numbers=numbers, rhs_spinfo=rhs._info,
                                  preferred_element_type=preferred_element_type)
    return lax.dot_general(lhs, rhs, numbers, preferred_element_type=preferred_element_type)


# -- products at given positions ----------------------------------------------------------------------
def _sampled(A: Array, B: Array, indices: Array, *, dimension_numbers: DimensionNumbers) -> Array:
    """The rows of both operands that meet at each position, multiplied."""
    (a_contracting, b_contracting), (a_batch, b_batch) = normalized(dimension_numbers)
    a_free = [d for d in range(A.ndim) if d not in a_contracting and d not in a_batch]
    b_free = [d for d in range(B.ndim) if d not in b_contracting and d not in b_batch]
    a = A.transpose(*a_batch, *a_free, *a_contracting)
    b = B.transpose(*b_batch, *b_free, *b_contracting)
    sizes = (*a.shape[:len(a_batch) + len(a_free)], *b.shape[len(b_batch):len(b_batch) + len(b_free)])
    *_, nse, n_sparse = indices.shape
    n_batch = indices.ndim - 2
    where = positions(jnp.broadcast_to(indices, (*sizes[:n_batch], nse, n_sparse)))
    stored = (*sizes[:n_batch], nse)
    shared, own = where[:len(a_batch)], where[len(a_batch):]

    def rows(x: Array, at: tuple[Array, ...]) -> Array:
        found = x.at[at].get(mode="fill", fill_value=0, wrap_negative_indices=False) if at else x
        return jnp.broadcast_to(found, (*stored, *x.shape[len(at):]))

    a = rows(a, (*shared, *own[:len(a_free)]))
    b = rows(b, (*shared, *own[len(a_free):]))
    together = tuple(range(len(stored) + len(a_batch) - len(shared)))  # batch dimensions may be stored whole
    count = len(a_contracting)
    last = tuple(range(a.ndim - count, a.ndim)), tuple(range(b.ndim - count, b.ndim))
    return lax.dot_general(a, b, (last, (together, together)))


bcoo_dot_general_sampled_p = traceable("bcoo_dot_general_sampled", _sampled, linear=[0, 1])


def bcoo_dot_general_sampled(A: ArrayLike, B: ArrayLike, indices: ArrayLike, *,
                             dimension_numbers: DimensionNumbers) -> Array:
    """Elements of the product of dense arrays, computed only where they are asked for.

    Args:
      A: a dense array.
      B: a dense array.
      indices: `(*batch, nse, n_sparse)` positions in the product, as those of a BCOO array.
      dimension_numbers: `((A_contracting, B_contracting), (A_batch, B_batch))`.

    Returns:
      `(*batch, nse, *dense)`, the data of a BCOO array; zero beyond the product's shape.

    Raises:
      TypeError: the shapes do not fit.
    """
    A, B, indices = jnp.asarray(A), jnp.asarray(B), jnp.asarray(indices)
    numbers = normalized(dimension_numbers)
    product_shape(A.shape, B.shape, numbers)
    return bcoo_dot_general_sampled_p.bind(A, B, indices, dimension_numbers=numbers)
