"""The discrete Fourier transform: its primitive and its rules."""

from __future__ import annotations

import enum
import math
import operator
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from styrax.core.arrays.array import Array
from styrax.core.programs import rules
from styrax.core.programs.primitive import Primitive
from styrax.core.tracing.trace import get_aval
from styrax.core.types import dtypes
from styrax.core.types.avals import ShapedArray
from styrax.core.types.typing import ArrayLike
from styrax.transforms import ad, batching
from styrax.transforms.jit import jit_for_all_shapes as jit

from .. import factor_rules, sharding_rules
from ..casting import convert_element_type
from ..elementwise.arithmetic import mul
from ..elementwise.functions import conj
from .lines import fft_loops

if TYPE_CHECKING:
    from styrax.core.programs.lowering import Builder, Value


class FftType(enum.IntEnum):
    """Which discrete Fourier transform to compute."""

    FFT = 0  # complex to complex, forward
    IFFT = 1  # complex to complex, inverse
    RFFT = 2  # real to complex, forward: the half that determines the rest
    IRFFT = 3  # complex to real, inverse of that


def _type_of(fft_type: FftType | str) -> FftType:
    if isinstance(fft_type, str):
        try:
            return FftType[fft_type.upper()]
        except KeyError:
            raise ValueError(f"Unknown FFT type '{fft_type}'") from None
    if isinstance(fft_type, FftType):
        return fft_type
    raise TypeError(f"Unknown FFT type value '{fft_type}'")


@partial(jit, static_argnums=(1, 2))
def fft(x: ArrayLike, fft_type: FftType | str, fft_lengths: Sequence[int]) -> Array:
    """Discrete Fourier transforms along the last axes.

    A forward transform is `X[k] = Σ x[j] exp(-2πi·jk/n)`, an inverse one has the other sign and is divided by `n`.

    Args:
      x: array whose last `len(fft_lengths)` axes are transformed. Real, for "RFFT"; otherwise it becomes complex.
        For "IRFFT" the last axis holds the `n // 2 + 1` elements that determine the rest.
      fft_type: a member of `FftType` or its name: "FFT", "IFFT", "RFFT", "IRFFT".
      fft_lengths: lengths of the transforms, at most three, of the real data for "RFFT" and "IRFFT".

    Returns:
      an array like `x`: complex, with a last axis of `n // 2 + 1` for "RFFT"; real, with one of `n` for "IRFFT".

    Raises:
      ValueError: for lengths that do not fit `x`, names that are none, and dtypes without transforms.
      TypeError: for an `fft_type` that is neither.
    """
    kind = _type_of(fft_type)
    lengths = tuple(map(operator.index, fft_lengths))
    dtype = get_aval(x).dtype
    if kind is FftType.RFFT:
        if dtypes.issubdtype(dtype, np.complexfloating):
            raise ValueError("only real valued inputs supported for rfft")
        wanted = dtypes.to_inexact_dtype(dtype)
    else:
        wanted = _complex_of(dtypes.to_inexact_dtype(dtype))
    x = convert_element_type(x, wanted)
    if not lengths:
        return x
    return fft_p.bind(x, fft_type=kind, fft_lengths=lengths)


def _complex_of(dtype: Any) -> Any:
    if dtypes.issubdtype(dtype, np.complexfloating):
        return dtype
    return np.dtype(np.complex128 if dtype == np.float64 else np.complex64)


fft_p = Primitive("fft")
fft_p.declare(nan=True, sharding=sharding_rules.same, factors=factor_rules.fourier)


@fft_p.def_abstract_eval
def _fft_abstract(x: ShapedArray, *, fft_type: FftType, fft_lengths: tuple[int, ...]) -> ShapedArray:
    kind, count = FftType(fft_type).name, len(fft_lengths)
    real = fft_type == FftType.RFFT
    if x.dtype not in ((np.float32, np.float64) if real else (np.complex64, np.complex128)):
        raise ValueError(f"{kind} input must be {'float32 or float64' if real else 'complex64 or complex128'}, got "
                         f"{dtypes.dtype_name(x.dtype)}")
    if count > len(x.shape):
        raise ValueError(f"FFT input shape {x.shape} must have at least as many input dimensions as fft_lengths "
                         f"{fft_lengths}.")
    if count > 3:
        raise ValueError(f"fft has at most three lengths, got {fft_lengths}")
    if any(n < 0 for n in fft_lengths):
        raise ValueError(f"fft has no negative lengths, got {fft_lengths}")
    batch = x.shape[:len(x.shape) - count]
    minor = tuple(map(operator.index, x.shape[len(batch):]))
    *lead, last = fft_lengths
    half = last // 2 + 1
    if fft_type == FftType.IRFFT:
        if minor[:-1] != tuple(lead):
            raise ValueError(f"IRFFT input shape {x.shape} minor dimensions must be equal to all except the last "
                             f"fft_length, got {fft_lengths=}")
        if minor[-1] != half and last:
            raise ValueError(f"IRFFT input shape {x.shape} must have {half} elements along its last axis for "
                             f"fft_lengths {fft_lengths}")
        return ShapedArray((*batch, *fft_lengths), np.dtype(f"float{x.dtype.itemsize * 4}"))
    if minor != tuple(fft_lengths):
        raise ValueError(f"{'RFFT' if real else 'FFT'} input shape {x.shape} minor dimensions must be equal to "
                         f"fft_lengths {fft_lengths}")
    if real:
        return ShapedArray((*batch, *lead, half), np.dtype(f"complex{x.dtype.itemsize * 16}"))
    return ShapedArray((*batch, *fft_lengths), x.dtype)


def _weights(n: int, dtype: Any) -> np.ndarray:
    """How often each element of a half spectrum stands in the whole one."""
    out = np.full(n // 2 + 1, 2, dtype)
    out[0] = 1
    if n % 2 == 0:
        out[-1] = 1
    return out


def _transpose(t: Any, x: Any, *, fft_type: FftType, fft_lengths: tuple[int, ...]) -> list[Any]:
    size = math.prod(fft_lengths)
    aval = get_aval(t)
    if fft_type == FftType.RFFT:
        # of the whole spectrum this is the half that counts once or twice
        part = mul(conj(t), np.broadcast_to(1 / _weights(fft_lengths[-1], aval.dtype), aval.shape))
        out = fft(part, FftType.IRFFT, fft_lengths)
        return [mul(out, np.full(out.shape, size, out.dtype))]
    if fft_type == FftType.IRFFT:
        out = fft(t, FftType.RFFT, fft_lengths)
        dtype = get_aval(out).dtype
        scale = _weights(fft_lengths[-1], dtype) / dtype.type(size)
        return [conj(mul(out, np.broadcast_to(scale, out.shape)))]
    return [fft(t, fft_type, fft_lengths)]


def _batch(args: Sequence[Any], dims: Sequence[Any], **params: Any) -> tuple[Any, int]:
    return fft_p.bind(batching.bdim_at_front(args[0], dims[0], get_aval(args[0]).shape[dims[0]]), **params), 0


def _check_length(fft_type: FftType, fft_lengths: tuple[int, ...]) -> None:
    """ValueError for what has a shape, and so can be traced, but no values."""
    if fft_type == FftType.RFFT and fft_lengths[-1] == 0:
        raise ValueError(f"RFFT has no transform of length zero, got fft_lengths {fft_lengths}")


def _loops(b: Builder, x: Value, **params: Any) -> Value:
    _check_length(**params)
    return fft_loops(b, x, **params)


def _stablehlo(m: Any, x: Any, *, fft_type: FftType, fft_lengths: tuple[int, ...]) -> Any:
    _check_length(fft_type, fft_lengths)
    if math.prod(x.aval.shape) == 0 or math.prod(m.avals_out[0].shape) == 0:
        return m.full(0, m.avals_out[0])
    lengths = ", ".join(map(str, fft_lengths))
    return m.op1("stablehlo.fft", [x], m.avals_out[0],
                 f"fft_type = #stablehlo<fft_type {FftType(fft_type).name}>, fft_length = array<i64: {lengths}>")


ad.deflinear2(fft_p, _transpose)
rules.batchers[fft_p] = _batch
rules.stablehlos[fft_p] = _stablehlo
rules.loops[fft_p] = _loops
