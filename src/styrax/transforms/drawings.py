"""Which device holds what of an array, drawn as a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..core.arrays.array import Array
from ..core.arrays.devices import Sharding
from ..core.arrays.shardings import NamedSharding
from ..core.types.typing import PyTree
from .sharding_inspection import inspect_array_sharding


def visualize_sharding(shape: Sequence[int], sharding: Sharding, *, use_color: bool = True, scale: float = 1.0,
                       min_width: int = 9, max_width: int = 80, color_map: Callable[..., object] | None = None) -> None:
    """Prints which device holds what of an array.

    Args:
      shape: the shape of the array, of one or two dimensions.
      sharding: how it is spread.
      use_color, color_map: ignored: the table is plain text.
      scale: how much larger it is drawn than ten lines, as far as the widths allow.
      min_width, max_width: bounds of the width of a part.

    Raises:
      ValueError: another number of dimensions.
    """
    if len(shape) not in (1, 2):
        raise ValueError("`visualize_sharding` only works for shapes with 1 and 2 dimensions.")
    rows, columns = (1, shape[0]) if len(shape) == 1 else shape
    parts: dict[tuple[int, int], list[int]] = {}
    places = (sharding.devices_indices_map(tuple(shape)) if isinstance(sharding, NamedSharding) else
              dict.fromkeys(sharding.device_set, (slice(None),) * len(shape)))
    for device, index in places.items():
        *above, beside = index
        parts.setdefault((above[0].indices(rows)[0] if above else 0, beside.indices(columns)[0]), []).append(device.id)
    platform = next(iter(sharding.device_set)).platform.upper()
    cells = {place: f"{platform} {','.join(map(str, sorted(ids)))}" for place, ids in parts.items()}
    tops, lefts = (sorted({place[axis] for place in cells}) for axis in (0, 1))
    tall = int(LINES * scale)  # of the whole, which is as wide as its shape says, where a letter is 2.5 times as tall
    broad = int(tall * (shape[1] / shape[0] if len(shape) == 2 else 1 / max(shape[0], 1)))
    wide = int(np.clip(int(broad * 2.5 / len(lefts)), min_width, max_width)) - 2
    margin = {place: max(wide - len(text), 0) for place, text in cells.items()}  # which is kept where there is no room
    wide = max(wide, *map(len, cells.values()))
    lines = max(int(tall / len(tops)) - 1, 1) if len(shape) == 2 else 1
    widths = _fitted([wide] * len(lefts))
    if all(w <= margin[top, left] for top in tops for left, w in zip(lefts, widths, strict=True)):
        cells, lines = dict.fromkeys(cells, ""), max(lines - 1, 1)

    def rule(left: str, middle: str, right: str) -> str:
        return left + middle.join("─" * w for w in widths) + right

    print(rule("┌", "┬", "┐"))
    for n, top in enumerate(tops):
        if n:
            print(rule("├", "┼", "┤"))
        for line in range(lines):
            texts = [cells.get((top, left), "") if line == (lines - 1) // 2 else "" for left in lefts]
            print("│" + "│".join(text.center(w) for text, w in zip(texts, widths, strict=True)) + "│")
    print(rule("└", "┴", "┘"))


LINES, COLUMNS = 10, 80  # the height of a drawing, and the widest that it may be


def _fitted(widths: list[int]) -> list[int]:
    """The widths of columns, made smaller where the whole does not fit."""
    excess = sum(widths) + len(widths) + 1 - COLUMNS
    for i in range(len(widths)):
        if excess > 0:
            less = round(excess / (len(widths) - i))
            widths[i], excess = max(widths[i] - less, 1), excess - less
    return widths


def visualize_array_sharding(arr: Array, **kwargs: PyTree) -> None:
    """Prints which device holds what of an array; inside `jit`, when the program runs. See `visualize_sharding`."""
    shape = arr.shape
    inspect_array_sharding(arr, callback=lambda sharding: visualize_sharding(shape, sharding, **kwargs))


__all__ = ["visualize_array_sharding", "visualize_sharding"]
