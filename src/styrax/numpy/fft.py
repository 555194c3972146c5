"""Discrete Fourier transforms."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.programs.named import named
from styrax.core.tracing.trace import concrete_or_error
from styrax.core.types.typing import ArrayLike, Axis, DeviceLike, DTypeLike, Shape

from .binary import divide, multiply
from .complex_parts import conj
from .conversion import asarray, place
from .indexing import gather_elements
from .promotion import arrays, axis_indices, check_arraylike, convert, default_float, to_complex, to_inexact, user_dtype
from .shaping import moveaxis, roll

FFT, IFFT, RFFT, IRFFT = lax.FftType.FFT, lax.FftType.IFFT, lax.FftType.RFFT, lax.FftType.IRFFT


def _transform(name: str, kind: Any, a: Any, s: Shape | None, axes: Any, norm: str | None) -> Any:
    full = f"jax.numpy.fft.{name}"
    (a,) = arrays(full, a)
    a = asarray(a)
    if s is not None:
        s = tuple(map(operator.index, s))
        if any(n < 0 for n in s):
            raise ValueError(f"Shape should be non-negative, got {s}.")
    if s is not None and axes is not None and len(s) != len(axes):
        raise ValueError(f"{full} does not support s with a different number of entries than axes")
    if axes is None:
        axes = tuple(range(a.ndim)) if s is None else tuple(range(a.ndim - len(s), a.ndim))
    axes = tuple(map(operator.index, axes))
    if len(set(axes)) != len(axes):
        raise ValueError(f"{full} does not support repeated axes. Got axes {axes}.")
    if any(not -a.ndim <= i < a.ndim for i in axes):
        raise ValueError(f"{full} only supports axes in range(-{a.ndim}, {a.ndim}) , got axes {axes}.")
    if norm not in (None, "backward", "ortho", "forward"):
        raise ValueError(f'Invalid norm value {norm}; should be "backward", "ortho" or "forward".')
    places = axis_indices(axes, a.ndim)
    # The primitive transforms the last axes.
    last = tuple(range(a.ndim - len(axes), a.ndim))
    moved = places != last
    if moved:
        a = moveaxis(a, places, last)
    real_input, real_output = kind == RFFT, kind == IRFFT
    if real_input and np.issubdtype(a.dtype, np.complexfloating):
        raise TypeError(f"only real valued inputs supported for {name}")
    if s is None:
        lengths = tuple(a.shape[i] for i in last)
        if real_output:
            lengths = (*lengths[:-1], max(0, 2 * (lengths[-1] - 1)))
    else:
        lengths = s
        shape = list(lengths)
        if real_output:
            shape[-1] = shape[-1] // 2 + 1
        a = _fitted(a, shape)
    if not lengths:
        return convert(a, to_complex(to_inexact(a.dtype)))
    if any(n == 0 for n in lengths):
        raise ValueError(f"{full}: invalid number of data points (0) specified.")
    if not real_input:
        a = convert(a, to_complex(to_inexact(a.dtype)))
    else:
        a = convert(a, to_inexact(a.dtype))
    out = lax.fft(a, kind, lengths)
    factor = _scale(norm, lengths, kind in (FFT, RFFT))
    if factor is not None:
        out = lax.mul(out, convert(factor, out.dtype))
    return moveaxis(out, last, places) if moved else out


def _scale(norm: str | None, lengths: tuple, forward: bool) -> float | None:
    """What a transform is multiplied by beyond the primitive, which divides inverse ones by their length."""
    size = math.prod(lengths)
    if norm in (None, "backward"):
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


def _one_axis(name: str, kind: Any, a: Any, n: int | None, axis: Any, norm: str | None) -> Any:
    axis = -1 if axis is None else axis
    if isinstance(axis, (list, tuple)) or isinstance(n, (list, tuple)):
        raise ValueError(f"jax.numpy.fft.{name} does not support multiple axes or lengths. Please use "
                         f"jax.numpy.fft.{name}n. Got axis = {axis!r}, n = {n!r}.")
    return _transform(name, kind, a, None if n is None else [n], [axis], norm)


_DOC_1 = """The {} of `a` along an axis.

    `n` is the length{}: `a` is cut off or filled up with zeros. `norm` says which transforms are scaled:
    "backward" (inverse ones, by 1/n), "ortho" (both, by 1/sqrt(n)) or "forward". Raises ValueError for
    other values and for axes out of range."""


class Transform(Protocol):
    """A transform along one axis."""

    def __call__(self, a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array: ...


def _make_one(name: str, kind: Any, text: str, length: str = "") -> Transform:
    def function(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
        return _one_axis(name, kind, a, n, axis, norm)

    return named(function, name, _DOC_1.format(text, length))


fft = _make_one("fft", FFT, "discrete Fourier transform")
ifft = _make_one("ifft", IFFT, "inverse discrete Fourier transform")
rfft = _make_one("rfft", RFFT, "first half of the discrete Fourier transform of real data")
irfft = _make_one("irfft", IRFFT, "real inverse of `rfft`", " of the result")

_DOC_N = """The {} of `a` along several axes: `axes`, by default {}.

    `s` are the lengths along them; `norm` is as for `fft`. Raises ValueError for axes that repeat or are out
    of range."""


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

    return named(function, name, _DOC_N.format(text, "the last two" if two else "all"))


fftn = _make_n("fftn", FFT, "discrete Fourier transform", False)
ifftn = _make_n("ifftn", IFFT, "inverse discrete Fourier transform", False)
rfftn = _make_n("rfftn", RFFT, "first half of the discrete Fourier transform of real data", False)
irfftn = _make_n("irfftn", IRFFT, "real inverse of `rfftn`", False)
fft2 = _make_n("fft2", FFT, "discrete Fourier transform", True)
ifft2 = _make_n("ifft2", IFFT, "inverse discrete Fourier transform", True)
rfft2 = _make_n("rfft2", RFFT, "first half of the discrete Fourier transform of real data", True)
irfft2 = _make_n("irfft2", IRFFT, "real inverse of `rfft2`", True)


def hfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The real transform of data with Hermitian symmetry, given by its first half. Arguments as for `fft`."""
    (a,) = arrays("jax.numpy.fft.hfft", a)
    out = irfft(conj(asarray(a)), n=n, axis=axis, norm=None)
    length = out.shape[axis]
    if norm in (None, "backward"):
        return multiply(out, length)
    if norm == "ortho":
        return multiply(out, math.sqrt(length))
    if norm == "forward":
        return out
    raise ValueError(f'Invalid norm value {norm}; should be "backward", "ortho" or "forward".')


def ihfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The inverse of `hfft`. Arguments as for `fft`."""
    (a,) = arrays("jax.numpy.fft.ihfft", a)
    a = asarray(a)
    length = a.shape[axis] if n is None else n
    out = conj(rfft(a, n=n, axis=axis, norm=None))
    if norm in (None, "backward"):
        return divide(out, length)
    if norm == "ortho":
        return divide(out, math.sqrt(length))
    if norm == "forward":
        return out
    raise ValueError(f'Invalid norm value {norm}; should be "backward", "ortho" or "forward".')


def _frequencies(n: Any, d: Any, dtype: Any, name: str) -> tuple[int, Any, Any]:
    n = operator.index(concrete_or_error(None, n, f"The error arose in jnp.fft.{name} argument `n`"))
    if isinstance(d, (list, tuple)):
        raise ValueError(f"The d argument of jax.numpy.fft.{name} only takes a single value. Got d = {list(d)}.")
    return n, d, default_float() if dtype is None else user_dtype(dtype, name)


def fftfreq(n: int, d: ArrayLike = 1.0, *, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> Array:
    """The frequencies of a transform of length n of samples with spacing d."""
    from .binary import remainder, subtract

    n, d, kind = _frequencies(n, d, dtype, "fftfreq")
    half = n // 2
    i = lax.iota(kind, n)
    numbers = subtract(remainder(lax.add(i, convert(half, kind)), n), half)
    return place(divide(numbers, convert(n * d if not hasattr(d, "aval") else multiply(d, n), kind)), device)


def rfftfreq(n: int, d: ArrayLike = 1.0, *, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> Array:
    """The frequencies of an `rfft` of length n of samples with spacing d."""
    n, d, kind = _frequencies(n, d, dtype, "rfftfreq")
    return place(divide(lax.iota(kind, n // 2 + 1), convert(n * d if not hasattr(d, "aval") else multiply(d, n), kind)),
                 device)


def _shifted(x: Any, axes: Any, name: str, shift: Callable[[int], int]) -> Any:
    check_arraylike(name, x)
    x = asarray(x)
    axes = tuple(range(x.ndim)) if axes is None else (axes,) if isinstance(axes, int) else tuple(axes)
    return roll(x, tuple(shift(x.shape[i]) for i in axes), axes)


def fftshift(x: ArrayLike, axes: Axis = None) -> Array:
    """`x` with frequency zero moved to the middle of each axis."""
    return _shifted(x, axes, "fftshift", lambda n: n // 2)


def ifftshift(x: ArrayLike, axes: Axis = None) -> Array:
    """The inverse of `fftshift`."""
    return _shifted(x, axes, "ifftshift", lambda n: -(n // 2))
