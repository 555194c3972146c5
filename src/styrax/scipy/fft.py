"""Discrete cosine transforms.

Of the second type, and its inverse (the third), by a real Fourier transform of the same length: the elements at even
places, then those at odd ones backwards (J. Makhoul, A fast cosine transform in one and two dimensions, 1980).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.tracing.source import api_boundary
from styrax.core.types.typing import ArrayLike
from styrax.numpy.arrangements import flip
from styrax.numpy.conversion import asarray
from styrax.numpy.fft import irfft, rfft
from styrax.numpy.promotion import arrays, axis_indices, convert, promote_dtypes_inexact
from styrax.numpy.shaping import moveaxis


@api_boundary
def dct(x: ArrayLike, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The discrete cosine transform `y[k] = 2 Σ x[j] cos(πk(2j + 1) / 2n)` along an axis.

    Args:
      x: real array; of a complex one both parts are transformed.
      type: 2 alone.
      n: the length: `x` is cut off or filled up with zeros. By default that of `x`.
      axis: the axis.
      norm: None or "backward"; or "ortho", which makes the transform orthogonal.

    Returns:
      an array of the dtype of `x`; integers, booleans and half precisions become float32.

    Raises NotImplementedError for other types, ValueError for other norms and axes out of range.
    """
    return _transform("dct", _cosines, x, type, n, axis, norm)


def idct(x: ArrayLike, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The inverse of `dct` along an axis.

    Args:
      x: real array; of a complex one both parts are transformed.
      type: 2 alone.
      n: the length: `x` is cut off or filled up with zeros. By default that of `x`.
      axis: the axis.
      norm: as for `dct`.

    Returns:
      an array of the dtype of `x`; integers, booleans and half precisions become float32.

    Raises NotImplementedError for other types, ValueError for other norms and axes out of range.
    """
    return _transform("idct", _from_cosines, x, type, n, axis, norm)


def dctn(x: ArrayLike, type: int = 2, s: Sequence[int] | None = None, axes: Sequence[int] | None = None,
         norm: str | None = None) -> Array:
    """The discrete cosine transform along several axes.

    Args:
      x: real array; of a complex one both parts are transformed.
      type: 2 alone.
      s: lengths along the axes.
      axes: by default the last `len(s)` ones, or all.
      norm: as for `dct`.

    Returns:
      an array of the dtype of `x`; integers, booleans and half precisions become float32.

    Raises NotImplementedError for other types, ValueError for other norms and for axes that repeat or are out of range.
    """
    return _along_several("dctn", _cosines, x, type, s, axes, norm)


def idctn(x: ArrayLike, type: int = 2, s: Sequence[int] | None = None, axes: Sequence[int] | None = None,
          norm: str | None = None) -> Array:
    """The inverse of `dctn`.

    Args:
      x: real array; of a complex one both parts are transformed.
      type: 2 alone.
      s: lengths along the axes.
      axes: by default the last `len(s)` ones, or all.
      norm: as for `dct`.

    Returns:
      an array of the dtype of `x`; integers, booleans and half precisions become float32.

    Raises NotImplementedError for other types, ValueError for other norms and for axes that repeat or are out of range.
    """
    return _along_several("idctn", _from_cosines, x, type, s, axes, norm)


def _checked(name: str, x: ArrayLike, type: int, norm: str | None) -> Array:
    if type != 2:
        raise NotImplementedError("Only DCT type 2 is implemented.")
    if norm not in (None, "backward", "ortho"):
        raise ValueError(f"jax.scipy.fft.{name}: norm={norm!r} is not implemented")
    (x,) = promote_dtypes_inexact(*arrays(name, x))
    x = asarray(x)
    return convert(x, np.float32) if x.dtype.itemsize < 4 else x


def _transform(name: str, apply: Callable[[Any, bool], Any], x: ArrayLike, type: int, n: int | None, axis: int,
               norm: str | None) -> Array:
    x = _checked(name, x, type, norm)
    (place,) = axis_indices((axis,), x.ndim)
    return _along(apply, x, n, place, norm == "ortho")


def _along_several(name: str, apply: Callable[[Any, bool], Any], x: ArrayLike, type: int, s: Sequence[int] | None,
                   axes: Sequence[int] | None, norm: str | None) -> Array:
    x = _checked(name, x, type, norm)
    lengths = None if s is None else [operator.index(n) for n in (s if np.ndim(s) else (s,))]  # type: ignore[arg-type]
    if lengths is not None and len(lengths) > x.ndim:
        raise ValueError(f"s must have at most x.ndim ({x.ndim}) elements, got {len(lengths)}")
    if axes is None:
        axes = range(x.ndim) if lengths is None else range(x.ndim - len(lengths), x.ndim)
    elif not np.ndim(axes):
        axes = (axes,)  # type: ignore[assignment]
    places = axis_indices(tuple(axes), x.ndim)
    if len(set(places)) != len(places):
        raise ValueError(f"repeated axis: {tuple(axes)}")
    for i, place in enumerate(places):
        x = _along(apply, x, lengths[i] if lengths is not None and i < len(lengths) else None, place, norm == "ortho")
    return x


def _along(apply: Callable[[Any, bool], Any], x: Any, n: int | None, axis: int, orthogonal: bool) -> Array:
    if x.dtype.kind == "c":
        return lax.complex(*[_along(apply, part, n, axis, orthogonal) for part in (lax.real(x), lax.imag(x))])
    x = moveaxis(x, axis, -1)
    if n is not None and n != x.shape[-1]:
        last = (0, operator.index(n) - x.shape[-1], 0)
        x = lax.pad(x, np.zeros((), x.dtype), [(0, 0, 0)] * (x.ndim - 1) + [last])
    return moveaxis(apply(x, orthogonal), -1, axis)


def _turns(n: int, dtype: Any) -> np.ndarray:
    """`exp(-πi·k / 2n)` up to the middle."""
    return np.exp(-0.5j * np.pi / n * np.arange(n // 2 + 1)).astype(np.result_type(dtype, np.complex64))


def _scales(n: int, dtype: Any) -> np.ndarray:
    """What makes `dct` orthogonal."""
    out = np.full(n, math.sqrt(0.5 / n), dtype)
    out[0] = math.sqrt(0.25 / n)
    return out


def _cosines(x: Any, orthogonal: bool) -> Any:
    n, last = x.shape[-1], x.ndim - 1
    if n == 0:
        raise ValueError("a cosine transform needs data: got an axis of length 0")
    ordered = lax.concatenate([x[..., ::2], flip(x[..., 1::2], -1)], last)
    spectrum = rfft(ordered)
    turned = lax.mul(spectrum, np.broadcast_to(2 * _turns(n, x.dtype), spectrum.shape))
    # the real parts are the first half, the imaginary ones the second, backwards
    rest = flip(lax.neg(lax.imag(turned))[..., 1:(n + 1) // 2], -1)
    out = lax.concatenate([lax.real(turned), rest], last)
    return lax.mul(out, np.broadcast_to(_scales(n, x.dtype), out.shape)) if orthogonal else out


def _from_cosines(x: Any, orthogonal: bool) -> Any:
    n, last = x.shape[-1], x.ndim - 1
    if n == 0:
        raise ValueError("a cosine transform needs data: got an axis of length 0")
    if orthogonal:
        x = lax.div(x, np.broadcast_to(_scales(n, x.dtype), x.shape))
    zero = np.zeros((*x.shape[:-1], 1), x.dtype)
    first = x[..., : n // 2 + 1]
    rest = lax.concatenate([zero, flip(x[..., n - n // 2:], -1)], last)
    values = lax.complex(first, lax.neg(rest))
    spectrum = lax.mul(values, np.broadcast_to(0.5 * np.conj(_turns(n, x.dtype)), values.shape))
    ordered = irfft(spectrum, n)
    even, odd = ordered[..., : (n + 1) // 2], flip(ordered[..., (n + 1) // 2:], -1)
    edges = [(0, 0, 0)] * last
    nothing = np.zeros((), x.dtype)
    return lax.add(lax.pad(even, nothing, [*edges, (0, 1 - n % 2, 1)]),
                   lax.pad(odd, nothing, [*edges, (1, n % 2, 1)])) if n > 1 else even
