"""Discrete Fourier transforms."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.programs.named import named
from styrax.core.tracing.source import api_boundary
from styrax.core.tracing.trace import concrete_or_error
from styrax.core.types import dtypes
from styrax.core.types.dims import is_named
from styrax.core.types.typing import ArrayLike, Axis, DeviceLike, DTypeLike, Shape
from styrax.transforms.fused import fused

from .arrangements import roll
from .binary import divide, multiply
from .complex_parts import conj
from .conversion import asarray, place
from .indexing import gather_elements
from .promotion import arrays, axis_index, check_arraylike, convert, default_float, to_complex, to_inexact, user_dtype
from .shaping import moveaxis

AT_ONCE = 3  # axes that the primitive transforms
FFT, IFFT, RFFT, IRFFT = lax.FftType.FFT, lax.FftType.IFFT, lax.FftType.RFFT, lax.FftType.IRFFT


NORMS = (None, "backward", "ortho", "forward")


def _check_norm(norm: str | None) -> None:
    if norm not in NORMS:
        raise ValueError(f'Invalid norm value {norm}; should be "backward","ortho" or "forward".')


def _transform(name: str, kind: lax.FftType, a: Any, s: Shape | None, axes: Sequence[int] | None,
               norm: str | None) -> Any:
    full = f"jax.numpy.fft.{name}"
    (a,) = arrays(full, a)
    a = asarray(a)
    if s is not None:
        s = tuple(map(operator.index, s))
        if any(n <= 0 for n in s):
            raise ValueError("Shape should be positive.")
    if s is not None and axes is not None and len(s) != len(axes):
        raise ValueError("Shape and axes have different lengths.")
    _check_norm(norm)
    if axes is None:
        axes = range(a.ndim) if s is None else range(a.ndim - len(s), a.ndim)
    if len(set(axes)) != len(axes):
        raise ValueError(f"{full} does not support repeated axes. Got axes {axes}.")
    if s is not None and len(s) > a.ndim:
        raise ValueError(f"{full}: an array of shape {a.shape} has not the axes for lengths {s}")
    places = tuple(axis_index(axis, a.ndim) for axis in axes)
    if s is None and any(is_named(a.shape[i]) for i in places):
        raise NotImplementedError("Shape polymorphism for FFT with non-constant fft_length is not implemented")
    if len(set(places)) != len(places):
        raise TypeError(f"{full}: axes {axes} name an axis of an array of shape {a.shape} twice")
    if kind == RFFT and np.issubdtype(a.dtype, np.complexfloating):
        raise ValueError("only real valued inputs supported for rfft")
    if not places:
        kept = to_inexact(a.dtype)
        return convert(a, kept if kind == RFFT else to_complex(kept))
    return _along_axes(a, kind, s, places, norm)


@partial(fused, static_argnames=("kind", "s", "places", "norm"))
def _along_axes(a: Any, kind: lax.FftType, s: Shape | None, places: tuple[int, ...], norm: str | None) -> Any:
    """The transform along axes that are counted from the front."""
    # The primitive transforms the last axes.
    last = tuple(range(a.ndim - len(places), a.ndim))
    moved = places != last
    if moved:
        a = moveaxis(a, places, last)
    if s is None:
        lengths = tuple(operator.index(a.shape[i]) for i in last)
        if kind == IRFFT:
            lengths = (*lengths[:-1], max(0, 2 * (lengths[-1] - 1)))
    else:
        lengths = tuple(map(operator.index, s))
        a = _fitted(a, (*lengths[:-1], lengths[-1] // 2 + 1) if kind == IRFFT else lengths)
    out = _along_last(a, kind, lengths)
    factor = _scale(norm, lengths, kind in (FFT, RFFT))
    if factor is not None:
        out = lax.mul(out, convert(factor, out.dtype))
    return moveaxis(out, last, places) if moved else out


def _along_last(a: Any, kind: lax.FftType, lengths: tuple[int, ...]) -> Any:
    """The transform along any number of last axes; the primitive takes three at a time."""
    count = len(lengths)
    if count <= AT_ONCE:
        return lax.fft(a, kind, lengths)
    # Real data are what the last axes begin with, or end with.
    others, first = lengths[:-AT_ONCE], lengths[-AT_ONCE:]
    home = tuple(range(a.ndim - count, a.ndim - AT_ONCE))
    end = tuple(range(a.ndim - len(others), a.ndim))
    if kind == IRFFT:
        return lax.fft(moveaxis(_along_last(moveaxis(a, home, end), IFFT, others), end, home), kind, first)
    a = moveaxis(lax.fft(a, kind, first), home, end)
    return moveaxis(_along_last(a, FFT if kind == RFFT else kind, others), end, home)


def _scale(norm: str | None, lengths: tuple, forward: bool) -> float | None:
    """What a transform is multiplied by beyond the primitive, which divides inverse ones by their length."""
    size = math.prod(lengths)
    if norm in (None, "backward") or size == 0:
        return None
    if norm == "ortho":
        return 1 / math.sqrt(size) if forward else math.sqrt(size)
    return 1 / size if forward else float(size)


def _fitted(a: Any, shape: Sequence[int]) -> Any:
    """`a` cut off, or filled up with zeros, in its last axes."""
    lead = a.ndim - len(shape)
    index = tuple([slice(None)] * lead + [slice(0, n) for n in shape])
    a = gather_elements(a, index)
    missing = [(0, max(0, n - a.shape[lead + i])) for i, n in enumerate(shape)]
    if any(hi for _, hi in missing):
        from .editing import pad

        a = pad(a, [(0, 0)] * lead + missing)
    return a


def _check_axis(name: str, axis: Any) -> None:
    if isinstance(axis, (list, tuple)):
        raise ValueError(f"jax.numpy.fft.{name} does not support multiple axes. Please use jax.numpy.fft.{name}n. "
                         f"Got axis = {axis!r}.")


def _one_axis(name: str, kind: lax.FftType, a: Any, n: int | None, axis: int | None, norm: str | None) -> Any:
    _check_axis(name, axis)
    return _transform(name, kind, a, None if n is None else (operator.index(n),), None if axis is None else (axis,),
                      norm)


_DOC_1 = """The {} along an axis: {}

    Args:
      a: an array; integers are taken as floats.
      n: the length {}.
      axis: the axis.
      norm: which transforms are scaled: "backward" or None (inverse ones, by 1/n), "ortho" (both, by 1/sqrt(n)) or
        "forward" (the others, by 1/n).

    Returns:
      {}.

    Raises:
      ValueError: for other norms, for several axes, for an axis out of range, for `n` below 1{}.
    """
_CUT = "of what is transformed: `a` is cut off or filled up with zeros; all of it by default"
_CUT_HALF = ("of the result, 2 (m - 1) by default for m elements; `a` is cut off or filled up with zeros to\n"
             "        n // 2 + 1 elements")
_COMPLEX = "complex numbers of the shape of `a`, `n` long along `axis`"


class Transform(Protocol):
    """A transform along one axis."""

    def __call__(self, a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array: ...


def _make_one(name: str, kind: Any, text: str, formula: str, gives: str = _COMPLEX, length: str = _CUT,
              refused: str = "") -> Transform:
    def function(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
        return _one_axis(name, kind, a, n, axis, norm)

    return named(function, name, _DOC_1.format(text, formula, length, gives, refused))


fft = _make_one("fft", FFT, "discrete Fourier transform", "element k is Σ a[m] exp(-2πi m k / n).")
ifft = _make_one("ifft", IFFT, "inverse discrete Fourier transform", "element m is 1/n Σ a[k] exp(2πi m k / n).")
rfft = _make_one("rfft", RFFT, "discrete Fourier transform of real data", "its first half, which the other mirrors.",
                 "complex numbers of the shape of `a`, n // 2 + 1 long along `axis`", refused=", for complex `a`")
irfft = _make_one("irfft", IRFFT, "inverse of `rfft`", "real data from the first half of their transform.",
                  "floats of the shape of `a`, `n` long along `axis`", _CUT_HALF)

_DOC_N = """The {} along several axes.

    Args:
      a: an array; integers are taken as floats.
      s: the lengths {}, one for each axis, as `n` of `{}`.
      axes: the axes, {}.
      norm: as for `fft`, with the product of the lengths for n.

    Returns:
      {}.

    Raises:
      ValueError: for other norms, for axes that repeat or are out of range, for lengths that are below 1 or not as many
        as the axes{}.
    """


class MultiTransform(Protocol):
    """A transform along several axes."""

    def __call__(self, a: ArrayLike, s: Shape | None = None, axes: Sequence[int] = ...,
                 norm: str | None = None) -> Array: ...


def _make_n(name: str, kind: Any, text: str, two: bool) -> MultiTransform:
    if two:
        def function(a: ArrayLike, s: Shape | None = None, axes: Sequence[int] = (-2, -1),
                     norm: str | None = None) -> Array:
            if len(axes) != 2:
                raise ValueError(f"jax.numpy.fft.{name} only supports 2 axes. Got axes = {axes!r}.")
            return _transform(name, kind, a, s, axes, norm)
    else:
        def function(  # type: ignore[misc]
                a: ArrayLike, s: Shape | None = None, axes: Sequence[int] | None = None,
                     norm: str | None = None) -> Array:
            return _transform(name, kind, a, s, axes, norm)

    half, inverse = kind == RFFT, kind == IRFFT
    return named(function, name, _DOC_N.format(
        text, "of the result" if inverse else "of what is transformed", name.rstrip("n2"),
        "two of them" if two else "all by default, or the last ones for which there are lengths",
        "floats of the shape that `s` gives" if inverse else
        f"complex numbers of the shape that `s` gives{', n // 2 + 1 long along the last of `axes`' if half else ''}",
        ", for complex `a`" if half else ""))


fftn = _make_n("fftn", FFT, "discrete Fourier transform", False)
ifftn = _make_n("ifftn", IFFT, "inverse discrete Fourier transform", False)
rfftn = _make_n("rfftn", RFFT, "first half, along the last axis, of the discrete Fourier transform of real data", False)
irfftn = _make_n("irfftn", IRFFT, "real inverse of `rfftn`", False)
fft2 = _make_n("fft2", FFT, "discrete Fourier transform", True)
ifft2 = _make_n("ifft2", IFFT, "inverse discrete Fourier transform", True)
rfft2 = _make_n("rfft2", RFFT, "first half, along the last axis, of the discrete Fourier transform of real data", True)
irfft2 = _make_n("irfft2", IRFFT, "real inverse of `rfft2`", True)


def hfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The real transform of data with Hermitian symmetry, a[-k] = conj(a[k]), given by their first half.

    Args:
      a: an array; integers are taken as floats.
      n: the length of the result, 2 (m - 1) by default for m elements; `a` is cut off or filled up with zeros to
        n // 2 + 1 elements.
      axis: the axis.
      norm: as for `fft`.

    Returns:
      floats of the shape of `a`, `n` long along `axis`.

    Raises:
      ValueError: for other norms, for several axes, and for `n` below 1.
      IndexError: for an axis out of range, without `n`.
    """
    _check_axis("hfft", axis)
    a = conj(a)
    _check_norm(norm)
    length = 2 * (a.shape[axis] - 1) if n is None else operator.index(n)
    out = _one_axis("hfft", IRFFT, a, n, axis, None)
    if length <= 0 or norm == "forward":
        return out
    return multiply(out, math.sqrt(length) if norm == "ortho" else length)


def ihfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The inverse of `hfft`: the first half of the inverse transform of real data.

    Args:
      a: a real array; integers are taken as floats.
      n: how many elements are transformed: `a` is cut off or filled up with zeros; all by default.
      axis: the axis.
      norm: as for `fft`.

    Returns:
      complex numbers of the shape of `a`, n // 2 + 1 long along `axis`.

    Raises:
      ValueError: for complex numbers, other norms, several axes, an axis out of range, and for `n` below 1.
    """
    _check_axis("ihfft", axis)
    a = asarray(a)
    _check_norm(norm)
    out = conj(_one_axis("ihfft", RFFT, a, n, axis, None))
    length = a.shape[axis] if n is None else n
    if norm == "forward":
        return out
    return divide(out, math.sqrt(length) if norm == "ortho" else length)


def _frequencies(n: Any, d: Any, dtype: Any, name: str, count: Callable[[int], np.ndarray],
                 device: DeviceLike | None) -> Array:
    if isinstance(n, (list, tuple)):
        raise ValueError(f"The n argument of jax.numpy.fft.{name} only takes an int. Got n = {list(n)}.")
    n = concrete_or_error(None, n, f"The error arose in jnp.fft.{name} argument `n`")
    if np.ndim(n):
        raise ValueError(f"The n argument of jax.numpy.fft.{name} only takes an int. Got an array of shape "
                         f"{np.shape(n)}.")
    n = operator.index(n)
    if isinstance(d, (list, tuple)):
        raise ValueError(f"The d argument of jax.numpy.fft.{name} only takes a single value. Got d = {list(d)}.")
    kind = default_float() if dtype is None else user_dtype(dtype, name)
    floating = dtypes.to_floating_dtype(kind)
    step = convert(n * float(d) if not hasattr(d, "aval") else multiply(d, n), floating)
    out = divide(convert(asarray(count(n)), floating), step)
    return place(convert(out, kind) if kind.kind == "c" else out, device)


def fftfreq(n: int, d: ArrayLike = 1.0, *, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> Array:
    """The frequencies of a transform of `n` samples: 0, 1, …, (n - 1) // 2, -(n // 2), …, -1, divided by n · d.

    Args:
      n: how many samples, static.
      d: the spacing of the samples: seconds give hertz.
      dtype: dtype of the result; by default the float dtype in force.
      device: where the result lives: a device or a sharding.

    Returns:
      an array of shape [n].

    Raises:
      ValueError: for lists as `n` or `d`.
      TypeError: for an `n` that is no integer, and for arrays as `d` but scalars.
      ConcretizationTypeError: for a traced `n`.
    """
    out = _frequencies(n, d, dtype, "fftfreq", lambda n: (np.arange(max(n, 0)) + n // 2) % max(n, 1) - n // 2, device)
    return out if dtype is None else convert(out, user_dtype(dtype, "fftfreq"))


def rfftfreq(n: int, d: ArrayLike = 1.0, *, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> Array:
    """The frequencies of an `rfft` of `n` samples: 0, 1, …, n // 2, divided by n · d.

    Args:
      n: how many samples, static.
      d: the spacing of the samples: seconds give hertz.
      dtype: dtype of the result if it is a floating one; by default the float dtype in force.
      device: where the result lives: a device or a sharding.

    Returns:
      an array of shape [n // 2 + 1].

    Raises:
      ValueError: for lists as `n` or `d`.
      TypeError: for an `n` that is no integer, and for arrays as `d` but scalars.
      ConcretizationTypeError: for a traced `n`.
    """
    return _frequencies(n, d, dtype, "rfftfreq", lambda n: np.arange(n // 2 + 1), device)


def _shifted(x: Any, axes: Any, name: str, shift: Callable[[int], int]) -> Any:
    check_arraylike(name, x)
    x = asarray(x)
    axes = tuple(range(x.ndim)) if axes is None else (axes,) if isinstance(axes, int) else tuple(axes)
    return roll(x, tuple(shift(x.shape[i]) for i in axes), axes) if axes else x


@api_boundary
def fftshift(x: ArrayLike, axes: Axis = None) -> Array:
    """`x` with frequency zero moved to the middle, index n // 2, of each axis.

    Args:
      x: an array.
      axes: an int, or several; None for all.

    Returns:
      an array of the shape and dtype of `x`.
    """
    return _shifted(x, axes, "fftshift", lambda n: n // 2)


@api_boundary
def ifftshift(x: ArrayLike, axes: Axis = None) -> Array:
    """The inverse of `fftshift`: the middle, index n // 2, of each axis moved to its front.

    Args:
      x: an array.
      axes: an int, or several; None for all.

    Returns:
      an array of the shape and dtype of `x`.
    """
    return _shifted(x, axes, "ifftshift", lambda n: -(n // 2))
