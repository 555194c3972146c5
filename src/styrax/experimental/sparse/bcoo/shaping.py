"""BCOO arrays in other shapes: broadcast, reshaped, reversed, joined, and with other layouts."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Sequence

import numpy as np

import styrax.numpy as jnp
from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.types.typing import Shape, ShardingLike

from ..errors import SparseEfficiencyError, SparseEfficiencyWarning
from .array import BCOO, bcoo_transpose
from .storage import Layout, beside, in_bounds, layout_of, whole_batches


def without_outsiders(mat: BCOO) -> Array:
    """The data of an array with zeros where a position lies beyond the shape, for operations that drop indices."""
    layout = layout_of(*mat._bufs, mat.shape)
    if not layout.n_sparse:
        return mat.data
    within = in_bounds(mat.indices, layout.split(mat.shape)[1])
    data = jnp.expand_dims(within, tuple(range(within.ndim, mat.data.ndim)))
    return jnp.where(data, mat.data, jnp.zeros((), mat.dtype))


def bcoo_broadcast_in_dim(mat: BCOO, *, shape: Shape, broadcast_dimensions: Sequence[int],
                          sharding: ShardingLike | None = None) -> BCOO:
    """A BCOO array with more dimensions, or with those of size 1 repeated; see `lax.broadcast_in_dim`.

    New dimensions before the first sparse one (without any: the first dense one) are batches, those after the last
    sparse one are dense if there are dense ones behind which they stand, and others are sparse.

    Args:
      mat: a BCOO array.
      shape: of the result.
      broadcast_dimensions: for each dimension of `mat` its place in the result.
      sharding: must be None.

    Raises:
      NotImplementedError: a sparse dimension would have to be repeated.
    """
    if sharding is not None:
        raise NotImplementedError("bcoo_broadcast_in_dim with sharding")
    sizes = tuple(map(int, shape))
    if len(sizes) != len({*range(len(sizes))}) or len(broadcast_dimensions) != mat.ndim:
        raise ValueError(f"broadcast_dimensions must have one entry for each of {mat.ndim} dimensions; "
                         f"got {tuple(broadcast_dimensions)}")
    if any(n not in (1, sizes[d]) for n, d in zip(mat.shape, broadcast_dimensions, strict=True)):
        raise ValueError(f"cannot broadcast shape {mat.shape} to {sizes} along {tuple(broadcast_dimensions)}")
    layout = layout_of(*mat._bufs, mat.shape)
    batch, sparse, dense = layout.split(tuple(broadcast_dimensions))
    first_sparse = min(sparse) if sparse else min(dense, default=len(sizes))
    n_batch = max(first_sparse, max(batch, default=-1) + 1)
    end = len(sizes) if not dense else min(dense)
    if sparse and end > max(sparse) + 1 and not dense:
        end = len(sizes)
    if not sparse:
        end = n_batch
    if math.prod(sizes[d] for d in range(n_batch, end) if d not in sparse) != 1:
        raise NotImplementedError("Adding sparse dimensions with lengths != 1")
    if any(mat.shape[layout.n_batch + i] != sizes[d] for i, d in enumerate(sparse)):
        raise NotImplementedError("Broadcasting sparse dimensions of length 1")
    nse = layout.nse
    data = lax.broadcast_in_dim(mat.data, (*(sizes[d] if d not in batch or mat.data.shape[batch.index(d)] != 1
                                             or sizes[d] == 1 else sizes[d] for d in range(n_batch)),
                                           nse, *sizes[end:]),
                                (*batch, n_batch, *(n_batch + 1 + d - end for d in dense)))
    indices = lax.broadcast_in_dim(mat.indices, (*sizes[:n_batch], nse, layout.n_sparse),
                                   (*batch, n_batch, n_batch + 1))
    columns = [indices[..., sparse.index(d)] if d in sparse else jnp.zeros(indices.shape[:-1], indices.dtype)
               for d in range(n_batch, end)]
    indices = jnp.stack(columns, axis=-1) if columns else indices
    return BCOO((data, indices), shape=sizes)


def bcoo_squeeze(arr: BCOO, *, dimensions: Sequence[int]) -> BCOO:
    """A BCOO array without some of its dimensions of size 1.

    Raises:
      ValueError: a dimension has another size.
    """
    shape = arr.shape
    dropped = {d % arr.ndim for d in dimensions}
    if any(shape[d] != 1 for d in dropped):
        raise ValueError("cannot select an axis to squeeze out which has size not equal to one, got "
                         f"shape={shape} and dimensions={tuple(dimensions)}")
    layout = layout_of(*arr._bufs, shape)
    n_batch, n_sparse, _, _ = layout
    batch = [d for d in dropped if d < n_batch]
    dense = [d - n_sparse + 1 for d in dropped if d >= n_batch + n_sparse]
    kept = [d - n_batch for d in range(n_batch, n_batch + n_sparse) if d not in dropped]
    data = without_outsiders(arr) if len(kept) < n_sparse else arr.data
    indices = arr.indices[..., np.array(kept, int)] if len(kept) < n_sparse else arr.indices
    return BCOO((lax.squeeze(data, (*batch, *dense)), lax.squeeze(indices, batch)),
                shape=tuple(n for d, n in enumerate(shape) if d not in dropped),
                indices_sorted=arr.indices_sorted, unique_indices=arr.unique_indices)


def bcoo_rev(operand: BCOO, dimensions: Sequence[int]) -> BCOO:
    """A BCOO array reversed along dimensions; see `lax.rev`."""
    n_batch, n_sparse, _, _ = layout_of(*operand._bufs, operand.shape)
    axes = [d % operand.ndim for d in dimensions]
    data, indices = operand._bufs
    if any(d < n_batch for d in axes):
        data, indices = whole_batches(data, indices, operand.shape)
    sparse = [d for d in axes if n_batch <= d < n_batch + n_sparse]
    batch = [d for d in axes if d < n_batch]
    data = lax.rev(data, (*batch, *(d - n_sparse + 1 for d in axes if d >= n_batch + n_sparse)))
    indices = lax.rev(indices, batch)
    if sparse:
        columns = [indices[..., i] for i in range(n_sparse)]
        for d in sparse:
            size, column = operand.shape[d], columns[d - n_batch]
            columns[d - n_batch] = jnp.where(column < size, size - 1 - column, size)
        indices = jnp.stack(columns, axis=-1)
    return BCOO((data, indices), shape=operand.shape, unique_indices=operand.unique_indices)


def padded(mat: BCOO, nse: int) -> BCOO:
    """The same array with room for `nse` elements, those beyond its own outside of the shape."""
    layout = layout_of(*mat._bufs, mat.shape)
    n_batch, n_sparse, n_dense, stored = layout
    if stored >= nse:
        return mat
    data, indices = whole_batches(*mat._bufs, mat.shape)
    batch, sparse, dense = layout.split(mat.shape)
    outside = jnp.broadcast_to(jnp.array(sparse, indices.dtype), (*batch, nse - stored, n_sparse))
    return BCOO((jnp.concatenate([data, jnp.zeros((*batch, nse - stored, *dense), data.dtype)], axis=n_batch),
                 jnp.concatenate([indices, outside], axis=n_batch)), shape=mat.shape,
                indices_sorted=mat.indices_sorted, unique_indices=mat.unique_indices)


def bcoo_concatenate(operands: Sequence[BCOO], *, dimension: int) -> BCOO:
    """BCOO arrays one after the other along a batch or sparse dimension; see `lax.concatenate`.

    They get the fewest batch and dense dimensions that any has.

    Raises:
      ValueError: there are none, or their shapes do not fit.
      NotImplementedError: the dimension is dense.
    """
    if not operands:
        raise ValueError("bcoo_concatenate: operands must not be empty")
    if not all(isinstance(x, BCOO) for x in operands):
        raise TypeError(f"bcoo_concatenate: operands must all be BCOO; got {[type(x) for x in operands]}")
    n_batch, n_dense = min(x.n_batch for x in operands), min(x.n_dense for x in operands)
    operands = [bcoo_update_layout(x, n_batch=n_batch, n_dense=n_dense) for x in operands]
    first = operands[0]
    layout = layout_of(*first._bufs, first.shape)
    n_sparse = layout.n_sparse
    along = dimension % first.ndim if -first.ndim <= dimension < first.ndim else dimension
    rest = {(*x.shape[:along], *x.shape[along + 1:]) for x in operands}
    if len(rest) > 1 or not 0 <= along < first.ndim:
        raise ValueError(f"bcoo_concatenate: shapes {[x.shape for x in operands]} do not fit along {dimension=}")
    if along >= n_batch + n_sparse:
        raise NotImplementedError("Concatenation along dense dimensions.")
    total = sum(x.shape[along] for x in operands)
    shape = (*first.shape[:along], total, *first.shape[along + 1:])
    if along < n_batch:
        nse = max(x.nse for x in operands)
        whole = [whole_batches(*x._bufs, x.shape) for x in (padded(x, nse) for x in operands)]
        buffers = tuple(jnp.concatenate(parts, axis=along) for parts in zip(*whole, strict=True))
        return BCOO(buffers, shape=shape)  # type: ignore[arg-type]
    starts = itertools.accumulate((x.shape[along] for x in operands[:-1]), initial=0)
    parts_of_data, parts_of_indices = [], []
    for x, start in zip(operands, starts, strict=True):
        data, indices = whole_batches(*x._bufs, x.shape)
        moved = indices.at[..., along - n_batch].add(start)
        within = in_bounds(indices, layout.split(x.shape)[1])[..., None]
        parts_of_data.append(data)
        parts_of_indices.append(jnp.where(within, moved, beside(layout.split(shape)[1], indices)))
    return BCOO((jnp.concatenate(parts_of_data, axis=n_batch), jnp.concatenate(parts_of_indices, axis=n_batch)),
                shape=shape)


def _reshaped_layout(layout: Layout, shape: Sequence[int], new: Sequence[int]) -> tuple[int, int]:
    """How many dimensions of a new shape are batch and dense ones."""
    batch, _, dense = (math.prod(part) for part in layout.split(shape))
    before = list(itertools.accumulate(new, int.__mul__, initial=1))
    fitting = [i for i, size in enumerate(before) if size == batch]
    if not fitting:
        raise ValueError("bcoo_reshape: new shape cannot mix batch and sparse dimensions; "
                         f"got shape={tuple(shape)} new_shape={tuple(new)} with n_batch={layout.n_batch}")
    behind = list(itertools.accumulate(reversed(new), int.__mul__, initial=1))
    ends = [i for i, size in enumerate(behind) if size == dense and (i or not layout.n_dense)]
    if not ends or (not layout.n_dense and math.prod(shape) != math.prod(new)):
        raise ValueError("bcoo_reshape: new shape cannot mix sparse and dense dimensions; "
                         f"got shape={tuple(shape)} new_shape={tuple(new)} with n_dense={layout.n_dense}")
    n_dense = ends[0] if layout.n_dense else 0
    n_batch = max(i for i in fitting if i + n_dense <= len(new))
    return n_batch, n_dense


def bcoo_reshape(mat: BCOO, *, new_sizes: Sequence[int], dimensions: Sequence[int] | None = None,
                 sharding: ShardingLike | None = None) -> BCOO:
    """A BCOO array in another shape, in which batch, sparse and dense dimensions do not mix.

    Args:
      mat: a BCOO array.
      new_sizes: its shape. As many leading dimensions as possible are batches.
      dimensions: a permutation of the dimensions, applied before.
      sharding: must be None.

    Raises:
      ValueError: kinds of dimensions would mix.
    """
    if sharding is not None:
        raise NotImplementedError("bcoo_reshape with sharding")
    if dimensions is not None:
        mat = bcoo_transpose(mat, permutation=tuple(dimensions))
    new = tuple(map(int, new_sizes))
    if math.prod(new) == 0 or mat.size == 0:
        if mat.size != math.prod(new):
            raise ValueError(f"cannot reshape array of shape {mat.shape} into shape {new}")
    layout = layout_of(*mat._bufs, mat.shape)
    n_batch, n_dense = _reshaped_layout(layout, mat.shape, new)
    data, indices = whole_batches(*mat._bufs, mat.shape)
    _, sparse, _ = layout.split(mat.shape)
    sizes = new[n_batch:len(new) - n_dense]
    if not sizes and layout.n_sparse:
        data = without_outsiders(BCOO((data, indices), shape=mat.shape))
    data = data.reshape(*new[:n_batch], layout.nse, *new[len(new) - n_dense:])
    indices = indices.reshape(*new[:n_batch], layout.nse, layout.n_sparse)
    if tuple(sizes) != sparse:
        within = in_bounds(indices, sparse)
        columns = [indices[..., i] for i in range(layout.n_sparse)]
        flat = jnp.zeros(within.shape, indices.dtype)
        for column, size in zip(columns, sparse, strict=True):
            flat = flat * size + column
        found = []
        for size in reversed(sizes):
            found.append(flat % max(size, 1))
            flat = flat // max(size, 1)
        moved = jnp.stack(found[::-1], axis=-1) if sizes else jnp.zeros((*within.shape, 0), indices.dtype)
        indices = jnp.where(within[..., None], moved, beside(sizes, indices))
    return BCOO((data, indices), shape=new)


def _widened(mat: BCOO, batch: int, dense: int) -> BCOO:
    """The same array with so many of the last batch and of the first dense dimensions made sparse."""
    layout = layout_of(*mat._bufs, mat.shape)
    data, indices = whole_batches(*mat._bufs, mat.shape)
    if dense:
        sizes = data.shape[layout.n_batch + 1:layout.n_batch + 1 + dense]
        n = math.prod(sizes)
        own = jnp.stack(jnp.unravel_index(jnp.arange(n), sizes), axis=-1).astype(indices.dtype)
        data = data.reshape(*data.shape[:layout.n_batch], layout.nse * n, *data.shape[layout.n_batch + 1 + dense:])
        grid = (*indices.shape[:-1], n)
        indices = jnp.concatenate([jnp.broadcast_to(indices[..., None, :], (*grid, layout.n_sparse)),
                                   jnp.broadcast_to(own, (*grid, dense))], axis=-1)
        indices = indices.reshape(*indices.shape[:layout.n_batch], layout.nse * n, layout.n_sparse + dense)
    if batch:
        kept = layout.n_batch - batch
        sizes = data.shape[kept:layout.n_batch]
        n = math.prod(sizes)
        nse, n_sparse = indices.shape[-2:]
        own = jnp.stack(jnp.unravel_index(jnp.arange(n), sizes), axis=-1).astype(indices.dtype)
        data = data.reshape(*data.shape[:kept], n * nse, *data.shape[layout.n_batch + 1:])
        own = jnp.broadcast_to(own[:, None], (*indices.shape[:kept], n, nse, batch))
        indices = indices.reshape(*indices.shape[:kept], n, nse, n_sparse)
        indices = jnp.concatenate([own, indices], axis=-1).reshape(*indices.shape[:kept], n * nse, batch + n_sparse)
    return BCOO((data, indices), shape=mat.shape)


def _narrowed(mat: BCOO, batch: int, dense: int) -> BCOO:
    """The same array with so many of the first sparse dimensions made batches, and of the last ones dense."""
    layout = layout_of(*mat._bufs, mat.shape)
    data, indices = whole_batches(*mat._bufs, mat.shape)
    n_batch, n_sparse, _, _ = layout
    _, sparse, _ = layout.split(mat.shape)
    zero = jnp.zeros((), data.dtype)
    for size in reversed(sparse[n_sparse - dense:]):
        here = indices[..., -1:] == beside(jnp.arange(size), indices)
        here = jnp.expand_dims(here, tuple(range(here.ndim, data.ndim + 1)))
        data = jnp.where(here, jnp.expand_dims(data, n_batch + 1), zero)
        indices = indices[..., :-1]
    for size in sparse[:batch]:
        here = jnp.expand_dims(indices[..., 0], n_batch) == beside(jnp.arange(size), indices).swapaxes(-1, -2)
        here = jnp.expand_dims(here, tuple(range(here.ndim, data.ndim + 1)))
        data = jnp.where(here, jnp.expand_dims(data, n_batch), zero)
        rest = indices[..., 1:]
        indices = jnp.broadcast_to(jnp.expand_dims(rest, n_batch),
                                   (*rest.shape[:n_batch], size, *rest.shape[n_batch:]))
        n_batch += 1
    return BCOO((data, indices), shape=mat.shape)


def bcoo_update_layout(mat: BCOO, *, n_batch: int | None = None, n_dense: int | None = None,
                       on_inefficient: str | None = "error") -> BCOO:
    """The same array with other numbers of batch and dense dimensions.

    Args:
      mat: a BCOO array.
      n_batch: how many batch dimensions, by default as many as `mat` has.
      n_dense: how many dense dimensions, by default as many as `mat` has.
      on_inefficient: what to do where a sparse dimension of a size above 1 becomes a batch or dense one, so that many
        zeros are stored: "error", "warn" or None.

    Raises:
      ValueError: the numbers or `on_inefficient` make no sense.
      SparseEfficiencyError: many zeros would be stored.
    """
    layout = layout_of(*mat._bufs, mat.shape)
    n_batch = layout.n_batch if n_batch is None else n_batch
    n_dense = layout.n_dense if n_dense is None else n_dense
    if on_inefficient not in ("error", "warn", None):
        raise ValueError(f"on_inefficient={on_inefficient!r}; expected one of ['error', 'warn', None].")
    if n_batch < 0:
        raise ValueError(f"n_batch must be non-negative; got {n_batch}")
    if n_dense < 0:
        raise ValueError(f"n_dense must be non-negative; got {n_dense}")
    if n_batch + n_dense > mat.ndim:
        raise ValueError(f"sum of n_batch={n_batch} and n_dense={n_dense} cannot be larger than mat.ndim={mat.ndim}.")
    if (n_batch, n_dense) == (layout.n_batch, layout.n_dense):
        return mat
    new_batch = mat.shape[layout.n_batch:n_batch]
    new_dense = mat.shape[mat.ndim - n_dense:mat.ndim - layout.n_dense] if n_dense > layout.n_dense else ()
    for name, old, asked, sizes in (("n_batch", layout.n_batch, n_batch, new_batch),
                                    ("n_dense", layout.n_dense, n_dense, new_dense)):
        if any(size > 1 for size in sizes):
            problem = (f"For matrix of shape {mat.shape}, increasing {name} from {old} to {asked} results in "
                       "inefficient storage.")
            if on_inefficient == "error":
                raise SparseEfficiencyError(
                    f"{problem} To disable this error, set the on_inefficient argument of bcoo_update_layout to "
                    "'warn' or None.")
            if on_inefficient == "warn":
                warnings.warn(problem, category=SparseEfficiencyWarning, stacklevel=2)
    wide = _widened(mat, max(layout.n_batch - n_batch, 0), max(layout.n_dense - n_dense, 0))
    return _narrowed(wide, max(n_batch - layout.n_batch, 0), max(n_dense - layout.n_dense, 0))
