"""Sizes of windows: padding names, dilation, and how many windows fit."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

from styrax.core.types.dims import larger, plain_size


class PaddingType(enum.Enum):
    """The paddings that have names."""

    VALID = 1
    SAME = 2
    SAME_LOWER = 3


def padtype_to_pads(in_shape: Sequence[int], window_shape: Sequence[int], window_strides: Sequence[int],
                    padding: str | PaddingType) -> list[tuple[int, int]]:
    """The explicit padding that a named one means.

    Args:
      in_shape: sizes of the dimensions that windows move over.
      window_shape: sizes of the window, dilation included.
      window_strides: strides of the window.
      padding: "VALID" (none), "SAME" (as many windows as `in_shape / strides`, an odd rest above) or
        "SAME_LOWER" (an odd rest below).

    Returns:
      pairs (low, high), one for each dimension.

    Raises:
      RuntimeError: for an unknown name.
      TypeError: for a value that is no name.
    """
    if isinstance(padding, str):
        try:
            padding = PaddingType[padding.upper()]
        except KeyError:
            raise RuntimeError("Unrecognized padding type: expected 'VALID', 'SAME', or 'SAME_LOWER', got "
                               f"{padding}.") from None
    if not isinstance(padding, PaddingType):
        raise TypeError(f"Unknown padding type: {padding}.")
    if padding == PaddingType.VALID:
        return [(0, 0)] * len(in_shape)
    pads = []
    for size, window, stride in zip(in_shape, window_shape, window_strides, strict=True):
        windows = -(-size // stride) if stride else 0
        total = larger((windows - 1) * stride + window - size, 0)
        half = total // 2
        low = half if padding == PaddingType.SAME else total - half
        pads.append((plain_size(low), plain_size(total - low)))
    return pads


def dilated(size: Any, dilation: int) -> Any:
    """The size of a dimension with `dilation - 1` holes between elements."""
    return 0 if size == 0 else (size - 1) * dilation + 1


def window_count(size: Any, window: Any, stride: int) -> Any:
    """How many windows fit into a dimension; both sizes include padding and dilation."""
    return larger((size - window) // stride + 1, 0) if stride else 0
