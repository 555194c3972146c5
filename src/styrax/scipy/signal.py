"""Convolution of signals; spectra are in `spectral`, loaded when first used."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.tracing.source import api_boundary
from styrax.core.types.typing import ArrayLike
from styrax.lax.reductions.contractions import PrecisionLike
from styrax.lazy import names as _names
from styrax.numpy.arrangements import flip
from styrax.numpy.binary import multiply
from styrax.numpy.broadcasting import spread
from styrax.numpy.conversion import asarray
from styrax.numpy.promotion import arrays, axis_index, dtype_of, promote_dtypes_inexact
from styrax.numpy.ranges import arange
from styrax.numpy.shaping import moveaxis

if TYPE_CHECKING:  # the same names for type checkers and editors
    from .spectral import csd as csd
    from .spectral import istft as istft
    from .spectral import stft as stft
    from .spectral import welch as welch

__getattr__, __dir__, _ = _names(__name__, {"scipy.spectral": "csd istft stft welch"})


def _convolve(in1: Any, in2: Any, mode: str, precision: Any) -> Array:
    """Convolution along all axes. The result of "same" and "valid" is that of the larger operand first."""
    if mode not in ("full", "same", "valid"):
        raise ValueError("mode must be one of ['full', 'same', 'valid']")
    if in1.ndim != in2.ndim:
        raise ValueError("in1 and in2 must have the same number of dimensions")
    if in1.size == 0 or in2.size == 0:
        raise ValueError(f"zero-size arrays not supported in convolutions, got shapes {in1.shape} and {in2.shape}.")
    in1, in2 = (asarray(x) for x in promote_dtypes_inexact(in1, in2))
    exchange = in1.shape != in2.shape and all(a <= b for a, b in zip(in1.shape, in2.shape))
    if not exchange and not all(a >= b for a, b in zip(in1.shape, in2.shape)):
        raise ValueError("One input must be smaller than the other in every dimension.")
    if exchange:
        in1, in2 = in2, in1
    in2 = flip(in2)
    if mode == "valid":
        padding = [(0, 0)] * in1.ndim
    elif mode == "full":
        padding = [(n - 1, n - 1) for n in in2.shape]
    elif exchange:
        # The middle of the full result, as large as the smaller operand.
        padding = [_middle(m, n) for m, n in zip(in1.shape, in2.shape)]
    else:
        padding = [(n // 2, n - n // 2 - 1) for n in in2.shape]
    ahead = tuple(range(2))
    out = lax.conv_general_dilated(lax.expand_dims(in1, ahead), lax.expand_dims(in2, ahead), (1,) * in1.ndim, padding,
                                   precision=precision)
    return lax.squeeze(out, ahead)


def _middle(large: int, small: int) -> tuple[int, int]:
    """Padding such that a full convolution is cut to its `small` middle elements."""
    low = (large - 1) // 2
    return small - 1 - low, small - 1 - (large - 1 - low)


def convolve(in1: ArrayLike, in2: ArrayLike, mode: str = "full", method: str = "auto",
             precision: PrecisionLike = None) -> Array:
    """The convolution of two arrays of the same rank, along all axes: Σ in1[j]·in2[k - j].

    Args:
      in1, in2: the arrays; one must be at least as large as the other along every axis. Integers are taken as floats.
      mode: "full"; "same" for the middle part, of the shape of in1; "valid" for what needs no zeros.
      method: "direct" (as "auto") or "fft".
      precision: of the products of the direct method, as for `lax.conv_general_dilated`.

    Returns:
      a float or complex array; for "full" with sizes m + n - 1 from m and n, for "valid" |m - n| + 1.

    Raises ValueError for other modes and methods, different ranks, and empty arrays.

    Example:
      >>> import styrax.scipy.signal as signal
      >>> import styrax.numpy as jnp
      >>> signal.convolve(jnp.array([1.0, 2.0]), jnp.array([1.0, 1.0]), method='direct')
      Array([1., 3., 2.], dtype=float32)
    """
    if method == "fft":
        return fftconvolve(in1, in2, mode=mode)
    if method in ("direct", "auto"):
        return _convolve(in1, in2, mode, precision)
    raise ValueError(f"Got method={method!r}; expected 'auto', 'fft', or 'direct'.")


def _plane(name: str, in1: Any, in2: Any, boundary: str, fillvalue: float) -> None:
    if boundary != "fill" or fillvalue != 0:
        raise NotImplementedError(f"{name}() only supports boundary='fill', fillvalue=0")
    if np.ndim(in1) != 2 or np.ndim(in2) != 2:
        raise ValueError(f"{name}() only supports 2-dimensional inputs.")


@api_boundary
def convolve2d(in1: ArrayLike, in2: ArrayLike, mode: str = "full", boundary: str = "fill", fillvalue: float = 0,
               precision: PrecisionLike = None) -> Array:
    """The convolution of two matrices, Σ in1[i, j]·in2[k - i, l - j].

    Args:
      in1, in2: the matrices; one must be at least as large as the other along both axes. Integers are taken as floats.
      mode: "full"; "same" for the middle part, of the shape of in1; "valid" for what needs no zeros.
      boundary: "fill" alone.
      fillvalue: 0 alone.
      precision: of the products, as for `lax.conv_general_dilated`.

    Returns:
      a float or complex matrix; for "full" with sizes m + n - 1 from m and n, for "valid" |m - n| + 1.

    Raises NotImplementedError for other boundaries, ValueError for other modes, ranks and sizes.
    """
    _plane("convolve2d", in1, in2, boundary, fillvalue)
    return _convolve(in1, in2, mode, precision)


def _conjugate(x: Any) -> Any:
    return lax.conj(x) if dtype_of(x).kind == "c" else x


def correlate(in1: ArrayLike, in2: ArrayLike, mode: str = "full", method: str = "auto",
              precision: PrecisionLike = None) -> Array:
    """The cross-correlation of two arrays of the same rank, along all axes: Σ in1[j + k]·conj(in2[j]).

    Args:
      in1, in2: the arrays; one must be at least as large as the other along every axis. Integers are taken as floats.
      mode: "full"; "same" for the middle part, of the shape of in1; "valid" for what needs no zeros.
      method: "direct" (as "auto") or "fft".
      precision: of the products of the direct method, as for `lax.conv_general_dilated`.

    Returns:
      a float or complex array with sizes as for `convolve`; the first element of "full" is where only the last of in2
      meets the first of in1.

    Raises ValueError for other modes and methods, different ranks, and empty arrays.
    """
    return convolve(in1, flip(_conjugate(in2)), mode, method=method, precision=precision)


def correlate2d(in1: ArrayLike, in2: ArrayLike, mode: str = "full", boundary: str = "fill", fillvalue: float = 0,
                precision: PrecisionLike = None) -> Array:
    """The cross-correlation of two matrices, Σ in1[i + k, j + l]·conj(in2[i, j]).

    As in SciPy, in1 is conjugated instead where in2 is the larger one and the mode "valid".

    Args:
      in1, in2: the matrices; one must be at least as large as the other along both axes. Integers are taken as floats.
      mode: "full"; "same" for the middle part, of the shape of in1; "valid" for what needs no zeros.
      boundary: "fill" alone.
      fillvalue: 0 alone.
      precision: of the products, as for `lax.conv_general_dilated`.

    Returns:
      a float or complex matrix; for "full" with sizes m + n - 1 from m and n, for "valid" |m - n| + 1.

    Raises NotImplementedError for other boundaries, ValueError for other modes, ranks and sizes.
    """
    _plane("correlate2d", in1, in2, boundary, fillvalue)
    first, second = np.shape(in1), np.shape(in2)
    if mode == "valid" and first != second and all(a <= b for a, b in zip(first, second)):
        in1 = _conjugate(in1)  # SciPy exchanges the two
    else:
        in2 = _conjugate(in2)
    # Backwards, which puts the middle part of "same" where SciPy has it.
    return flip(_convolve(flip(in1), in2, mode, precision))


def fftconvolve(in1: ArrayLike, in2: ArrayLike, mode: str = "full", axes: int | Sequence[int] | None = None) -> Array:
    """The convolution of two arrays by Fourier transforms.

    Args:
      in1, in2: arrays of the same rank; integers are taken as floats.
      mode: "full"; "same" for the middle part, of the size of in1; "valid" for what needs no zeros.
      axes: those to convolve, by default all; along the others sizes must be equal.

    Returns:
      a float or complex array, with rounding errors of the size of those of its largest elements.

    Raises ValueError for other modes, axes out of range, different ranks and sizes that do not fit.
    """
    from styrax.numpy import fft

    in1, in2 = (asarray(x) for x in promote_dtypes_inexact(*arrays("fftconvolve", in1, in2)))
    if mode not in ("full", "same", "valid"):
        raise ValueError("mode must be one of ['same', 'full', 'valid']")
    if in1.ndim != in2.ndim:
        raise ValueError("in1 and in2 should have the same dimensionality")
    if axes is None:
        places = tuple(range(in1.ndim))
    else:
        given = axes if isinstance(axes, (tuple, list)) else (axes,)
        places = tuple(dict.fromkeys(axis_index(i, in1.ndim) for i in given))
    if any(in1.shape[i] != in2.shape[i] for i in range(in1.ndim) if i not in places):
        raise ValueError(f"mapped axes must have same shape; got in1.shape={in1.shape} in2.shape={in2.shape} "
                         f"axes={places}")
    first = tuple(in1.shape[i] for i in places)
    second = tuple(in2.shape[i] for i in places)
    larger, smaller = ([f(a, b) for a, b in zip(first, second)] for f in (operator.ge, operator.le))
    if mode == "valid" and not (all(larger) or all(smaller)):
        raise ValueError("For 'valid' mode, One input must be at least as large as the other in every dimension.")
    lengths = tuple(a + b - 1 for a, b in zip(first, second))
    if all(1 in sizes for sizes in zip(first, second)):  # nothing to add up
        out = multiply(in1, in2)
    elif in1.dtype.kind == "c":
        spectrum = lax.mul(fft.fftn(in1, lengths, axes=places), fft.fftn(in2, lengths, axes=places))
        out = fft.ifftn(spectrum, lengths, axes=places)
    else:
        spectrum = lax.mul(fft.rfftn(in1, lengths, axes=places), fft.rfftn(in2, lengths, axes=places))
        out = fft.irfftn(spectrum, lengths, axes=places)
    if mode == "full":
        return out
    wanted = first if mode == "same" else tuple(abs(a - b) + 1 for a, b in zip(first, second))
    starts, stops = [0] * out.ndim, list(out.shape)
    for i, length, size in zip(places, lengths, wanted):
        starts[i] = (length - size) // 2
        stops[i] = starts[i] + size
    return lax.slice(out, starts, stops)


def detrend(data: ArrayLike, axis: int = -1, type: str = "linear", bp: int | Sequence[int] | np.ndarray = 0,
            overwrite_data: None = None) -> Array:
    """The data without their trend along an axis.

    Args:
      data: an array.
      axis: an int.
      type: "linear" subtracts a least-squares line, "constant" the mean.
      bp: where pieces begin that have lines of their own; static.
      overwrite_data: not supported.

    Returns:
      an array of the shape of `data`; integers become floats.

    Raises:
      NotImplementedError: where `overwrite_data` is given.
      ValueError: for other types and for breaks outside of the data.
    """
    if overwrite_data is not None:
        raise NotImplementedError("overwrite_data argument not implemented.")
    if type not in ("linear", "constant"):
        raise ValueError("Trend type must be 'linear' or 'constant'.")
    (data,) = promote_dtypes_inexact(asarray(data))
    if type == "constant":
        from styrax.numpy.moments import mean

        return lax.sub(data, spread(mean(data, axis, keepdims=True), data.shape))
    n = data.shape[axis]
    breaks = np.unique(np.concatenate([np.atleast_1d(np.asarray(bp)), [0, n]]))
    if np.any((breaks < 0) | (breaks > n)):
        raise ValueError("Breakpoints must be non-negative and less than length of data along given axis.")
    from styrax.numpy.dot_products import matmul
    from styrax.numpy.linalg import lstsq

    rows = moveaxis(data, axis, 0)
    shape = rows.shape
    columns = lax.reshape(rows, (n, rows.size // n if n else 0))
    pieces = []
    for start, stop in zip(breaks[:-1], breaks[1:]):
        length = int(stop - start)
        line = lax.div(arange(1, length + 1, dtype=data.dtype), lax.full((length,), length, data.dtype))
        basis = lax.concatenate([lax.expand_dims(line, (1,)), lax.full((length, 1), 1, data.dtype)], 1)
        piece = lax.slice_in_dim(columns, int(start), int(stop))
        solution = lstsq(basis, piece)[0]
        pieces.append(lax.sub(piece, matmul(basis, solution, precision=lax.Precision.HIGHEST)))
    return moveaxis(lax.reshape(lax.concatenate(pieces, 0) if len(pieces) > 1 else pieces[0], shape), 0, axis)
