"""How the elements of an array lie in memory: row after row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from .devices import Sharding


class AutoLayout:
    """The type of `Layout.AUTO`: the compiler may choose."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "AUTO"


class Layout:
    """The order of an array's dimensions in memory, from the slowest to the fastest."""

    __slots__ = ("major_to_minor", "sub_byte_element_size_in_bits", "tiling")
    AUTO: ClassVar[AutoLayout] = AutoLayout()

    def __init__(self, major_to_minor: tuple[int, ...], tiling: Any = None, sub_byte_element_size_in_bits: int = 0):
        self.major_to_minor = tuple(major_to_minor)
        self.tiling = tiling
        self.sub_byte_element_size_in_bits = sub_byte_element_size_in_bits

    def _key(self) -> tuple:
        return self.major_to_minor, self.tiling, self.sub_byte_element_size_in_bits

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Layout) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return (f"Layout(major_to_minor={self.major_to_minor}, tiling={self.tiling}, "
                f"sub_byte_element_size_in_bits={self.sub_byte_element_size_in_bits})")


class Format:
    """A layout and a sharding.

    Raises:
      TypeError: the layout is neither None, `Layout.AUTO` nor a `Layout`, or the sharding is no `Sharding`.
      ValueError: a `Layout` without a sharding.
    """

    __slots__ = ("layout", "sharding")

    def __init__(self, layout: Layout | AutoLayout | None = None, sharding: Sharding | None = None):
        if isinstance(layout, Layout) and sharding is None:
            raise ValueError(f"Sharding has to be concrete when layout is of type {type(layout)}. Please pass a "
                             "`jax.sharding.NamedSharding` or `jax.sharding.SingleDeviceSharding` to the sharding "
                             f"argument. Got sharding {sharding}")
        if layout is not None and not isinstance(layout, (Layout, AutoLayout)):
            raise TypeError("Invalid value received for the layout argument. Expected values are `None`, `Layout.AUTO` "
                            f"or an instance of `Layout`. Got {layout} of type {type(layout)}")
        if sharding is not None and not isinstance(sharding, Sharding):
            raise TypeError("Invalid value received for the sharding argument. Expected values are `None` or an "
                            f"instance of `jax.Sharding`. Got {sharding} of type {type(sharding)}")
        self.layout = layout
        self.sharding = sharding

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Format) and (self.layout, self.sharding) == (other.layout, other.sharding)

    def __hash__(self) -> int:
        return hash((self.layout, self.sharding))

    def __repr__(self) -> str:
        return f"Format(layout={self.layout}, sharding={self.sharding})"


def check_rank(what: str, given: Any, shape: Sequence[Any]) -> None:
    """Raises ValueError for a layout, or a format's, of another number of dimensions; `what` names what has it."""
    layout = given.layout if isinstance(given, Format) else given
    if isinstance(layout, Layout) and len(layout.major_to_minor) != len(shape):
        raise ValueError(f"{what} is incompatible with its layout annotation {layout}: Length of major_to_minor and "
                         f"the rank of the value should match. Got major_to_minor={layout.major_to_minor} and "
                         f"shape={tuple(shape)}")
