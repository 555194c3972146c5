"""What is known of a value that is mapped over an axis: see `Mark`."""

from __future__ import annotations

import enum
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from ..core.programs.jaxpr import jaxprs_in_params
from ..core.programs.primitive import Primitive
from ..core.programs.sums import NO_AXES, Known, sums_of_results
from ..core.tracing.trace import get_aval
from ..core.types.avals import ShapedArray
from ..core.types.manual_axes import Sums


class Mark(enum.Enum):
    """A value varies along the axis, is still to be summed along it, or was summed and is equal along it.

    Where types tell nothing of the axis, REDUCED is what is equal along it for another reason.
    """

    VARYING = "varying"
    UNREDUCED = "unreduced"
    REDUCED = "reduced"


# What is said of results along an axis: primitive -> function from an axis and its params, None where others tell.
marks_of: dict[Primitive, Callable[[Hashable, dict[str, Any]], Mark | None]] = {}


def marked(aval: ShapedArray, name: Hashable, mark: Mark) -> ShapedArray:
    """The type with what is known along one more axis."""
    if mark is Mark.VARYING:
        return aval.update(sharding=aval.given_sharding, vma=aval.vma | {name})
    unreduced, reduced = aval.sums or Sums()
    sums = Sums(unreduced | {name}, reduced) if mark is Mark.UNREDUCED else Sums(unreduced, reduced | {name})
    return aval.update(sharding=aval.given_sharding, sums=sums)


def unmarked(aval: Any, name: Hashable) -> Any:
    """The type without what is known along an axis."""
    if type(aval) is not ShapedArray or not aval.vma and aval.sums is None:
        return aval
    axis = frozenset((name,))
    sums = Sums(*(axes - axis for axes in aval.sums or ()))
    return aval.update(sharding=aval.given_sharding, vma=aval.vma - axis, sums=sums if any(sums) else None)


def mark_in(name: Hashable, sums: Sums | None) -> Mark:
    """What a type tells of a value that has the axis."""
    if sums is None or not any(name in axes for axes in sums):
        return Mark.VARYING
    return Mark.UNREDUCED if name in sums.unreduced else Mark.REDUCED


def marks_of_results(primitive: Primitive, name: Hashable, mine: Sequence[Mark | None], args: Sequence[Any],
                     params: dict[str, Any]) -> Any:
    """What is known of all results along an axis, by what is of the operands (None: they do not have it).

    Those of programs each have their own, in a list.
    """
    if primitive in marks_of and (mark := marks_of[primitive](name, params)) is not None:
        return mark
    if all(m is None or m is Mark.VARYING for m in mine):
        return Mark.VARYING
    types = [get_aval(x) for x in args]
    if any(True for _ in jaxprs_in_params(params)):
        outs, _ = primitive.abstract_eval(*types, **params)
        return [mark_in(name, getattr(a, "sums", None)) for a in outs]
    axis = frozenset((name,))
    known = [Known(axis if m is Mark.UNREDUCED else NO_AXES, axis if m is Mark.REDUCED else NO_AXES,
                   axis if m is Mark.VARYING else NO_AXES) for m in mine]
    return mark_in(name, sums_of_results(primitive, types, known))


__all__ = ["Mark", "mark_in", "marked", "marks_of", "marks_of_results", "unmarked"]
