"""Elements kept between bounds."""

from __future__ import annotations

from typing import Any

import numpy as np

from styrax import lax
from styrax.core.arrays.array import Array
from styrax.core.programs.named import named
from styrax.core.types import dtypes
from styrax.core.types.typing import ArrayLike
from styrax.transforms.fused import fused
from styrax.transforms.jit import jit_for_all_shapes as jit

from .conversion import asarray
from .promotion import check_arraylike, dtype_of, promote_args, unwrap


@fused
def clip(arr: ArrayLike | None = None, /, min: ArrayLike | None = None, max: ArrayLike | None = None) -> Array:
    """The elements of `arr` kept between `min` and `max`.

    min(max(arr, min), max): where the bounds cross, `max` wins. NaN stays NaN, and a bound of NaN gives NaN. The
    derivative is 1 inside, 0 outside, and 1/2 at a bound.

    Args:
      arr: real numbers.
      min, max: the bounds, which broadcast with `arr`; None for no bound.

    Returns:
      an array of the shape that all broadcast to, of the dtype that they promote to.

    Raises:
      ValueError: for complex arguments, and without an `arr`.

    Example:
      >>> import styrax.numpy as jnp
      >>> jnp.clip(jnp.arange(5), 1, 3)
      Array([1, 1, 2, 3, 3], dtype=int32)
    """
    if arr is None:
        raise ValueError("No input was provided to the clip function.")
    _check_clip(arr, min, max)
    return _clip(arr, min, max)


@fused
def clip_between(arr: Any, min: Any = None, max: Any = None) -> Any:
    """`arr.clip(min, max)`."""
    _check_clip(arr, min, max)
    return _clip(arr, min=min, max=max)


def _check_clip(arr: Any, min: Any, max: Any) -> None:
    check_arraylike("clip", arr)
    for name, bound in (("maximum", min), ("minimum", max)):
        if bound is not None:
            check_arraylike(name, bound)
    if any(x is not None and dtypes.issubdtype(dtype_of(unwrap(x)), np.complexfloating) for x in (arr, min, max)):
        raise ValueError(
            "Clip received a complex value either through the input or the min/max keywords. Complex values have no "
            "ordering and cannot be clipped. Please convert to a real value or array by taking the real or imaginary "
            "components via jax.numpy.real/imag respectively.")


def _clip_entry(arr: Any, min: Any = None, max: Any = None) -> Any:
    if min is not None:
        arr = lax.max(*promote_args("maximum", min, arr))
    if max is not None:
        arr = lax.min(*promote_args("minimum", max, arr))
    return asarray(arr)


_clip = jit(named(_clip_entry, "clip", ""))
