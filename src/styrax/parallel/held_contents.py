"""References as arguments of maps over devices: each device sees its part as a reference of its own.

What a reference holds goes in, cut into the devices' blocks, and what these hold in the end comes out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.tracing.trace import get_aval
from ..core.types.avals import AbstractRef
from ..core.types.typing import AxisName
from ..transforms.aliasing import check_arguments
from ..transforms.flattening import FlatFunction
from ..transforms.refs import new_ref

Blocks = tuple[Any, tuple[AxisName, ...]]  # of all devices, with the axes along which these vary in front


class Contents:
    """The references among the arguments of a flat function.

    Raises:
      ValueError: one is passed twice.
    """

    __slots__ = ("blocks", "refs")

    def __init__(self, flat: FlatFunction, leaves: Sequence[Any]):
        self.refs = {i: x for i, x in enumerate(leaves) if isinstance(get_aval(x), AbstractRef)}
        self.blocks: dict[int, Blocks] = {}
        if len(self.refs) > 1:
            check_arguments(leaves, (), "shard_map", flat.info([get_aval(x) for x in leaves]))

    def read(self, leaves: Sequence[Any]) -> list[Any]:
        """The arguments, with what references hold in their places."""
        return [x[...] if i in self.refs else x for i, x in enumerate(leaves)]

    def referred(self, blocks: Sequence[Blocks]) -> list[Blocks]:
        """The arguments' blocks, with references to those of references in their places."""
        self.blocks = {i: (new_ref(blocks[i][0]), blocks[i][1]) for i in self.refs}
        return [self.blocks.get(i, b) for i, b in enumerate(blocks)]

    def in_the_end(self) -> list[tuple[int, Blocks]]:
        """The blocks that devices hold in the end, by arguments."""
        return [(i, (ref[...], varies)) for i, (ref, varies) in self.blocks.items()]

    def write(self, contents: Sequence[Any]) -> None:
        """Has the references hold this."""
        for ref, x in zip(self.refs.values(), contents, strict=True):
            ref[...] = x


__all__ = ["Contents"]
