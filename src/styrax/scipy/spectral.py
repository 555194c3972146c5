"""Spectra of signals from overlapping segments, and short-time Fourier transforms."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.tracing.trace import concrete_or_error
from styrax.core.types.typing import ArrayLike
from styrax.numpy import fft
from styrax.numpy.broadcasting import spread
from styrax.numpy.conversion import asarray
from styrax.numpy.editing import pad
from styrax.numpy.moments import mean
from styrax.numpy.promotion import convert, promote_dtypes_inexact, to_complex
from styrax.numpy.reductions import sum as sum_
from styrax.numpy.selection import take
from styrax.numpy.shaping import moveaxis
from styrax.numpy.statistics import median

from .named_windows import window as named_window
from .signal import detrend as _detrend


def _window(window: Any, nperseg: int | None, size: int) -> tuple[Array | np.ndarray, int]:
    """The window's values and the length of a segment. Raises ValueError where they do not fit each other."""
    if isinstance(window, (str, tuple)):
        if nperseg is None:
            nperseg = size
        if nperseg > size:
            warnings.warn(f"nperseg={nperseg} is greater than input_length={size}, using nperseg={size}",
                          stacklevel=4)
            nperseg = size
        if nperseg == 0:
            return lax.full((0,), 0, np.float32), 0
        return named_window(window, nperseg), nperseg
    values = asarray(window)
    if values.ndim != 1:
        raise ValueError("window must be 1-D")
    if values.shape[0] > size:
        raise ValueError("window is longer than input signal")
    if nperseg is None:
        nperseg = values.shape[0]
    elif nperseg != values.shape[0]:
        raise ValueError("value specified for nperseg is different from length of window")
    return values, nperseg


def _static(name: str, x: Any, default: int, kind: Callable[[Any], int] = operator.index) -> int:
    if x is None:
        return default
    return concrete_or_error(kind, x, f"{name} of a spectrum has to be static")


def _segments(x: Any, length: int, step: int) -> Array:
    """Overlapping pieces of the last axis: shape [..., pieces, length]."""
    count = max((x.shape[-1] - length) // step + 1, 0)
    places = lax.add(lax.mul(lax.broadcasted_iota(np.int32, (count, length), 0),
                             lax.full((count, length), step, np.int32)),
                     lax.broadcasted_iota(np.int32, (count, length), 1))
    return take(x, places, axis=-1, mode="clip")


# How a signal goes on beyond its ends: the mode of `pad`.
_EXTENSIONS: dict[str | None, Any] = {
    "even": "reflect", "odd": "reflect", "constant": "edge", "zeros": "constant", None: None,
}


def _extended(x: Any, nperseg: int, step: int, boundary: str | None, padded: bool) -> Any:
    """A signal with half a segment added at either end, and zeros that fill its last segment."""
    if boundary is not None:
        half = nperseg // 2
        options = {"reflect_type": "odd"} if boundary == "odd" else {}
        x = pad(x, [(0, 0)] * (x.ndim - 1) + [(half, half)], mode=_EXTENSIONS[boundary], **options)
    if padded:
        missing = (-(x.shape[-1] - nperseg)) % step % nperseg
        x = pad(x, [(0, 0)] * (x.ndim - 1) + [(0, missing)])
    return x


def _scale(values: Array, fs: Any, scaling: str) -> Array:
    """What makes the products of transforms under a window densities (by frequency), or powers."""
    if scaling == "density":
        total = lax.mul(convert(fs, values.dtype), sum_(lax.mul(values, values)))
    elif scaling == "spectrum":
        total = lax.square(sum_(values))
    else:
        raise ValueError(f"Unknown scaling: {scaling}")
    return lax.div(convert(1, values.dtype), total)


def _broadcast(*shapes: tuple[int, ...]) -> bool:
    try:
        lax.broadcast_shapes(*shapes)
    except ValueError:
        return False
    return True


def _of_nothing(x: Any, y: Any, axis: int, dtype: Any) -> tuple[Any, Any, Any]:
    """What there is of signals without elements, along their last axes."""
    shape = (*lax.broadcast_shapes(x.shape[:-1], y.shape[:-1]), min(x.shape[-1], y.shape[-1]))
    empty = moveaxis(lax.full(shape, 0, x.dtype), -1, axis)
    return empty, empty, convert(empty, dtype)


def _spectra(x: Any, y: Any, fs: Any, window: Any, nperseg: int | None, noverlap: int | None, nfft: int | None,
             detrend_type: Any, return_onesided: bool, scaling: str, axis: int, mode: str, boundary: str | None,
             padded: bool) -> tuple[Any, Any, Any]:
    """Frequencies, times and products of the spectra of segments, shape [..., frequencies, segments]."""
    if mode not in ("psd", "stft"):
        raise ValueError(f"Unknown value for mode {mode}, must be one of: ('psd', 'stft')")
    if boundary not in _EXTENSIONS:
        raise ValueError(f"Unknown boundary option '{boundary}', must be one of: {list(_EXTENSIONS)}")
    same = y is None or y is x
    axis = operator.index(axis)
    arrays_ = [asarray(v) for v in promote_dtypes_inexact(*((x,) if same else (x, y)))]
    x = arrays_[0]
    y = x if same else arrays_[1]
    dtype, complex_dtype = x.dtype, to_complex(x.dtype)
    x = moveaxis(x, axis, -1)
    y = x if same else moveaxis(y, axis, -1)
    if not _broadcast(x.shape[:-1], y.shape[:-1]):
        raise ValueError("x and y cannot be broadcast together.")
    if not same and x.shape[-1] != y.shape[-1]:
        longest = max(x.shape[-1], y.shape[-1])
        x, y = (pad(v, [(0, 0)] * (v.ndim - 1) + [(0, longest - v.shape[-1])]) for v in (x, y))
    if nperseg is not None:
        nperseg = _static("nperseg", nperseg, 0, int)
        if nperseg < 1:
            raise ValueError("nperseg must be a positive integer")
    values, nperseg = _window(window, nperseg, x.shape[-1])
    if x.size == 0 or y.size == 0:
        return _of_nothing(x, y, axis, complex_dtype)
    nfft = _static("nfft", nfft, nperseg, int)
    if nfft < nperseg:
        raise ValueError("nfft must be greater than or equal to nperseg.")
    noverlap = _static("noverlap", noverlap, nperseg // 2, int)
    if noverlap >= nperseg:
        raise ValueError("noverlap must be less than nperseg.")
    step = nperseg - noverlap
    x = _extended(x, nperseg, step, boundary, padded)
    y = x if same else _extended(y, nperseg, step, boundary, padded)
    values = asarray(values, dtype=dtype)
    scale = _scale(values, fs, scaling)
    if mode == "stft":
        scale = lax.sqrt(scale)
    onesided = return_onesided and dtype.kind != "c"
    if return_onesided and not onesided:
        warnings.warn("Input data is complex, switching to return_onesided=False", stacklevel=4)
    frequencies = (fft.rfftfreq if onesided else fft.fftfreq)(
        nfft, 1 / fs, dtype=np.empty(0, complex_dtype).real.dtype)

    def spectrum(v: Any) -> Array:
        pieces = _segments(v, nperseg, step)
        if callable(detrend_type):
            pieces = detrend_type(pieces)
        elif detrend_type is not False:
            pieces = _detrend(pieces, type=detrend_type, axis=-1)
        pieces = lax.mul(pieces, spread(convert(values, pieces.dtype), pieces.shape))
        return (fft.rfft if onesided else fft.fft)(pieces, n=nfft)

    first = spectrum(x)
    if mode == "psd":
        second = first if same else spectrum(y)
        shape = lax.broadcast_shapes(first.shape, second.shape)
        result = lax.mul(lax.conj(spread(first, shape)), spread(second, shape))
    else:
        result = first
    result = lax.mul(result, spread(convert(scale, result.dtype), result.shape))
    if onesided and mode == "psd":
        # Frequencies other than 0 (and the highest) stand for their negatives, too.
        count = result.shape[-1]
        weights = np.full(count, 2.0)
        weights[0] = 1.0
        if nfft % 2 == 0:
            weights[-1] = 1.0
        result = lax.mul(result, spread(convert(weights, result.dtype), result.shape))
    times = np.arange(nperseg / 2, x.shape[-1] - nperseg / 2 + 1, step) / fs
    if boundary is not None:
        times = times - (nperseg / 2) / fs
    result = convert(result, complex_dtype)
    return frequencies, asarray(times, dtype=frequencies.dtype), moveaxis(moveaxis(result, -1, -2), -2, -2)


Window = str | tuple | ArrayLike
Detrend = str | bool | Callable[[Array], Array]


def stft(x: ArrayLike, fs: ArrayLike = 1.0, window: Window = "hann", nperseg: int | None = 256,
         noverlap: int | None = None, nfft: int | None = None, detrend: Detrend = False, return_onesided: bool = True,
         boundary: str | None = "zeros", padded: bool = True, axis: int = -1) -> tuple[Array, Array, Array]:
    """The short-time Fourier transform: frequencies, times, and spectra of overlapping, windowed segments.

    Args:
      x: the signal, along `axis`.
      fs: samples per unit of time.
      window: a name (as for scipy.signal.get_window) or values.
      nperseg: the length of a segment.
      noverlap: how many of its samples the next one shares, by default half.
      nfft: the length of the transforms, by default `nperseg`; longer ones are filled up with zeros.
      detrend: False, "linear", "constant" or a function, applied to each segment.
      return_onesided: for real signals, whether to return frequencies that are not negative alone.
      boundary: how the signal is extended by half a segment on both sides, or None.
      padded: whether zeros complete the last segment.
      axis: that of time.

    Returns:
      the frequencies, shape [f], the times of the middles of segments, shape [t], and complex spectra, shape
      [..., f, t] (f where `axis` was, t last). Transforms are divided by the sum of the window.

    Raises ValueError for lengths that do not fit and unknown boundaries.
    """
    frequencies, times, result = _spectra(x, None, fs, window, nperseg, noverlap, nfft, detrend, return_onesided,
                                          "spectrum", axis, "stft", boundary, padded)
    return frequencies, times, _placed(result, axis)


def _placed(result: Any, axis: int) -> Array:
    """Moves the axis of frequencies to where the signal's axis was."""
    if axis < 0:
        axis -= 1
    return moveaxis(result, -2, axis) if axis != -2 else result


def csd(x: ArrayLike, y: ArrayLike | None, fs: ArrayLike = 1.0, window: Window = "hann", nperseg: int | None = None,
        noverlap: int | None = None, nfft: int | None = None, detrend: Detrend = "constant",
        return_onesided: bool = True, scaling: str = "density", axis: int = -1,
        average: str = "mean") -> tuple[Array, Array]:
    """The cross power spectral density of two signals, by Welch's method: the mean of conj(X)·Y over segments.

    Args:
      x, y: the signals, along `axis`; the shorter one is filled up with zeros. None for y means x.
      fs: samples per unit of time, which the frequencies refer to.
      window: a name or pair of name and parameters (as for scipy.signal.get_window), or values, shape [nperseg].
      nperseg: how many samples a segment has, by default as many as `window`, or 256 and at most the signal.
      noverlap: how many of them the next segment shares, by default half.
      nfft: the length of the transforms, by default `nperseg`; longer ones are filled up with zeros.
      detrend: "constant", "linear", False or a function, applied to each segment.
      return_onesided: for real signals, whether to return frequencies that are not negative alone, doubled.
      scaling: "density" for power per unit of frequency, "spectrum" for power.
      axis: that of time.
      average: "mean" or "median" of the segments.

    Returns:
      the frequencies, shape [f], and the densities, complex unless y is None, with frequencies where `axis` was.

    Raises ValueError for other values, and for lengths that do not fit.
    """
    frequencies, _, result = _spectra(x, y, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling,
                                      axis, "psd", None, False)
    if result.ndim >= 2 and result.size > 0:
        if result.shape[-1] > 1:
            if average == "median":
                n = result.shape[-1]
                places = 2 * np.arange(1.0, (n - 1) // 2 + 1)
                bias = 1 + np.sum(1.0 / (places + 1) - 1.0 / places)
                parts = median(lax.real(result), axis=-1), median(lax.imag(result), axis=-1)
                result = lax.complex(*parts)
                result = lax.div(result, lax.full_like(result, bias))
            elif average == "mean":
                result = mean(result, axis=-1)
            else:
                raise ValueError(f"average must be \"median\" or \"mean\", got {average}")
        else:
            result = lax.squeeze(result, (result.ndim - 1,))
        if axis not in (-1, result.ndim - 1):
            result = moveaxis(result, -1, axis)
    return frequencies, lax.real(result) if y is None and result.size else result


def welch(x: ArrayLike, fs: ArrayLike = 1.0, window: Window = "hann", nperseg: int | None = None,
          noverlap: int | None = None, nfft: int | None = None, detrend: Detrend = "constant",
          return_onesided: bool = True, scaling: str = "density", axis: int = -1,
          average: str = "mean") -> tuple[Array, Array]:
    """The power spectral density of a signal, by Welch's method: the mean of |X|² over overlapping segments.

    Args:
      x: the signal, along `axis`.
      fs: samples per unit of time, which the frequencies refer to.
      window: a name or pair of name and parameters (as for scipy.signal.get_window), or values, shape [nperseg].
      nperseg: how many samples a segment has, by default as many as `window`, or 256 and at most the signal.
      noverlap: how many of them the next segment shares, by default half.
      nfft: the length of the transforms, by default `nperseg`; longer ones are filled up with zeros.
      detrend: "constant", "linear", False or a function, applied to each segment.
      return_onesided: for real signals, whether to return frequencies that are not negative alone, doubled.
      scaling: "density" for power per unit of frequency, "spectrum" for power.
      axis: that of time.
      average: "mean" or "median" of the segments.

    Returns:
      the frequencies, shape [f], and the densities, real, with frequencies where `axis` was.

    Raises ValueError for other values, and for lengths that do not fit.
    """
    frequencies, result = csd(x, None, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis,
                              average)
    return frequencies, lax.real(result) if result.dtype.kind == "c" else result


def istft(Zxx: ArrayLike, fs: ArrayLike = 1.0, window: Window = "hann", nperseg: int | None = None,
          noverlap: int | None = None, nfft: int | None = None, input_onesided: bool = True, boundary: bool = True,
          time_axis: int = -1, freq_axis: int = -2) -> tuple[Array, Array]:
    """The inverse of `stft`: times and signal, by adding windowed segments where they overlap.

    Args:
      Zxx: spectra, with frequencies along `freq_axis` and segments along `time_axis`.
      fs: samples per unit of time.
      window: that of `stft`, a name or values, shape [nperseg].
      nperseg, noverlap, nfft: those of `stft`; by default what the number of frequencies says, and half of it.
      input_onesided: whether there are frequencies that are not negative alone, and the signal is real.
      boundary: whether the signal was extended, and is to be cut.
      time_axis, freq_axis: the axes of segments and frequencies.

    Returns:
      times, and the signal with its samples where the axis of segments was (without that of frequencies). The times are
      those of its first axis.

    Raises ValueError for lengths, axes and windows that do not fit.
    """
    z = asarray(Zxx)
    if z.ndim < 2:
        raise ValueError("Input stft must be at least 2d!")
    freq_axis, time_axis = (operator.index(i) % z.ndim for i in (freq_axis, time_axis))
    if freq_axis == time_axis:
        raise ValueError("Must specify differing time and frequency axes!")
    (z,) = promote_dtypes_inexact(z)
    z = convert(z, to_complex(z.dtype))
    natural = 2 * (z.shape[freq_axis] - 1) if input_onesided else z.shape[freq_axis]
    nperseg = _static("nperseg", nperseg, natural) or natural
    if nperseg < 1:
        raise ValueError("nperseg must be a positive integer")
    if nfft is None:
        nfft = natural + 1 if input_onesided and nperseg == natural + 1 else natural
    nfft = _static("nfft", nfft, natural)
    if nfft < nperseg:
        raise ValueError(f"nfft ({nfft}) must be greater than or equal to nperseg ({nperseg}).")
    noverlap = _static("noverlap", noverlap, nperseg // 2)
    if noverlap >= nperseg:
        raise ValueError("noverlap must be less than nperseg.")
    step = nperseg - noverlap
    z = moveaxis(z, (freq_axis, time_axis), (-2, -1))
    real_dtype = np.empty(0, z.dtype).real.dtype
    if isinstance(window, (str, tuple)):
        window = named_window(window, nperseg)
    values = asarray(window, dtype=real_dtype)
    if values.ndim != 1:
        raise ValueError("window must be 1-D")
    if values.shape[0] != nperseg:
        raise ValueError(f"window must have length of {nperseg}")
    pieces = (fft.irfft if input_onesided else fft.ifft)(z, axis=-2, n=nfft)
    pieces = moveaxis(lax.slice_in_dim(pieces, 0, nperseg, axis=pieces.ndim - 2), -2, -1)
    kind = pieces.dtype
    pieces = lax.mul(pieces, spread(convert(lax.mul(values, spread(sum_(values), values.shape)), kind), pieces.shape))
    count = pieces.shape[-2]
    total = _overlapped(pieces, step)
    norm = _overlapped(spread(lax.square(values), (count, nperseg)), step)
    if boundary:
        half = nperseg // 2
        total = lax.slice_in_dim(total, half, total.shape[-1] - half, axis=total.ndim - 1)
        norm = lax.slice_in_dim(norm, half, norm.shape[-1] - half)
    small = lax.gt(norm, lax.full_like(norm, 1e-10))
    norm = lax.select(small, norm, lax.full_like(norm, 1))
    signal = lax.div(total, spread(convert(norm, kind), total.shape))
    if signal.ndim > 1 and time_axis != z.ndim - 1:
        place = time_axis - 1 if freq_axis < time_axis else time_axis
        signal = moveaxis(signal, -1, place)
    times = np.arange(signal.shape[0]) / fs
    return asarray(times, dtype=real_dtype), signal


def _overlapped(pieces: Any, step: int) -> Array:
    """Adds segments of the last axis where they overlap."""
    *batch, count, length = pieces.shape
    # Pieces of `step` elements: the k-th part of each segment is added k places later.
    parts = -(-length // step)
    padded = pad(pieces, [(0, 0)] * (len(batch) + 1) + [(0, parts * step - length)])
    padded = lax.reshape(padded, (*batch, count, parts, step))
    total: Any = None
    for k in range(parts):
        part = lax.index_in_dim(padded, k, axis=len(batch) + 1, keepdims=False)
        part = pad(part, [(0, 0)] * len(batch) + [(k, parts - 1 - k), (0, 0)])
        total = part if total is None else lax.add(total, part)
    flat = lax.reshape(total, (*batch, (count + parts - 1) * step))
    return lax.slice_in_dim(flat, 0, (count - 1) * step + length, axis=len(batch))
