"""What the devices of a mapped axis do one after the other: calls of Python, and what these stand in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..core import hooks
from ..core.types.effects import Effect, NamedAxisEffect
from .batch import AxisData, moveaxis


def by_device(axis_data: AxisData, call: Callable[..., Sequence[Any]], args: Sequence[Any],
              dims: Sequence[int | None]) -> tuple[list[Any], list[int]]:
    """Calls `call` once for each device of a mapped axis, one after the other."""
    mapped = [moveaxis(x, d, 0) for x, d in zip(args, dims, strict=True) if d is not None]

    def body(_: Any, row: Sequence[Any]) -> tuple[tuple, Sequence[Any]]:
        rest = iter(row)
        return (), call(*(x if d is None else next(rest) for x, d in zip(args, dims, strict=True)))

    _, outs = hooks.lax.scan(body, (), mapped, length=axis_data.size)
    return outs, [0] * len(outs)


def refuse_collectives(what: str, axis_data: AxisData, effects: Iterable[Effect]) -> None:
    """NotImplementedError for what calls Python and works over an axis where devices go different ways."""
    if NamedAxisEffect(axis_data.name) in effects:
        raise NotImplementedError(f"{what} whose devices go different ways, with Python calls and collectives or "
                                  f"axis_index over {axis_data.name!r} inside: call these outside")


__all__ = ["by_device", "refuse_collectives"]
