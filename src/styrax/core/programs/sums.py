"""Along which mesh axes results are still to be summed, or were, by what is said of the operands.

The same holds of types that tell shardings (`core.programs.spreading`) and of values inside a `shard_map` (`Sums`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..tracing.errors import ShardingTypeError
from ..types.manual_axes import Sums
from .rules import transposes

Axes = frozenset[Any]
NO_AXES: Axes = frozenset()


class Known(NamedTuple):
    """What is known of an operand along mesh axes: sums that are still to be made, or were, and differing values."""

    unreduced: Axes = NO_AXES
    reduced: Axes = NO_AXES
    differs: Axes = NO_AXES


NOTHING_KNOWN = Known()
NO_SUMS = Sums()


def sums_of_results(primitive: Any, operands: Sequence[Any], known: Sequence[Known]) -> Sums:
    """What results are, by the operands' types and what is known of them.

    Raises:
      ShardingTypeError: operands are not summed along the same axes, or differ along an axis along which another was
        summed. NotImplementedError: sums are still to be made, and results are not linear in the operands.
    """
    if not any(k.unreduced or k.reduced for k in known):
        return NO_SUMS
    unreduced = _unreduced(primitive, operands, known)
    if primitive.traits.bilinear and not primitive.traits.elementwise:
        return Sums(unreduced, NO_AXES)
    return Sums(unreduced, _reduced(primitive, operands, known) - unreduced)


def _unreduced(primitive: Any, operands: Sequence[Any], known: Sequence[Known]) -> Axes:
    found = [k.unreduced for k in known]
    if not any(found):
        return NO_AXES
    if primitive.traits.bilinear:
        return _unreduced_product(primitive, operands, known)
    if primitive not in transposes and not primitive.traits.movement:
        raise NotImplementedError(f"unreduced rule for {primitive.name} is not implemented")
    linear = [told for x, told in zip(operands, found, strict=True)
              if told or getattr(x, "dtype", None) != np.bool_]
    if len(set(linear)) > 1 and not (primitive.traits.movement and not any(
            x.shape for x, told in zip(operands, found, strict=True) if not told)):
        if len(operands) == 2 and primitive.traits.elementwise:
            if all(found):
                raise ShardingTypeError(f"lhs and rhs to `{primitive.name}` must be unreduced along the same mesh "
                                        f"axes. Got lhs={set(found[0])}, rhs={set(found[1])}")
            sides = ("lhs", "rhs") if found[0] else ("rhs", "lhs")
            raise ShardingTypeError(
                f"{sides[0]} is unreduced while {sides[1]} is not. `{primitive.name}` operation does not allow this "
                f"because there will be implicit communication. Please reduce {sides[0]} via `reshard` before calling "
                f"`{primitive.name}`.")
        raise ShardingTypeError(f"operands of {primitive.name} have to be unreduced along the same axes, got "
                                f"{', '.join(x.str_short(True) for x in operands)}")
    return next(told for told in found if told)


def _unreduced_product(primitive: Any, operands: Sequence[Any], known: Sequence[Known]) -> Axes:
    """Of a product of elements, one of whose factors is unreduced: the other one was summed along the same axes."""
    found = [k.unreduced for k in known]
    if not primitive.traits.elementwise:
        raise ShardingTypeError(f"lhs or rhs passed to {primitive.name} cannot be unreduced. Got lhs={operands[0]!r} "
                                f"and rhs={operands[1]!r}")
    if all(found):
        raise ShardingTypeError(f"lhs and rhs to `{primitive.name}` cannot be unreduced since {primitive.name} is "
                                f"bilinear. Got lhs={found[0]}, rhs={found[1]}")
    k = 0 if found[0] else 1
    if known[1 - k].reduced != found[k]:
        sides = ("LHS", "RHS") if k == 0 else ("RHS", "LHS")
        raise ShardingTypeError(f"{sides[1]} should be reduced along the same axes {sides[0]} is unreduced on. Got lhs="
                                f"{operands[0].str_short()} and rhs={operands[1].str_short()}")
    return found[k]


def _reduced(primitive: Any, operands: Sequence[Any], known: Sequence[Known]) -> Axes:
    """The axes along which an operand's values were summed: cotangents of results are to be, too."""
    found: Axes = frozenset().union(*(k.reduced for k in known))
    if any(found & k.differs for k in known):
        raise ShardingTypeError("Inputs cannot be sharded/varying on the same axes that another input is reduced on. "
                                "Reshard the input which is reduced to be sharded on the mesh axes it is reduced on. "
                                f"Got {', '.join(x.str_short(True) for x in operands)}")
    for x, k in zip(operands, known, strict=True) if found and primitive.traits.elementwise else ():
        if x.shape and x.dtype != np.bool_ and not (k.reduced or k.unreduced):
            raise ShardingTypeError("Inputs cannot be replicated on the same axes that another input is reduced on. "
                                    f"Got input type: {x.str_short()} and reduced spec: {found}")
    return found


__all__ = ["NOTHING_KNOWN", "NO_AXES", "NO_SUMS", "Known", "sums_of_results"]
