"""What is known of a value inside a `shard_map`: along which axes the devices' values vary, or are parts of sums."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Self

from .typing import AxisName


def in_order(axes: Iterable[AxisName]) -> tuple[AxisName, ...]:
    """Axes, of which a set is known, in an order that is always the same."""
    return tuple(sorted(axes, key=str))


class Sums(NamedTuple):
    """Axes along which the devices' values are still to be summed, and along which they were summed."""

    unreduced: frozenset[AxisName] = frozenset()
    reduced: frozenset[AxisName] = frozenset()


class ManualAxisType:
    """Axes by what holds along them; those named nowhere have one value on all devices.

    Args:
      varying: axes along which each device has a value of its own.
      unreduced: axes along which the devices' values are still to be summed.
      reduced: axes along which they were summed, whose cotangents are to be.

    Raises:
      ValueError: an axis is varying and one of the others.
    """

    __slots__ = ("reduced", "unreduced", "varying")

    def __init__(self, *, varying: Iterable[AxisName] = frozenset(), unreduced: Iterable[AxisName] = frozenset(),
                 reduced: Iterable[AxisName] = frozenset()):
        self.varying = frozenset(varying)
        self.unreduced = frozenset(unreduced)
        self.reduced = frozenset(reduced)
        for name, others in (("unreduced", self.unreduced), ("reduced", self.reduced)):
            if self.varying & others:
                raise ValueError(f"varying and {name} cannot have common mesh axes. Got varying={set(self.varying)} "
                                 f"and {name}={set(others)}")

    @property
    def sums(self) -> Sums | None:
        """What is said of sums, None where there is nothing."""
        return Sums(self.unreduced, self.reduced) if self.unreduced or self.reduced else None

    @property
    def empty(self) -> bool:
        """Whether all devices have one value."""
        return not (self.varying or self.unreduced or self.reduced)

    def update(self, *, varying: Iterable[AxisName] | None = None, unreduced: Iterable[AxisName] | None = None,
               reduced: Iterable[AxisName] | None = None) -> ManualAxisType:
        """The same with other axes."""
        return ManualAxisType(varying=self.varying if varying is None else varying,
                              unreduced=self.unreduced if unreduced is None else unreduced,
                              reduced=self.reduced if reduced is None else reduced)

    def _key(self) -> tuple[frozenset[AxisName], ...]:
        return self.varying, self.unreduced, self.reduced

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ManualAxisType) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __copy__(self) -> ManualAxisType:
        return self

    def __deepcopy__(self, memo: dict[int, Self]) -> ManualAxisType:
        return self

    def __repr__(self) -> str:
        return f"ManualAxisType(varying={self.varying}, unreduced={self.unreduced}, reduced={self.reduced})"
