"""Windows over an array: their shapes, what they read, and a batch of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from styrax.core.programs.attributes import i64_array
from styrax.transforms import batching

from ..indexing.dimension_numbers import shape_of
from ..shaping.padding import dilated, window_count
from .reduce import greatest, least

if TYPE_CHECKING:
    from styrax.core.programs.lowering import Builder


INT32 = np.dtype(np.int32)


def check_window(name: str, shape: Sequence[int], window: Sequence[int], strides: Sequence[int],
                 base_dilation: Sequence[int] | None, window_dilation: Sequence[int] | None) -> None:
    """Raises TypeError for windows that do not fit an array of `shape`."""
    def positive(what: str, values: Sequence[int]) -> None:
        if not all(v > 0 for v in values):
            raise TypeError(f"{name} {what} must have every element be strictly positive, got {tuple(values)}.")

    positive("window_dimensions", window)
    positive("window_strides", strides)
    if len(shape) != len(window):
        raise TypeError(f"{name} got the wrong number of window_dimensions for operand: got operand shape "
                        f"{tuple(shape)} with window_dimensions {tuple(window)}.")
    if len(strides) != len(window):
        raise TypeError(f"{name} got inconsistent window_strides and window_dimensions: got window_strides "
                        f"{tuple(strides)} and window_dimensions {tuple(window)}.")
    for what, dilation in (("base_dilation", base_dilation), ("window_dilation", window_dilation)):
        if dilation is None:
            continue
        if len(dilation) != len(window):
            raise TypeError(f"{name} got inconsistent {what} and window_dimensions: got {what} {tuple(dilation)} and "
                            f"window_dimensions {tuple(window)}.")
        positive(what, dilation)


def reduce_window_shape_tuple(operand_shape: Sequence[int], window_dimensions: Sequence[int],
                              window_strides: Sequence[int], padding: Sequence[tuple[int, int]],
                              base_dilation: Sequence[int] | None = None,
                              window_dilation: Sequence[int] | None = None) -> tuple[int, ...]:
    """How many windows there are along each dimension.

    Args:
      operand_shape: sizes of the dimensions that windows move over.
      window_dimensions, window_strides: sizes and strides of the window.
      padding: pairs (low, high).
      base_dilation, window_dilation: dilation of the operand and of the window; none by default.

    Returns:
      the numbers, 0 where the window is larger than the padded dimension.
    """
    ones = (1,) * len(operand_shape)
    return tuple(
        window_count(dilated(n, bd) + low + high, dilated(w, wd), s)
        for n, w, s, (low, high), bd, wd in zip(
            operand_shape, window_dimensions, window_strides, padding, base_dilation or ones,
            window_dilation or ones, strict=True))


def window_shape(name: str, operand: Any, window: Any, strides: Any, padding: Any, base_dilation: Any,
                 window_dilation: Any) -> tuple[int, ...]:
    check_window(name, operand.shape, window, strides, base_dilation, window_dilation)
    if len(padding) != len(window):
        raise TypeError(f"{name} got inconsistent padding and window_dimensions: got padding {tuple(padding)} and "
                        f"window_dimensions {tuple(window)}.")
    return reduce_window_shape_tuple(operand.shape, window, strides, padding, base_dilation, window_dilation)


def extreme(dtype: Any, which: str) -> Any:
    """The neutral element of max ("lowest") or min ("highest")."""
    return np.asarray(least(dtype) if which == "lowest" else greatest(dtype)).astype(dtype)


def read_window(b: Builder, x: Any, index: Sequence[Any], tap: Sequence[Any], *, window_strides: Sequence[int],
                padding: Sequence[tuple[int, int]], base_dilation: Sequence[int], window_dilation: Sequence[int]
                ) -> tuple[list[Any], Any]:
    """Where element `tap` of window `index` stands in `x`, for the loop builder.

    Returns the index and the condition that it is inside, None where it always is.
    """
    place, inside = [], None
    for d, size in enumerate(x.shape):
        low, high = padding[d]
        position = b.add(b.mul(index[d], b.index(window_strides[d])),
                         b.sub(b.mul(tap[d], b.index(window_dilation[d])), b.index(low)))
        spread = base_dilation[d]
        conditions = []
        if spread > 1:
            conditions.append(b.eq(b.floormod(position, b.index(spread)), b.index(0)))
            position = b.floordiv(position, b.index(spread))
        if low > 0:
            conditions.append(b.ge(position, b.index(0)))
        if high > 0 or spread > 1:
            conditions.append(b.lt(position, b.index(size)))
        for condition in conditions:
            inside = condition if inside is None else b.and_(inside, condition)
        place.append(position)
    return place, inside


def window_attributes(window: Sequence[int], strides: Sequence[int], padding: Sequence[tuple[int, int]],
                      base_dilation: Sequence[int] | None = None, window_dilation: Sequence[int] | None = None) -> str:
    rank = len(window)
    pads = f"dense<{[list(p) for p in padding]}> : tensor<{rank}x2xi64>" if rank else "dense<> : tensor<0x2xi64>"
    text = f"window_dimensions = {i64_array(window)}, window_strides = {i64_array(strides)}, padding = {pads}"
    if base_dilation is not None and window_dilation is not None:
        text += f", base_dilations = {i64_array(base_dilation)}, window_dilations = {i64_array(window_dilation)}"
    return text


def at_front(values: Sequence[Any], dims: Sequence[Any]) -> list[Any]:
    size = next(shape_of(x)[d] for x, d in zip(values, dims, strict=True) if d is not None)
    return batching.all_at_front(values, dims, size)


_ONE_IN_FRONT = {
    "window_dimensions": 1, "window_strides": 1, "padding": (0, 0), "base_dilation": 1, "window_dilation": 1,
}


def widened(params: dict[str, Any]) -> dict[str, Any]:
    """The parameters of windows that do not extend over a new first dimension."""
    return {name: (_ONE_IN_FRONT[name], *value) if name in _ONE_IN_FRONT else value for name, value in params.items()}
