"""Operations that rearrange elements without computing: broadcast, reshape, transpose, pad, …

On the CPU they are index arithmetic, never copies of their own.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from styrax.core import dtypes, rules
from styrax.core.avals import ShapedArray
from styrax.core.physical import physicals
from styrax.core.primitive import Primitive
from styrax.core.trace import Tracer, get_aval
from styrax.transforms import ad, batching

from .casting import _convert_element_type, as_array
from .primitives import (
    NUMERIC,
    check_dtype,
    check_same_dtypes,
    first_dtype,
    joined_vma,
    shape_of,
    standard_primitive,
)


def canonical_shape(shape: Any, context: str = "") -> tuple:
    """A shape as a tuple of ints (or symbolic sizes).

    Raises TypeError for anything but a sequence of integers.
    """
    if isinstance(shape, (int, np.integer)) and not isinstance(shape, bool):
        return (int(shape),)
    try:
        return tuple(map(canonical_dim, shape))
    except TypeError:
        pass
    where = f" {context}" if context else ""
    if any(isinstance(d, Tracer) for d in (shape if isinstance(shape, Sequence) else (shape,))):
        from styrax.core.errors import ConcretizationTypeError

        traced = next(d for d in shape if isinstance(d, Tracer)) if isinstance(shape, Sequence) else shape
        raise ConcretizationTypeError(
            traced,
            f"Shapes must be 1D sequences of concrete values of integer type, got {shape}.{where} Shapes are "
            "part of a program's type: mark the argument that gives the size as static (static_argnums).",
        )
    raise TypeError(
        f"Shapes must be 1D sequences of concrete values of integer type, got {shape}.{where}"
    )


def canonical_dim(d: Any) -> Any:
    if type(d) is int or is_symbolic(d):
        return d
    return operator.index(d)


def is_symbolic(d: Any) -> bool:
    """Whether a dimension is a symbolic size."""
    return hasattr(d, "_is_symbolic_dim")


def check_shape(name: str, shape: tuple) -> None:
    for d in shape:
        if type(d) is int and d < 0:
            raise TypeError(f"{name} shape must have every element be nonnegative, got {shape}.")


def canonical_axis(axis: int, ndim: int) -> int:
    """An axis counted from the front. Raises ValueError for one that does not exist."""
    axis = operator.index(axis)
    if not -ndim <= axis < ndim:
        raise ValueError(f"axis {axis} is out of bounds for array of dimension {ndim}")
    return axis + ndim if axis < 0 else axis


def size_of(shape: Sequence[Any]) -> Any:
    return math.prod(shape)


# -- broadcast_in_dim ------------------------------------------------------------------------------


def _broadcast_shape_rule(x: Any, *, shape: tuple, broadcast_dimensions: tuple, sharding: Any) -> tuple:
    check_shape("broadcast_in_dim", shape)
    if len(broadcast_dimensions) != x.ndim:
        raise TypeError(
            "broadcast_in_dim broadcast_dimensions must have length equal to operand ndim; got "
            f"broadcast_dimensions {broadcast_dimensions} for operand ndim {x.ndim}."
        )
    if len(shape) < x.ndim:
        raise TypeError(
            "broadcast_in_dim target broadcast shape must have equal or higher rank to the operand shape; got "
            f"operand ndim {x.ndim} and target broadcast ndim {len(shape)}."
        )
    if any(not 0 <= d < len(shape) for d in broadcast_dimensions):
        raise TypeError(
            "broadcast_in_dim broadcast_dimensions must be a subset of output dimensions, got "
            f"{broadcast_dimensions} for operand ndim {x.ndim} and shape {shape}."
        )
    if any(i >= j for i, j in zip(broadcast_dimensions, broadcast_dimensions[1:], strict=False)):
        raise TypeError(
            f"broadcast_in_dim broadcast_dimensions must be strictly increasing; got {broadcast_dimensions}"
        )
    if any(
        not (type(s) is int and s == 1) and s != shape[d]
        for s, d in zip(x.shape, broadcast_dimensions, strict=True)
    ):
        raise TypeError(
            "broadcast_in_dim operand dimension sizes must either be 1, or be equal to their corresponding "
            f"dimensions in the target broadcast shape; got operand of shape {x.shape}, target broadcast shape "
            f"{shape}, broadcast_dimensions {broadcast_dimensions}"
        )
    return shape


def _broadcast_loops(b: Any, x: Any, *, shape: tuple, broadcast_dimensions: tuple, sharding: Any) -> Any:
    shape = b.avals_out[0].shape
    stretched = [
        type(s) is int and s == 1 and not (type(shape[d]) is int and shape[d] == 1)
        for s, d in zip(x.shape, broadcast_dimensions, strict=True)
    ]

    def at(index: Any) -> Any:
        zero = b.index(0)
        return x.at([zero if s else index[d] for s, d in zip(stretched, broadcast_dimensions, strict=True)])

    return b.value(shape, x.dtype, at)


def _broadcast_hlo(m: Any, x: Any, *, shape: tuple, broadcast_dimensions: tuple, sharding: Any) -> Any:
    return m.broadcast_in_dim(x, m.avals_out[0], broadcast_dimensions)


broadcast_in_dim_p = standard_primitive(
    "broadcast_in_dim", _broadcast_shape_rule, first_dtype, loops=_broadcast_loops, hlo=_broadcast_hlo
)


def _broadcast_transpose(
    ct: Any, x: Any, *, shape: tuple, broadcast_dimensions: tuple, sharding: Any
) -> list[Any]:
    if type(ct) is ad.Zero:
        return [ad.Zero(x.aval)]
    operand_shape = x.aval.shape
    ones = [i for i, s in enumerate(operand_shape) if type(s) is int and s == 1]
    kept = {d for i, d in enumerate(broadcast_dimensions) if i not in ones}
    summed = _reduce_sum(ct, tuple(d for d in range(len(shape)) if d not in kept))
    return [expand_dims(summed, ones)]


def _reduce_sum(x: Any, axes: Sequence[int]) -> Any:
    from .reductions import reduce_sum

    return reduce_sum(x, tuple(axes)) if axes else x


def _broadcast_batch(
    args: Any, dims: Any, *, shape: tuple, broadcast_dimensions: tuple, sharding: Any
) -> Any:
    (x,), (dim,) = args, dims
    x = batching.moveaxis(x, dim, 0)
    new_shape = (shape_of(x)[0], *shape)
    new_dims = (0, *(d + 1 for d in broadcast_dimensions))
    return broadcast_in_dim(x, new_shape, new_dims), 0


ad.deflinear2(broadcast_in_dim_p, _broadcast_transpose)
rules.batchers[broadcast_in_dim_p] = _broadcast_batch


def broadcast_in_dim(
    operand: Any, shape: Any, broadcast_dimensions: Sequence[int], *, out_sharding: Any = None
) -> Any:
    """Spread an array over a larger shape.

    Args:
      operand: an array.
      shape: shape of the result.
      broadcast_dimensions: for each dimension of `operand`, in increasing order, the dimension of the
        result it becomes; its size is that one's or 1.
      out_sharding: sharding of the result.

    Returns:
      an array of the given shape, repeated along the dimensions that `operand` lacks.

    Raises:
      TypeError: for shapes and dimensions that do not fit.
    """
    shape = canonical_shape(shape)
    dims = tuple(map(operator.index, broadcast_dimensions))
    if not isinstance(operand, np.ndarray) and out_sharding is None and shape_of(operand) == shape and (
        len(dims) == len(shape) and dims == tuple(range(len(shape)))
    ):
        return as_array(operand)
    return broadcast_in_dim_p.bind(operand, shape=shape, broadcast_dimensions=dims, sharding=out_sharding)


def broadcast(operand: Any, sizes: Sequence[int], *, out_sharding: Any = None) -> Any:
    """Repeat an array along new leading dimensions.

    Args:
      operand: an array.
      sizes: sizes of the new dimensions.
      out_sharding: sharding of the result.

    Returns:
      an array of shape `(*sizes, *operand.shape)`.
    """
    if not len(sizes) and out_sharding is None:
        return as_array(operand)
    n = len(sizes)
    shape = shape_of(operand)
    return broadcast_in_dim(
        operand, (*sizes, *shape), range(n, n + len(shape)), out_sharding=out_sharding
    )


def broadcast_shapes(*shapes: Any) -> tuple:
    """The shape of arrays of the given shapes broadcast together, by NumPy's rules.

    Raises ValueError for shapes that do not fit.
    """
    tuples = [canonical_shape(s) for s in shapes]
    if not tuples:
        return ()
    rank = max(map(len, tuples))
    out = []
    for sizes in zip(*[(1,) * (rank - len(s)) + s for s in tuples], strict=True):
        size: Any = 1
        for s in sizes:
            if not (type(s) is int and s == 1) and s != size:
                if not (type(size) is int and size == 1):
                    raise ValueError(f"Incompatible shapes for broadcasting: shapes={list(shapes)}")
                size = s
        out.append(size)
    return tuple(out)


def broadcast_to_rank(x: Any, rank: int) -> Any:
    """The array with leading dimensions of size 1 added up to a rank."""
    shape = shape_of(x)
    if len(shape) == rank:
        return as_array(x)
    return broadcast_in_dim(x, (1,) * (rank - len(shape)) + shape, range(rank - len(shape), rank))


def broadcast_like(arr: Any, like_arr: Any) -> Any:
    """`arr` broadcast, by NumPy's rules, to the shape of `like_arr`.

    Raises ValueError where the shape of `arr` does not fit.
    """
    shape, target = shape_of(arr), shape_of(like_arr)
    if shape == target:
        return as_array(arr)
    if broadcast_shapes(shape, target) != target:
        raise ValueError(f"Cannot broadcast array of shape {shape} to shape {target}")
    return broadcast_in_dim(arr, target, range(len(target) - len(shape), len(target)))


def unbroadcast(aval: Any, x: Any) -> Any:
    """The cotangent of an operand of type `aval`, given that of an elementwise result it was spread over."""
    if type(x) is ad.Zero:
        return ad.Zero(aval)
    shape = shape_of(x)
    if aval.shape == shape:
        return x
    if not aval.shape:
        return _reduce_sum(x, tuple(range(len(shape))))
    axes = tuple(d for d, (a, s) in enumerate(zip(aval.shape, shape, strict=True)) if a != s)
    return reshape(_reduce_sum(x, axes), aval.shape)


def expand_dims(array: Any, dimensions: Sequence[int]) -> Any:
    """The array with dimensions of size 1 added at the given positions of the result.

    Raises ValueError for positions that repeat or do not exist.
    """
    dimensions = tuple(dimensions)
    if not dimensions:
        return as_array(array)
    shape = shape_of(array)
    ndim = len(shape) + len(dimensions)
    places = [canonical_axis(d, ndim) for d in dimensions]
    if len(set(places)) != len(places):
        raise ValueError(f"repeated axis in lax.expand_dims: {dimensions}")
    kept = [d for d in range(ndim) if d not in places]
    sizes = iter(shape)
    return broadcast_in_dim(array, [1 if d in places else next(sizes) for d in range(ndim)], kept)


# -- squeeze ---------------------------------------------------------------------------------------


def squeeze_axes(dimensions: Sequence[int], shape: tuple) -> tuple[int, ...]:
    """The axes to squeeze out, counted from the front. Raises ValueError for impossible ones."""
    axes = tuple(canonical_axis(d, len(shape)) for d in dimensions)
    if len(set(axes)) != len(axes):
        raise ValueError(f"dimensions are not unique: {axes}")
    if any(shape[a] != 1 for a in axes):
        raise ValueError(
            f"cannot select an axis to squeeze out which has size not equal to one, got {shape=} and "
            f"dimensions={tuple(dimensions)}"
        )
    return axes


def _squeeze_shape(x: Any, *, dimensions: tuple) -> tuple:
    axes = squeeze_axes(dimensions, x.shape)
    return tuple(s for d, s in enumerate(x.shape) if d not in axes)


def _squeeze_loops(b: Any, x: Any, *, dimensions: tuple) -> Any:
    def at(index: Any) -> Any:
        rest = iter(index)
        return x.at([b.index(0) if d in dimensions else next(rest) for d in range(len(x.shape))])

    return b.value(b.avals_out[0].shape, x.dtype, at)


squeeze_p = standard_primitive(
    "squeeze",
    _squeeze_shape,
    first_dtype,
    loops=_squeeze_loops,
    hlo=lambda m, x, *, dimensions: m.reshape(x, m.avals_out[0].shape),
)
ad.deflinear2(squeeze_p, lambda ct, x, *, dimensions: [expand_dims(ct, dimensions)])


def _squeeze_batch(args: Any, dims: Any, *, dimensions: tuple) -> Any:
    (x,), (dim,) = args, dims
    moved = [d + (d >= dim) for d in dimensions]
    return squeeze(x, moved), dim - sum(d < dim for d in moved)


rules.batchers[squeeze_p] = _squeeze_batch


def squeeze(array: Any, dimensions: Sequence[int]) -> Any:
    """The array without some dimensions of size 1.

    Raises ValueError for dimensions that do not exist, repeat, or have another size.
    """
    axes = squeeze_axes(tuple(dimensions), shape_of(array))
    if not axes and isinstance(get_aval(array), ShapedArray):
        return as_array(array)
    return squeeze_p.bind(array, dimensions=axes)


# -- reshape ---------------------------------------------------------------------------------------


def _reshape_shape(x: Any, *, new_sizes: tuple, dimensions: Any, sharding: Any) -> tuple:
    if any(type(d) is int and d < 0 for d in new_sizes):
        raise TypeError(f"reshape new_sizes must all be positive, got {new_sizes}.")
    if size_of(x.shape) != size_of(new_sizes):
        raise TypeError(
            f"reshape total size must be unchanged, got new_sizes {new_sizes} (of total size "
            f"{size_of(new_sizes)}) for shape {x.shape} (of total size {size_of(x.shape)})."
        )
    if dimensions is not None and sorted(dimensions) != list(range(x.ndim)):
        raise TypeError(
            "reshape dimensions must be a permutation of operand dimensions, got dimensions "
            f"{dimensions} for shape {x.shape}."
        )
    return new_sizes


def _reshape_groups(old: Sequence[Any], new: Sequence[Any]) -> list[tuple[range, range]]:
    """Runs of dimensions of both shapes that hold the same elements, as short as can be told."""
    groups, i, j = [], 0, 0
    while i < len(old) or j < len(new):
        i0, j0 = i, j
        left, right = 1, 1
        if i < len(old):
            left, i = old[i], i + 1
        if j < len(new):
            right, j = new[j], j + 1
        while left != right:
            concrete = type(left) is int and type(right) is int
            if i < len(old) and (j >= len(new) or not concrete or left < right):
                left, i = left * old[i], i + 1
            elif j < len(new):
                right, j = right * new[j], j + 1
            else:
                return [(range(len(old)), range(len(new)))]
        groups.append((range(i0, i), range(j0, j)))
    return groups


def reshaped_reader(b: Any, x: Any, shape: Sequence[Any]) -> Any:
    """How an array is read at an index of its reshaped form: flatten runs of dimensions, cut them anew."""
    if 0 in x.shape:
        return lambda index: x.at([b.index(0)] * len(x.shape))
    groups = _reshape_groups(x.shape, shape)

    def at(index: Any) -> Any:
        where: list[Any] = [None] * len(x.shape)
        for olds, news in groups:
            olds = [d for d in olds if not _is_one(x.shape[d]) or where.__setitem__(d, b.index(0))]
            news = [d for d in news if not _is_one(shape[d])]
            if not olds:
                continue
            if len(olds) == len(news) == 1:
                where[olds[0]] = index[news[0]]
                continue
            flat = index[news[0]]
            for d in news[1:]:
                flat = b.add(b.mul(flat, _extent(b, shape[d])), index[d])
            for d in reversed(olds[1:]):
                extent = _extent(b, x.shape[d])
                where[d] = b.rem(flat, extent)
                flat = b.div(flat, extent)
            where[olds[0]] = flat
        return x.at(where)

    return at


def _is_one(d: Any) -> bool:
    return type(d) is int and d == 1


def _extent(b: Any, d: Any) -> Any:
    return b.index(d)


def _reshape_loops(b: Any, x: Any, *, new_sizes: tuple, dimensions: Any, sharding: Any) -> Any:
    if dimensions is not None:
        source, order = x, dimensions
        x = b.value(
            tuple(source.shape[d] for d in order), x.dtype, lambda i: source.at(_unpermuted(i, order))
        )
    shape = b.avals_out[0].shape
    return b.value(shape, x.dtype, reshaped_reader(b, x, shape))


def _unpermuted(index: Sequence[Any], permutation: Sequence[int]) -> list[Any]:
    where: list[Any] = [None] * len(permutation)
    for i, d in zip(index, permutation, strict=True):
        where[d] = i
    return where


def _reshape_hlo(m: Any, x: Any, *, new_sizes: tuple, dimensions: Any, sharding: Any) -> Any:
    if dimensions is not None:
        x = _transpose_hlo_op(m, x, dimensions)
    return m.reshape(x, new_sizes)


reshape_p = standard_primitive(
    "reshape", _reshape_shape, first_dtype, loops=_reshape_loops, hlo=_reshape_hlo
)


def _reshape_transpose(ct: Any, x: Any, *, new_sizes: tuple, dimensions: Any, sharding: Any) -> list[Any]:
    shape = x.aval.shape
    if dimensions is None:
        return [reshape(ct, shape)]
    back = reshape(ct, [shape[d] for d in dimensions])
    return [transpose(back, np.argsort(dimensions))]


def _reshape_batch(args: Any, dims: Any, *, new_sizes: tuple, dimensions: Any, sharding: Any) -> Any:
    (x,), (dim,) = args, dims
    x = batching.moveaxis(x, dim, 0)
    if dimensions is not None:
        dimensions = (0, *(d + 1 for d in dimensions))
    return reshape(x, (shape_of(x)[0], *new_sizes), dimensions), 0


ad.deflinear2(reshape_p, _reshape_transpose)
rules.batchers[reshape_p] = _reshape_batch


def reshape(
    operand: Any, new_sizes: Any, dimensions: Sequence[int] | None = None, *, out_sharding: Any = None
) -> Any:
    """The same elements, in row-major order, in another shape.

    Args:
      operand: an array.
      new_sizes: the new shape, of the same total size.
      dimensions: order in which to read the dimensions of `operand`; by default as they are.
      out_sharding: sharding of the result.

    Returns:
      an array of shape `new_sizes`.

    Raises:
      TypeError: for a shape of another size.
    """
    new_sizes = canonical_shape(new_sizes)
    shape = shape_of(operand)
    if dimensions is not None:
        dimensions = tuple(map(operator.index, dimensions))
    same_order = dimensions is None or dimensions == tuple(range(len(shape)))
    if shape and shape == new_sizes and same_order and out_sharding is None:
        return as_array(operand)
    return reshape_p.bind(
        operand, new_sizes=new_sizes, dimensions=None if same_order else dimensions, sharding=out_sharding
    )


def collapse(operand: Any, start_dimension: int, stop_dimension: int | None = None) -> Any:
    """The array with the dimensions from `start_dimension` up to `stop_dimension` made one.

    Raises ValueError for a range that is empty the wrong way round.
    """
    shape = shape_of(operand)
    start, stop, _ = slice(start_dimension, stop_dimension).indices(len(shape))
    if stop < start:
        raise ValueError(
            f"Invalid dimension range passed to collapse: {shape}[{start_dimension}:{stop_dimension}]"
        )
    return reshape(operand, (*shape[:start], size_of(shape[start:stop]), *shape[stop:]))


# -- transpose, rev --------------------------------------------------------------------------------


def _transpose_shape(x: Any, *, permutation: tuple) -> tuple:
    if sorted(permutation) != list(range(x.ndim)):
        raise TypeError(
            "transpose permutation isn't a permutation of operand dimensions, got permutation "
            f"{permutation} for operand shape {x.shape}."
        )
    return tuple(x.shape[d] for d in permutation)


def _transpose_hlo_op(m: Any, x: Any, permutation: Sequence[int]) -> Any:
    from_shape = x.shape
    aval = ShapedArray(tuple(from_shape[d] for d in permutation), x.dtype)
    text = ", ".join(map(str, permutation))
    attribute = f"permutation = array<i64: {text}>" if permutation else "permutation = array<i64>"
    return m.op1("stablehlo.transpose", [x], aval, attribute)


transpose_p = standard_primitive(
    "transpose",
    _transpose_shape,
    first_dtype,
    loops=lambda b, x, *, permutation: b.value(
        b.avals_out[0].shape, x.dtype, lambda index: x.at(_unpermuted(index, permutation))
    ),
    hlo=lambda m, x, *, permutation: _transpose_hlo_op(m, x, permutation),
)
ad.deflinear2(
    transpose_p, lambda ct, x, *, permutation: [transpose(ct, np.argsort(permutation))]
)


def _transpose_batch(args: Any, dims: Any, *, permutation: tuple) -> Any:
    (x,), (dim,) = args, dims
    return transpose(x, (dim, *(d + (d >= dim) for d in permutation))), 0


rules.batchers[transpose_p] = _transpose_batch


def transpose(operand: Any, permutation: Sequence[int]) -> Any:
    """The array with its dimensions in another order.

    Args:
      operand: an array.
      permutation: for each dimension of the result, the dimension of `operand` it is.

    Returns:
      an array with the dimensions permuted.

    Raises:
      TypeError: if `permutation` is none.
    """
    permutation = tuple(operator.index(d) for d in permutation)
    if permutation == tuple(range(len(shape_of(operand)))):
        return as_array(operand)
    return transpose_p.bind(operand, permutation=permutation)


def _rev_shape(x: Any, *, dimensions: tuple) -> tuple:
    if len(set(dimensions)) != len(dimensions):
        raise TypeError(f"rev dimensions must be unique, got {dimensions}.")
    if any(d < 0 for d in dimensions):
        raise TypeError(f"rev dimensions must have every element be nonnegative, got {dimensions}.")
    if any(d >= x.ndim for d in dimensions):
        raise TypeError(
            f"rev dimensions must all be less than operand ndim, got dimensions {dimensions} for operand "
            f"ndim {x.ndim}."
        )
    return x.shape


def _rev_loops(b: Any, x: Any, *, dimensions: tuple) -> Any:
    def at(index: Any) -> Any:
        return x.at(
            [
                b.sub(_extent(b, x.shape[d] - 1), i) if d in dimensions else i
                for d, i in enumerate(index)
            ]
        )

    return b.value(x.shape, x.dtype, at)


rev_p = standard_primitive(
    "rev",
    _rev_shape,
    first_dtype,
    loops=_rev_loops,
    hlo=lambda m, x, *, dimensions: m.op1(
        "stablehlo.reverse",
        [x],
        m.avals_out[0],
        f"dimensions = array<i64: {', '.join(map(str, dimensions))}>" if dimensions else "dimensions = array<i64>",
    ),
)
ad.deflinear2(rev_p, lambda ct, x, *, dimensions: [rev(ct, dimensions)])


def _rev_batch(args: Any, dims: Any, *, dimensions: tuple) -> Any:
    (x,), (dim,) = args, dims
    return rev(x, [d + (d >= dim) for d in dimensions]), dim


rules.batchers[rev_p] = _rev_batch


def rev(operand: Any, dimensions: Sequence[int]) -> Any:
    """The array with the elements along some dimensions in reverse order.

    Raises TypeError for dimensions that repeat or do not exist.
    """
    return rev_p.bind(operand, dimensions=tuple(map(operator.index, dimensions)))


# -- concatenate, stack, split, unstack ------------------------------------------------------------


def _concatenate_shape(*operands: Any, dimension: int) -> tuple:
    shapes = ", ".join(str(o.shape) for o in operands)
    first = operands[0]
    if any(o.ndim != first.ndim for o in operands):
        raise TypeError(f"Cannot concatenate arrays with different numbers of dimensions: got {shapes}.")
    if not 0 <= dimension < first.ndim:
        raise TypeError(f"concatenate dimension out of bounds: dimension {dimension} for shapes {shapes}.")
    for o in operands[1:]:
        if o.shape[:dimension] + o.shape[dimension + 1 :] != (
            first.shape[:dimension] + first.shape[dimension + 1 :]
        ):
            raise TypeError(
                "Cannot concatenate arrays with shapes that differ in dimensions other than the one being "
                f"concatenated: concatenating along dimension {dimension} for shapes {shapes}."
            )
    total = sum((o.shape[dimension] for o in operands[1:]), first.shape[dimension])
    return (*first.shape[:dimension], total, *first.shape[dimension + 1 :])


def _concatenate_dtype(*operands: Any, dimension: int) -> Any:
    check_same_dtypes("concatenate", operands, "concatenate")
    return operands[0].dtype


def _concatenate_loops(b: Any, *xs: Any, dimension: int) -> Any:
    starts, start = [], 0
    for x in xs:
        starts.append(start)
        start = start + x.shape[dimension]
    pieces = [
        (x, s) for x, s in zip(xs, starts, strict=True) if not (type(x.shape[dimension]) is int and not x.shape[dimension])
    ] or [(xs[0], 0)]

    def at(index: Any) -> Any:
        return _guarded(b, pieces, index, dimension)

    return b.value(b.avals_out[0].shape, xs[0].dtype, at)


def _guarded(b: Any, pieces: Sequence[tuple[Any, Any]], index: Sequence[Any], dimension: int) -> Any:
    """The element of the piece that an index falls in; every piece is read inside its bounds only."""
    i = index[dimension]
    value = None
    for k, (x, start) in enumerate(pieces):
        where = list(index)
        where[dimension] = b.sub(i, _extent(b, start)) if k else i
        if len(pieces) == 1:
            return x.at(where)
        inside = b.ge(i, _extent(b, start)) if k else None
        if k + 1 < len(pieces):
            before = b.lt(i, _extent(b, pieces[k + 1][1]))
            inside = before if inside is None else b.and_(inside, before)
        value = b.load_if(inside, x, where, b.const(0, x.dtype) if value is None else value)
    return value


def _concatenate_hlo(m: Any, *xs: Any, dimension: int) -> Any:
    return m.op1("stablehlo.concatenate", xs, m.avals_out[0], f"dimension = {dimension} : i64")


concatenate_p = standard_primitive(
    "concatenate", _concatenate_shape, _concatenate_dtype, loops=_concatenate_loops, hlo=_concatenate_hlo
)


def _concatenate_transpose(ct: Any, *operands: Any, dimension: int) -> list[Any]:
    linear = [ad.is_undefined_primal(x) for x in operands]
    sizes = [(x.aval.shape if u else shape_of(x))[dimension] for x, u in zip(operands, linear, strict=True)]
    pieces = split(ct, sizes, dimension)
    return [piece if u else None for piece, u in zip(pieces, linear, strict=True)]


def _concatenate_batch(args: Any, dims: Any, *, dimension: int) -> Any:
    size = next(shape_of(x)[d] for x, d in zip(args, dims, strict=True) if d is not None)
    args = [batching.bdim_at_front(x, d, size) for x, d in zip(args, dims, strict=True)]
    return concatenate(args, dimension + 1), 0


ad.deflinear2(concatenate_p, _concatenate_transpose)
rules.batchers[concatenate_p] = _concatenate_batch


def concatenate(operands: Any, dimension: int) -> Any:
    """Arrays joined along a dimension.

    Args:
      operands: arrays of one dtype, whose shapes differ in `dimension` at most.
      dimension: the dimension along which to join them, counted from the front.

    Returns:
      an array that holds all elements.

    Raises:
      ValueError: without arrays.
      TypeError: for shapes or dtypes that do not fit.
    """
    if len(operands) == 0:
        raise ValueError("concatenate requires a non-empty sequences of arrays")
    if len(operands) == 1:
        (only,) = operands
        if isinstance(get_aval(only), ShapedArray) and 0 <= dimension < len(shape_of(only)):
            return as_array(only)
    return concatenate_p.bind(*operands, dimension=operator.index(dimension))


def _stack_shape(*operands: Any, axis: int) -> tuple:
    first = operands[0].shape
    if any(o.shape != first for o in operands):
        raise ValueError(f"stack requires arrays of one shape, got {', '.join(str(o.shape) for o in operands)}.")
    return (*first[:axis], len(operands), *first[axis:])


def _stack_dtype(*operands: Any, axis: int) -> Any:
    check_same_dtypes("stack", operands, "stack")
    return operands[0].dtype


def _stack_loops(b: Any, *xs: Any, axis: int) -> Any:
    def at(index: Any) -> Any:
        inner = [*index[:axis], *index[axis + 1 :]]
        value = xs[-1].at(inner)
        for k in range(len(xs) - 2, -1, -1):
            value = b.select(b.eq(index[axis], b.index(k)), xs[k].at(inner), value)
        return value

    return b.value(b.avals_out[0].shape, xs[0].dtype, at)


def _stack_hlo(m: Any, *xs: Any, axis: int) -> Any:
    rows = [m.reshape(x, (*x.shape[:axis], 1, *x.shape[axis:])) for x in xs]
    return m.op1("stablehlo.concatenate", rows, m.avals_out[0], f"dimension = {axis} : i64")


stack_p = standard_primitive("stack", _stack_shape, _stack_dtype, loops=_stack_loops, hlo=_stack_hlo)


def _stack_transpose(ct: Any, *operands: Any, axis: int) -> list[Any]:
    rows = unstack(ct, axis)
    return [row if ad.is_undefined_primal(x) else None for x, row in zip(operands, rows, strict=True)]


def _stack_batch(args: Any, dims: Any, *, axis: int) -> Any:
    size = next(shape_of(x)[d] for x, d in zip(args, dims, strict=True) if d is not None)
    args = [batching.bdim_at_front(x, d, size) for x, d in zip(args, dims, strict=True)]
    return stack(args, axis + 1), 0


ad.deflinear2(stack_p, _stack_transpose)
rules.batchers[stack_p] = _stack_batch


def stack(operands: Sequence[Any], axis: int = 0) -> Any:
    """Arrays of one shape and dtype joined along a new dimension.

    Args:
      operands: the arrays.
      axis: position of the new dimension in the result.

    Returns:
      an array of one more dimension.

    Raises:
      ValueError: without arrays, or for shapes that differ.
      TypeError: for dtypes that differ.
    """
    if not len(operands):
        raise ValueError("stack requires a non-empty sequence of arrays")
    axis = canonical_axis(axis, len(shape_of(operands[0])) + 1)
    return stack_p.bind(*operands, axis=axis)


unstack_p = Primitive("unstack", multiple_results=True)


@unstack_p.def_abstract_eval
def _unstack_avals(x: Any, *, axis: int) -> list[Any]:
    shape = (*x.shape[:axis], *x.shape[axis + 1 :])
    return [ShapedArray(shape, x.dtype, x.weak_type, vma=joined_vma((x,))) for _ in range(x.shape[axis])]


def _unstack_loops(b: Any, x: Any, *, axis: int) -> list[Any]:
    def row(k: int) -> Any:
        return lambda index: x.at([*index[:axis], b.index(k), *index[axis:]])

    return [b.value(aval.shape, x.dtype, row(k)) for k, aval in enumerate(b.avals_out)]


def _unstack_hlo(m: Any, x: Any, *, axis: int) -> list[Any]:
    rows = []
    for k, aval in enumerate(m.avals_out):
        start, limit = [0] * len(x.shape), list(x.shape)
        start[axis], limit[axis] = k, k + 1
        rows.append(m.reshape(slice_hlo(m, x, start, limit, [1] * len(start)), aval.shape))
    return rows


def slice_hlo(m: Any, x: Any, start: Sequence[int], limit: Sequence[int], strides: Sequence[int]) -> Any:
    shape = tuple(max(0, -(-(e - s) // t)) for s, e, t in zip(start, limit, strides, strict=True))
    if shape == tuple(x.shape) and all(t == 1 for t in strides):
        return x

    def array(values: Sequence[int]) -> str:
        return f"array<i64: {', '.join(map(str, values))}>" if values else "array<i64>"

    return m.op1(
        "stablehlo.slice",
        [x],
        ShapedArray(shape, x.dtype),
        f"start_indices = {array(start)}, limit_indices = {array(limit)}, strides = {array(strides)}",
    )


rules.loops[unstack_p] = _unstack_loops
rules.stablehlos[unstack_p] = _unstack_hlo


def _unstack_transpose(cts: Any, x: Any, *, axis: int) -> list[Any]:
    if all(type(ct) is ad.Zero for ct in cts):
        return [ad.Zero(x.aval)]
    return [stack([ad.instantiate_zeros(ct) for ct in cts], axis)]


def _unstack_batch(args: Any, dims: Any, *, axis: int) -> Any:
    (x,), (dim,) = args, dims
    x = batching.moveaxis(x, dim, 0)
    rows = unstack_p.bind(x, axis=axis + 1)
    return rows, [0] * len(rows)


rules.jvps[unstack_p] = lambda primals, tangents, **params: ad.linear_jvp(
    unstack_p, primals, tangents, **params
)
rules.transposes[unstack_p] = _unstack_transpose
rules.batchers[unstack_p] = _unstack_batch


def unstack(x: Any, axis: int = 0) -> tuple[Any, ...]:
    """The slices of an array along a dimension, without that dimension.

    Args:
      x: an array.
      axis: the dimension.

    Returns:
      a tuple of as many arrays as the dimension is long.

    Raises:
      ValueError: for a dimension that does not exist.
    """
    axis = canonical_axis(axis, len(shape_of(x)))
    return tuple(unstack_p.bind(x, axis=axis))


split_p = Primitive("split", multiple_results=True)


@split_p.def_abstract_eval
def _split_avals(x: Any, *, sizes: tuple, axis: int) -> list[Any]:
    if any(type(s) is int and s < 0 for s in sizes):
        raise ValueError(f"Sizes passed to split must be nonnegative, got {list(sizes)}")
    if sum(sizes) != x.shape[axis]:
        raise ValueError(
            f"Sum of sizes {sum(sizes)} must be equal to dimension {axis} of the operand shape {list(x.shape)}"
        )
    vma = joined_vma((x,))
    return [
        ShapedArray((*x.shape[:axis], s, *x.shape[axis + 1 :]), x.dtype, x.weak_type, vma=vma)
        for s in sizes
    ]


def _split_loops(b: Any, x: Any, *, sizes: tuple, axis: int) -> list[Any]:
    out, start = [], 0
    for aval in b.avals_out:
        offset = _extent(b, start)

        def at(index: Any, offset: Any = offset) -> Any:
            return x.at([b.add(i, offset) if d == axis else i for d, i in enumerate(index)])

        out.append(b.value(aval.shape, x.dtype, at))
        start = start + aval.shape[axis]
    return out


def _split_hlo(m: Any, x: Any, *, sizes: tuple, axis: int) -> list[Any]:
    out, at = [], 0
    for size in sizes:
        start, limit = [0] * len(x.shape), list(x.shape)
        start[axis], limit[axis] = at, at + size
        out.append(slice_hlo(m, x, start, limit, [1] * len(start)))
        at += size
    return out


def _split_transpose(cts: Any, x: Any, *, sizes: tuple, axis: int) -> list[Any]:
    if all(type(ct) is ad.Zero for ct in cts):
        return [ad.Zero(x.aval)]
    return [concatenate([ad.instantiate_zeros(ct) for ct in cts], axis)]


def _split_batch(args: Any, dims: Any, *, sizes: tuple, axis: int) -> Any:
    (x,), (dim,) = args, dims
    out = split_p.bind(x, sizes=sizes, axis=axis + (axis >= dim))
    return out, [dim] * len(out)


rules.loops[split_p] = _split_loops
rules.stablehlos[split_p] = _split_hlo
rules.jvps[split_p] = lambda primals, tangents, **params: ad.linear_jvp(
    split_p, primals, tangents, **params
)
rules.transposes[split_p] = _split_transpose
rules.batchers[split_p] = _split_batch


def split(operand: Any, sizes: Sequence[int], axis: int = 0) -> list[Any]:
    """An array cut into pieces along a dimension.

    Args:
      operand: an array.
      sizes: lengths of the pieces; their sum is the length of the dimension.
      axis: the dimension.

    Returns:
      a list of arrays.

    Raises:
      ValueError: for lengths that do not fit.
    """
    axis = canonical_axis(axis, len(shape_of(operand)))
    return split_p.bind(operand, sizes=canonical_shape(sizes), axis=axis)


# -- tile ------------------------------------------------------------------------------------------


def _tile_shape(x: Any, *, reps: tuple) -> tuple:
    if len(reps) != x.ndim:
        raise TypeError(f"reps length must be equal to the ndim of x, got {len(reps)=} and {x.ndim=}.")
    check_shape("tile", reps)
    return tuple(s * r for s, r in zip(x.shape, reps, strict=True))


def _tile_loops(b: Any, x: Any, *, reps: tuple) -> Any:
    def at(index: Any) -> Any:
        return x.at(
            [
                i if _is_one(r) else b.rem(i, _extent(b, s))
                for i, s, r in zip(index, x.shape, reps, strict=True)
            ]
        )

    return b.value(b.avals_out[0].shape, x.dtype, at)


def _tile_hlo(m: Any, x: Any, *, reps: tuple) -> Any:
    spread = tuple(n for s, r in zip(x.shape, reps, strict=True) for n in (r, s))
    wide = m.broadcast_in_dim(x, ShapedArray(spread, x.dtype), range(1, 2 * len(reps), 2))
    return m.reshape(wide, m.avals_out[0].shape)


tile_p = standard_primitive("tile", _tile_shape, first_dtype, loops=_tile_loops, hlo=_tile_hlo)


def _tile_transpose(ct: Any, x: Any, *, reps: tuple) -> list[Any]:
    spread = tuple(n for s, r in zip(x.aval.shape, reps, strict=True) for n in (r, s))
    return [_reduce_sum(reshape(ct, spread), tuple(range(0, 2 * len(reps), 2)))]


def _tile_batch(args: Any, dims: Any, *, reps: tuple) -> Any:
    (x,), (dim,) = args, dims
    return tile(x, (*reps[:dim], 1, *reps[dim:])), dim


ad.deflinear2(tile_p, _tile_transpose)
rules.batchers[tile_p] = _tile_batch


def tile(operand: Any, reps: Sequence[int]) -> Any:
    """The array repeated whole, a number of times along each dimension.

    Raises TypeError unless there is one number for each dimension.
    """
    return tile_p.bind(operand, reps=canonical_shape(reps))


# -- pad -------------------------------------------------------------------------------------------


def _pad_shape(x: Any, value: Any, *, padding_config: tuple) -> tuple:
    if value.shape:
        raise ValueError(f"padding_value must be a scalar; got shape {value.shape}")
    if len(padding_config) != x.ndim:
        raise ValueError(
            "length of padding_config must equal the number of axes of operand, got padding_config "
            f"{padding_config} for operand shape {x.shape}"
        )
    if any(interior < 0 for _, _, interior in padding_config):
        raise ValueError(
            f"interior padding in padding_config must be nonnegative, got padding_config {padding_config}"
        )
    shape = tuple(
        low + high + (d if not i else d + (d - 1) * i if d != 0 else 0)
        for d, (low, high, i) in zip(x.shape, padding_config, strict=True)
    )
    if any(type(d) is int and d < 0 for d in shape):
        raise ValueError(
            f"Dimension size after padding is not at least 0, got result shape {shape}, for padding_config "
            f"{padding_config} and operand shape {x.shape}"
        )
    return shape


def _pad_dtype(x: Any, value: Any, *, padding_config: tuple) -> Any:
    if x.dtype != value.dtype:
        raise TypeError(
            f"pad operand and padding_value must be same dtype: got {x.dtype.name} and {value.dtype.name}."
        )
    return x.dtype


def _pad_loops(b: Any, x: Any, value: Any, *, padding_config: tuple) -> Any:
    def at(index: Any) -> Any:
        inside, where = None, []
        for i, d, (low, high, interior) in zip(index, x.shape, padding_config, strict=True):
            if not isinstance(low, int) or low:
                i = b.sub(i, _extent(b, low))
            tests = []
            if not isinstance(low, int) or low > 0:
                tests.append(b.ge(i, b.index(0)))
            if interior:
                step = b.index(interior + 1)
                tests.append(b.eq(b.rem(i, step), b.index(0)))
                i = b.div(i, step)
            if not isinstance(high, int) or high > 0:
                tests.append(b.lt(i, _extent(b, d)))
            for test in tests:
                inside = test if inside is None else b.and_(inside, test)
            where.append(i)
        if inside is None:
            return x.at(where)
        return b.load_if(inside, x, where, value.at(()))

    return b.value(b.avals_out[0].shape, x.dtype, at)


def _pad_hlo(m: Any, x: Any, value: Any, *, padding_config: tuple) -> Any:
    low, high, interior = zip(*padding_config, strict=True) if padding_config else ((), (), ())

    def array(values: Sequence[int]) -> str:
        return f"array<i64: {', '.join(map(str, values))}>" if values else "array<i64>"

    return m.op1(
        "stablehlo.pad",
        [x, value],
        m.avals_out[0],
        f"edge_padding_low = {array(low)}, edge_padding_high = {array(high)}, interior_padding = {array(interior)}",
    )


pad_p = standard_primitive("pad", _pad_shape, _pad_dtype, lambda x, value, **_: x.weak_type,
                           loops=_pad_loops, hlo=_pad_hlo)  # fmt: skip


def _pad_transpose(ct: Any, x: Any, value: Any, *, padding_config: tuple) -> list[Any]:
    if type(ct) is ad.Zero:
        return [
            ad.Zero(v.aval) if ad.is_undefined_primal(v) else None for v in (x, value)
        ]
    from .elementwise import sub
    from .slicing import slice as slice_array

    low, high, interior = zip(*padding_config, strict=True) if padding_config else ((), (), ())

    def of_operand() -> Any:
        trimmed = pad(
            ct, np.zeros((), get_aval(ct).dtype), [(-lo, -hi, 0) for lo, hi in zip(low, high, strict=True)]
        )
        shape = shape_of(trimmed)
        return slice_array(trimmed, [0] * len(shape), shape, [i + 1 for i in interior])

    ct_x = of_operand() if ad.is_undefined_primal(x) else None
    if not ad.is_undefined_primal(value):
        return [ct_x, None]
    axes = tuple(range(len(low)))
    inside = of_operand() if ct_x is None else ct_x
    return [ct_x, sub(_reduce_sum(ct, axes), _reduce_sum(inside, axes))]


def _pad_batch(args: Any, dims: Any, *, padding_config: tuple) -> Any:
    x, value = args
    x_dim, value_dim = dims
    if value_dim is None:
        config = (*padding_config[:x_dim], (0, 0, 0), *padding_config[x_dim:])
        return pad(x, value, config), x_dim
    from .comparisons import select

    size = shape_of(value)[value_dim]
    x = batching.bdim_at_front(x, x_dim, size)
    config = ((0, 0, 0), *padding_config)
    padded = pad(x, np.zeros((), get_aval(x).dtype), config)
    mask = pad(full(shape_of(x), True, np.bool_), np.zeros((), np.bool_), config)
    fill = broadcast_in_dim(value, shape_of(padded), (0,))
    return select(mask, padded, fill), 0


ad.deflinear2(pad_p, _pad_transpose)
rules.batchers[pad_p] = _pad_batch


def pad(operand: Any, padding_value: Any, padding_config: Sequence[tuple[int, int, int]]) -> Any:
    """The array with elements added around or between its own, or cut off.

    Args:
      operand: an array.
      padding_value: the scalar to fill with, of the same dtype.
      padding_config: for each dimension how many elements to add before, after, and between any two;
        the first two may be negative to cut elements off.

    Returns:
      the padded array.

    Raises:
      ValueError: for configurations that do not fit.
      TypeError: for dtypes that differ.
    """
    config = tuple(
        (canonical_dim(low), canonical_dim(high), canonical_dim(interior))
        for low, high, interior in padding_config
    )
    return pad_p.bind(operand, padding_value, padding_config=config)


# -- iota and constants ----------------------------------------------------------------------------


def _iota_shape(*, dtype: Any, shape: tuple, dimension: int, sharding: Any) -> tuple:
    check_shape("iota", shape)
    if not 0 <= dimension < len(shape):
        raise ValueError(
            f"iota dimension must be between 0 and len(shape), got dimension={dimension} for shape={shape}"
        )
    return shape


def _iota_dtype(*, dtype: Any, **_: Any) -> Any:
    check_dtype("iota", ShapedArray((), dtype), NUMERIC)
    return dtype


def _iota_hlo(m: Any, *, dtype: Any, shape: tuple, dimension: int, sharding: Any) -> Any:
    return m.op1("stablehlo.iota", [], m.avals_out[0], f"iota_dimension = {dimension} : i64")


iota_p = standard_primitive(
    "iota",
    _iota_shape,
    _iota_dtype,
    lambda **_: False,
    loops=lambda b, *, dtype, shape, dimension, sharding: b.value(
        b.avals_out[0].shape, dtype, lambda index: b.cast(index[dimension], dtype)
    ),
    hlo=_iota_hlo,
)


def broadcasted_iota(dtype: Any, shape: Any, dimension: int, *, out_sharding: Any = None) -> Any:
    """An array whose elements count up from 0 along one dimension.

    Args:
      dtype: integer, floating or complex dtype.
      shape: shape of the result.
      dimension: the dimension, counted from the front.
      out_sharding: sharding of the result.

    Raises:
      TypeError: for a dtype or shape that is none.
      ValueError: for a dimension that does not exist.
    """
    dtype = dtypes.check_and_canonicalize_user_dtype(dtype, "iota")
    return iota_p.bind(
        dtype=dtype, shape=canonical_shape(shape), dimension=operator.index(dimension), sharding=out_sharding
    )


def iota(dtype: Any, size: int) -> Any:
    """The vector `[0, 1, …, size - 1]`.

    Raises TypeError for a dtype or size that is none.
    """
    return broadcasted_iota(dtype, (size,), 0)


empty_p = standard_primitive(
    "empty2",
    lambda *, shape, dtype, out_sharding: shape,
    lambda *, shape, dtype, out_sharding: dtype,
    lambda **_: False,
    loops=lambda b, *, shape, dtype, out_sharding: b.value(
        b.avals_out[0].shape, dtype, lambda index: b.const(0, dtype)
    ),
    hlo=lambda m, *, shape, dtype, out_sharding: m.full(0, m.avals_out[0]),
)
empty_p.name = "empty"


def empty(shape: Any, dtype: Any, *, out_sharding: Any = None) -> Any:
    """An array of which only shape and dtype matter; its elements are zeros."""
    dtype = dtypes.check_and_canonicalize_user_dtype(dtype, "empty")
    return empty_p.bind(shape=canonical_shape(shape), dtype=dtype, out_sharding=out_sharding)


def full(shape: Any, fill_value: Any, dtype: Any = None, *, sharding: Any = None) -> Any:
    """An array of which every element is the same.

    Args:
      shape: its shape.
      fill_value: a scalar.
      dtype: its dtype; by default that of `fill_value`, weakly typed if that is.
      sharding: its sharding.

    Raises:
      TypeError: if `fill_value` is no scalar, or `shape` no shape.
    """
    shape = canonical_shape(shape)
    if shape_of(fill_value):
        raise TypeError(
            f"full must be called with scalar fill_value, got fill_value.shape {shape_of(fill_value)}."
        )
    aval = get_aval(fill_value)
    weak = dtype is None and aval.weak_type
    dtype = aval.dtype if dtype is None else dtypes.check_and_canonicalize_user_dtype(dtype, "full")
    if isinstance(dtype, dtypes.ExtendedDType):
        scalar = fill_value if aval.dtype == dtype else dtype.full(fill_value)
    elif dtype == dtypes.float0:
        scalar = np.zeros((), dtypes.float0)
    else:
        scalar = _convert_element_type(fill_value, dtype, weak)
    return broadcast(scalar, shape, out_sharding=sharding)


def full_like(
    x: Any, fill_value: Any, dtype: Any = None, shape: Any = None, sharding: Any = None
) -> Any:
    """An array of the shape and dtype of `x`, of which every element is the same.

    Args:
      x: an array, or something that has a shape and dtype.
      fill_value: a scalar.
      dtype, shape: used in place of those of `x` when given.
      sharding: its sharding.
    """
    aval = x if hasattr(x, "shape") and hasattr(x, "dtype") and not isinstance(x, Tracer) else get_aval(x)
    weak = dtype is None and getattr(aval, "weak_type", False)
    shape = aval.shape if shape is None else canonical_shape(shape)
    if dtype is None:
        dtype = dtypes.canonicalize_dtype(aval.dtype, allow_extended_dtype=True) if isinstance(x, np.ndarray) else aval.dtype
    else:
        dtype = dtypes.check_and_canonicalize_user_dtype(dtype, "full_like")
    if isinstance(dtype, dtypes.ExtendedDType) or dtype == dtypes.float0:
        return full(shape, fill_value, dtype, sharding=sharding)
    return broadcast(_convert_element_type(fill_value, dtype, weak), shape, out_sharding=sharding)


def shape_as_value(shape: Any) -> Any:
    """A shape as an integer vector."""
    shape = canonical_shape(shape)
    if not shape:
        return full((0,), 0, np.int32)
    return as_array(np.asarray(shape, dtypes.default_int_dtype()))


# -- extended dtypes: the dimensions of an element come last ------------------------------------------


def _trailing(rank: int, count: int) -> tuple[int, ...]:
    return tuple(range(rank, rank + count))


def _broadcast_keys(c: Any, x: Any, *, shape: tuple, broadcast_dimensions: tuple, sharding: Any) -> Any:
    n = c.element_ndim()
    return broadcast_in_dim(
        x, (*shape, *c.element_shape()), (*broadcast_dimensions, *_trailing(len(shape), n))
    )


def _reshape_keys(c: Any, x: Any, *, new_sizes: tuple, dimensions: Any, sharding: Any) -> Any:
    if dimensions is not None:
        dimensions = (*dimensions, *_trailing(len(dimensions), c.element_ndim()))
    return reshape(x, (*new_sizes, *c.element_shape()), dimensions)


physicals.update(
    {
        broadcast_in_dim_p: _broadcast_keys,
        reshape_p: _reshape_keys,
        squeeze_p: lambda c, x, *, dimensions: squeeze(x, dimensions),
        transpose_p: lambda c, x, *, permutation: transpose(
            x, (*permutation, *_trailing(len(permutation), c.element_ndim()))
        ),
        rev_p: lambda c, x, *, dimensions: rev(x, dimensions),
        concatenate_p: lambda c, *xs, dimension: concatenate(xs, dimension),
        stack_p: lambda c, *xs, axis: stack(xs, axis),
        unstack_p: lambda c, x, *, axis: unstack_p.bind(x, axis=axis),
        split_p: lambda c, x, *, sizes, axis: split(x, sizes, axis),
        tile_p: lambda c, x, *, reps: tile(x, (*reps, *(1,) * c.element_ndim())),
    }
)

