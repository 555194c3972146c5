"""Convolution and correlation of vectors."""

from __future__ import annotations

from functools import partial
from typing import Any, Protocol

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.programs.named import named
from styrax.core.types.typing import ArrayLike, DTypeLike
from styrax.transforms.jit import jit_for_all_shapes as jit

from .arrangements import flip
from .complex_parts import conj
from .conversion import asarray
from .promotion import arrays, promote_dtypes, promote_dtypes_inexact, user_dtype


@partial(jit, static_argnames=("mode", "op", "precision", "preferred_element_type"))
def _conv(x: Any, y: Any, mode: str, op: str, precision: Any, preferred_element_type: Any) -> Any:
    if x.ndim != 1 or y.ndim != 1:
        raise ValueError(f"{op}() only support 1-dimensional inputs.")
    preferred = None if preferred_element_type is None else user_dtype(preferred_element_type, op)
    x, y = (promote_dtypes_inexact if preferred is None else promote_dtypes)(x, y)
    if x.shape[0] == 0 or y.shape[0] == 0:
        raise ValueError(f"{op}: inputs cannot be empty, got shapes {x.shape} and {y.shape}.")
    turned = False
    if op == "correlate":
        y = conj(y)
        if x.shape[0] < y.shape[0]:
            # Exchanged operands give the correlation backwards.
            x, y, turned = y, x, True
    else:
        if x.shape[0] < y.shape[0]:
            x, y = y, x
        y = flip(y)
    n = y.shape[0]
    if mode == "valid":
        padding = [(0, 0)]
    elif mode == "same":
        padding = [(n // 2, n - n // 2 - 1)]
    elif mode == "full":
        padding = [(n - 1, n - 1)]
    else:
        raise ValueError("mode must be one of ['full', 'same', 'valid']")
    out = lax.conv_general_dilated(lax.expand_dims(x, (0, 1)), lax.expand_dims(y, (0, 1)), (1,), padding,
                                   precision=precision, preferred_element_type=preferred)
    out = lax.squeeze(out, (0, 1))
    if turned:
        out = flip(out)
    return out


class Convolution(Protocol):
    """`convolve` and `correlate`."""

    def __call__(self, a: ArrayLike, v: ArrayLike, mode: str = ..., *, precision: lax.PrecisionLike = None,
                 preferred_element_type: DTypeLike | None = None) -> Array: ...


def _function(op: str, doc: str, default: str) -> Convolution:
    def function(a: ArrayLike, v: ArrayLike, mode: str = default, *, precision: lax.PrecisionLike = None,
                 preferred_element_type: DTypeLike | None = None) -> Array:
        a, v = (asarray(x) for x in arrays(op, a, v))
        return _conv(a, v, mode=mode, op=op, precision=precision, preferred_element_type=preferred_element_type)

    return jit(named(function, op, doc), static_argnames=("mode", "precision", "preferred_element_type"))


_DOC = """The {} of two vectors: element k is the sum over i of {}.

    Args:
      a, v: vectors, not empty; integers are taken as floats unless there is a `preferred_element_type`.
      mode: "full" (all k where they overlap), "same" (as many of them, in the middle, as the longer one has
        elements) or "valid" (those where they overlap wholly).
      precision: as for `lax.conv_general_dilated`.
      preferred_element_type: dtype to add up in and to return.

    Returns:
      a vector of m + n - 1, max(m, n) or max(m, n) - min(m, n) + 1 elements by the mode, for m and n ones.

    Raises:
      ValueError: for empty arrays, other ranks and other modes.
    """
convolve = _function("convolve", _DOC.format("convolution", "a[i] · v[k - i]"), "full")
correlate = _function("correlate", _DOC.format("correlation", "a[i + k] · conj(v[i])"), "valid")
