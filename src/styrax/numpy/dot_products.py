"""Products of vectors, matrices and arrays of them."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.arrays.explicit import permuted, resolved
from styrax.core.arrays.out_shardings import result_sharding
from styrax.core.programs.named import named
from styrax.core.tracing.source import api_boundary
from styrax.core.tracing.trace import get_aval
from styrax.core.types import avals, dtypes
from styrax.core.types.typing import ArrayLike, DTypeLike, ShardingLike
from styrax.transforms.fused import fused
from styrax.transforms.jit import jit_for_all_shapes as jit

from .conversion import asarray, place
from .promotion import (
    arrays,
    axis_index,
    check_arraylike,
    convert,
    dtype_of,
    promote_dtypes,
    result_typed,
    shape_of,
    user_dtype,
)
from .shaping import moveaxis, ravel


def output_type(preferred: Any, *args: Any, name: str) -> tuple[Any, bool]:
    """The dtype a product is accumulated in and given back as, and whether it is weak."""
    if preferred is None:
        return result_typed(*args)
    return user_dtype(preferred, name), False


def _general(a: Any, b: Any, numbers: Any, precision: Any, kind: tuple[Any, bool], out_sharding: Any = None) -> Any:
    out = lax.dot_general(a, b, dimension_numbers=numbers, precision=precision, preferred_element_type=kind[0],
                          **({} if out_sharding is None else {"out_sharding": out_sharding}))
    return _placed(convert(out, *kind), out_sharding)


def _placed(x: Any, out_sharding: Any) -> Any:
    """A product whose type does not tell yet that it is spread as was asked for."""
    return x if avals.explicit else place(x, out_sharding)


@fused(static_argnames=("precision", "preferred_element_type", "out_sharding"))
def dot(a: ArrayLike, b: ArrayLike, *, precision: lax.PrecisionLike = None,
        preferred_element_type: DTypeLike | None = None, out_sharding: ShardingLike | None = None) -> Array:
    """The sum of products over the last axis of `a` and the last but one of `b` (the only one of a vector).

    A scalar multiplies. Other axes are not matched: those of `a` come first, then those of `b`.

    Args:
      a, b: arrays or numbers; sizes of the axes that are summed over agree.
      precision: as for `lax.dot_general`.
      preferred_element_type: dtype to add up in and to return; by default the one that both promote to.
      out_sharding: the sharding of the result.

    Returns:
      an array of shape [*a.shape[:-1], *b.shape[:-2], *b.shape[-1:]], for a vector `b` a.shape[:-1].

    Raises:
      TypeError: for sizes that differ.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.dot(jnp.arange(3), jnp.ones(3))
      Array(3., dtype=float32)
    """
    a, b = arrays("dot", a, b)
    kind = output_type(preferred_element_type, a, b, name="dot")
    a_rank, b_rank = len(shape_of(a)), len(shape_of(b))
    if a_rank == 0 or b_rank == 0:
        contract: Any = ((), ())
    else:
        contract = ((a_rank - 1,), (0 if b_rank == 1 else b_rank - 2,))
    return _general(a, b, (contract, ((), ())), precision, kind, out_sharding)


@fused(static_argnames=("precision", "preferred_element_type", "out_sharding"))
def matmul(a: ArrayLike, b: ArrayLike, *, precision: lax.PrecisionLike = None,
           preferred_element_type: DTypeLike | None = None, out_sharding: ShardingLike | None = None) -> Array:
    """The matrix product of the last two axes; leading axes are matched with broadcasting.

    A vector is a row on the left and a column on the right, and its axis is not in the result.

    Args:
      a, b: arrays of rank 1 or more, shapes [..., m, n] and [..., n, k].
      precision: as for `lax.dot_general`.
      preferred_element_type: dtype to add up in and to return; by default the one that both promote to.
      out_sharding: the sharding of the result.

    Returns:
      an array of shape [..., m, k]; zeros where n is 0.

    Raises:
      ValueError: for scalars, and for leading axes that do not broadcast.
      TypeError: for sizes n that differ.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.matmul(jnp.ones((2, 3)), jnp.ones((5, 3, 4))).shape
      (5, 2, 4)
    """
    a, b = arrays("matmul", a, b)
    a_shape, b_shape = shape_of(a), shape_of(b)
    for i, s in enumerate((a_shape, b_shape)):
        if len(s) < 1:
            raise ValueError(f"matmul input operand {i} must have ndim at least 1, but it has ndim {len(s)}")
    kind = output_type(preferred_element_type, a, b, name="matmul")
    return _batched_product(a, b, len(a_shape) == 1, len(b_shape) == 1, precision, kind, "matmul", out_sharding)


def _side(a: Any, b: Any) -> Any:
    """Whose a batch axis of a product is, of its sizes there: a free one of "a" or "b" where only that side has it (or
    has it with a size above 1), "m" where both match, "1" where both have one, None where they do not fit."""
    if a is None:
        return "b"
    if b is None:
        return "a"
    if type(a) is int and a == 1:
        return "1" if type(b) is int and b == 1 else "b"
    if type(b) is int and b == 1:
        return "a"
    return "m" if a == b else None


def _spread_batch(x: Any, vector: bool, batches: int) -> list[bool]:
    """Which of the last `batches` batch axes are spread over a mesh."""
    aval = get_aval(x)
    told = aval.given_sharding
    own = [told is not None and told.spec[d] is not None for d in range(aval.ndim - (1 if vector else 2))]
    return [False] * (batches - len(own)) + own


def _batched_product(a: Any, b: Any, a_vector: bool, b_vector: bool, precision: Any, kind: tuple[Any, bool], name: str,
                     out_sharding: Any = None) -> Any:
    a_shape, b_shape = shape_of(a), shape_of(b)
    a_batch = a_shape[:-1] if a_vector else a_shape[:-2]
    b_batch = b_shape[:-1] if b_vector else b_shape[:-2]
    batches = max(len(a_batch), len(b_batch))
    a_batch = (None,) * (batches - len(a_batch)) + tuple(a_batch)
    b_batch = (None,) * (batches - len(b_batch)) + tuple(b_batch)
    order = [_side(ab, bb) for ab, bb in zip(a_batch, b_batch)]
    if None in order:
        raise ValueError(f"Incompatible shapes for {name} arguments: {tuple(a_shape)} and {tuple(b_shape)}")
    if avals.explicit:  # an axis of size 1 may be spread over a mesh axis of size 1, and then keeps its place
        spread = [_spread_batch(x, v, batches) for x, v in ((a, a_vector), (b, b_vector))]
        order = ["m" if side == "1" and (p or q) else side for side, p, q in zip(order, *spread, strict=True)]
    a_drop: list[int] = []
    b_drop: list[int] = []
    # Where each batch axis stands in its array, and which axes of size 1 are dropped.
    a_offset, b_offset = batches - (len(a_shape) - (1 if a_vector else 2)), batches - (len(b_shape) - (
        1 if b_vector else 2))
    a_at: dict[str, list[int]] = {"a": [], "m": []}
    b_at: dict[str, list[int]] = {"b": [], "m": []}
    for i, side in enumerate(order):
        ia, ib = i - a_offset, i - b_offset
        if side == "1":
            a_drop.append(ia)
            b_drop.append(ib)
        elif side == "m":
            a_at["m"].append(ia)
            b_at["m"].append(ib)
        elif side == "a":
            a_at["a"].append(ia)
            if ib >= 0:
                b_drop.append(ib)
        else:
            b_at["b"].append(ib)
            if ia >= 0:
                a_drop.append(ia)
    a = lax.squeeze(a, tuple(a_drop)) if a_drop else a
    b = lax.squeeze(b, tuple(b_drop)) if b_drop else b

    def moved(at: list[int], drop: list[int]) -> list[int]:
        return [i - sum(d < i for d in drop) for i in at]

    a_m, b_m = moved(a_at["m"], a_drop), moved(b_at["m"], b_drop)
    a_contract = len(shape_of(a)) - 1
    b_contract = len(shape_of(b)) - (1 if b_vector else 2)
    # The product has matched axes, free ones of a, its rows, free ones of b, its columns.
    n_matched, n_a, n_b = len(a_m), len(a_at["a"]), len(b_at["b"])
    rows = [] if a_vector else [n_matched + n_a]
    first_b = n_matched + n_a + len(rows)
    columns = [] if b_vector else [first_b + n_b]
    where = {"m": iter(range(n_matched)), "a": iter(range(n_matched, n_matched + n_a)),
             "b": iter(range(first_b, first_b + n_b))}
    permutation = [next(where[side]) for side in order if side != "1"] + rows + columns
    ones = tuple(i for i, side in enumerate(order) if side == "1")
    told = {}
    if out_sharding is not None:
        out_sharding = resolved(result_sharding(out_sharding, name))
        kept = [i for i in range(len(permutation) + len(ones)) if i not in ones]
        told["out_sharding"] = permuted(out_sharding, [kept[permutation.index(i)] for i in range(len(permutation))])
    out = lax.dot_general(a, b, dimension_numbers=(((a_contract,), (b_contract,)), (tuple(a_m), tuple(b_m))),
                          precision=precision, preferred_element_type=kind[0], **told)
    if permutation != list(range(len(permutation))):
        out = lax.transpose(out, tuple(permutation))
    out = lax.expand_dims(out, ones) if ones else out
    return place(convert(out, *kind), out_sharding) if ones else _placed(convert(out, *kind), out_sharding)


@jit
def matvec(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The products of matrices with vectors; leading axes are matched with broadcasting.

    Args:
      x1: matrices, shape [..., m, n].
      x2: vectors, shape [..., n].

    Returns:
      an array of shape [..., m], of the dtype that both promote to.

    Raises:
      ValueError: for lower ranks, and for leading axes that do not broadcast.
      TypeError: for sizes n that differ.
    """
    x1, x2 = arrays("matvec", x1, x2)
    if len(shape_of(x1)) < 2 or len(shape_of(x2)) < 1 or shape_of(x1)[-1] != shape_of(x2)[-1]:
        raise ValueError(f"matvec requires matrices [m, n] and vectors [n], got {shape_of(x1)} and {shape_of(x2)}")
    kind = result_typed(x1, x2)
    return _batched_product(x1, x2, False, True, None, kind, "matvec")


@jit
def vecmat(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The products of vectors, conjugated, with matrices; leading axes are matched with broadcasting.

    Args:
      x1: vectors, shape [..., n].
      x2: matrices, shape [..., n, m].

    Returns:
      an array of shape [..., m], of the dtype that both promote to.

    Raises:
      ValueError: for lower ranks, and for leading axes that do not broadcast.
      TypeError: for sizes n that differ.
    """
    from .complex_parts import conj

    x1, x2 = arrays("vecmat", x1, x2)
    if len(shape_of(x1)) < 1 or len(shape_of(x2)) < 2 or shape_of(x1)[-1] != shape_of(x2)[-2]:
        raise ValueError(f"vecmat requires vectors [n] and matrices [n, m], got {shape_of(x1)} and {shape_of(x2)}")
    kind = result_typed(x1, x2)
    return _batched_product(conj(x1), x2, True, False, None, kind, "vecmat")


@fused(static_argnames=("precision", "preferred_element_type"))
def vdot(a: ArrayLike, b: ArrayLike, *, precision: lax.PrecisionLike = None,
         preferred_element_type: DTypeLike | None = None) -> Array:
    """The sum of products of all elements, those of `a` conjugated.

    Args:
      a, b: arrays with equally many elements, taken as vectors in row order.
      precision: as for `lax.dot_general`.
      preferred_element_type: dtype to add up in and to return; by default the one that both promote to.

    Returns:
      an array of shape ().

    Raises:
      TypeError: for sizes that differ.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.vdot(jnp.array([1, 2]), jnp.array([3, 4]))
      Array(11, dtype=int32)
    """
    from .complex_parts import conj

    a, b = arrays("vdot", a, b)
    if dtypes.issubdtype(dtype_of(a), np.complexfloating):
        a = conj(a)
    return dot(ravel(a), ravel(b), precision=precision, preferred_element_type=preferred_element_type)


@fused(static_argnames=("axis", "precision", "preferred_element_type"))
def vecdot(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1, precision: lax.PrecisionLike = None,
           preferred_element_type: DTypeLike | None = None) -> Array:
    """The sums of products along an axis, elements of `x1` conjugated; other axes are broadcast.

    Args:
      x1, x2: arrays of rank 1 or more with one size along `axis`.
      axis: the axis of each that is summed over.
      precision: as for `lax.dot_general`.
      preferred_element_type: dtype to add up in and to return; by default the one that both promote to.

    Returns:
      an array of the shape that the other axes broadcast to.

    Raises:
      ValueError: for sizes along the axis that differ, for scalars, and for other axes that do not broadcast.
    """
    from .complex_parts import conj

    x1, x2 = arrays("vecdot", x1, x2)
    x1, x2 = asarray(x1), asarray(x2)
    if not x1.ndim or not x2.ndim or x1.shape[axis] != x2.shape[axis]:
        raise ValueError(f"axes must match; got shapes {x1.shape} and {x2.shape} with {axis=}")
    x1, x2 = moveaxis(x1, axis, -1), moveaxis(x2, axis, -1)
    kind = output_type(preferred_element_type, x1, x2, name="vecdot")
    x1 = conj(x1)
    return _batched_product(x1, x2, True, True, precision, kind, "vecdot")


@fused(static_argnames=("axes", "precision", "preferred_element_type", "out_sharding"))
def tensordot(a: ArrayLike, b: ArrayLike, axes: int | Sequence[int] | Sequence[Sequence[int]] = 2, *,
              precision: lax.PrecisionLike = None, preferred_element_type: DTypeLike | None = None,
              out_sharding: ShardingLike | None = None) -> Array:
    """The sum of products over several axes: the last ones of `a` with the first of `b`, or such as are given.

    Args:
      a, b: arrays.
      axes: how many axes, one axis of each, or as many axes of `a` as of `b`, in the order in which they meet.
      precision: as for `lax.dot_general`.
      preferred_element_type: dtype to add up in and to return; by default the one that both promote to.
      out_sharding: the sharding of the result.

    Returns:
      an array with the other axes of `a`, then those of `b`.

    Raises:
      TypeError: for axes of other forms, and for sizes that differ.
      ValueError: for an axis out of range.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.tensordot(jnp.ones((2, 3, 4)), jnp.ones((4, 3, 5)), axes=([1, 2], [1, 0])).shape
      (2, 5)
    """
    a, b = arrays("tensordot", a, b)
    kind = output_type(preferred_element_type, a, b, name="tensordot")
    a_rank, b_rank = len(shape_of(a)), len(shape_of(b))
    if isinstance(axes, (int, np.integer)) or (hasattr(axes, "__index__") and np.ndim(axes) == 0):
        n = operator.index(axes)
        if n > min(a_rank, b_rank):
            raise TypeError(f"Number of tensordot axes (axes {n}) exceeds input ranks ({shape_of(a)} and "
                            f"{shape_of(b)})")
        contract: Any = (tuple(range(a_rank - n, a_rank)), tuple(range(n)))
    elif isinstance(axes, (tuple, list)) and len(axes) == 2:
        first, second = axes
        if isinstance(first, int) and isinstance(second, int):
            contract = ((axis_index(first, a_rank),), (axis_index(second, b_rank),))
        elif isinstance(first, (tuple, list)) and isinstance(second, (tuple, list)):
            if len(first) != len(second):
                raise TypeError(f"tensordot requires axes lists to have equal length, got {first} and {second}.")
            contract = (tuple(axis_index(i, a_rank) for i in first), tuple(axis_index(i, b_rank) for i in second))
        else:
            raise TypeError("tensordot requires both axes lists to be either ints, tuples or lists, got "
                            f"{first} and {second}")
    else:
        raise TypeError("tensordot axes argument must be an int, a pair of ints, or a pair of lists/tuples of ints.")
    return _general(a, b, (contract, ((), ())), precision, kind, out_sharding)


@fused(static_argnames=("precision", "preferred_element_type"))
def inner(a: ArrayLike, b: ArrayLike, *, precision: lax.PrecisionLike = None,
          preferred_element_type: DTypeLike | None = None) -> Array:
    """The sum of products over the last axes of both arguments; a scalar multiplies.

    Args:
      a, b: arrays or numbers; their last axes have one size.
      precision: as for `lax.dot_general`.
      preferred_element_type: dtype to add up in and to return; by default the one that both promote to.

    Returns:
      an array of shape [*a.shape[:-1], *b.shape[:-1]].

    Raises:
      TypeError: for sizes that differ.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.inner(jnp.array([1, 2]), jnp.array([[3, 4], [5, 6]]))
      Array([11, 17], dtype=int32)
    """
    from .binary import multiply

    a, b = arrays("inner", a, b)
    a_rank, b_rank = len(shape_of(a)), len(shape_of(b))
    if a_rank == 0 or b_rank == 0:
        if preferred_element_type is not None:
            kind = user_dtype(preferred_element_type, "inner")
            a, b = convert(a, kind), convert(b, kind)
        return multiply(a, b)
    return tensordot(a, b, (a_rank - 1, b_rank - 1), precision=precision, preferred_element_type=preferred_element_type)


@fused(static_argnames=("out",))
def outer(a: ArrayLike, b: ArrayLike, out: None = None) -> Array:
    """All products of an element of `a` with one of `b`, both taken as vectors in row order.

    Args:
      a, b: arrays with m and n elements.
      out: has to be None.

    Returns:
      an array of shape [m, n], of the dtype that both promote to.

    Raises:
      NotImplementedError: for an `out`.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.outer(jnp.array([1, 2]), jnp.array([3, 4]))
      Array([[3, 4],
             [6, 8]], dtype=int32)
    """
    if out is not None:
        raise NotImplementedError("The 'out' argument to jnp.outer is not supported.")
    from .binary import multiply

    a, b = promote_dtypes(*arrays("outer", a, b))
    return multiply(lax.expand_dims(ravel(a), (1,)), lax.expand_dims(ravel(b), (0,)))


@jit
def kron(a: ArrayLike, b: ArrayLike) -> Array:
    """The Kronecker product: copies of `b`, each multiplied by an element of `a`.

    Args:
      a, b: arrays or numbers; the one of lower rank gets leading dimensions of size 1.

    Returns:
      an array whose sizes are the products of those of both, of the dtype that both promote to.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.kron(jnp.array([1, 10]), jnp.array([1, 2]))
      Array([ 1,  2, 10, 20], dtype=int32)
    """
    a, b = (asarray(x) for x in promote_dtypes(*arrays("kron", a, b)))
    if a.ndim < b.ndim:
        a = lax.expand_dims(a, tuple(range(b.ndim - a.ndim)))
    elif b.ndim < a.ndim:
        b = lax.expand_dims(b, tuple(range(a.ndim - b.ndim)))
    shape = tuple(i * j for i, j in zip(a.shape, b.shape))  # type: ignore[union-attr]
    rows = lax.expand_dims(a, tuple(range(1, 2 * a.ndim, 2)))  # type: ignore[union-attr]
    columns = lax.expand_dims(b, tuple(range(0, 2 * b.ndim, 2)))  # type: ignore[union-attr]
    return lax.reshape(lax.mul(rows, columns), shape)


def _cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Any:
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = (asarray(x) for x in promote_dtypes(*arrays("cross", a, b)))
    a, b = moveaxis(a, axisa, -1), moveaxis(b, axisb, -1)
    if a.shape[-1] not in (2, 3) or b.shape[-1] not in (2, 3):
        raise ValueError("Dimension must be either 2 or 3 for cross product")
    from .binary import multiply, subtract
    from .concatenation import concatenate
    from .indexing import gather_elements

    a_, b_ = ([gather_elements(x, (..., i)) for i in range(x.shape[-1])] for x in (a, b))
    if len(a_) == 2 and len(b_) == 2:
        return subtract(multiply(a_[0], b_[1]), multiply(a_[1], b_[0]))
    if len(a_) == 2:
        a_.append(lax.full_like(a_[0], 0))
    if len(b_) == 2:
        b_.append(lax.full_like(b_[0], 0))
    parts = [subtract(multiply(a_[1], b_[2]), multiply(a_[2], b_[1])),
             subtract(multiply(a_[2], b_[0]), multiply(a_[0], b_[2])),
             subtract(multiply(a_[0], b_[1]), multiply(a_[1], b_[0]))]
    out = concatenate([lax.expand_dims(p, (p.ndim,)) for p in parts], axis=-1)
    return moveaxis(out, -1, axisc)


@api_boundary
def cross(a: ArrayLike, b: ArrayLike, axisa: int = -1, axisb: int = -1, axisc: int = -1,
          axis: int | None = None) -> Array:
    """The cross product of vectors of 3 components, or of 2: then the third component alone.

    A vector of 2 components beside one of 3 has 0 as the third.

    Args:
      a, b: arrays whose other axes broadcast.
      axisa, axisb, axisc: which axis holds the components in `a`, `b` and the result.
      axis: is instead of all three, unless None.

    Returns:
      an array of the dtype that both promote to; without the axis of components where both have 2.

    Raises:
      ValueError: for other numbers of components.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.cross(jnp.array([1, 0, 0]), jnp.array([0, 1, 0]))
      Array([0, 0, 1], dtype=int32)
    """
    check_arraylike("cross", a, b)
    return _cross_jit(a, b, axisa=axisa, axisb=axisb, axisc=axisc, axis=axis)


named(_cross, "cross")
_cross_jit = jit(_cross, static_argnames=("axisa", "axisb", "axisc", "axis"))
