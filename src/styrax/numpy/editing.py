"""Elements put in, taken out and packed: padding, insertion, deletion, bits."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.programs.named import named
from styrax.core.tracing.errors import InconclusiveDimensionOperation
from styrax.core.tracing.trace import concrete_or_error
from styrax.core.types import dtypes
from styrax.core.types.dims import is_named, plain_size
from styrax.core.types.typing import ArrayLike, Axis, Function, Object
from styrax.transforms.jit import jit_for_all_shapes as jit

from .arrangements import flip
from .broadcasting import choose_elements, spread
from .concatenation import concatenate
from .conversion import asarray
from .indexing import gather_elements, wrap_negative
from .promotion import axis_index, check_arraylike, convert, default_int, is_array, shape_of, unwrap
from .shaping import moveaxis, operand, ravel
from .updates import scatter

_UINT8 = np.dtype(np.uint8)


# -- padding ---------------------------------------------------------------------------------------------
_PAD_OPTIONS: dict[str, set[str]] = {
    "constant": {"constant_values"}, "edge": set(), "empty": set(), "linear_ramp": {"end_values"},
    "maximum": {"stat_length"}, "mean": {"stat_length"}, "median": {"stat_length"}, "minimum": {"stat_length"},
    "reflect": {"reflect_type"}, "symmetric": {"reflect_type"}, "wrap": set(),
}


def _pairs(values: Any, rank: int, name: str) -> Any:
    """A padding argument as one pair per axis; an array of objects where sizes are named. Raises ValueError for
    other forms, TypeError for other than numbers and for entries of different lengths."""
    if is_array(values):
        return spread(values, (rank, 2))
    try:
        values = np.asarray(values)
    except ValueError:
        raise TypeError(f"`{name}` entries must be the same shape: {values}") from None
    if values.dtype == object and not all(is_named(v) or isinstance(v, (int, np.integer)) for v in values.flat):
        raise TypeError(f"`{name}` must be of integral type.")
    if values.ndim == 0 or values.shape in ((1,), (2,), (1, 2), (rank, 2)):
        return np.broadcast_to(values, (rank, 2))
    raise ValueError(f"jnp.pad: {name} with nd={rank} has unsupported shape {values.shape}. Valid shapes are "
                     f"({rank}, 2), (1, 2), (2,), (1,), or ().")


PadWidth: TypeAlias = int | np.ndarray | Sequence[int] | Sequence[Sequence[int]] | dict[int, int | tuple[int, int]]


def pad(array: ArrayLike, pad_width: Array | PadWidth, mode: str | Function = "constant", **kwargs: Object) -> Array:
    """`array` with elements put around it.

    Args:
      array: an array or number; a scalar is returned as it is.
      pad_width: how many: one number, a pair (before, after), one pair per axis, or a dict from axes.
      mode: what they are: "constant" (`constant_values`, 0 by default), "edge", "empty" (zeros here),
        "linear_ramp" (to `end_values`), "maximum", "mean", "median" and "minimum" (of the first or last
        `stat_length` elements), "reflect" and "symmetric" (without or with repeating the edge;
        `reflect_type` "odd" mirrors values, too), "wrap", or a function as NumPy's.
      **kwargs: the options that a mode has; any for a function.

    Returns:
      an array of the dtype of `array`.

    Raises:
      NotImplementedError: for unknown modes.
      ValueError: for unknown options, for widths that are negative or of another form, and for empty axes to be
        extended from their elements.
      TypeError: for widths that are no integers.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.pad(jnp.arange(1, 4), (1, 2), constant_values=9)
      Array([9, 1, 2, 3, 9, 9], dtype=int32)
    """
    a = operand("pad", array)
    if isinstance(pad_width, dict):
        widths: Any = [(0, 0)] * a.ndim
        for i, w in pad_width.items():
            widths[axis_index(i, a.ndim)] = (w, w) if np.ndim(w) == 0 else tuple(w)  # type: ignore[arg-type]
        pad_width = widths
    pad_width = concrete_or_error(None, pad_width, "`pad_width` argument of jnp.pad")
    pad_width = _pairs(pad_width, a.ndim, "pad_width")
    if a.ndim and np.asarray(pad_width).dtype.kind not in "iuO":
        raise TypeError("`pad_width` must be of integral type.")
    widths = tuple((plain_size(lo), plain_size(hi)) for lo, hi in np.asarray(pad_width)) if a.ndim else ()
    if callable(mode):
        return _pad_with(a, widths, mode, kwargs)
    if mode not in _PAD_OPTIONS:
        raise NotImplementedError(f"Unimplemented padding mode '{mode}' for np.pad.")
    unknown = set(kwargs) - _PAD_OPTIONS[mode]
    if unknown:
        raise ValueError(f"unsupported keyword arguments for mode '{mode}': {unknown}")
    if any(w < 0 for pair in widths for w in pair):
        raise ValueError("index can't contain negative values")
    stat_length = kwargs.get("stat_length")
    if stat_length is not None:
        stat_length = tuple(tuple(int(n) for n in pair) for pair in _pairs(stat_length, a.ndim, "stat_length"))
        if any(n < 1 for pair in stat_length for n in pair):
            raise ValueError(f"Stat lengths must be positive, got {stat_length}")
    reflect_type = kwargs.get("reflect_type", "even")
    if reflect_type not in ("even", "odd"):
        raise ValueError("reflect_type must be 'even' or 'odd'")
    constants = kwargs.get("constant_values", 0)
    ends = kwargs.get("end_values", 0)
    value = constants if mode != "linear_ramp" else ends
    if isinstance(value, (tuple, list)):
        value = asarray(np.asarray(value)) if not any(is_array(v) for v in value) else asarray(list(value))
    return _pad(a, widths, mode, value, stat_length, reflect_type)


@partial(jit, static_argnames=("pad_width", "mode", "stat_length", "reflect_type"))
def _pad(array: Any, pad_width: tuple, mode: str, constant_values: Any, stat_length: Any, reflect_type: str) -> Any:
    if array.ndim == 0:
        return array
    if mode == "constant":
        return _pad_constant(array, pad_width, constant_values)
    if mode == "empty":
        return _pad_constant(array, pad_width, 0)
    if "stat_length" not in _PAD_OPTIONS[mode] and any(n == 0 and any(w) for n, w in zip(array.shape, pad_width)):
        raise ValueError(f"Cannot apply '{mode}' padding to empty axis")
    if mode == "wrap":
        return _pad_wrap(array, pad_width)
    if mode in ("reflect", "symmetric"):
        return _pad_mirror(array, pad_width, mode, reflect_type)
    if mode == "edge":
        return _pad_edge(array, pad_width)
    if mode == "linear_ramp":
        return _pad_ramp(array, pad_width, constant_values)
    return _pad_statistic(array, pad_width, stat_length, mode)


def _pad_constant(a: Any, widths: tuple, values: Any) -> Any:
    values = convert(unwrap(values), a.dtype, a.aval.weak_type)
    if shape_of(values) == ():
        return lax.pad(a, values, tuple((lo, hi, 0) for lo, hi in widths))
    if len(shape_of(values)) == 1 and shape_of(values)[0] not in (1, 2):
        raise ValueError(f"jnp.pad: constant_values has unsupported shape {shape_of(values)}. If the shape is 1D or "
                         "2D, the last dimension must be of size 1 or 2.")
    pairs = spread(asarray(values), (a.ndim, 2))
    for i, (lo, hi) in enumerate(widths):
        config = [(0, 0, 0)] * a.ndim
        config[i] = (int(lo), 0, 0)
        a = lax.pad(a, gather_elements(pairs, (i, 0)), config)
        config[i] = (0, int(hi), 0)
        a = lax.pad(a, gather_elements(pairs, (i, 1)), config)
    return a


def _pad_wrap(a: Any, widths: tuple) -> Any:
    for i, (lo, hi) in enumerate(widths):
        if not (lo or hi):
            continue
        size = a.shape[i]
        whole_lo, rest_lo = divmod(int(lo), size)
        whole_hi, rest_hi = divmod(int(hi), size)
        parts = [lax.slice_in_dim(a, size - rest_lo, size, axis=i)] if rest_lo else []
        parts += [a] * int(whole_lo + 1 + whole_hi)
        parts += [lax.slice_in_dim(a, 0, rest_hi, axis=i)] if rest_hi else []
        a = lax.concatenate(parts, i)
    return a


def _mirrored(x: Any, i: int, size: int, offset: int, odd: bool, padding: int, before: bool) -> Any:
    """`x`, whose axis `i` began with `size` elements, with `padding` mirrored ones on one side."""
    total = x.shape[i]
    edge = lax.slice_in_dim(x, 0, 1, axis=i) if before else lax.slice_in_dim(x, total - 1, total, axis=i)
    while padding > 0:
        count = min(padding, size - offset)
        padding -= count
        total = x.shape[i]
        if before:
            start, stop = offset, offset + count
        else:
            start, stop = total - offset - count, total - offset
        piece = flip(lax.slice_in_dim(x, start, stop, axis=i), i)
        if odd:
            piece = lax.sub(lax.mul(spread(edge, piece.shape), convert(2, x.dtype)), piece)
        x = lax.concatenate([piece, x] if before else [x, piece], i)
        if odd and padding > 0:
            total = x.shape[i]
            edge = (lax.slice_in_dim(x, 0, 1, axis=i) if before else
                    lax.slice_in_dim(x, total - 1, total, axis=i))
    return x


def _check_mirrors(i: int, size: Any, padding: int, offset: int, side: str) -> None:
    """Raises ValueError where it depends on the value of a size whether one mirror image is enough."""
    try:
        enough = bool(size > 1) and bool(size - offset >= padding)
    except InconclusiveDimensionOperation:
        enough = False
    if not enough:
        raise ValueError("Shape polymorphism is supported for jnp.pad with 'reflect' or 'symmetric' padding mode only "
                         f"when it is possible to determine at lowering time that the axis size (= {size}) is larger "
                         f"than 1 and larger or equal than the padding length (= {padding}). Error while handling "
                         f"{side} padding on axis {i}.")


def _pad_mirror(a: Any, widths: tuple, mode: str, reflect_type: str) -> Any:
    offset = 1 if mode == "reflect" else 0
    for i, (lo, hi) in enumerate(widths):
        lo, hi = int(lo), int(hi)
        if not (lo or hi):
            continue
        if a.shape[i] == 1 and mode == "reflect":
            # A single element reflects to itself.
            plain = [(0, 0)] * a.ndim
            plain[i] = (lo, hi)
            a = _pad_edge(a, tuple(plain))
            continue
        size, odd = a.shape[i], reflect_type == "odd"
        if is_named(size):
            _check_mirrors(i, size, lo, offset, "left")
            _check_mirrors(i, size, hi, offset, "right")
        a = _mirrored(a, i, size, offset, odd, lo, True)
        a = _mirrored(a, i, size, offset, odd, hi, False)
    return a


def _ends(a: Any, i: int) -> tuple[Any, Any]:
    size = a.shape[i]
    return lax.slice_in_dim(a, 0, 1, axis=i), lax.slice_in_dim(a, size - 1, size, axis=i)


def _repeated(x: Any, i: int, times: int) -> Any:
    from .arrangements import repeat

    return repeat(x, times, axis=i)


def _pad_edge(a: Any, widths: tuple) -> Any:
    for i, (lo, hi) in enumerate(widths):
        if not (lo or hi):
            continue
        size = a.shape[i]
        before = _repeated(lax.slice_in_dim(a, 0, 1, axis=i), i, int(lo))
        after = _repeated(lax.slice_in_dim(a, size - 1, size, axis=i), i, int(hi))
        a = lax.concatenate([before, a, after], i)
    return a


def _pad_ramp(a: Any, widths: tuple, end_values: Any) -> Any:
    from .ranges import linspace

    pairs = spread(asarray(end_values), (a.ndim, 2))
    for i, (lo, hi) in enumerate(widths):
        if not (lo or hi):
            continue
        first, last = _ends(a, i)
        ends = [convert(gather_elements(pairs, (i, k)), a.dtype) for k in (0, 1)]
        before = linspace(spread(ends[0], first.shape), first, int(lo), endpoint=False, dtype=a.dtype, axis=i)
        before = lax.squeeze(before, (i + 1,))
        after = linspace(spread(ends[1], last.shape), last, int(hi), endpoint=False, dtype=a.dtype, axis=i)
        after = flip(lax.squeeze(after, (i + 1,)), i)
        a = lax.concatenate([before, a, after], i)
    return a


def _pad_statistic(a: Any, widths: tuple, stat_length: Any, mode: str) -> Any:
    from . import moments, reductions
    from .statistics import median

    functions: dict[str, Any] = {
        "maximum": reductions.max, "minimum": reductions.min, "mean": moments.mean, "median": median}
    function = functions[mode]
    for i, (lo, hi) in enumerate(widths):
        size = a.shape[i]
        if stat_length is None:
            before = after = function(a, axis=i, keepdims=True)
        else:
            n_before, n_after = (min(n, size) for n in stat_length[i])
            before = function(lax.slice_in_dim(a, 0, n_before, axis=i), axis=i, keepdims=True)
            after = function(lax.slice_in_dim(a, size - n_after, size, axis=i), axis=i, keepdims=True)
        if dtypes.issubdtype(a.dtype, np.integer) and before.dtype != a.dtype:
            before, after = (lax.round(v, lax.RoundingMethod.TO_NEAREST_EVEN) for v in (before, after))
        before, after = convert(before, a.dtype), convert(after, a.dtype)
        a = lax.concatenate([_repeated(before, i, int(lo)), a, _repeated(after, i, int(hi))], i)
    return a


def _pad_with(a: Any, widths: tuple, function: Callable[..., Any], kwargs: dict[str, Any]) -> Any:
    """NumPy's protocol: `function(vector, widths, axis, kwargs)` gives each vector anew."""
    from .vectorization import apply_along_axis

    out = _pad_constant(a, widths, 0)
    for i in range(a.ndim):
        out = apply_along_axis(function, i, out, tuple(map(int, widths[i])), i, kwargs)
    return out


# -- insertion and deletion ------------------------------------------------------------------------------
def delete(arr: ArrayLike, obj: ArrayLike | slice, axis: int | None = None, *,
           assume_unique_indices: bool = False) -> Array:
    """A copy of `arr` without the elements (or slices along `axis`) at `obj`.

    Args:
      arr: an array.
      obj: an int, a slice, integers or booleans; concrete but for `assume_unique_indices`.
      axis: the axis; None for the elements as a vector in row order.
      assume_unique_indices: promises that integers in an array, which may be traced then, do not repeat and are not out
        of bounds; the result is shorter by as many slices as there are.

    Returns:
      an array of the dtype of `arr`.

    Raises:
      ValueError: for floats, for booleans that do not fit the axis, for an int out of range, and for a promise about
        booleans.
      IndexError: for integers out of range.
    """
    arr = operand("delete", arr)
    if not isinstance(obj, slice):
        check_arraylike("delete", obj)
    if axis is None:
        arr, axis = ravel(arr), 0
    axis = axis_index(axis, arr.ndim)
    size = arr.shape[axis]
    if isinstance(obj, slice):
        start, stop, step = obj.indices(size)
        obj = np.arange(start, stop, step)
    if not is_array(obj) and np.ndim(obj) == 0 and np.asarray(obj).dtype.kind in "iu":
        i = concrete_or_error(operator.index, obj, "'obj' argument of jnp.delete()")
        i = axis_index(i, size)
        before = gather_elements(arr, (*[slice(None)] * axis, slice(None, i)))
        after = gather_elements(arr, (*[slice(None)] * axis, slice(i + 1, None)))
        return concatenate([before, after], axis=axis)
    if assume_unique_indices and is_array(obj):
        obj = asarray(obj)
        if obj.ndim == 0:
            obj = ravel(obj)
        if not dtypes.issubdtype(obj.dtype, np.integer):
            raise ValueError("assume_unique_indices requires integer indices")
        obj = ravel(obj)
        from .positions import nonzero

        keep = scatter(lax.full((size,), True, np.dtype(np.bool_)), wrap_negative(obj, size), False, "set", mode="drop")
        (left,) = nonzero(keep, size=max(size - obj.shape[0], 0))
        return gather_elements(arr, (*[slice(None)] * axis, left))
    values = np.asarray(concrete_or_error(None, obj, "'obj' array argument of jnp.delete()"))
    if values.dtype == bool:
        if values.shape != (size,):
            raise ValueError("np.delete(arr, obj): for boolean indices, obj must be one-dimensional with length "
                             "matching specified axis.")
        keep_mask = ~values
    else:
        if not dtypes.issubdtype(values.dtype, np.integer):
            raise ValueError(f"np.delete(arr, obj): got obj.dtype={values.dtype}; must be integer or bool.")
        keep_mask = np.ones(size, bool)
        keep_mask[values.ravel()] = False
    return gather_elements(arr, (*[slice(None)] * axis, keep_mask))


def insert(arr: ArrayLike, obj: ArrayLike | slice, values: ArrayLike, axis: int | None = None) -> Array:
    """A copy of `arr` with `values` inserted before the indices `obj`.

    Args:
      arr: an array.
      obj: an int, a slice or a vector of integers, all of which count in `arr`; those out of bounds mean its ends.
      values: what to insert, converted to the dtype of `arr`; broadcasts to the slices.
      axis: the axis; None for the elements as a vector in row order.

    Returns:
      an array of the dtype of `arr`, longer along `axis`.

    Raises:
      ValueError: for indices of rank 2 or more or of another dtype, and for values that do not broadcast.
    """
    from .clipping import clip
    from .creation import zeros_like
    from .sorting import argsort

    check_arraylike("insert", arr, 0 if isinstance(obj, slice) else obj, values)
    a, values = asarray(unwrap(arr)), asarray(unwrap(values))
    if axis is None:
        a, axis = ravel(a), 0
    axis = axis_index(concrete_or_error(None, axis, "axis argument of jnp.insert"), a.ndim)
    size = a.shape[axis]
    if isinstance(obj, slice):
        indices = asarray(np.arange(*obj.indices(size)))
    else:
        indices = asarray(unwrap(obj))
    if indices.ndim > 1:
        raise ValueError("jnp.insert(): obj must be a slice, a one-dimensional array, or a scalar.")
    if not dtypes.issubdtype(indices.dtype, np.integer):
        if indices.size == 0 and not is_array(obj):
            indices = convert(indices, default_int())
        else:
            raise ValueError("jnp.insert(): obj array must have integer type.")
    values = lax.expand_dims(values, tuple(range(a.ndim - values.ndim))) if values.ndim < a.ndim else values
    if indices.size == 1:
        # One place: the slices of `values` along the axis go there side by side.
        i = lax.reshape(indices, ())
        if indices.ndim == 0:
            values = moveaxis(values, 0, axis)
        count = values.shape[axis]
        i = clip(choose_elements(lax.lt(i, convert(0, i.dtype)), lax.add(i, convert(size, i.dtype)), i), 0, size)
        at = lax.add(spread(i, (count,)), lax.iota(i.dtype, count))
    else:
        count = indices.size
        i = clip(choose_elements(lax.lt(indices, convert(0, indices.dtype)),
                                 lax.add(indices, convert(size, indices.dtype)), indices), 0, size)
        order = argsort(i)
        rank = scatter(lax.full_like(i, 0), order, lax.iota(i.dtype, count), "set")
        at = lax.add(i, rank)
    total = size + count
    shape = tuple(total if k == axis else d for k, d in enumerate(a.shape))
    taken = scatter(lax.full((total,), 0, default_int()), at, 1, "set")
    from .positions import nonzero

    (rest,) = nonzero(lax.eq(taken, convert(0, taken.dtype)), size=size)
    lead = [slice(None)] * axis
    out = zeros_like(a, shape=shape)
    out = scatter(
        out,
        (*lead, at),
        convert(spread(values, tuple(count if k == axis else d for k, d in enumerate(a.shape))), a.dtype),
        "set",
    )
    return scatter(out, (*lead, rest), a, "set")


def trim_zeros(filt: ArrayLike, trim: str = "fb", axis: Axis = None) -> Array:
    """`filt` without the zeros at its ends.

    Args:
      filt: an array, concrete, as the shape of the result depends on it.
      trim: which ends: "f" the front, "b" the back, "fb" both.
      axis: an int, or several; None for all. A slice goes where all of it is 0.

    Returns:
      an array of the dtype of `filt`; empty where all is 0.

    Raises:
      ConcretizationTypeError: for a traced `filt`.
    """
    a = operand("trim_zeros", filt)
    values = concrete_or_error(np.asarray, a, "Error arose in the `filt` argument of trim_zeros()")
    if a.ndim == 0:
        return a
    axes = range(a.ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
    places = np.argwhere(values)
    index = [slice(None)] * a.ndim
    for i in axes:
        i = axis_index(i, a.ndim)
        low, high = (places[:, i].min(), places[:, i].max() + 1) if len(places) else (0, 0)
        index[i] = slice(int(low) if "f" in trim.lower() else 0, int(high) if "b" in trim.lower() else a.shape[i])
        if not len(places):
            index[i] = slice(0, 0)
    return gather_elements(a, tuple(index))


# -- bits ----------------------------------------------------------------------------------------------
def _packbits(a: ArrayLike, axis: int | None = None, bitorder: str = "big") -> Array:
    """Eight truth values packed into each uint8, zeros at the end.

    Args:
      a: integers or booleans; what is not 0 is a 1.
      axis: the axis; None for all elements in row order.
      bitorder: "big" puts the first into the highest bit, "little" into the lowest.

    Returns:
      an array of dtype uint8, ceil(n / 8) long along `axis`.

    Raises:
      TypeError: for floats.
      ValueError: for other orders.
    """
    a = operand("packbits", a)
    if not (a.dtype == np.bool_ or dtypes.issubdtype(a.dtype, np.integer)):
        raise TypeError("Expected an input array of integer or boolean data type")
    if bitorder not in ("little", "big"):
        raise ValueError("'order' must be either 'little' or 'big'")
    from .broadcasting import truth
    from .reductions import sum as sum_

    bits = convert(truth(a), _UINT8)
    places = lax.iota(_UINT8, 8)
    if bitorder == "big":
        places = lax.rev(places, (0,))
    if axis is None:
        bits, axis = ravel(bits), 0
    bits = moveaxis(bits, axis, -1)
    extra = bits.shape[-1] % 8
    if extra:
        bits = lax.pad(bits, np.zeros((), _UINT8), [(0, 0, 0)] * (bits.ndim - 1) + [(0, 8 - extra, 0)])
    bits = lax.reshape(bits, (*bits.shape[:-1], bits.shape[-1] // 8, 8))
    shifts = lax.expand_dims(places, tuple(range(bits.ndim - 1)))
    packed = convert(sum_(lax.shift_left(bits, shifts), axis=-1), _UINT8)
    return moveaxis(packed, -1, axis)


def _unpackbits(a: ArrayLike, axis: int | None = None, count: int | None = None, bitorder: str = "big") -> Array:
    """The bits of uint8 elements as zeros and ones.

    Args:
      a: an array of dtype uint8.
      axis: the axis; None for all elements in row order.
      count: how many bits to return: zeros are added beyond the end, a negative number leaves out the last ones; None
        for all.
      bitorder: "big" takes the highest bit first, "little" the lowest.

    Returns:
      an array of dtype uint8, by default eight times as long along `axis`.

    Raises:
      TypeError: for other dtypes.
      ValueError: for other orders.
    """
    a = operand("unpackbits", a)
    if a.dtype != _UINT8:
        raise TypeError("Expected an input array of unsigned byte data type")
    if bitorder not in ("little", "big"):
        raise ValueError("'order' must be either 'little' or 'big'")
    places = lax.iota(_UINT8, 8)
    masks = lax.shift_left(np.ones((), _UINT8), places)
    if bitorder == "big":
        masks = lax.rev(masks, (0,))
    if axis is None:
        a, axis = ravel(a), 0
    a = moveaxis(a, axis, -1)
    from .binary import bitwise_and

    bits = bitwise_and(lax.expand_dims(a, (a.ndim,)), lax.expand_dims(masks, tuple(range(a.ndim))))
    bits = convert(lax.gt(bits, np.zeros((), _UINT8)), _UINT8)
    bits = lax.reshape(bits, (*bits.shape[:-2], bits.shape[-2] * 8))
    if count is not None:
        size = bits.shape[-1]
        if count > size:
            bits = lax.pad(bits, np.zeros((), _UINT8), [(0, 0, 0)] * (bits.ndim - 1) + [(0, count - size, 0)])
        else:
            bits = gather_elements(bits, (..., slice(0, count)))
    return moveaxis(bits, -1, axis)


packbits = jit(named(_packbits, "packbits"), static_argnames=("axis", "bitorder"))
unpackbits = jit(named(_unpackbits, "unpackbits"), static_argnames=("axis", "count", "bitorder"))

