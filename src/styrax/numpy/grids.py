"""Grids of indices and coordinates."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.programs.named import named
from styrax.core.settings.config import numpy_dtype_promotion
from styrax.core.tracing.source import api_boundary
from styrax.core.tracing.trace import concrete_or_error
from styrax.core.types.typing import ArrayLike, SupportsShape

from .concatenation import concatenate
from .conversion import asarray
from .creation import ones
from .patterns import tril, triu
from .positions import nonzero
from .promotion import arrays, check_arraylike, convert, default_int, promote_dtypes, shape_of
from .ranges import arange, linspace


def meshgrid(*xi: ArrayLike, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> list[Array]:
    """The coordinates of a grid: for every vector an array that varies along its own axis.

    Args:
      *xi: vectors.
      copy: has to be True.
      sparse: whether other axes have size 1.
      indexing: "xy" exchanges the first two axes, "ij" does not.

    Returns:
      a list of arrays, one for each vector and of its dtype.

    Raises:
      ValueError: for other values of `indexing`, for arguments of another rank than 1, and for `copy=False`.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.meshgrid(jnp.arange(2), jnp.arange(3))[1]
      Array([[0, 0],
             [1, 1],
             [2, 2]], dtype=int32)
    """
    vectors = [asarray(x) for x in arrays("meshgrid", *xi)]
    if not copy:
        raise ValueError("jax.numpy.meshgrid only supports copy=True")
    if indexing not in ("xy", "ij"):
        raise ValueError(f"Valid values for indexing are 'xy' and 'ij', got {indexing}")
    if any(v.ndim != 1 for v in vectors):
        raise ValueError("Arguments to jax.numpy.meshgrid must be 1D, got shapes "
                         f"{[v.shape for v in vectors]}")
    swapped = indexing == "xy" and len(vectors) >= 2
    if swapped:
        vectors[0], vectors[1] = vectors[1], vectors[0]
    shape = tuple(1 if sparse else v.shape[0] for v in vectors)
    out = [lax.broadcast_in_dim(v, tuple(v.shape[0] if i == k else d for k, d in enumerate(shape)), (i,))
           for i, v in enumerate(vectors)]
    if swapped:
        out[0], out[1] = out[1], out[0]
    return out


def ix_(*args: ArrayLike) -> tuple[Array, ...]:
    """Vectors reshaped so that indexing with them takes all combinations.

    Args:
      *args: vectors of integers; empty ones may have any dtype.

    Returns:
      a tuple of arrays, each with its elements along an axis of its own and size 1 along the others.

    Raises:
      ValueError: for other ranks.
      NotImplementedError: for booleans.
    """
    check_arraylike("ix", *args)
    vectors = [asarray(x) for x in args]
    out = []
    for i, v in enumerate(vectors):
        if v.ndim != 1:
            raise ValueError("Arguments to jax.numpy.ix_ must be 1-dimensional, got shape " + str(v.shape))
        if v.dtype == np.bool_:
            raise NotImplementedError("Boolean arguments to jax.numpy.ix_ are not implemented")
        if not v.size:  # what an empty list is made into
            v = convert(v, default_int())
        shape = tuple(v.shape[0] if i == k else 1 for k in range(len(vectors)))
        out.append(lax.broadcast_in_dim(v, shape, (i,)) if v.size else lax.reshape(v, shape))
    return tuple(out)


def diag_indices(n: int, ndim: int = 2) -> tuple[Array, ...]:
    """The indices of the main diagonal of an n × … × n array.

    Args:
      n: the size of each axis, static.
      ndim: how many axes, static.

    Returns:
      a tuple of `ndim` equal vectors of integers, 0 to n - 1.

    Raises:
      ValueError: for negative arguments.
    """
    n = concrete_or_error(operator.index, n, "'n' argument of jnp.diag_indices()")
    ndim = concrete_or_error(operator.index, ndim, "'ndim' argument of jnp.diag_indices()")
    if n < 0:
        raise ValueError(f"n argument to diag_indices must be nonnegative, got {n}")
    if ndim < 0:
        raise ValueError(f"ndim argument to diag_indices must be nonnegative, got {ndim}")
    return (lax.iota(default_int(), n),) * ndim


def diag_indices_from(arr: ArrayLike) -> tuple[Array, ...]:
    """The indices of the main diagonal of an array with equal sizes.

    Args:
      arr: an array of rank 2 or more; only its shape counts.

    Returns:
      a tuple of as many equal vectors of integers as `arr` has dimensions.

    Raises:
      ValueError: for sizes that differ, and below rank 2.
    """
    (arr,) = arrays("diag_indices_from", arr)
    shape = arr.shape
    if len(shape) < 2:
        raise ValueError("input array must be at least 2-d")
    if len(set(shape)) != 1:
        raise ValueError("All dimensions of input must be of equal length")
    return diag_indices(shape[0], len(shape))


class Triangle(Protocol):
    """`tril_indices` and `triu_indices`."""

    def __call__(self, n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]: ...


def _triangle(name: str, part: Callable[..., Any], doc: str) -> Triangle:
    def function(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
        n = concrete_or_error(operator.index, n, f"n argument of jnp.{name}")
        k = concrete_or_error(operator.index, k, f"k argument of jnp.{name}")
        m = n if m is None else concrete_or_error(operator.index, m, f"m argument of jnp.{name}")
        mask = part(ones((n, m)), k=k)
        # How many there are follows from the sizes alone.
        count = int((np.tril if part is tril else np.triu)(np.ones((n, m)), k).sum())
        rows, columns = nonzero(mask, size=count)
        return rows, columns

    return named(function, name, doc)


_TRIANGLE_DOC = """The indices of the {} triangle of an n × m matrix, {} diagonal k.

    Args:
      n, m: the numbers of rows and columns, static; square by default.
      k: the diagonal, static: above the main one for positive numbers.

    Returns:
      two vectors of integers: rows and columns, in row order.
    """
tril_indices = _triangle("tril_indices", tril, _TRIANGLE_DOC.format("lower", "up to"))
triu_indices = _triangle("triu_indices", triu, _TRIANGLE_DOC.format("upper", "from"))


def _matrix_shape(name: str, arr: ArrayLike | SupportsShape) -> tuple:
    if not (hasattr(arr, "dtype") and hasattr(arr, "shape")):
        check_arraylike(name, arr)
    if len(shape_of(arr)) != 2:
        raise ValueError("Only 2-D inputs are accepted")
    return shape_of(arr)


def tril_indices_from(arr: ArrayLike | SupportsShape, k: int = 0) -> tuple[Array, Array]:
    """The indices of the lower triangle of a matrix, up to diagonal k.

    Args:
      arr: a matrix, or anything with a dtype and its shape, which alone counts.
      k: the diagonal: above the main one for positive numbers.

    Returns:
      two vectors of integers: rows and columns, in row order.

    Raises:
      ValueError: for other ranks.
    """
    n, m = _matrix_shape("tril_indices_from", arr)
    return tril_indices(n, k=k, m=m)


def triu_indices_from(arr: ArrayLike | SupportsShape, k: int = 0) -> tuple[Array, Array]:
    """The indices of the upper triangle of a matrix, from diagonal k.

    Args:
      arr: a matrix, or anything with a dtype and its shape, which alone counts.
      k: the diagonal: above the main one for positive numbers.

    Returns:
      two vectors of integers: rows and columns, in row order.

    Raises:
      ValueError: for other ranks.
    """
    n, m = _matrix_shape("triu_indices_from", arr)
    return triu_indices(n, k=k, m=m)


def mask_indices(n: int, mask_func: Callable[[Array, int], Array], k: int = 0, *,
                 size: int | None = None) -> tuple[Array, Array]:
    """The indices where `mask_func(ones((n, n)), k)` is not 0.

    Args:
      n: the number of rows and columns.
      mask_func: gives a matrix, such as `tril` or `triu`.
      k: its second argument.
      size: how many indices to return, needed under `jit`: the first ones, filled up with zeros.

    Returns:
      two vectors of integers: rows and columns, in row order.
    """
    i, j = nonzero(mask_func(ones((n, n)), k), size=size)
    return i, j


# -- index objects -----------------------------------------------------------------------------------------
def _range(key: slice, name: str) -> Any:
    """A slice as a vector: `arange`, or `linspace` for an imaginary step."""
    start = concrete_or_error(None, key.start, f"slice start of jnp.{name}")
    stop = concrete_or_error(None, key.stop, f"slice stop of jnp.{name}")
    step = concrete_or_error(None, key.step, f"slice step of jnp.{name}")
    start = 0 if start is None else start
    step = 1 if step is None else step
    if isinstance(step, (complex, np.complexfloating)):
        return linspace(start, stop, int(abs(step)))  # type: ignore[call-overload]
    return arange(start, stop, step)


def _ranges(keys: Any, name: str) -> list[Any]:
    """Slices as vectors of one dtype: those of counts and of steps meet whatever promotion is in force."""
    with numpy_dtype_promotion("standard"):
        return promote_dtypes(*(_range(key, name) for key in keys))


class _Mgrid:
    """`mgrid[0:3, 0:2]`: the coordinates of a grid, stacked along a first axis."""

    @api_boundary
    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return _range(key, "mgrid")
        vectors = _ranges(key, "mgrid")
        if not vectors:
            return asarray(np.zeros(0))
        return lax.stack(meshgrid(*vectors, indexing="ij"), 0)


class _Ogrid:
    """`ogrid[0:3, 0:2]`: the coordinates of a grid, as arrays that broadcast."""

    @api_boundary
    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return _range(key, "ogrid")
        vectors = _ranges(key, "ogrid")
        return list(meshgrid(*vectors, indexing="ij", sparse=True))


class _Concatenation:
    """`r_[…]` and `c_[…]`: vectors, numbers and slices put together along an axis.

    A directive in front, "axis,rank,place", says along which axis, how many axes everything has at least, and where
    those stand that an item has itself; "r" and "c" give matrices, in which vectors are rows and columns.
    """

    def __init__(self, name: str, axis: int, rank: int, place: int, matrix: str):
        self.name, self.axis, self.rank, self.place, self.matrix = name, axis, rank, place, matrix

    def __len__(self) -> int:
        return 0

    @api_boundary
    def __getitem__(self, key: Any) -> Any:
        items = list(key) if isinstance(key, tuple) else [key]
        axis, rank, place, matrix = self.axis, self.rank, self.place, ""
        if items and isinstance(items[0], str):
            text = items.pop(0)
            if text in ("r", "c"):
                matrix = self.matrix or text
            else:
                try:
                    axis, *others = (int(n) for n in text.split(","))
                except ValueError:
                    raise ValueError(f"could not understand directive {text!r}") from None
                rank = others[0] if others else rank
                place = others[1] if len(others) > 1 else self.place
        parts = []
        for item in items:
            if isinstance(item, str):
                raise ValueError("string directive must be placed at the beginning")
            x = _range(item, self.name) if isinstance(item, slice) else asarray(item)
            if x.ndim == 0:
                x = lax.expand_dims(x, (0,))
            parts.append(self._raised(x, rank, place) if x.ndim < rank else x)
        out = concatenate(parts, axis=axis)
        if matrix and out.ndim == 1:
            return lax.expand_dims(out, (0,) if matrix == "r" else (1,))
        return out

    @staticmethod
    def _raised(x: Any, rank: int, place: int) -> Any:
        """`x` with axes of size 1 up to a rank, its own ones from `place` on."""
        added = rank - x.ndim
        out = lax.expand_dims(x, tuple(range(added)))
        if place == -1:
            return out
        order = list(range(added))
        own = list(range(added, rank))
        at = place if place >= 0 else place + rank - x.ndim + 1
        return lax.transpose(out, tuple(order[:at] + own + order[at:]))


mgrid = _Mgrid()
ogrid = _Ogrid()
r_ = _Concatenation("r_", 0, 1, -1, "")
c_ = _Concatenation("c_", -1, 2, 0, "c")
