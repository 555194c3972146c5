"""Which device holds what of an array, drawn as a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..core.arrays.array import Array
from ..core.arrays.devices import Sharding
from ..core.arrays.shardings import NamedSharding
from ..core.types.typing import PyTree
from .debugging import inspect_array_sharding


def visualize_sharding(shape: Sequence[int], sharding: Sharding, *, use_color: bool = True, scale: float = 1.0,
                       min_width: int = 9, max_width: int = 80, color_map: Callable[..., object] | None = None) -> None:
    """Prints which device holds what of an array.

    Args:
      shape: the shape of the array, of one or two dimensions.
      sharding: how it is spread.
      use_color, color_map: ignored: the table is plain text.
      scale: how many characters wide an element is drawn, as far as the widths allow.
      min_width, max_width: bounds of the width of a part.

    Raises:
      ValueError: another number of dimensions.
    """
    if len(shape) not in (1, 2):
        raise ValueError("`visualize_sharding` only works for shapes with 1 and 2 dimensions.")
    rows, columns = (1, shape[0]) if len(shape) == 1 else shape
    parts: dict[tuple[int, int], list[int]] = {}
    width = columns
    places = (sharding.devices_indices_map(tuple(shape)) if isinstance(sharding, NamedSharding) else
              dict.fromkeys(sharding.device_set, (slice(None),) * len(shape)))
    for device, index in places.items():
        *above, beside = index
        begin, end, _ = beside.indices(columns)
        width = end - begin
        parts.setdefault((above[0].indices(rows)[0] if above else 0, begin), []).append(device.id)
    platform = next(iter(sharding.device_set)).platform.upper()
    cells = {place: f"{platform} {','.join(map(str, sorted(ids)))}" for place, ids in parts.items()}
    wide = int(np.clip(scale * width, min_width, max_width))
    wide = max(wide, *(len(text) + 2 for text in cells.values()))
    tops, lefts = (sorted({place[axis] for place in cells}) for axis in (0, 1))
    bar = "─" * wide
    print("┌" + "┬".join([bar] * len(lefts)) + "┐")
    for n, top in enumerate(tops):
        if n:
            print("├" + "┼".join([bar] * len(lefts)) + "┤")
        print("│" + "│".join(cells.get((top, left), "").center(wide) for left in lefts) + "│")
    print("└" + "┴".join([bar] * len(lefts)) + "┘")


def visualize_array_sharding(arr: Array, **kwargs: PyTree) -> None:
    """Prints which device holds what of an array; inside `jit`, when the program runs. See `visualize_sharding`."""
    shape = arr.shape
    inspect_array_sharding(arr, callback=lambda sharding: visualize_sharding(shape, sharding, **kwargs))


__all__ = ["visualize_array_sharding", "visualize_sharding"]
